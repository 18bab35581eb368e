/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A policy as JSON: an object in the shape of a settings file, which can be loaded
 * again, and beside it "origins" in the same shape, "protected" and "notes".
 */
#include <string.h>

#include "base/json.h"
#include "policy/build.h"
#include "policy/match_path.h"

struct printer {
	struct json j;
	const struct policy *p;
	struct arena *a;
	bool origins; /* print where things came from instead of what they are */
	unsigned layers; /* entries of these only, one bit each */
};

static bool is_wanted(const struct printer *pr, const struct origin *o)
{
	return pr->layers & 1u << o->layer;
}

static void put_origin(struct printer *pr, const struct origin *o)
{
	json_string(&pr->j, origin_text(pr->a, o));
}

static void put_scalar(struct printer *pr, const struct setting *row)
{
	struct value v = value_get(pr->p, row);
	struct json *j = &pr->j;

	if (row->type == SETTING_BOOL)
		json_bool(j, v.u != 0);
	else if (row->type == SETTING_ENUM)
		json_string(j, row->values[v.u]);
	else if (row->type == SETTING_STRING)
		json_string(j, v.s);
	else if (row->type == SETTING_NUMBER)
		json_double(j, v.d);
	else if (row->type == SETTING_DURATION && v.u % 1000)
		json_string(j, arena_printf(pr->a, "%llums", (unsigned long long)v.u));
	else
		json_int(j, (int64_t)(row->type == SETTING_DURATION ? v.u / 1000 : v.u));
}

/* Absolute, so that it means the same wherever it is loaded again. */
static void put_path(struct printer *pr, const struct path_rule *r)
{
	struct json *j = &pr->j;

	if (r->glob || !r->path[strcspn(r->path, "*?[\\")]) {
		json_string(j, r->path);
		return;
	}
	json_begin_object(j);
	json_kstring(j, "path", r->path);
	json_kbool(j, "literal", true);
	json_end_object(j);
}

static void put_paths(struct printer *pr, const struct setting *row)
{
	const struct path_rules *rules = &pr->p->fs.rules;

	for (size_t i = 0; i < rules->n; i++) {
		const struct path_rule *r = &rules->v[i];

		if (PATHS_VARIANT(r->access, r->verdict) != row->variant ||
		    !is_wanted(pr, &r->origin))
			continue;
		if (pr->origins)
			put_origin(pr, &r->origin);
		else
			put_path(pr, r);
	}
}

static void put_names(struct printer *pr, const struct setting *row)
{
	const struct policy_filesystem *fs = &pr->p->fs;
	bool lift = row->variant == NAMES_LIFT;

	for (size_t i = 0; i < fs->n_protected; i++) {
		const struct protected_name *n = &fs->protected[i];

		const struct origin *o = lift ? &n->lifted_by : &n->origin;

		if ((lift ? !n->lifted : n->origin.layer == LAYER_DEFAULT) || !is_wanted(pr, o))
			continue;
		if (pr->origins)
			put_origin(pr, o);
		else
			json_string(&pr->j, n->pattern);
	}
}

static void put_text(struct printer *pr, const char *text, const struct origin *o)
{
	if (is_wanted(pr, o))
		json_string(&pr->j, pr->origins ? origin_text(pr->a, o) : text);
}

static void put_list(struct printer *pr, const struct setting *row)
{
	const void *at = (const char *)pr->p + row->offset;

	json_begin_array(&pr->j);
	if (row->type == SETTING_PATHS) {
		put_paths(pr, row);
	} else if (row->type == SETTING_NAMES) {
		put_names(pr, row);
	} else if (row->type == SETTING_HOSTS) {
		const struct host_rules *list = at;

		for (size_t i = 0; i < list->n; i++)
			put_text(pr, list->v[i].text, &list->v[i].origin);
	} else if (row->type == SETTING_PORTS) {
		const struct port_rules *list = at;

		for (size_t i = 0; i < list->n; i++) {
			if (pr->origins)
				put_origin(pr, &list->v[i].origin);
			else if (!is_wanted(pr, &list->v[i].origin))
				continue;
			else if (list->v[i].host_port != list->v[i].port)
				json_string(&pr->j, port_rule_text(pr->a, &list->v[i]));
			else
				json_int(&pr->j, list->v[i].port);
		}
	} else {
		const struct text_rules *list = at;

		for (size_t i = 0; i < list->n; i++)
			put_text(pr, list->v[i].text, &list->v[i].origin);
	}
	json_end_array(&pr->j);
}

