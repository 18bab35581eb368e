/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text is walked once from left to right. At each place the matchers are asked in turn; one
 * that matches writes its replacement and says how much of the text it stands for.
 * Everything else is copied. Rather too much is taken out than too little, but what
 * everybody needs in a log (paths, versions, commit hashes, plain words) stays.
 *
 * The text is the command's, which knows these rules and may want to be unseen. So no match goes
 * on into what a shell would take for another command: not past a string's end, not to the next
 * line, not over a ; in a sentence of words.
 */
#include "audit/redact.h"

#include <stdbool.h>
#include <string.h>

#include "audit/redact_command.h"
#include "audit/redact_names.h"
#include "audit/redact_parts.h"
#include "base/text.h"

#define BARE_TOKEN_MIN 20 /* a longer name in front of @host is a token */
/* How far is looked from one place: the text is the command's, and must not take us long. */
#define URL_MAX 2048
#define WORD_MAX 256 /* of a program's name, with its directory, or of an option */
#define SLASHES_MAX 15 /* strings in strings in strings in strings */

/* The whole text, and where we are in it. */
struct scan {
	const char *s;
	size_t n, i;
	struct buf *out;
	struct quoting quoting[QUOTING_MAX_]; /* at i */
	struct redact_command command; /* the one whose words we read */
	struct quoting around; /* the quotes in which its program stands */
};

static bool is_word(char c)
{
	return ascii_alnum(c) || c == '_' || c == '-' || c == '.';
}

static bool is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
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

/* Not to the next line, unless a backslash joins the two. */
static size_t skip_blanks(const struct scan *p, size_t i)
{
	while (is_blank(at(p, i)) || starts_at(p, i, "\\\n"))
		i += at(p, i) == '\\' ? 2 : 1;
	return i;
}

static void keep(const struct scan *p, size_t from, size_t to)
{
	buf_append(p->out, p->s + from, to - from);
}

static bool is_one_of(const struct scan *p, size_t from, size_t to, const char *const *words,
		      size_t n)
{
	for (size_t k = 0; k < n; k++) {
		if (strlen(words[k]) == to - from && starts_at_any_case(p, from, words[k]))
			return true;
	}
	return false;
}

static bool is_redacted(const struct scan *p, size_t from, size_t to)
{
	return to - from == strlen(REDACTED) && memcmp(p->s + from, REDACTED, to - from) == 0;
}

/* -----BEGIN RSA PRIVATE KEY----- ... -----END RSA PRIVATE KEY----- */
static size_t match_private_key(const struct scan *p)
{
	size_t len = p->s[p->i] == '-' ? redact_private_key(p->s + p->i, p->n - p->i) : 0;

	if (len)
		buf_puts(p->out, "-----BEGIN " REDACTED);
	return len;
}

static bool all_digits(const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (!ascii_digit(s[i]))
			return false;
	}
	return true;
}

