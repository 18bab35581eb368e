/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From path rules to mounts.
 *
 * Every path that a rule names (or a pattern matches now), every place that the
 * sandbox replaces (/dev, /proc, /run, /tmp, ...) and every protected name that
 * exists is a *point*. Points are walked in path order with a stack of regions;
 * a region says how everything below it looks from inside:
 *
 *   RO    the host's files, read-only      (the whole tree starts as this)
 *   RW    the host's files, writable
 *   GONE  nothing of the host: hidden, or replaced by a private directory
 *
 * A mount is emitted only where a point wants another state than its region, so the
 * number of mounts grows with the rules, never with the user's tree.
 *
 * A directory that lies in a RW region above a mount could be renamed, and a
 * new one made in its place (a mount does not hold its ancestors): such
 * ancestors are pinned by a bind onto themselves.
 */
#include "sandbox/plan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "policy/match_path.h"
#include "sandbox/backend.h"
#include "sandbox/bwrap/bwrap.h"
#include "sandbox/container/container.h"
#include "sandbox/landlock/landlock.h"
#include "sandbox/plan_points.h"

/*
 * Before ABI 3 Landlock does not know truncation: a race could then empty a protected file, which
 * could be removed as well; making or changing one is refused by every version.
 */
#define GUARD_ABI 1
#define TRUNCATE_ABI 3

enum region_kind { REGION_RO, REGION_RW, REGION_GONE };

struct region {
	const char *path;
	enum region_kind kind;
};

static struct region *region_of(struct compiler *c, const char *path)
{
	while (c->n_stack > 1 && !path_within(path, c->stack[c->n_stack - 1].path))
		c->n_stack--;
	return &c->stack[c->n_stack - 1];
}

/* The second mount of something hidden that path lies in, locked if there is such a one; or NULL. */
static const struct point *alias_over(const struct compiler *c, const char *path)
{
	const struct point *found = NULL;

	for (size_t i = 0; c->aliases && i < c->n_points; i++) {
		const struct point *pt = &c->points[i];

		if (pt->alias && path_within(path, pt->path) && (!found || pt->alias->locked))
			found = pt;
	}
	return found;
}

/* A rule that names this very place opens it; what the managed file hides, only the managed file. */
static bool is_hidden_alias(const struct compiler *c, const struct point *pt,
			    const struct path_rule *allow)
{
	const struct point *over = alias_over(c, pt->path);

	if (over && over->alias->locked)
		return !allow || !layer_is_managed(allow->origin.layer);
	return pt->alias &&
	       (!allow || allow->origin.untrusted || strcmp(allow->real, pt->path) != 0);
}

/*
 * The same for what a link leads to, if a pattern matches the link's name: no rule speaks of the
 * place itself, so what is to be hidden by that name is hidden there.
 */
static bool is_hidden_by_name(const struct compiler *c, const struct point *pt,
			      const struct path_rule *allow)
{
	struct decision d;

	if (!pt->name)
		return false;
	policy_decide_path(c->p, ACCESS_READ, pt->name, &d);
	if (d.verdict != VERDICT_DENY)
		return false;
	if (d.rule && d.rule->locked)
		return !allow || !layer_is_managed(allow->origin.layer);
	return !allow || strcmp(allow->real, pt->path) != 0;
}

/* What a rule's point should look like from inside. */
static enum region_kind wanted(struct compiler *c, const struct point *pt,
			       const struct region *region)
{
	struct decision d;

	policy_decide_path(c->p, ACCESS_READ, pt->path, &d);
	/* a socket that may be connected to is seen though its directory is private */
	if (d.verdict == VERDICT_DENY && (!pt->socket || d.rule))
		return REGION_GONE;
	if (is_hidden_alias(c, pt, d.rule) || is_hidden_by_name(c, pt, d.rule))
		return REGION_GONE;
	/* out of a hidden or private place only what a deeper rule names comes back */
	if (region->kind == REGION_GONE && !pt->shown &&
	    (!d.rule || !path_within(d.rule->real, region->path) ||
	     strcmp(d.rule->real, region->path) == 0))
		return REGION_GONE;
	if (d.verdict == VERDICT_DENY)
		return REGION_RO;
	policy_decide_path(c->p, ACCESS_WRITE, pt->path, &d);
	return d.verdict == VERDICT_ALLOW && !pt->guarded ? REGION_RW : REGION_RO;
}

/* The object that was judged: another one at its path is refused by who mounts it. */
static void remember_object(struct mount_step *m, const struct view_entry *at)
{
	m->dev = at->dev;
	m->ino = at->ino;
}