/* A later setting of the same name is the one that counts: keys must be unique. */
static void put_env(struct printer *pr, const struct env_settings *list)
{
	json_begin_object(&pr->j);
	for (size_t i = 0; i < list->n; i++) {
		const struct env_setting *e = &list->v[i];
		bool again = false;

		for (size_t k = i + 1; k < list->n; k++)
			again = again || strcmp(list->v[k].name, e->name) == 0;
		if (!again && is_wanted(pr, &e->origin))
			json_kstring(&pr->j, e->name,
				     pr->origins ? origin_text(pr->a, &e->origin) : e->value);
	}
	json_end_object(&pr->j);
}

static void put_ignore_of(struct printer *pr, const struct ignore_rules *list, const char *command)
{
	json_key(&pr->j, command);
	json_begin_array(&pr->j);
	for (size_t i = 0; i < list->n; i++) {
		const struct ignore_rule *r = &list->v[i];

		if (strcmp(r->command, command) == 0)
			put_text(pr, r->target, &r->origin);
	}
	json_end_array(&pr->j);
}

static void put_ignore(struct printer *pr, const struct ignore_rules *list)
{
	json_begin_object(&pr->j);
	for (size_t i = 0; i < list->n; i++) {
		bool before = !is_wanted(pr, &list->v[i].origin);

		for (size_t k = 0; k < i; k++)
			before = before || strcmp(list->v[k].command, list->v[i].command) == 0;
		if (!before)
			put_ignore_of(pr, list, list->v[i].command);
	}
	json_end_object(&pr->j);
}

static void print_leaf(void *ctx, const char *name, size_t row)
{
	const struct setting *s = &settings_table[row];
	struct printer *pr = ctx;

	if (s->type == SETTING_REFUSED || s->type == SETTING_ACCEPTED ||
	    s->type == SETTING_LOCKED || (s->type == SETTING_STRING && !value_get(pr->p, s).s))
		return;
	json_key(&pr->j, name);
	if (setting_is_scalar(s) && pr->origins)
		put_origin(pr, &pr->p->value_origin[row]);
	else if (setting_is_scalar(s))
		put_scalar(pr, s);
	else if (s->type == SETTING_ENV || s->type == SETTING_REASONS)
		put_env(pr, (const void *)((const char *)pr->p + s->offset));
	else if (s->type == SETTING_IGNORE)
		put_ignore(pr, (const void *)((const char *)pr->p + s->offset));
	else
		put_list(pr, s);
}

static void print_open(void *ctx, const char *name)
{
	struct printer *pr = ctx;

	json_key(&pr->j, name);
	json_begin_object(&pr->j);
}

static void print_close(void *ctx)
{
	struct printer *pr = ctx;

	json_end_object(&pr->j);
}

static void put_protected(struct printer *pr)
{
	const struct policy_filesystem *fs = &pr->p->fs;
	struct json *j = &pr->j;

	json_key(j, "protected");
	json_begin_array(j);
	for (size_t i = 0; i < fs->n_protected; i++) {
		const struct protected_name *n = &fs->protected[i];

		json_begin_object(j);
		json_kstring(j, "name", n->pattern);
		json_kstring(j, "reason", n->reason);
		json_kstring(j, "origin", origin_text(pr->a, &n->origin));
		if (n->lifted)
			json_kstring(j, "lifted", origin_text(pr->a, &n->lifted_by));
		json_end_object(j);
	}
	json_end_array(j);
}

void policy_print_row(const struct policy *p, size_t row, unsigned layers, struct buf *out)
{
	_cleanup_arena_ struct arena *a = arena_new();
	struct printer pr = { .j = { .out = out }, .p = p, .a = a, .layers = layers };

	print_leaf(&pr, settings_table[row].key, row);
}

void policy_print_json(const struct policy *p, struct buf *out)
{
	_cleanup_arena_ struct arena *a = arena_new();
	struct printer pr = { .j = { .out = out, .indent = 2 }, .p = p, .a = a, .layers = ~0u };
	const struct setting_visitor v = { print_open, print_leaf, print_close, &pr };

	json_begin_object(&pr.j);
	settings_walk(&v);
	pr.origins = true;
	print_open(&pr, "origins");
	settings_walk(&v);
	json_end_object(&pr.j);
	put_protected(&pr);
	json_key(&pr.j, "notes");
	json_begin_array(&pr.j);
	for (size_t i = 0; i < p->notes.n; i++)
		json_string(&pr.j, p->notes.v[i].text);
	json_end_array(&pr.j);
	json_end_object(&pr.j);
	buf_putc(out, '\n');
}
