/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines are put together per stream and written whole, each record with one write(2) at the
 * end of the file: several runs may log to one file, and no record is torn.
 *
 * Hostile: everything that the command writes. It is kept in buffers of fixed size, masked and
 * escaped; it is never interpreted. The name of the file is the user's, but what lies under it may
 * be the project's: links are not followed at the last step, and neither a link to nor a
 * file of somebody else is written to.
 */
#include "supervise/seslog.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "audit/chain.h"
#include "audit/redact.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/text.h"
#include "supervise/seslog_key.h"
#include "supervise/seslog_mask.h"

#define LINE_MAX_BYTES 8192 /* a longer line is cut, at a space where there is one */
#define CONTEXT_MAX 4096 /* of what is written is kept, to mask what follows in its light */
#define WORDS_MAX 2048 /* the same where no secret goes on: the words before */
#define IDLE_MS 1000 /* after which a begun line is written */
#define RECORD_MAX ((size_t)256 << 10)
#define HIDDEN "[not logged: the terminal did not echo]"

static const struct {
	const char *text, *json;
} names[] = {
	[SESLOG_IN] = { "in ", "stdin" },          [SESLOG_OUT] = { "out", "stdout" },
	[SESLOG_ERR] = { "err", "stderr" },        [SESLOG_KEYS] = { "key", "keys" },
	[SESLOG_TERMINAL] = { "tty", "terminal" },
};
_Static_assert(ARRAY_LEN(names) == SESLOG_STREAM_MAX_, "a name for each stream");

struct line {
	char data[CONTEXT_MAX + LINE_MAX_BYTES];
	size_t len;
	size_t shown; /* of it is written already; what follows is masked in its light */
	uint64_t since_ms; /* when it last grew */
	bool idle; /* and was looked at since */
	bool hidden; /* what was read last was not to be kept */
	struct seslog_key key; /* that was begun by a line before */
};

struct seslog {
	struct seslog_config config;
	bool jsonl;
	char run[64];
	int dir, fd;
	char name[NAME_MAX + 1];
	uint64_t file_max; /* RLIMIT_FSIZE: going over it would be a signal */
	int failure;
	bool torn; /* of the last record only a part was written */
	struct line lines[SESLOG_STREAM_MAX_];
};