static void pin_ancestors(struct compiler *c, const struct region *region, const char *path)
{
	size_t top = strcmp(region->path, "/") == 0 ? 0 : strlen(region->path);

	for (const char *s = path + top + 1; (s = strchr(s, '/')); s++) {
		struct mount_step *m = ARENA_PUSH(c->a, c->plan->mounts, c->plan->n_mounts);
		struct view_entry at;

		m->order = c->plan->n_mounts;
		m->kind = MOUNT_PIN;
		m->path = arena_strndup(c->a, path, (size_t)(s - path));
		m->directory = true;
		m->why = arena_printf(c->a, "holds %s", path);
		if (!c->plan->contained)
			continue;
		c->view->look(c->view, c->a, m->path, &at);
		remember_object(m, &at);
	}
}

static void emit(struct compiler *c, const struct point *pt, const struct region *region,
		 enum mount_kind kind)
{
	struct mount_step *m;
	const char *why = pt->why ? pt->why : plan_rule_text(c, pt->rule);

	if (region->kind == REGION_RW)
		pin_ancestors(c, region, pt->path);
	m = ARENA_PUSH(c->a, c->plan->mounts, c->plan->n_mounts);
	m->order = c->plan->n_mounts;
	m->kind = kind;
	m->path = pt->path;
	m->directory = pt->at.kind == FILE_DIRECTORY;
	m->make_point = region->kind == REGION_GONE;
	m->mode = pt->mode;
	m->text = pt->text;
	m->direct = pt->replaced;
	m->why = why;
	if (kind == MOUNT_HIDE_DIR || kind == MOUNT_HIDE_FILE)
		m->alias = pt->alias;
	if (kind == MOUNT_RW || kind == MOUNT_RO)
		remember_object(m, &pt->at);
}

static enum region_kind region_after(enum mount_kind kind)
{
	if (kind == MOUNT_RW || kind == MOUNT_PIN)
		return REGION_RW;
	return kind == MOUNT_RO || kind == MOUNT_PROC ? REGION_RO : REGION_GONE;
}

/*
 * A protected name that a rule lifts at this place: a mount of its own makes it the top of what the
 * broker guards there, and keeps it and the directories above from being moved to where nobody
 * lifted the name.
 */
static bool is_lifted(const struct compiler *c, const struct point *pt, const struct region *region)
{
	return c->guarding && pt->rule && region->kind == REGION_RW &&
	       protected_is_named(c->p, path_depth(region->path), pt->path);
}

static int place_point(struct compiler *c, const struct point *pt)
{
	const struct region *region = region_of(c, pt->path);
	enum region_kind want;
	enum mount_kind kind;
	struct region *below;

	if (pt->replaced) {
		kind = pt->kind;
		if ((kind == MOUNT_HIDE_DIR || kind == MOUNT_HIDE_FILE) &&
		    region->kind == REGION_GONE)
			return 0;
	} else {
		want = wanted(c, pt, region);
		if (want == region->kind && !is_lifted(c, pt, region))
			return 0;
		if (pt->at.kind == FILE_ABSENT) {
			/* only denyWrite comes here: the command could create it */
			if (region->kind != REGION_RW || c->guarding)
				return 0;
			return error_set(
				c->e, ENOENT,
				"%s: does not exist, and %s nothing keeps it from being created",
				plan_rule_text(c, pt->rule),
				c->plan->contained ? "in a container"
				: c->plan->bare    ? "without a broker"
						   : "without Landlock");
		}
		if (pt->at.kind == FILE_UNKNOWN)
			return 0; /* out of the caller's own reach, so out of the command's */
		kind = want == REGION_RW ? MOUNT_RW : want == REGION_RO ? MOUNT_RO : MOUNT_HIDE_DIR;
		if (kind == MOUNT_HIDE_DIR && pt->at.kind != FILE_DIRECTORY)
			kind = MOUNT_HIDE_FILE;
		if (want == REGION_GONE && region->kind == REGION_RO && pt->at.unreadable)
			return 0; /* the caller cannot read it, so neither can the command */
	}
	emit(c, pt, region, kind);
	below = ARENA_PUSH(c->a, c->stack, c->n_stack);
	below->path = pt->path;
	below->kind = region_after(kind);
	return 0;
}

