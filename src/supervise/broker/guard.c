/* SPDX-License-Identifier: Apache-2.0 */
#include "supervise/broker/guard.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/statx.h"
#include "base/text.h"
#include "policy/match_name.h"
#include "policy/match_path.h"
#include "supervise/broker/later.h"
#include "supervise/broker/tree.h"

#define PATTERN_DEPTH_MAX 4 /* directories that a protected name begins with */
#define LEVELS_MAX 127 /* how far up a path is looked at */
#define GONE_SLOTS 131072 /* paths of directories that went away */
#define TERRITORY_MAX 65536 /* directories remembered; past that none are new */

/* A directory by identity; the birth time tells a re-used inode number. */
struct territory {
	uint64_t dev, ino;
	int64_t born_sec;
	uint32_t born_nsec;
};

struct guard {
	struct arena *a;
	const struct policy *p;
	const struct plan *plan;
	bool has_deny_rules;
	/* of git's own: lifted or not, each for all of its kind (protected_lifter()) */
	const struct protected_name *hooks, *config, *commondir, *remotes, *branches;
	uint64_t *gone; /* hashes of paths */
	size_t n_gone;
	struct territory *v; /* open addressing, power of two */
	size_t n, cap;
};

struct guard *guard_new(struct arena *a, const struct policy *p, const struct plan *plan)
{
	struct guard *g = arena_alloc(a, sizeof(*g));

	g->a = a;
	g->p = p;
	g->plan = plan;
	for (size_t i = 0; i < p->fs.rules.n; i++)
		g->has_deny_rules |= p->fs.rules.v[i].access == ACCESS_WRITE &&
				     p->fs.rules.v[i].verdict == VERDICT_DENY;
	g->hooks = protected_find(p, ".git/hooks");
	g->config = protected_find(p, ".git/config");
	g->commondir = protected_find(p, ".git/commondir");
	g->remotes = protected_find(p, ".git/remotes");
	g->branches = protected_find(p, ".git/branches");
	return g;
}

static bool identify(int dirfd, const char *name, struct territory *ret)
{
	struct statx st;

	if (statx(dirfd, name, AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH, STATX_INO | STATX_BTIME, &st) <
	    0)
		return false;
	*ret = (struct territory){
		.dev = (uint64_t)st.stx_dev_major << 32 | st.stx_dev_minor,
		.ino = st.stx_ino,
		.born_sec = st.stx_btime.tv_sec,
		.born_nsec = st.stx_btime.tv_nsec,
	};
	return true;
}

static size_t slot_of(const struct guard *g, const struct territory *t)
{
	size_t i = (size_t)(t->ino * 0x9e3779b97f4a7c15ull) & (g->cap - 1);

	while (g->v[i].ino && (g->v[i].ino != t->ino || g->v[i].dev != t->dev))
		i = (i + 1) & (g->cap - 1);
	return i;
}

static bool grow(struct guard *g)
{
	struct guard bigger = *g;

	bigger.cap = g->cap ? g->cap * 2 : 256;

	if (g->n * 2 < g->cap)
		return true;
	if (bigger.cap / 2 > TERRITORY_MAX)
		return false;
	bigger.v = arena_array(g->a, bigger.cap, sizeof(*bigger.v));
	for (size_t i = 0; i < g->cap; i++) {
		if (g->v[i].ino)
			bigger.v[slot_of(&bigger, &g->v[i])] = g->v[i];
	}
	*g = bigger;
	return true;
}

void guard_note_directory(struct guard *g, int dirfd, const char *name)
{
	struct territory t;
	size_t i;

	if (!identify(dirfd, name, &t) || !grow(g))
		return;
	i = slot_of(g, &t);
	g->n += g->v[i].ino == 0;
	g->v[i] = t;
}

bool guard_made_here(const struct guard *g, int dirfd, const char *name)
{
	struct territory t;
	const struct territory *known;

	if (!g->n || !identify(dirfd, name, &t))
		return false;
	known = &g->v[slot_of(g, &t)];
	return known->ino && known->born_sec == t.born_sec && known->born_nsec == t.born_nsec;
}

