/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text is walked once from left to right. At each place the matchers are asked in turn; one
 * that matches writes its replacement and says how much of the text it stands for.
 * Everything else is copied. Rather too much is taken out than too little, but what
 * everybody needs in a log (paths, versions, commit hashes, plain words) stays.
 */
#include "audit/redact.h"

#include <stdbool.h>
#include <string.h>

#include "audit/redact_names.h"
#include "base/text.h"

#define BARE_TOKEN_MIN 20 /* a longer name in front of @host is a token */
/* How far is looked from one place: the text is the command's, and must not take us long. */
#define URL_MAX 2048
#define BACK_MAX 4096

/* The whole text, and where we are in it. */
struct scan {
	const char *s;
	size_t n, i;
	struct buf *out;
};

static bool is_word(char c)
{
	return ascii_alnum(c) || c == '_' || c == '-' || c == '.';
}

static bool is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static bool is_quote(char c)
{
	return c == '"' || c == '\'' || c == '`';
}

/* Token characters: base64, base64url, percent-encoding. */
static bool is_token(char c)
{
	return is_word(c) || c == '+' || c == '/' || c == '=' || c == '~' || c == '%';
}

static char at(const struct scan *p, size_t i)
{
	return i < p->n ? p->s[i] : '\0';
}

static bool starts_at(const struct scan *p, size_t i, const char *text)
{
	size_t n = strlen(text);

	return n <= p->n && i <= p->n - n && memcmp(p->s + i, text, n) == 0;
}

static bool starts_at_any_case(const struct scan *p, size_t i, const char *text)
{
	for (; *text; text++, i++) {
		if (ascii_lower(at(p, i)) != *text)
			return false;
	}
	return true;
}

static size_t find_from(const struct scan *p, size_t i, const char *text)
{
	const char *hit = i < p->n ? memmem(p->s + i, p->n - i, text, strlen(text)) : NULL;

	return hit ? (size_t)(hit - p->s) : p->n;
}

static size_t skip_spaces(const struct scan *p, size_t i)
{
	while (is_space(at(p, i)))
		i++;
	return i;
}

static void keep(const struct scan *p, size_t from, size_t to)
{
	buf_append(p->out, p->s + from, to - from);
}

static bool is_redacted(const struct scan *p, size_t from, size_t to)
{
	return to - from == strlen(REDACTED) && memcmp(p->s + from, REDACTED, to - from) == 0;
}

/* -----BEGIN RSA PRIVATE KEY----- ... -----END RSA PRIVATE KEY----- */
static size_t match_private_key(const struct scan *p)
{
	static const char begin[] = "-----BEGIN ", key[] = "PRIVATE KEY", end[] = "-----END ";
	size_t label = p->i + sizeof(begin) - 1, stop;

	if (!starts_at(p, p->i, begin))
		return 0;
	stop = find_from(p, label, "-----");
	if (!memmem(p->s + label, stop - label, key, sizeof(key) - 1))
		return 0;
	buf_puts(p->out, begin);
	buf_puts(p->out, REDACTED);
	stop = find_from(p, p->i, end);
	stop = stop == p->n ? stop : find_from(p, stop + sizeof(end) - 1, "-----") + 5;
	return (stop < p->n ? stop : p->n) - p->i;
}

static bool all_digits(const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (!ascii_digit(s[i]))
			return false;
	}
	return true;
}

/* Position of the first (or last) c in [from, to), or `to`. */
static size_t find_char(const struct scan *p, size_t from, size_t to, char c)
{
	const char *hit = from < to ? memchr(p->s + from, c, to - from) : NULL;

	return hit ? (size_t)(hit - p->s) : to;
}

static size_t find_last_char(const struct scan *p, size_t from, size_t to, char c)
{
	const char *hit = from < to ? text_find_last(p->s + from, to - from, c) : NULL;

	return hit ? (size_t)(hit - p->s) : to;
}