static int compare_steps(const void *a, const void *b)
{
	const struct mount_step *m = a, *n = b;
	int order = path_compare(m->path, n->path);

	/* a pin gives way to whatever else stands at its path */
	if (order == 0)
		order = (m->kind == MOUNT_PIN) - (n->kind == MOUNT_PIN);
	return order ? order : (m->order > n->order) - (m->order < n->order);
}

static void sort_steps(struct plan *plan)
{
	size_t kept = 0;

	if (plan->n_mounts)
		qsort(plan->mounts, plan->n_mounts, sizeof(*plan->mounts), compare_steps);
	for (size_t i = 0; i < plan->n_mounts; i++) {
		if (kept && strcmp(plan->mounts[kept - 1].path, plan->mounts[i].path) == 0)
			continue;
		plan->mounts[kept++] = plan->mounts[i];
	}
	plan->n_mounts = kept;
}

/*
 * A unix socket that may be connected to lies below dir, or dir in a directory of such: who moves
 * what to there must be looked at (broker/sockets.c).
 */
static bool holds_socket(const struct compiler *c, const char *dir)
{
	const struct text_rules *sockets = &c->p->network.unix_sockets;

	for (size_t i = 0; !c->p->network.allow_all_unix_sockets && i < sockets->n; i++) {
		if (path_within(sockets->v[i].text, dir) || path_within(dir, sockets->v[i].text))
			return true;
	}
	return false;
}

/* A denyWrite rule, or a target of a protected name, that could hold below dir needs the guard there. */
static bool holds_deny(const struct compiler *c, const char *dir)
{
	for (size_t i = 0; i < c->p->fs.rules.n; i++) {
		const struct path_rule *r = &c->p->fs.rules.v[i];

		if (r->access == ACCESS_WRITE && r->verdict == VERDICT_DENY &&
		    (r->glob ? pattern_may_match_below(r->real, dir) : path_within(r->real, dir)))
			return true;
	}
	for (size_t i = 0; i < c->plan->n_held; i++) {
		if (path_within(c->plan->held[i].path, dir) ||
		    path_within(dir, c->plan->held[i].path))
			return true;
	}
	return false;
}

static void add_bulk(struct compiler *c, const char *path)
{
	*ARENA_PUSH(c->a, c->plan->bulk, c->plan->n_bulk) = path;
	*ARENA_PUSH(c->a, c->plan->writable, c->plan->n_writable) = path;
}

/* Directories below `dir` that heavy writers fill: granted directly, not guarded. */
static void list_bulk(struct compiler *c, const char *dir)
{
	for (size_t i = 0; i < c->p->fs.bulk.n; i++) {
		char *path = path_join(c->a, dir, c->p->fs.bulk.v[i].text);

		if (c->view->kind(c->view, path) != FILE_DIRECTORY || holds_deny(c, path) ||
		    holds_socket(c, path))
			continue;
		add_bulk(c, path);
	}
}

/* Is `name` the first component of a protected name (.git, .claude)? */
static bool begins_protected(const struct compiler *c, const char *name)
{
	size_t n = strlen(name);

	for (size_t i = 0; i < c->p->fs.n_protected; i++) {
		const char *pattern = c->p->fs.protected[i].pattern;

		if (strncmp(pattern, name, n) == 0 && (pattern[n] == '/' || pattern[n] == '\0'))
			return true;
	}
	return false;
}

/* filesystem.protect anchors: what lies deeper than the top is granted directly, but git. */
static void list_subdirectories(struct compiler *c, const char *root)
{
	const char *const *names;
	int n = c->view->list(c->view, c->a, root, &names);

	for (int i = 0; i < n; i++) {
		char *path = path_join(c->a, root, names[i]);
		struct decision d;

		if (c->view->kind(c->view, path) != FILE_DIRECTORY)
			continue;
		policy_decide_path(c->p, ACCESS_WRITE, path, &d);
		if (d.verdict == VERDICT_DENY || begins_protected(c, names[i]) ||
		    holds_deny(c, path) || holds_socket(c, path) ||
		    c->view->kind(c->view, path_join(c->a, path, "objects")) != FILE_ABSENT)
			continue;
		add_bulk(c, path);
	}
}

static void list_guarded(struct compiler *c, const char *root)
{
	*ARENA_PUSH(c->a, c->plan->guarded, c->plan->n_guarded) = root;
	if (c->p->fs.protect == PROTECT_ANCHORS) {
		list_subdirectories(c, root);
		return;
	}
	list_bulk(c, root);
	if (path_within(c->p->cwd, root) && strcmp(c->p->cwd, root) != 0)
		list_bulk(c, c->p->cwd);
}

