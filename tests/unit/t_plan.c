/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Golden plans: tests/plan/NAME.settings.yaml and NAME.tree (after base.tree) are
 * compiled and the printed plan is compared with NAME.plan. UPDATE_GOLDEN=1 rewrites
 * it. Whatever the golden says, the plan must also keep the promises that
 * check_promises() derives from the policy alone, for every file of the tree.
 *
 * A .tree file has a line per object: `dir PATH`, `file PATH`, `socket PATH`,
 * `closed PATH` (a directory the caller cannot enter), `shut PATH` (the same, the caller's own),
 * `link PATH -> TARGET`; parents are made. `file PATH -> OTHER` is OTHER seen through a second mount of the file system, and
 * `text PATH CONTENT` is a file with something in it, `sealed PATH CONTENT` one of the caller's own
 * that cannot be read, `large PATH CONTENT` one that is too large. `mount ROOT -> POINT` says which mounts there are. `cwd PATH`, `home PATH`, `library PATH` (ambit-direct.so), `uid N`, `landlock ABI` and `signals interrupt` are facts
 * of the caller.
 * \n is a newline.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/path.h"
#include "base/text.h"
#include "policy/policy.h"
#include "sandbox/plan.h"

#define CASES "tests/plan/"
#define SETTINGS ".settings.yaml"
#define FILE_MAX ((size_t)1 << 20)
#define LINKS_MAX 40

/* --- a file system made of a table ------------------------------------------------- */

struct entry {
	const char *path;
	enum file_kind kind;
	bool closed, own;
	uint64_t size; /* of a large file */
	const char *target; /* of a link */
	const char *text; /* of a file; NULL = it is empty */
	const char *same; /* the path of what it is, seen through another mount */
};

struct tree {
	struct arena *a;
	struct entry *v;
	size_t n;
	const char *cwd, *home, *library;
	uint32_t uid;
	int landlock_abi;
	bool old_signals;
	bool no_broker; /* another sandbox watches the calls */
	struct view_mount *mounts;
	size_t n_mounts;
};

static const struct entry *tree_find(const struct tree *t, const char *path)
{
	for (size_t i = 0; i < t->n; i++) {
		if (strcmp(t->v[i].path, path) == 0)
			return &t->v[i];
	}
	return NULL;
}

static struct entry *tree_add(struct tree *t, const char *path, enum file_kind kind)
{
	struct entry *e;

	for (const char *s = path; (s = strchr(s + 1, '/'));) {
		const char *parent = arena_strndup(t->a, path, (size_t)(s - path));

		if (!tree_find(t, parent))
			tree_add(t, parent, FILE_DIRECTORY);
	}
	assert_null(tree_find(t, path));
	e = ARENA_PUSH(t->a, t->v, t->n);
	*e = (struct entry){ .path = path, .kind = kind };
	return e;
}

static const char *parent_of(struct arena *a, const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash == path ? "/" : arena_strndup(a, path, (size_t)(slash - path));
}

/* realpath(3) on the table: 0 and the object, or -errno. */
static int tree_resolve(const struct tree *t, struct arena *a, const char *path,
			const struct entry **ret)
{
	const char *rest = path;
	unsigned links = 0;

	*ret = tree_find(t, "/");
	while (*(rest += strspn(rest, "/"))) {
		size_t len = strcspn(rest, "/");
		const char *name = arena_strndup(a, rest, len);
		const struct entry *next;

		if ((*ret)->kind != FILE_DIRECTORY)
			return -ENOTDIR;
		if ((*ret)->closed)
			return -EACCES;
		rest += len;
		next = strcmp(name, "..") == 0 ? tree_find(t, parent_of(a, (*ret)->path))
					       : tree_find(t, path_join(a, (*ret)->path, name));
		if (!next)
			return -ENOENT;
		if (next->kind != FILE_LINK) {
			*ret = next;
			continue;
		}
		if (++links > LINKS_MAX)
			return -ELOOP;
		if (next->target[0] == '/')
			*ret = tree_find(t, "/");
		rest = arena_printf(a, "%s%s", next->target, rest);
	}
	return 0;
}

static void tree_look(const struct view *v, struct arena *a, const char *path,
		      struct view_entry *ret)
{
	const struct tree *t = v->ctx;
	const struct entry *at;
	const char *head = path;
	int r = tree_resolve(t, a, path, &at);

	*ret = (struct view_entry){ .kind = FILE_UNKNOWN, .real = path, .err = -r };
	if (r == 0) {
		ret->kind = at->kind;
		ret->real = at->path;
		ret->dev = 1;
		ret->size = at->size;
		if (at->same)
			at = tree_find(t, at->same);
		ret->ino = (uint64_t)(at - t->v) + 1;
		return;
	}
	while (r == -ENOENT || r == -ENOTDIR) {
		head = parent_of(a, head);
		r = tree_resolve(t, a, head, &at);
		if (r == 0) {
			ret->kind = FILE_ABSENT;
			ret->err = 0;
			ret->real =
				path_absolute(a, at->path, path + strlen(head) + (head[1] != 0));
		}
	}
}

static enum file_kind tree_kind(const struct view *v, const char *path)
{
	_cleanup_arena_ struct arena *a = arena_new();
	const struct tree *t = v->ctx;
	const struct entry *parent, *at;
	int r = tree_resolve(t, a, parent_of(a, path), &parent);

	if (r < 0)
		return r == -EACCES ? FILE_UNKNOWN : FILE_ABSENT;
	if (parent->closed && strcmp(path, "/") != 0)
		return FILE_UNKNOWN;
	at = strcmp(path, "/") == 0
		     ? parent
		     : tree_find(t, path_join(a, parent->path, strrchr(path, '/') + 1));
	return at ? at->kind : FILE_ABSENT;
}

static char *tree_read(const struct view *v, struct arena *a, const char *path)
{
	struct view_entry seen;
	const struct entry *at;

	v->look(v, a, path, &seen);
	at = tree_find(v->ctx, seen.real);
	return at && at->kind == FILE_REGULAR && !at->closed && !at->size
		       ? arena_strdup(a, at->text ? at->text : "")
		       : NULL;
}

static char *tree_target(const struct view *v, struct arena *a, const char *path)
{
	const struct entry *at = tree_find(v->ctx, path);

	return at && at->target ? arena_strdup(a, at->target) : NULL;
}

static const char *tree_shut(const struct view *v, struct arena *a, const char *path,
			     bool *ret_changed)
{
	const struct entry *at;
	int r = tree_resolve(v->ctx, a, path, &at);

	*ret_changed = false;
	return (r == -EACCES || (r == 0 && at->closed)) && at->own ? at->path : NULL;
}

static int tree_list(const struct view *v, struct arena *a, const char *path,
		     const char *const **ret)
{
	const struct tree *t = v->ctx;
	const struct entry *dir;
	const char **names = NULL;
	size_t n = 0;
	int r = tree_resolve(t, a, path, &dir);

	if (r < 0 || dir->closed)
		return r < 0 ? r : -EACCES;
	for (size_t i = 0; i < t->n; i++) {
		const char *p = t->v[i].path;

		if (strcmp(p, "/") != 0 && strcmp(parent_of(a, p), dir->path) == 0)
			*ARENA_PUSH(a, names, n) = strrchr(p, '/') + 1;
	}
	*ret = names;
	return (int)n;
}

static char *read_text(struct arena *a, const char *path)
{
	_cleanup_free_ char *text = NULL;
	int r = fd_read_file(AT_FDCWD, path, FILE_MAX, &text, NULL);

	if (r == -ENOENT)
		return NULL;
	assert_int_equal(r, 0);
	return arena_strdup(a, text);
}

static size_t tree_mounts(const struct view *v, struct arena *a UNUSED,
			  const struct view_mount **ret)
{
	const struct tree *t = v->ctx;

	*ret = t->mounts;
	return t->n_mounts;
}

/* [TYPE ]ROOT -> POINT: a directory of the one file system there is, seen at another place. */
static void tree_mount(struct tree *t, const char *text)
{
	static const char *const types[] = {
		[TYPE_PROC] = "proc",       [TYPE_SYSFS] = "sysfs",
		[TYPE_DEBUGFS] = "debugfs", [TYPE_TRACEFS] = "tracefs",
		[TYPE_CONTROL] = "control", [TYPE_SECURITYFS] = "securityfs",
	};
	const char *arrow = strstr(text, " -> ");
	enum mount_type type = TYPE_FILES;

	assert_non_null(arrow);
	for (unsigned i = TYPE_PROC; i < ARRAY_LEN(types) && *text != '/'; i++) {
		if (text_starts(text, types[i])) {
			type = i;
			text = strchr(text, ' ') + 1;
		}
	}
	*ARENA_PUSH(t->a, t->mounts, t->n_mounts) =
		(struct view_mount){ 1, type, arena_strndup(t->a, text, (size_t)(arrow - text)),
				     arrow + 4 };
}

/* Lines that are not about an object. */
static bool tree_fact(struct tree *t, const char *kind, const char *text)
{
	if (strcmp(kind, "cwd") == 0)
		t->cwd = text;
	else if (strcmp(kind, "home") == 0)
		t->home = text;
	else if (strcmp(kind, "library") == 0)
		t->library = text;
	else if (strcmp(kind, "uid") == 0)
		t->uid = (uint32_t)strtoul(text, NULL, 10);
	else if (strcmp(kind, "signals") == 0)
		t->old_signals = strcmp(text, "interrupt") == 0;
	else if (strcmp(kind, "landlock") == 0)
		t->landlock_abi = (int)strtol(text, NULL, 10);
	else if (strcmp(kind, "no-broker") == 0)
		t->no_broker = true;
	else if (strcmp(kind, "mount") == 0)
		tree_mount(t, text);
	else
		return false;
	return true;
}

static void tree_line(struct tree *t, const char *kind, const char *path)
{
	static const struct {
		const char *word;
		enum file_kind kind;
	} kinds[] = { { "dir", FILE_DIRECTORY },  { "closed", FILE_DIRECTORY },
		      { "shut", FILE_DIRECTORY }, { "file", FILE_REGULAR },
		      { "socket", FILE_OTHER },   { "link", FILE_LINK } };
	const char *arrow = strstr(path, " -> ");
	struct entry *e;

	if (tree_fact(t, kind, path))
		return;
	if (strcmp(kind, "text") == 0 || strcmp(kind, "sealed") == 0 ||
	    strcmp(kind, "large") == 0) {
		size_t n = strcspn(path, " ");

		e = tree_add(t, arena_strndup(t->a, path, n), FILE_REGULAR);
		e->text = path + n + 1;
		e->own = e->closed = strcmp(kind, "sealed") == 0;
		e->size = strcmp(kind, "large") == 0 ? VIEW_READ_MAX + 1 : 0;
		return;
	}
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		if (strcmp(kinds[i].word, kind) != 0)
			continue;
		if (arrow)
			path = arena_strndup(t->a, path, (size_t)(arrow - path));
		e = tree_add(t, path, kinds[i].kind);
		e->own = strcmp(kind, "shut") == 0;
		e->closed = e->own || strcmp(kind, "closed") == 0;
		if (kinds[i].kind == FILE_LINK)
			e->target = arrow ? arrow + 4 : NULL;
		else
			e->same = arrow ? arrow + 4 : NULL;
		return;
	}
	fail_msg("unknown word in a tree: %s", kind);
}