/* $(command) or `command`, ${variable} */
static bool is_expansion(const struct scan *p, size_t i)
{
	return p->s[i] == '`' || (p->s[i] == '$' && (at(p, i + 1) == '(' || at(p, i + 1) == '{'));
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
 * colon up to there is no port: then the slash is part of a badly written password. What a shell
 * would do something with is no part of it.
 */
static size_t match_url(const struct scan *p)
{
	size_t start = p->i + 3, end = start, host, colon, sign;
	size_t far = p->n - p->i < URL_MAX ? p->n : p->i + URL_MAX;

	if (!starts_at(p, p->i, "://") || find_char(p, start, far, '@') == far)
		return 0;
	while (end < far && !is_space(p->s[end]) && !is_quote(p->s[end]) && !is_expansion(p, end) &&
	       !strchr("<>{", p->s[end]))
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

/* What a value begins with: a quote, or `slashes` and a quote, as in JSON inside JSON. */
struct opening {
	char quote; /* 0 = none */
	size_t slashes;
};

static struct opening opening_at(const struct scan *p, size_t i)
{
	struct opening o = { .slashes = 0 };

	while (o.slashes < SLASHES_MAX && at(p, i + o.slashes) == '\\')
		o.slashes++;
	if (is_quote(at(p, i + o.slashes)))
		o.quote = p->s[i + o.slashes];
	else
		o.slashes = 0;
	return o;
}

/* Which quotes are open at i, a little further on. */
static struct quoting quoting_at(const struct scan *p, size_t i, enum quoting_rules rules)
{
	struct quoting q = p->quoting[rules];

	for (size_t k = p->i; k < i; k++)
		quoting_pass(&q, rules, p->s, p->n, k);
	return q;
}

/*
 * Does the quote at i close a string in which we stand? What is behind it is code then, and
 * no secret. In doubt it does: of a secret that is a word, nothing is seen all the same.
 */
static bool closes_string(const struct scan *p, size_t i, const struct opening *o)
{
	for (enum quoting_rules rules = 0; rules < QUOTING_MAX_; rules++) {
		struct quoting q = quoting_at(p, i, rules);

		if (o->slashes ? q.escaped == o->quote : q.outer == o->quote || q.inner == o->quote)
			return true;
	}
	return false;
}

/* Where a word of a shell ends. */
static size_t word_end(const struct scan *p, size_t i)
{
	for (; i < p->n; i++) {
		char c = p->s[i];

		if (is_space(c) || is_quote(c) || strchr("&;|<>()", c))
			break;
		if (c == '\\' && i + 1 < p->n)
			i++;
	}
	return i < p->n ? i : p->n;
}

/* The same, for words that matter only while they are short. */
static size_t short_word_end(const struct scan *p, size_t i)
{
	size_t far = p->n - i < WORD_MAX ? p->n : i + WORD_MAX;

	while (i < far && !is_space(p->s[i]) && !is_quote(p->s[i]) && !strchr("&;|<>()", p->s[i]))
		i++;
	return i;
}

/* Code, in what we took for a value: the quote before it was not the one we thought. */
static bool is_code(const struct scan *p, size_t i)
{
	char c = p->s[i];

	if (c == '\n' || c == '\r')
		return true;
	if (c == '&')
		return at(p, i + 1) == '&';
	return (c == ';' || c == '|') &&
	       (is_space(at(p, i + 1)) || (i > 0 && is_space(p->s[i - 1])));
}

/* The quote of the string in which a value stands that opens at i, or 0. */
static char quote_around(const struct scan *p, size_t i)
{
	char shell = quoting_at(p, i, QUOTING_SHELL).outer;

	return shell ? shell : quoting_at(p, i, QUOTING_CODE).outer;
}

/* The end of a value that begins at i, behind its opening. */
static size_t value_end(const struct scan *p, size_t i, const struct opening *o)
{
	size_t slashes = 0;
	char around;

	if (!o->quote)
		return word_end(p, i);
	around = quote_around(p, i - o->slashes - 1);
	for (; i < p->n; i++) {
		if (p->s[i] == o->quote &&
		    (o->slashes ? slashes && slashes <= o->slashes : slashes % 2 == 0))
			return i - (o->slashes ? slashes : 0);
		if (around && p->s[i] == around && slashes == 0)
			break; /* echo "password='"; command "'" */
		if (is_code(p, i) || (o->quote == '"' && is_expansion(p, i)))
			break;
		slashes = p->s[i] == '\\' ? slashes + 1 : 0;
	}
	return i < p->n ? i : p->n;
}

static bool has_any(const struct scan *p, size_t from, size_t to, const char *chars)
{
	while (from < to && !strchr(chars, p->s[from]))
		from++;
	return from < to;
}

/* `word`, where it is no command whose output is wanted */
static bool is_backtick_word(const struct scan *p, size_t i, size_t end)
{
	return at(p, i - 2) != '=' && at(p, end) == '`' && !has_any(p, i, end, " \t$(");
}

/* "max_tokens: 1024" */
static bool is_count(const struct scan *p, size_t from, size_t to)
{
	return to - from <= 7 && all_digits(p->s + from, to - from);
}

/* /etc/ssl/key.pem; base64 may begin so, too, and be longer than any path */
static bool is_path(const struct scan *p, size_t from, size_t to)
{
	return (starts_at(p, from, "/") || starts_at(p, from, "./") || starts_at(p, from, "../") ||
		starts_at(p, from, "~/")) &&
	       !has_any(p, from, to, "+=");
}

static bool is_plain_word(const struct scan *p, size_t from, size_t to)
{
	while (from < to &&
	       (p->s[from] == '_' || p->s[from] == '-' || (p->s[from] >= 'a' && p->s[from] <= 'z')))
		from++;
	return from == to;
}

/* Under some names not every value is a secret. */
static bool is_harmless(const struct scan *p, size_t from, size_t to, enum redact_name kind)
{
	switch (kind) {
	case REDACT_COUNT:
		return is_count(p, from, to);
	case REDACT_KEY:
		return is_count(p, from, to) || is_path(p, from, to);
	case REDACT_QUERY:
		return is_count(p, from, to) || is_path(p, from, to) || is_plain_word(p, from, to);
	case REDACT_NOT:
	case REDACT_VALUE:
	case REDACT_HEADER:
	case REDACT_COOKIES:
		break;
	}
	return false;
}

static size_t redact_value(const struct scan *p, size_t i, enum redact_name kind)
{
	struct opening o = opening_at(p, i);
	size_t end;

	if (o.quote && closes_string(p, i, &o)) {
		i += o.slashes + 1;
		if (!ascii_alnum(at(p, i)))
			return 0;
		end = word_end(p, i); /* 'password: 'hunter2 */
	} else {
		i += o.quote ? o.slashes + 1 : 0;
		if (starts_at(p, i, "-----BEGIN "))
			return 0; /* another matcher knows where a key ends */
		end = value_end(p, i, &o);
		if (o.quote == '`' && !is_backtick_word(p, i, end))
			return 0;
	}
	if (end == i || is_redacted(p, i, end) || is_harmless(p, i, end, kind))
		return 0;
	keep(p, p->i, i);
	buf_puts(p->out, REDACTED);
	return end - p->i;
}

/* Where a header's value ends: with its line, its string, or the command. */
static size_t header_end(const struct scan *p, size_t i)
{
	while (i < p->n && !strchr("\r\n\"'`;|&<>()", p->s[i]) && !is_expansion(p, i))
		i++;
	return i;
}

/* name=value; name=value; Path=/; Secure. What is no such pair is a command behind a semicolon. */
static size_t cookies_end(const struct scan *p, size_t i)
{
	static const char *const alone[] = { "httponly", "secure", "partitioned" };

	for (;;) {
		size_t end = i, next;

		while (end < p->n && !is_space(p->s[end]) && !is_quote(p->s[end]) &&
		       !strchr(";<>()", p->s[end]) && !is_expansion(p, end) && !is_code(p, end))
			end++;
		i = next = skip_blanks(p, end + 1);
		if (at(p, end) != ';')
			return end;
		while (is_word(at(p, next)))
			next++;
		if (at(p, next) != '=' && !is_one_of(p, i, next, alone, ARRAY_LEN(alone)))
			return end;
	}
}

/* Authorization: SCHEME secret */
static size_t redact_header(const struct scan *p, size_t i, enum redact_name kind)
{
	size_t end = kind == REDACT_COOKIES ? cookies_end(p, i) : header_end(p, i), word;

	for (word = i; word < end && ascii_alpha(p->s[word]); word++)
		;
	if (redact_is_scheme(p->s + i, word - i) && at(p, word) == ' ')
		i = skip_blanks(p, word);
	while (end > i && is_blank(p->s[end - 1]))
		end--;
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
	struct opening name_quote;
	enum redact_name kind;
	bool option;

	if (p->i > 0 && is_word(p->s[p->i - 1]))
		return 0;
	while (end < p->n && is_word(p->s[end]))
		end++;
	kind = redact_name_behind(p->i > 0 ? p->s[p->i - 1] : '\0', p->s + p->i, end - p->i);
	if (kind == REDACT_NOT)
		return 0;
	option = starts_at(p, p->i, "--") || p->command.setting == SETTING_NAMED;
	name_quote = opening_at(p, end);
	i = end + name_quote.slashes + (name_quote.quote ? 1 : 0);
	if (name_quote.quote && at(p, i) == ']')
		i++; /* environ['NAME'] = */
	i = skip_blanks(p, i);
	if (at(p, i) == '=' || at(p, i) == ':')
		i += at(p, i + 1) == '>' || at(p, i + 1) == '=' ? 2 : 1;
	else if (!option || i == end ||
		 redact_looks_like_option(p->s + i, short_word_end(p, i) - i))
		return 0;
	if (at(p, i) == '/' && at(p, i + 1) == '/')
		return 0; /* token://host is a URL */
	/* a shell assignment has no space after it: NAME= next */
	if (at(p, i - 1) == '=' && is_space(at(p, i)) && !strchr(" :=", at(p, i - 2)))
		return 0;
	i = skip_blanks(p, i);
	if ((kind == REDACT_HEADER || kind == REDACT_COOKIES) && at(p, i - 1) != '=' &&
	    !is_quote(at(p, i)))
		return redact_header(p, i, kind);
	return redact_value(p, i, kind);
}

/* Bearer abc123, without a header's name in front */
static size_t match_scheme(const struct scan *p)
{
	size_t start, end;
	bool telling = false;

	if ((p->i > 0 && is_word(p->s[p->i - 1])) ||
	    (!starts_at_any_case(p, p->i, "bearer ") && !starts_at_any_case(p, p->i, "basic ")))
		return 0;
	start = skip_blanks(p, find_from(p, p->i, " "));
	for (end = start; end < p->n && is_token(p->s[end]); end++)
		telling |= ascii_digit(p->s[end]) || p->s[end] == '=';
	if (end - start < 8 || !telling)
		return 0;
	keep(p, p->i, start);
	buf_puts(p->out, REDACTED);
	return end - p->i;
}

static bool is_word_start(const struct scan *p)
{
	return p->i == 0 || is_space(p->s[p->i - 1]) || is_quote(p->s[p->i - 1]) ||
	       strchr("&;|<>()", p->s[p->i - 1]);
}

/* Where the value of an option stands whose word ends at i; 0 = nowhere. */
static size_t option_value(const struct scan *p, size_t i, enum redact_where where,
			   struct opening *ret)
{
	size_t start = i;

	*ret = opening_at(p, i);
	if (ret->quote && !closes_string(p, i, ret))
		return where & REDACT_ATTACHED ? i + ret->slashes + 1 : 0; /* -p'x' */
	if (ret->quote) { /* "-u", "me:x" */
		i += ret->slashes + 1;
		i += at(p, i) == ',' ? 1 : 0;
	}
	i = skip_blanks(p, i);
	*ret = opening_at(p, i);
	if (i == start || !(where & REDACT_NEXT) || (ret->quote && closes_string(p, i, ret)))
		return 0;
	return i + (ret->quote ? ret->slashes + 1 : 0);
}

/* mysql -px, curl -u me:x */
static size_t match_program_option(const struct scan *p)
{
	size_t end = p->i, value = 0, start, stop;
	const struct redact_option *o;
	struct opening opening = { .quote = '\0' };

	if (!p->command.program || p->s[p->i] != '-' || !is_word_start(p))
		return 0;
	end = short_word_end(p, p->i);
	o = redact_command_option(&p->command, p->s + p->i, end - p->i, &value);
	if (!o)
		return 0;
	start = p->i + value;
	if (start == end)
		start = option_value(p, end, o->where, &opening);
	if (!start)
		return 0;
	stop = value_end(p, start, &opening);
	if (start > end && redact_looks_like_option(p->s + start, stop - start))
		return 0;
	if (o->after)
		start = find_char(p, start, stop, o->after) + 1;
	if (start == stop && is_quote(at(p, stop)) && !opening.quote) { /* me:"x" */
		opening = opening_at(p, start);
		start = closes_string(p, start, &opening) ? p->n : start + 1;
		stop = start < p->n ? value_end(p, start, &opening) : start;
	}
	if (start >= stop || is_redacted(p, start, stop))
		return 0;
	keep(p, p->i, start);
	buf_puts(p->out, REDACTED);
	return stop - p->i;
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

static bool is_in_same(const struct quoting *a, const struct quoting *b)
{
	return !a->outer || (a->outer == b->outer && a->inner == b->inner);
}

/* Another command begins behind a ; that is not in a string of this one. */
static bool ends_command(const struct scan *p, size_t i)
{
	char c = p->s[i];

	if (c == '\n' ? i > 0 && p->s[i - 1] == '\\' : !strchr(";|&()`", c))
		return false;
	return is_in_same(&p->quoting[QUOTING_SHELL], &p->around);
}

static void advance(struct scan *p, size_t used)
{
	for (size_t end = p->i + used; p->i < end; p->i++) {
		if (ends_command(p, p->i))
			p->command = (struct redact_command){ .program = NULL };
		for (enum quoting_rules rules = 0; rules < QUOTING_MAX_; rules++)
			quoting_pass(&p->quoting[rules], rules, p->s, p->n, p->i);
	}
}

static void read_word(struct scan *p)
{
	const struct redact_program *before = p->command.program;
	size_t end;

	if (!is_word_start(p))
		return;
	end = short_word_end(p, p->i);
	if (end == p->i)
		return;
	redact_command_pass(&p->command, p->s + p->i, end - p->i);
	if (p->command.program != before)
		p->around = p->quoting[QUOTING_SHELL];
}

void redact_text(const char *s, size_t n, struct buf *out)
{
	static size_t (*const matchers[])(const struct scan *) = {
		match_private_key, match_url,   match_program_option,
		match_named,       match_token, match_scheme,
	};
	struct scan p = { .s = s, .n = n, .out = out };

	while (p.i < n) {
		size_t used = 0;

		read_word(&p);
		for (size_t m = 0; m < ARRAY_LEN(matchers) && !used; m++)
			used = matchers[m](&p);
		if (used) {
			p.command.pending = NULL;
		} else {
			buf_putc(out, s[p.i]);
			used = 1;
		}
		advance(&p, used);
	}
}