/* The first `len` bytes; in capitals or not, which some file systems take for the same. */
static uint64_t hash_path(const char *path, size_t len)
{
	uint64_t h = 0xcbf29ce484222325ull;

	for (size_t i = 0; i < len; i++)
		h = (h ^ (unsigned char)ascii_lower(path[i])) * 0x100000001b3ull;
	return h ? h : 1;
}

static void remember(struct guard *g, uint64_t h)
{
	if (!g->gone)
		g->gone = arena_array(g->a, GONE_SLOTS, sizeof(*g->gone));
	for (size_t i = h % GONE_SLOTS, n = 0; n < GONE_SLOTS; i = (i + 1) % GONE_SLOTS, n++) {
		if (g->gone[i] == h)
			return;
		if (!g->gone[i]) {
			g->gone[i] = h;
			g->n_gone++;
			return;
		}
	}
}

static bool remembers(const struct guard *g, uint64_t h)
{
	for (size_t i = h % GONE_SLOTS, n = 0; g->gone[i] && n < GONE_SLOTS;
	     i = (i + 1) % GONE_SLOTS, n++) {
		if (g->gone[i] == h)
			return true;
	}
	return false;
}

void guard_note_gone(struct guard *g, const char *path, bool all)
{
	size_t n = strlen(path);
	char whole[PATH_MAX + NAME_MAX + 2];

	/* a package that is installed anew may bring what a new package may */
	if (later_is_installed(path))
		return;
	remember(g, hash_path(path, n));
	if (!all || n + 2 > sizeof(whole))
		return;
	memcpy(whole, path, n);
	whole[n] = '/'; /* how "all below" is written */
	remember(g, hash_path(whole, n + 1));
}

bool guard_surely_was_there(const struct guard *g, const char *path)
{
	if (!g->n_gone || later_is_installed(path))
		return false;
	for (const char *s = strchr(path, '/'); s; s = strchr(s + 1, '/')) {
		if (remembers(g, hash_path(path, (size_t)(s - path) + 1)))
			return true;
	}
	return remembers(g, hash_path(path, strlen(path)));
}

bool guard_was_there(const struct guard *g, const char *path)
{
	/* too many to remember: nothing is new any more */
	return (g->n_gone > GONE_SLOTS * 3 / 4 && !later_is_installed(path)) ||
	       guard_surely_was_there(g, path);
}

/* New territory: the open directory is one of this run, and its place was free before. */
static bool is_new(const struct guard *g, int dirfd, const char *path)
{
	return guard_made_here(g, dirfd, "") && !guard_was_there(g, path);
}

/*
 * Surely there, surely not there, or neither: the command may take the search
 * right off a directory (chmod is its own) while we look. Each question below asks
 * for the certainty it needs.
 */
