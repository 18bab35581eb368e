/* SPDX-License-Identifier: Apache-2.0 */
#include "audit/read.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "audit/lost.h"
#include "base/fd.h"
#include "base/text.h"

#define READ_BLOCK ((size_t)256 << 10)

void snapshot_done(struct snapshot *s)
{
	for (size_t i = 0; i < s->n; i++)
		fd_close(s->v[i].fd);
	free(s->v);
	*s = (struct snapshot){ 0 };
}

/* A file that vanished meanwhile was removed because there were too many. */
static int add_file(const struct audit_files *f, const char *name, struct snapshot *s,
		    struct error *e)
{
	struct snapshot_file *file = &s->v[s->n];
	int fd = files_open_one(f, name, FILES_READ, &file->size, e);

	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	file->fd = fd;
	text_copy(file->name, sizeof(file->name), name);
	s->n++;
	return 1;
}

static int take_files(const struct audit_files *f, uint64_t after, struct snapshot *s,
		      struct error *e)
{
	_cleanup_free_ uint64_t *old = NULL;
	char name[FILES_NAME_MAX];
	struct stat st;
	size_t n = 0;
	int r = files_list_old(f, &old, &n);

	if (r < 0)
		return error_set(e, -r, "%s: %s", f->path, strerror(-r));
	s->v = calloc(n + 1, sizeof(*s->v));
	if (!s->v)
		return error_set(e, ENOMEM, "out of memory");
	for (size_t i = 0; i < n; i++) {
		if (old[i] <= after)
			continue;
		files_old_name(f, old[i], name);
		r = add_file(f, name, s, e);
		if (r < 0)
			return r;
	}
	r = add_file(f, f->name, s, e);
	if (r <= 0)
		return r;
	s->has_present = true;
	if (fstat(s->v[s->n - 1].fd, &st) == 0)
		s->present_ino = st.st_ino;
	return 0;
}

/* Under the lock: nobody tells of it and forgets it meanwhile. */
static void take_lost(const struct audit_files *f, struct snapshot *s)
{
	struct chain_lost more;
	_cleanup_fd_ int place = lost_open_place(f->place, &more);

	s->lost = s->head.lost;
	if (place >= 0)
		lost_merge(&s->lost, &more);
}

int snapshot_take(const struct audit_files *f, uint64_t after, struct snapshot *ret,
		  struct error *e)
{
	static const enum snapshot_head states[] = { [FILES_HEAD_BAD] = SNAPSHOT_HEAD_BAD,
						     [FILES_HEAD_EMPTY] = SNAPSHOT_HEAD_EMPTY,
						     [FILES_HEAD_OK] = SNAPSHOT_HEAD_OK };
	struct snapshot s = { .head_state = SNAPSHOT_HEAD_MISSING };
	_cleanup_fd_ int head = -1;
	uint64_t size;
	int r = 0;

	files_head_name(f, s.head_name);
	head = files_open_one(f, s.head_name, FILES_READ, &size, e);
	if (head < 0 && head != -ENOENT)
		return head;
	/* no line is half written while we hold it */
	if (head >= 0)
		r = files_lock(head, LOCK_SH);
	if (r < 0)
		return error_set(e, -r, "%s: %s", f->path,
				 r == -ETIMEDOUT ? "another process holds the lock" : strerror(-r));
	if (head >= 0)
		s.head_state = states[files_read_head(head, &s.head)];
	take_lost(f, &s);
	r = take_files(f, after, &s, e);
	if (r < 0)
		snapshot_done(&s);
	else
		*ret = s;
	return r;
}

/* Lines of one file, as its blocks come in. */
struct splitter {
	struct snapshot_line line;
	struct buf held; /* a line that goes on in the next block */
	uint64_t at; /* offset of what comes next */
	snapshot_visit *visit;
	void *ctx;
};

static int give_line(struct splitter *s, const char *text, size_t len, bool ended)
{
	bool cut = s->held.overflow;
	int r;

	if (s->held.len > 0 || cut) {
		buf_append(&s->held, text, len);
		cut = s->held.overflow;
		text = buf_str(&s->held);
		len = s->held.len;
	}
	s->line.number++;
	s->line.text = text;
	s->line.len = len;
	s->line.whole = ended && !cut;
	r = s->visit(s->ctx, &s->line);
	buf_done(&s->held);
	s->held.overflow = false;
	return r;
}

static int split_block(struct splitter *s, const char *text, size_t len)
{
	const char *p = text, *end = text + len, *stop;
	int r = 0;

	for (; r == 0 && (stop = memchr(p, '\n', (size_t)(end - p))); p = stop + 1) {
		r = give_line(s, p, (size_t)(stop - p), true);
		s->line.offset = s->at + (uint64_t)(stop + 1 - text);
	}
	if (r == 0)
		buf_append(&s->held, p, (size_t)(end - p));
	s->at += len;
	return r;
}

static int each_of_file(const struct snapshot_file *f, char *block, snapshot_visit *visit,
			void *ctx)
{
	struct splitter s = { .line = { .file = f, .offset = f->start },
			      .at = f->start,
			      .held = BUF_INIT(SNAPSHOT_LINE_MAX),
			      .visit = visit,
			      .ctx = ctx };
	int r = 0;

	while (r == 0 && s.at < f->size) {
		size_t want = f->size - s.at < READ_BLOCK ? (size_t)(f->size - s.at) : READ_BLOCK;
		ssize_t n = pread(f->fd, block, want, (off_t)s.at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			r = -errno;
		else if (n == 0)
			break; /* shorter than a moment ago: what is there counts */
		else
			r = split_block(&s, block, (size_t)n);
	}
	if (r == 0 && (s.held.len > 0 || s.held.overflow))
		r = give_line(&s, "", 0, false);
	buf_done(&s.held);
	return r;
}

int snapshot_each(const struct snapshot *s, snapshot_visit *visit, void *ctx, struct error *e)
{
	_cleanup_free_ char *block = malloc(READ_BLOCK);
	int r = 0;

	if (!block)
		return error_set(e, ENOMEM, "out of memory");
	for (size_t i = 0; r == 0 && i < s->n; i++) {
		r = each_of_file(&s->v[i], block, visit, ctx);
		if (r < 0)
			return error_set(e, -r, "%s: %s", s->v[i].name, strerror(-r));
	}
	return r;
}
