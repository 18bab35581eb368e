/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Claude Code's settings to rows of our table. The user's and the managed files are
 * believed; a project's come with the code to be confined, as .ambit.json does, so all of
 * theirs runs through SOURCE_NARROWING.
 *
 * What has no counterpart: `enabled: false` (it speaks of Claude's own sandbox; who calls
 * us wants ours), `failIfUnavailable: false`, prompts (`ask`, `defaultMode`), and allow
 * rules for Read and Bash, which only spare a question.
 */
#include "policy/claude.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/text.h"
#include "policy/build.h"
#include "policy/excluded.h"
#include "policy/match_path.h"

enum take {
	TAKE_ALL,
	TAKE_TRUE, /* nothing but true says anything */
	TAKE_COMMANDS, /* what is no entry of ours is left out with a note */
	TAKE_ENFORCE, /* true: fallback enforce */
	TAKE_LOCK, /* true, in a managed file: nobody else adds to `key` */
	TAKE_NOTHING, /* true: a note that it is not followed */
};

static const struct claude_key {
	const char *name; /* below "sandbox" */
	const char *key; /* ours */
	enum take take;
} sandbox_keys[] = {
	{ "enabled", "enabled", TAKE_TRUE },
	{ "failIfUnavailable", "fallback", TAKE_ENFORCE },
	{ "autoAllowBashIfSandboxed", "autoAllowBashIfSandboxed", TAKE_ALL },
	{ "allowUnsandboxedCommands", "allowUnsandboxedCommands", TAKE_ALL },
	{ "excludedCommands", "excludedCommands", TAKE_COMMANDS },
	{ "ignoreViolations", "ignoreViolations", TAKE_ALL },
	{ "enableWeakerNestedSandbox", "enableWeakerNestedSandbox", TAKE_ALL },
	{ "network.allowedDomains", "network.allowedDomains", TAKE_ALL },
	{ "network.deniedDomains", "network.deniedDomains", TAKE_ALL },
	{ "network.strictAllowlist", "network.strictAllowlist", TAKE_ALL },
	{ "network.allowUnixSockets", "network.allowUnixSockets", TAKE_ALL },
	{ "network.allowAllUnixSockets", "network.allowAllUnixSockets", TAKE_ALL },
	{ "network.allowLocalBinding", "network.allowLocalBinding", TAKE_ALL },
	{ "network.httpProxyPort", "network.httpProxyPort", TAKE_ALL },
	{ "network.socksProxyPort", "network.socksProxyPort", TAKE_ALL },
	{ "network.allowManagedDomainsOnly", "network.allowedDomains", TAKE_LOCK },
	{ "network.tlsTerminate", NULL, TAKE_NOTHING },
	{ "filesystem.denyRead", "filesystem.denyRead", TAKE_ALL },
	{ "filesystem.allowRead", "filesystem.allowRead", TAKE_ALL },
	{ "filesystem.allowWrite", "filesystem.allowWrite", TAKE_ALL },
	{ "filesystem.denyWrite", "filesystem.denyWrite", TAKE_ALL },
	{ "filesystem.allowManagedReadPathsOnly", "filesystem.allowRead", TAKE_LOCK },
	{ "filesystem.disabled", NULL, TAKE_NOTHING },
};

/* One file while it is applied. */
struct claude_file {
	struct builder *b;
	struct source s;
	const char *root; /* what "/x" of a permission rule starts from */
	bool rules_count; /* unless a managed file has said allowManagedPermissionRulesOnly */
};

static size_t row_of(const char *key)
{
	return (size_t)setting_find(key);
}

static void note(struct claude_file *f, const struct node *n, const char *what, const char *why)
{
	struct origin o = source_origin(&f->s, n);

	builder_note(f->b, &o, "left out: %s: %s", what, why);
}

static bool is_true(const struct node *n)
{
	return n->kind == NODE_BOOL && ascii_lower(*n->text) == 't';
}

