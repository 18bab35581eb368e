/* SPDX-License-Identifier: Apache-2.0 */
/* Redaction of what has a structure: the words of a command, JSON. */
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "audit/redact.h"
#include "audit/redact_command.h"
#include "audit/redact_names.h"
#include "base/json.h"
#include "base/json_read.h"
#include "base/text.h"

#define WORDS_BACK 256 /* looked at before a word; there may be very many */

static const char *program_of(const char *word)
{
	const char *slash = strrchr(word, '/');

	return slash ? slash + 1 : word;
}

static const char *behind_last(const char *word, const char *chars)
{
	const char *part = word;

	for (; *word; word++) {
		if (strchr(chars, *word))
			part = word + 1;
	}
	return part;
}

/* Is one of the words before i the name of such a program (env X=1 curl ...)? */
static bool is_run(char *const *argv, size_t i, const char *const *programs)
{
	for (size_t k = i > WORDS_BACK ? i - WORDS_BACK : 0; k < i; k++) {
		for (size_t m = 0; programs[m]; m++) {
			if (strcmp(program_of(argv[k]), programs[m]) == 0)
				return true;
		}
	}
	return false;
}

/* What the words before i tell of it: the first one, and as many as it takes. */
static struct redact_command command_before(char *const *argv, size_t i)
{
	struct redact_command c = { .program = NULL };
	size_t from = i > WORDS_BACK ? i - WORDS_BACK : 1;

	if (i > 0)
		redact_command_pass(&c, argv[0], strlen(argv[0]));
	for (size_t k = from; k < i; k++) {
		if (strcmp(argv[k], ";") == 0 || strcmp(argv[k], "|") == 0 ||
		    strcmp(argv[k], "&&") == 0)
			c = (struct redact_command){ .program = NULL };
		else
			redact_command_pass(&c, argv[k], strlen(argv[k]));
	}
	return c;
}

/* Does the word announce that the next one is a secret: --password, config set //host/:_authToken? */
static bool announces(const char *word, const struct redact_command *c)
{
	const char *name = word;

	if (strchr(word, '=') || c->was_option)
		return false;
	if (word[0] != '-' && c->setting != SETTING_NAMED)
		return false;
	if (word[0] != '-')
		name = behind_last(word, ":/");
	return redact_name(name, strlen(name)) == REDACT_VALUE;
}

/* The value at word[value], behind `after` if there is one. false = there is no secret in it. */
static bool put_value_of(const struct redact_option *o, const char *word, size_t value,
			 struct buf *out)
{
	const char *start = word + value;

	if (o->after) {
		start = strchr(start, o->after);
		start = start ? start + 1 : "";
	}
	if (!*start)
		return false;
	buf_append(out, word, (size_t)(start - word));
	buf_puts(out, REDACTED);
	return true;
}

static bool put_program_word(const struct redact_command *c, const char *word, struct buf *out)
{
	size_t n = strlen(word), value = 0;
	const struct redact_option *o;

	if (c->pending)
		return !redact_looks_like_option(word, n) && put_value_of(c->pending, word, 0, out);
	o = redact_command_option(c, word, n, &value);
	return o && value < n && put_value_of(o, word, value, out);
}

/* -c, -lc, -S of env: the next word is a script, whose first word may be an assignment */
static bool is_script_option(const char *word)
{
	return word[0] == '-' && word[1] != '-' && (text_ends(word, "c") || text_ends(word, "S"));
}

/* Programs that take a word for a script: an assignment may be the first of its commands. */
static bool may_be_script(char *const *argv, size_t i)
{
	static const char *const runners[] = { "sh",     "bash",    "dash",     "zsh",   "ksh",
					       "fish",   "ash",     "busybox",  "eval",  "su",
					       "ssh",    "watch",   "parallel", "perl",  "ruby",
					       "python", "python3", "node",     "xargs", NULL };

	return (i > 0 && is_script_option(argv[i - 1])) || is_run(argv, i, runners) ||
	       strpbrk(argv[i], "\r\n");
}

/* NAME=VALUE as a whole word: the value goes to its end, whatever is in it. */
static bool is_assignment(const char *word, size_t *ret_value)
{
	size_t n = strcspn(word, "=");

	for (size_t i = 0; i < n; i++) {
		if (!ascii_alnum(word[i]) && !strchr("-_.", word[i]))
			return false;
	}
	*ret_value = n + 1;
	return word[n] == '=' && word[n + 1] && redact_name(word, n) == REDACT_VALUE;
}

void redact_argument(char *const *argv, size_t i, struct buf *out)
{
	struct redact_command c = command_before(argv, i);
	const char *word = argv[i];
	size_t value;

	if (i > 0 && *word && !redact_looks_like_option(word, strlen(word)) &&
	    announces(argv[i - 1], &c)) {
		buf_puts(out, REDACTED);
	} else if (put_program_word(&c, word, out)) {
		return;
	} else if (!may_be_script(argv, i) && is_assignment(word, &value)) {
		buf_append(out, word, value);
		buf_puts(out, REDACTED);
	} else {
		redact_text(word, strlen(word), out);
	}
}

static void put_string(struct json *j, const struct json_span *value, bool whole)
{
	_cleanup_buf_ struct buf plain = BUF_INIT(BUF_MAX_TEXT), clean = BUF_INIT(BUF_MAX_TEXT);

	json_unquote(value, &plain);
	if (whole)
		buf_puts(&clean, REDACTED);
	else
		redact_text(buf_str(&plain), plain.len, &clean);
	json_string(j, buf_str(&clean));
}

static enum redact_name name_of(const struct json_span *key)
{
	_cleanup_buf_ struct buf b = BUF_INIT(BUF_MAX_TEXT);

	json_unquote(key, &b);
	return redact_name(buf_str(&b), b.len);
}

/* Bounded by the depth that json_parse() lets through. */
static void put_value(struct json *j, const struct json_span *value, enum redact_name name)
{
	bool whole = name != REDACT_NOT && name != REDACT_COUNT;
	struct json_walk w = json_walk(value);
	struct json_span key, member;

	switch (value->kind) {
	case JSON_STRING:
		put_string(j, value, whole && value->len > 2);
		return;
	case JSON_OBJECT:
		json_begin_object(j);
		while (json_next_member(&w, &key, &member)) {
			_cleanup_buf_ struct buf b = BUF_INIT(BUF_MAX_TEXT);

			json_unquote(&key, &b);
			json_key(j, buf_str(&b));
			put_value(j, &member, whole ? name : name_of(&key));
		}
		json_end_object(j);
		return;
	case JSON_ARRAY:
		json_begin_array(j);
		while (json_next_member(&w, NULL, &member))
			put_value(j, &member, name);
		json_end_array(j);
		return;
	case JSON_NUMBER:
		if (whole) {
			json_string(j, REDACTED);
			return;
		}
		break;
	case JSON_NULL:
	case JSON_BOOL:
		break;
	}
	json_raw(j, value->text, value->len);
}

int redact_json(const char *s, size_t n, struct buf *out)
{
	struct json j = { .out = out };
	struct json_span value;

	if (json_parse(s, n, &value) < 0)
		return -EINVAL;
	put_value(&j, &value, REDACT_NOT);
	return 0;
}
