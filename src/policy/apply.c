/* SPDX-License-Identifier: Apache-2.0 */
/* The nodes of a settings file, or the words of an option, to the rows of the table. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "policy/build.h"

#define GROUP_KEYS_SHOWN 4

struct origin source_origin(const struct source *s, const struct node *n)
{
	return (struct origin){
		.layer = s->layer,
		.untrusted = s->mode == SOURCE_NARROWING,
		.name = s->name,
		.line = n ? n->line : 0,
		.column = n ? n->column : 0,
	};
}

int source_wrap(const struct source *s, const struct node *n, const char *key, struct error *e)
{
	if (n && n->line)
		return error_wrap(e, "%s:%u:%u: %s", s->file, n->line, n->column, key);
	return error_wrap(e, "%s: %s", s->file, key);
}

int(source_fail)(const struct source *s, const struct node *n, const char *key, struct error *e,
		 const char *fmt, ...)
{
	char what[ERROR_TEXT_MAX];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	(void)error_set(e, EINVAL, "%s", what);
	return source_wrap(s, n, key, e);
}

void builder_note(struct builder *b, const struct origin *o, const char *fmt, ...)
{
	struct text_rules *notes = &b->p->notes;
	va_list ap;
	char *what;

	va_start(ap, fmt);
	what = arena_vprintf(b->a, fmt, ap);
	va_end(ap);
	*ARENA_PUSH(b->a, notes->v, notes->n) = (struct text_rule){
		.text = arena_printf(b->a, "%s: %s", origin_text(b->a, o), what),
		.origin = *o,
	};
}

/* Nothing is asked for: a key that cannot be honoured does no harm then. */
static bool asks_for_nothing(const struct setting *def, const struct node *n)
{
	if (n->kind == NODE_MAP && def->variant == REFUSED_WHEN_THERE)
		return false;
	if (n->kind == NODE_LIST || n->kind == NODE_MAP)
		return n->n == 0;
	if (n->kind == NODE_BOOL || n->kind == NODE_TEXT)
		return strcmp(n->text, "false") == 0;
	return n->kind == NODE_NULL;
}

static int apply_list(struct builder *b, const struct source *s, size_t row, const struct node *n,
		      struct error *e)
{
	int r = 0;

	if (n->kind == NODE_TEXT)
		return list_add(b, s, row, n, e);
	if (n->kind != NODE_LIST)
		return source_fail(s, n, settings_table[row].key, e, "must be a list");
	for (size_t i = 0; r >= 0 && i < n->n; i++)
		r = list_add(b, s, row, &n->v[i], e);
	return r;
}

/* NAME=VALUE; for environment.set also NAME alone, which means: let it through. */
static int apply_map_text(struct builder *b, const struct source *s, size_t row,
			  const struct node *n, struct error *e)
{
	const struct setting *def = &settings_table[row];
	const char *eq = strchr(n->text, '=');
	struct node entry = { .kind = NODE_TEXT };

	if (!eq && def->type == SETTING_ENV)
		return list_add(b, s, (size_t)setting_find("environment.pass"), n, e);
	if (!eq)
		return source_fail(s, n, def->key, e, "must be NAME=VALUE");
	entry.key = arena_strndup(b->a, n->text, (size_t)(eq - n->text));
	entry.text = eq + 1;
	return map_add(b, s, row, &entry, e);
}

static int apply_map(struct builder *b, const struct source *s, size_t row, const struct node *n,
		     struct error *e)
{
	int r = 0;

	if (n->kind == NODE_TEXT)
		return apply_map_text(b, s, row, n, e);
	if (n->kind != NODE_MAP)
		return source_fail(s, n, settings_table[row].key, e, "must be an object");
	for (size_t i = 0; r >= 0 && i < n->n; i++)
		r = map_add(b, s, row, &n->v[i], e);
	return r;
}

int apply_node(struct builder *b, const struct source *s, size_t row, const struct node *n,
	       struct error *e)
{
	const struct setting *def = &settings_table[row];
	struct value v;
	int r;

