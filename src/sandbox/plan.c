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

/*
 * Before ABI 3 Landlock does not know truncation: a race could then empty a protected file, which
 * could be removed as well; making or changing one is refused by every version.
 */
#define GUARD_ABI 1
#define GLOB_VISIT_MAX 50000 /* directory entries looked at while expanding patterns */

enum region_kind { REGION_RO, REGION_RW, REGION_GONE };

struct region {
	const char *path;
	enum region_kind kind;
};

struct point {
	const char *path;
	struct view_entry at;
	bool replaced; /* one of the sandbox's own places: kind and mode below hold */
	bool guarded; /* a protected name: read-only at the most */
	bool shown; /* the working directory: seen even in a private place */
	enum mount_kind kind;
	uint32_t mode;
	const char *text; /* MOUNT_TEXT */
	const struct path_rule *rule; /* NULL for own places, protected names and the cwd */
	const char *why;
};

struct compiler {
	struct arena *a;
	const struct policy *p;
	const struct plan_facts *facts;
	const struct view *view;
	struct plan *plan;
	struct error *e;
	struct point *points;
	size_t n_points;
	struct region *stack;
	size_t n_stack;
	size_t visited; /* by pattern expansion */
	bool guarding; /* the broker watches names; what does not exist yet is covered too */
};

static const char *rule_key(const struct path_rule *r)
{
	if (r->access == ACCESS_READ)
		return r->verdict == VERDICT_ALLOW ? "allowRead" : "denyRead";
	return r->verdict == VERDICT_ALLOW ? "allowWrite" : "denyWrite";
}

static const char *rule_text(struct compiler *c, const struct path_rule *r)
{
	return arena_printf(c->a, "%s %s (%s)", rule_key(r), r->text,
			    origin_text(c->a, &r->origin));
}

static struct point *add_point(struct compiler *c, const char *path)
{
	struct point *pt = ARENA_PUSH(c->a, c->points, c->n_points);

	pt->path = path;
	return pt;
}

/* A place of the sandbox's own; skipped where the host has no such directory. */
static void add_place(struct compiler *c, const char *path, enum mount_kind kind, uint32_t mode,
		      const char *why)
{
	struct view_entry at;
	struct point *pt;

	c->view->look(c->view, c->a, path, &at);
	if (at.kind != FILE_DIRECTORY)
		return;
	for (size_t i = 0; i < c->n_points; i++) {
		if (c->points[i].replaced && strcmp(c->points[i].path, at.real) == 0)
			return; /* /var/tmp -> /tmp */
	}
	pt = add_point(c, at.real);
	pt->at = at;
	pt->replaced = true;
	pt->kind = kind;
	pt->mode = mode;
	pt->why = why;
}

/* A directory that is made inside one of the private places. */
static void add_folder(struct compiler *c, const char *path, uint32_t mode, const char *why)
{
	struct point *pt = add_point(c, path);

	pt->at.kind = FILE_DIRECTORY;
	pt->replaced = true;
	pt->kind = MOUNT_FOLDER;
	pt->mode = mode;
	pt->why = why;
}

static void add_places(struct compiler *c)
{
	static const char *const temporary[] = { "/tmp", "/var/tmp" };
	static const char *const revealing[] = {
		"/sys/firmware",
		"/sys/kernel/debug",
		"/sys/kernel/tracing",
		"/sys/kernel/security",
	};

	add_place(c, "/dev", MOUNT_DEV, 0, "devices");
	add_place(c, "/proc", MOUNT_PROC, 0, "processes");
	/* for others than root the permissions are enough in all but the first */
	for (size_t i = 0; i < (c->facts->uid == 0 ? ARRAY_LEN(revealing) : 1); i++)
		add_place(c, revealing[i], MOUNT_HIDE_DIR, 0, "kernel internals");
	/* sockets of services live here, and a read-only mount does not stop connect(2) */
	add_place(c, "/run", MOUNT_PRIVATE, 0755, "sockets of the host's services");
	if (c->view->kind(c->view, "/run") == FILE_DIRECTORY)
		add_folder(c, arena_printf(c->a, "/run/user/%u", c->facts->uid), 0700,
			   "runtime directory");
	for (size_t i = 0; i < ARRAY_LEN(temporary); i++) {
		if (c->p->fs.tmp == TMP_PRIVATE)
			add_place(c, temporary[i], MOUNT_PRIVATE, 01777,
				  "private temporary directory");
		else
			add_place(c, temporary[i], MOUNT_RW, 0, "filesystem.tmp shared");
	}
	if (c->p->fs.home == HOME_PRIVATE)
		add_place(c, c->p->home, MOUNT_PRIVATE, 0700, "private home directory");
}

