/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Meets hostile text: all of it is checked before a span is handed out, in one pass with a
 * named depth. Afterwards the walkers rely on well-formed text and stay inside it.
 */
#include "base/json_read.h"

#include <errno.h>
#include <string.h>

#include "base/text.h"

static const char *skip_space(const char *p, const char *end)
{
	while (p < end && (*p == ' ' || *p == '\t' || *p == '\n' || *p == '\r'))
		p++;
	return p;
}

static bool is_hex(char c)
{
	return ascii_hex(c) >= 0;
}

/* Past the value that begins at p, or NULL. */
static const char *check_value(const char *p, const char *end, unsigned depth);

static const char *check_escape(const char *p, const char *end)
{
	if (p == end || !*p)
		return NULL;
	if (*p != 'u')
		return strchr("\"\\/bfnrt", *p) ? p + 1 : NULL;
	if (end - p < 5)
		return NULL;
	for (int i = 1; i <= 4; i++) {
		if (!is_hex(p[i]))
			return NULL;
	}
	return p + 5;
}

static const char *check_string(const char *p, const char *end)
{
	for (p++; p < end && *p != '"';) {
		uint32_t c;
		size_t n;

		if (*p == '\\') {
			p = check_escape(p + 1, end);
			if (!p)
				return NULL;
			continue;
		}
		n = utf8_decode((const unsigned char *)p, (size_t)(end - p), &c);
		if (n == 0 || c < 0x20)
			return NULL;
		p += n;
	}
	return p < end ? p + 1 : NULL;
}

static const char *check_digits(const char *p, const char *end)
{
	const char *start = p;

	while (p < end && ascii_digit(*p))
		p++;
	return p > start ? p : NULL;
}

static const char *check_number(const char *p, const char *end)
{
	p += *p == '-';
	if (p < end && *p == '0')
		p++;
	else
		p = check_digits(p, end);
	if (p && p < end && *p == '.')
		p = check_digits(p + 1, end);
	if (p && p < end && (*p == 'e' || *p == 'E')) {
		p++;
		p += p < end && (*p == '+' || *p == '-');
		p = check_digits(p, end);
	}
	return p;
}

static const char *check_word(const char *p, const char *end, const char *word)
{
	size_t n = strlen(word);

	return (size_t)(end - p) >= n && memcmp(p, word, n) == 0 ? p + n : NULL;
}

static const char *check_key(const char *p, const char *end)
{
	if (p == end || *p != '"')
		return NULL;
	p = check_string(p, end);
	p = p ? skip_space(p, end) : NULL;
	return p && p < end && *p == ':' ? p + 1 : NULL;
}

static const char *check_members(const char *p, const char *end, unsigned depth)
{
	bool object = *p == '{';
	char close = object ? '}' : ']';

	p = skip_space(p + 1, end);
	if (p < end && *p == close)
		return p + 1;
	for (;;) {
		if (object)
			p = check_key(p, end);
		p = p ? check_value(skip_space(p, end), end, depth + 1) : NULL;
		p = p ? skip_space(p, end) : NULL;
		if (!p || p == end)
			return NULL;
		if (*p == close)
			return p + 1;
		if (*p != ',')
			return NULL;
		p = skip_space(p + 1, end);
	}
}

static const char *check_value(const char *p, const char *end, unsigned depth)
{
	if (p == end || depth > JSON_DEPTH_MAX)
		return NULL;
	switch (*p) {
	case '{':
	case '[':
		return check_members(p, end, depth);
	case '"':
		return check_string(p, end);
	case 't':
		return check_word(p, end, "true");
	case 'f':
		return check_word(p, end, "false");
	case 'n':
		return check_word(p, end, "null");
	default:
		return *p == '-' || ascii_digit(*p) ? check_number(p, end) : NULL;
	}
}

static enum json_kind kind_of(char c)
{
	switch (c) {
	case '{':
		return JSON_OBJECT;
	case '[':
		return JSON_ARRAY;
	case '"':
		return JSON_STRING;
	case 't':
	case 'f':
		return JSON_BOOL;
	case 'n':
		return JSON_NULL;
	default:
		return JSON_NUMBER;
	}
}

int json_parse(const char *text, size_t len, struct json_span *ret)
{
	const char *end = text + len, *start = skip_space(text, end);
	const char *after = check_value(start, end, 0);

	if (!after || skip_space(after, end) != end)
		return -EINVAL;
	*ret = (struct json_span){ kind_of(*start), start, (size_t)(after - start) };
	return 0;
}

/* Past a value of checked text: brackets are counted, strings jumped over. */
static const char *skip_value(const char *p, const char *end)
{
	unsigned depth = 0;

	for (; p < end; p++) {
		if (*p == '"') {
			for (p++; p < end && *p != '"'; p++)
				p += *p == '\\';
		} else if (*p == '{' || *p == '[') {
			depth++;
		} else if ((*p == '}' || *p == ']' || *p == ',') && depth == 0) {
			return p;
		} else if (*p == '}' || *p == ']') {
			depth--;
		}
	}
	return end;
}

