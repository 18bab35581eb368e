/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Path rules from text. A rule is enforced where the path really is, so each is
 * resolved once, here; a pattern's fixed part is resolved and the rest kept.
 */
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "base/text.h"
#include "policy/build.h"
#include "policy/match_path.h"

/* HOME is the caller's word, which must not move what the managed settings speak of. */
const char *rule_home(struct builder *b, enum layer layer)
{
	const char *home;

	if (!layer_is_managed(layer) || !b->in->account_home)
		return b->p->home;
	if (!b->account_home) {
		home = b->in->account_home(b->a);
		b->account_home = home ? builder_canonical(b, home) : b->p->home;
	}
	return b->account_home;
}

static const char *home_of(struct builder *b, const struct source *s)
{
	return s->by_variable ? b->p->home : rule_home(b, s->layer);
}

/* pattern: home and base are escaped so that only the written text can match loosely. */
static int expand(struct builder *b, const struct source *s, const char *text, bool pattern,
		  const char **ret, struct error *e)
{
	const char *base = *text == '~' ? home_of(b, s) : s->base;

	if (pattern)
		base = pattern_escape(b->a, base);
	if (*text == '$')
		return error_set(e, EINVAL,
				 "variables are not expanded (write ~ for the home directory)");
	if (*text == '~' && text[1] != '\0' && text[1] != '/')
		return error_set(e, EINVAL, "~ stands for your own home directory only");
	if (*text == '~')
		*ret = path_absolute(b->a, base, text[1] ? text + 2 : ".");
	else
		*ret = path_absolute(b->a, base, text);
	if (strlen(*ret) >= PATH_MAX)
		return error_set(e, ENAMETOOLONG, "the path is too long");
	return 0;
}

int rule_expand(struct builder *b, const struct source *s, const char *text, const char **ret,
		struct error *e)
{
	return expand(b, s, text, false, ret, e);
}

/* A trailing component of two stars: the directory with all that is in it, as without. */
static const char *strip_globstar(struct arena *a, const char *text)
{
	size_t n = strlen(text);

	if (strcmp(text, "**") == 0)
		return ".";
	while (n >= 3 && memcmp(text + n - 3, "/**", 3) == 0)
		n -= 3;
	if (n == 0)
		return "/";
	return text[n] ? arena_strndup(a, text, n) : text;
}

/* The deepest directory above path that is known to be canonical. */
static const char *known_above(const struct builder *b, const char *path)
{
	const char *const known[] = { b->known ? b->known : "/", b->p->home, b->p->cwd };
	const char *best = "/";

	for (size_t i = 0; i < ARRAY_LEN(known); i++) {
		if (strlen(known[i]) > strlen(best) && path_within(path, known[i]))
			best = known[i];
	}
	return best;
}

/*
 * Policies may have thousands of rules, and most name what is not there: going
 * down from a known directory takes a lookup or two where resolving the whole
 * path takes twenty. A link on the way ends that.
 */
const char *rule_resolve(struct builder *b, const char *path, bool *ret_absent)
{
	const struct view *view = b->in->view;
	const char *start = known_above(b, path);
	size_t n = strcmp(start, "/") == 0 ? 0 : strlen(start);
	struct view_entry entry;

	while (path[n] && strcmp(path, "/") != 0) {
		size_t end = n + 1 + strcspn(path + n + 1, "/");
		const char *part = path[end] ? arena_strndup(b->a, path, end) : path;
		enum file_kind kind = view->kind(view, part);

		*ret_absent = kind == FILE_ABSENT;
		if (kind == FILE_ABSENT)
			return path;
		if (kind == FILE_LINK || kind == FILE_UNKNOWN) {
			view->look(view, b->a, path, &entry);
			*ret_absent = entry.kind == FILE_ABSENT;
			return entry.real;
		}
		if (kind == FILE_DIRECTORY && path[end])
			b->known = part;
		n = end;
	}
	return path;
}