/* Show the host's file that /etc/resolv.conf points to, although /run is private. */
static void add_host_resolver(struct compiler *c)
{
	struct view_entry at;
	struct point *pt;

	c->view->look(c->view, c->a, "/etc/resolv.conf", &at);
	if (at.kind != FILE_REGULAR || !path_within(at.real, "/run"))
		return;
	pt = add_point(c, at.real);
	pt->at = at;
	pt->replaced = true;
	pt->kind = MOUNT_RO;
	pt->why = "name resolution (network host)";
}

/* A file of ours in place of the host's. */
static void add_text(struct compiler *c, const char *path, const char *text, const char *why)
{
	struct view_entry at;
	struct point *pt;

	c->view->look(c->view, c->a, path, &at);
	/* a missing file in a directory that is the host's cannot be made */
	if (at.kind != FILE_REGULAR && !path_within(at.real, "/run"))
		return;
	pt = add_point(c, at.real);
	pt->at = at;
	pt->at.kind = FILE_REGULAR;
	pt->replaced = true;
	pt->kind = MOUNT_TEXT;
	pt->text = text;
	pt->why = why;
}

/* nsswitch.conf with hosts from files and our resolver only. */
static const char *plain_nsswitch(struct compiler *c)
{
	_cleanup_buf_ struct buf b = BUF_INIT(BUF_MAX_TEXT);
	const char *text = c->view->read(c->view, c->a, "/etc/nsswitch.conf");

	buf_puts(&b, "hosts: files dns\n");
	while (text && *text) {
		size_t len = strcspn(text, "\n");

		if (strncmp(text, "hosts:", 6) != 0) {
			buf_append(&b, text, len);
			buf_putc(&b, '\n');
		}
		text += len + (text[len] == '\n');
	}
	return arena_strdup(c->a, buf_str(&b));
}

/* Unix sockets that may be connected to are seen even where the rest is hidden. */
static void add_sockets(struct compiler *c)
{
	for (size_t i = 0; i < c->p->network.unix_sockets.n; i++) {
		struct view_entry at;
		struct point *pt;

		c->view->look(c->view, c->a, c->p->network.unix_sockets.v[i].text, &at);
		if (at.kind == FILE_ABSENT || at.kind == FILE_UNKNOWN)
			continue; /* may be made inside */
		pt = add_point(c, at.real);
		pt->at = at;
		pt->shown = true;
		pt->why = "allowUnixSockets";
	}
}

/* Names: the host's own resolver, our own, or none. */
static void add_resolver(struct compiler *c)
{
	if (!c->plan->new_net)
		add_host_resolver(c);
	if (!c->plan->egress)
		return;
	add_text(c, "/etc/resolv.conf", "nameserver 127.0.0.1\noptions timeout:2 attempts:1\n",
		 "names are answered by the proxy");
	add_text(c, "/etc/nsswitch.conf", plain_nsswitch(c), "names are answered by the proxy");
}

static int expand_below(struct compiler *c, const struct path_rule *r, const char *dir)
{
	const char *const *names;
	int n = c->view->list(c->view, c->a, dir, &names);

	for (int i = 0; i < n; i++) {
		char *path = path_join(c->a, dir, names[i]);

		if (++c->visited > GLOB_VISIT_MAX)
			return error_set(c->e, E2BIG,
					 "%s: more than %d files to look at: name a directory "
					 "instead of a pattern",
					 rule_text(c, r), GLOB_VISIT_MAX);
		if (pattern_matches(r->real, path)) {
			struct view_entry at;
			struct point *pt;

			c->view->look(c->view, c->a, path, &at);
			pt = add_point(c, at.real);
			pt->at = at;
			pt->rule = r;
		} else if (pattern_may_match_below(r->real, path) &&
			   c->view->kind(c->view, path) == FILE_DIRECTORY) {
			int err = expand_below(c, r, path);

			if (err < 0)
				return err;
		}
	}
	return 0;
}