static int want_list(const struct claude_file *f, const struct node *n, const char *key,
		     struct error *e)
{
	return n->kind == NODE_LIST ? 0 : source_fail(&f->s, n, key, e, "must be a list");
}

/*
 * The `sandbox` object.
 */

static int take_commands(struct claude_file *f, const struct claude_key *k, const struct node *n,
			 struct error *e)
{
	int r = want_list(f, n, k->key, e);

	for (size_t i = 0; r >= 0 && i < n->n; i++) {
		struct error why = { 0 };
		const char *text;

		r = node_string(&f->s, k->key, &n->v[i], &text, e);
		if (r < 0)
			return r;
		if (excluded_check(text, &why) < 0)
			note(f, &n->v[i], k->key, why.text);
		else
			r = list_add(f->b, &f->s, row_of(k->key), &n->v[i], e);
	}
	return r;
}

static int take_key(struct claude_file *f, const struct claude_key *k, const struct node *n,
		    struct error *e)
{
	struct node word = *n;

	if (n->kind == NODE_NULL)
		return 0;
	switch (k->take) {
	case TAKE_ALL:
		return apply_node(f->b, &f->s, row_of(k->key), n, e);
	case TAKE_TRUE:
		return is_true(n) ? apply_node(f->b, &f->s, row_of(k->key), n, e) : 0;
	case TAKE_ENFORCE:
		word.kind = NODE_STRING;
		word.text = "enforce";
		return is_true(n) ? apply_node(f->b, &f->s, row_of(k->key), &word, e) : 0;
	case TAKE_COMMANDS:
		return take_commands(f, k, n, e);
	case TAKE_LOCK:
		if (is_true(n) && f->s.layer == LAYER_MANAGED) {
			f->b->rows[row_of(k->key)].locked = true;
			f->b->rows[row_of(k->key)].locked_origin = source_origin(&f->s, n);
		}
		return 0;
	case TAKE_NOTHING:
		break;
	}
	if (n->kind == NODE_MAP || is_true(n))
		note(f, n, k->name, "this sandbox does not do that");
	return 0;
}

static const struct node *find_key(struct arena *a, const struct node *map, const char *name)
{
	size_t n = strcspn(name, ".");

	if (!map || map->kind != NODE_MAP)
		return NULL;
	map = tree_get(map, arena_strndup(a, name, n));
	return name[n] ? find_key(a, map, name + n + 1) : map;
}

static int take_sandbox(struct claude_file *f, const struct node *sandbox, struct error *e)
{
	static const char *const groups[] = { "network", "filesystem" };
	int r = 0;

	if (!sandbox || sandbox->kind == NODE_NULL)
		return 0;
	if (sandbox->kind != NODE_MAP)
		return source_fail(&f->s, sandbox, "sandbox", e, "must be an object");
	for (size_t i = 0; i < ARRAY_LEN(groups); i++) {
		const struct node *n = tree_get(sandbox, groups[i]);

		if (n && n->kind != NODE_MAP && n->kind != NODE_NULL)
			return source_fail(&f->s, n, groups[i], e, "must be an object");
	}
	for (size_t i = 0; r >= 0 && i < ARRAY_LEN(sandbox_keys); i++) {
		const struct node *n = find_key(f->b->a, sandbox, sandbox_keys[i].name);

		if (n)
			r = take_key(f, &sandbox_keys[i], n, e);
	}
	return r;
}

/*
 * `sandbox.credentials`: what should be denied is; what should be masked is denied too, since
 * there is nothing here that would put the real value back.
 */

static int take_credential(struct claude_file *f, const struct node *item, const char *name,
			   const char *key, struct error *e)
{
	const struct node *what = item->kind == NODE_MAP ? tree_get(item, name) : NULL;
	const struct node *mode = item->kind == NODE_MAP ? tree_get(item, "mode") : NULL;

	if (!what)
		return source_fail(&f->s, item, "sandbox.credentials", e, "\"%s\" is missing",
				   name);
	if (mode && mode->text && strcmp(mode->text, "mask") == 0)
		note(f, mode, "sandbox.credentials", "denied instead of masked");
	return list_add(f->b, &f->s, row_of(key), what, e);
}

