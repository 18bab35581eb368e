/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/report.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "base/json.h"

#define RECORD_MAX 4096
#define BATCH_MAX ((size_t)16 << 10)
#define NAME_QUIET_MS 1000
#define PATIENCE_MS 200
#define LATE_MS 20 /* that what is over may wait for company */

static bool send_text(struct report *r, const char *text, size_t len)
{
	struct pollfd pfd = { .fd = r->fd, .events = POLLOUT };

	while (send(r->fd, text, len, MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
		if (errno == EINTR)
			continue;
		if (errno != EAGAIN || !r->patient)
			return false;
		r->patient = poll(&pfd, 1, PATIENCE_MS) > 0;
	}
	return true;
}

static void put_dropped(struct report *r, struct buf *b)
{
	struct json j = { .out = b };

	json_begin_object(&j);
	json_kstring(&j, "kind", "dropped");
	json_kint(&j, "count", (int64_t)r->dropped);
	json_end_object(&j);
	buf_putc(b, '\n');
}

/* False: what was batched is lost, and counted. */
static bool flush(struct report *r)
{
	_cleanup_buf_ struct buf first = BUF_INIT(RECORD_MAX + BATCH_MAX);
	const struct buf *all = &r->batch;
	bool sent = true;

	if (r->dropped > 0) {
		put_dropped(r, &first);
		buf_append(&first, buf_str(&r->batch), r->batch.len);
		all = &first;
	}
	if (all->len > 0)
		sent = send_text(r, all->data, all->len);
	r->dropped = sent ? 0 : r->dropped + r->batched;
	r->batched = 0;
	r->batch.len = 0;
	r->due_ms = 0;
	r->hurry = false;
	return sent;
}

void report_flush(struct report *r, uint64_t now_ms)
{
	if (r->batched == 0)
		return;
	if (r->due_ms == 0)
		r->due_ms = now_ms + (r->hurry ? 0 : LATE_MS);
	if (r->hurry || now_ms >= r->due_ms)
		(void)flush(r);
}

void report_finish(struct report *r)
{
	(void)flush(r);
	buf_done(&r->batch);
}

static void add_record(struct report *r, const struct buf *b, bool hurry)
{
	if (r->batch.len + b->len + 1 > BATCH_MAX)
		(void)flush(r);
	if (b->overflow) {
		r->dropped++;
		return;
	}
	r->batch.max = BATCH_MAX + 1;
	buf_append(&r->batch, b->data, b->len);
	buf_putc(&r->batch, '\n');
	r->batched++;
	r->hurry |= hurry;
}

static void put_string(struct json *j, const char *key, const char *value)
{
	if (value && *value)
		json_kstring(j, key, value);
}

void report_connect(struct report *r, const struct record *rec)
{
	_cleanup_buf_ struct buf b = BUF_INIT(RECORD_MAX);
	struct json j = { .out = &b };

	json_begin_object(&j);
	json_kstring(&j, "kind", "connect");
	json_kint(&j, "owner", rec->owner);
	json_kstring(&j, "host", rec->host);
	json_kint(&j, "port", rec->port);
	json_kstring(&j, "via", rec->via);
	json_kstring(&j, "verdict", rec->allow ? "allow" : "deny");
	put_string(&j, "rule", rec->rule);
	put_string(&j, "reason", rec->reason);
	put_string(&j, "address", rec->address);
	if (rec->process) {
		json_kstring(&j, "process", rec->process);
		json_kint(&j, "pid", rec->pid);
	}
	json_kint(&j, "sent", (int64_t)rec->sent);
	json_kint(&j, "received", (int64_t)rec->received);
	json_kint(&j, "ms", (int64_t)rec->ms);
	json_end_object(&j);
	add_record(r, &b, !rec->over);
}

static uint32_t hash_text(const char *s)
{
	uint32_t h = 2166136261u;

	for (; *s; s++)
		h = (h ^ (uint8_t)*s) * 16777619u;
	return h;
}

void report_name(struct report *r, const struct record *rec, uint64_t now_ms)
{
	uint32_t hash = hash_text(rec->host);
	size_t slot = hash % (ARRAY_LEN(r->recent));

	if (r->recent[slot].hash == hash && r->recent[slot].until_ms > now_ms)
		return;
	r->recent[slot].hash = hash;
	r->recent[slot].until_ms = now_ms + NAME_QUIET_MS;
	report_connect(r, rec);
}

void report_text(struct report *r, const char *kind, const char *reason)
{
	_cleanup_buf_ struct buf b = BUF_INIT(RECORD_MAX);
	struct json j = { .out = &b };

	json_begin_object(&j);
	json_kstring(&j, "kind", kind);
	json_kstring(&j, "reason", reason);
	json_end_object(&j);
	add_record(r, &b, true);
}

/* A record of nothing but numbers. */
static void add_plain(struct report *r, const char *kind, uint32_t owner, uint32_t id)
{
	_cleanup_buf_ struct buf b = BUF_INIT(RECORD_MAX);
	struct json j = { .out = &b };

	json_begin_object(&j);
	json_kstring(&j, "kind", kind);
	json_kint(&j, "owner", owner);
	json_kint(&j, "id", id);
	json_end_object(&j);
	add_record(r, &b, true);
}

void report_ready(struct report *r)
{
	add_plain(r, "ready", 0, 0);
}

void report_unask(struct report *r, uint32_t owner, uint32_t id)
{
	add_plain(r, "unask", owner, id);
}

void report_gone(struct report *r, uint32_t owner)
{
	add_plain(r, "gone", owner, 0);
}

bool report_ask(struct report *r, uint32_t owner, uint32_t id, const char *host, uint16_t port,
		const char *via)
{
	_cleanup_buf_ struct buf b = BUF_INIT(RECORD_MAX);
	struct json j = { .out = &b };

	json_begin_object(&j);
	json_kstring(&j, "kind", "ask");
	json_kint(&j, "owner", owner);
	json_kint(&j, "id", id);
	json_kstring(&j, "host", host);
	json_kint(&j, "port", port);
	json_kstring(&j, "via", via);
	json_end_object(&j);
	add_record(r, &b, true);
	return flush(r);
}
