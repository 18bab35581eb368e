/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The questions, in order; and names and rules of the policy. Git's own: guard_git.c.
 */
#include "supervise/broker/guard_internal.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/fd.h"
#include "policy/match_name.h"
#include "policy/match_path.h"

#define LEVELS_MAX 127 /* how far up a path is looked at */

struct guard *guard_new(struct arena *a, const struct policy *p, const struct plan *plan)
{
	struct guard *g = arena_alloc(a, sizeof(*g));

	g->a = a;
	g->p = p;
	g->plan = plan;
	for (size_t i = 0; i < p->fs.rules.n; i++)
		g->has_deny_rules |= p->fs.rules.v[i].access == ACCESS_WRITE &&
				     p->fs.rules.v[i].verdict == VERDICT_DENY;
	g->hooks = protected_find(p, ".git/hooks");
	g->config = protected_find(p, ".git/config");
	g->commondir = protected_find(p, ".git/commondir");
	g->remotes = protected_find(p, ".git/remotes");
	g->branches = protected_find(p, ".git/branches");
	return g;
}

int guard_open_above(int dirfd, unsigned levels)
{
	char up[3 * LEVELS_MAX + 1];
	size_t n = 0;

	if (levels > LEVELS_MAX)
		return -1;
	while (levels-- > 0) {
		memcpy(up + n, "../", 3);
		n += 3;
	}
	up[n] = '\0';
	return openat(dirfd, n ? up : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
}

/* Components of `pattern`. */
static unsigned pattern_length(const char *pattern)
{
	unsigned n = 1;

	for (; *pattern; pattern++)
		n += *pattern == '/';
	return n;
}

/* The last `n` components of a path. */
static const char *path_tail(const char *path, unsigned n)
{
	const char *s = path + strlen(path);

	while (s > path && n > 0) {
		s--;
		if (*s == '/' && --n == 0)
			return s + 1;
	}
	return s;
}

/* The first `n` components of a path. */
static void path_head(const char *path, unsigned n, char *ret)
{
	const char *s = path;

	while (n-- > 0)
		s += 1 + strcspn(s + 1, "/");
	memcpy(ret, path, (size_t)(s - path));
	ret[s - path] = '\0';
}

/* A directory comes to lie there, or a link that may stand for one. */
static bool brings_directory(const struct guard_question *q)
{
	return q->directory && (q->op == GUARD_MAKE_OTHER || q->op == GUARD_RENAME_TO);
}

/* Which submodules there are: a configuration of few keys, of which git runs nothing. */
static bool is_modules_file(const char *name)
{
	return name_is(name, ".gitmodules");
}

/*
 * Is each directory that holds the pattern on the path, from `before` components on, new territory?
 * Not only the first: an old directory can be moved into a new one that has a protected name, be
 * given such a name there, and be moved back.
 */
static bool holders_are_new(const struct guard *g, const struct guard_question *q, const char *path,
			    const char *pattern, int before)
{
	unsigned depth = path_depth(path), top = path_depth(q->root);

	while (before >= 0) {
		unsigned n = (unsigned)before;
		_cleanup_fd_ int holder = -1;
		char at[PATH_MAX + NAME_MAX + 2] _unfilled_;

		if (n <= top)
			return false;
		holder = guard_open_above(q->parent, depth - 1 - n);
		path_head(path, n, at);
		if (holder < 0 || !guard_is_new(g, holder, at))
			return false;
		before = name_pattern_covers(pattern, path, n + pattern_length(pattern));
	}
	return true;
}

/*
 * A rule names this very place. Nothing is put in the place of a file: that could not be done where
 * it is mounted, and the refusal says what helps. What is in a directory has it for its root; for
 * the directory itself the kernel has the better answers.
 */
static bool is_lifted_here(const struct guard *g, const struct guard_question *q, const char *path)
{
	bool may_be = q->op == GUARD_WRITE || q->op == GUARD_MAKE_DIR;

	for (size_t i = 0; !may_be && i < g->plan->n_guarded; i++)
		may_be = strcmp(g->plan->guarded[i], path) == 0;
	return may_be && protected_is_named(g->p, path_depth(q->root), path);
}

static void ask_names(const struct guard *g, const struct guard_question *q, const char *path,
		      struct guard_answer *ret)
{
	unsigned top = path_depth(q->root);
	const struct policy_filesystem *fs = &g->p->fs;
	bool denied = false; /* by a name that can be asked about: is there one that cannot? */

	for (int i = -1; (i = name_index_next(fs->protected_index, path, i + 1)) >= 0;) {
		const struct protected_name *name = &fs->protected[i];
		int before, begun;

		if (name->lifted || protected_by_content(name) || (denied && !name->locked))
			continue;
		before = name_pattern_covers(name->pattern, path, name->locked ? 0 : top);
		begun = brings_directory(q) ? name_pattern_begun(name->pattern, path) : -1;
		if (before < 0 && begun < 0)
			continue;
		if (!name->locked && is_lifted_here(g, q, path))
			continue;
		if (!name->locked && holders_are_new(g, q, path, name->pattern, before) &&
		    holders_are_new(g, q, path, name->pattern, begun)) {
			ret->new_territory = name;
			continue;
		}
		ret->protected = name;
		/* as git itself changes it: harmless keys go in */
		if (q->op == GUARD_RENAME_TO && !q->directory && is_modules_file(q->name)) {
			ret->way = GUARD_CONFIG;
			continue;
		}
		guard_deny(ret, name->reason);
		if (name->locked)
			return;
		denied = true;
	}
}

/* What names and git's configuration lead to; and nothing that would bring another in its place. */
static void ask_held(const struct guard *g, const struct guard_question *q, const char *path,
		     struct guard_answer *ret)
{
	bool arrives = brings_directory(q);
	const struct held_path *held = plan_held_over(g->plan, path);

	for (size_t i = 0; !held && arrives && i < g->plan->n_held; i++) {
		if (name_path_within(g->plan->held[i].path, path))
			held = &g->plan->held[i];
	}
	if (!held)
		return;
	/* what git runs is never asked about */
	if (protected_by_content(held->name))
		ret->git_name = held->name;
	else
		ret->protected = held->name;
	guard_deny(ret, plan_held_reason(held));
}

const struct protected_name *guard_name_of(const struct guard *g, const char *path,
					   const char *root)
{
	const struct policy_filesystem *fs = &g->p->fs;

	for (int i = -1; (i = name_index_next(fs->protected_index, path, i + 1)) >= 0;) {
		const struct protected_name *name = &fs->protected[i];

		if (!name->lifted && !protected_by_content(name) &&
		    name_pattern_covers(name->pattern, path, name->locked ? 0 : path_depth(root)) >=
			    0)
			return name;
	}
	return NULL;
}

bool guard_may_protect(const struct guard *g, const char *path)
{
	return guard_name_of(g, path, "/") || name_pattern_covers("hooks", path, 0) >= 0 ||
	       name_pattern_covers("config", path, 0) >= 0;
}

/* The tail of a pattern of any depth, "a/x.yml" of "/ws/(any)/a/x.yml", is begun by the path. */
static bool tail_begun(const char *tail, const char *path)
{
	unsigned length = pattern_length(tail);
	const char *end = tail;

	for (unsigned n = 1; n < length; n++, end++) {
		char part[PATH_MAX], last[PATH_MAX + NAME_MAX + 2];

		end += strcspn(end, "/");
		if (end - tail > PATH_MAX - 2)
			return true;
		part[0] = '/';
		memcpy(part + 1, tail, (size_t)(end - tail));
		part[1 + (end - tail)] = '\0';
		(void)snprintf(last, sizeof(last), "/%s", path_tail(path, n));
		if (pattern_matches(part, last))
			return true;
	}
	return false;
}

/*
 * Would a directory that arrives at `path` bring something a rule forbids there? Where
 * the rule holds at any depth, it held already where the directory was filled.
 */
static bool rule_is_below(const struct path_rule *r, const char *root, const char *path)
{
	const char *any = r->glob ? strstr(r->real, "/**/") : NULL;
	size_t fixed = pattern_fixed_len(r->real);

	if (r->access != ACCESS_WRITE || r->verdict != VERDICT_DENY)
		return false;
	if (!r->glob)
		return path_within(r->real, path);
	if (any == r->real)
		fixed = 0; /* at any depth of everything */
	if (any && (size_t)(any - r->real) == fixed && strncmp(root, r->real, fixed) == 0 &&
	    (root[fixed] == '/' || root[fixed] == '\0') && !strstr(any + 4, "**"))
		return tail_begun(any + 4, path);
	return pattern_may_match_below(r->real, path);
}

/* denyWrite rules: paths and patterns, of names that may not exist yet */
static void ask_rules(const struct guard *g, const struct guard_question *q, const char *path,
		      struct guard_answer *ret)
{
	struct decision d;

	if (!g->has_deny_rules)
		return;
	/* the name itself, when it is a link to what the rule protects */
	for (size_t i = 0; i < g->p->fs.rules.n; i++) {
		const struct path_rule *r = &g->p->fs.rules.v[i];

		if (r->access == ACCESS_WRITE && r->verdict == VERDICT_DENY && !r->glob &&
		    path_within(path, r->path)) {
			ret->rule = r;
			guard_deny(ret, r->why ? r->why : "writing is denied by a rule");
			return;
		}
	}
	policy_decide_path(g->p, ACCESS_WRITE, path, &d);
	if (d.verdict == VERDICT_DENY && d.rule && d.rule->verdict == VERDICT_DENY) {
		ret->rule = d.rule;
		guard_deny(ret, d.reason);
		return;
	}
	if (!brings_directory(q))
		return;
	for (size_t i = 0; i < g->p->fs.rules.n; i++) {
		const struct path_rule *r = &g->p->fs.rules.v[i];

		if (rule_is_below(r, q->root, path)) {
			ret->rule = r;
			guard_deny(ret, "a directory or link here would hold what a rule forbids");
			return;
		}
	}
}

void guard_ask(struct guard *g, const struct guard_question *q, struct guard_answer *ret)
{
	char path[PATH_MAX + NAME_MAX + 2] _unfilled_;

	*ret = (struct guard_answer){ .allowed = true };
	path_put(path, q->path, q->name);
	guard_ask_git(g, q, ret);
	if (ret->allowed)
		ask_rules(g, q, path, ret);
	if (ret->allowed && q->op != GUARD_RENAME_FROM)
		ask_held(g, q, path, ret);
	if (ret->allowed && q->op != GUARD_RENAME_FROM)
		ask_names(g, q, path, ret);
}
