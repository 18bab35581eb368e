/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ambit-direct.so (native/direct.c) in a plan: who names directories that are granted directly gets
 * the library by which programs fill them at no price. It is shown where it lies, read-only, even in
 * a private place; where a rule hides it, all goes by way of the broker, as without it.
 */
#include <string.h>

#include "policy/match_path.h"
#include "sandbox/plan_points.h"

/*
 * The library where it lies, or NULL. Who has no Landlock that knows truncation is deceived by paths:
 * there the broker must see them; and it tells every denial to who watches (--report-reads), and counts files (--disk).
 */
static const char *find_library(struct compiler *c, struct view_entry *ret)
{
	const struct policy *p = c->p;
	struct decision d;

	if ((!p->fs.bulk.n && p->fs.protect != PROTECT_ANCHORS) || !c->facts->direct_library ||
	    !c->guarding || c->plan->backend != BACKEND_NATIVE || c->plan->cut_unguarded ||
	    c->facts->watch || p->limits.disk)
		return NULL;
	c->view->look(c->view, c->a, c->facts->direct_library, ret);
	/* loaders take a name with these apart */
	if (ret->kind != FILE_REGULAR || ret->unreadable || ret->real[strcspn(ret->real, " :$")])
		return NULL;
	policy_decide_path(p, ACCESS_READ, ret->real, &d);
	return d.verdict == VERDICT_ALLOW || !d.rule ? ret->real : NULL;
}

void plan_show_direct(struct compiler *c)
{
	struct view_entry at;
	const char *library = find_library(c, &at);
	struct point *pt;

	if (!library)
		return;
	pt = plan_add_point(c, library);
	pt->at = at;
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
	const char *given = variable(c, "LD_PRELOAD");
	struct view_entry at;
	const char *library = c->plan->n_bulk > 0 ? find_library(c, &at) : NULL;

	c->plan->direct = library != NULL;
	if (!c->plan->direct)
		return;
	plan_set_variable(c, "LD_PRELOAD",
			  given && *given ? arena_printf(c->a, "%s:%s", given, library) : library);
}