static int take_credentials(struct claude_file *f, const struct node *sandbox, struct error *e)
{
	static const struct {
		const char *list, *name, *key;
	} kinds[] = {
		{ "credentials.files", "path", "filesystem.denyRead" },
		{ "credentials.envVars", "name", "environment.deny" },
	};
	int r = 0;

	for (size_t k = 0; k < ARRAY_LEN(kinds); k++) {
		const struct node *n = find_key(f->b->a, sandbox, kinds[k].list);

		if (!n || n->kind == NODE_NULL)
			continue;
		r = want_list(f, n, "sandbox.credentials", e);
		for (size_t i = 0; r >= 0 && i < n->n; i++)
			r = take_credential(f, &n->v[i], kinds[k].name, kinds[k].key, e);
		if (r < 0)
			return r;
	}
	return r;
}

/*
 * The `permissions` object.
 */

static int add_path(struct claude_file *f, const char *base, const char *key, const struct node *n,
		    const char *text, struct error *e)
{
	struct node path = *n;
	struct source s = f->s;

	path.text = text;
	s.base = base;
	return list_add(f->b, &s, row_of(key), &path, e);
}

static int take_path(struct claude_file *f, enum verdict verdict, const struct claude_rule *rule,
		     const struct node *n, struct error *e)
{
	const char *key = rule->tool == CLAUDE_READ ? "filesystem.denyRead"
			  : verdict == VERDICT_DENY ? "filesystem.denyWrite"
						    : "filesystem.allowWrite";
	struct error why = { 0 };
	bool of_root;
	const char *deep, *path = claude_rule_path(f->b->a, rule->spec, &of_root, &deep);
	const char *base = of_root ? f->root : f->b->p->cwd;
	int r;

	if (verdict == VERDICT_ALLOW && rule->tool == CLAUDE_READ)
		return 0;
	if (verdict == VERDICT_ALLOW) {
		if (add_path(f, base, key, n, path, &why) < 0)
			note(f, n, n->text, why.text);
		return 0;
	}
	r = add_path(f, base, key, n, path, e);
	return r < 0 || !deep ? r : add_path(f, base, key, n, deep, e);
}

static int take_domain(struct claude_file *f, enum verdict verdict, const struct claude_rule *rule,
		       const struct node *n, struct error *e)
{
	const char *key =
		verdict == VERDICT_DENY ? "network.deniedDomains" : "network.allowedDomains";
	struct node domain = *n;
	struct error why = { 0 };
	int r;

	if (!text_starts(rule->spec, "domain:"))
		return 0;
	domain.text = rule->spec + strlen("domain:");
	r = list_add(f->b, &f->s, row_of(key), &domain, &why);
	if (r >= 0)
		return 0;
	if (verdict == VERDICT_DENY)
		return error_set(e, EINVAL, "%s", why.text);
	note(f, n, n->text, why.text);
	return 0;
}

/* Not a wall, and the user does not take it for one: what has no entry of ours is only told. */
static int take_command(struct claude_file *f, enum verdict verdict, const struct claude_rule *rule,
			const struct node *n, struct error *e)
{
	struct node command = *n;
	struct error why = { 0 };

	if (verdict == VERDICT_ALLOW)
		return 0;
	command.text = rule->spec;
	if (denied_check(rule->spec, &why) == 0)
		return list_add(f->b, &f->s, row_of("deniedCommands"), &command, e);
	note(f, n, n->text, why.text);
	return 0;
}

static int take_rule(struct claude_file *f, enum verdict verdict, const struct node *n,
		     struct error *e)
{
	struct claude_rule rule;
	const char *text;
	int r = node_string(&f->s, "permissions", n, &text, e);