static const char *trim_space(const char *start, const char *p)
{
	while (p > start && strchr(" \t\n\r", p[-1]))
		p--;
	return p;
}

struct json_walk json_walk(const struct json_span *value)
{
	bool walks = value->kind == JSON_ARRAY || value->kind == JSON_OBJECT;
	const char *first = value->text + 1, *end = value->text + value->len - 1;

	if (!walks)
		return (struct json_walk){ value->text, value->text, false };
	return (struct json_walk){ skip_space(first, end), end, value->kind == JSON_OBJECT };
}

bool json_next_member(struct json_walk *w, struct json_span *ret_key, struct json_span *ret)
{
	const char *p = w->next, *after;

	if (p >= w->end)
		return false;
	if (w->object) {
		const char *close = check_string(p, w->end);

		*ret_key = (struct json_span){ JSON_STRING, p, (size_t)(close - p) };
		p = skip_space(skip_space(close, w->end) + 1, w->end);
	}
	after = skip_value(p, w->end);
	*ret = (struct json_span){ kind_of(*p), p, (size_t)(trim_space(p, after) - p) };
	w->next = after < w->end ? skip_space(after + 1, w->end) : w->end;
	return true;
}

bool json_find(const struct json_span *object, const char *name, struct json_span *ret)
{
	struct json_walk w = json_walk(object);
	struct json_span key, value;

	while (w.object && json_next_member(&w, &key, &value)) {
		if (json_equals(&key, name)) {
			*ret = value;
			return true;
		}
	}
	return false;
}

static unsigned hex4(const char *p)
{
	unsigned v = 0;

	for (int i = 0; i < 4; i++)
		v = v * 16 + (unsigned)ascii_hex(p[i]);
	return v;
}

static void put_utf8(struct buf *out, uint32_t c)
{
	char s[4];
	size_t n = 0;

	if (c < 0x80) {
		s[n++] = (char)c;
	} else if (c < 0x800) {
		s[n++] = (char)(0xc0 | c >> 6);
	} else if (c < 0x10000) {
		s[n++] = (char)(0xe0 | c >> 12);
		s[n++] = (char)(0x80 | (c >> 6 & 0x3f));
	} else {
		s[n++] = (char)(0xf0 | c >> 18);
		s[n++] = (char)(0x80 | (c >> 12 & 0x3f));
		s[n++] = (char)(0x80 | (c >> 6 & 0x3f));
	}
	if (c >= 0x80)
		s[n++] = (char)(0x80 | (c & 0x3f));
	buf_append(out, s, n);
}

/* \uXXXX at p (after the u); past what was used. A lone half of a pair is U+FFFD. */
static const char *put_unicode(struct buf *out, const char *p, const char *end)
{
	uint32_t c = hex4(p);

	p += 4;
	if (c >= 0xd800 && c < 0xdc00 && end - p >= 6 && p[0] == '\\' && p[1] == 'u') {
		uint32_t low = hex4(p + 2);

		if (low >= 0xdc00 && low < 0xe000) {
			put_utf8(out, 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00));
			return p + 6;
		}
	}
	put_utf8(out, c == 0 || (c >= 0xd800 && c < 0xe000) ? 0xfffd : c);
	return p;
}

void json_unquote(const struct json_span *value, struct buf *out)
{
	static const char from[] = "bfnrt", to[] = "\b\f\n\r\t";
	const char *p = value->text, *end = p + value->len;

	if (value->kind != JSON_STRING) {
		buf_append(out, p, value->len);
		return;
	}
	end--;
	for (p++; p < end;) {
		const char *stop = memchr(p, '\\', (size_t)(end - p));
		const char *special;

		buf_append(out, p, (size_t)((stop ? stop : end) - p));
		if (!stop)
			return;
		p = stop + 2;
		if (stop[1] == 'u') {
			p = put_unicode(out, p, end);
			continue;
		}
		special = strchr(from, stop[1]);
		buf_putc(out, special ? to[special - from] : stop[1]);
	}
}

bool json_equals(const struct json_span *value, const char *text)
{
	_cleanup_buf_ struct buf b = BUF_INIT(BUF_MAX_TEXT);
	size_t n = strlen(text);

	if (value->kind != JSON_STRING)
		return false;
	/* most strings have no escapes: compare where they are */
	if (!memchr(value->text, '\\', value->len))
		return value->len == n + 2 && memcmp(value->text + 1, text, n) == 0;
	json_unquote(value, &b);
	return b.len == n && memcmp(buf_str(&b), text, n) == 0;
}

int json_to_u64(const struct json_span *value, uint64_t max, uint64_t *ret)
{
	char text[24];

	if (value->kind != JSON_NUMBER || value->len >= sizeof(text))
		return -EINVAL;
	memcpy(text, value->text, value->len);
	text[value->len] = '\0';
	return text_parse_u64(text, max, ret);
}
