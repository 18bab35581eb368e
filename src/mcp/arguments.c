/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Meets what a model wrote: checked JSON of any shape. Every list has a maximum, no text reaches a
 * C string with a NUL in it, and an error names the field and what it wants.
 */
#include "mcp/arguments.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/buf.h"
#include "base/text.h"

enum field_kind {
	FIELD_TEXT,
	FIELD_BYTES, /* text that may hold NUL; its length follows the pointer */
	FIELD_BOOL,
	FIELD_NOT, /* a bool stored the other way round */
	FIELD_NUMBER,
	FIELD_CHOICE,
	FIELD_LANGUAGE,
	FIELD_WORDS,
	FIELD_ENV, /* NAME=value */
	FIELD_FILES,
	FIELD_COMMANDS,
};

struct field {
	const char *name;
	unsigned takes, requires; /* enum argument_set */
	enum field_kind kind;
	size_t offset;
	uint64_t min, max; /* FIELD_NUMBER; lists: max elements */
	const char *choices; /* "a|b" */
	const char *help;
};

#define AT(member) offsetof(struct arguments, member)
#define RUNS (TAKES_EXECUTE | TAKES_EXECUTE_FILE)
#define ALL_RUNS (RUNS | TAKES_BATCH)
#define JOBS (TAKES_OUTPUT | TAKES_KILL)

/* clang-format off */
static const struct field fields[] = {
	{ "path", TAKES_EXECUTE_FILE, TAKES_EXECUTE_FILE, FIELD_TEXT, AT(path), .help =
	  "File to process, relative to the working directory. The code finds its text in "
	  "FILE_CONTENT (file_content in rust and elixir) and its name in FILE_CONTENT_PATH." },
	{ "language", RUNS, RUNS, FIELD_LANGUAGE, AT(language), .help =
	  "Language of the code." },
	{ "code", RUNS, RUNS, FIELD_TEXT, AT(code), .help =
	  "The program. Print what you want to see; javascript may use await and require." },
	{ "commands", TAKES_BATCH, TAKES_BATCH, FIELD_COMMANDS, AT(commands),
	  .max = ARGUMENTS_COMMANDS_MAX, .help = "The commands, each in a sandbox of its own." },
	{ "queries", TAKES_BATCH, 0, FIELD_WORDS, AT(queries), .max = ARGUMENTS_QUERIES_MAX, .help =
	  "Search the outputs for these words and return the best places, instead of all output." },
	{ "intent", RUNS, 0, FIELD_TEXT, AT(intent), .help =
	  "What you look for. A long output is then searched for it and only the best places return." },
	{ "timeout", ALL_RUNS, 0, FIELD_NUMBER, AT(timeout_ms), .min = 1,
	  .max = ARGUMENTS_TIMEOUT_MAX_MS, .help =
	  "Milliseconds after which it is ended; what was printed until then is returned. "
	  "For a batch: of all commands together. Default: no limit." },
	{ "background", RUNS, 0, FIELD_BOOL, AT(background), .help =
	  "Return at once, or after `timeout`, and let it run on; job_output reads what it prints." },
	{ "cwd", ALL_RUNS, 0, FIELD_TEXT, AT(cwd), .help =
	  "Working directory; default: the project." },
	{ "args", RUNS, 0, FIELD_WORDS, AT(args), .max = ARGUMENTS_WORDS_MAX, .help =
	  "Arguments of the program." },
	{ "stdin", RUNS, 0, FIELD_BYTES, AT(input), .help = "Text on its standard input." },
	{ "env", ALL_RUNS, 0, FIELD_ENV, AT(env), .max = ARGUMENTS_WORDS_MAX, .help =
	  "Environment variables, each NAME=value." },
	{ "files", RUNS, 0, FIELD_FILES, AT(files), .max = ARGUMENTS_WORDS_MAX, .help =
	  "Files to write before the program starts, with the rights that it has." },
	{ "concurrency", TAKES_BATCH, 0, FIELD_NUMBER, AT(concurrency), .min = 1,
	  .max = ARGUMENTS_CONCURRENCY_MAX, .help = "How many run at a time; default 1." },
	{ "stopOnError", TAKES_BATCH, 0, FIELD_BOOL, AT(stop_on_error), .help =
	  "Start no further command once one has failed." },
	{ "query_scope", TAKES_BATCH, 0, FIELD_CHOICE, AT(scope), .choices = "batch|global", .help =
	  "Search the outputs of this batch (default), or of all runs that are kept." },
	{ "network", ALL_RUNS, 0, FIELD_NOT, AT(no_network), .help =
	  "false: no network at all for this call. true changes nothing." },
	{ "readOnly", ALL_RUNS, 0, FIELD_BOOL, AT(read_only), .help =
	  "true: nothing but the private /tmp can be written to in this call." },
	{ "encoding", RUNS | TAKES_OUTPUT, 0, FIELD_CHOICE, AT(encoding), .choices = "text|base64",
	  .help = "base64: stdout and stderr of the structured result as base64, for binary output." },
	{ "jobId", JOBS, TAKES_KILL, FIELD_TEXT, AT(run), .help =
	  "The id of a run. Without it job_output lists the runs that are kept." },
	{ "offset", TAKES_OUTPUT, 0, FIELD_NUMBER, AT(offset), .max = UINT32_MAX * (uint64_t)4096,
	  .help = "Byte of the stream to start from; a result says the next one." },
	{ "stream", TAKES_OUTPUT, 0, FIELD_CHOICE, AT(stream), .choices = "stdout|stderr", .help =
	  "Default: stdout, and the end of stderr beside it." },
	{ "wait", TAKES_OUTPUT, 0, FIELD_NUMBER, AT(wait_ms), .max = ARGUMENTS_WAIT_MAX_MS, .help =
	  "Milliseconds to wait for more output or the end of the job." },
	{ "signal", TAKES_KILL, 0, FIELD_CHOICE, AT(signal), .choices = "KILL|TERM|INT", .help =
	  "KILL (default) ends all of its processes at once; TERM and INT ask the program." },
};
/* clang-format on */

