/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A lexer for the part of the shell's grammar that is provably one simple command.
 * The text is the agent's and hostile: it wants to be taken for `docker ps` and to
 * do something else.
 *
 * An allow-list, by state: outside quotes only the bytes of `plain` and what follows a
 * backslash; in single quotes everything but control bytes; in double quotes everything
 * but control bytes, $ and `. Every other byte ends the parse with the reason. So what
 * this file does not know (a new operator, another shell's) is refused, not misread.
 *
 * Where shells differ, the answer is no: $'...' (dash has none), =word and leading ! (zsh,
 * history), bytes above 127 outside quotes (a blank in some locales), a backslash after
 * such a byte (part of a character in others), \001 and \177 (bash's own marks).
 */
#include "policy/shell_words.h"

#include <string.h>

#include "base/buf.h"
#include "base/text.h"

struct lexer {
	struct arena *a;
	const unsigned char *s;
	size_t len, at;
	struct buf word;
	bool in_word; /* a word has begun; it may be empty ('') */
	struct shell_words *out;
};

/* Words that begin or belong to a compound command, or are a prefix of a pipeline. */
static const char *const reserved[] = {
	"if",     "then",    "else", "elif",      "fi",     "do",     "done",     "case",
	"esac",   "for",     "in",   "while",     "until",  "select", "function", "coproc",
	"repeat", "foreach", "end",  "time",      "!",      "{",      "}",        "[[",
	"]]",     "((",      "))",   "nocorrect", "noglob",
};

static void refuse(struct lexer *l, const char *reason)
{
	if (l->out->reason)
		return;
	l->out->reason = reason;
	l->out->offset = l->at;
}

static const char *why_special(unsigned char c)
{
	switch (c) {
	case ';':
	case '&':
	case '|':
		return "more than one command (; & |)";
	case '<':
	case '>':
		return "a redirection (< >)";
	case '(':
	case ')':
		return "a subshell, function or array (parentheses)";
	case '$':
		return "an expansion ($)";
	case '`':
		return "a command substitution (`)";
	case '*':
	case '?':
	case '[':
		return "a file name pattern (* ? [)";
	case '{':
	case '}':
		return "braces outside quotes";
	case '~':
		return "a home directory (~)";
	case '!':
		return "a word that begins with ! outside quotes";
	case '=':
		return "a word that begins with = outside quotes";
	default:
		return c >= 0x80 ? "a byte above 127 outside quotes" : "a control byte";
	}
}

/* Never part of a literal, quoted or not. */
static bool is_bad_control(unsigned char c)
{
	return (c < 0x20 && c != '\t' && c != '\n') || c == 0x7f;
}

static bool is_plain(unsigned char c)
{
	return ascii_alnum((char)c) || (c && strchr("_-./,:@%+=^#]~!", c));
}

/* Plain bytes that mean something at the start of a word, or after : and =. */
static bool is_special_here(const struct lexer *l, unsigned char c)
{
	/* not the byte before in the text, which may be a joined line */
	char before = l->word.len > 0 ? l->word.data[l->word.len - 1] : '\0';

	if (c == '~')
		return !l->in_word || before == ':' || before == '=';
	return (c == '!' || c == '=') && !l->in_word;
}

static void put(struct lexer *l, unsigned char c)
{
	l->in_word = true;
	buf_putc(&l->word, (char)c);
}

static void end_word(struct lexer *l)
{
	struct shell_words *out = l->out;

	if (!l->in_word)
		return;
	if (out->n >= SHELL_WORDS_MAX)
		refuse(l, "too many words");
	else
		*ARENA_PUSH(l->a, out->v, out->n) = arena_strdup(l->a, buf_str(&l->word));
	l->word.len = 0;
	if (l->word.data)
		l->word.data[0] = '\0';
	l->in_word = false;
}

/* After the opening quote; leaves `at` on the closing one. */
static void single_quotes(struct lexer *l)
{
	l->in_word = true;
	for (; l->at < l->len && l->s[l->at] != '\''; l->at++) {
		if (is_bad_control(l->s[l->at])) {
			refuse(l, "a control byte");
			return;
		}
		put(l, l->s[l->at]);
	}
	if (l->at == l->len)
		refuse(l, "a quote without its end (')");
}

