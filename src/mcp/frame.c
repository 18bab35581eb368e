/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Meets the peer's bytes first. What holds: at most one line and one read beyond it are kept, a
 * line that is too long is dropped as it comes, and the descriptors' modes are left alone, since
 * they may be shared with the process that gave them to us.
 */
#include "mcp/frame.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define READ_SIZE 16384
/* What a pipe takes without waiting once poll() has called it writable. */
#define PIPE_WRITE 4096
/* An emptied buffer that had to hold something large is given back. */
#define KEEP_BYTES ((size_t)256 << 10)

/* Forget the lines that were taken. */
static void compact(struct frame_in *in)
{
	size_t left = in->bytes.len - in->start;

	if (!in->start)
		return;
	memmove(in->bytes.data, in->bytes.data + in->start, left);
	in->bytes.len = left;
	in->scanned -= in->start;
	in->start = 0;
	if (!left && in->bytes.cap > KEEP_BYTES)
		buf_done(&in->bytes);
}

void frame_feed(struct frame_in *in, const char *data, size_t len)
{
	compact(in);
	if (in->skipping) {
		const char *end = memchr(data, '\n', len);

		if (!end)
			return;
		len -= (size_t)(end + 1 - data);
		data = end + 1;
		in->skipping = false;
	}
	buf_append(&in->bytes, data, len);
}

ssize_t frame_read(struct frame_in *in, int fd)
{
	char piece[READ_SIZE];
	ssize_t n = read(fd, piece, sizeof(piece));

	if (n < 0)
		return errno == EINTR ? -EAGAIN : -errno;
	frame_feed(in, piece, (size_t)n);
	return n;
}

static size_t line_length(const char *line, size_t len)
{
	while (len && line[len - 1] == '\r')
		len--;
	return len;
}

static bool is_blank(const char *line, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (line[i] != ' ' && line[i] != '\t')
			return false;
	}
	return true;
}

enum frame_event frame_next(struct frame_in *in, bool at_end, const char **ret, size_t *ret_len)
{
	for (;;) {
		const char *from = in->bytes.data + in->scanned;
		size_t left = in->bytes.len - in->scanned;
		const char *end = left ? memchr(from, '\n', left) : NULL;
		const char *line = in->bytes.data + in->start;
		size_t len = end ? (size_t)(end - line) : in->bytes.len - in->start;

		if (!end)
			in->scanned = in->bytes.len;
		if (len > FRAME_LINE_MAX) {
			in->skipping = !end;
			in->start = in->scanned = end ? in->start + len + 1 : in->bytes.len;
			return FRAME_TOO_LONG;
		}
		if (!end && (!at_end || len == 0))
			return FRAME_NONE;
		in->start = in->scanned = end ? in->start + len + 1 : in->bytes.len;
		len = line_length(line, len);
		if (is_blank(line, len))
			continue;
		*ret = line;
		*ret_len = len;
		return FRAME_LINE;
	}
}

void frame_in_done(struct frame_in *in)
{
	buf_done(&in->bytes);
}

size_t frame_waiting(const struct frame_out *out)
{
	return out->bytes.len - out->sent;
}

void frame_put(struct frame_out *out, const char *text, size_t len)
{
	if (out->sent > KEEP_BYTES && out->sent > out->bytes.len / 2) {
		memmove(out->bytes.data, out->bytes.data + out->sent, frame_waiting(out));
		out->bytes.len -= out->sent;
		out->sent = 0;
	}
	buf_append(&out->bytes, text, len);
	buf_putc(&out->bytes, '\n');
}

int frame_write(struct frame_out *out, int fd)
{
	if (out->bytes.overflow)
		return -ENOBUFS; /* something is missing: better no connection than a false one */
	while (frame_waiting(out)) {
		const char *from = out->bytes.data + out->sent;
		ssize_t n = send(fd, from, frame_waiting(out), MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n < 0 && errno == ENOTSOCK) {
			size_t part = frame_waiting(out);

			n = write(fd, from, part < PIPE_WRITE ? part : PIPE_WRITE);
			if (n >= 0) {
				out->sent += (size_t)n;
				break; /* ask poll() again before the next one */
			}
		}
		if (n < 0)
			return errno == EAGAIN || errno == EINTR ? 0 : -errno;
		out->sent += (size_t)n;
	}
	if (frame_waiting(out))
		return 0;
	out->bytes.len = out->sent = 0;
	if (out->bytes.cap > KEEP_BYTES)
		buf_done(&out->bytes);
	return 0;
}

void frame_out_done(struct frame_out *out)
{
	buf_done(&out->bytes);
}