/* --- schema ------------------------------------------------------------------------- */

static void schema_choices(struct json *j, const char *choices)
{
	json_key(j, "enum");
	json_begin_array(j);
	while (*choices) {
		size_t n = strcspn(choices, "|");

		json_string_n(j, choices, n);
		choices += n + (choices[n] == '|');
	}
	json_end_array(j);
}

static void schema_languages(struct json *j, const struct languages *l)
{
	json_key(j, "enum");
	json_begin_array(j);
	for (size_t i = 0; i < LANGUAGE_COUNT; i++) {
		if (l->v[i].language)
			json_string(j, language_name(l->v[i].language));
	}
	json_end_array(j);
}

static void schema_text_field(struct json *j, const char *name, const char *help)
{
	json_key(j, name);
	json_begin_object(j);
	json_kstring(j, "type", "string");
	json_kstring(j, "description", help);
	json_end_object(j);
}

/* The objects in a list of files or commands. */
static void schema_items(struct json *j, enum field_kind kind, const struct languages *l)
{
	bool files = kind == FIELD_FILES;

	json_begin_object(j);
	json_kstring(j, "type", "object");
	json_key(j, "properties");
	json_begin_object(j);
	if (files) {
		schema_text_field(j, "path", "Relative to the working directory.");
		schema_text_field(j, "content", "The text of the file.");
	} else {
		schema_text_field(j, "label", "How the result calls it.");
		schema_text_field(j, "command", "A shell command line, or code in `language`.");
		json_key(j, "language");
		json_begin_object(j);
		json_kstring(j, "type", "string");
		schema_languages(j, l);
		json_kstring(j, "description", "Default: shell.");
		json_end_object(j);
	}
	json_end_object(j);
	json_key(j, "required");
	json_begin_array(j);
	if (files)
		json_string(j, "path");
	json_string(j, files ? "content" : "command");
	json_end_array(j);
	json_end_object(j);
}