static void tree_load(struct tree *t, const char *file)
{
	char *text = read_text(t->a, file);

	assert_non_null(text);
	while (*text) {
		size_t len = strcspn(text, "\n"), word = strcspn(text, " \n");
		char *path = arena_strndup(t->a, text + word + 1, len > word ? len - word - 1 : 0);

		for (char *escape = path; (escape = strstr(escape, "\\n"));) {
			*escape = '\n';
			memmove(escape + 1, escape + 2, strlen(escape + 2) + 1);
		}
		if (len > 0 && *text != '#')
			tree_line(t, arena_strndup(t->a, text, word), path);
		text += len + (text[len] == '\n');
	}
}

/* --- what must hold for every plan --------------------------------------------------- */

enum look { LOOK_GONE, LOOK_RO, LOOK_RW };

/* The step that decides how `path` looks from inside: the deepest one above or at it. */
static const struct mount_step *step_over(const struct plan *plan, const char *path)
{
	const struct mount_step *best = NULL;

	for (size_t i = 0; i < plan->n_mounts; i++) {
		if (path_within(path, plan->mounts[i].path))
			best = &plan->mounts[i];
	}
	return best;
}

static enum look look_of(const struct plan *plan, const char *path)
{
	const struct mount_step *m = step_over(plan, path);

