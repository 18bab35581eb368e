/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text is the command's, and it may want to hide something in what is taken out. So a quote
 * is followed to where a shell would end it, and a key is no more than what looks like one: the
 * words behind it stay.
 */
#include "audit/redact_parts.h"

#include <string.h>

#include "base/macros.h"
#include "base/text.h"

#define KEY_LABEL_MAX 48
#define KEY_LINE_MIN 32 /* of a key's lines only the last is shorter */

static char at(const char *s, size_t n, size_t i)
{
	return i < n ? s[i] : '\0';
}

static bool starts_at(const char *s, size_t n, size_t i, const char *text)
{
	size_t len = strlen(text);

	return len <= n && i <= n - len && memcmp(s + i, text, len) == 0;
}

static bool is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* --- quotes ------------------------------------------------------------------------------- */

/* The apostrophe of don't, it's, we're */
static bool is_apostrophe(const char *s, size_t n, size_t i)
{
	static const char *const rest[] = { "s", "t", "d", "m", "re", "ve", "ll" };

	if (s[i] != '\'' || i == 0 || !ascii_alpha(s[i - 1]))
		return false;
	for (size_t k = 0; k < ARRAY_LEN(rest); k++) {
		if (starts_at(s, n, i + 1, rest[k]) &&
		    !ascii_alnum(at(s, n, i + 1 + strlen(rest[k]))))
			return true;
	}
	return false;
}

static void pass_quote(struct quoting *q, char c, bool is_escaped)
{
	if (is_escaped) {
		q->escaped = q->escaped == c ? '\0' : q->escaped ? q->escaped : c;
		return;
	}
	q->escaped = '\0';
	if (q->outer && q->outer != c) {
		q->inner = q->inner ? '\0' : c;
		return;
	}
	q->outer = q->outer ? '\0' : c;
	q->inner = '\0';
}

void quoting_pass(struct quoting *q, enum quoting_rules rules, const char *s, size_t n, size_t i)
{
	bool is_escaped = q->is_escaped;
	char c = s[i];

	q->is_escaped = c == '\\' && !is_escaped;
	if (c == '\n')
		q->is_comment = false;
	else if (c == '#' && !q->outer && (i == 0 || is_space(s[i - 1]) || s[i - 1] == ';'))
		q->is_comment = true;
	if (q->is_comment || (c != '"' && c != '\''))
		return;
	if (rules == QUOTING_CODE && q->outer != '\'' && is_apostrophe(s, n, i))
		return;
	if (rules == QUOTING_SHELL && q->outer == '\'' && c == '\'')
		is_escaped = false;
	pass_quote(q, c, is_escaped);
}

/* --- private keys ------------------------------------------------------------------------- */

/* "RSA PRIVATE KEY-----" at i: where it ends; 0 = it does not. */
static size_t label_end(const char *s, size_t n, size_t i)
{
	size_t start = i;

	while (i - start < KEY_LABEL_MAX && (at(s, n, i) == ' ' || ascii_digit(at(s, n, i)) ||
					     (at(s, n, i) >= 'A' && at(s, n, i) <= 'Z')))
		i++;
	return starts_at(s, n, i, "-----") ? i + 5 : 0;
}

/* White space, or \n as it is written in strings. */
static size_t skip_breaks(const char *s, size_t n, size_t i)
{
	for (;;) {
		size_t k = i;

		while (at(s, n, k) == '\\')
			k++;
		if (k > i && (at(s, n, k) == 'n' || at(s, n, k) == 'r'))
			i = k + 1;
		else if (is_space(at(s, n, i)))
			i++;
		else
			return i;
	}
}

/* The same with what stands between strings, where a program has each line as one. */
static size_t skip_glue(const char *s, size_t n, size_t i)
{
	for (;;) {
		size_t next = skip_breaks(s, n, i);

		if (next == i && (i >= n || !strchr("\"'`+,\\", s[i])))
			return i;
		i = next > i ? next : i + 1;
	}
}

static size_t line_end(const char *s, size_t n, size_t i)
{
	while (ascii_alnum(at(s, n, i)) || at(s, n, i) == '+' || at(s, n, i) == '/' ||
	       at(s, n, i) == '=')
		i++;
	return i;
}

static size_t block_end(const char *s, size_t n, size_t i)
{
	static const char end[] = "-----END ";

	return starts_at(s, n, i, end) ? label_end(s, n, i + sizeof(end) - 1) : 0;
}

/* Proc-Type: 4,ENCRYPTED */
static size_t header_end(const char *s, size_t n, size_t i)
{
	static const char *const names[] = { "Proc-Type: ", "DEK-Info: ", "Version: ",
					     "Comment: ",   "Hash: ",     "Charset: " };

	for (size_t k = 0; k < ARRAY_LEN(names); k++) {
		if (!starts_at(s, n, i, names[k]))
			continue;
		while (i < n && (ascii_alnum(s[i]) || strchr(" ,:/@._-", s[i])))
			i++;
		return i;
	}
	return i;
}

/* Is [from, to) the last line, which may be short, and no first word of a command? */
static bool is_last_line(const char *s, size_t n, size_t from, size_t to)
{
	return to > from &&
	       (to == n || strchr("\r\n\\\"'", s[to]) || block_end(s, n, skip_glue(s, n, to)));
}

/* What follows i of the key: a line of it or of its header, or i where that is all. */
static size_t next_line(const char *s, size_t n, size_t i)
{
	size_t start = skip_breaks(s, n, i), end = header_end(s, n, start);

	if (end > start)
		return end;
	start = skip_glue(s, n, start);
	end = line_end(s, n, start);
	return end - start >= KEY_LINE_MIN ? end : i;
}

size_t redact_private_key(const char *s, size_t n)
{
	static const char begin[] = "-----BEGIN ", key[] = "PRIVATE KEY";
	size_t label, i, next, end;

	if (!starts_at(s, n, 0, begin))
		return 0;
	label = i = label_end(s, n, sizeof(begin) - 1);
	if (!label || !memmem(s, label, key, sizeof(key) - 1))
		return 0;
	while ((next = next_line(s, n, i)) > i)
		i = next;
	next = skip_breaks(s, n, i);
	end = line_end(s, n, next);
	if (is_last_line(s, n, next, end))
		i = end;
	end = i > label ? block_end(s, n, skip_glue(s, n, i)) : 0;
	/* with nothing of a key in it, it is a word that somebody looks for */
	return end ? end : i > label ? i : 0;
}