	if (r < 0)
		return r;
	if (claude_rule_parse(f->b->a, text, &rule, e) < 0)
		return source_wrap(&f->s, n, "permissions", e);
	switch (rule.tool) {
	case CLAUDE_READ:
	case CLAUDE_EDIT:
		return take_path(f, verdict, &rule, n, e);
	case CLAUDE_FETCH:
		return take_domain(f, verdict, &rule, n, e);
	case CLAUDE_BASH:
		return take_command(f, verdict, &rule, n, e);
	case CLAUDE_OTHER:
		break;
	}
	return 0;
}

static int take_rules(struct claude_file *f, const struct node *permissions, const char *name,
		      enum verdict verdict, struct error *e)
{
	const struct node *list = tree_get(permissions, name);
	int r;

	if (!list || list->kind == NODE_NULL)
		return 0;
	r = want_list(f, list, "permissions", e);
	for (size_t i = 0; r >= 0 && i < list->n; i++)
		r = take_rule(f, verdict, &list->v[i], e);
	return r < 0 ? r : 0;
}

static int take_permissions(struct claude_file *f, const struct node *permissions, struct error *e)
{
	const struct node *more;
	struct source s = f->s;
	int r;

	if (!permissions || permissions->kind == NODE_NULL)
		return 0;
	if (permissions->kind != NODE_MAP)
		return source_fail(&f->s, permissions, "permissions", e, "must be an object");
	r = take_rules(f, permissions, "deny", VERDICT_DENY, e);
	if (r >= 0 && f->rules_count)
		r = take_rules(f, permissions, "allow", VERDICT_ALLOW, e);
	more = tree_get(permissions, "additionalDirectories");
	if (r < 0 || !more || more->kind == NODE_NULL)
		return r;
	s.base = f->b->p->cwd;
	return apply_node(f->b, &s, row_of("filesystem.allowWrite"), more, e);
}

/*
 * Files.
 */

static int apply_claude_file(struct builder *b, const struct source *s, const char *root,
			     struct error *e)
{
	struct claude_file f = { .b = b, .s = *s, .root = root };
	_cleanup_free_ char *text = NULL;
	const struct node *tree, *only;
	size_t len;
	int r = 0;

	if (s->layer == LAYER_PROJECT)
		r = builder_check_project_file(b, root, s->file, e);
	if (r < 0)
		return r;
	r = fd_read_file(AT_FDCWD, s->file, TREE_TEXT_MAX, &text, &len);
	if (r == -ENOENT || r == -ENOTDIR)
		return 0;
	if (r < 0)
		return error_set(e, -r, "%s: %s", s->file, strerror(-r));
	r = tree_parse(b->a, s->name, text, len, &tree, e);
	if (r < 0)
		return r;
	only = tree_get(tree, "allowManagedPermissionRulesOnly");
	if (s->layer == LAYER_MANAGED && only && is_true(only))
		b->claude_managed_rules = true;
	f.rules_count = s->layer == LAYER_MANAGED || !b->claude_managed_rules;
	r = take_sandbox(&f, tree_get(tree, "sandbox"), e);
	if (r >= 0)
		r = take_credentials(&f, tree_get(tree, "sandbox"), e);
	if (r >= 0)
		r = take_permissions(&f, tree_get(tree, "permissions"), e);
	return r < 0 ? r : 0;
}

static const char *parent(struct arena *a, const char *path)
{
	return path_absolute(a, "/", path_join(a, path, ".."));
}

static int apply_trusted(struct builder *b, enum layer layer, const char *file, struct error *e)
{
	struct source s = { .layer = layer, .foreign = true };

	if (!file)
		return 0;
	s.name = s.file = arena_strdup(b->a, file);
	s.base = parent(b->a, s.name);
	return apply_claude_file(b, &s, s.base, e);
}

