/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chunked framing as a state machine over bytes: it says how many of them are
 * body, the caller passes them on unchanged. Sizes are at most 15 hexadecimal
 * digits, so that they cannot overflow here or mean less in a 32-bit reader's
 * favour unnoticed; lines end in CRLF and nothing else.
 */
#include <errno.h>

#include "base/text.h"
#include "proxy/http.h"

#define CHUNK_DIGITS_MAX 15

static bool is_line_char(char c)
{
	unsigned char u = (unsigned char)c;

	return (u >= 0x20 && u != 0x7f) || c == '\t';
}

static int on_size(struct http_chunked *c, char ch)
{
	int v = ascii_hex(ch);

	if (v >= 0) {
		if (++c->digits > CHUNK_DIGITS_MAX)
			return -EINVAL;
		c->left = c->left << 4 | (unsigned)v;
		return 0;
	}
	if (c->digits == 0 || (ch != '\r' && ch != ';'))
		return -EINVAL;
	c->state = ch == '\r' ? CHUNK_SIZE_LF : CHUNK_EXTENSION;
	c->line = 0;
	return 0;
}

static int on_extension(struct http_chunked *c, char ch)
{
	if (ch == '\r') {
		c->state = CHUNK_SIZE_LF;
		return 0;
	}
	return ++c->line > HTTP_CHUNK_LINE_MAX || !is_line_char(ch) ? -EINVAL : 0;
}

static int on_trailer(struct http_chunked *c, char ch)
{
	if (ch == '\r') {
		c->state = CHUNK_TRAILER_LF;
		return 0;
	}
	c->line++;
	return ++c->total > HTTP_TRAILER_MAX || !is_line_char(ch) ? -EINVAL : 0;
}

/* The LF that must follow a CR, and what comes after it. */
static int on_line_end(struct http_chunked *c, char ch)
{
	if (ch != '\n')
		return -EINVAL;
	if (c->state == CHUNK_SIZE_LF)
		c->state = c->left ? CHUNK_DATA : CHUNK_TRAILER;
	else if (c->state == CHUNK_DATA_LF)
		c->state = CHUNK_SIZE;
	else
		c->state = c->line ? CHUNK_TRAILER : CHUNK_DONE;
	c->digits = 0;
	c->line = 0;
	return 0;
}

static int on_byte(struct http_chunked *c, char ch)
{
	switch (c->state) {
	case CHUNK_SIZE:
		return on_size(c, ch);
	case CHUNK_EXTENSION:
		return on_extension(c, ch);
	case CHUNK_TRAILER:
		return on_trailer(c, ch);
	case CHUNK_DATA_CR:
		c->state = CHUNK_DATA_LF;
		return ch == '\r' ? 0 : -EINVAL;
	case CHUNK_SIZE_LF:
	case CHUNK_DATA_LF:
	case CHUNK_TRAILER_LF:
		return on_line_end(c, ch);
	case CHUNK_DATA:
	case CHUNK_DONE:
		break;
	}
	return -EINVAL;
}

ssize_t http_chunked_feed(struct http_chunked *c, const char *data, size_t len)
{
	struct http_chunked next = *c;
	size_t i = 0;

	while (i < len && next.state != CHUNK_DONE) {
		if (next.state == CHUNK_DATA) {
			size_t n = next.left < len - i ? (size_t)next.left : len - i;

			next.left -= n;
			i += n;
			if (next.left == 0)
				next.state = CHUNK_DATA_CR;
			continue;
		}
		if (on_byte(&next, data[i++]) < 0)
			return -EINVAL;
	}
	*c = next;
	return (ssize_t)i;
}