static const char *schema_type(enum field_kind kind)
{
	switch (kind) {
	case FIELD_BOOL:
	case FIELD_NOT:
		return "boolean";
	case FIELD_NUMBER:
		return "integer";
	case FIELD_WORDS:
	case FIELD_ENV:
	case FIELD_FILES:
	case FIELD_COMMANDS:
		return "array";
	case FIELD_TEXT:
	case FIELD_BYTES:
	case FIELD_CHOICE:
	case FIELD_LANGUAGE:
		break;
	}
	return "string";
}

static void schema_field(struct json *j, const struct field *f, const struct languages *l)
{
	const char *type = schema_type(f->kind);

	json_key(j, f->name);
	json_begin_object(j);
	json_kstring(j, "type", type);
	json_kstring(j, "description", f->help);
	if (f->kind == FIELD_CHOICE)
		schema_choices(j, f->choices);
	if (f->kind == FIELD_LANGUAGE)
		schema_languages(j, l);
	if (f->kind == FIELD_NUMBER) {
		json_kint(j, "minimum", (int64_t)f->min);
		json_kint(j, "maximum", (int64_t)f->max);
	}
	if (strcmp(type, "array") == 0) {
		json_key(j, "items");
		if (f->kind == FIELD_FILES || f->kind == FIELD_COMMANDS) {
			schema_items(j, f->kind, l);
		} else {
			json_begin_object(j);
			json_kstring(j, "type", "string");
			json_end_object(j);
		}
	}
	json_end_object(j);
}

void arguments_schema(struct json *j, enum argument_set set, const struct languages *l)
{
	json_begin_object(j);
	json_kstring(j, "type", "object");
	json_key(j, "properties");
	json_begin_object(j);
	for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
		if (fields[i].takes & set)
			schema_field(j, &fields[i], l);
	}
	json_end_object(j);
	json_key(j, "required");
	json_begin_array(j);
	for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
		if (fields[i].requires & set)
			json_string(j, fields[i].name);
	}
	json_end_array(j);
	json_end_object(j);
}

/* --- reading ------------------------------------------------------------------------- */

struct reader {
	struct arena *a;
	const struct field *field;
	struct arguments *out;
	struct error *e;
};

static int wants(const struct reader *r, const char *what)
{
	return error_set(r->e, EINVAL, "%s: %s", r->field->name, what);
}

static void *place(const struct reader *r)
{
	return (char *)r->out + r->field->offset;
}

/* The text of a string, or of a number or word where a model left the quotes out. */
static int decode(const struct reader *r, const struct json_span *value, char **ret,
		  size_t *ret_len)
{
	struct buf b = BUF_INIT(BUF_MAX_TEXT);

	if (value->kind == JSON_ARRAY || value->kind == JSON_OBJECT)
		return wants(r, "must be a text");
	json_unquote(value, &b);
	*ret = arena_strndup(r->a, buf_str(&b), b.len);
	*ret_len = b.len;
	buf_done(&b);
	return 0;
}

/* "\u0000" has become U+FFFD: no text here holds a NUL. */
static int read_plain(const struct reader *r, const struct json_span *value, char **ret)
{
	size_t len = 0;

	*ret = NULL;
	return decode(r, value, ret, &len);
}

/* A list or an object that came as a string: what the string holds. */
static void unwrap(const struct reader *r, const struct json_span *value, struct json_span *ret)
{
	struct json_span inner;
	char *text = NULL;
	size_t len = 0;

	*ret = *value;
	if (value->kind != JSON_STRING || decode(r, value, &text, &len) < 0)
		return;
	text += strspn(text, " \t\r\n");
	if ((*text == '[' || *text == '{') && json_parse(text, strlen(text), &inner) == 0)
		*ret = inner;
}