static const char *resolve_pattern(struct builder *b, const char *pattern)
{
	size_t n = pattern_fixed_len(pattern);
	const char *fixed = n ? arena_strndup(b->a, pattern, n) : "/";
	const char *rest = pattern + n;

	while (*rest == '/')
		rest++;
	return path_join(b->a, pattern_escape(b->a, rule_resolve(b, fixed, &(bool){ false })),
			 rest);
}

static const char *double_backslashes(struct arena *a, const char *text)
{
	char *out = arena_alloc(a, 2 * strlen(text) + 1), *p = out;

	for (; *text; text++) {
		if (*text == '\\')
			*p++ = '\\';
		*p++ = *text;
	}
	return out;
}

void rule_resolve_again(struct builder *b, struct path_rule *rule)
{
	rule->absent = false;
	rule->real = rule->glob ? resolve_pattern(b, rule->path)
				: rule_resolve(b, rule->path, &rule->absent);
}

static int make_rule(struct builder *b, const struct source *s, bool literal,
		     struct path_rule *rule, struct error *e)
{
	const char *text = literal ? rule->text : strip_globstar(b->a, rule->text);
	int r;

	if (!literal && s->no_escapes && strchr(text, '\\'))
		text = double_backslashes(b->a, text);
	rule->glob = !literal && pattern_is_glob(text);
	if (!rule->glob && !literal && strchr(text, '\\'))
		text = pattern_unescape(b->a, text);
	if (rule->glob) {
		r = pattern_check(text, e);
		if (r < 0)
			return r;
	}
	r = expand(b, s, text, rule->glob, &rule->path, e);
	if (r < 0)
		return r;
	rule_resolve_again(b, rule);
	return 0;
}

/* "path", or { path: ..., literal: true } */
static int read_entry(const struct source *s, const char *key, const struct node *n,
		      const char **ret_text, bool *ret_literal, struct error *e)
{
	const struct node *path;

	*ret_literal = false;
	if (n->kind != NODE_MAP)
		return node_string(s, key, n, ret_text, e);
	for (size_t i = 0; i < n->n; i++) {
		const struct node *v = &n->v[i];

		if (strcmp(v->key, "literal") == 0 && v->kind == NODE_BOOL)
			*ret_literal = ascii_lower(*v->text) == 't';
		else if (strcmp(v->key, "literal") == 0)
			return source_fail(s, v, key, e, "\"literal\" must be true or false");
		else if (strcmp(v->key, "path") != 0)
			return source_fail(s, v, key, e, "unknown key \"%s\" (path, literal)",
					   v->key);
	}
	path = tree_get(n, "path");
	if (!path)
		return source_fail(s, n, key, e, "\"path\" is missing");
	return node_string(s, key, path, ret_text, e);
}

static const char *fixed_part(struct arena *a, const struct path_rule *rule)
{
	size_t n = pattern_fixed_len(rule->real);

	return rule->glob ? arena_strndup(a, rule->real, n ? n : 1) : rule->real;
}

/*
 * Is what an allow rule would open open already? Of a pattern only the fixed
 * part is known: it must be open, and nothing below it may be shut, or a deep
 * match could open that. (A plain path cannot: a deny below it is deeper, one
 * above it has lost already.)
 */
static bool already_allowed(const struct builder *b, const struct path_rule *rule)
{
	const struct policy *p = b->p;
	const char *fixed = fixed_part(b->a, rule);
	struct ruling now;

	decide_by_rules(p, b->lower_rules, rule->access, fixed, &now);
	if (now.verdict != VERDICT_ALLOW)
		return false;
	if (rule->access == ACCESS_WRITE && protect_match(p, now.depth, fixed))
		return false;
	for (size_t i = 0; rule->glob && i < b->lower_rules; i++) {
		const struct path_rule *other = &p->fs.rules.v[i];

		if (other->verdict == VERDICT_DENY && other->access == ACCESS_READ &&
		    (other->glob || path_within(other->real, fixed)))
			return false;
	}
	return true;
}

