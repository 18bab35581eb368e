/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading lines without waiting, and without touching the descriptor's flags: they
 * belong to the open file, which the caller's other processes may share. So every read is
 * asked for first. Who writes here is trusted as who gives options is; a line can be broken
 * all the same, and then changes nothing.
 */
#include "supervise/control.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "policy/tree.h"

#define CHUNK ((size_t)16 << 10)

int control_open(struct control *c, int fd, struct error *e)
{
	int flags = fd > STDERR_FILENO ? fcntl(fd, F_GETFL) : -1;
	struct stat st;

	if (fd <= STDERR_FILENO)
		return error_set(e, EINVAL, "--control-fd %d: must be 3 or higher", fd);
	if (flags < 0 || fstat(fd, &st) < 0)
		return error_set(e, EBADF, "--control-fd %d: no such descriptor is open", fd);
	if ((flags & O_ACCMODE) == O_WRONLY || flags & O_PATH || S_ISDIR(st.st_mode))
		return error_set(e, EBADF, "--control-fd %d: cannot be read from", fd);
	if (fcntl(fd, F_SETFD, FD_CLOEXEC) < 0)
		return error_set(e, errno, "--control-fd %d: %s", fd, strerror(errno));
	*c = (struct control){ .number = fd, .fd = fd, .text = BUF_INIT(TREE_TEXT_MAX + CHUNK) };
	return 0;
}

void control_close(struct control *c)
{
	fd_close(c->fd);
	c->fd = -1;
	buf_done(&c->text);
	arena_free(c->now);
	arena_free(c->before);
	c->now = c->before = NULL;
}

static int fail(const struct control *c, int err, const char *what, struct error *e)
{
	return error_set(e, err, "control fd %d: %s", c->number, what);
}

/* 1: something was read, or the end was met. 0: not now. */
static int fill(struct control *c, struct error *e)
{
	struct pollfd ready = { .fd = c->fd, .events = POLLIN };
	char chunk[CHUNK];
	ssize_t n;

	if (c->fd < 0 || poll(&ready, 1, 0) <= 0)
		return 0;
	n = read(c->fd, chunk, sizeof(chunk));
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n > 0) {
		buf_append(&c->text, chunk, (size_t)n);
		return 1;
	}
	fd_close(TAKE_FD(c->fd));
	return n < 0 ? fail(c, errno, strerror(errno), e) : 1;
}

/* Length of the line that the text begins with, its end not counted; -1 = not whole yet. */
static ssize_t line_length(struct control *c)
{
	const char *end = c->text.len > c->scanned ? memchr(c->text.data + c->scanned, '\n',
							    c->text.len - c->scanned)
						   : NULL;

	c->scanned = c->text.len;
	if (end)
		return end - c->text.data;
	/* the last line may lack its end */
	return c->fd < 0 && c->text.len > 0 ? (ssize_t)c->text.len : -1;
}

static void drop(struct control *c, size_t n)
{
	if (n > c->text.len)
		n = c->text.len;
	if (n > 0)
		memmove(c->text.data, c->text.data + n, c->text.len - n);
	c->text.len -= n;
	c->scanned = 0;
}

static bool is_blank(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (!strchr(" \t\r", text[i]) || !text[i])
			return false;
	}
	return true;
}

static int take_line(struct control *c, size_t len, const struct policy **ret, struct error *e)
{
	struct arena *a = arena_new();
	char name[32];
	struct live_text line = { name, c->text.data, len, c->lines };
	int r;

	(void)snprintf(name, sizeof(name), "control fd %d", c->number);
	line.name = arena_strdup(a, name);
	r = policy_load_live(a, c->inputs, c->start, &line, ret, e);
	if (r < 0) {
		arena_free(a);
		return r;
	}
	arena_free(c->before);
	c->before = c->now;
	c->now = a;
	return 1;
}

int control_next(struct control *c, const struct policy **ret, struct error *e)
{
	for (;;) {
		ssize_t len = line_length(c);
		int r = 0;

		if (len < 0 && c->text.len > TREE_TEXT_MAX) {
			drop(c, c->text.len);
			if (!c->skipping)
				r = error_set(e, EFBIG, "control fd %d:%zu: the line is too long",
					      c->number, c->lines + 1);
			c->skipping = true;
			if (r < 0)
				return r;
		}
		if (len < 0) {
			r = fill(c, e);
			if (r <= 0)
				return r;
			continue;
		}
		if (!c->skipping && !is_blank(c->text.data, (size_t)len))
			r = take_line(c, (size_t)len, ret, e);
		c->skipping = false;
		c->lines++;
		drop(c, (size_t)len + 1);
		if (r != 0)
			return r;
	}
}