static int read_bool(const struct reader *r, const struct json_span *value, bool *ret)
{
	char *text = NULL;
	int err = read_plain(r, value, &text);

	if (err < 0)
		return err;
	for (char *c = text; *c; c++)
		*c = ascii_lower(*c);
	if (strcmp(text, "true") != 0 && strcmp(text, "false") != 0)
		return wants(r, "must be true or false");
	*ret = strcmp(text, "true") == 0;
	return 0;
}

/* A whole number; "5000", 5000.0 and 5e3 are the same. */
static int read_number(const struct reader *r, const struct json_span *value, uint64_t *ret)
{
	const struct field *f = r->field;
	double v;
	char *text = NULL;
	int err = read_plain(r, value, &text);

	if (err < 0)
		return err;
	if (text_parse_double(text, (double)f->max, &v) < 0 || v < (double)f->min)
		return error_set(r->e, EINVAL, "%s: must be a number from %" PRIu64 " to %" PRIu64,
				 f->name, f->min, f->max);
	*ret = (uint64_t)v;
	return 0;
}

static int read_choice(const struct reader *r, const struct json_span *value, const char **ret)
{
	const char *choices = r->field->choices;
	char *text = NULL;
	int err = read_plain(r, value, &text);

	while (err == 0 && *choices) {
		size_t n = strcspn(choices, "|");

		if (strlen(text) == n && memcmp(choices, text, n) == 0) {
			*ret = text;
			return 0;
		}
		choices += n + (choices[n] == '|');
	}
	return err < 0 ? err
		       : error_set(r->e, EINVAL, "%s: must be one of %s", r->field->name,
				   r->field->choices);
}

static int read_language(const struct reader *r, const struct json_span *value,
			 const struct language **ret)
{
	_cleanup_buf_ struct buf shown = BUF_INIT(256);
	char *text = NULL;
	int err = read_plain(r, value, &text);

	if (err < 0)
		return err;
	*ret = language_by_name(text);
	if (*ret)
		return 0;
	text_append_safe(&shown, text);
	return error_set(r->e, EINVAL, "language: there is no \"%s\" here", buf_str(&shown));
}

static int push_word(const struct reader *r, struct words *w, char *text)
{
	if (w->n == r->field->max)
		return error_set(r->e, E2BIG, "%s: at most %" PRIu64, r->field->name,
				 r->field->max);
	*ARENA_PUSH(r->a, w->v, w->n) = text;
	*ARENA_PUSH(r->a, w->v, w->n) = NULL;
	w->n--;
	return 0;
}

static int read_words(const struct reader *r, const struct json_span *value, struct words *ret)
{
	struct json_span list, item;
	struct json_walk w;
	char *text = NULL;
	int err = 0;

	unwrap(r, value, &list);
	if (list.kind != JSON_ARRAY) {
		err = read_plain(r, value, &text);
		return err < 0 ? err : push_word(r, ret, text);
	}
	w = json_walk(&list);
	while (err == 0 && json_next_member(&w, NULL, &item)) {
		err = read_plain(r, &item, &text);
		if (err == 0)
			err = push_word(r, ret, text);
	}
	return err;
}

static int push_variable(const struct reader *r, struct words *ret, const char *name,
			 const char *value)
{
	if (!*name || ascii_digit(*name))
		return wants(r, "each must be NAME=value");
	for (const char *c = name; *c; c++) {
		if (!ascii_alnum(*c) && *c != '_')
			return wants(r, "a name consists of letters, digits and _");
	}
	return push_word(r, ret, arena_printf(r->a, "%s=%s", name, value));
}

/* ["NAME=value", ...], or the object that models like better. */
static int read_env(const struct reader *r, const struct json_span *value, struct words *ret)
{
	struct json_span map, key, item;
	struct words plain = { 0 };
	struct json_walk w;
	int err = 0;

	unwrap(r, value, &map);
	if (map.kind != JSON_OBJECT) {
		err = read_words(r, value, &plain);
		for (size_t i = 0; err == 0 && i < plain.n; i++) {
			size_t n = strcspn(plain.v[i], "=");

			if (!plain.v[i][n])
				return wants(r, "each must be NAME=value");
			err = push_variable(r, ret, arena_strndup(r->a, plain.v[i], n),
					    plain.v[i] + n + 1);
		}
		return err;
	}
	w = json_walk(&map);
	while (err == 0 && json_next_member(&w, &key, &item)) {
		char *name = NULL, *text = NULL;

		err = read_plain(r, &key, &name);
		if (err == 0)
			err = read_plain(r, &item, &text);
		if (err == 0)
			err = push_variable(r, ret, name, text);
	}
	return err;
}

