/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Adding a line, under the lock on the head:
 *
 *   1. read the head; the present file has the size it says (else repair.c)
 *   2. put the file aside if it is full
 *   3. append the line with one write; if not all of it fits, cut the file back
 *   4. bring the head up to date
 *
 * The very first writer brings the head up to date before step 3, too: an empty one is never
 * found beside a line. A process that is killed in between leaves a longer file, or one with a
 * cut last line; the next writer sees that by step 1. A line that could not be added is counted
 * where that is possible (lost.c), and the next line that can be is preceded by one that tells.
 * Nothing is synced to disk: what was written survives the end of every process, but not of
 * the machine's power.
 */
#include "audit/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "audit/lost.h"
#include "audit/repair.h"
#include "base/fd.h"
#include "base/sys.h"
#include "base/text.h"

#define LINES_MAX (4 * AUDIT_RECORD_MAX) /* a record, and what is to be said before it */

/* The end of the log while it is being added to. */
struct tail {
	int fd;
	struct chain_head head; /* with what was added so far */
	uint64_t size; /* of the file, before */
	bool repaired; /* the head is behind: not the time to put the file aside */
	bool trim; /* the head is longer than what takes its place */
	int place; /* where losses are remembered besides the head, locked; -1 = none are */
	struct buf lines; /* to be written */
	uint64_t drop[16]; /* files that are too many, to be removed at the end */
	size_t n_drop;
};

static void tail_done(struct tail *t)
{
	fd_close(t->fd);
	fd_close(t->place);
	buf_done(&t->lines);
}
#define _cleanup_tail_ __attribute__((cleanup(tail_done)))

static void now(char ret[CHAIN_TIME_LEN + 1])
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_REALTIME, &ts);
	chain_time((int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000, ret);
}

static void add_line(struct tail *t, const char *event, const struct buf *fields)
{
	struct chain_line l = { .seq = t->head.seq + 1 };
	size_t start = t->lines.len;

	memcpy(l.prev, t->head.hash, sizeof(l.prev));
	now(l.time);
	text_copy(l.event, sizeof(l.event), event);
	chain_print(&l, &t->lines);
	buf_append(&t->lines, buf_str(fields), fields->len);
	buf_putc(&t->lines, '}');
	sha256_hex(t->lines.data + start, t->lines.len - start, t->head.hash);
	buf_putc(&t->lines, '\n');
	t->head.seq = l.seq;
}

static void add_repair(struct tail *t, const struct repair *r)
{
	_cleanup_buf_ struct buf b = BUF_INIT(AUDIT_RECORD_MAX);
	struct json j = { .out = &b, .depth = 1 };

	json_kstring(&j, "problem", repair_name(r->problem));
	if (r->cut) {
		json_kint(&j, "bytes", (int64_t)r->cut);
		json_kstring(&j, "text", r->text);
	}
	add_line(t, "repair", &b);
}

static void add_lost(struct tail *t, const struct chain_lost *lost)
{
	_cleanup_buf_ struct buf b = BUF_INIT(AUDIT_RECORD_MAX);
	struct json j = { .out = &b, .depth = 1 };

	json_kint(&j, "count", (int64_t)lost->count);
	json_kstring(&j, "reason", strerror(lost->code));
	json_kstring(&j, "since", lost->since);
	add_line(t, "lost", &b);
}

static int write_head(const struct audit *log, const struct chain_head *h)
{
	char text[CHAIN_HEAD_LEN + 1];
	ssize_t n;

	chain_head_print(h, text);
	n = pwrite(log->head, text, CHAIN_HEAD_LEN, 0);
	if (n == CHAIN_HEAD_LEN)
		return 0;
	return n < 0 ? -errno : -ENOSPC;
}

/* Nothing was ever written here, as far as the files tell. */
static bool is_new(const struct audit *log, const struct tail *t)
{
	_cleanup_free_ uint64_t *old = NULL;
	size_t n = 0;

	return t->size == 0 && files_list_old(&log->files, &old, &n) == 0 && n == 0;
}

static int find_tail(const struct audit *log, struct tail *t, struct error *e)
{
	struct chain_head known = { 0 };
	struct repair r = { .problem = REPAIR_NONE };
	enum files_head state = files_read_head(log->head, &known);
	int err = 0;

	t->fd = files_open_one(&log->files, log->files.name, FILES_WRITE, &t->size, e);
	if (t->fd < 0)
		return t->fd;
	t->trim = state == FILES_HEAD_BAD || known.lost.count > 0;
	if (state == FILES_HEAD_OK && t->size == known.size && known.seq > 0) {
		t->head = known;
		return 0;
	}
	/* from now on an empty head beside a line is one that was robbed */
	if (state == FILES_HEAD_EMPTY && is_new(log, t)) {
		err = write_head(log, &known);
		state = FILES_HEAD_OK;
	}
	if (err == 0)
		err = repair_tail(&log->files, t->fd, t->size,
				  state == FILES_HEAD_OK ? &known : NULL, &r);
	if (err < 0)
		return error_set(e, -err, "%s: %s", log->files.path, strerror(-err));
	t->head = r.head;
	t->size = r.head.size;
	t->repaired = true;
	if (r.problem != REPAIR_NONE)
		add_repair(t, &r);
	return 0;
}