/* The managed deny under which an allow rule would be dead, or NULL. */
static const struct path_rule *managed_deny(const struct builder *b, const struct path_rule *rule)
{
	if (rule->verdict != VERDICT_ALLOW || !b->managed_denies)
		return NULL;
	return decide_locked(b->p, rule->access, fixed_part(b->a, rule));
}

/* The text that means exactly this name; where a backslash is an ordinary byte, by sets. */
static const char *quote(struct arena *a, const char *text, bool no_escapes)
{
	char *out, *p;

	if (!no_escapes)
		return pattern_escape(a, text);
	p = out = arena_alloc(a, 3 * strlen(text) + 1);
	for (; *text; text++) {
		bool special = strchr("*?[", *text) != NULL;

		if (special)
			*p++ = '[';
		*p++ = *text;
		if (special)
			*p++ = ']';
	}
	return out;
}

/* app/[slug].ts is a pattern, and not one for the file of that name: most likely that was meant. */
static void note_literal(struct builder *b, const struct source *s, const struct path_rule *rule)
{
	struct error ignored = { 0 };
	const char *path;

	if (!rule->glob || rule->origin.layer < LAYER_MANAGED || strchr(rule->text, '\\') ||
	    expand(b, s, rule->text, false, &path, &ignored) < 0 ||
	    pattern_covers(rule->path, path) || b->in->view->kind(b->in->view, path) == FILE_ABSENT)
		return;
	builder_note(b, &rule->origin,
		     "%s is a pattern, which does not cover the file of that name; for the file "
		     "write %s",
		     rule->text, quote(b->a, rule->text, s->no_escapes));
}

/* What the managed file denies below ~ is denied below the caller's HOME too, if that is another. */
static int deny_by_variable(struct builder *b, const struct source *s, bool literal,
			    struct path_rule rule, struct error *e)
{
	struct source by_variable = *s;
	int r;

	if (*rule.text != '~' || strcmp(home_of(b, s), b->p->home) == 0)
		return 0;
	by_variable.by_variable = true;
	r = make_rule(b, &by_variable, literal, &rule, e);
	if (r == 0)
		*ARENA_PUSH(b->a, b->p->fs.rules.v, b->p->fs.rules.n) = rule;
	return r;
}

int rule_add(struct builder *b, const struct source *s, size_t row, const struct node *n,
	     struct error *e)
{
	const struct setting *def = &settings_table[row];
	struct path_rule rule = {
		.access = PATHS_ACCESS(def->variant),
		.verdict = PATHS_VERDICT(def->variant),
		.origin = source_origin(s, n),
	};
	const struct path_rule *against;
	bool literal;
	int r = read_entry(s, def->key, n, &rule.text, &literal, e);

	if (r < 0)
		return r;
	if (make_rule(b, s, literal, &rule, e) < 0)
		return source_wrap(s, n, def->key, e);
	r = merge_admit(b, s, row, n,
			s->mode == SOURCE_NARROWING && rule.verdict == VERDICT_ALLOW &&
				already_allowed(b, &rule),
			e);
	if (r <= 0)
		return r;
	against = merge_is_bound(s) ? managed_deny(b, &rule) : NULL;
	if (against)
		return merge_violation(b, s, def->key, n, &against->origin, e);
	note_literal(b, s, &rule);
	rule.locked = layer_is_managed(s->layer) && rule.verdict == VERDICT_DENY;
	b->managed_denies = b->managed_denies || rule.locked;
	rule.optional = layer_is_profile(s->layer) || s->foreign;
	rule.spare = layer_is_profile(s->layer) && text_ends(rule.text, "/");
	*ARENA_PUSH(b->a, b->p->fs.rules.v, b->p->fs.rules.n) = rule;
	if (rule.locked && deny_by_variable(b, s, literal, rule, e) < 0)
		return source_wrap(s, n, def->key, e);
	return 1;
}
