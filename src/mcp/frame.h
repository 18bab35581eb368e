/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MCP over stdio: one JSON text per line, both ways. Input comes in pieces of any size, output
 * leaves as far as the other side takes it; neither ever waits.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/buf.h"

/* The reference implementation gives up on longer lines; nobody sends them. */
#define FRAME_LINE_MAX ((size_t)10 << 20)
/* With so much waiting to be read by the other side, we stop listening to it. */
#define FRAME_BACKLOG_MAX ((size_t)16 << 20)

struct frame_in {
	struct buf bytes;
	size_t start; /* of the first line that was not taken yet */
	size_t scanned; /* up to here there is no newline after start */
	bool skipping; /* the rest of a line that was too long */
};

#define FRAME_IN_INIT                                                                              \
	{                                                                                          \
		.bytes = BUF_INIT(2 * FRAME_LINE_MAX)                                              \
	}

enum frame_event {
	FRAME_NONE, /* no whole line is there */
	FRAME_LINE,
	FRAME_TOO_LONG, /* said once per line; what came of it is dropped */
};

/* Read once. The number of bytes, 0 at the end, -EAGAIN when there is nothing now. */
ssize_t frame_read(struct frame_in *in, int fd) NODISCARD;
/* Bytes from elsewhere. */
void frame_feed(struct frame_in *in, const char *data, size_t len);
/*
 * The next line, without its end; empty lines are passed over. It stays where it is until the next
 * frame_read(). `at_end`: what is left without a newline is a line too.
 */
enum frame_event frame_next(struct frame_in *in, bool at_end, const char **ret, size_t *ret_len);
void frame_in_done(struct frame_in *in);

struct frame_out {
	struct buf bytes;
	size_t sent;
};

#define FRAME_OUT_INIT                                                                             \
	{                                                                                          \
		.bytes = BUF_INIT((size_t)64 << 20)                                                \
	}

/* One message; `text` holds no newline. */
void frame_put(struct frame_out *out, const char *text, size_t len);
size_t frame_waiting(const struct frame_out *out);
/* Write what fits without waiting, once `fd` is writable. 0, or -errno when nobody reads. */
int frame_write(struct frame_out *out, int fd) NODISCARD;
void frame_out_done(struct frame_out *out);