/* One file of the canonical list; both are strings. */
static int put_file(const struct reader *r, struct json *j, const struct json_span *path,
		    const struct json_span *content)
{
	if (path->kind != JSON_STRING || content->kind != JSON_STRING)
		return wants(r, "each must have a path and a content, both texts");
	json_begin_object(j);
	json_key(j, "path");
	json_raw(j, path->text, path->len);
	json_key(j, "content");
	json_raw(j, content->text, content->len);
	json_end_object(j);
	return 0;
}

/* [{"path":...,"content":...}], or an object of contents by path. */
static int read_files(const struct reader *r, const struct json_span *value, const char **ret)
{
	_cleanup_buf_ struct buf b = BUF_INIT(BUF_MAX_TEXT);
	struct json j = { .out = &b };
	struct json_span list, key, item, path = { 0 }, content = { 0 };
	struct json_walk w;
	uint64_t n = 0;
	int err = 0;

	unwrap(r, value, &list);
	if (list.kind != JSON_ARRAY && list.kind != JSON_OBJECT)
		return wants(r, "must be a list of files, each with path and content");
	w = json_walk(&list);
	json_begin_array(&j);
	while (err == 0 && json_next_member(&w, &key, &item)) {
		if (++n > r->field->max)
			return error_set(r->e, E2BIG, "files: at most %" PRIu64, r->field->max);
		if (list.kind == JSON_OBJECT)
			err = put_file(r, &j, &key, &item);
		else if (!json_find(&item, "path", &path) || !json_find(&item, "content", &content))
			err = wants(r, "each must have a path and a content");
		else
			err = put_file(r, &j, &path, &content);
	}
	json_end_array(&j);
	if (err == 0 && n)
		*ret = arena_strdup(r->a, buf_str(&b));
	return err;
}

static int read_command(const struct reader *r, const struct json_span *value,
			struct named_command *ret)
{
	struct json_span item = *value, part;
	char *text = NULL;
	int err = 0;

	unwrap(r, value, &item);
	ret->label = arena_printf(r->a, "cmd_%zu", r->out->n_commands);
	ret->language = language_by_name("shell");
	if (item.kind != JSON_OBJECT) {
		err = read_plain(r, value, &text);
		ret->code = text;
		return err;
	}
	if (!json_find(&item, "command", &part) && !json_find(&item, "code", &part))
		return wants(r, "each must have a command");
	err = read_plain(r, &part, &text);
	ret->code = text;
	if (err == 0 && json_find(&item, "label", &part) && part.kind != JSON_NULL) {
		err = read_plain(r, &part, &text);
		ret->label = text;
	}
	if (err == 0 && json_find(&item, "language", &part) && part.kind != JSON_NULL)
		err = read_language(r, &part, &ret->language);
	return err;
}

static int read_commands(const struct reader *r, const struct json_span *value)
{
	struct arguments *out = r->out;
	struct json_span list, item;
	struct json_walk w;
	int err = 0;

	unwrap(r, value, &list);
	if (list.kind != JSON_ARRAY)
		return read_command(r, value, ARENA_PUSH(r->a, out->commands, out->n_commands));
	w = json_walk(&list);
	while (err == 0 && json_next_member(&w, NULL, &item)) {
		if (out->n_commands == r->field->max)
			return error_set(r->e, E2BIG, "commands: at most %" PRIu64, r->field->max);
		err = read_command(r, &item, ARENA_PUSH(r->a, out->commands, out->n_commands));
	}
	return err == 0 && out->n_commands == 0 ? wants(r, "there is none") : err;
}

