/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the rules allow, and the sandbox refuses all the same: second places of what they hide
 * (sandbox/plan_mounted.c), what protected names lead to (sandbox/plan_held.c), and what is
 * replaced by something of the sandbox's own, like /dev. Where these are only a plan knows. What the
 * broker refuses besides is in explain_guard.c.
 */
#include <string.h>

#include "base/path.h"
#include "cli/explain.h"
#include "sandbox/backend.h"

/* NULL: there is no sandbox, or none for anybody here, and `ambit run` says why. */
static int make_plan(const struct question *q, const struct plan **ret, struct error *e)
{
	const struct policy *p = q->policy;
	struct backend_decision chosen = { 0 };
	struct error cannot_start = { 0 };
	int r;

	*ret = NULL;
	if (!p->enabled || p->backend == BACKEND_NONE || p->backend == BACKEND_SEATBELT)
		return 0;
	r = plan_run(q->inv, p, &chosen, ret, &cannot_start);
	if (r == 0)
		return plan_check_prepare(p, e);
	*ret = NULL;
	if (!chosen.backend)
		return 0;
	*e = cannot_start;
	return r;
}

/* The step that decides what is seen at `path`: they are in order, the deepest last. */
static const struct mount_step *step_over(const struct plan *plan, const char *path)
{
	const struct mount_step *found = NULL;

	for (size_t i = 0; i < plan->n_mounts; i++) {
		if (plan->mounts[i].kind != MOUNT_PIN && path_within(path, plan->mounts[i].path))
			found = &plan->mounts[i];
	}
	return found;
}

/* Git writes it as it is, so that nobody could look at what: the broker leaves it alone. */
static bool is_left_to_git(const struct protected_name *n)
{
	return strcmp(n->pattern, ".git/worktrees/*/gitdir") == 0;
}

static void explain_name(const struct question *q, struct answer *ret)
{
	const struct protected_name *lifter = protected_lifter(q->policy, ret->name);

	if (is_left_to_git(ret->name)) {
		*ret = (struct answer){ .target = ret->target,
					.verdict = VERDICT_ALLOW,
					.source = ret->source,
					.reason = "git writes it when a worktree comes or moves" };
		return;
	}
	if (lifter == ret->name)
		return;
	explain_protected(q, lifter, ret);
	if (!lifter->lifted)
		return;
	ret->verdict = VERDICT_ALLOW;
	ret->rule = "filesystem.unprotect";
	ret->source = origin_text(q->inv->arena, &lifter->lifted_by);
	ret->reason = "the name is not protected";
	ret->hint = NULL;
}

static bool is_device(const char *path)
{
	return path_host_view.kind(&path_host_view, path) == FILE_OTHER;
}

/* Devices that are in every sandbox. */
static bool is_own_device(const struct plan *plan, const char *path)
{
	static const char *const nodes[] = { "/dev/null",   "/dev/zero",    "/dev/full",
					     "/dev/random", "/dev/urandom", "/dev/tty",
					     "/dev/ptmx",   "/dev/pts/ptmx" };

	for (size_t i = 0; plan->bare && i < plan->n_grants; i++) {
		if (plan->grants[i].rights & GRANT_DEVICE &&
		    strcmp(path, plan->grants[i].path) == 0)
			return true;
	}
	for (size_t i = 0; !plan->bare && i < ARRAY_LEN(nodes); i++) {
		if (strcmp(path, nodes[i]) == 0)
			return true;
	}
	return false;
}

static bool is_own_directory(const struct plan *plan, const char *path)
{
	return !plan->bare && (strcmp(path, "/dev") == 0 || strcmp(path, "/dev/pts") == 0 ||
			       strcmp(path, "/dev/shm") == 0);
}

/* /dev is the sandbox's own: some devices, and otherwise an empty place to write to. */
static void explain_devices(const struct plan *plan, enum access access, struct answer *ret)
{
	bool own = is_own_directory(plan, ret->target);

	*ret = (struct answer){ .target = ret->target, .source = "default" };
	if (is_own_device(plan, ret->target)) {
		ret->verdict = VERDICT_ALLOW;
		ret->reason = "a device that every sandbox has";
	} else if (plan->bare) {
		ret->verdict = VERDICT_DENY;
		ret->reason = "of the devices only the most common are allowed";
	} else if (own || (access == ACCESS_WRITE && !is_device(ret->target))) {
		ret->verdict = VERDICT_ALLOW;
		ret->reason = "the sandbox has its own private directory here";
	} else {
		ret->verdict = VERDICT_DENY;
		ret->reason = "the sandbox has a /dev of its own, without this";
	}
}