static int add_glob(struct compiler *c, const struct path_rule *r)
{
	size_t before = c->n_points;
	char *base = arena_strndup(c->a, r->real, pattern_fixed_len(r->real));
	int err = expand_below(c, r, base);

	if (err == 0 && r->verdict == VERDICT_DENY && !(c->guarding && r->access == ACCESS_WRITE))
		ARENA_PUSH(c->a, c->plan->notes.v, c->plan->notes.n)->text = arena_printf(
			c->a, "%s covers the %zu files that match now, not files made later",
			rule_text(c, r), c->n_points - before);
	return err;
}

/* denyRead "/": a mount cannot hide the root itself, so everything in it is hidden. */
static int add_root_entries(struct compiler *c, const struct path_rule *r)
{
	const char *const *names;
	int n = c->view->list(c->view, c->a, "/", &names);

	if (n < 0)
		return error_set(c->e, -n, "%s: cannot list /: %s", rule_text(c, r), strerror(-n));
	for (int i = 0; i < n; i++) {
		char *path = path_join(c->a, "/", names[i]);
		enum file_kind kind = c->view->kind(c->view, path);
		struct point *pt;

		if (kind == FILE_LINK || kind == FILE_ABSENT)
			continue;
		pt = add_point(c, path);
		c->view->look(c->view, c->a, path, &pt->at);
		pt->rule = r;
	}
	return 0;
}

/*
 * An allow rule must not go through a link that lies in a writable directory: an
 * earlier run may have made it, and so have chosen what is opened now.
 */
static int check_links(struct compiler *c, const struct path_rule *r)
{
	for (const char *s = r->path; strcmp(r->path, r->real) != 0 && *s; s++) {
		size_t len = (size_t)(s - r->path) + 1 + strcspn(s + 1, "/");
		char *part = arena_strndup(c->a, r->path, len), *slash;
		struct view_entry dir;

		if (*s != '/' || c->view->kind(c->view, part) != FILE_LINK)
			continue;
		slash = strrchr(part, '/');
		*(slash == part ? slash + 1 : slash) = '\0';
		c->view->look(c->view, c->a, part, &dir);
		for (size_t i = 0; i < c->p->fs.rules.n; i++) {
			const struct path_rule *o = &c->p->fs.rules.v[i];

			if (o == r || o->glob || o->access != ACCESS_WRITE ||
			    o->verdict != VERDICT_ALLOW || !path_within(dir.real, o->real) ||
			    path_within(r->real, o->real))
				continue;
			return error_set(c->e, EXDEV,
					 "%s: leads to %s through a symbolic link in the writable "
					 "directory %s, where the command could have made it: name "
					 "%s itself",
					 rule_text(c, r), r->real, o->real, r->real);
		}
	}
	return 0;
}

static bool has_parent(struct compiler *c, const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash == path ||
	       c->view->kind(c->view, arena_strndup(c->a, path, (size_t)(slash - path))) ==
		       FILE_DIRECTORY;
}