	if (!m)
		return plan->contained ? LOOK_GONE : plan->root_writable ? LOOK_RW : LOOK_RO;
	if (m->kind == MOUNT_RW || m->kind == MOUNT_PIN)
		return LOOK_RW;
	return m->kind == MOUNT_RO ? LOOK_RO : LOOK_GONE;
}

static bool has_step(const struct plan *plan, const char *path)
{
	const struct mount_step *m = step_over(plan, path);

	return m && strcmp(m->path, path) == 0;
}

/* Is the path in a place that the sandbox replaces whatever the rules say? */
static bool is_replaced(const struct plan *plan, const char *path)
{
	const struct mount_step *m = step_over(plan, path);

	if (!m)
		return plan->contained; /* by the image's */
	return (m->kind != MOUNT_HIDE_DIR && m->kind != MOUNT_HIDE_FILE) ||
	       path_within(path, "/sys");
}

/* Read-only because a protected name is there, or a link of such a name points there. */
static bool is_protected(const struct plan *plan, const char *path)
{
	const struct mount_step *m = step_over(plan, path);

	return m && m->kind == MOUNT_RO && strncmp(m->why, "protected name", 14) == 0;
}

/* A file looks as the policy says. Protected names are the goldens' business. */
static void check_file(const struct plan *plan, const struct policy *p, const struct entry *e)
{
	enum look look = look_of(plan, e->path);
	struct decision read, write;

	const struct mount_step *over = step_over(plan, e->path);

	if (strcmp(e->path, "/") == 0)
		return; /* cannot be hidden itself, only what is in it */
	if (over && (strncmp(over->why, "name resolution", 15) == 0 ||
		     strcmp(over->why, "allowUnixSockets") == 0))
		return; /* shown although it lies in /run */
	if (over && !over->alias && strstr(over->why, "mounted here too"))
		return; /* the kernel's own, which no rule speaks of: the goldens' business */
	if (over && strstr(over->why, ", by the link "))
		return; /* a pattern speaks of the link: the goldens' business */
	/* by whichever path: it is what is hidden */
	policy_decide_path(p, ACCESS_READ, e->same ? e->same : e->path, &read);
	policy_decide_path(p, ACCESS_WRITE, e->path, &write);
	if (read.verdict == VERDICT_DENY && look != LOOK_GONE)
		fail_msg("%s is visible, but reading is denied: %s", e->path, read.reason);
	if (read.verdict == VERDICT_ALLOW && look == LOOK_GONE && !is_replaced(plan, e->path))
		fail_msg("%s is hidden, but reading is allowed: %s", e->path, read.reason);
	if (write.verdict == VERDICT_DENY && look == LOOK_RW && !write.protected)
		fail_msg("%s is writable, but writing is denied: %s", e->path, write.reason);
	if (write.verdict == VERDICT_ALLOW && look == LOOK_RO && !is_protected(plan, e->path))
		fail_msg("%s is read-only, but writing is allowed: %s", e->path, write.reason);
}

