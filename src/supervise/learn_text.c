/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Learned rules as a settings file: YAML with one entry per line and what needed it behind, so that
 * a person can read, strike out and keep it.
 */
#include <errno.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "policy/amend.h"
#include "policy/schema.h"
#include "supervise/learn.h"

static void put_quoted(struct buf *out, const char *text)
{
	struct json j = { .out = out };

	json_string(&j, text);
}

static bool is_list(const struct setting *s)
{
	return s->type >= SETTING_PATHS;
}

static bool is_number(const struct setting *s, const char *value)
{
	if (s->type == SETTING_BOOL || s->type == SETTING_COUNT || s->type == SETTING_NUMBER ||
	    s->type == SETTING_PORT)
		return true;
	return s->type == SETTING_PORTS && !value[strspn(value, "0123456789")];
}

static void put_value(struct buf *out, const struct setting *s, const char *value)
{
	if (is_number(s, value))
		buf_puts(out, value);
	else
		put_quoted(out, value);
}

static void put_comment(struct buf *out, const char *comment)
{
	if (comment && *comment) {
		buf_puts(out, " # ");
		text_append_safe(out, comment);
	}
	buf_putc(out, '\n');
}

/* "network.allowedDomains": the part behind the dot, or all of it. */
static const char *last_part(const char *key)
{
	const char *dot = strchr(key, '.');

	return dot ? dot + 1 : key;
}

static bool same_group(const char *key, const char *other)
{
	size_t n = (size_t)(last_part(key) - key);

	return strncmp(key, other, n) == 0 && (size_t)(last_part(other) - other) == n;
}

/* indent: of the key */
static void put_list_entry(struct buf *out, const struct setting *s, const struct learned_rule *r,
			   const char *indent)
{
	buf_printf(out, "%s  - ", indent);
	put_value(out, s, r->value);
	put_comment(out, r->comment);
}

static void put_key(struct buf *out, const struct setting *s, const struct learned_rules *rules,
		    const char *indent)
{
	for (size_t i = 0, shown = 0; i < rules->n; i++) {
		const struct learned_rule *r = &rules->v[i];

		if (strcmp(r->key, s->key) != 0)
			continue;
		if (!is_list(s)) {
			buf_printf(out, "%s%s: ", indent, last_part(s->key));
			put_value(out, s, r->value);
			put_comment(out, r->comment);
			return;
		}
		if (!shown++)
			buf_printf(out, "%s%s:\n", indent, last_part(s->key));
		put_list_entry(out, s, r, indent);
	}
}

static bool has_key(const struct learned_rules *rules, const char *key)
{
	for (size_t i = 0; i < rules->n; i++) {
		if (strcmp(rules->v[i].key, key) == 0)
			return true;
	}
	return false;
}

static void put_rules(struct buf *out, const struct learned_rules *rules)
{
	const char *group = NULL;

	for (size_t i = 0; i < settings_count; i++) {
		const struct setting *s = &settings_table[i];
		size_t n = (size_t)(last_part(s->key) - s->key);

		if (!has_key(rules, s->key))
			continue;
		if (n && !(group && same_group(group, s->key))) {
			buf_append(out, s->key, n - 1);
			buf_puts(out, ":\n");
		}
		group = s->key;
		put_key(out, s, rules, n ? "  " : "");
	}
}

/* As it would be typed. */
static void put_option(struct buf *out, const struct learned_rule *r)
{
	_cleanup_buf_ struct buf plain = BUF_INIT(BUF_MAX_TEXT), quoted = BUF_INIT(BUF_MAX_TEXT);

	if (!*r->key) {
		text_append_safe(out, r->value);
		return;
	}
	buf_printf(&plain, "%s=%s", r->key, r->value);
	text_append_shell(&quoted, buf_str(&plain));
	buf_puts(out, "--set ");
	text_append_safe(out, buf_str(&quoted));
}

void learn_print_refused(const struct learned *l, const char *lead, struct buf *out)
{
	for (size_t i = 0; i < l->refused.n; i++) {
		const struct learned_rule *r = &l->refused.v[i];

		buf_puts(out, lead);
		put_option(out, r);
		put_comment(out, r->comment);
	}
}

void learn_print(const struct learned *l, const char *title, struct buf *out)
{
	buf_puts(out, "# ");
	text_append_safe(out, title);
	buf_puts(out, "\n# What stands here was used by that command, besides what is allowed "
		      "anyway. Strike out what it\n# should not have; use it with: ambit run -s "
		      "FILE -- COMMAND\n");
	if (!l->rules.n)
		buf_puts(out, "{}\n");
	put_rules(out, &l->rules);
	if (l->refused.n)
		buf_puts(out,
			 "\n# Not learned: refused, or beyond what a rule should allow. To allow "
			 "one of these, give it\n# to ambit run or ambit learn, or put it "
			 "above:\n");
	learn_print_refused(l, "#   ", out);
}

int learn_update(const char *name, const char *old, const struct learned *l, struct buf *out,
		 struct error *e)
{
	_cleanup_buf_ struct buf text = BUF_INIT(BUF_MAX_TEXT);

	buf_puts(&text, old);
	for (size_t i = 0; i < l->rules.n; i++) {
		const struct learned_rule *rule = &l->rules.v[i];
		const struct setting *s = &settings_table[setting_find(rule->key)];
		_cleanup_buf_ struct buf next = BUF_INIT(BUF_MAX_TEXT),
					 group = BUF_INIT(BUF_MAX_TEXT);
		struct amendment what = { .list = last_part(rule->key),
					  .entry = rule->value,
					  .comment = rule->comment,
					  .number = is_number(s, rule->value) };
		int r;

		buf_append(&group, rule->key, strcspn(rule->key, "."));
		what.group = buf_str(&group);
		r = is_list(s) ? amend_text(name, text.data, text.len, &what, &next, e)
			       : amend_value(name, text.data, text.len, &what, &next, e);
		if (r < 0)
			return r;
		buf_done(&text);
		buf_append(&text, next.data, next.len);
	}
	buf_append(out, buf_str(&text), text.len);
	return 0;
}