/*
 * ://user:password@host. The @ must stand before the first slash, unless what follows the
 * colon up to there is no port: then the slash is part of a badly written password.
 */
static size_t match_url(const struct scan *p)
{
	size_t start = p->i + 3, end = start, host, colon, sign;
	size_t far = p->n - p->i < URL_MAX ? p->n : p->i + URL_MAX;

	if (!starts_at(p, p->i, "://"))
		return 0;
	while (end < far && !is_space(p->s[end]) && !is_quote(p->s[end]))
		end++;
	for (host = start; host < end && !strchr("/?#", p->s[host]); host++)
		;
	sign = find_last_char(p, start, host, '@');
	colon = find_char(p, start, sign, ':');
	if (sign == host && colon < host && !all_digits(p->s + colon + 1, host - colon - 1))
		sign = find_char(p, host, end, '@');
	else if (sign == host)
		return 0;
	if (sign == end)
		return 0;
	if (colon < sign)
		start = colon + 1;
	else if (sign - start < BARE_TOKEN_MIN)
		return 0; /* a user's name */
	if (sign == start || is_redacted(p, start, sign))
		return 0;
	keep(p, p->i, start);
	buf_puts(p->out, REDACTED);
	return sign - p->i;
}

/* The end of a value that begins at i: at its closing quote, or where a word of a shell ends. */
static size_t value_end(const struct scan *p, size_t i, char quote)
{
	for (; i < p->n; i++) {
		char c = p->s[i];

		if (quote ? c == quote : is_space(c) || is_quote(c) || strchr("&;|<>()", c))
			break;
		if (c == '\\' && i + 1 < p->n)
			i++;
	}
	return i < p->n ? i : p->n;
}

/* The same where the quotes themselves are escaped, as in JSON inside JSON. */
static size_t escaped_value_end(const struct scan *p, size_t i, char quote)
{
	for (; i + 1 < p->n; i++) {
		if (p->s[i] == '\\' && p->s[i + 1] == quote)
			return i;
		if (p->s[i] == '\\' && p->s[i + 1] == '\\')
			i++;
	}
	return p->n;
}

/* "max_tokens: 1024" */
static bool is_count(const struct scan *p, size_t from, size_t to)
{
	return to - from <= 7 && all_digits(p->s + from, to - from);
}

static size_t redact_value(const struct scan *p, size_t i, bool may_be_count)
{
	bool escaped = at(p, i) == '\\' && is_quote(at(p, i + 1));
	char quote = 0;
	size_t end;

	i += escaped;
	if (is_quote(at(p, i)))
		quote = p->s[i++];
	end = escaped ? escaped_value_end(p, i, quote) : value_end(p, i, quote);
	if (end == i || is_redacted(p, i, end) || (may_be_count && is_count(p, i, end)))
		return 0;
	keep(p, p->i, i);
	buf_puts(p->out, REDACTED);
	return end - p->i;
}

/* Authorization: SCHEME secret, up to the end of the line or of the quoted word. */
static size_t redact_header(const struct scan *p, size_t i)
{
	size_t end = i, word;

	while (end < p->n && p->s[end] != '\n' && p->s[end] != '\r' && !is_quote(p->s[end]))
		end++;
	for (word = i; word < end && ascii_alpha(p->s[word]); word++)
		;
	if (redact_is_scheme(p->s + i, word - i) && at(p, word) == ' ')
		i = skip_spaces(p, word);
	if (i >= end || is_redacted(p, i, end))
		return 0;
	keep(p, p->i, i);
	buf_puts(p->out, REDACTED);
	return end - p->i;
}

