/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text.h"

#include <errno.h>
#include <string.h>

bool text_starts(const char *s, const char *prefix)
{
	return strncmp(s, prefix, strlen(prefix)) == 0;
}

bool text_ends(const char *s, const char *suffix)
{
	size_t n = strlen(s), m = strlen(suffix);

	return n >= m && memcmp(s + n - m, suffix, m) == 0;
}

bool ascii_alpha(char c)
{
	return ascii_lower(c) >= 'a' && ascii_lower(c) <= 'z';
}

bool ascii_digit(char c)
{
	return c >= '0' && c <= '9';
}

int ascii_hex(char c)
{
	if (ascii_digit(c))
		return c - '0';
	c = ascii_lower(c);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool ascii_alnum(char c)
{
	return ascii_alpha(c) || ascii_digit(c);
}

size_t utf8_decode(const unsigned char *s, size_t n, uint32_t *ret)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	size_t len = s[0] < 0x80   ? 1
		     : s[0] < 0xc2 ? 0
		     : s[0] < 0xe0 ? 2
		     : s[0] < 0xf0 ? 3
		     : s[0] < 0xf5 ? 4
				   : 0;
	uint32_t c;

	if (len == 0 || len > n)
		return 0;
	if (len == 1) {
		*ret = s[0];
		return 1;
	}
	c = s[0] & (0x7fu >> len);
	for (size_t i = 1; i < len; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (s[i] & 0x3fu);
	}
	if (c < least[len] || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
		return 0;
	*ret = c;
	return len;
}

/* Characters that change how the text around them is shown. */
static bool is_treacherous(uint32_t c)
{
	return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0xad || c == 0x61c ||
	       (c >= 0x200b && c <= 0x200f) || (c >= 0x2028 && c <= 0x202e) ||
	       (c >= 0x2060 && c <= 0x206f) || c == 0xfeff || (c >= 0xfff9 && c <= 0xfffb) ||
	       (c >= 0xe0000 && c <= 0xe007f);
}

void text_append_safe_n(struct buf *b, const char *s, size_t n)
{
	const unsigned char *p = (const unsigned char *)s;

	while (n > 0) {
		uint32_t c = 0;
		size_t len = utf8_decode(p, n, &c);

		if (len > 0 && !is_treacherous(c)) {
			buf_append(b, p, len);
		} else {
			if (len == 0)
				len = 1;
			for (size_t i = 0; i < len; i++)
				buf_printf(b, "\\x%02x", (unsigned)p[i]);
		}
		p += len;
		n -= len;
	}
}

void text_append_safe(struct buf *b, const char *s)
{
	text_append_safe_n(b, s, strlen(s));
}

bool text_is_safe(const char *s)
{
	_cleanup_buf_ struct buf b = BUF_INIT(BUF_MAX_TEXT);

	text_append_safe(&b, s);
	return strcmp(buf_str(&b), s) == 0;
}

void text_append_shell(struct buf *b, const char *s)
{
	static const char harmless[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				       "0123456789_./:@+,-%";

	if (*s && s[strspn(s, harmless)] == '\0') {
		buf_puts(b, s);
		return;
	}
	buf_putc(b, '\'');
	for (; *s; s++) {
		if (*s == '\'')
			buf_puts(b, "'\\''");
		else
			buf_putc(b, *s);
	}
	buf_putc(b, '\'');
}

#define DISTANCE_MAX_LEN 64

unsigned text_distance(const char *a, const char *b)
{
	unsigned rows[3][DISTANCE_MAX_LEN + 1];
	size_t n = strlen(a), m = strlen(b);

	if (n > DISTANCE_MAX_LEN || m > DISTANCE_MAX_LEN)
		return DISTANCE_MAX_LEN;
	for (size_t j = 0; j <= m; j++)
		rows[0][j] = (unsigned)j;
	for (size_t i = 1; i <= n; i++) {
		unsigned *now = rows[i % 3], *last = rows[(i + 2) % 3];
		const unsigned *before = rows[(i + 1) % 3];

		now[0] = (unsigned)i;
		for (size_t j = 1; j <= m; j++) {
			unsigned differ = ascii_lower(a[i - 1]) != ascii_lower(b[j - 1]);
			unsigned best = last[j - 1] + differ;

			if (last[j] + 1 < best)
				best = last[j] + 1;
			if (now[j - 1] + 1 < best)
				best = now[j - 1] + 1;
			if (i > 1 && j > 1 && ascii_lower(a[i - 1]) == ascii_lower(b[j - 2]) &&
			    ascii_lower(a[i - 2]) == ascii_lower(b[j - 1]) &&
			    before[j - 2] + 1 < best)
				best = before[j - 2] + 1;
			now[j] = best;
		}
	}
	return rows[n % 3][m];
}

int text_parse_u64(const char *s, uint64_t max, uint64_t *ret)
{
	uint64_t v = 0;

	if (!*s)
		return -EINVAL;
	for (; *s; s++) {
		if (!ascii_digit(*s))
			return -EINVAL;
		if (__builtin_mul_overflow(v, (uint64_t)10, &v) ||
		    __builtin_add_overflow(v, (uint64_t)(*s - '0'), &v))
			return -ERANGE;
	}
	if (v > max)
		return -ERANGE;
	*ret = v;
	return 0;
}

uint64_t text_leading_u64(const char *s)
{
	uint64_t v = 0;

	for (; ascii_digit(*s); s++) {
		if (__builtin_mul_overflow(v, (uint64_t)10, &v) ||
		    __builtin_add_overflow(v, (uint64_t)(*s - '0'), &v))
			return 0;
	}
	return v;
}

const char *text_find_last(const char *s, size_t n, char c)
{
	while (n > 0) {
		if (s[--n] == c)
			return s + n;
	}
	return NULL;
}

void text_copy(char *ret, size_t size, const char *s)
{
	size_t n = strnlen(s, size - 1);

	memcpy(ret, s, n);
	ret[n] = '\0';
}

/* Digits with at most one dot; the rest of the string goes to *ret_rest. */
static int parse_decimal(const char *s, double *ret, const char **ret_rest)
{
	double v = 0, scale = 1;
	bool digits = false, dot = false;

	for (; ascii_digit(*s) || (*s == '.' && !dot); s++) {
		if (*s == '.') {
			dot = true;
			continue;
		}
		digits = true;
		v = v * 10 + (*s - '0');
		if (dot)
			scale *= 10;
	}
	if (!digits)
		return -EINVAL;
	*ret = v / scale;
	*ret_rest = s;
	return 0;
}

int text_parse_double(const char *s, double max, double *ret)
{
	const char *rest;
	double v;
	int r = parse_decimal(s, &v, &rest);

	if (r < 0 || *rest)
		return -EINVAL;
	if (!(v <= max))
		return -ERANGE;
	*ret = v;
	return 0;
}

struct unit {
	const char *name;
	double factor;
};

/* A decimal with one of the units, scaled; the plain number takes units[0]. */
static int parse_with_unit(const char *s, const struct unit *units, size_t n, uint64_t *ret)
{
	const char *rest;
	double v;
	int r = parse_decimal(s, &v, &rest);

	if (r < 0)
		return r;
	for (size_t i = 0; i < n; i++) {
		if (text_distance(rest, units[i].name) != 0 ||
		    strlen(rest) != strlen(units[i].name))
			continue;
		v *= units[i].factor;
		if (!(v < 9.0e18))
			return -ERANGE;
		*ret = (uint64_t)(v + 0.5);
		return 0;
	}
	return -EINVAL;
}

int text_parse_size(const char *s, uint64_t *ret_bytes)
{
	static const double k = 1024;
	const struct unit units[] = {
		{ "", 1 },
		{ "b", 1 },
		{ "k", k },
		{ "kb", k },
		{ "kib", k },
		{ "m", k * k },
		{ "mb", k * k },
		{ "mib", k * k },
		{ "g", k * k * k },
		{ "gb", k * k * k },
		{ "gib", k * k * k },
		{ "t", k * k * k * k },
		{ "tb", k * k * k * k },
		{ "tib", k * k * k * k },
	};

	return parse_with_unit(s, units, ARRAY_LEN(units), ret_bytes);
}

int text_parse_duration(const char *s, uint64_t *ret_ms)
{
	static const struct unit units[] = {
		{ "", 1000 },     { "ms", 1 },      { "s", 1000 },     { "m", 60000 },
		{ "min", 60000 }, { "h", 3600000 }, { "d", 86400000 },
	};

	return parse_with_unit(s, units, ARRAY_LEN(units), ret_ms);
}
