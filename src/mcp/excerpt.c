/* SPDX-License-Identifier: Apache-2.0 */
#include "mcp/excerpt.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/text.h"

#define CUT_SEARCH 2000 /* how far a line end is looked for, from where the cut would be */
#define CHARACTER_MAX 4 /* bytes */

static bool is_continuation(char c)
{
	return ((unsigned char)c & 0xc0) == 0x80;
}

size_t excerpt_whole(const char *data, size_t len)
{
	for (size_t back = 1; back <= CHARACTER_MAX && back <= len; back++) {
		unsigned char c = (unsigned char)data[len - back];
		size_t needs = c >= 0xf5 ? 1 : c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : c >= 0xc0 ? 2 : 1;

		if (is_continuation((char)c))
			continue;
		return needs > back ? len - back : len;
	}
	return len;
}

bool excerpt_is_text(const char *data, size_t len)
{
	const unsigned char *p = (const unsigned char *)data;

	for (size_t i = 0; i < len;) {
		uint32_t c;
		size_t n = utf8_decode(p + i, len - i, &c);

		if (n == 0 || c == 0)
			return false;
		i += n;
	}
	return true;
}

/* Where the head ends: after the last line end nearby, else after a whole character. */
static size_t head_end(const char *data, size_t len)
{
	for (size_t i = len; i > 0 && len - i < CUT_SEARCH; i--) {
		if (data[i - 1] == '\n')
			return i;
	}
	return excerpt_whole(data, len);
}

/* Where the tail begins. */
static size_t tail_start(const char *data, size_t len)
{
	const char *line = memchr(data, '\n', len < CUT_SEARCH ? len : CUT_SEARCH);
	size_t i = 0;

	if (line && line + 1 < data + len)
		return (size_t)(line + 1 - data);
	while (i < len && i < CHARACTER_MAX && is_continuation(data[i]))
		i++;
	return i;
}

struct excerpt excerpt_append(const struct spool *s, size_t max, const char *where, struct buf *out)
{
	_cleanup_free_ char *data = malloc(max ? max : 1);
	size_t head, tail, skip;
	struct excerpt ret = { 0 };

	if (!data)
		abort();
	if (s->size <= max) {
		buf_append(out, data, spool_read(s, 0, data, (size_t)s->size));
		return ret;
	}
	head = spool_read(s, 0, data, max / 2);
	head = head_end(data, head);
	buf_append(out, data, head);
	tail = spool_read(s, s->size - max / 2, data, max / 2);
	skip = tail_start(data, tail);
	ret.truncated = true;
	ret.omitted = s->size - head - (tail - skip);
	buf_printf(out, "%s[... %" PRIu64 " of %" PRIu64 " bytes left out; %s ...]\n",
		   head && out->data[out->len - 1] != '\n' ? "\n" : "", ret.omitted, s->size,
		   where);
	buf_append(out, data + skip, tail - skip);
	return ret;
}

void excerpt_base64(struct buf *out, const char *data, size_t len)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const unsigned char *p = (const unsigned char *)data;

	for (size_t i = 0; i < len; i += 3) {
		size_t left = len - i;
		unsigned v = (unsigned)p[i] << 16 | (left > 1 ? (unsigned)p[i + 1] << 8 : 0) |
			     (left > 2 ? p[i + 2] : 0);
		char four[4] = { digits[v >> 18], digits[v >> 12 & 63],
				 left > 1 ? digits[v >> 6 & 63] : '=',
				 left > 2 ? digits[v & 63] : '=' };

		buf_append(out, four, sizeof(four));
	}
}