static int add_rule(struct compiler *c, const struct path_rule *r)
{
	struct view_entry at = { .kind = FILE_ABSENT };
	struct point *pt;

	if (r->glob)
		return add_glob(c, r);
	if (strcmp(r->real, "/") == 0 && r->access == ACCESS_READ && r->verdict == VERDICT_DENY)
		return add_root_entries(c, r);
	if (r->verdict == VERDICT_ALLOW && check_links(c, r) < 0)
		return -c->e->code;
	if (!r->absent || r->verdict == VERDICT_ALLOW)
		c->view->look(c->view, c->a, r->real, &at);
	if (r->access == ACCESS_WRITE && r->verdict == VERDICT_ALLOW) {
		if (at.kind == FILE_ABSENT && r->optional)
			return 0;
		if (at.kind == FILE_ABSENT && c->facts->dry && has_parent(c, r->real))
			at.kind = FILE_DIRECTORY; /* plan_prepare() would make it, or say why not */
		if (at.kind == FILE_ABSENT || at.kind == FILE_UNKNOWN)
			return error_set(c->e, at.kind == FILE_ABSENT ? ENOENT : at.err, "%s: %s",
					 rule_text(c, r),
					 at.kind == FILE_ABSENT ? "does not exist"
								: strerror(at.err));
		if (strcmp(at.real, "/") == 0 && r->origin.layer == LAYER_DEFAULT)
			return error_set(c->e, EINVAL,
					 "the working directory is /, which would make the whole "
					 "machine writable: use --chdir DIR, or --allow-write / if "
					 "that is what you want");
	}
	if (at.kind == FILE_ABSENT && r->access == ACCESS_READ)
		return 0; /* nothing to show or hide */
	pt = add_point(c, r->real);
	pt->at = at;
	pt->rule = r;
	return 0;
}

/* Protected names that exist in `dir`, the top of something writable. */
static void add_protected(struct compiler *c, const char *dir)
{
	for (size_t i = 0; i < c->p->fs.n_protected; i++) {
		const struct protected_name *name = &c->p->fs.protected[i];
		struct view_entry at;
		struct point *pt;
		enum file_kind kind;
		char *path;

		if (name->lifted || pattern_is_glob(name->pattern))
			continue;
		/* the broker lets git change its configuration; a mount would not */
		if (c->guarding && strncmp(name->pattern, ".git/", 5) == 0 &&
		    strcmp(name->pattern, ".git/hooks") != 0)
			continue;
		path = path_join(c->a, dir, name->pattern);
		kind = c->view->kind(c->view, path);
		if (kind == FILE_ABSENT || kind == FILE_UNKNOWN)
			continue;
		c->view->look(c->view, c->a, path, &at);
		if (at.kind == FILE_ABSENT || at.kind == FILE_UNKNOWN)
			continue; /* a dangling link */
		pt = add_point(c, at.real);
		pt->at = at;
		pt->guarded = true;
		pt->why = arena_printf(c->a, "protected name %s: %s (%s)", name->pattern,
				       name->reason, origin_text(c->a, &name->origin));
	}
}

/* The top of every writable directory, and the directories from there down to the cwd. */
static void add_anchors(struct compiler *c)
{
	for (size_t i = 0; i < c->p->fs.rules.n; i++) {
		const struct path_rule *r = &c->p->fs.rules.v[i];
		size_t top;

		if (r->glob || r->access != ACCESS_WRITE || r->verdict != VERDICT_ALLOW)
			continue;
		add_protected(c, r->real);
		if (!path_within(c->p->cwd, r->real))
			continue;
		top = strcmp(r->real, "/") == 0 ? 0 : strlen(r->real);
		for (const char *s = c->p->cwd + top; *s; s++) {
			const char *end = s + 1 + strcspn(s + 1, "/");

			if (*s == '/' && s[1])
				add_protected(c, arena_strndup(c->a, c->p->cwd,
							       (size_t)(end - c->p->cwd)));
		}
	}
}

static void add_cwd(struct compiler *c)
{
	struct point *pt = add_point(c, c->p->cwd);

	c->view->look(c->view, c->a, c->p->cwd, &pt->at);
	pt->shown = true;
	pt->why = "the working directory";
	for (size_t i = 0; i < c->n_points; i++) {
		if (c->points[i].replaced && c->points[i].kind == MOUNT_PRIVATE &&
		    strcmp(c->points[i].path, c->p->cwd) == 0)
			ARENA_PUSH(c->a, c->plan->notes.v, c->plan->notes.n)->text = arena_printf(
				c->a,
				"the working directory %s is private to the sandbox: its files are "
				"not seen, and what is written there is lost",
				c->p->cwd);
	}
}

static int compare_points(const void *a, const void *b)
{
	const struct point *p = a, *q = b;
	int order = path_compare(p->path, q->path);

	/* the sandbox's own places come first and win over rules on the same path */
	return order ? order : (int)q->replaced - (int)p->replaced;
}

