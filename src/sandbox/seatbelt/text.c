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

/* "[!a-c]" becomes "[^a-c/]": a set never matches a slash. Returns the ']' of the pattern. */
static const char *put_set(struct buf *out, const char *s)
{
	bool negated = s[1] == '!' || s[1] == '^';

	s += negated ? 2 : 1;
	buf_puts(out, negated ? "[^/" : "[");
	for (bool first = true; *s && (*s != ']' || first); first = false, s++) {
		if (*s == '\\' && s[1])
			s++;
		if (*s == '\\' || *s == ']' || *s == '[' || *s == '^')
			buf_putc(out, '\\');
		if (*s != '/')
			buf_putc(out, *s);
	}
	buf_putc(out, ']');
	return s;
}

void seatbelt_regex(const char *pattern, size_t fold, struct buf *out)
{
	buf_putc(out, '^');
	for (const char *s = pattern; *s; s++) {
		if (s[0] == '/' && s[1] == '*' && s[2] == '*' && (s[3] == '/' || !s[3])) {
			/* any number of components, also none */
			buf_puts(out, "(/.*)?");
			s += 2;
		} else if (*s == '*') {
			buf_puts(out, "[^/]*");
		} else if (*s == '?') {
			buf_puts(out, "[^/]");
		} else if (*s == '[') {
			s = put_set(out, s);
			if (!*s)
				return;
		} else {
			if (*s == '\\' && s[1])
				s++;
			put_literal(out, *s, (size_t)(s - pattern) >= fold);
		}
	}
	buf_puts(out, "(/.*)?$"); /* a rule on a directory covers what is below */
}