/* Nothing above a mount can be moved away on the host. */
static void check_ancestors(struct arena *a, const struct plan *plan, const struct mount_step *m)
{
	for (const char *d = parent_of(a, m->path); strcmp(d, "/") != 0; d = parent_of(a, d)) {
		if (look_of(plan, d) == LOOK_RW && !has_step(plan, d))
			fail_msg("%s could be renamed, and %s with it", d, m->path);
	}
}

/* The mount point exists, is of the right type, and is the object that was judged. */
static void check_point(struct arena *a, const struct plan *plan, const struct tree *t,
			const struct mount_step *m)
{
	const char *parent = parent_of(a, m->path);
	const struct mount_step *around = step_over(plan, parent);
	/* the kernel fills a fresh /proc with what the host's has, but for processes */
	bool gone = look_of(plan, parent) == LOOK_GONE && !(around && around->kind == MOUNT_PROC);
	const struct entry *e = tree_find(t, m->path);

	assert_int_equal(m->make_point, gone);
	if (m->kind == MOUNT_RW || m->kind == MOUNT_RO) {
		assert_non_null(e);
		assert_int_equal(m->dev, 1);
		assert_int_equal(m->ino, (uint64_t)(e - t->v) + 1);
	}
	if (gone)
		return;
	if (!e || e->kind == FILE_LINK || (e->kind == FILE_DIRECTORY) != m->directory)
		fail_msg("%s cannot be mounted on", m->path);
}

