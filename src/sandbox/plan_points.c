/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which places matter to a plan: what the sandbox replaces, what a rule names or
 * its pattern matches now, protected names that exist, the working directory. The first
 * half of plan_compile(); see plan.c.
 */
#include "sandbox/plan_points.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "policy/match_path.h"

#define GLOB_VISIT_MAX 50000 /* directory entries looked at while expanding patterns */

static const char *rule_key(const struct path_rule *r)
{
	if (r->access == ACCESS_READ)
		return r->verdict == VERDICT_ALLOW ? "allowRead" : "denyRead";
	return r->verdict == VERDICT_ALLOW ? "allowWrite" : "denyWrite";
}

const char *plan_rule_text(struct compiler *c, const struct path_rule *r)
{
	return arena_printf(c->a, "%s %s (%s)", rule_key(r), r->text,
			    origin_text(c->a, &r->origin));
}

void plan_note(struct compiler *c, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	ARENA_PUSH(c->a, c->plan->notes.v, c->plan->notes.n)->text = arena_vprintf(c->a, fmt, ap);
	va_end(ap);
}

struct point *plan_add_point(struct compiler *c, const char *path)
{
	struct point *pt = ARENA_PUSH(c->a, c->points, c->n_points);

	pt->path = path;
	pt->order = c->n_points;
	return pt;
}

/* A place of the sandbox's own; skipped where the host has no such directory. */
static void add_place(struct compiler *c, const char *path, enum mount_kind kind, uint32_t mode,
		      const char *why)
{
	struct view_entry at;
	struct point *pt;

	c->view->look(c->view, c->a, path, &at);
	if (at.kind == FILE_UNKNOWN)
		plan_refuse_shut(c, path, path, "would be replaced");
	if (at.kind != FILE_DIRECTORY)
		return;
	for (size_t i = 0; i < c->n_points; i++) {
		if (c->points[i].replaced && strcmp(c->points[i].path, at.real) == 0)
			return; /* /var/tmp -> /tmp */
	}
	pt = plan_add_point(c, at.real);
	pt->at = at;
	pt->replaced = true;
	pt->kind = kind;
	pt->mode = mode;
	pt->why = why;
}

/* A directory that is made inside one of the private places. */
static void add_folder(struct compiler *c, const char *path, uint32_t mode, const char *why)
{
	struct point *pt = plan_add_point(c, path);

	pt->at.kind = FILE_DIRECTORY;
	pt->replaced = true;
	pt->kind = MOUNT_FOLDER;
	pt->mode = mode;
	pt->why = why;
}

/* Without mounts nothing can stand where something of the host is: it is only hidden. */
static enum mount_kind replacement(const struct compiler *c)
{
	return c->plan->bare ? MOUNT_HIDE_DIR : MOUNT_PRIVATE;
}

static void add_private_tmp(struct compiler *c)
{
	struct point *pt = plan_add_point(c, c->plan->private_tmp);

	pt->at.kind = FILE_DIRECTORY; /* the executor makes it */
	pt->replaced = true;
	pt->kind = MOUNT_RW;
	pt->why = "private temporary directory";
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
	add_place(c, "/run", replacement(c), 0755, "sockets of the host's services");
	if (!c->plan->bare && c->view->kind(c->view, "/run") == FILE_DIRECTORY)
		add_folder(c, arena_printf(c->a, "/run/user/%u", c->facts->uid), 0700,
			   "runtime directory");
	for (size_t i = 0; i < ARRAY_LEN(temporary); i++) {
		if (c->p->fs.tmp == TMP_PRIVATE)
			add_place(c, temporary[i], replacement(c), 01777,
				  "private temporary directory");
		else if (c->p->fs.tmp == TMP_SHARED)
			add_place(c, temporary[i], MOUNT_RW, 0, "filesystem.tmp shared");
	}
	if (c->p->fs.home == HOME_PRIVATE)
		add_place(c, c->p->home, replacement(c), 0700, "private home directory");
	if (c->plan->private_tmp)
		add_private_tmp(c);
}