	switch (def->type) {
	case SETTING_PATHS:
	case SETTING_HOSTS:
	case SETTING_STRINGS:
	case SETTING_SOCKETS:
	case SETTING_PORTS:
	case SETTING_NAMES:
		return n->kind == NODE_NULL ? 0 : apply_list(b, s, row, n, e);
	case SETTING_ENV:
	case SETTING_IGNORE:
	case SETTING_REASONS:
		return n->kind == NODE_NULL ? 0 : apply_map(b, s, row, n, e);
	case SETTING_REFUSED:
		if (!asks_for_nothing(def, n))
			return source_fail(s, n, def->key, e, "not supported: %s", def->help);
		return 0;
	case SETTING_LOCKED: /* read before all others */
		if (s->layer != LAYER_MANAGED)
			return source_fail(s, n, def->key, e, "only the managed settings can lock");
		return 0;
	case SETTING_PROFILES: /* read before all others */
	case SETTING_ACCEPTED:
		return 0;
	case SETTING_BOOL:
	case SETTING_ENUM:
	case SETTING_STRING:
	case SETTING_PORT:
	case SETTING_SIZE:
	case SETTING_DURATION:
	case SETTING_NUMBER:
	case SETTING_COUNT:
		break;
	}
	if (n->kind == NODE_NULL)
		return 0;
	r = value_parse(s, def, n, &v, e);
	return r < 0 ? r : merge_value(b, s, row, n, v, e);
}

static int unknown_key(const struct source *s, const struct node *n, const char *key,
		       struct error *e)
{
	const char *near = setting_suggest(key);
	struct node at = { .line = n->key_line, .column = n->key_column };

	if (setting_find(key) >= 0)
		return source_fail(s, &at, key, e, "in a file, write one object inside the other");
	if (near)
		return source_fail(s, &at, key, e, "unknown key (did you mean \"%s\"?)", near);
	return source_fail(s, &at, key, e, "unknown key");
}

/* "filesystem" alone, where one of its keys is wanted. */
static int group_as_key(const struct builder *b, const struct source *s, const char *group,
			struct error *e)
{
	const char *keys = NULL;

	for (size_t i = 0, shown = 0; i < settings_count && shown < GROUP_KEYS_SHOWN; i++) {
		const struct setting *row = &settings_table[i];

		if (!text_starts(row->key, group) || row->key[strlen(group)] != '.' ||
		    row->type == SETTING_REFUSED || row->type == SETTING_ACCEPTED)
			continue;
		keys = keys ? arena_printf(b->a, "%s, %s", keys, row->key) : row->key;
		shown++;
	}
	return source_fail(s, NULL, group, e, "is a section: name a key of it (%s, ...)",
			   keys ? keys : group);
}

/* The depth of the recursion is that of the table's names: unknown ones end it. */
static int apply_group(struct builder *b, const struct source *s, const struct node *map,
		       const char *prefix, struct error *e)
{
	int r = 0;

	for (size_t i = 0; r >= 0 && i < map->n; i++) {
		const struct node *n = &map->v[i];
		const char *key = prefix ? arena_printf(b->a, "%s.%s", prefix, n->key) : n->key;
		int row = strchr(n->key, '.') ? -1 : setting_find(key);

		if (row >= 0)
			r = apply_node(b, s, (size_t)row, n, e);
		else if (strchr(n->key, '.') || !setting_is_group(key))
			r = unknown_key(s, n, key, e);
		else if (n->kind == NODE_MAP)
			r = apply_group(b, s, n, key, e);
		else if (n->kind != NODE_NULL)
			r = source_fail(s, n, key, e, "must be an object");
	}
	return r;
}

int apply_tree(struct builder *b, const struct source *s, const struct node *root, struct error *e)
{
	int r = apply_group(b, s, root, NULL, e);

	return r < 0 ? r : 0;
}

int apply_text(struct builder *b, const struct source *s, const char *key, const char *value,
	       struct error *e)
{
	struct node n = { .kind = NODE_TEXT, .text = arena_strdup(b->a, value) };
	int row = setting_find(key), r;

	if (row < 0)
		return setting_is_group(key) ? group_as_key(b, s, key, e)
					     : unknown_key(s, &n, key, e);
	r = apply_node(b, s, (size_t)row, &n, e);
	return r < 0 ? r : 0;
}