/* The Landlock rule that covers `path`: a directly writable one, NULL = none. */
static const char *granted_by(const char *const *v, size_t n, const char *path)
{
	for (size_t i = 0; i < n; i++) {
		if (path_within(path, v[i]))
			return v[i];
	}
	return NULL;
}

/*
 * Landlock must not refuse what the mounts allow; and it must refuse direct writes to
 * what only the broker may change. (A rule on a directory also covers what is mounted
 * below it.)
 */
static void check_landlock(const struct plan *plan, const struct entry *e)
{
	const char *guarded = granted_by(plan->guarded, plan->n_guarded, e->path);
	const char *direct = granted_by(plan->writable, plan->n_writable, e->path);
	bool bulk = granted_by(plan->bulk, plan->n_bulk, e->path) != NULL;
	bool relayed = granted_by(plan->relayed, plan->n_relayed, e->path) != NULL;

	if (!plan->landlock || look_of(plan, e->path) != LOOK_RW)
		return;
	if (!guarded && !direct && !relayed)
		fail_msg("%s is mounted writable, but Landlock refuses", e->path);
	if (guarded && e->kind == FILE_DIRECTORY && direct && !bulk)
		fail_msg(
			"%s is guarded, but Landlock lets it be written directly by the rule on %s",
			e->path, direct);
}

/* What does not exist and must not be made: somebody has to see the attempt. */
static void check_missing(const struct plan *plan, const struct path_rule *r, const struct tree *t)
{
	if (r->access != ACCESS_WRITE || r->verdict != VERDICT_DENY || r->glob ||
	    tree_find(t, r->real) || look_of(plan, r->real) != LOOK_RW)
		return;
	if (granted_by(plan->writable, plan->n_writable, r->real) ||
	    !granted_by(plan->guarded, plan->n_guarded, r->real))
		fail_msg("nothing keeps %s from being created (denyWrite %s)", r->real, r->text);
}

/*
 * An allow rule that goes through a link in a writable directory opens whatever an
 * earlier run has made the link point to. Harmless only where that is writable anyway.
 */
static void check_links(struct arena *a, const struct plan *plan, const struct path_rule *r,
			const struct tree *t)
{
	const struct mount_step *m = step_over(plan, r->real);
	bool anyway = m && strcmp(m->path, r->real) != 0 && look_of(plan, r->real) == LOOK_RW;

	if (r->verdict != VERDICT_ALLOW || r->glob || anyway)
		return;
	for (const char *p = r->path; strcmp(p, "/") != 0; p = parent_of(a, p)) {
		const struct entry *e = tree_find(t, p);

		if (e && e->kind == FILE_LINK && look_of(plan, p) == LOOK_RW)
			fail_msg("%s opens %s, but the command itself can make the link %s",
				 r->text, r->real, p);
	}
}