/* Grant direct writes below `path`, unless that would reach into a guarded directory. */
static void list_direct(struct compiler *c, const char *path)
{
	struct plan *plan = c->plan;

	for (size_t i = 0; i < plan->n_writable; i++) {
		if (path_within(path, plan->writable[i]))
			return;
	}
	for (size_t i = 0; i < plan->n_guarded; i++) {
		if (path_within(plan->guarded[i], path)) {
			*ARENA_PUSH(c->a, plan->relayed, plan->n_relayed) = path;
			return;
		}
	}
	*ARENA_PUSH(c->a, plan->writable, plan->n_writable) = path;
}

/* The host's own directory, of which no name is guarded: a shared /tmp. */
static void list_shared(struct compiler *c, const struct mount_step *m)
{
	struct plan *plan = c->plan;

	if (c->guarding && m->directory && holds_socket(c, m->path))
		*ARENA_PUSH(c->a, plan->relayed, plan->n_relayed) = m->path;
	else
		list_direct(c, m->path);
}

static void list_writable(struct compiler *c)
{
	struct plan *plan = c->plan;

	if (plan->root_writable && c->guarding)
		list_guarded(c, "/");
	for (size_t i = 0; c->guarding && i < plan->n_mounts; i++) {
		if (plan->mounts[i].kind == MOUNT_RW && plan->mounts[i].directory &&
		    !plan->mounts[i].direct)
			list_guarded(c, plan->mounts[i].path);
	}
	if (plan->root_writable && !c->guarding)
		list_direct(c, "/");
	for (size_t i = 0; i < plan->n_mounts; i++) {
		const struct mount_step *m = &plan->mounts[i];

		if (m->kind == MOUNT_RW && (!m->directory || m->direct || !c->guarding))
			list_shared(c, m);
		if (m->kind == MOUNT_PRIVATE || (m->kind == MOUNT_DEV && !plan->bare))
			list_direct(c, m->path);
	}
}

static int compile_mounts(struct compiler *c)
{
	struct decision root;
	struct region *base;
	int r;

	policy_decide_path(c->p, ACCESS_WRITE, "/", &root);
	c->plan->root_writable = root.verdict == VERDICT_ALLOW;
	r = plan_gather_points(c);
	if (r < 0)
		return r;

	base = ARENA_PUSH(c->a, c->stack, c->n_stack);
	base->path = "/";
	base->kind = c->plan->contained       ? REGION_GONE
		     : c->plan->root_writable ? REGION_RW
					      : REGION_RO;
	for (size_t i = 0; i < c->n_points; i++) {
		if (strcmp(c->points[i].path, "/") == 0)
			continue; /* the tree as a whole: decided above */
		r = place_point(c, &c->points[i]);
		if (r < 0)
			return r;
	}
	sort_steps(c->plan);
	list_writable(c);
	return 0;
}

void plan_set_variable(struct compiler *c, const char *name, const char *value)
{
	char *entry = arena_printf(c->a, "%s=%s", name, value), **env;
	size_t n = 0, len = strlen(name) + 1;

	for (; c->plan->env[n]; n++) {
		if (strncmp(c->plan->env[n], entry, len) == 0) {
			c->plan->env[n] = entry;
			return;
		}
	}
	env = arena_array(c->a, n + 2, sizeof(*env));
	memcpy(env, c->plan->env, n * sizeof(*env));
	env[n] = entry;
	c->plan->env = env;
}

/* $PWD may name the directory by another way, but not another directory. */
static void correct_environment(struct compiler *c)
{
	for (char **v = c->plan->env; *v; v++) {
		struct view_entry at;

		if (strncmp(*v, "PWD=", 4) != 0)
			continue;
		c->view->look(c->view, c->a, *v + 4, &at);
		if (strcmp(at.real, c->plan->cwd) != 0)
			*v = arena_printf(c->a, "PWD=%s", c->plan->cwd);
	}
}

/*
 * Without mounts a private place cannot stand where the host's is: it lies in a directory of
 * the sandbox's own, and the variables say where.
 */
