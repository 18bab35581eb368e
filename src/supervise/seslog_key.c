/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A key is told by its form, as the programs that write keys have it: a line with its name, lines
 * "Name: value" in some, base64 of which every line but the last is equally long, an end. Each
 * line may have something in front, as diff, cat -n and grep -n put there, or quotes around it.
 * What does not look so any more is not the key's: a file that ends in the middle of one, or
 * that only speaks of keys, takes nothing else out of the log.
 */
#include "supervise/seslog_key.h"

#include <string.h>

#include "base/macros.h"
#include "base/text.h"

#define WORD_MAX 16 /* base64 of this length is not all of small letters */

static const char begin[] = "-----BEGIN ", end[] = "-----END ", name[] = "PRIVATE KEY",
		  dashes[] = "-----";

static const char *find(const char *s, size_t n, const char *text)
{
	return n > 0 ? memmem(s, n, text, strlen(text)) : NULL;
}

static bool is_around(char c)
{
	return c && strchr(" \t\r\"'`", c);
}

static bool is_in_front(char c)
{
	return is_around(c) || ascii_digit(c) || (c && strchr("+-<>|:#*", c));
}

static bool is_base64(char c)
{
	return ascii_alnum(c) || c == '+' || c == '/' || c == '=';
}

/* Without blanks and quotes at the end, and the \n of a string in a program. */
static size_t trim_end(const char *s, size_t n)
{
	for (;;) {
		if (n > 0 && (is_around(s[n - 1]) || s[n - 1] == ',' || s[n - 1] == '\\'))
			n--;
		else if (n > 1 && s[n - 1] == 'n' && s[n - 2] == '\\')
			n -= 2;
		else
			return n;
	}
}

static bool all_in_front(const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (!is_in_front(s[i]))
			return false;
	}
	return true;
}

bool seslog_key_begins(struct seslog_key *k, const char *s, size_t n)
{
	const char *start = find(s, n, begin), *label, *stop;

	n = trim_end(s, n);
	label = start ? start + strlen(begin) : NULL;
	if (!label || label >= s + n)
		return false;
	stop = find(label, (size_t)(s + n - label), dashes);
	if (!stop || stop + strlen(dashes) != s + n || !find(label, (size_t)(stop - label), name))
		return false;
	*k = (struct seslog_key){ .inside = true, .loose = !all_in_front(s, (size_t)(start - s)) };
	return true;
}

/* Proc-Type: 4,ENCRYPTED */
static bool is_header(const char *s, size_t n)
{
	size_t i = 0;

	while (i < n && is_in_front(s[i]))
		i++;
	if (i == n || !ascii_alpha(s[i]))
		return false;
	while (i < n && (ascii_alnum(s[i]) || s[i] == '-'))
		i++;
	return i + 1 < n && s[i] == ':' && s[i + 1] == ' ';
}

static bool is_plain_word(const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (s[i] < 'a' || s[i] > 'z')
			return false;
	}
	return n < WORD_MAX;
}

/* Length of the base64 that is all there is in the line; 0 = there is something else. */
static size_t base64_len(const char *s, size_t n)
{
	size_t to = trim_end(s, n), from = to;

	while (from > 0 && is_base64(s[from - 1]))
		from--;
	return all_in_front(s, from) && !is_plain_word(s + from, to - from) ? to - from : 0;
}

/* What stands between the name and the base64 */
static bool fits_head(const struct seslog_key *k, const char *s, size_t n)
{
	if (k->loose && k->lines == 0)
		return find(s, n, "Proc-Type: ") != NULL;
	return is_header(s, n) || all_in_front(s, trim_end(s, n));
}

static bool fits(struct seslog_key *k, const char *s, size_t n)
{
	size_t len = base64_len(s, n);

	if (!k->width && fits_head(k, s, n))
		return true;
	if (len == 0 || (k->loose && !k->width && len < WORD_MAX) || (k->width && len > k->width))
		return false;
	if (k->short_line && !find(s, n, "="))
		return false; /* after the last line there may be a checksum: =abcd */
	k->short_line = k->width && len < k->width;
	k->width = k->width ? k->width : len;
	return true;
}

bool seslog_key_line(struct seslog_key *k, const char *s, size_t n)
{
	bool over = find(s, n, end) != NULL;

	if (!over && !fits(k, s, n)) {
		k->inside = false;
		return false;
	}
	k->lines++;
	k->inside = !over;
	return true;
}

bool seslog_key_may_go_on(const char *s, size_t n)
{
	for (size_t i = 0; i < n && !(s[i] == ':' && i > 0 && ascii_alpha(s[i - 1])); i++) {
		if (!is_base64(s[i]) && !is_in_front(s[i]) && s[i] != '\\' && s[i] != ',')
			return false;
	}
	return true;
}