static void check_promises(struct arena *a, const struct plan *plan, const struct policy *p,
			   const struct tree *t)
{
	for (size_t i = 0; i < plan->n_mounts; i++) {
		const struct mount_step *m = &plan->mounts[i];

		if (i > 0)
			assert_true(path_compare(plan->mounts[i - 1].path, m->path) < 0);
		assert_non_null(m->why);
		check_ancestors(a, plan, m);
		check_point(a, plan, t, m);
	}
	for (size_t i = 0; i < t->n; i++) {
		if (t->v[i].kind == FILE_LINK)
			continue; /* judged by what it points to */
		if (plan->direct && t->library && strcmp(t->v[i].path, t->library) == 0)
			assert_int_equal(look_of(plan, t->library),
					 LOOK_RO); /* the sandbox's own */
		else
			check_file(plan, p, &t->v[i]);
		check_landlock(plan, &t->v[i]);
	}
	for (size_t i = 0; i < p->fs.rules.n; i++)
		check_links(a, plan, &p->fs.rules.v[i], t);
	for (size_t i = 0; i < p->fs.rules.n; i++)
		check_missing(plan, &p->fs.rules.v[i], t);
}

/* All that Landlock rules grant for a path. */
static unsigned granted(const struct plan *plan, const char *path)
{
	unsigned rights = 0;

	for (size_t i = 0; i < plan->n_grants; i++) {
		if (path_within(path, plan->grants[i].path))
			rights |= plan->grants[i].rights;
	}
	return rights;
}

/* Without mounts the rules alone must say what the policy says. */
static void check_grants(const struct plan *plan, const struct policy *p, const struct tree *t)
{
	for (size_t i = 0; i < t->n; i++) {
		const struct entry *e = &t->v[i];
		unsigned rights = granted(plan, e->path);
		struct decision d;

		policy_decide_path(p, ACCESS_READ, e->path, &d);
		if (d.verdict == VERDICT_DENY && (rights & ~(unsigned)GRANT_LIST))
			fail_msg("%s is hidden, but Landlock lets it be read", e->path);
		if (d.verdict == VERDICT_DENY && e->kind == FILE_DIRECTORY && rights)
			fail_msg("%s is hidden, but Landlock lets it be listed", e->path);
		if (e->kind == FILE_REGULAR && look_of(plan, e->path) != LOOK_GONE &&
		    !path_within(e->path, "/dev") && !(rights & (GRANT_READ | GRANT_WRITE)))
			fail_msg("%s can be seen, but Landlock refuses to read it", e->path);
		policy_decide_path(p, ACCESS_WRITE, e->path, &d);
		/* without a broker protected names are another sandbox's business */
		if ((rights & GRANT_WRITE) && plan->broker &&
		    !granted_by(plan->bulk, plan->n_bulk, e->path) &&
		    (d.verdict == VERDICT_DENY ||
		     granted_by(plan->guarded, plan->n_guarded, e->path)))
			fail_msg("%s must not be written directly, but Landlock lets it", e->path);
	}
}

/* --- cases ---------------------------------------------------------------------------- */

struct compiled {
	struct tree tree;
	const struct policy *policy;
	const struct plan *plan; /* NULL: refused */
};

