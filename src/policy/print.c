/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A policy for people: one line per value or rule, with where it came from.
 * Texts come from files of strangers, so everything is escaped.
 */
#include <inttypes.h>
#include <string.h>

#include "base/text.h"
#include "policy/build.h"

#define NAME_COLUMN 2
#define TEXT_COLUMN 28
#define ORIGIN_COLUMN 68

struct printer {
	const struct policy *p;
	struct buf *out;
	struct arena *a;
	const char *name; /* of the row; printed once, before its first entry */
};

static void pad_to(struct buf *out, size_t line_start, size_t column)
{
	do {
		buf_putc(out, ' ');
	} while (out->len - line_start < column && !out->overflow);
}

static void put_line(struct printer *pr, const char *text, const char *why,
		     const struct origin *origin)
{
	struct buf *out = pr->out;
	size_t start = out->len;

	buf_puts(out, " ");
	pad_to(out, start, NAME_COLUMN);
	if (pr->name)
		buf_puts(out, pr->name);
	pr->name = NULL;
	pad_to(out, start, TEXT_COLUMN);
	text_append_safe(out, text);
	if (why) {
		buf_puts(out, "  # ");
		text_append_safe(out, why);
	}
	pad_to(out, start, ORIGIN_COLUMN);
	text_append_safe(out, origin_text(pr->a, origin));
	buf_putc(out, '\n');
}

static const char *size_text(struct arena *a, uint64_t bytes)
{
	static const char units[] = "kmgt";
	size_t unit = 0;

	if (bytes == 0)
		return "unlimited";
	while (bytes % 1024 == 0 && unit < sizeof(units) - 1) {
		bytes /= 1024;
		unit++;
	}
	return unit ? arena_printf(a, "%" PRIu64 "%c", bytes, units[unit - 1])
		    : arena_printf(a, "%" PRIu64, bytes);
}

static const char *scalar_text(struct printer *pr, const struct setting *row)
{
	struct value v = value_get(pr->p, row);

	switch (row->type) {
	case SETTING_BOOL:
		return v.u ? "true" : "false";
	case SETTING_ENUM:
		return row->values[v.u];
	case SETTING_STRING:
		return v.s;
	case SETTING_PORT:
		return v.u ? arena_printf(pr->a, "%" PRIu64, v.u) : "own";
	case SETTING_SIZE:
		return size_text(pr->a, v.u);
	case SETTING_DURATION:
		if (v.u % 1000)
			return arena_printf(pr->a, "%" PRIu64 "ms", v.u);
		return v.u ? arena_printf(pr->a, "%" PRIu64 "s", v.u / 1000) : "unlimited";
	case SETTING_NUMBER:
		return v.d > 0 ? arena_printf(pr->a, "%g", v.d) : "unlimited";
	case SETTING_COUNT:
		return v.u ? arena_printf(pr->a, "%" PRIu64, v.u) : "unlimited";
	case SETTING_PATHS:
	case SETTING_HOSTS:
	case SETTING_STRINGS:
	case SETTING_SOCKETS:
	case SETTING_PORTS:
	case SETTING_ENV:
	case SETTING_IGNORE:
	case SETTING_NAMES:
	case SETTING_REASONS:
	case SETTING_PROFILES:
	case SETTING_LOCKED:
	case SETTING_REFUSED:
	case SETTING_ACCEPTED:
		break;
	}
	return NULL;
}

static void put_paths(struct printer *pr, const struct setting *row)
{
	const struct path_rules *rules = &pr->p->fs.rules;

	for (size_t i = 0; i < rules->n; i++) {
		const struct path_rule *r = &rules->v[i];

		if (PATHS_VARIANT(r->access, r->verdict) == row->variant)
			put_line(pr, r->text, r->why, &r->origin);
	}
}