static void place_private(struct compiler *c)
{
	struct plan *plan = c->plan;
	const struct policy *p = c->p;
	const char *tmp = c->facts->private_tmp;

	if (p->fs.tmp == TMP_PRIVATE)
		plan_set_variable(c, "TMPDIR", tmp);
	if (p->fs.tmp == TMP_PRIVATE || p->fs.home == HOME_PRIVATE || c->facts->n_files)
		plan->private_tmp = tmp;
	for (size_t i = 0; i < c->facts->n_files; i++)
		*ARENA_PUSH(c->a, plan->files, plan->n_files) =
			(struct plan_file){ arena_printf(c->a, "%s%s", tmp,
							 c->facts->files[i].path),
					    c->facts->files[i].text };
	if (p->fs.home != HOME_PRIVATE)
		return;
	plan->private_home = path_join(c->a, tmp, "home");
	if (strcmp(plan->cwd, p->home) == 0)
		plan->cwd = plan->private_home;
	plan_set_variable(c, "HOME", plan->private_home);
	for (char **v = plan->env; *v; v++) {
		const char *value = strchr(*v, '=') + 1;

		if (strncmp(*v, "XDG_", 4) == 0 && path_within(value, p->home))
			*v = arena_printf(c->a, "%.*s%s%s", (int)(value - *v), *v,
					  plan->private_home, value + strlen(p->home));
	}
}

/*
 * Without namespaces names are asked for at the nameserver of the host, and the broker takes
 * the question to the proxy. It cannot do that for datagrams: the C library is told to use TCP.
 */
static void ask_names_by_tcp(struct compiler *c)
{
	static const char name[] = "RES_OPTIONS=";
	const char *before = "";

	for (char **v = c->plan->env; *v; v++) {
		if (strncmp(*v, name, strlen(name)) == 0)
			before = *v + strlen(name);
	}
	plan_set_variable(c, "RES_OPTIONS",
			  arena_printf(c->a, "%s%suse-vc", before, *before ? " " : ""));
}

/* Without the kernel's default-deny the broker could be bypassed: never half of it. */
static int choose_guarding(struct compiler *c)
{
	if (c->plan->contained)
		return 0; /* what it does not hold is told by who chose the backend */
	c->guarding = c->facts->landlock_abi >= GUARD_ABI && !c->facts->no_listener;
	c->plan->cut_unguarded = c->facts->landlock_abi < TRUNCATE_ABI;
	c->plan->wait_killable = c->facts->wait_killable;
	if (c->guarding && !c->facts->wait_killable)
		plan_note(
			c,
			"this kernel (before Linux 5.19) lets signals interrupt brokered calls: a "
			"program that handles signals may see EINTR, or a call repeated");
	/* what a bare plan does not hold is told by who chose the backend */
	if (c->guarding || c->plan->bare)
		return 0;
	if (c->facts->too_old)
		return error_set(c->e, ENOTSUP,
				 "this kernel is too old: read-only trees need Linux 5.12 "
				 "(mount_setattr), protected names 5.14 (Landlock, seccomp)");
	if (c->p->fallback != FALLBACK_WARN)
		return error_set(c->e, ENOTSUP,
				 "protecting names needs Landlock ABI %d, this kernel has %d; with "
				 "--fallback warn only protected files that exist at the top of "
				 "writable directories are kept",
				 GUARD_ABI, c->facts->landlock_abi);
	plan_note(c,
		  "not enforced: protected names that do not exist yet, or lie deeper "
		  "(needs Landlock ABI %d, this kernel has %d)",
		  GUARD_ABI, c->facts->landlock_abi);
	return 0;
}

static bool covers_cwd(const struct compiler *c, const struct path_rule *r)
{
	return r->glob ? pattern_covers(r->real, c->p->cwd) : path_within(c->p->cwd, r->real);
}

/* "." of a profile or the managed file: written without this directory in mind. */
static bool names_any_cwd(const struct path_rule *r)
{
	return (layer_is_profile(r->origin.layer) || layer_is_managed(r->origin.layer)) &&
	       strcmp(r->text, ".") == 0;
}

static bool same_source(const struct origin *a, const struct origin *b)
{
	return a->layer == b->layer && strcmp(a->name, b->name) == 0;
}

/* Does this rule open the working directory, which the other hides at `place`? */
static bool opens_cwd(const struct compiler *c, const struct path_rule *r,
		      const struct path_rule *hidden, const char *place)
{
	if (r->verdict != VERDICT_ALLOW || r->origin.layer == LAYER_DEFAULT ||
	    r->origin.untrusted || !covers_cwd(c, r) || path_depth(r->real) < path_depth(place))
		return false;
	if (names_any_cwd(r) && !same_source(&r->origin, &hidden->origin))
		return false;
	return hidden->locked ? layer_is_managed(r->origin.layer) : !r->glob;
}