/* Too many old files: which, and what is the oldest line then? They go when all is written. */
static void count_old(const struct audit *log, struct tail *t)
{
	_cleanup_free_ uint64_t *old = NULL;
	size_t n = 0;

	if (files_list_old(&log->files, &old, &n) < 0)
		return;
	for (size_t i = 0; n - i > log->max_files && i < ARRAY_LEN(t->drop); i++) {
		t->drop[t->n_drop++] = old[i];
		t->head.first = old[i] + 1;
	}
}

/* The head names the last line before those that are yet to be written. */
static int put_aside(const struct audit *log, struct tail *t, uint64_t last, struct error *e)
{
	char name[FILES_NAME_MAX];
	int fd;

	files_old_name(&log->files, last, name);
	/* should it be there already, something is wrong: then rather a file that is too large */
	if (sys_rename_new(log->files.dir, log->files.name, name) < 0)
		return 0;
	fd = files_open_one(&log->files, log->files.name, FILES_WRITE, &t->size, e);
	if (fd < 0)
		return fd;
	fd_close(t->fd);
	t->fd = fd;
	count_old(log, t);
	return 0;
}

/* All the lines and the head, or nothing. */
static int write_lines(const struct audit *log, struct tail *t, struct error *e)
{
	int r;

	if (t->lines.overflow)
		r = -EFBIG;
	else if (t->size + t->lines.len > log->fsize_limit)
		r = -EFBIG;
	else
		r = fd_write_all(t->fd, t->lines.data, t->lines.len);
	t->head.size = t->size + t->lines.len;
	if (r == 0)
		r = write_head(log, &t->head);
	if (r == 0) {
		/* only now: should this fail, what was lost is told twice */
		if (t->trim)
			(void)!ftruncate(log->head, CHAIN_HEAD_LEN);
		return 0;
	}
	/* a part of a line must not stay; should this fail too, the next writer mends it */
	(void)!ftruncate(t->fd, (off_t)t->size);
	return error_set(e, -r, "%s: %s", log->files.path, strerror(-r));
}

/* What was lost before, by whomever, in one record. */
static void tell_lost(struct audit *log, struct tail *t)
{
	struct chain_lost sum = t->head.lost, more;

	lost_merge(&sum, &log->lost);
	if (!log->looked) {
		t->place = lost_open_place(log->files.place, &more);
		if (t->place >= 0)
			lost_merge(&sum, &more);
	}
	if (sum.count)
		add_lost(t, &sum);
}

/* What was told is forgotten, and files that are too many go. */
static void clean_up(struct audit *log, const struct tail *t)
{
	if (t->place >= 0)
		lost_forget_place(log->files.place);
	log->lost = (struct chain_lost){ 0 };
	log->looked = true;
	for (size_t i = 0; i < t->n_drop; i++) {
		char name[FILES_NAME_MAX];

		files_old_name(&log->files, t->drop[i], name);
		(void)unlinkat(log->files.dir, name, 0);
	}
}

static int append_locked(struct audit *log, const char *event, const struct buf *fields,
			 struct error *e)
{
	_cleanup_tail_ struct tail t = { .fd = -1, .place = -1, .lines = BUF_INIT(LINES_MAX) };
	int r = find_tail(log, &t, e);
	uint64_t last;

	if (r < 0)
		return r;
	last = t.head.seq;
	tell_lost(log, &t);
	add_line(&t, event, fields);
	if (!t.repaired && t.size > 0 && t.size + t.lines.len > log->max_bytes) {
		r = put_aside(log, &t, last, e);
		if (r < 0)
			return r;
	}
	r = write_lines(log, &t, e);
	if (r == 0)
		clean_up(log, &t);
	return r;
}

/* One record more is lost. With those that only this process knows of, wherever they can be kept. */
static void remember(struct audit *log, int code, bool locked)
{
	struct chain_lost one = { .count = 1, .code = code };

	now(one.since);
	lost_merge(&log->lost, &one);
	/* to grow a file past the limit would be a signal */
	if (log->fsize_limit < CHAIN_HEAD_LEN + CHAIN_LOST_LEN)
		return;
	if (locked && lost_add_to_head(log->head, &log->lost) == 0) {
		log->lost = (struct chain_lost){ 0 };
	} else if (lost_add_to_place(log->files.place, &log->lost) == 0) {
		log->lost = (struct chain_lost){ 0 };
		log->looked = false;
	}
}

int store_append(struct audit *log, const char *event, const struct buf *fields, struct error *e)
{
	int lock = log->head < 0 ? -EBADF : files_lock(log->head, LOCK_EX), r;

	if (log->broken.code)
		r = error_set(e, log->broken.code, "%s", log->broken.text);
	else if (lock < 0)
		r = error_set(e, -lock, "%s: %s", log->files.path,
			      lock == -ETIMEDOUT ? "another process holds the lock"
						 : strerror(-lock));
	else
		r = append_locked(log, event, fields, e);
	if (r < 0)
		remember(log, -r, lock == 0);
	if (lock == 0)
		(void)flock(log->head, LOCK_UN);
	return r;
}