static void put_list(struct printer *pr, const struct setting *row)
{
	const void *at = (const char *)pr->p + row->offset;

	if (row->type == SETTING_PATHS) {
		put_paths(pr, row);
	} else if (row->type == SETTING_HOSTS) {
		const struct host_rules *list = at;

		for (size_t i = 0; i < list->n; i++)
			put_line(pr, list->v[i].text, list->v[i].reason, &list->v[i].origin);
	} else if (row->type == SETTING_STRINGS || row->type == SETTING_SOCKETS ||
		   row->type == SETTING_PROFILES) {
		const struct text_rules *list = at;

		for (size_t i = 0; i < list->n; i++)
			put_line(pr, list->v[i].text, NULL, &list->v[i].origin);
	} else if (row->type == SETTING_PORTS) {
		const struct port_rules *list = at;

		for (size_t i = 0; i < list->n; i++)
			put_line(pr, port_rule_text(pr->a, &list->v[i]), NULL, &list->v[i].origin);
	} else if (row->type == SETTING_ENV) {
		const struct env_settings *list = at;

		for (size_t i = 0; i < list->n; i++)
			put_line(pr,
				 arena_printf(pr->a, "%s=%s", list->v[i].name, list->v[i].value),
				 NULL, &list->v[i].origin);
	} else if (row->type == SETTING_IGNORE) {
		const struct ignore_rules *list = at;

		for (size_t i = 0; i < list->n; i++)
			put_line(pr,
				 arena_printf(pr->a, "%s: %s", list->v[i].command,
					      list->v[i].target),
				 NULL, &list->v[i].origin);
	}
}

static void put_row(struct printer *pr, size_t row, const char *name)
{
	const struct setting *s = &settings_table[row];

	pr->name = name;
	if (setting_is_scalar(s)) {
		const char *text = scalar_text(pr, s);

		if (text)
			put_line(pr, text, NULL, &pr->p->value_origin[row]);
	} else {
		put_list(pr, s);
	}
}

static void put_protected(struct printer *pr)
{
	const struct policy_filesystem *fs = &pr->p->fs;

	buf_puts(pr->out, "\nprotected names\n");
	for (size_t i = 0; i < fs->n_protected; i++) {
		const struct protected_name *n = &fs->protected[i];

		pr->name = n->lifted ? "lifted" : NULL;
		put_line(pr, n->pattern, n->reason, n->lifted ? &n->lifted_by : &n->origin);
	}
}

static void put_heading(struct buf *out, const char *key, size_t len)
{
	if (out->len)
		buf_putc(out, '\n');
	buf_append(out, key, len);
	buf_putc(out, '\n');
}

void policy_print(const struct policy *p, struct buf *out)
{
	_cleanup_arena_ struct arena *a = arena_new();
	struct printer pr = { .p = p, .out = out, .a = a };
	const char *group = NULL;
	size_t group_len = 0;

	for (size_t i = 0; i < settings_count; i++) {
		const char *key = settings_table[i].key, *dot = strchr(key, '.');
		size_t len = dot ? (size_t)(dot - key) : 0;
		_cleanup_buf_ struct buf lines = BUF_INIT(BUF_MAX_TEXT);

		if (settings_table[i].type == SETTING_REFUSED ||
		    settings_table[i].type == SETTING_ACCEPTED)
			continue;
		pr.out = &lines;
		put_row(&pr, i, dot ? dot + 1 : key);
		/* a section without anything in it is not there */
		if (lines.len && (!group || len != group_len || strncmp(key, group, len) != 0)) {
			put_heading(out, dot ? key : "general", dot ? len : strlen("general"));
			group = key;
			group_len = len;
		}
		buf_append(out, buf_str(&lines), lines.len);
	}
	pr.out = out;
	put_protected(&pr);
	if (p->notes.n)
		buf_puts(out, "\nnotes\n");
	for (size_t i = 0; i < p->notes.n; i++) {
		buf_puts(out, "  ");
		text_append_safe(out, p->notes.v[i].text);
		buf_putc(out, '\n');
	}
}
