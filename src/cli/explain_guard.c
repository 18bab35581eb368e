/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the rules allow and the broker refuses, because of what a directory holds: git's own names in
 * whatever is a git directory by its content (a bare repository has any name). The guard of a run is
 * asked, as it stands when a run begins. And the other way round: names that the rules deny, and the
 * broker does not in directories that are new.
 */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/path.h"
#include "cli/explain.h"
#include "policy/match_name.h"
#include "sandbox/plan.h"
#include "supervise/broker/guard.h"

/* The deepest of the directories that the path lies in; NULL = none. */
static const char *deepest_over(const char *const *v, size_t n, const char *path)
{
	const char *found = NULL;

	for (size_t i = 0; i < n; i++) {
		if (path_within(path, v[i]) && (!found || path_within(v[i], found)))
			found = v[i];
	}
	return found;
}

static const char *directory_of(struct arena *a, const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash == path ? "/" : arena_strndup(a, path, (size_t)(slash - path));
}

/*
 * The call that would come first. In a directory that is there: a file in it is made. Where
 * directories on the way are missing: the first of them is.
 */
static void first_call(struct arena *a, const char *target, struct guard_question *ret)
{
	const struct view *view = &path_host_view;
	enum file_kind kind = view->kind(view, target);
	const char *dir = directory_of(a, target);

	ret->op = GUARD_WRITE;
	ret->creates = kind == FILE_ABSENT;
	ret->name = strrchr(target, '/') + 1;
	if (kind == FILE_DIRECTORY) {
		ret->creates = true;
		ret->name = "file";
		dir = target;
	}
	while (strcmp(dir, "/") != 0 && view->kind(view, dir) == FILE_ABSENT) {
		ret->op = GUARD_MAKE_DIR;
		ret->creates = false;
		ret->directory = true;
		ret->name = strrchr(dir, '/') + 1;
		dir = directory_of(a, dir);
	}
	ret->path = dir;
}

bool explain_guarded(const struct question *q, const struct plan *plan, struct answer *ret)
{
	struct arena *a = q->inv->arena;
	const char *root = deepest_over(plan->guarded, plan->n_guarded, ret->target);
	_cleanup_fd_ int parent = -1;
	struct guard_question ask = { .root = root };
	struct guard_answer said = { .allowed = true };
	const struct protected_name *name;

	if (!root || !plan->broker || deepest_over(plan->bulk, plan->n_bulk, ret->target))
		return false;
	first_call(a, ret->target, &ask);
	if (!path_within(ask.path, root))
		return false;
	parent = open(ask.path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (parent < 0)
		return false;
	ask.parent = parent;
	guard_ask(guard_new(a, q->policy, plan), &ask, &said);
	if (said.allowed)
		return false;
	name = said.git_config ? protected_find(q->policy, ".git/config")
	       : said.git_name ? said.git_name
			       : said.protected;
	ret->rule = ret->entry = ret->hint = NULL;
	ret->source = "default";
	ret->reason = said.reason;
	if (name)
		explain_protected(q, name, ret);
	ret->verdict = VERDICT_DENY;
	return true;
}

/* The first `n` components of a path. */
static const char *first_components(struct arena *a, const char *path, unsigned n)
{
	const char *end = path;

	while (n-- > 0)
		end += 1 + strcspn(end + 1, "/");
	return arena_strndup(a, path, (size_t)(end - path));
}

/* Is the name free if the command makes the directory that holds it? */
static bool is_free_when_new(const struct question *q, const char *root,
			     const struct protected_name *name, const char *path, int before)
{
	const struct view *view = &path_host_view;
	const char *holder;

	if (name->locked || protected_by_content(name) || (unsigned)before <= path_depth(root))
		return false;
	holder = first_components(q->inv->arena, path, (unsigned)before);
	return view->kind(view, holder) == FILE_ABSENT;
}

bool explain_new_territory(const struct question *q, const struct plan *plan, struct answer *ret)
{
	const struct policy *p = q->policy;
	const char *path = ret->target, *root = deepest_over(plan->guarded, plan->n_guarded, path);

	if (!root || !plan->broker || plan_held_over(plan, path))
		return false;
	for (int i = -1; (i = name_index_next(p->fs.protected_index, path, i + 1)) >= 0;) {
		const struct protected_name *name = &p->fs.protected[i];
		int before = name_pattern_covers(name->pattern, path,
						 name->locked ? 0 : path_depth(root));

		if (before >= 0 && !protected_lifter(p, name)->lifted &&
		    !is_free_when_new(q, root, name, path, before))
			return false;
	}
	ret->verdict = VERDICT_ALLOW;
	ret->reason = "the name is free in a directory that the command itself makes, and told at "
		      "the end of the run";
	ret->hint = NULL;
	return true;
}
