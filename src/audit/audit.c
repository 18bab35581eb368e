/* SPDX-License-Identifier: Apache-2.0 */
#include "audit/audit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "audit/lost.h"
#include "audit/redact.h"
#include "audit/store.h"
#include "base/fd.h"
#include "base/sys.h"
#include "base/text.h"

#define DEFAULT_BYTES ((uint64_t)16 << 20)
#define DEFAULT_FILES 8
#define TEXT_MAX ((size_t)4 << 10) /* bytes kept of one text */
#define ARGV_MAX ((size_t)8 << 10) /* of all words of a command */
#define JSON_MAX ((size_t)16 << 10) /* of the arguments of a call */
#define INPUT_MAX ((size_t)256 << 10) /* bytes looked at */

bool audit_config_of(const struct policy *p, struct audit_config *ret)
{
	*ret = (struct audit_config){
		.path = p->audit_file,
		.state_dir = p->state_dir,
		.max_bytes = p->audit_max_size,
		.max_files = (unsigned)p->audit_max_files,
		.redact = p->audit_redact,
	};
	return p->audit_file != NULL;
}

static struct audit *new_log(const struct audit_config *config)
{
	struct audit *log = calloc(1, sizeof(*log));
	struct rlimit limit;

	if (!log)
		abort();
	log->files.dir = log->head = -1;
	lost_choose_place(config->path, config->state_dir, log->files.place);
	log->max_bytes = config->max_bytes ? config->max_bytes : DEFAULT_BYTES;
	log->max_files = config->max_files ? config->max_files : DEFAULT_FILES;
	log->redact = config->redact;
	log->fsize_limit = UINT64_MAX;
	if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
		log->fsize_limit = limit.rlim_cur;
	return log;
}

int audit_open(const struct audit_config *config, struct audit **ret, struct error *e)
{
	struct audit *log = new_log(config);
	char name[FILES_NAME_MAX];
	uint64_t size;
	int r = files_open(config->path, FILES_WRITE, &log->files, e);

	if (r == 0) {
		files_head_name(&log->files, name);
		r = files_open_one(&log->files, name, FILES_WRITE, &size, e);
	}
	if (r < 0) {
		audit_close(log);
		return r;
	}
	log->head = r;
	/* the head is overwritten in place */
	(void)fcntl(log->head, F_SETFL, O_RDWR);
	*ret = log;
	return 0;
}

struct audit *audit_open_or_lose(const struct audit_config *config)
{
	struct audit *log = NULL;
	struct error e = { 0 };

	if (audit_open(config, &log, &e) == 0)
		return log;
	log = new_log(config);
	log->broken = e;
	log->head = files_open_head_anyway(config->path);
	return log;
}

struct audit *audit_open_for(const struct policy *p)
{
	struct audit_config config;

	if (p->state_dir && !(p->audit_file && path_within(p->audit_file, p->state_dir)))
		files_make_directory(p->state_dir);
	return audit_config_of(p, &config) ? audit_open_or_lose(&config) : NULL;
}

void audit_close(struct audit *log)
{
	if (!log)
		return;
	fd_close(log->head);
	files_close(&log->files);
	free(log);
}

void audit_new_run(char ret[AUDIT_RUN_ID_LEN + 1])
{
	static const char digits[] = "0123456789abcdefghijklmnopqrstuv"; /* 32 */
	unsigned char bytes[AUDIT_RUN_ID_LEN];

	if (sys_random(bytes, sizeof(bytes)) < 0)
		abort();
	for (size_t i = 0; i < sizeof(bytes); i++)
		ret[i] = digits[bytes[i] % 32];
	ret[AUDIT_RUN_ID_LEN] = '\0';
}