/* Show the host's file that /etc/resolv.conf points to, although /run is private. */
static void add_host_resolver(struct compiler *c)
{
	struct view_entry at;
	struct point *pt;

	c->view->look(c->view, c->a, "/etc/resolv.conf", &at);
	if (at.kind != FILE_REGULAR || !path_within(at.real, "/run"))
		return;
	pt = plan_add_point(c, at.real);
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
	pt = plan_add_point(c, at.real);
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

static int refuse_link(struct compiler *c, const char *what, const char *real, const char *around)
{
	return error_set(c->e, EXDEV,
			 "%s: leads to %s through a symbolic link in the writable "
			 "directory %s, where the command could have made it: name "
			 "%s itself",
			 what, real, around, real);
}

/* May `real` be written because `dir` may be? */
static bool comes_with(const struct compiler *c, const struct path_rule *self, const char *dir,
		       const char *real)
{
	return path_within(real, dir) &&
	       !(self && protected_may_name(self) && protect_match(c->p, path_depth(dir), real));
}

/* The writable directory that dir lies in and that does not open `real`, or NULL. */
static const char *writable_around(const struct compiler *c, const struct path_rule *self,
				   const char *dir, const char *real)
{
	for (size_t i = 0; i < c->p->fs.rules.n; i++) {
		const struct path_rule *o = &c->p->fs.rules.v[i];

		if (o != self && !o->glob && o->access == ACCESS_WRITE &&
		    o->verdict == VERDICT_ALLOW && path_within(dir, o->real) &&
		    !comes_with(c, self, o->real, real))
			return o->real;
	}
	return NULL;
}

/*
 * What is opened must not be reached through a link that lies in a writable directory: an
 * earlier run may have made it, and so have chosen what is opened now. The path is followed as
 * the kernel does, since one link may lead to the next. self: the rule it belongs to, or NULL.
 */
static const char *find_planted_link(struct compiler *c, const struct path_rule *self,
				     const char *path, const char *real)
{
	const char *at = "/", *rest = path;

	for (unsigned links = 0; links < LINKS_MAX && *rest;) {
		size_t n = strcspn(rest, "/");
		char *name = arena_strndup(c->a, rest, n), *next = path_join(c->a, at, name);
		const char *around, *text;

		rest += n + (rest[n] == '/');
		if (!*name || strcmp(name, ".") == 0)
			continue;
		if (strcmp(name, "..") == 0 || c->view->kind(c->view, next) != FILE_LINK) {
			at = path_absolute(c->a, "/", next);
			continue;
		}
		around = writable_around(c, self, at, real);
		text = c->view->target(c->view, c->a, next);
		if (around || !text)
			return around;
		links++;
		if (*text == '/')
			at = "/";
		rest = arena_printf(c->a, "%s/%s", text, rest);
	}
	return NULL;
}

static int check_links(struct compiler *c, const struct path_rule *r)
{
	const char *around =
		strcmp(r->path, r->real) == 0 ? NULL : find_planted_link(c, r, r->path, r->real);

	return around ? refuse_link(c, plan_rule_text(c, r), r->real, around) : 0;
}

/* Unix sockets that may be connected to are seen even where the rest is hidden. */
static int add_sockets(struct compiler *c)
{
	const struct text_rules *links = &c->p->network.unix_links;

	for (size_t i = 0; i < links->n; i++) {
		const struct text_rule *l = &links->v[i];
		struct view_entry at;
		const char *around;

		c->view->look(c->view, c->a, l->text, &at);
		around = find_planted_link(c, NULL, l->text, at.real);
		if (around)
			return refuse_link(c,
					   arena_printf(c->a, "allowUnixSockets %s (%s)", l->text,
							origin_text(c->a, &l->origin)),
					   at.real, around);
	}
	for (size_t i = 0; i < c->p->network.unix_sockets.n; i++) {
		struct view_entry at;
		struct point *pt;

		c->view->look(c->view, c->a, c->p->network.unix_sockets.v[i].text, &at);
		if (at.kind == FILE_ABSENT || at.kind == FILE_UNKNOWN)
			continue; /* may be made inside */
		pt = plan_add_point(c, at.real);
		pt->at = at;
		pt->shown = pt->socket = true;
		pt->why = "allowUnixSockets";
	}
	return 0;
}

/* /etc/hosts with the lines about this machine only: the proxy looks up the others, by name. */
static const char *loopback_hosts(struct compiler *c)
{
	_cleanup_buf_ struct buf b = BUF_INIT(BUF_MAX_TEXT);
	const char *text = c->view->read(c->view, c->a, "/etc/hosts");

	buf_puts(&b, "127.0.0.1 localhost\n::1 localhost\n");
	while (text && *text) {
		size_t len = strcspn(text, "\n");

		if (strncmp(text, "127.", 4) == 0 || strncmp(text, "::1", 3) == 0) {
			buf_append(&b, text, len);
			buf_putc(&b, '\n');
		}
		text += len + (text[len] == '\n');
	}
	return arena_strdup(c->a, buf_str(&b));
}

/* Names: the host's own resolver, our own, or none. */
static void add_resolver(struct compiler *c)
{
	if (!c->plan->new_net)
		add_host_resolver(c);
	if (!c->plan->egress || c->plan->bare)
		return;
	add_text(c, "/etc/resolv.conf", "nameserver 127.0.0.1\noptions timeout:2 attempts:1\n",
		 "names are answered by the proxy");
	add_text(c, "/etc/hosts", loopback_hosts(c), "names are answered by the proxy");
	add_text(c, "/etc/nsswitch.conf", plain_nsswitch(c), "names are answered by the proxy");
}

static bool is_process(const char *path)
{
	return text_starts(path, "/proc/") && ascii_digit(path[strlen("/proc/")]);
}

/*
 * /proc is the sandbox's own, which is read-only: nothing of the host's comes into it. Of what is
 * in it, what every procfs has can be hidden; processes are others there. Without namespaces it is
 * the host's, where programs look for themselves, and nothing can be taken out.
 */
static int check_proc(struct compiler *c, const struct path_rule *r, const char *path)
{
	bool within = strcmp(path, "/proc") != 0;

	if (r->access == ACCESS_WRITE && r->verdict == VERDICT_ALLOW && !c->plan->bare &&
	    (within || r->origin.layer != LAYER_DEFAULT))
		return error_set(c->e, ENOTSUP,
				 "%s: the sandbox has a /proc of its own, in which nothing can be "
				 "written",
				 plan_rule_text(c, r));
	if (r->access != ACCESS_READ || r->verdict != VERDICT_DENY || !within)
		return 0;
	if (c->plan->bare || c->plan->contained)
		return error_set(c->e, ENOTSUP,
				 "%s: with this backend nothing in /proc can be hidden",
				 plan_rule_text(c, r));
	return r->glob || !is_process(path)
		       ? 0
		       : error_set(c->e, ENOTSUP,
				   "%s: the processes in the sandbox's /proc are its own",
				   plan_rule_text(c, r));
}

/* What a rule of this kind would do, had it been seen. */
static const char *deny_text(const struct path_rule *r)
{
	return r->access == ACCESS_READ ? "would be hidden" : "would be read-only";
}

/* Could what is denied not be looked at? */
static void check_seen(struct compiler *c, const struct path_rule *r, enum file_kind kind,
		       const char *path)
{
	if (kind == FILE_UNKNOWN && r->verdict == VERDICT_DENY)
		plan_refuse_shut(c, path, r->glob ? r->real : path, deny_text(r));
}

/* What a deny pattern matches; a link's name is remembered, for what it leads to has another. */
static int add_match(struct compiler *c, const struct path_rule *r, const char *path)
{
	struct view_entry at;
	struct point *pt;

	c->view->look(c->view, c->a, path, &at);
	check_seen(c, r, at.kind, path);
	if (path_within(at.real, "/proc") && check_proc(c, r, at.real) < 0)
		return -c->e->code;
	if (is_process(at.real))
		return 0; /* the sandbox has others */
	if (strcmp(at.real, "/") == 0 && r->verdict == VERDICT_DENY)
		return error_set(c->e, EINVAL, "%s: %s is a link to /, which cannot be denied so",
				 plan_rule_text(c, r), path);
	pt = plan_add_point(c, at.real);
	pt->at = at;
	pt->rule = r;
	if (strcmp(at.real, path) != 0 && r->verdict == VERDICT_DENY) {
		pt->name = r->access == ACCESS_READ ? path : NULL;
		pt->guarded = r->access == ACCESS_WRITE;
		pt->why = arena_printf(c->a, "%s, by the link %s", plan_rule_text(c, r), path);
	}
	return 0;
}

/*
 * The directory that path is; or, for what is denied, that it leads to as a link. Not in patterns
 * for whole trees: what is in the tree is found at its own place, and links may go in circles.
 */
static const char *way_down(struct compiler *c, const struct path_rule *r, const char *path)
{
	enum file_kind kind = c->view->kind(c->view, path);
	struct view_entry at;

	check_seen(c, r, kind, path);
	if (kind != FILE_LINK)
		return kind == FILE_DIRECTORY ? path : NULL;
	if (r->verdict != VERDICT_DENY || strstr(r->real, "**"))
		return NULL;
	c->view->look(c->view, c->a, path, &at);
	check_seen(c, r, at.kind, path);
	return at.kind == FILE_DIRECTORY ? at.real : NULL;
}

/* real: where dir is, if a link leads there. */
static int expand_below(struct compiler *c, const struct path_rule *r, const char *dir,
			const char *real)
{
	const char *const *names;
	int n = c->view->list(c->view, c->a, real, &names), err = 0;

	if (n == -EACCES)
		check_seen(c, r, FILE_UNKNOWN, real);
	for (int i = 0; i < n && err == 0; i++) {
		char *path = path_join(c->a, dir, names[i]);
		const char *down;

		if (++c->visited > GLOB_VISIT_MAX)
			return error_set(c->e, E2BIG,
					 "%s: more than %d files to look at: name a directory "
					 "instead of a pattern",
					 plan_rule_text(c, r), GLOB_VISIT_MAX);
		if (pattern_matches(r->real, path)) {
			err = add_match(c, r, path);
			continue;
		}
		down = pattern_may_match_below(r->real, path) ? way_down(c, r, path) : NULL;
		if (down)
			err = expand_below(c, r, path, down);
	}
	return err;
}

static int add_glob(struct compiler *c, const struct path_rule *r)
{
	size_t before = c->n_points;
	char *base = arena_strndup(c->a, r->real, pattern_fixed_len(r->real));
	int err = expand_below(c, r, base, base);

	if (err == 0 && r->verdict == VERDICT_DENY && !(c->guarding && r->access == ACCESS_WRITE))
		plan_note(c, "%s covers the %zu files that match now, not files made later",
			  plan_rule_text(c, r), c->n_points - before);
	return err;
}

/* denyRead "/": a mount cannot hide the root itself, so everything in it is hidden. */
static int add_root_entries(struct compiler *c, const struct path_rule *r)
{
	const char *const *names;
	int n = c->view->list(c->view, c->a, "/", &names);

	if (n < 0)
		return error_set(c->e, -n, "%s: cannot list /: %s", plan_rule_text(c, r),
				 strerror(-n));
	for (int i = 0; i < n; i++) {
		char *path = path_join(c->a, "/", names[i]);
		enum file_kind kind = c->view->kind(c->view, path);
		struct point *pt;

		if (kind == FILE_LINK || kind == FILE_ABSENT)
			continue;
		pt = plan_add_point(c, path);
		c->view->look(c->view, c->a, path, &pt->at);
		pt->rule = r;
	}
	return 0;
}

/* As plan_prepare() does it. */
static bool can_be_made(struct compiler *c, const struct path_rule *r)
{
	const char *path = r->real;
	enum file_kind kind;

	do {
		path = arena_strndup(c->a, path, (size_t)(strrchr(path, '/') - path));
		kind = *path ? c->view->kind(c->view, path) : FILE_DIRECTORY;
	} while (kind == FILE_ABSENT && plan_is_on_the_way(c->p, r, path));
	return kind == FILE_DIRECTORY;
}

/* A rule for exactly a place that the sandbox replaces changes nothing: who wrote it is told. */
static void note_private(struct compiler *c, const struct path_rule *r)
{
	const char *how = r->access == ACCESS_READ ? "--tmp host" : "--tmp shared";

	if (r->verdict != VERDICT_ALLOW || r->optional || r->origin.layer == LAYER_DEFAULT)
		return;
	for (size_t i = 0; i < c->n_points; i++) {
		const struct point *pt = &c->points[i];

		if (!pt->replaced || pt->kind != replacement(c) || strcmp(pt->path, r->real) != 0)
			continue;
		if (c->p->fs.home == HOME_PRIVATE && strcmp(pt->path, c->p->home) == 0)
			how = "--home real";
		else if (strcmp(pt->path, "/run") == 0)
			how = NULL;
		plan_note(c,
			  "%s has no effect: %s is private to the sandbox, empty and gone "
			  "afterwards; %s",
			  plan_rule_text(c, r), r->real,
			  how ? arena_printf(c->a, "%s gives the host's", how)
			      : "name what is needed in it");
		return;
	}
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
	if (!r->absent && path_within(r->real, "/proc") && check_proc(c, r, r->real) < 0)
		return -c->e->code;
	note_private(c, r);
	if (!r->absent || r->verdict == VERDICT_ALLOW)
		c->view->look(c->view, c->a, r->real, &at);
	check_seen(c, r, at.kind, r->real);
	if (r->access == ACCESS_WRITE && r->verdict == VERDICT_ALLOW) {
		if (at.kind == FILE_ABSENT && c->facts->dry && (!r->optional || r->spare) &&
		    can_be_made(c, r))
			at.kind = FILE_DIRECTORY; /* plan_prepare() would make it, or say why not */
		if (at.kind == FILE_ABSENT && r->optional)
			return 0;
		if (at.kind == FILE_ABSENT || at.kind == FILE_UNKNOWN)
			return error_set(c->e, at.kind == FILE_ABSENT ? ENOENT : at.err, "%s: %s",
					 plan_rule_text(c, r),
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
	pt = plan_add_point(c, r->real);
	pt->at = at;
	pt->rule = r;
	return 0;
}

/*
 * The names in a small directory that begin with a dot, as most protected ones do: one look
 * at it instead of one per name.
 */
struct dot_names {
	bool known;
	const char **v;
	size_t n;
};

static void read_dot_names(struct compiler *c, const char *dir, struct dot_names *ret)
{
	const char *const *names = NULL;
	int n = c->view->peek ? c->view->peek(c->view, c->a, dir, &names) : -E2BIG;

	ret->known = n >= 0;
	for (int i = 0; i < n; i++) {
		if (names[i][0] == '.')
			*ARENA_PUSH(c->a, ret->v, ret->n) = names[i];
	}
}

static bool surely_missing(const struct dot_names *names, const char *pattern)
{
	size_t len = strcspn(pattern, "/");

	if (!names->known || pattern[0] != '.')
		return false;
	for (size_t i = 0; i < names->n; i++) {
		if (strncmp(names->v[i], pattern, len) == 0 && !names->v[i][len])
			return false;
	}
	return true;
}

/*
 * Is the name left to the broker, although it exists? It lets git change its configuration, and
 * whoever is asked allow the others: a mount would not.
 */
static bool is_brokers(const struct compiler *c, const struct protected_name *name)
{
	if (strncmp(name->pattern, ".git/", 5) == 0)
		return c->guarding && strcmp(name->pattern, ".git/hooks") != 0;
	return c->guarding && c->facts->asks && !name->locked;
}

/* Protected names that exist in `dir`, the top of something writable. below: only those that begin so. */
static void add_protected(struct compiler *c, const char *dir, const char *below)
{
	struct dot_names names = { 0 };

	read_dot_names(c, dir, &names);
	for (size_t i = 0; i < c->p->fs.n_protected; i++) {
		const struct protected_name *name = &c->p->fs.protected[i];
		struct view_entry at;
		struct point *pt;
		enum file_kind kind;
		char *path;

		if (name->lifted || pattern_is_glob(name->pattern) ||
		    !text_starts(name->pattern, below))
			continue;
		if (surely_missing(&names, name->pattern))
			continue;
		path = path_join(c->a, dir, name->pattern);
		kind = c->view->kind(c->view, path);
		if (kind == FILE_UNKNOWN && !protected_is_named(c->p, path_depth(dir), path))
			plan_refuse_shut(c, path, path, "would be read-only");
		if (c->guarding && (kind == FILE_LINK || strchr(name->pattern, '/')))
			plan_hold_links(c, dir, name);
		if (is_brokers(c, name))
			continue;
		if (kind == FILE_ABSENT || kind == FILE_UNKNOWN ||
		    protected_is_named(c->p, path_depth(dir), path))
			continue;
		c->view->look(c->view, c->a, path, &at);
		if (at.kind == FILE_UNKNOWN)
			plan_refuse_shut(c, path, path, "would be read-only");
		if (at.kind == FILE_ABSENT || at.kind == FILE_UNKNOWN)
			continue; /* a dangling link: held by the broker */
		pt = plan_add_point(c, at.real);
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
		add_protected(c, r->real, "");
		/* REPO/.git, for a worktree */
		if (text_ends(r->real, "/.git"))
			add_protected(c, path_absolute(c->a, r->real, ".."), ".git/");
		if (!path_within(c->p->cwd, r->real))
			continue;
		top = strcmp(r->real, "/") == 0 ? 0 : strlen(r->real);
		for (const char *s = c->p->cwd + top; *s; s++) {
			const char *end = s + 1 + strcspn(s + 1, "/");

			if (*s == '/' && s[1])
				add_protected(
					c,
					arena_strndup(c->a, c->p->cwd, (size_t)(end - c->p->cwd)),
					"");
		}
	}
}

static void add_cwd(struct compiler *c)
{
	struct point *pt = plan_add_point(c, c->p->cwd);

	c->view->look(c->view, c->a, c->p->cwd, &pt->at);
	pt->shown = true;
	pt->why = "the working directory";
	for (size_t i = 0; i < c->n_points; i++) {
		if (c->points[i].replaced && c->points[i].kind == MOUNT_PRIVATE &&
		    strcmp(c->points[i].path, c->p->cwd) == 0)
			plan_note(
				c,
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
	if (order == 0)
		order = (int)q->replaced - (int)p->replaced;
	return order ? order : (p->order > q->order) - (p->order < q->order);
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
		if (!last->alias || (pt->alias && pt->alias->locked))
			last->alias = pt->alias;
		last->socket |= pt->socket;
		if (!last->name)
			last->name = pt->name;
		if (!last->rule)
			last->rule = pt->rule;
		if (pt->guarded)
			last->why = pt->why;
	}
	c->n_points = kept;
}

int plan_gather_points(struct compiler *c)
{
	int r;

	add_places(c);
	add_resolver(c);
	/* without mounts they are made in the private directory */
	for (size_t i = 0; i < c->facts->n_files && !c->plan->bare; i++)
		add_text(c, c->facts->files[i].path, c->facts->files[i].text, "given file");
	r = add_sockets(c);
	if (r < 0)
		return r;
	for (size_t i = 0; i < c->p->fs.rules.n; i++) {
		r = add_rule(c, &c->p->fs.rules.v[i]);
		if (r < 0)
			return r;
	}
	plan_show_direct(c);
	plan_add_mounted(c);
	add_anchors(c);
	plan_hold_git(c);
	if (c->refused)
		return error_negative(c->e->code);
	add_cwd(c);
	merge_points(c);
	return 0;
}
