/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What protected names lead to. A link with a protected name (.env -> .env.local) shows what
 * stands at its target: whoever writes there, or puts something else in the place of a link on the
 * way, changes what the name means. What exists is mounted read-only (plan_points.c); that
 * holds nothing that is missing, and no links. So the broker guards the paths as well.
 *
 * Only the names that are looked up anyway are followed: links deeper in the tree are not found.
 * What git's configuration leads to (plan_git.c) is walked to in the same way.
 */
#include <string.h>

#include "policy/match_name.h"
#include "sandbox/plan_points.h"

/* What is on the way, and why it is guarded. */
struct lead {
	const struct protected_name *name;
	const char *why; /* NULL = a link with that name */
};

/* Only what the broker judges: private places and what is read-only need nothing. True: it is new. */
static bool hold(struct compiler *c, const char *path, const struct lead *lead)
{
	struct plan *plan = c->plan;
	struct decision d;

	if (!lead)
		return false;
	policy_decide_path(c->p, ACCESS_WRITE, path, &d);
	if (!d.rule || d.rule->access != ACCESS_WRITE || d.rule->verdict != VERDICT_ALLOW)
		return false;
	for (size_t i = 0; i < plan->n_held; i++) {
		if (strcmp(plan->held[i].path, path) == 0)
			return false;
	}
	if (c->guarding)
		*ARENA_PUSH(c->a, plan->held, plan->n_held) =
			(struct held_path){ path, lead->name, lead->why };
	return true;
}

/*
 * Walk from `at` as the kernel does, to what is returned. Of a protected name the first link is
 * the name itself, or begins it, and is guarded as such: without a link there is nothing to hold.
 * lead NULL = only look.
 */
static const char *follow(struct compiler *c, const char *at, const char *rest,
			  const struct lead *lead, bool *ret_held)
{
	unsigned links = 0, below = 0; /* below: directories entered since the last link */
	bool named = lead && !lead->why;

	while (*rest) {
		size_t n = strcspn(rest, "/");
		char *part = arena_strndup(c->a, rest, n), *next = path_join(c->a, at, part);
		const char *text = NULL;
		enum file_kind kind;

		rest += n + (rest[n] == '/');
		if (!*part || strcmp(part, ".") == 0)
			continue;
		if (strcmp(part, "..") == 0) {
			/* a link in its place would have another parent */
			if (below > 0) {
				(void)hold(c, path_join(c->a, at, "."), lead);
				below--;
			}
			at = path_absolute(c->a, at, "..");
			continue;
		}
		kind = c->view->kind(c->view, next);
		if (kind == FILE_UNKNOWN)
			plan_refuse_shut(c, next, next, "would be guarded");
		if (links < LINKS_MAX && kind == FILE_LINK)
			text = c->view->target(c->view, c->a, next);
		if (!text) {
			at = next;
			below++;
			continue;
		}
		if (links++ > 0 || !named)
			(void)hold(c, next, lead);
		if (*text == '/')
			at = "/";
		below = 0;
		rest = arena_printf(c->a, "%s/%s", text, rest);
	}
	*ret_held = (links > 0 || !named) && hold(c, at, lead);
	return at;
}

const char *plan_follow(struct compiler *c, const char *at, const char *path)
{
	bool held;

	return follow(c, at, path, NULL, &held);
}

bool plan_hold_path(struct compiler *c, const char *at, const char *path,
		    const struct protected_name *name, const char *why)
{
	bool held;

	(void)follow(c, at, path, &(struct lead){ name, why }, &held);
	return held;
}

void plan_hold_links(struct compiler *c, const char *dir, const struct protected_name *name)
{
	const char *last = strrchr(name->pattern, '/');
	const struct lead lead = { .name = name };
	struct view_entry at;
	bool held;

	if (!protected_by_content(name)) {
		(void)follow(c, dir, name->pattern, &lead, &held);
		return;
	}
	/* where the git directory itself is reached by a link, its content tells what it is */
	c->view->look(c->view, c->a,
		      path_join(c->a, dir,
				arena_strndup(c->a, name->pattern, (size_t)(last - name->pattern))),
		      &at);
	if (at.kind == FILE_DIRECTORY)
		(void)follow(c, at.real, last + 1, &lead, &held);
}

const struct held_path *plan_held_over(const struct plan *plan, const char *path)
{
	for (size_t i = 0; i < plan->n_held; i++) {
		if (name_path_within(path, plan->held[i].path))
			return &plan->held[i];
	}
	return NULL;
}

const char *plan_held_reason(const struct held_path *held)
{
	return held->why ? held->why : "a protected name leads here";
}
