/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"

#include <string.h>

#include "base/text.h"

static void json_newline(struct json *j)
{
	if (!j->indent)
		return;
	buf_putc(j->out, '\n');
	for (unsigned i = 0; i < j->depth * j->indent; i++)
		buf_putc(j->out, ' ');
}

/* What stands between the last thing and the next value. */
static void json_next(struct json *j)
{
	if (j->after_key) {
		j->after_key = false;
		return;
	}
	if (!j->first && j->depth)
		buf_putc(j->out, ',');
	if (j->depth)
		json_newline(j);
	j->first = false;
}

static void json_begin(struct json *j, char c)
{
	json_next(j);
	buf_putc(j->out, c);
	j->depth++;
	j->first = true;
}

static void json_end(struct json *j, char c)
{
	j->depth--;
	if (!j->first)
		json_newline(j);
	buf_putc(j->out, c);
	j->first = false;
}

void json_begin_object(struct json *j)
{
	json_begin(j, '{');
}

void json_end_object(struct json *j)
{
	json_end(j, '}');
}

void json_begin_array(struct json *j)
{
	json_begin(j, '[');
}

void json_end_array(struct json *j)
{
	json_end(j, ']');
}

/* How many bytes from p on can stand in a string as they are: plain ASCII, for speed. */
static size_t plain_run(const unsigned char *p, const unsigned char *end)
{
	const unsigned char *s = p;

	while (s < end && *s >= 0x20 && *s < 0x7f && *s != '"' && *s != '\\')
		s++;
	return (size_t)(s - p);
}

static void json_quote(struct buf *b, const char *s, size_t n)
{
	static const char from[] = "\"\\\b\f\n\r\t", to[] = "\"\\bfnrt";
	const unsigned char *p = (const unsigned char *)s, *end = p + n;

	buf_putc(b, '"');
	while (p < end) {
		size_t len = plain_run(p, end);
		const char *special;
		uint32_t c;

		if (len) {
			buf_append(b, p, len);
			p += len;
			continue;
		}
		special = *p ? strchr(from, *p) : NULL;
		len = utf8_decode(p, (size_t)(end - p), &c);
		if (special) {
			buf_putc(b, '\\');
			buf_putc(b, to[special - from]);
		} else if (*p < 0x20 || *p == 0x7f) {
			buf_printf(b, "\\u%04x", (unsigned)*p);
		} else if (len == 0) {
			buf_puts(b, "\xef\xbf\xbd");
		} else {
			buf_append(b, p, len);
		}
		p += len ? len : 1;
	}
	buf_putc(b, '"');
}

void json_key(struct json *j, const char *key)
{
	json_next(j);
	json_quote(j->out, key, strlen(key));
	buf_puts(j->out, j->indent ? ": " : ":");
	j->after_key = true;
}

void json_string(struct json *j, const char *s)
{
	json_next(j);
	if (s)
		json_quote(j->out, s, strlen(s));
	else
		buf_puts(j->out, "null");
}

void json_string_n(struct json *j, const char *s, size_t len)
{
	json_next(j);
	json_quote(j->out, s, len);
}

void json_raw(struct json *j, const char *text, size_t len)
{
	json_next(j);
	buf_append(j->out, text, len);
}

/* By hand: records that are written by the thousand consist of little else. */
void json_int(struct json *j, int64_t v)
{
	char digits[24], *p = digits + sizeof(digits);
	uint64_t rest = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;

	json_next(j);
	do {
		*--p = (char)('0' + rest % 10);
		rest /= 10;
	} while (rest > 0);
	if (v < 0)
		*--p = '-';
	buf_append(j->out, p, (size_t)(digits + sizeof(digits) - p));
}

void json_double(struct json *j, double v)
{
	json_next(j);
	buf_printf(j->out, "%.6g", v);
}

void json_bool(struct json *j, bool v)
{
	json_next(j);
	buf_puts(j->out, v ? "true" : "false");
}

void json_null(struct json *j)
{
	json_next(j);
	buf_puts(j->out, "null");
}

void json_kstring(struct json *j, const char *key, const char *s)
{
	json_key(j, key);
	json_string(j, s);
}

void json_kint(struct json *j, const char *key, int64_t v)
{
	json_key(j, key);
	json_int(j, v);
}

void json_kbool(struct json *j, const char *key, bool v)
{
	json_key(j, key);
	json_bool(j, v);
}