static void compile_case(struct arena *a, const char *name, struct compiled *ret, struct buf *out)
{
	static const char *const environ_in[] = { "PATH=/usr/bin:/bin", "TERM=xterm",
						  "LD_PRELOAD=/x.so", "AWS_SECRET_ACCESS_KEY=x",
						  NULL };
	struct plan_facts facts = { .environ_in = (char *const *)(uintptr_t)environ_in };
	struct tree *t = &ret->tree;
	const struct view view = { .look = tree_look,
				   .kind = tree_kind,
				   .read = tree_read,
				   .list = tree_list,
				   .target = tree_target,
				   .shut = tree_shut,
				   .mounts = tree_mounts,
				   .ctx = t };
	struct policy_inputs in = { .only_file = "/etc/settings.yaml", .view = &view };
	struct error e = { 0 };

	t->a = a;
	tree_add(t, "/", FILE_DIRECTORY);
	tree_load(t, CASES "base.tree");
	tree_load(t, arena_printf(a, CASES "%s.tree", name));
	facts.uid = facts.gid = t->uid;
	facts.landlock_abi = t->landlock_abi;
	facts.wait_killable = !t->old_signals;
	facts.no_listener = t->no_broker ? "another sandbox watches the calls" : NULL;
	facts.private_tmp = "/tmp/ambit-0123456789abcdef";
	facts.enter = "/usr/libexec/ambit/ambit-enter";
	facts.direct_library = t->library ? t->library : "/usr/libexec/ambit/ambit-direct.so";
	in.cwd = t->cwd;
	in.home = t->home;
	in.only_text = read_text(a, arena_printf(a, CASES "%s" SETTINGS, name));
	in.only_len = strlen(in.only_text);
	if (policy_load(a, &in, &ret->policy, &e) == 0)
		facts.backend = ret->policy->backend;
	if (facts.backend == BACKEND_PODMAN || facts.backend == BACKEND_DOCKER)
		facts.engine =
			facts.backend == BACKEND_PODMAN ? "/usr/bin/podman" : "/usr/bin/docker";
	if (e.code || plan_compile(a, ret->policy, &facts, &view, &ret->plan, &e) < 0) {
		buf_printf(out, "error       %s\n", e.text);
		return;
	}
	for (size_t i = 0; i < ret->policy->notes.n; i++)
		buf_printf(out, "policy      %s\n", ret->policy->notes.v[i].text);
	plan_print(ret->plan, out);
}

static void update(const char *path, const struct buf *b)
{
	_cleanup_fd_ int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(fd_write_all(fd, buf_str(b), b->len), 0);
}

/* Where two texts part: easier to read than both in full. */
static void show_difference(const char *want, const char *got)
{
	unsigned line = 1;

	while (*want && *want == *got) {
		size_t n = strcspn(want, "\n"), m = strcspn(got, "\n");

		if (n != m || memcmp(want, got, n) != 0)
			break;
		want += n + (want[n] == '\n');
		got += m + (got[m] == '\n');
		line++;
	}
	fail_msg("line %u differs\n  golden: %.*s\n  now:    %.*s", line, (int)strcspn(want, "\n"),
		 want, (int)strcspn(got, "\n"), got);
}

static void test_case(void **state)
{
	_cleanup_arena_ struct arena *a = arena_new();
	_cleanup_buf_ struct buf out = BUF_INIT(BUF_MAX_TEXT);
	const char *name = *state;
	const char *golden = arena_printf(a, CASES "%s.plan", name);
	struct compiled c = { 0 };
	const char *want;

	compile_case(a, name, &c, &out);
	if (getenv("UPDATE_GOLDEN"))
		update(golden, &out);
	want = read_text(a, golden);
	if (!want)
		fail_msg("%s is missing: UPDATE_GOLDEN=1 makes it; then judge it", golden);
	else if (strcmp(want, buf_str(&out)) != 0)
		show_difference(want, buf_str(&out));
	if (c.plan && c.plan->bare)
		check_grants(c.plan, c.policy, &c.tree);
	else if (c.plan)
		check_promises(a, c.plan, c.policy, &c.tree);
}

int main(void)
{
	_cleanup_arena_ struct arena *a = arena_new();
	struct CMUnitTest *tests;
	glob_t found;
	int failed;

	if (glob(CASES "*" SETTINGS, 0, NULL, &found) != 0) {
		(void)fprintf(stderr, "no cases in " CASES " below the present directory\n");
		return 1;
	}
	tests = arena_array(a, found.gl_pathc, sizeof(*tests));
	for (size_t i = 0; i < found.gl_pathc; i++) {
		const char *file = found.gl_pathv[i] + strlen(CASES);
		char *name = arena_strndup(a, file, strlen(file) - strlen(SETTINGS));

		tests[i] = (struct CMUnitTest){ .name = name,
						.test_func = test_case,
						.initial_state = name };
	}
	failed = _cmocka_run_group_tests("plan", tests, found.gl_pathc, NULL, NULL);
	globfree(&found);
	return failed;
}
