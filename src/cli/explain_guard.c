/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the rules allow and the broker refuses, because of what a directory holds: git's own names in
 * whatever is a git directory by its content (a bare repository has any name). The guard of a run is
 * asked, as it stands when a run begins.
 */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/path.h"
#include "cli/explain.h"
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