/* Several points at one path are one. */
static void merge_points(struct compiler *c)
{
	size_t kept = 0;

	qsort(c->points, c->n_points, sizeof(*c->points), compare_points);
	for (size_t i = 0; i < c->n_points; i++) {
		struct point *pt = &c->points[i], *last = kept ? &c->points[kept - 1] : NULL;

		if (!last || strcmp(last->path, pt->path) != 0) {
			c->points[kept++] = *pt;
			continue;
		}
		last->guarded |= pt->guarded;
		last->shown |= pt->shown;
		if (!last->rule)
			last->rule = pt->rule;
		if (pt->guarded)
			last->why = pt->why;
	}
	c->n_points = kept;
}

static struct region *region_of(struct compiler *c, const char *path)
{
	while (c->n_stack > 1 && !path_within(path, c->stack[c->n_stack - 1].path))
		c->n_stack--;
	return &c->stack[c->n_stack - 1];
}

/* What a rule's point should look like from inside. */
static enum region_kind wanted(struct compiler *c, const struct point *pt,
			       const struct region *region)
{
	struct decision d;

	policy_decide_path(c->p, ACCESS_READ, pt->path, &d);
	if (d.verdict == VERDICT_DENY)
		return REGION_GONE;
	/* out of a hidden or private place only what a deeper rule names comes back */
	if (region->kind == REGION_GONE && !pt->shown &&
	    (!d.rule || !path_within(d.rule->real, region->path) ||
	     strcmp(d.rule->real, region->path) == 0))
		return REGION_GONE;
	policy_decide_path(c->p, ACCESS_WRITE, pt->path, &d);
	return d.verdict == VERDICT_ALLOW && !pt->guarded ? REGION_RW : REGION_RO;
}

static void pin_ancestors(struct compiler *c, const struct region *region, const char *path)
{
	size_t top = strcmp(region->path, "/") == 0 ? 0 : strlen(region->path);

	for (const char *s = path + top + 1; (s = strchr(s, '/')); s++) {
		struct mount_step *m = ARENA_PUSH(c->a, c->plan->mounts, c->plan->n_mounts);

		m->kind = MOUNT_PIN;
		m->path = arena_strndup(c->a, path, (size_t)(s - path));
		m->directory = true;
		m->why = arena_printf(c->a, "holds %s", path);
	}
}

static void emit(struct compiler *c, const struct point *pt, const struct region *region,
		 enum mount_kind kind)
{
	struct mount_step *m;
	const char *why = pt->why ? pt->why : rule_text(c, pt->rule);

	if (region->kind == REGION_RW)
		pin_ancestors(c, region, pt->path);
	m = ARENA_PUSH(c->a, c->plan->mounts, c->plan->n_mounts);
	m->kind = kind;
	m->path = pt->path;
	m->directory = pt->at.kind == FILE_DIRECTORY;
	m->make_point = region->kind == REGION_GONE;
	m->mode = pt->mode;
	m->text = pt->text;
	m->direct = pt->replaced;
	m->why = why;
	if (kind == MOUNT_RW || kind == MOUNT_RO) {
		m->dev = pt->at.dev;
		m->ino = pt->at.ino;
	}
}

static enum region_kind region_after(enum mount_kind kind)
{
	if (kind == MOUNT_RW || kind == MOUNT_PIN)
		return REGION_RW;
	return kind == MOUNT_RO ? REGION_RO : REGION_GONE;
}