static uint64_t now_ms(clockid_t clock)
{
	struct timespec ts;

	(void)clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

/* --- the file ------------------------------------------------------------------------ */

static int open_file(struct seslog *l, struct error *e)
{
	struct stat st;
	int r = 0;

	l->fd = openat(l->dir, l->name,
		       O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY |
			       O_CLOEXEC,
		       0600);
	if (l->fd < 0)
		return error_set(e, errno, "--log %s: %s", l->config.path,
				 errno == ELOOP ? "is a symbolic link" : strerror(errno));
	if (fstat(l->fd, &st) < 0)
		r = error_set(e, errno, "--log %s: %s", l->config.path, strerror(errno));
	else if (!S_ISREG(st.st_mode))
		r = error_set(e, EINVAL, "--log %s: is not a regular file", l->config.path);
	else if (st.st_uid != geteuid() || st.st_nlink > 1)
		r = error_set(e, EPERM, "--log %s: is not a file of yours alone", l->config.path);
	else if ((st.st_mode & 077) && fchmod(l->fd, 0600) < 0)
		r = error_set(e, errno, "--log %s: cannot be made private: %s", l->config.path,
			      strerror(errno));
	if (r < 0)
		fd_close(TAKE_FD(l->fd));
	return r;
}

/* The names FILE.1 (newest) to FILE.keep. */
static void old_name(const struct seslog *l, uint64_t i, char ret[NAME_MAX + 32])
{
	if (i == 0)
		text_copy(ret, NAME_MAX + 32, l->name);
	else
		(void)snprintf(ret, NAME_MAX + 32, "%s.%llu", l->name, (unsigned long long)i);
}

static void put_aside(struct seslog *l)
{
	char from[NAME_MAX + 32], to[NAME_MAX + 32];

	if (l->config.keep == 0)
		(void)unlinkat(l->dir, l->name, 0);
	for (uint64_t i = l->config.keep; i > 0; i--) {
		old_name(l, i - 1, from);
		old_name(l, i, to);
		(void)renameat(l->dir, from, l->dir, to);
	}
}

/* Is the file under our name still the one that we have open? */
static bool is_present(const struct seslog *l, const struct stat *own)
{
	struct stat st;

	return fstatat(l->dir, l->name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       st.st_ino == own->st_ino && st.st_dev == own->st_dev;
}

/* Another run may have put the file aside; or it is our turn to. */
static void find_place(struct seslog *l, size_t len)
{
	uint64_t max = l->config.max_bytes;
	struct stat st;

	if (l->fd < 0 || fstat(l->fd, &st) < 0)
		return;
	if (is_present(l, &st)) {
		if (!max || st.st_size == 0 || (uint64_t)st.st_size + len <= max ||
		    flock(l->fd, LOCK_EX | LOCK_NB) < 0)
			return; /* room enough, or another run is doing it right now */
		if (is_present(l, &st))
			put_aside(l);
	}
	fd_close(TAKE_FD(l->fd));
	if (open_file(l, NULL) < 0 && !l->failure)
		l->failure = EIO;
}

/* What is left of a record that did not fit is ended before the next one. */
static bool end_torn(struct seslog *l)
{
	l->torn = l->torn && write(l->fd, "\n", 1) != 1;
	return !l->torn;
}

static void write_record(struct seslog *l, const struct buf *b)
{
	struct stat st;
	ssize_t n;

	find_place(l, b->len);
	if (l->fd < 0 || b->overflow)
		return;
	if (fstat(l->fd, &st) == 0 && (uint64_t)st.st_size + b->len > l->file_max) {
		l->failure = l->failure ? l->failure : EFBIG;
		return;
	}
	if (!end_torn(l))
		return; /* still no room */
	n = write(l->fd, b->data, b->len);
	if (n == (ssize_t)b->len)
		return;
	l->torn = n > 0;
	if (!l->failure)
		l->failure = n < 0 ? errno : ENOSPC;
}

/* --- records --------------------------------------------------------------------------- */

static void put_time(struct buf *b)
{
	char time[CHAIN_TIME_LEN + 1];

	chain_time((int64_t)now_ms(CLOCK_REALTIME), time);
	buf_puts(b, time);
}

static void begin_json(const struct seslog *l, struct json *j)
{
	char time[CHAIN_TIME_LEN + 1];

	chain_time((int64_t)now_ms(CLOCK_REALTIME), time);
	json_begin_object(j);
	json_kstring(j, "time", time);
	json_kstring(j, "run", l->run);
}

/* JSON strings end at a NUL here: one in the text is shown as what cannot be shown. */
static void put_json_text(struct json *j, const char *text, size_t n)
{
	_cleanup_buf_ struct buf b = BUF_INIT(RECORD_MAX);

	for (size_t i = 0; i < n; i++) {
		if (text[i])
			buf_putc(&b, text[i]);
		else
			buf_puts(&b, "\xef\xbf\xbd");
	}
	json_kstring(j, "text", buf_str(&b));
}

static void put_record(struct seslog *l, enum seslog_stream which, const char *text, size_t n,
		       bool cut)
{
	_cleanup_buf_ struct buf b = BUF_INIT(RECORD_MAX);

	if (l->jsonl) {
		struct json j = { .out = &b };

		begin_json(l, &j);
		json_kstring(&j, "stream", names[which].json);
		put_json_text(&j, text, n);
		if (cut)
			json_kbool(&j, "cut", true);
		json_end_object(&j);
	} else {
		put_time(&b);
		buf_printf(&b, " %s%c ", names[which].text, cut ? '\\' : '|');
		text_append_safe_n(&b, text, n);
	}
	buf_putc(&b, '\n');
	write_record(l, &b);
}

/* What is left out is told. */
static void end_key(struct seslog *l, enum seslog_stream which)
{
	struct seslog_key *key = &l->lines[which].key;
	char text[64];

	if (key->lines) {
		(void)snprintf(text, sizeof(text), "[%zu line%s redacted]", key->lines,
			       key->lines == 1 ? "" : "s");
		put_record(l, which, text, strlen(text), false);
	}
	*key = (struct seslog_key){ 0 };
}

/* A line that has not come to its end belongs to the key as long as it may. */
static bool is_key_line(struct seslog_key *key, const struct buf *text, bool cut)
{
	if (!cut)
		return seslog_key_line(key, buf_str(text), text->len);
	key->inside = seslog_key_may_go_on(buf_str(text), text->len);
	key->lines += key->inside;
	return key->inside;
}

/* A private key is many lines, and only the first of them says so. */
static bool is_in_key(struct seslog *l, enum seslog_stream which, size_t n, bool cut)
{
	_cleanup_buf_ struct buf text = BUF_INIT(RECORD_MAX);
	struct line *line = &l->lines[which];
	bool belongs;

	if (!line->key.inside && (cut || !memmem(line->data, n, "-----BEGIN ", 11)))
		return false;
	seslog_strip(line->data, n, &text);
	if (line->key.inside) {
		belongs = is_key_line(&line->key, &text, cut);
		if (!line->key.inside)
			end_key(l, which);
		if (belongs)
			return true;
	}
	if (!cut)
		(void)seslog_key_begins(&line->key, buf_str(&text), text.len);
	return false; /* the first line shows that there is one */
}

static size_t common_start(const struct buf *a, const struct buf *b)
{
	size_t i = 0;

	while (i < a->len && i < b->len && a->data[i] == b->data[i])
		i++;
	return i;
}

/*
 * The line up to n, without what is written already. It is masked as a whole, so that
 * a secret is known for one also when a pause came in the middle of it. True when it ends in one.
 */
static bool put_line(struct seslog *l, enum seslog_stream which, size_t n, bool cut)
{
	_cleanup_buf_ struct buf masked = BUF_INIT(RECORD_MAX), before = BUF_INIT(RECORD_MAX);
	struct line *line = &l->lines[which];
	size_t skip;

	while (n > line->shown && !cut && line->data[n - 1] == '\r')
		n--;
	if (!l->config.redact) {
		put_record(l, which, line->data + line->shown, n - line->shown, cut);
		return false;
	}
	if (is_in_key(l, which, n, cut))
		return false;
	seslog_mask(line->data, n, &masked);
	if (line->shown)
		seslog_mask(line->data, line->shown, &before);
	skip = common_start(&before, &masked);
	if (!cut || skip < masked.len)
		put_record(l, which, buf_str(&masked) + skip, masked.len - skip, cut);
	return text_ends(buf_str(&masked), REDACTED);
}

static void begin_line(struct line *line)
{
	line->len = line->shown = 0;
}

/* Nothing more is to come of the line, but it did not end. */
static void break_line(struct seslog *l, enum seslog_stream which)
{
	struct line *line = &l->lines[which];

	if (line->len > line->shown)
		(void)put_line(l, which, line->len, true);
	begin_line(line);
}

/* What stands before the words that come next stays; of a long secret that is its beginning. */
static void forget_shown(struct line *line, bool in_secret)
{
	size_t keep = in_secret ? CONTEXT_MAX : WORDS_MAX, to = line->shown;

	if (line->shown <= CONTEXT_MAX)
		return;
	if (in_secret)
		to = seslog_secret_known(line->data, line->shown);
	keep = keep < to ? keep : to;
	memmove(line->data, line->data + to - keep, keep);
	memmove(line->data + keep, line->data + line->shown, line->len - line->shown);
	line->len -= line->shown - keep;
	line->shown = keep;
}

/* The first n bytes are written; the line goes on. */
static void put_begun(struct seslog *l, enum seslog_stream which, size_t n)
{
	struct line *line = &l->lines[which];
	bool in_secret = put_line(l, which, n, true);

	line->shown = n;
	forget_shown(line, in_secret);
}

static bool ends_line(enum seslog_stream which, char c)
{
	return c == '\n' || (which == SESLOG_KEYS && c == '\r');
}

void seslog_add(struct seslog *l, enum seslog_stream which, const char *data, size_t len)
{
	struct line *line = &l->lines[which];

	line->hidden = false;
	for (size_t i = 0; i < len; i++) {
		if (ends_line(which, data[i])) {
			(void)put_line(l, which, line->len, false);
			begin_line(line);
			continue;
		}
		if (line->len - line->shown == LINE_MAX_BYTES)
			put_begun(l, which, seslog_cut(line->data, line->shown, line->len));
		line->data[line->len++] = data[i];
	}
	line->since_ms = now_ms(CLOCK_MONOTONIC);
	line->idle = false;
}

void seslog_hide(struct seslog *l, enum seslog_stream which)
{
	struct line *line = &l->lines[which];

	if (line->hidden)
		return;
	break_line(l, which);
	line->hidden = true;
	put_record(l, which, HIDDEN, strlen(HIDDEN), false);
}

int seslog_wait_ms(const struct seslog *l)
{
	uint64_t now = 0;
	int least = -1;

	for (size_t i = 0; i < SESLOG_STREAM_MAX_; i++) {
		const struct line *line = &l->lines[i];
		uint64_t due = line->since_ms + IDLE_MS;
		int left;

		if (!line->len || line->idle)
			continue;
		now = now ? now : now_ms(CLOCK_MONOTONIC);
		left = due > now ? (int)(due - now) : 0;
		least = least < 0 || left < least ? left : least;
	}
	return least;
}

static bool is_begun_key_line(const struct line *line)
{
	_cleanup_buf_ struct buf text = BUF_INIT(RECORD_MAX);

	if (!line->key.inside)
		return false;
	seslog_strip(line->data, line->len, &text);
	return seslog_key_may_go_on(buf_str(&text), text.len);
}

/* A prompt is wanted at once; what may be the beginning of a secret waits for the rest of it. */
static void show_begun(struct seslog *l, enum seslog_stream which)
{
	struct line *line = &l->lines[which];
	size_t n;

	line->idle = true;
	if (!l->config.redact) {
		break_line(l, which);
		return;
	}
	n = seslog_settled(line->data, line->len);
	if (n > line->shown && !is_begun_key_line(line))
		put_begun(l, which, n);
}

void seslog_flush(struct seslog *l)
{
	uint64_t now = now_ms(CLOCK_MONOTONIC);

	for (enum seslog_stream i = 0; i < SESLOG_STREAM_MAX_; i++) {
		const struct line *line = &l->lines[i];

		if (line->len && !line->idle && line->since_ms + IDLE_MS <= now)
			show_begun(l, i);
	}
}

int seslog_failure(const struct seslog *l)
{
	return l->failure;
}

/* --- beginning and end -------------------------------------------------------------------- */

static void put_command(const struct seslog *l, char *const *argv, size_t i, struct buf *out)
{
	if (l->config.redact)
		redact_argument(argv, i, out);
	else
		buf_puts(out, argv[i]);
}

void seslog_start(struct seslog *l, const char *run, char *const *argv)
{
	_cleanup_buf_ struct buf b = BUF_INIT(RECORD_MAX);
	struct json j = { .out = &b };

	text_copy(l->run, sizeof(l->run), run);
	if (l->jsonl) {
		begin_json(l, &j);
		json_kstring(&j, "event", "start");
		json_key(&j, "command");
		json_begin_array(&j);
	} else {
		put_time(&b);
		buf_printf(&b, " ---| run %s:", l->run);
	}
	for (size_t i = 0; argv[i]; i++) {
		_cleanup_buf_ struct buf word = BUF_INIT(RECORD_MAX);

		put_command(l, argv, i, &word);
		if (l->jsonl) {
			json_string(&j, buf_str(&word));
		} else {
			buf_putc(&b, ' ');
			text_append_safe_n(&b, buf_str(&word), word.len);
		}
	}
	if (l->jsonl) {
		json_end_array(&j);
		json_end_object(&j);
	}
	buf_putc(&b, '\n');
	write_record(l, &b);
}

static void end_stream(struct seslog *l, enum seslog_stream which)
{
	break_line(l, which);
	end_key(l, which);
}

void seslog_end(struct seslog *l, int exit_code)
{
	_cleanup_buf_ struct buf b = BUF_INIT(RECORD_MAX);
	struct json j = { .out = &b };

	for (enum seslog_stream i = 0; i < SESLOG_STREAM_MAX_; i++)
		end_stream(l, i);
	if (l->jsonl) {
		begin_json(l, &j);
		json_kstring(&j, "event", "end");
		json_kint(&j, "exitCode", exit_code);
		json_end_object(&j);
	} else {
		put_time(&b);
		buf_printf(&b, " ---| run %s ended with status %d", l->run, exit_code);
	}
	buf_putc(&b, '\n');
	write_record(l, &b);
}

static int open_directory(struct seslog *l, struct error *e)
{
	const char *path = l->config.path, *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;
	char dir[PATH_MAX];

	if (!*name || strlen(name) > NAME_MAX - 32 || (size_t)(name - path) >= sizeof(dir))
		return error_set(e, EINVAL, "--log %s: is not the name of a file", path);
	text_copy(l->name, sizeof(l->name), name);
	if (!slash) {
		text_copy(dir, sizeof(dir), ".");
	} else {
		memcpy(dir, path, (size_t)(name - path));
		dir[name - path] = '\0';
	}
	l->dir = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return l->dir < 0 ? error_set(e, errno, "--log %s: %s", path, strerror(errno)) : 0;
}

int seslog_open(const struct seslog_config *c, struct seslog **ret, struct error *e)
{
	struct seslog *l = calloc(1, sizeof(*l));
	struct rlimit lim = { .rlim_cur = RLIM_INFINITY };
	int r;

	if (!l)
		abort();
	l->config = *c;
	l->dir = l->fd = -1;
	l->jsonl = c->format == LOG_FORMAT_JSONL ||
		   (c->format == LOG_FORMAT_AUTO && text_ends(c->path, ".jsonl"));
	(void)getrlimit(RLIMIT_FSIZE, &lim);
	l->file_max = lim.rlim_cur;
	r = open_directory(l, e);
	if (r == 0)
		r = open_file(l, e);
	if (r < 0)
		seslog_close(l);
	else
		*ret = l;
	return r;
}

void seslog_close(struct seslog *l)
{
	if (!l)
		return;
	fd_close(l->fd);
	fd_close(l->dir);
	free(l);
}