static bool has(int dirfd, const char *name)
{
	return faccessat(dirfd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static bool lacks(int dirfd, const char *name)
{
	return faccessat(dirfd, name, F_OK, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT;
}

static bool looks_like_git_dir(int dirfd)
{
	return !lacks(dirfd, "objects") && !lacks(dirfd, "refs");
}

static bool is_surely_git_dir(int dirfd)
{
	return has(dirfd, "objects") && has(dirfd, "refs");
}

/* Also what is only called so: `git init` outside would bring a half of one to life. */
static bool is_git_dir(int dirfd, const char *path, size_t len)
{
	const char *last = path + len;

	while (last > path && last[-1] != '/')
		last--;
	return name_is_n(last, (size_t)(path + len - last), ".git", 4) || looks_like_git_dir(dirfd);
}

/* The directory `levels` above an open one. */
static int open_above(int dirfd, unsigned levels)
{
	char up[3 * LEVELS_MAX + 1];
	size_t n = 0;

	if (levels > LEVELS_MAX)
		return -1;
	while (levels-- > 0) {
		memcpy(up + n, "../", 3);
		n += 3;
	}
	up[n] = '\0';
	return openat(dirfd, n ? up : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
}

static void deny(struct guard_answer *ret, const char *reason)
{
	ret->allowed = false;
	ret->reason = reason;
}

static void deny_hooks(const struct guard *g, struct guard_answer *ret)
{
	ret->git_name = g->hooks;
	deny(ret, "git runs the files in its hooks directory");
}

/* Does the parent lie in the hooks directory of a git directory? */
static bool inside_hooks(const struct guard_question *q)
{
	unsigned levels = 0;

	for (const char *end = q->path + strlen(q->path); end > q->path;) {
		const char *start = end;

		while (start > q->path && start[-1] != '/')
			start--;
		levels++;
		if (name_is_n(start, (size_t)(end - start), "hooks", 5)) {
			_cleanup_fd_ int above = open_above(q->parent, levels);

			/* what cannot be looked at is taken for the worst */
			if (above < 0 || is_git_dir(above, q->path, (size_t)(start - q->path) - 1))
				return true;
		}
		end = start > q->path ? start - 1 : q->path;
	}
	return false;
}

/*
 * Old ways to say what a remote is, which git still reads where its configuration says nothing, and
 * the command may remove what it says. Git does not write them.
 */
static void deny_remotes(const struct guard *g, const char *dir, struct guard_answer *ret)
{
	const struct protected_name *name = name_is(dir, "remotes") ? g->remotes : g->branches;

	if (name->lifted)
		return;
	ret->git_name = name;
	deny(ret, "git takes from it where to fetch from and push to");
}

/* A directory by that name may be made, which is empty: `git init` does. */
static void ask_remotes(const struct guard *g, const struct guard_question *q,
			struct guard_answer *ret)
{
	if (q->op != GUARD_MAKE_DIR && q->op != GUARD_RENAME_FROM && q->directory &&
	    is_git_dir(q->parent, q->path, strlen(q->path)))
		deny_remotes(g, q->name, ret);
}

static bool ends_in_remotes(const char *path)
{
	const char *last = strrchr(path, '/');

	return last && (name_is(last + 1, "remotes") || name_is(last + 1, "branches"));
}

/* Does the parent hold such files? Their names have no slash. */
static bool is_in_remotes(const struct guard_question *q)
{
	_cleanup_fd_ int above = -1;

	if (!ends_in_remotes(q->path))
		return false;
	above = open_above(q->parent, 1);
	return above < 0 || is_git_dir(above, q->path, (size_t)(strrchr(q->path, '/') - q->path));
}

/* <git dir>/worktrees/<id>: the only place where git itself writes a commondir */
static bool is_worktree(const struct guard_question *q)
{
	_cleanup_fd_ int up = open_above(q->parent, 2);
	const char *id = strrchr(q->path, '/');

	return up >= 0 && id && id - q->path > 10 && name_is_n(id - 9, 9, "worktrees", 9) &&
	       looks_like_git_dir(up);
}

bool guard_in_git_dir(int dirfd, const char *path, const char *root, bool in_doubt)
{
	unsigned depth = path_depth(path), top = path_depth(root);

	if (name_pattern_covers(".git", path, 0) >= 0)
		return true;
	for (unsigned i = 0; i == 0 || i + top <= depth; i++) {
		_cleanup_fd_ int above = open_above(dirfd, i);

		if (above >= 0 && is_surely_git_dir(above))
			return true;
		if (in_doubt && (above < 0 || looks_like_git_dir(above)))
			return true;
	}
	return false;
}

static void ask_config(const struct guard *g, const struct guard_question *q,
		       struct guard_answer *ret)
{
	if (g->config->lifted || q->op == GUARD_RENAME_FROM)
		return;
	ret->git_config = true;
	if (q->op == GUARD_RENAME_TO && !q->directory)
		ret->way = GUARD_CONFIG;
	else
		deny(ret, GIT_CONFIG_REASON);
}

/*
 * .git as a file leads elsewhere, as in a worktree or submodule: only where all is new. As a link it
 * could lead to half a git directory under another name, with hooks in it, which `git init` outside
 * would complete: nowhere.
 */
static void ask_link(const struct guard *g, const struct guard_question *q,
		     struct guard_answer *ret)
{
	if (q->op == GUARD_MAKE_OTHER && q->directory)
		deny(ret, "it says which repository git uses here");
	else if (q->op != GUARD_RENAME_FROM && q->op != GUARD_MAKE_DIR && !q->directory &&
		 (strcmp(q->path, q->root) == 0 || !is_new(g, q->parent, q->path)))
		deny(ret, "it says which repository git uses here");
}

static void ask_main_config(const struct guard *g, const struct guard_question *q,
			    struct guard_answer *ret)
{
	if (is_git_dir(q->parent, q->path, strlen(q->path)))
		ask_config(g, q, ret);
}

static void ask_hooks(const struct guard *g, const struct guard_question *q,
		      struct guard_answer *ret)
{
	if (!g->hooks->lifted && q->op != GUARD_MAKE_DIR && q->op != GUARD_RENAME_FROM &&
	    is_git_dir(q->parent, q->path, strlen(q->path)))
		deny_hooks(g, ret);
}

static void ask_commondir(const struct guard *g, const struct guard_question *q,
			  struct guard_answer *ret)
{
	bool worktree;

	if (g->commondir->lifted)
		return;
	worktree = is_worktree(q);
	if (q->op == GUARD_WRITE && q->creates && worktree && lacks(q->parent, q->name))
		ret->way = GUARD_COMMONDIR;
	else if (q->op != GUARD_RENAME_FROM &&
		 (worktree || !lacks(q->parent, "HEAD") || looks_like_git_dir(q->parent))) {
		ret->git_name = g->commondir;
		deny(ret, "it makes git read another configuration");
	}
}

/* The other way round: a commondir of any content comes to life. */
static void ask_head(const struct guard *g, const struct guard_question *q,
		     struct guard_answer *ret)
{
	if (!g->commondir->lifted && q->op != GUARD_RENAME_FROM && !has(q->parent, q->name) &&
	    !lacks(q->parent, "commondir"))
		deny(ret, "it would turn the directory into a git directory unchecked");
}

/* The second of objects and refs makes a git directory. */
static void ask_birth(const struct guard *g, const struct guard_question *q,
		      struct guard_answer *ret)
{
	const char *other = name_is(q->name, "objects") ? "refs" : "objects";

	(void)g;
	if (q->op == GUARD_RENAME_FROM || lacks(q->parent, other) || has(q->parent, q->name))
		return;
	if (q->op == GUARD_MAKE_DIR)
		ret->way = GUARD_BIRTH;
	else
		deny(ret, "it would turn the directory into a git directory unchecked");
}

/* clang-format off */
static const struct {
	const char *name;
	void (*ask)(const struct guard *, const struct guard_question *, struct guard_answer *);
	bool looks_around; /* what else is in the directory decides, or will */
} git_names[] = {
	{ ".git", ask_link, false },
	{ "config.worktree", ask_config, true },
	{ "config", ask_main_config, true },
	{ "hooks", ask_hooks, true },
	{ "commondir", ask_commondir, true },
	{ "HEAD", ask_head, true },
	{ "objects", ask_birth, true },
	{ "refs", ask_birth, true },
	{ "remotes", ask_remotes, true },
	{ "branches", ask_remotes, true },
};
/* clang-format on */

bool guard_looks_around(const char *path, const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(git_names); i++) {
		if (git_names[i].looks_around && name_is(name, git_names[i].name))
			return true;
	}
	return ends_in_remotes(path) || name_pattern_covers("hooks", path, 0) >= 0;
}

/* What git would run or follow, by the content of the directory. */
static void ask_git(const struct guard *g, const struct guard_question *q, struct guard_answer *ret)
{
	if (!g->hooks->lifted && inside_hooks(q)) {
		if (!(text_ends(q->name, ".sample") && q->op == GUARD_WRITE) &&
		    q->op != GUARD_RENAME_FROM)
			deny_hooks(g, ret);
		return;
	}
	if (q->op != GUARD_RENAME_FROM && is_in_remotes(q))
		deny_remotes(g, strrchr(q->path, '/') + 1, ret);
	for (size_t i = 0; ret->allowed && i < ARRAY_LEN(git_names); i++) {
		if (name_is(q->name, git_names[i].name))
			git_names[i].ask(g, q, ret);
	}
}

/* Components of `pattern`. */
static unsigned pattern_length(const char *pattern)
{
	unsigned n = 1;

	for (; *pattern; pattern++)
		n += *pattern == '/';
	return n;
}

/* The last `n` components of a path. */
static const char *path_tail(const char *path, unsigned n)
{
	const char *s = path + strlen(path);

	while (s > path && n > 0) {
		s--;
		if (*s == '/' && --n == 0)
			return s + 1;
	}
	return s;
}

/* The first `n` components of a path. */
static void path_head(const char *path, unsigned n, char *ret)
{
	const char *s = path;

	while (n-- > 0)
		s += 1 + strcspn(s + 1, "/");
	memcpy(ret, path, (size_t)(s - path));
	ret[s - path] = '\0';
}

/* A directory comes to lie there, or a link that may stand for one. */
static bool brings_directory(const struct guard_question *q)
{
	return q->directory && (q->op == GUARD_MAKE_OTHER || q->op == GUARD_RENAME_TO);
}

/* Which submodules there are: a configuration of few keys, of which git runs nothing. */
static bool is_modules_file(const char *name)
{
	return name_is(name, ".gitmodules");
}

/*
 * Is each directory that holds the pattern on the path, from `before` components on, new territory?
 * Not only the first: an old directory can be moved into a new one that has a protected name, be
 * given such a name there, and be moved back.
 */
static bool holders_are_new(const struct guard *g, const struct guard_question *q, const char *path,
			    const char *pattern, int before)
{
	unsigned depth = path_depth(path), top = path_depth(q->root);

	while (before >= 0) {
		unsigned n = (unsigned)before;
		_cleanup_fd_ int holder = -1;
		char at[PATH_MAX + NAME_MAX + 2] _unfilled_;

		if (n <= top)
			return false;
		holder = open_above(q->parent, depth - 1 - n);
		path_head(path, n, at);
		if (holder < 0 || !is_new(g, holder, at))
			return false;
		before = name_pattern_covers(pattern, path, n + pattern_length(pattern));
	}
	return true;
}

/*
 * A rule names this very place. Nothing is put in the place of a file: that could not be done where
 * it is mounted, and the refusal says what helps. What is in a directory has it for its root; for
 * the directory itself the kernel has the better answers.
 */
static bool is_lifted_here(const struct guard *g, const struct guard_question *q, const char *path)
{
	bool may_be = q->op == GUARD_WRITE || q->op == GUARD_MAKE_DIR;

	for (size_t i = 0; !may_be && i < g->plan->n_guarded; i++)
		may_be = strcmp(g->plan->guarded[i], path) == 0;
	return may_be && protected_is_named(g->p, path_depth(q->root), path);
}

static void ask_names(const struct guard *g, const struct guard_question *q, const char *path,
		      struct guard_answer *ret)
{
	unsigned top = path_depth(q->root);
	const struct policy_filesystem *fs = &g->p->fs;
	bool denied = false; /* by a name that can be asked about: is there one that cannot? */

	for (int i = -1; (i = name_index_next(fs->protected_index, path, i + 1)) >= 0;) {
		const struct protected_name *name = &fs->protected[i];
		int before, begun;

		if (name->lifted || protected_by_content(name) || (denied && !name->locked))
			continue;
		before = name_pattern_covers(name->pattern, path, name->locked ? 0 : top);
		begun = brings_directory(q) ? name_pattern_begun(name->pattern, path) : -1;
		if (before < 0 && begun < 0)
			continue;
		if (!name->locked && is_lifted_here(g, q, path))
			continue;
		if (!name->locked && holders_are_new(g, q, path, name->pattern, before) &&
		    holders_are_new(g, q, path, name->pattern, begun)) {
			ret->new_territory = name;
			continue;
		}
		ret->protected = name;
		/* as git itself changes it: harmless keys go in */
		if (q->op == GUARD_RENAME_TO && !q->directory && is_modules_file(q->name)) {
			ret->way = GUARD_CONFIG;
			continue;
		}
		deny(ret, name->reason);
		if (name->locked)
			return;
		denied = true;
	}
}

/* What names and git's configuration lead to; and nothing that would bring another in its place. */
static void ask_held(const struct guard *g, const struct guard_question *q, const char *path,
		     struct guard_answer *ret)
{
	bool arrives = brings_directory(q);
	const struct held_path *held = plan_held_over(g->plan, path);

	for (size_t i = 0; !held && arrives && i < g->plan->n_held; i++) {
		if (name_path_within(g->plan->held[i].path, path))
			held = &g->plan->held[i];
	}
	if (!held)
		return;
	/* what git runs is never asked about */
	if (protected_by_content(held->name))
		ret->git_name = held->name;
	else
		ret->protected = held->name;
	deny(ret, plan_held_reason(held));
}

const struct protected_name *guard_name_of(const struct guard *g, const char *path,
					   const char *root)
{
	const struct policy_filesystem *fs = &g->p->fs;

	for (int i = -1; (i = name_index_next(fs->protected_index, path, i + 1)) >= 0;) {
		const struct protected_name *name = &fs->protected[i];

		if (!name->lifted && !protected_by_content(name) &&
		    name_pattern_covers(name->pattern, path, name->locked ? 0 : path_depth(root)) >=
			    0)
			return name;
	}
	return NULL;
}

struct arrival {
	const struct guard *g;
	const char *root;
	bool meets_old; /* an old directory is there still, with who knows what in it */
};

/* A part of the way to the entry was made in this run: its directory, or one above. */
static bool came_in_this_run(const struct guard *g, const struct tree_entry *e)
{
	for (unsigned up = 0; up <= PATTERN_DEPTH_MAX; up++) {
		_cleanup_fd_ int above = open_above(e->dirfd, up);

		if (above < 0 || guard_made_here(g, above, ""))
			return true;
	}
	return guard_made_here(g, e->dirfd, e->name);
}

/*
 * Protected names that were not there before; links, which may stand for a directory that holds
 * such; and files that say which repository git uses.
 */
static enum tree_next visit_arrival(void *ctx, const struct tree_entry *e)
{
	const struct arrival *a = ctx;
	bool link = e->type == DT_LNK || e->type == DT_UNKNOWN;
	bool counts = guard_name_of(a->g, e->path, a->root) ||
		      (name_is(e->name, ".git") && e->type != DT_DIR);

	if (link && (a->meets_old || guard_was_there(a->g, e->path)))
		return TREE_STOP;
	return counts && came_in_this_run(a->g, e) ? TREE_STOP : TREE_GO_ON;
}

bool guard_is_tainted(const struct guard *g, int parent, const char *name, const char *path,
		      const char *root, bool meets_old)
{
	struct arrival a = { g, root, meets_old };

	return tree_walk(parent, name, path, visit_arrival, &a) != 0;
}

bool guard_may_protect(const struct guard *g, const char *path)
{
	return guard_name_of(g, path, "/") || name_pattern_covers("hooks", path, 0) >= 0 ||
	       name_pattern_covers("config", path, 0) >= 0;
}

/* The tail of a pattern of any depth, "a/x.yml" of "/ws/(any)/a/x.yml", is begun by the path. */
static bool tail_begun(const char *tail, const char *path)
{
	unsigned length = pattern_length(tail);
	const char *end = tail;

	for (unsigned n = 1; n < length; n++, end++) {
		char part[PATH_MAX], last[PATH_MAX + NAME_MAX + 2];

		end += strcspn(end, "/");
		if (end - tail > PATH_MAX - 2)
			return true;
		part[0] = '/';
		memcpy(part + 1, tail, (size_t)(end - tail));
		part[1 + (end - tail)] = '\0';
		(void)snprintf(last, sizeof(last), "/%s", path_tail(path, n));
		if (pattern_matches(part, last))
			return true;
	}
	return false;
}

/*
 * Would a directory that arrives at `path` bring something a rule forbids there? Where
 * the rule holds at any depth, it held already where the directory was filled.
 */
static bool rule_is_below(const struct path_rule *r, const char *root, const char *path)
{
	const char *any = r->glob ? strstr(r->real, "/**/") : NULL;
	size_t fixed = pattern_fixed_len(r->real);

	if (r->access != ACCESS_WRITE || r->verdict != VERDICT_DENY)
		return false;
	if (!r->glob)
		return path_within(r->real, path);
	if (any == r->real)
		fixed = 0; /* at any depth of everything */
	if (any && (size_t)(any - r->real) == fixed && strncmp(root, r->real, fixed) == 0 &&
	    (root[fixed] == '/' || root[fixed] == '\0') && !strstr(any + 4, "**"))
		return tail_begun(any + 4, path);
	return pattern_may_match_below(r->real, path);
}

/* denyWrite rules: paths and patterns, of names that may not exist yet */
static void ask_rules(const struct guard *g, const struct guard_question *q, const char *path,
		      struct guard_answer *ret)
{
	struct decision d;

	if (!g->has_deny_rules)
		return;
	/* the name itself, when it is a link to what the rule protects */
	for (size_t i = 0; i < g->p->fs.rules.n; i++) {
		const struct path_rule *r = &g->p->fs.rules.v[i];

		if (r->access == ACCESS_WRITE && r->verdict == VERDICT_DENY && !r->glob &&
		    path_within(path, r->path)) {
			ret->rule = r;
			deny(ret, r->why ? r->why : "writing is denied by a rule");
			return;
		}
	}
	policy_decide_path(g->p, ACCESS_WRITE, path, &d);
	if (d.verdict == VERDICT_DENY && d.rule && d.rule->verdict == VERDICT_DENY) {
		ret->rule = d.rule;
		deny(ret, d.reason);
		return;
	}
	if (!brings_directory(q))
		return;
	for (size_t i = 0; i < g->p->fs.rules.n; i++) {
		const struct path_rule *r = &g->p->fs.rules.v[i];

		if (rule_is_below(r, q->root, path)) {
			ret->rule = r;
			deny(ret, "a directory or link here would hold what a rule forbids");
			return;
		}
	}
}

void guard_ask(struct guard *g, const struct guard_question *q, struct guard_answer *ret)
{
	char path[PATH_MAX + NAME_MAX + 2] _unfilled_;

	*ret = (struct guard_answer){ .allowed = true };
	path_put(path, q->path, q->name);
	ask_git(g, q, ret);
	if (ret->allowed)
		ask_rules(g, q, path, ret);
	if (ret->allowed && q->op != GUARD_RENAME_FROM)
		ask_held(g, q, path, ret);
	if (ret->allowed && q->op != GUARD_RENAME_FROM)
		ask_names(g, q, path, ret);
}

/* Nothing is in that directory, or what git does not use under such a name. */
static bool holds_only_samples(int dirfd, const char *name)
{
	int fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	const struct dirent *d;
	bool clean = true;
	DIR *dir;

	if (fd < 0)
		return errno == ENOENT;
	dir = fdopendir(fd);
	if (!dir) {
		fd_close(fd);
		return false;
	}
	while (clean && (d = readdir(dir)))
		clean = strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0 ||
			text_ends(d->d_name, ".sample");
	(void)closedir(dir);
	return clean;
}

static enum tree_next visit_link(void *ctx, const struct tree_entry *e)
{
	(void)ctx;
	return e->type == DT_LNK || e->type == DT_UNKNOWN ? TREE_STOP : TREE_GO_ON;
}

const char *guard_check_birth(const struct guard *g, const struct guard_question *q)
{
	if (!g->hooks->lifted && !holds_only_samples(q->parent, "hooks"))
		return "the directory would become a git directory, and holds hooks";
	if ((!g->remotes->lifted && !holds_only_samples(q->parent, "remotes")) ||
	    (!g->branches->lifted && !holds_only_samples(q->parent, "branches")))
		return "the directory would become a git directory, and holds remotes of the old "
		       "kind";
	if (!lacks(q->parent, "commondir") || !lacks(q->parent, "config.worktree"))
		return "the directory would become a git directory, and holds other configuration";
	if (!g->hooks->lifted && tree_walk(q->parent, ".", q->path, visit_link, NULL) != 0)
		return "the directory would become a git directory, and holds links";
	return NULL;
}

bool guard_may_be_git_dir(int source, const char *name)
{
	/* surely, since what cannot be looked into was not guarded by its content */
	return !name_is(name, ".git") || is_surely_git_dir(source);
}

bool guard_checks_links(const struct guard *g)
{
	return !g->hooks->lifted;
}

bool guard_checks_config(const struct guard *g)
{
	return !g->config->lifted;
}
