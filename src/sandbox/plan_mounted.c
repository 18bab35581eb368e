/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A secret is hidden by its path. Where its file system is mounted at another place too (a bind
 * mount, the top of a btrfs with its subvolumes, ostree's /sysroot), it has a second path, which is
 * computed from the table of mounts and hidden as well, if it is really the same file that is to
 * be seen there.
 *
 * The same table tells where else than at /proc and /sys the kernel shows itself (a chroot, the
 * root of a container). What is hidden at the usual place is hidden there too, whichever instance
 * of the file system it is, and the rest is never writable, wherever it lies.
 */
#include <string.h>

#include "sandbox/plan_points.h"

/* `path`, which lies in `from`, when `from` were `to`. */
static const char *rebase(struct arena *a, const char *path, const char *from, const char *to)
{
	const char *rest = path + (strcmp(from, "/") == 0 ? 0 : strlen(from));

	if (!*rest || strcmp(rest, "/") == 0)
		return to;
	return strcmp(to, "/") == 0 ? rest : arena_printf(a, "%s%s", to, rest);
}

static bool is_same(const struct view_entry *a, const struct view_entry *b)
{
	return a->kind == b->kind && a->dev == b->dev && a->ino == b->ino;
}

/* Where the place `inner` of a file system is seen through this mount, or the part of it that is; or NULL. */
static const char *seen_at(struct arena *a, const char *inner, const struct view_mount *m)
{
	if (path_within(inner, m->root))
		return rebase(a, inner, m->root, m->point);
	return path_within(m->root, inner) ? m->point : NULL;
}

size_t plan_seen_elsewhere(struct arena *a, const struct view_mount *mounts, size_t n,
			   const char *path, const char *const **ret)
{
	const char **found = NULL;
	size_t n_found = 0;

	for (size_t here = 0; here < n; here++) {
		const char *inner;

		if (!path_within(path, mounts[here].point))
			continue;
		inner = rebase(a, path, mounts[here].point, mounts[here].root);
		for (size_t there = 0; there < n; there++) {
			if (there == here || mounts[there].device != mounts[here].device ||
			    !path_within(inner, mounts[there].root))
				continue;
			*ARENA_PUSH(a, found, n_found) =
				rebase(a, inner, mounts[there].root, mounts[there].point);
		}
	}
	*ret = found;
	return n_found;
}

/* What is hidden at `pt`, seen through another mount of the same file system. */
static void add_other(struct compiler *c, const struct point *pt, const struct view_mount *here,
		      const struct view_mount *there)
{
	const char *inner = rebase(c->a, pt->path, here->point, here->root);
	const char *path = seen_at(c->a, inner, there);
	struct view_entry hidden = pt->at, at;
	struct point *other;

	if (!path)
		return;
	if (path_within(there->root, inner)) /* a part of it alone */
		c->view->look(c->view, c->a, rebase(c->a, there->root, here->root, here->point),
			      &hidden);
	c->view->look(c->view, c->a, path, &at);
	if (at.kind == FILE_UNKNOWN) { /* shut at one place is shut at both */
		plan_refuse_shut(c, path, path, "would be hidden");
		return;
	}
	if (path_within(path, pt->path) || strcmp(at.real, path) != 0 || !is_same(&at, &hidden))
		return;
	other = plan_add_point(c, path);
	other->at = at;
	other->alias = other->rule = pt->rule;
	c->aliases = true;
	other->why =
		arena_printf(c->a, "%s, which is mounted here too", plan_rule_text(c, pt->rule));
}

static bool is_hidden(const struct point *pt)
{
	return pt->rule && pt->rule->access == ACCESS_READ && pt->rule->verdict == VERDICT_DENY &&
	       (pt->at.kind == FILE_DIRECTORY || pt->at.kind == FILE_REGULAR ||
		pt->at.kind == FILE_OTHER || pt->at.kind == FILE_UNKNOWN);
}

/* Somebody who wrote a rule for this very place means it, unless it is only the project. */
static bool is_named(const struct compiler *c, const char *path, enum access access)
{
	for (size_t i = 0; i < c->p->fs.rules.n; i++) {
		const struct path_rule *r = &c->p->fs.rules.v[i];

		if (r->verdict == VERDICT_ALLOW && r->origin.layer != LAYER_DEFAULT &&
		    !r->origin.untrusted && (access == ACCESS_READ || r->access == ACCESS_WRITE) &&
		    strcmp(r->real, path) == 0)
			return true;
	}
	return false;
}

/* What of each kind is hidden; for others than root the permissions are enough in the last. */
static const char *revealing_part(const struct compiler *c, enum mount_type type)
{
	switch (type) {
	case TYPE_PROC:
		return c->plan->bare ? NULL : "/"; /* there /proc itself is the host's */
	case TYPE_SYSFS:
		return "/firmware";
	case TYPE_DEBUGFS:
	case TYPE_TRACEFS:
		return "/";
	case TYPE_SECURITYFS:
		return c->facts->uid == 0 ? "/" : NULL;
	case TYPE_CONTROL:
	case TYPE_FILES:
		break;
	}
	return NULL;
}

static bool hide_kernel(struct compiler *c, const char *path, uint64_t device, const char *why)
{
	struct view_entry at;
	struct point *pt;

	c->view->look(c->view, c->a, path, &at);
	/* another mount may lie over it */
	if (at.kind == FILE_ABSENT || at.kind == FILE_UNKNOWN || at.unreadable ||
	    at.dev != device || strcmp(at.real, path) != 0 || is_named(c, path, ACCESS_READ))
		return false;
	pt = plan_add_point(c, path);
	pt->at = at;
	pt->replaced = true;
	pt->kind = at.kind == FILE_DIRECTORY ? MOUNT_HIDE_DIR : MOUNT_HIDE_FILE;
	pt->why = why;
	return true;
}

/* In a writable directory: the kernel's controls are read there at the most. */
static void close_kernel(struct compiler *c, const struct view_mount *m)
{
	static const char why[] = "the kernel's controls, mounted here too";
	struct decision d;
	struct point *pt;

	policy_decide_path(c->p, ACCESS_WRITE, m->point, &d);
	if (d.verdict != VERDICT_ALLOW || is_named(c, m->point, ACCESS_WRITE))
		return;
	if (c->plan->bare) { /* a part of a writable directory cannot be read-only by Landlock */
		(void)hide_kernel(c, m->point, m->device, why);
		return;
	}
	pt = plan_add_point(c, m->point);
	c->view->look(c->view, c->a, m->point, &pt->at);
	pt->guarded = true;
	pt->why = why;
}

/* A file system of the kernel's; its usual places are in plan_points.c. */
static void add_kernel(struct compiler *c, const struct view_mount *m)
{
	const char *part = revealing_part(c, m->type), *path;

	if (m->type == TYPE_FILES || path_within(m->point, "/proc") ||
	    path_within(m->point, "/dev"))
		return;
	path = part ? seen_at(c->a, part, m) : NULL;
	if (path && !(m->type == TYPE_SYSFS && strcmp(m->point, "/sys") == 0) &&
	    hide_kernel(c, path, m->device,
			m->type == TYPE_PROC ? "processes of the host, mounted here too"
					     : "kernel internals, mounted here too") &&
	    strcmp(path, m->point) == 0)
		return; /* all of it */
	if (!path_within(m->point, "/sys"))
		close_kernel(c, m);
}

void plan_add_mounted(struct compiler *c)
{
	const struct view_mount *mounts = NULL;
	size_t n_points = c->n_points,
	       n = c->view->mounts ? c->view->mounts(c->view, c->a, &mounts) : 0;

	for (size_t i = 0; i < n; i++)
		add_kernel(c, &mounts[i]);
	for (size_t i = 0; i < n_points && n > 0; i++) {
		struct point pt = c->points[i]; /* a copy: more are added */

		for (size_t here = 0; is_hidden(&pt) && here < n; here++) {
			if (!path_within(pt.path, mounts[here].point))
				continue;
			for (size_t there = 0; there < n; there++) {
				if (there != here && mounts[there].device == mounts[here].device)
					add_other(c, &pt, &mounts[here], &mounts[there]);
			}
		}
	}
}