static int place_point(struct compiler *c, const struct point *pt)
{
	const struct region *region = region_of(c, pt->path);
	enum region_kind want;
	enum mount_kind kind;
	struct region *below;

	if (pt->replaced) {
		kind = pt->kind;
		if (kind == MOUNT_HIDE_DIR && region->kind == REGION_GONE)
			return 0;
	} else {
		want = wanted(c, pt, region);
		if (want == region->kind)
			return 0;
		if (pt->at.kind == FILE_ABSENT) {
			/* only denyWrite comes here: the command could create it */
			if (region->kind != REGION_RW || c->guarding)
				return 0;
			return error_set(
				c->e, ENOENT,
				"%s: does not exist, and without Landlock nothing keeps it "
				"from being created",
				rule_text(c, pt->rule));
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
	return order ? order : (m->kind == MOUNT_PIN) - (n->kind == MOUNT_PIN);
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

/* A denyWrite rule that could hold below dir needs the guard there. */
static bool holds_deny(const struct compiler *c, const char *dir)
{
	for (size_t i = 0; i < c->p->fs.rules.n; i++) {
		const struct path_rule *r = &c->p->fs.rules.v[i];

		if (r->access == ACCESS_WRITE && r->verdict == VERDICT_DENY &&
		    (r->glob ? pattern_may_match_below(r->real, dir) : path_within(r->real, dir)))
			return true;
	}
	return false;
}

/* Directories below `dir` that heavy writers fill: granted directly, not guarded. */
static void list_bulk(struct compiler *c, const char *dir)
{
	struct plan *plan = c->plan;

	for (size_t i = 0; i < c->p->fs.bulk.n; i++) {
		char *path = path_join(c->a, dir, c->p->fs.bulk.v[i].text);

		if (c->view->kind(c->view, path) != FILE_DIRECTORY || holds_deny(c, path))
			continue;
		*ARENA_PUSH(c->a, plan->bulk, plan->n_bulk) = path;
		*ARENA_PUSH(c->a, plan->writable, plan->n_writable) = path;
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
		    holds_deny(c, path) ||
		    c->view->kind(c->view, path_join(c->a, path, "objects")) != FILE_ABSENT)
			continue;
		*ARENA_PUSH(c->a, c->plan->bulk, c->plan->n_bulk) = path;
		*ARENA_PUSH(c->a, c->plan->writable, c->plan->n_writable) = path;
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

		if ((m->kind == MOUNT_RW && (!m->directory || m->direct || !c->guarding)) ||
		    m->kind == MOUNT_PRIVATE || m->kind == MOUNT_DEV)
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
	add_places(c);
	add_resolver(c);
	add_sockets(c);
	for (size_t i = 0; i < c->p->fs.rules.n; i++) {
		r = add_rule(c, &c->p->fs.rules.v[i]);
		if (r < 0)
			return r;
	}
	add_anchors(c);
	add_cwd(c);
	merge_points(c);

	base = ARENA_PUSH(c->a, c->stack, c->n_stack);
	base->path = "/";
	base->kind = c->plan->root_writable ? REGION_RW : REGION_RO;
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

/* $PWD may name the directory by another way, but not another directory. */
static void correct_pwd(struct compiler *c)
{
	for (char **v = c->plan->env; *v; v++) {
		struct view_entry at;

		if (strncmp(*v, "PWD=", 4) != 0)
			continue;
		c->view->look(c->view, c->a, *v + 4, &at);
		if (strcmp(at.real, c->p->cwd) != 0)
			*v = arena_printf(c->a, "PWD=%s", c->p->cwd);
	}
}

/* What this version cannot do must not be promised. */
static int check_required(const struct policy *p, const struct plan_facts *facts, struct error *e)
{
	/* what every run has, or does not start; the two others depend on the kernel */
	static const char *const always[] = { "user-namespaces", "files", "processes", "devices",
					      "network",         "ipc",   "seccomp",   "names" };

	for (size_t i = 0; i < p->require.n; i++) {
		const char *name = p->require.v[i].text;
		int abi = strcmp(name, "landlock") == 0       ? 1
			  : strcmp(name, "signal-scope") == 0 ? 6
							      : 0;
		bool known = abi > 0;

		for (size_t k = 0; k < ARRAY_LEN(always); k++)
			known |= strcmp(name, always[k]) == 0;
		if (!known)
			return error_set(e, EINVAL,
					 "require: unknown property %s (ambit check lists them)",
					 name);
		if (facts->landlock_abi < abi)
			return error_set(e, ENOTSUP,
					 "require: %s is not enforced here (ambit check says why)",
					 name);
	}
	return 0;
}

static int refuse_unavailable(const struct policy *p, struct error *e)
{
	const struct policy_limits *l = &p->limits;
	const char *key = l->memory                     ? "limits.memory"
			  : l->cpu > 0                  ? "limits.cpu"
			  : l->pids                     ? "limits.pids"
			  : l->disk                     ? "limits.disk"
			  : l->output                   ? "limits.output"
			  : p->network.publish.n        ? "network.publish"
			  : p->network.http_proxy_port  ? "network.httpProxyPort"
			  : p->network.socks_proxy_port ? "network.socksProxyPort"
							: NULL;

	return key ? error_set(e, ENOTSUP, "%s is not available in this version", key) : 0;
}

/* Without the kernel's default-deny the broker could be bypassed: never half of it. */
static int choose_guarding(struct compiler *c)
{
	c->guarding = c->facts->landlock_abi >= GUARD_ABI;
	if (c->guarding)
		return 0;
	if (c->p->fallback != FALLBACK_WARN)
		return error_set(c->e, ENOTSUP,
				 "protecting names needs Landlock ABI %d, this kernel has %d; with "
				 "--fallback warn only protected files that exist at the top of "
				 "writable directories are kept",
				 GUARD_ABI, c->facts->landlock_abi);
	ARENA_PUSH(c->a, c->plan->notes.v, c->plan->notes.n)->text =
		arena_printf(c->a,
			     "not enforced: protected names that do not exist yet, or lie deeper "
			     "(needs Landlock "
			     "ABI %d, this kernel has %d)",
			     GUARD_ABI, c->facts->landlock_abi);
	return 0;
}

/*
 * Being in a hidden directory does not open it: the built-in rule that makes the working directory
 * writable is no reason to show a secret.
 */
static int check_cwd(struct compiler *c)
{
	const char *cwd = c->p->cwd;
	const struct path_rule *hidden = NULL;

	for (size_t i = 0; i < c->p->fs.rules.n; i++) {
		const struct path_rule *r = &c->p->fs.rules.v[i];

		if (r->access == ACCESS_READ && r->verdict == VERDICT_DENY &&
		    (r->glob ? pattern_covers(r->real, cwd) : path_within(cwd, r->real)) &&
		    (!hidden || path_depth(r->real) >= path_depth(hidden->real)))
			hidden = r;
	}
	for (size_t i = 0; hidden && i < c->p->fs.rules.n; i++) {
		const struct path_rule *r = &c->p->fs.rules.v[i];

		if (r->verdict == VERDICT_ALLOW && r->origin.layer != LAYER_DEFAULT && !r->glob &&
		    !hidden->locked && path_within(cwd, r->real) &&
		    path_depth(r->real) >= path_depth(hidden->real))
			return 0;
	}
	if (!hidden)
		return 0;
	return error_set(
		c->e, EACCES,
		"the working directory %s is hidden by %s: use --chdir DIR or --allow-read "
		"%s",
		cwd, rule_text(c, hidden), cwd);
}

int plan_compile(struct arena *a, const struct policy *p, const struct plan_facts *facts,
		 const struct view *view, const struct plan **ret, struct error *e)
{
	struct plan *plan = arena_alloc(a, sizeof(*plan));
	struct compiler c = { .a = a, .p = p, .facts = facts, .view = view, .plan = plan, .e = e };
	int r;

	plan->uid = facts->uid;
	plan->gid = facts->gid;
	plan->new_net = p->network.mode != NETWORK_HOST;
	plan->egress =
		plan->new_net && (p->network.mode == NETWORK_ALLOWLIST || p->network.host_ports.n);
	for (size_t i = 0; plan->egress && i < p->network.host_ports.n; i++)
		*ARENA_PUSH(a, plan->host_ports, plan->n_host_ports) =
			p->network.host_ports.v[i].port;
	plan->loopback = plan->egress || (plan->new_net && p->network.allow_local_binding);
	plan->landlock = facts->landlock_abi > 0;
	plan->tty = facts->tty;
	plan->watch = facts->watch;
	plan->cwd = p->cwd;
	plan->env = policy_environment(p, a, facts->environ_in, NULL);
	correct_pwd(&c);
	r = refuse_unavailable(p, e);
	if (r == 0)
		r = check_required(p, facts, e);
	if (r < 0)
		return r;
	r = choose_guarding(&c);
	if (r < 0)
		return r;
	r = check_cwd(&c);
	if (r < 0)
		return r;
	r = compile_mounts(&c);
	if (r < 0)
		return r;
	*ret = plan;
	return 0;
}
