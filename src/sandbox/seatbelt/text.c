/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Paths and patterns as text of a profile. The profile is a program: whatever a file name
 * holds must stay inside its string.
 */
#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "sandbox/seatbelt/seatbelt.h"

int seatbelt_quote(const char *s, struct buf *out)
{
	for (const char *c = s; *c; c++) {
		if ((unsigned char)*c < 0x20 || *c == 0x7f)
			return -EINVAL;
	}
	buf_putc(out, '"');
	for (; *s; s++) {
		if (*s == '"' || *s == '\\')
			buf_putc(out, '\\');
		buf_putc(out, *s);
	}
	buf_putc(out, '"');
	return 0;
}

static void put_literal(struct buf *out, char c, bool fold)
{
	if (fold && ascii_alnum(c) && !ascii_digit(c)) {
		buf_printf(out, "[%c%c]", c | 0x20, c & ~0x20);
		return;
	}
	if (strchr("\\^$.|?*+()[]{}", c))
		buf_putc(out, '\\');
	buf_putc(out, c);
}

/* Of the same kind, so that what lies between them is too. */
static bool is_range(char lo, char hi)
{
	return lo <= hi && ((ascii_digit(lo) && ascii_digit(hi)) ||
			    (ascii_alpha(lo) && ascii_alpha(hi) && (lo & 0x20) == (hi & 0x20)));
}

/*
 * "[!a-c]" becomes "[^/a-c]": a set never matches a slash. Letters, digits, ranges of them and
 * what means nothing in any dialect: how the profile language reads the rest inside of
 * brackets is not written down anywhere. Returns the ']' of the pattern, or NULL.
 */
static const char *put_set(struct buf *out, const char *s)
{
	bool negated = s[1] == '!' || s[1] == '^';

	s += negated ? 2 : 1;
	buf_puts(out, negated ? "[^/" : "[");
	for (bool first = true; *s != ']' || first; first = false, s++) {
		if (!ascii_alnum(*s) && (!*s || !strchr("._ ,@%=~", *s)))
			return NULL;
		buf_putc(out, *s);
		if (s[1] != '-')
			continue;
		if (!is_range(*s, s[2]))
			return NULL;
		buf_putc(out, '-');
		buf_putc(out, s[2]);
		s += 2;
	}
	buf_putc(out, ']');
	return s;
}

int seatbelt_regex(const char *pattern, size_t fold, struct buf *out)
{
	buf_putc(out, '^');
	for (const char *s = pattern; *s; s++) {
		if (s[0] == '/' && s[1] == '*' && s[2] == '*' && (s[3] == '/' || !s[3])) {
			/* any number of components, also none */
			buf_puts(out, "(/.*)?");
			s += 2;
		} else if (*s == '*') {
			/* a component has at least one character: "/" is not below itself */
			bool whole = s > pattern && s[-1] == '/' && (s[1] == '/' || !s[1]);

			buf_puts(out, whole ? "[^/]+" : "[^/]*");
		} else if (*s == '?') {
			buf_puts(out, "[^/]");
		} else if (*s == '[') {
			s = put_set(out, s);
			if (!s)
				return -EINVAL;
		} else {
			if (*s == '\\' && s[1])
				s++;
			put_literal(out, *s, (size_t)(s - pattern) >= fold);
		}
	}
	buf_puts(out, "(/.*)?$"); /* a rule on a directory covers what is below */
	return 0;
}
