/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A growing byte buffer with a named maximum, always NUL-terminated. Once the
 * maximum is passed the buffer is `overflow` and takes nothing more; callers
 * check that once at the end.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/macros.h"

struct buf {
	char *data; /* never NULL after the first append */
	size_t len, cap, max;
	bool overflow;
};

#define BUF_INIT(maximum)                                                                          \
	{                                                                                          \
		.max = (maximum)                                                                   \
	}
#define BUF_MAX_TEXT ((size_t)64 << 20) /* text we print ourselves */

void buf_done(struct buf *b);
void buf_append(struct buf *b, const void *data, size_t len);
void buf_puts(struct buf *b, const char *s);
void buf_putc(struct buf *b, char c);
void buf_printf(struct buf *b, const char *fmt, ...) PRINTF_LIKE(2, 3);
const char *buf_str(const struct buf *b); /* "" when nothing was appended */

#define _cleanup_buf_ __attribute__((cleanup(buf_done)))