void audit_begin(struct audit *log, struct audit_record *r, const char *event, const char *run)
{
	(void)log;
	*r = (struct audit_record){
		.text = BUF_INIT(AUDIT_RECORD_MAX),
		.event = event,
		.run = run,
	};
	/* as if inside the object: every key is preceded by a comma */
	r->json = (struct json){ .out = &r->text, .depth = 1 };
	if (run)
		json_kstring(&r->json, "run", run);
}

int audit_commit(struct audit *log, struct audit_record *r, struct error *e)
{
	int err;

	if (r->text.overflow) {
		buf_done(&r->text);
		r->text = (struct buf)BUF_INIT(AUDIT_RECORD_MAX);
		r->json = (struct json){ .out = &r->text, .depth = 1 };
		if (r->run)
			json_kstring(&r->json, "run", r->run);
		json_kbool(&r->json, "oversize", true);
	}
	err = log ? store_append(log, r->event, &r->text, e) : 0;
	buf_done(&r->text);
	return err;
}

/* The longest beginning of at most max bytes that does not end inside a character. */
static size_t cut_length(const char *s, size_t n, size_t max)
{
	if (n <= max)
		return n;
	while (max > 0 && ((unsigned char)s[max] & 0xc0) == 0x80)
		max--;
	return max;
}

static void put_cut(struct json *j, const struct buf *text, size_t max)
{
	_cleanup_buf_ struct buf b = BUF_INIT(INPUT_MAX + 64);
	size_t n = cut_length(buf_str(text), text->len, max);

	if (n == text->len) {
		json_string(j, buf_str(text));
		return;
	}
	buf_append(&b, buf_str(text), n);
	buf_printf(&b, "[%zu bytes more]", text->len - n);
	json_string(j, buf_str(&b));
}

void audit_put_text(const struct audit *log, struct audit_record *r, const char *key,
		    const char *text)
{
	_cleanup_buf_ struct buf b = BUF_INIT(4 * INPUT_MAX);
	size_t n;

	if (!log || !text || !*text)
		return;
	n = strnlen(text, INPUT_MAX);
	if (log->redact)
		redact_text(text, n, &b);
	else
		buf_append(&b, text, n);
	json_key(&r->json, key);
	put_cut(&r->json, &b, TEXT_MAX);
}

void audit_put_argv(const struct audit *log, struct audit_record *r, const char *key,
		    char *const *argv)
{
	size_t left = ARGV_MAX;

	if (!log)
		return;
	json_key(&r->json, key);
	json_begin_array(&r->json);
	for (size_t i = 0; argv[i] && left > 0; i++) {
		_cleanup_buf_ struct buf b = BUF_INIT(BUF_MAX_TEXT);

		if (log->redact && strnlen(argv[i], INPUT_MAX) < INPUT_MAX)
			redact_argument(argv, i, &b);
		else
			buf_append(&b, argv[i], strnlen(argv[i], log->redact ? 0 : INPUT_MAX));
		put_cut(&r->json, &b, left < TEXT_MAX ? left : TEXT_MAX);
		left -= b.len < left ? b.len + 1 < left ? b.len + 1 : left : left;
		if (left == 0 && argv[i + 1])
			json_string(&r->json, "[more words]");
	}
	json_end_array(&r->json);
}

void audit_put_json(const struct audit *log, struct audit_record *r, const char *key,
		    const char *json, size_t len)
{
	_cleanup_buf_ struct buf b = BUF_INIT(BUF_MAX_TEXT);
	size_t n = len < INPUT_MAX ? len : INPUT_MAX;

	if (!log || !json)
		return;
	json_key(&r->json, key);
	if (n == len && redact_json(json, len, &b) == 0 && b.len <= JSON_MAX) {
		json_raw(&r->json, log->redact ? b.data : json, log->redact ? b.len : len);
		return;
	}
	/* no JSON, or too long: as text */
	if (!log->redact) {
		b.len = 0;
		buf_append(&b, json, n);
	} else if (!b.len) {
		redact_text(json, n, &b);
	}
	put_cut(&r->json, &b, JSON_MAX);
}
