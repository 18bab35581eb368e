/* SPDX-License-Identifier: Apache-2.0 */
#include "supervise/events.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/json.h"
#include "base/text.h"

#define WRITE_QUESTION 0x80000000u /* keeps the numbers of the two kinds of questions apart */
#define PATIENCE_MS 1000 /* for a reader that is slow; then the line is lost */

int events_open(struct events *v, const char *name, int fd, struct error *e)
{
	int flags = fd > STDERR_FILENO ? fcntl(fd, F_GETFL) : -1;
	struct stat st;

	if (fd <= STDERR_FILENO)
		return error_set(e, EINVAL, "%s %d: must be 3 or higher", name, fd);
	if (flags < 0 || fstat(fd, &st) < 0)
		return error_set(e, EBADF, "%s %d: no such descriptor is open", name, fd);
	if ((flags & O_ACCMODE) == O_RDONLY || flags & O_PATH)
		return error_set(e, EBADF, "%s %d: cannot be written to", name, fd);
	if (fcntl(fd, F_SETFD, FD_CLOEXEC) < 0)
		return error_set(e, errno, "%s %d: %s", name, fd, strerror(errno));
	v->fd = fd;
	return 0;
}

void events_done(struct events *v)
{
	buf_done(&v->rest);
	buf_done(&v->answers);
}

static void begin(struct json *j, const char *event)
{
	json_begin_object(j);
	json_kstring(j, "event", event);
}

/* True when all of it was taken; what is left of a line that was begun is kept. */
static bool put(struct events *v, const char *text, size_t len, bool begun)
{
	ssize_t n = fd_write_within(v->fd, text, len, v->slow ? 0 : PATIENCE_MS);

	v->slow = n != (ssize_t)len;
	if (v->slow && (begun || n > 0)) {
		struct buf left = BUF_INIT(EVENTS_LINE_MAX);

		buf_append(&left, text + (n > 0 ? n : 0), len - (size_t)(n > 0 ? n : 0));
		buf_done(&v->rest);
		v->rest = left;
	} else {
		buf_done(&v->rest);
	}
	return !v->slow;
}

static void finish(struct events *v, struct json *j)
{
	json_end_object(j);
	buf_putc(j->out, '\n');
	if (j->out->overflow || (v->rest.len && !put(v, v->rest.data, v->rest.len, true)))
		return;
	(void)put(v, buf_str(j->out), j->out->len, false);
}

void events_note(struct events *v, const char *text)
{
	_cleanup_buf_ struct buf b = BUF_INIT(BUF_MAX_TEXT);
	struct json j = { .out = &b };

	if (v->fd < 0)
		return;
	begin(&j, "note");
	json_kstring(&j, "text", text);
	finish(v, &j);
}

void events_denied(struct events *v, const struct report_entry *entry)
{
	_cleanup_buf_ struct buf b = BUF_INIT(BUF_MAX_TEXT);
	struct json j = { .out = &b };

	if (v->fd < 0)
		return;
	begin(&j, "denied");
	report_write_entry(entry, &j);
	finish(v, &j);
}

void events_ask(struct events *v, const struct egress_record *r)
{
	_cleanup_buf_ struct buf b = BUF_INIT(BUF_MAX_TEXT);
	struct json j = { .out = &b };

	begin(&j, r->kind == EGRESS_ASK ? "ask" : "unask");
	json_kint(&j, "id", r->id);
	if (r->kind == EGRESS_ASK) {
		json_kstring(&j, "host", r->host);
		json_kint(&j, "port", r->port);
	}
	finish(v, &j);
}

void events_ask_write(struct events *v, const struct violation *q)
{
	_cleanup_buf_ struct buf b = BUF_INIT(BUF_MAX_TEXT);
	struct json j = { .out = &b };

	begin(&j, "ask");
	json_kint(&j, "id", q->id | WRITE_QUESTION);
	json_kstring(&j, "path", q->path);
	json_kstring(&j, "rule", q->rule);
	json_kstring(&j, "reason", q->reason);
	json_kstring(&j, "process", q->process);
	finish(v, &j);
}

_Static_assert((int)EGRESS_DENY == (int)VIOLATION_REFUSE &&
		       (int)EGRESS_DENY_RUN == (int)VIOLATION_REFUSE_RUN &&
		       (int)EGRESS_ALLOW_ONCE == (int)VIOLATION_ALLOW_ONCE &&
		       (int)EGRESS_ALLOW_RUN == (int)VIOLATION_ALLOW_RUN,
	       "the same answers to both questions");

static void take_answer(const char *line, struct session *s)
{
	static const char *const words[] = {
		[EGRESS_DENY] = " no",
		[EGRESS_DENY_RUN] = " never",
		[EGRESS_ALLOW_ONCE] = " once",
		[EGRESS_ALLOW_RUN] = " run",
	};
	size_t digits = strspn(line, "0123456789");
	uint64_t id = text_leading_u64(line);

	if (digits == 0 || id > UINT32_MAX)
		return;
	for (size_t i = 0; i < ARRAY_LEN(words); i++) {
		if (strcmp(line + digits, words[i]) != 0)
			continue;
		if (id & WRITE_QUESTION)
			session_answer_write(s, (uint32_t)id & ~WRITE_QUESTION,
					     (enum violation_answer)i);
		else
			session_answer(s, (uint32_t)id, (enum egress_answer)i);
	}
}

void events_take_answers(struct events *v, struct session *s)
{
	struct buf *text = &v->answers;
	char chunk[1024];
	ssize_t n = recv(v->fd, chunk, sizeof(chunk), MSG_DONTWAIT);
	char *end;

	if (n > 0)
		buf_append(text, chunk, (size_t)n);
	while (text->len > 0 && (end = memchr(text->data, '\n', text->len))) {
		size_t used = (size_t)(end - text->data) + 1;

		*end = '\0';
		take_answer(text->data, s);
		memmove(text->data, text->data + used, text->len - used);
		text->len -= used;
	}
}

void events_error(struct events *v, const struct error *e)
{
	_cleanup_buf_ struct buf b = BUF_INIT(BUF_MAX_TEXT);
	struct json j = { .out = &b };

	if (v->fd < 0)
		return;
	begin(&j, "error");
	json_kstring(&j, "text", e->text);
	json_kint(&j, "exitCode", e->exit_code ? e->exit_code : 125);
	v->slow = false; /* the last word is waited with once more */
	finish(v, &j);
}

void events_end(struct events *v, const struct report *r, char *const *argv,
		const struct run_result *result)
{
	_cleanup_buf_ struct buf b = BUF_INIT(BUF_MAX_TEXT);
	struct json j = { .out = &b };

	if (v->fd < 0)
		return;
	begin(&j, "end");
	report_write_fields(r, argv, result, &j);
	v->slow = false; /* the last word is waited with once more */
	finish(v, &j);
}