/* One that only narrows, and says in one line how much it would have widened. */
static int apply_untrusted(struct builder *b, const char *dir, const char *name, struct error *e)
{
	unsigned left_out = 0;
	struct source s = { .layer = LAYER_PROJECT,
			    .mode = SOURCE_NARROWING,
			    .base = dir,
			    .foreign = true,
			    .left_out = &left_out };
	struct origin o;
	int r;

	s.name = s.file = path_join(b->a, dir, name);
	r = apply_claude_file(b, &s, dir, e);
	o = (struct origin){ .layer = LAYER_PROJECT, .name = s.name };
	if (r >= 0 && left_out > 0)
		builder_note(b, &o,
			     "ignored: %u entr%s would widen the policy; put them into your own "
			     "settings to have them",
			     left_out, left_out == 1 ? "y that" : "ies that");
	return r;
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int apply_managed(struct builder *b, const struct claude_files *files, struct error *e)
{
	const char *const *names = NULL, **sorted = NULL;
	size_t n = 0;
	int r = apply_trusted(b, LAYER_MANAGED, files->managed, e), count = 0;

	if (r >= 0 && files->managed_dir)
		count = path_host_view.list(&path_host_view, b->a, files->managed_dir, &names);
	for (int i = 0; i < count; i++) {
		if (text_ends(names[i], ".json") && names[i][0] != '.')
			*ARENA_PUSH(b->a, sorted, n) = names[i];
	}
	if (n > 0)
		qsort(sorted, n, sizeof(*sorted), compare_names);
	for (size_t i = 0; r >= 0 && i < n; i++)
		r = apply_trusted(b, LAYER_MANAGED, path_join(b->a, files->managed_dir, sorted[i]),
				  e);
	return r;
}

/* As a command could make nearer ones, all of them narrow; the home's is the user's. */
static int apply_project(struct builder *b, const struct claude_files *files, struct error *e)
{
	static const char *const names[] = { ".claude/settings.json",
					     ".claude/settings.local.json" };
	const struct view *view = b->in->view;
	int r = 0;

	for (const char *dir = files->cwd; dir; dir = parent(b->a, dir)) {
		for (size_t i = 0; r >= 0 && i < ARRAY_LEN(names); i++) {
			const char *file = path_join(b->a, dir, names[i]);

			if (view->kind(view, file) == FILE_ABSENT ||
			    (files->user && strcmp(file, files->user) == 0))
				continue;
			r = apply_untrusted(b, dir, names[i], e);
		}
		if (r < 0 || !files->top || strcmp(dir, files->top) == 0 || strcmp(dir, "/") == 0)
			return r;
	}
	return r;
}

int claude_apply(struct builder *b, enum claude_part part, struct error *e)
{
	const struct claude_files *files = b->in->claude;

	if (!files)
		return 0;
	switch (part) {
	case CLAUDE_MANAGED:
		return apply_managed(b, files, e);
	case CLAUDE_USER:
		return apply_trusted(b, LAYER_USER, files->user, e);
	case CLAUDE_PROJECT:
		break;
	}
	return apply_project(b, files, e);
}

int claude_domains(struct arena *a, const struct claude_files *files, struct text_rules *ret,
		   struct error *e)
{
	const struct policy_inputs in = {
		.cwd = "/", .home = "/", .view = &path_host_view, .claude = files
	};
	struct policy p = { .cwd = "/", .home = "/" };
	struct builder b = { .a = a, .in = &in, .p = &p };
	int r;

	b.rows = arena_array(a, settings_count, sizeof(*b.rows));
	r = claude_apply(&b, CLAUDE_MANAGED, e);
	if (r >= 0)
		r = claude_apply(&b, CLAUDE_USER, e);
	if (r < 0)
		return r;
	*ret = (struct text_rules){ 0 };
	for (size_t i = 0; i < p.network.allowed.n; i++)
		*ARENA_PUSH(a, ret->v, ret->n) =
			(struct text_rule){ p.network.allowed.v[i].text,
					    p.network.allowed.v[i].origin };
	return 0;
}
