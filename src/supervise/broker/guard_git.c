/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Git directories, known by their content whatever they are called: what git would run or follow
 * in them.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/text.h"
#include "policy/match_name.h"
#include "policy/match_path.h"
#include "supervise/broker/guard_internal.h"
#include "supervise/broker/tree.h"

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

bool guard_is_git_dir(int dirfd, const char *path, size_t len)
{
	const char *last = path + len;

	while (last > path && last[-1] != '/')
		last--;
	return name_is_n(last, (size_t)(path + len - last), ".git", 4) || looks_like_git_dir(dirfd);
}

static void deny_hooks(const struct guard *g, struct guard_answer *ret)
{
	ret->git_name = g->hooks;
	guard_deny(ret, "git runs the files in its hooks directory");
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
			_cleanup_fd_ int above = guard_open_above(q->parent, levels);

			/* what cannot be looked at is taken for the worst */
			if (above < 0 ||
			    guard_is_git_dir(above, q->path, (size_t)(start - q->path) - 1))
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
	guard_deny(ret, "git takes from it where to fetch from and push to");
}

/* A directory by that name may be made, which is empty: `git init` does. */
static void ask_remotes(const struct guard *g, const struct guard_question *q,
			struct guard_answer *ret)
{
	if (q->op != GUARD_MAKE_DIR && q->op != GUARD_RENAME_FROM && q->directory &&
	    guard_is_git_dir(q->parent, q->path, strlen(q->path)))
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
	above = guard_open_above(q->parent, 1);
	return above < 0 ||
	       guard_is_git_dir(above, q->path, (size_t)(strrchr(q->path, '/') - q->path));
}

/* <git dir>/worktrees/<id>: the only place where git itself writes a commondir */
static bool is_worktree(const struct guard_question *q)
{
	_cleanup_fd_ int up = guard_open_above(q->parent, 2);
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
		_cleanup_fd_ int above = guard_open_above(dirfd, i);

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
		guard_deny(ret, GIT_CONFIG_REASON);
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
		guard_deny(ret, "it says which repository git uses here");
	else if (q->op != GUARD_RENAME_FROM && q->op != GUARD_MAKE_DIR && !q->directory &&
		 (strcmp(q->path, q->root) == 0 || !guard_is_new(g, q->parent, q->path)))
		guard_deny(ret, "it says which repository git uses here");
}

static void ask_main_config(const struct guard *g, const struct guard_question *q,
			    struct guard_answer *ret)
{
	if (guard_is_git_dir(q->parent, q->path, strlen(q->path)))
		ask_config(g, q, ret);
}

static void ask_hooks(const struct guard *g, const struct guard_question *q,
		      struct guard_answer *ret)
{
	if (!g->hooks->lifted && q->op != GUARD_MAKE_DIR && q->op != GUARD_RENAME_FROM &&
	    guard_is_git_dir(q->parent, q->path, strlen(q->path)))
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
		guard_deny(ret, "it makes git read another configuration");
	}
}

/* The other way round: a commondir of any content comes to life. */
static void ask_head(const struct guard *g, const struct guard_question *q,
		     struct guard_answer *ret)
{
	if (!g->commondir->lifted && q->op != GUARD_RENAME_FROM && !has(q->parent, q->name) &&
	    !lacks(q->parent, "commondir"))
		guard_deny(ret, "it would turn the directory into a git directory unchecked");
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
		guard_deny(ret, "it would turn the directory into a git directory unchecked");
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

void guard_ask_git(const struct guard *g, const struct guard_question *q, struct guard_answer *ret)
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