/* A backslash in double quotes: it quotes four characters and joins lines. */
static void escape_in_double_quotes(struct lexer *l, bool after_high)
{
	unsigned char next = l->at + 1 < l->len ? l->s[l->at + 1] : '\0';

	if (after_high) {
		refuse(l, "a backslash after a byte above 127");
	} else if (next == '\n') {
		l->at++;
	} else if (next && strchr("$`\"\\", next)) {
		put(l, next);
		l->at++;
	} else {
		put(l, '\\');
	}
}

static void double_quotes(struct lexer *l)
{
	bool high = false;

	l->in_word = true;
	for (; l->at < l->len && l->s[l->at] != '"'; l->at++) {
		unsigned char c = l->s[l->at];

		if (c == '$' || c == '`')
			refuse(l, why_special(c));
		else if (is_bad_control(c))
			refuse(l, "a control byte");
		else if (c == '\\')
			escape_in_double_quotes(l, high);
		else
			put(l, c);
		if (l->out->reason)
			return;
		high = high || c >= 0x80;
	}
	if (l->at == l->len)
		refuse(l, "a quote without its end (\")");
}

/* A backslash outside quotes. */
static void escape(struct lexer *l)
{
	unsigned char next = l->at + 1 < l->len ? l->s[l->at + 1] : '\0';

	l->at++;
	if (l->at >= l->len)
		refuse(l, "a backslash at the end");
	else if (next >= 0x80 || next == '\t' || is_bad_control(next))
		refuse(l, why_special(next >= 0x80 ? next : '\0'));
	else if (next != '\n')
		put(l, next);
}

/* To the end of the line; a backslash does not lengthen it. */
static void comment(struct lexer *l)
{
	while (l->at + 1 < l->len && l->s[l->at + 1] != '\n')
		l->at++;
}

/* One byte outside quotes, or one quoted stretch. */
static void step(struct lexer *l, bool *line_ended)
{
	unsigned char c = l->s[l->at];

	if (c == ' ' || c == '\t') {
		end_word(l);
		return;
	}
	if (c == '\n') {
		end_word(l);
		*line_ended = l->out->n > 0;
		return;
	}
	if (c == '#' && !l->in_word) {
		comment(l);
		return;
	}
	if (*line_ended) {
		refuse(l, "more than one command (a second line)");
		return;
	}
	if (c == '\'' || c == '"') {
		l->at++;
		if (c == '"')
			double_quotes(l);
		else
			single_quotes(l);
	} else if (c == '\\') {
		escape(l);
	} else if (!is_plain(c) || is_special_here(l, c)) {
		refuse(l, why_special(c));
	} else {
		put(l, c);
	}
}

/* What only the first word decides. */
static void check_first_word(struct lexer *l)
{
	const struct shell_words *out = l->out;

	l->at = 0;
	if (out->reason)
		return;
	if (out->n == 0) {
		refuse(l, "no command");
		return;
	}
	if (strchr(out->v[0], '='))
		refuse(l, "a variable assignment");
	for (size_t i = 0; i < ARRAY_LEN(reserved); i++) {
		if (strcmp(out->v[0], reserved[i]) == 0)
			refuse(l, "a word of the shell's own grammar");
	}
}

void shell_words_parse(struct arena *a, const char *text, size_t len, struct shell_words *ret)
{
	struct lexer l = { .a = a,
			   .s = (const unsigned char *)text,
			   .len = len,
			   .word = BUF_INIT(SHELL_TEXT_MAX + 1),
			   .out = ret };
	bool line_ended = false;

	*ret = (struct shell_words){ 0 };
	if (len > SHELL_TEXT_MAX)
		refuse(&l, "the line is too long");
	else if (memchr(text, '\0', len))
		refuse(&l, "a NUL byte");
	for (; !ret->reason && l.at < len; l.at++)
		step(&l, &line_ended);
	if (!ret->reason)
		end_word(&l);
	check_first_word(&l);
	buf_done(&l.word);
	*ARENA_PUSH(a, ret->v, ret->n) = NULL;
	ret->n--;
}