/* Why it is not seen, or written, though a rule for what is around it says so; NULL = it is. */
static const char *not_of_the_host(const struct mount_step *m, enum access access)
{
	if (m->kind == MOUNT_HIDE_DIR || m->kind == MOUNT_HIDE_FILE)
		return "the sandbox hides what is here";
	if (access == ACCESS_READ && (m->kind == MOUNT_PRIVATE || m->kind == MOUNT_FOLDER))
		return "the sandbox has its own private directory here";
	if (access == ACCESS_WRITE && m->kind == MOUNT_RO)
		return "the sandbox shows what is here read-only";
	if (access == ACCESS_WRITE && m->kind == MOUNT_PROC)
		return "the sandbox has a /proc of its own, in which nothing can be written";
	return NULL;
}

/* Then the broker may know best why it is not written: it is asked before the mounts. */
static bool is_the_hosts(const struct mount_step *m)
{
	return !m || m->kind == MOUNT_RW || m->kind == MOUNT_RO;
}

/* What gives the host's in place of the sandbox's own. */
static const char *hint_of_private(const struct question *q, const struct mount_step *m)
{
	return strcmp(m->path, q->policy->home) == 0 ? "--home real"
	       : strcmp(m->path, "/run") == 0        ? NULL
						     : "--tmp host";
}

/* What is written there is the sandbox's own. */
static const char *reason_of_private(const struct question *q, const struct mount_step *m)
{
	if (strcmp(m->path, q->policy->home) == 0)
		return "in the sandbox's own private home directory, gone afterwards";
	return strcmp(m->path, "/run") == 0
		       ? "in the sandbox's own private directory, gone afterwards"
		       : "in the sandbox's own private directory, gone afterwards; "
			 "--tmp shared gives the host's";
}

/* The rules allow it, but only a plan knows the second places of what they deny. */
static bool explain_others(const struct question *q, const struct plan *plan,
			   const struct mount_step *m, enum access access, struct answer *ret)
{
	const struct held_path *held =
		access == ACCESS_WRITE ? plan_held_over(plan, ret->target) : NULL;

	if (m && m->alias) {
		/* whoever may read it there may not write there yet */
		ret->hint = explain_rule(q, m->alias, ret) && access == ACCESS_READ
				    ? explain_hint_read(q->inv->arena, ret->target)
				    : NULL;
		ret->reason = "what this hides is mounted here, too";
	} else if (held) {
		explain_protected(q, held->name, ret);
		ret->reason = plan_held_reason(held);
	} else if (access == ACCESS_WRITE && is_the_hosts(m) && explain_guarded(q, plan, ret)) {
		return true;
	} else if (m && not_of_the_host(m, access)) {
		ret->rule = ret->entry = NULL;
		ret->source = "default";
		ret->reason = not_of_the_host(m, access);
		ret->hint = m->kind == MOUNT_PRIVATE ? hint_of_private(q, m) : NULL;
	} else {
		if (m && m->kind == MOUNT_PRIVATE)
			ret->reason = reason_of_private(q, m);
		return false;
	}
	ret->verdict = VERDICT_DENY;
	return true;
}

int explain_by_plan(const struct question *q, enum access access, struct answer *ret,
		    bool *ret_decided, struct error *e)
{
	const struct mount_step *m;
	const struct plan *plan;
	int r = make_plan(q, &plan, e);

	*ret_decided = false;
	if (r < 0 || !plan)
		return r;
	if (ret->name) {
		if (!explain_new_territory(q, plan, ret))
			explain_name(q, ret);
		*ret_decided = true;
		return 0;
	}
	m = step_over(plan, ret->target);
	if (ret->verdict == VERDICT_ALLOW)
		*ret_decided = explain_others(q, plan, m, access, ret);
	/* what an entry of the settings denies stays so */
	if (!*ret_decided && m && m->kind == MOUNT_DEV &&
	    (ret->verdict == VERDICT_ALLOW || !ret->entry)) {
		explain_devices(plan, access, ret);
		*ret_decided = true;
	}
	return 0;
}