static int read_bytes(const struct reader *r, const struct json_span *value)
{
	char *text = NULL;
	int err = decode(r, value, &text, &r->out->input_len);

	if (err == 0)
		r->out->input = text;
	return err;
}

static int read_field(const struct reader *r, const struct json_span *value)
{
	bool yes;
	char *text = NULL;
	int err;

	switch (r->field->kind) {
	case FIELD_TEXT:
		err = read_plain(r, value, &text);
		if (err == 0)
			*(const char **)place(r) = text;
		return err;
	case FIELD_BYTES:
		return read_bytes(r, value);
	case FIELD_BOOL:
		return read_bool(r, value, place(r));
	case FIELD_NOT:
		err = read_bool(r, value, &yes);
		if (err == 0)
			*(bool *)place(r) = !yes;
		return err;
	case FIELD_NUMBER:
		return read_number(r, value, place(r));
	case FIELD_CHOICE:
		return read_choice(r, value, place(r));
	case FIELD_LANGUAGE:
		return read_language(r, value, place(r));
	case FIELD_WORDS:
		return read_words(r, value, place(r));
	case FIELD_ENV:
		return read_env(r, value, place(r));
	case FIELD_FILES:
		return read_files(r, value, place(r));
	case FIELD_COMMANDS:
		return read_commands(r, value);
	}
	return -EINVAL;
}

static const struct field *find_field(enum argument_set set, const struct json_span *key)
{
	for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
		if ((fields[i].takes & set) && json_equals(key, fields[i].name))
			return &fields[i];
	}
	return NULL;
}

static int refuse_unknown(struct arena *a, enum argument_set set, const struct json_span *key,
			  struct error *e)
{
	_cleanup_buf_ struct buf name = BUF_INIT(BUF_MAX_TEXT), shown = BUF_INIT(256),
				 known = BUF_INIT(BUF_MAX_TEXT);
	const char *near = NULL;
	unsigned best = 4;

	json_unquote(key, &name);
	text_append_safe(&shown, buf_str(&name));
	for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
		unsigned d;

		if (!(fields[i].takes & set))
			continue;
		buf_printf(&known, "%s%s", known.len ? ", " : "", fields[i].name);
		d = name.len < 40 ? text_distance(buf_str(&name), fields[i].name) : best;
		if (d < best) {
			best = d;
			near = fields[i].name;
		}
	}
	return error_set(e, EINVAL, "there is no argument \"%s\"%s; the arguments are: %s",
			 buf_str(&shown), near ? arena_printf(a, " (did you mean %s?)", near) : "",
			 buf_str(&known));
}

int arguments_read(struct arena *a, enum argument_set set, const struct json_span *object,
		   struct arguments *ret, struct error *e)
{
	struct arguments out = { .concurrency = 1 };
	struct reader r = { .a = a, .out = &out, .e = e };
	struct json_span args, key, value;
	bool seen[ARRAY_LEN(fields)] = { false };
	struct json_walk w;

	r.field = &fields[0];
	if (object->text) {
		unwrap(&r, object, &args);
		if (args.kind != JSON_OBJECT)
			return error_set(e, EINVAL, "the arguments must be an object");
		w = json_walk(&args);
		while (json_next_member(&w, &key, &value)) {
			int err;

			r.field = find_field(set, &key);
			if (!r.field)
				return refuse_unknown(a, set, &key, e);
			if (value.kind == JSON_NULL)
				continue; /* how some clients leave a field out */
			if (seen[r.field - fields])
				return error_set(e, EINVAL, "%s: is there twice", r.field->name);
			seen[r.field - fields] = true;
			err = read_field(&r, &value);
			if (err < 0)
				return err;
		}
	}
	for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
		if ((fields[i].requires & set) && !seen[i])
			return error_set(e, EINVAL, "%s is missing: %s", fields[i].name,
					 fields[i].help);
	}
	*ret = out;
	return 0;
}