static bool is_cwd_opened(const struct compiler *c, const struct path_rule *hidden,
			  const char *place)
{
	for (size_t i = 0; i < c->p->fs.rules.n; i++) {
		if (opens_cwd(c, &c->p->fs.rules.v[i], hidden, place))
			return true;
	}
	return false;
}

static int refuse_cwd(struct compiler *c, const char *by)
{
	return error_set(c->e, EACCES,
			 "the working directory %s is hidden by %s: use --chdir DIR or "
			 "--allow-read %s",
			 c->p->cwd, by, c->p->cwd);
}

/* The same by another mount, which is known when the points are. */
static int check_cwd_alias(struct compiler *c)
{
	const struct point *over = alias_over(c, c->p->cwd);

	if (!over || is_cwd_opened(c, over->alias, over->path))
		return 0;
	return refuse_cwd(c, arena_printf(c->a, "%s, which is mounted at %s too",
					  plan_rule_text(c, over->alias), over->path));
}

/*
 * Being in a hidden directory does not open it: the built-in rule that makes the working directory
 * writable is no reason to show a secret.
 */
static int check_cwd(struct compiler *c)
{
	const char *cwd = c->p->cwd;
	const struct path_rule *hidden = NULL;
	struct decision d;

	for (size_t i = 0; i < c->p->fs.rules.n; i++) {
		const struct path_rule *r = &c->p->fs.rules.v[i];

		/* the built-in secrets, and what is locked; "hide all but this" is fine */
		if (r->access == ACCESS_READ && r->verdict == VERDICT_DENY &&
		    (r->origin.layer == LAYER_DEFAULT || r->locked) && covers_cwd(c, r) &&
		    (!hidden || path_depth(r->real) >= path_depth(hidden->real)))
			hidden = r;
	}
	if (hidden && is_cwd_opened(c, hidden, hidden->real))
		hidden = NULL;
	policy_decide_path(c->p, ACCESS_READ, cwd, &d);
	if (d.verdict == VERDICT_DENY && d.rule)
		hidden = d.rule;
	return hidden ? refuse_cwd(c, plan_rule_text(c, hidden)) : 0;
}

int plan_compile(struct arena *a, const struct policy *p, const struct plan_facts *facts,
		 const struct view *view, const struct plan **ret, struct error *e)
{
	struct plan *plan = arena_alloc(a, sizeof(*plan));
	struct compiler c = { .a = a, .p = p, .facts = facts, .view = view, .plan = plan, .e = e };
	int r;

	plan->backend = facts->backend == BACKEND_AUTO ? BACKEND_NATIVE : facts->backend;
	plan->bare = plan->backend == BACKEND_LANDLOCK;
	plan->contained = plan->backend == BACKEND_PODMAN || plan->backend == BACKEND_DOCKER;
	plan->uid = facts->uid;
	plan->gid = facts->gid;
	plan->landlock_abi = plan->contained ? 0 : facts->landlock_abi;
	plan->landlock = plan->landlock_abi > 0;
	plan->tty = facts->tty;
	plan->watch = facts->watch;
	plan->outer_proc = facts->weaker_proc;
	plan->cwd = p->cwd;
	plan->fresh = facts->fresh;
	plan->n_fresh = facts->n_fresh;
	/* half of the memory is what the kernel gives by itself: never more than that */
	if (p->limits.disk && p->limits.disk < facts->memory / 2)
		plan->scratch_size = p->limits.disk;
	plan->env = policy_environment(p, a, facts->environ_in, NULL);
	if (plan->bare)
		place_private(&c);
	correct_environment(&c);
	r = backend_check_required(a, p, facts, e);
	if (r == 0)
		r = plan_compile_network(&c);
	if (r < 0)
		return r;
	r = choose_guarding(&c);
	if (r < 0)
		return r;
	r = check_cwd(&c);
	if (r < 0)
		return r;
	r = compile_mounts(&c);
	if (r == 0)
		r = check_cwd_alias(&c);
	if (r < 0)
		return r;
	plan->broker = !facts->no_listener && !plan->contained &&
		       (plan->bare || plan->n_guarded || !plan->all_unix || plan->no_listen ||
			plan->egress);
	if (plan->bare && plan->new_net && plan->broker)
		ask_names_by_tcp(&c);
	plan_make_direct(&c);
	r = plan->bare                       ? landlock_compile(&c)
	    : plan->contained                ? container_compile(&c)
	    : plan->backend == BACKEND_BWRAP ? bwrap_compile(&c)
					     : 0;
	if (r < 0)
		return r;
	*ret = plan;
	return 0;
}