/* NAME=value, NAME: value, "NAME": "value", --NAME value */
static size_t match_named(const struct scan *p)
{
	size_t end = p->i, i;
	enum redact_name kind;
	bool option;

	if (p->i > 0 && is_word(p->s[p->i - 1]))
		return 0;
	while (end < p->n && is_word(p->s[end]))
		end++;
	kind = redact_name(p->s + p->i, end - p->i);
	if (kind == REDACT_NOT)
		return 0;
	option = starts_at(p, p->i, "--");
	i = end;
	if (at(p, i) == '\\' && is_quote(at(p, i + 1)))
		i++;
	i += is_quote(at(p, i)) ? 1 : 0;
	i = skip_spaces(p, i);
	if (at(p, i) == '=' || at(p, i) == ':')
		i += at(p, i + 1) == '>' || (at(p, i) == ':' && at(p, i + 1) == '=') ? 2 : 1;
	else if (!option || i == end || at(p, i) == '-')
		return 0;
	if (at(p, i) == '/' && at(p, i + 1) == '/')
		return 0; /* token://host is a URL */
	/* a shell assignment has no space after it: NAME= next */
	if (at(p, i - 1) == '=' && is_space(at(p, i)) && at(p, i - 2) != ' ')
		return 0;
	i = skip_spaces(p, i);
	if (kind == REDACT_HEADER && at(p, i - 1) != '=' && !is_quote(at(p, i)))
		return redact_header(p, i);
	return redact_value(p, i, kind == REDACT_COUNT);
}

/* Bearer abc123, without a header's name in front */
static size_t match_scheme(const struct scan *p)
{
	size_t start, end;
	bool telling = false;

	if ((p->i > 0 && is_word(p->s[p->i - 1])) ||
	    (!starts_at_any_case(p, p->i, "bearer ") && !starts_at_any_case(p, p->i, "basic ")))
		return 0;
	start = skip_spaces(p, find_from(p, p->i, " "));
	for (end = start; end < p->n && is_token(p->s[end]); end++)
		telling |= ascii_digit(p->s[end]) || p->s[end] == '=';
	if (end - start < 8 || !telling)
		return 0;
	keep(p, p->i, start);
	buf_puts(p->out, REDACTED);
	return end - p->i;
}

/* curl -u user:password */
static size_t match_user_option(const struct scan *p)
{
	size_t i, colon, end, back = p->i < BACK_MAX ? p->i : BACK_MAX;
	char quote = 0;

	if ((p->i > 0 && !is_space(p->s[p->i - 1])) ||
	    (!starts_at(p, p->i, "-u ") && !starts_at(p, p->i, "--user ")) ||
	    !memmem(p->s + p->i - back, back, "curl", 4))
		return 0;
	i = skip_spaces(p, find_from(p, p->i, " "));
	if (is_quote(at(p, i)))
		quote = p->s[i++];
	end = value_end(p, i, quote);
	for (colon = i; colon < end && p->s[colon] != ':'; colon++)
		;
	if (colon + 1 >= end || is_redacted(p, colon + 1, end))
		return 0;
	keep(p, p->i, colon + 1);
	buf_puts(p->out, REDACTED);
	return end - p->i;
}

/* A token of a known form */
static size_t match_token(const struct scan *p)
{
	size_t prefix, len;

	if (p->i > 0 && (ascii_alnum(p->s[p->i - 1]) || p->s[p->i - 1] == '_'))
		return 0;
	len = redact_known_token(p->s + p->i, p->n - p->i, &prefix);
	if (!len)
		return 0;
	keep(p, p->i, p->i + prefix);
	buf_puts(p->out, REDACTED);
	return len;
}

void redact_text(const char *s, size_t n, struct buf *out)
{
	static size_t (*const matchers[])(const struct scan *) = {
		match_private_key, match_url,   match_named,
		match_user_option, match_token, match_scheme,
	};
	struct scan p = { .s = s, .n = n, .out = out };

	while (p.i < n) {
		size_t used = 0;

		for (size_t m = 0; m < ARRAY_LEN(matchers) && !used; m++)
			used = matchers[m](&p);
		if (!used) {
			buf_putc(out, s[p.i]);
			used = 1;
		}
		p.i += used;
	}
}
