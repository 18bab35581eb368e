/* SPDX-License-Identifier: Apache-2.0 */
/* Redaction of what has a structure: the words of a command, JSON. */
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "audit/redact.h"
#include "audit/redact_names.h"
#include "base/json.h"
#include "base/json_read.h"
#include "base/text.h"

static const char *program_of(const char *word)
{
	const char *slash = strrchr(word, '/');

	return slash ? slash + 1 : word;
}

/* Is one of the words before i the name of such a program (env X=1 curl ...)? */
static bool is_run(char *const *argv, size_t i, const char *const *programs)
{
	for (size_t k = 0; k < i; k++) {
		for (size_t m = 0; programs[m]; m++) {
			if (strcmp(program_of(argv[k]), programs[m]) == 0)
				return true;
		}
	}
	return false;
}

static bool is_password_letter(char *const *argv, size_t i)
{
	static const char *const programs[] = { "mysql",       "mysqldump",     "mysqladmin",
						"mysqlimport", "mariadb",       "mariadb-dump",
						"sshpass",     "mariadb-admin", NULL };

	return strncmp(argv[i], "-p", 2) == 0 && is_run(argv, i, programs);
}

static bool is_user_option(char *const *argv, size_t i)
{
	static const char *const programs[] = { "curl", "http", "https", "xh", NULL };

	return (strcmp(argv[i], "-u") == 0 || strcmp(argv[i], "--user") == 0 ||
		strcmp(argv[i], "-a") == 0 || strcmp(argv[i], "--auth") == 0) &&
	       is_run(argv, i, programs);
}

/* Does the word announce that the next one is a secret? */
static bool announces(char *const *argv, size_t i)
{
	const char *word = argv[i];

	if (word[0] != '-' || strchr(word, '='))
		return false;
	/* for the others -p alone asks for it */
	if (is_password_letter(argv, i))
		return !word[2] && strcmp(program_of(argv[0]), "sshpass") == 0;
	return redact_name(word, strlen(word)) == REDACT_VALUE;
}

/* -c, -lc: the next word is a script, whose first word may be an assignment */
static bool is_script_option(const char *word)
{
	return word[0] == '-' && word[1] != '-' && text_ends(word, "c");
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
	const char *word = argv[i], *colon;
	size_t value;

	if (i > 0 && *word && (word[0] != '-' || !word[1]) && announces(argv, i - 1)) {
		buf_puts(out, REDACTED);
		return;
	}
	colon = i > 0 && is_user_option(argv, i - 1) ? strchr(word, ':') : NULL;
	if (colon && colon[1]) {
		buf_append(out, word, (size_t)(colon + 1 - word));
		buf_puts(out, REDACTED);
	} else if (is_password_letter(argv, i) && word[2]) {
		buf_puts(out, "-p" REDACTED);
	} else if (!(i > 0 && is_script_option(argv[i - 1])) && is_assignment(word, &value)) {
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
	bool whole = name == REDACT_VALUE || name == REDACT_HEADER;
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
