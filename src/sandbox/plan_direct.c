/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ambit-direct.so (native/direct.c) in a plan: who names directories that are granted directly gets
 * the library by which programs fill them at no price. It is shown where it lies, read-only, even in
 * a private place; where a rule hides it, all goes by way of the broker, as without it.
 */
#include <string.h>

#include "policy/match_path.h"
#include "sandbox/plan_points.h"

/* Who has no Landlock that knows truncation is deceived by paths: there the broker must see them. */
static bool may_be_direct(struct compiler *c)
{
	const struct policy *p = c->p;
	const char *library = c->facts->direct_library;
	struct decision d;

	if ((!p->fs.bulk.n && p->fs.protect != PROTECT_ANCHORS) || !library || !c->guarding ||
	    c->plan->backend != BACKEND_NATIVE || c->plan->cut_unguarded ||
	    c->view->kind(c->view, library) != FILE_REGULAR)
		return false;
	policy_decide_path(p, ACCESS_READ, library, &d);
	return d.verdict == VERDICT_ALLOW || !d.rule;
}

void plan_show_direct(struct compiler *c)
{
	struct point *pt;

	if (!may_be_direct(c))
		return;
	pt = plan_add_point(c, c->facts->direct_library);
	c->view->look(c->view, c->a, pt->path, &pt->at);
	/* the sandbox's own, though no rule names it, and not the command's to change */
	pt->shown = pt->socket = pt->guarded = true;
	pt->why = "files are made in bulk directories by it";
}

static const char *variable(const struct compiler *c, const char *name)
{
	size_t n = strlen(name);

	for (char **v = c->plan->env; *v; v++) {
		if (strncmp(*v, name, n) == 0 && (*v)[n] == '=')
			return *v + n + 1;
	}
	return NULL;
}

void plan_make_direct(struct compiler *c)
{
	const char *library = c->facts->direct_library;
	const char *given = variable(c, "LD_PRELOAD");

	c->plan->direct = c->plan->n_bulk > 0 && may_be_direct(c);
	if (!c->plan->direct)
		return;
	plan_set_variable(c, "LD_PRELOAD",
			  given && *given ? arena_printf(c->a, "%s:%s", given, library) : library);
	/* or programs made with -fsanitize=address refuse to start, since another library comes first */
	if (!variable(c, "ASAN_OPTIONS"))
		plan_set_variable(c, "ASAN_OPTIONS", "verify_asan_link_order=0");
}
