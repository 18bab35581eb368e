/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A writer appends its line and then brings the head up to date, so the file may rightly be
 * longer than the head says, by lines that continue the chain and at most one that was cut.
 * It may never rightly be shorter, except that it was just put aside. Whatever else is
 * found stays in the files and in the numbering, so that `ambit log verify` sees it too:
 * repairing never makes a changed log look whole. Where the head itself is gone nobody knows any
 * more how much there was: the record about that is what `ambit log verify` sees.
 */
#include "audit/repair.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/text.h"

#define WINDOW_MAX ((size_t)1 << 20) /* bytes at the end of a file that are looked at */

const char *repair_name(enum repair_problem p)
{
	static const char *const names[] = {
		[REPAIR_NONE] = "none",           [REPAIR_TORN] = "torn",
		[REPAIR_SHORTENED] = "shortened", [REPAIR_FOREIGN] = "foreign",
		[REPAIR_HEAD] = "head",
	};

	return names[p];
}

/* The end of a file, from `start` on. */
struct window {
	char *text;
	size_t len;
	uint64_t start;
};

static void window_done(struct window *w)
{
	free(w->text);
}
#define _cleanup_window_ __attribute__((cleanup(window_done)))

static int window_read(int fd, uint64_t from, uint64_t size, struct window *ret)
{
	size_t done = 0;

	if (size > WINDOW_MAX && from < size - WINDOW_MAX)
		from = size - WINDOW_MAX;
	ret->start = from;
	ret->len = from < size ? (size_t)(size - from) : 0;
	ret->text = malloc(ret->len + 1);
	if (!ret->text)
		return -ENOMEM;
	while (done < ret->len) {
		ssize_t n = pread(fd, ret->text + done, ret->len - done, (off_t)(from + done));

		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		done += (size_t)n;
	}
	return 0;
}

static void advance(struct chain_head *h, const struct chain_line *l, const char *line, size_t len)
{
	h->seq = l->seq;
	sha256_hex(line, len, h->hash);
}

/* Take in the lines that continue the chain; true when there is one that does not. */
static bool adopt_lines(const struct window *w, struct chain_head *h)
{
	const char *p = w->text, *end = w->text + w->len, *stop;
	bool foreign = false;

	for (; (stop = memchr(p, '\n', (size_t)(end - p))); p = stop + 1) {
		struct chain_line l;

		if (chain_parse(p, (size_t)(stop - p), &l) && l.seq == h->seq + 1 &&
		    strcmp(l.prev, h->hash) == 0)
			advance(h, &l, p, (size_t)(stop - p));
		else
			foreign = true;
	}
	return foreign;
}

/* The last line in the window that looks like one of a log. */
static bool last_line(const struct window *w, struct chain_head *ret)
{
	const char *end = w->text + w->len, *stop = text_find_last(w->text, w->len, '\n');

	while (stop) {
		const char *before = text_find_last(w->text, (size_t)(stop - w->text), '\n');
		const char *line = before ? before + 1 : w->text;
		struct chain_line l;

		if (stop < end && chain_parse(line, (size_t)(stop - line), &l)) {
			advance(ret, &l, line, (size_t)(stop - line));
			return true;
		}
		stop = before;
	}
	return false;
}

/* What follows the last line break: taken out of the file. */
static int cut_fragment(int fd, const struct window *w, struct repair *r)
{
	const char *last = text_find_last(w->text, w->len, '\n');
	size_t keep = last ? (size_t)(last - w->text) + 1 : 0;
	size_t shown = w->len - keep;

	if (keep == w->len || (!last && w->start > 0 && w->len == WINDOW_MAX))
		return 0; /* whole; or so long that it is not one of ours */
	if (ftruncate(fd, (off_t)(w->start + keep)) < 0)
		return -errno;
	r->cut = w->len - keep;
	r->head.size = w->start + keep;
	if (shown >= sizeof(r->text))
		shown = sizeof(r->text) - 1;
	memcpy(r->text, w->text + keep, shown);
	r->text[shown] = '\0';
	return 0;
}

/* Was the file that the head speaks of put aside a moment ago? */
static bool is_put_aside(const struct audit_files *f, const struct chain_head *known)
{
	char name[FILES_NAME_MAX];
	uint64_t size = 0;
	_cleanup_fd_ int fd = -1;

	files_old_name(f, known->seq, name);
	fd = files_open_one(f, name, FILES_READ, &size, NULL);
	return fd >= 0 && size == known->size;
}

static bool first_seq(const struct audit_files *f, const char *name, uint64_t *ret)
{
	char text[4096];
	struct chain_line l;
	uint64_t size;
	_cleanup_fd_ int fd = files_open_one(f, name, FILES_READ, &size, NULL);
	ssize_t n = fd < 0 ? -1 : pread(fd, text, sizeof(text) - 1, 0);
	size_t len;

	if (n <= 0)
		return false;
	text[n] = '\0';
	len = strcspn(text, "\n");
	/* a long line is cut here: only its beginning counts */
	if (len > 0 && text[len - 1] != '}')
		text[len - 1] = '}';
	if (!chain_parse(text, len, &l))
		return false;
	*ret = l.seq;
	return true;
}

/* No head: from the lines that are there. */
static int rebuild_head(const struct audit_files *f, const struct window *w, struct chain_head *h)
{
	_cleanup_free_ uint64_t *old = NULL;
	char name[FILES_NAME_MAX];
	size_t n = 0;
	int r = files_list_old(f, &old, &n);

	if (r < 0)
		return r;
	if (!last_line(w, h) && n > 0) {
		_cleanup_window_ struct window last = { 0 };
		_cleanup_fd_ int fd = -1;
		uint64_t size = 0;

		files_old_name(f, old[n - 1], name);
		fd = files_open_one(f, name, FILES_READ, &size, NULL);
		if (fd >= 0 && window_read(fd, 0, size, &last) == 0)
			(void)last_line(&last, h);
	}
	h->first = 1;
	if (n > 0)
		files_old_name(f, old[0], name);
	else
		text_copy(name, sizeof(name), f->name);
	(void)first_seq(f, name, &h->first);
	return 0;
}

int repair_tail(const struct audit_files *f, int fd, uint64_t size, const struct chain_head *known,
		struct repair *ret)
{
	_cleanup_window_ struct window w = { 0 };
	struct chain_head start = { .first = 1 };
	uint64_t from = 0;
	int r;

	*ret = (struct repair){ .problem = REPAIR_NONE };
	memcpy(start.hash, chain_origin, sizeof(start.hash));
	if (known && size >= known->size) {
		from = known->size;
	} else if (known && !is_put_aside(f, known)) {
		ret->problem = REPAIR_SHORTENED;
		from = size;
	}
	/* from a little earlier, to see where the last line begins */
	r = window_read(fd, ret->problem == REPAIR_SHORTENED ? 0 : from, size, &w);
	if (r < 0)
		return r;
	if (!known)
		ret->problem = REPAIR_HEAD;
	ret->head = known ? *known : start;
	ret->head.size = size;
	r = cut_fragment(fd, &w, ret);
	if (r < 0)
		return r;
	if (ret->cut && ret->problem == REPAIR_NONE)
		ret->problem = REPAIR_TORN;
	if (!known)
		return rebuild_head(f, &w, &ret->head);
	if (ret->problem != REPAIR_SHORTENED && (adopt_lines(&w, &ret->head) || w.start > from))
		ret->problem = REPAIR_FOREIGN;
	return 0;
}
