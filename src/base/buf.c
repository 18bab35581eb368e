/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void buf_done(struct buf *b)
{
	free(b->data);
	b->data = NULL;
	b->len = b->cap = 0;
}

/* Room for `more` bytes and the NUL; false (and overflow) past the maximum. */
static bool buf_reserve(struct buf *b, size_t more)
{
	size_t need, cap;
	char *data;

	if (b->overflow || __builtin_add_overflow(b->len, more, &need) || need > b->max) {
		b->overflow = true;
		return false;
	}
	if (need < b->cap)
		return true;
	cap = b->cap ? b->cap : 256;
	while (cap <= need)
		cap *= 2;
	data = realloc(b->data, cap);
	if (!data)
		abort();
	b->data = data;
	b->cap = cap;
	return true;
}

void buf_append(struct buf *b, const void *data, size_t len)
{
	if (!buf_reserve(b, len))
		return;
	if (len)
		memcpy(b->data + b->len, data, len);
	b->len += len;
	b->data[b->len] = '\0';
}

void buf_puts(struct buf *b, const char *s)
{
	buf_append(b, s, strlen(s));
}

void buf_putc(struct buf *b, char c)
{
	buf_append(b, &c, 1);
}

void buf_printf(struct buf *b, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (n < 0 || !buf_reserve(b, (size_t)n))
		return;
	va_start(ap, fmt);
	(void)vsnprintf(b->data + b->len, (size_t)n + 1, fmt, ap);
	va_end(ap);
	b->len += (size_t)n;
}

const char *buf_str(const struct buf *b)
{
	return b->data ? b->data : "";
}
