/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Submodules say by core.worktree where their checkout is, relative to their own place in
 * .git/modules. The text was checked when it came in (gitinstall.c); what it leads to must not
 * change afterwards, or git outside would write files that were chosen in here to wherever it
 * leads then. So no link comes to stand in the place of a checkout, or above it, and no git
 * directory moves with such a text in it, unless that leads to as good a place. Callers hold the lock.
 *
 * What is there on disk is read each time: a link may be made in a later run than the text.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/gitconfig.h"
#include "base/sys.h"
#include "base/text.h"
#include "policy/match_name.h"
#include "supervise/broker/gitconfig.h"
#include "supervise/broker/gitfiles.h"
#include "supervise/broker/tree.h"

struct search {
	const struct call *c;
	/* Is this checkout what is looked for? */
	bool (*concerns)(const struct search *s, const char *worktree);
	const char *place; /* of a link, or of a directory that comes */
	int source; /* the directory */
};

static bool is_core(const char *section)
{
	return strcmp(section, "core.") == 0;
}

/* The directory whose configuration this is: the path without its last component. */
static const char *directory_of(struct arena *a, const char *path)
{
	return arena_strndup(a, path, (size_t)(strrchr(path, '/') - path));
}

static bool names_worktree(const struct search *s, const struct tree_entry *e)
{
	_cleanup_arena_ struct arena *a = arena_new();
	_cleanup_free_ char *text = NULL;
	struct gitconfig_entries entries = { 0 };
	mode_t mode;
	size_t len;

	if (git_read_regular(e->dirfd, e->name, &text, &len, &mode) < 0 || strlen(text) != len ||
	    gitconfig_parse(a, text, is_core, &entries) < 0)
		return true; /* nobody knows what it says */
	for (size_t i = 0; i < entries.n; i++) {
		const struct gitconfig_entry *x = &entries.v[i];

		if (strcmp(x->key, "core.worktree") != 0 || !x->value)
			continue;
		/* nor where this leads, a link later; it came in before that was refused */
		if (!gitconfig_worktree_is_plain(x->value) ||
		    s->concerns(s, path_absolute(a, directory_of(a, e->path), x->value)))
			return true;
	}
	return false;
}

/* No module lies in these (gitconfig.c), and they are large. */
static bool is_passed_over(const struct tree_entry *e)
{
	static const char *const large[] = { "objects", "refs", "logs", "lfs" };

	for (size_t i = 0; i < ARRAY_LEN(large); i++) {
		if (strcmp(e->name, large[i]) == 0)
			return guard_may_be_git_dir(e->dirfd, ".git");
	}
	return false;
}

static enum tree_next visit(void *ctx, const struct tree_entry *e)
{
	if (e->type == DT_DIR || e->type == DT_UNKNOWN)
		return is_passed_over(e) ? TREE_SKIP : TREE_GO_ON;
	if (strcmp(e->name, "config") != 0 && strcmp(e->name, "config.worktree") != 0)
		return TREE_GO_ON;
	return names_worktree(ctx, e) ? TREE_STOP : TREE_GO_ON;
}

/* Is there such a checkout among the modules in dirfd/name, which is at `path`? */
static bool search(struct search *s, int dirfd, const char *name, const char *path)
{
	int r = tree_walk(dirfd, name, path, visit, s);

	return r != 0 && r != -ENOENT && r != -ENOTDIR;
}

/* The modules of the repository whose work tree `dir` is. */
static bool search_work_tree(struct search *s, int dir, const char *path)
{
	char at[PLACE_TEXT_MAX] _unfilled_, modules[PLACE_TEXT_MAX + 16] _unfilled_;
	_cleanup_fd_ int git_dir = -1;
	struct stat st;

	if (fstatat(dir, ".git", &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno != ENOENT && errno != ENOTDIR;
	if (S_ISDIR(st.st_mode)) {
		path_put(at, path, ".git");
		git_dir = openat(dir, ".git", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	} else {
		git_dir = git_open_pointed(dir);
		if (git_dir < 0 || fd_path(s->c->b, git_dir, at) < 0)
			return false; /* it leads nowhere */
	}
	path_put(modules, at, "modules");
	return search(s, git_dir, "modules", modules);
}

/* Those of all repositories around the place, up to the writable directory. */
static bool search_around(struct search *s, const struct place *p)
{
	_cleanup_fd_ int dir = openat(p->parent, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	size_t top = strlen(p->root);
	char path[PATH_MAX] _unfilled_;

	text_copy(path, sizeof(path), p->path);
	for (;;) {
		char *slash;
		int above;

		if (dir < 0 || search_work_tree(s, dir, path))
			return true;
		slash = strrchr(path, '/');
		if (strlen(path) <= top || !slash || slash == path)
			return false;
		*slash = '\0';
		above = openat(dir, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
		fd_close(dir);
		dir = above;
	}
}

static bool lies_at_or_below(const struct search *s, const char *worktree)
{
	return name_path_within(worktree, s->place);
}

bool modules_need_place(const struct call *c, const struct place *p)
{
	char path[PLACE_TEXT_MAX];
	struct search s = { .c = c, .concerns = lies_at_or_below, .place = path, .source = -1 };

	place_text(p, path);
	return search_around(&s, p);
}

static bool meets_link(int dirfd, const char *path)
{
	_cleanup_fd_ int fd = sys_openat2(dirfd, path, O_PATH | O_DIRECTORY | O_CLOEXEC, 0,
					  SYS_RESOLVE_NO_SYMLINKS);

	return fd < 0 && errno != ENOENT && errno != ENOTDIR;
}

/* Would it be a link in the directory that comes? Names may be alike without being the same. */
static bool comes_as_link(const struct search *s, const char *worktree)
{
	const char *rest = worktree;

	if (!name_path_within(worktree, s->place))
		return false;
	for (unsigned n = path_depth(s->place); n > 0; n--)
		rest += 1 + strcspn(rest + 1, "/");
	return *rest == '/' && meets_link(s->source, rest + 1);
}

static bool is_any(const struct search *s, const char *worktree)
{
	(void)s;
	(void)worktree;
	return true;
}

/* Is it a link where a git directory comes to lie? */
static bool is_link_there(const struct search *s, const char *worktree)
{
	return meets_link(s->c->b->root, worktree);
}

/* <somewhere>/.git/modules, .git/worktrees, or in there */
static bool holds_modules(const char *path)
{
	return name_pattern_covers(".git/modules", path, 0) >= 0 ||
	       name_pattern_covers(".git/worktrees", path, 0) >= 0;
}

int modules_check_move(const struct call *c, const struct place *from, const struct place *to)
{
	char old[PLACE_TEXT_MAX] _unfilled_, new[PLACE_TEXT_MAX] _unfilled_;
	struct search s = { .c = c, .place = new, .source = -1 };
	_cleanup_fd_ int source =
		openat(from->parent, from->name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (source < 0 || !to->root || to->relayed)
		return 0;
	place_text(from, old);
	place_text(to, new);
	s.source = source;
	if (holds_modules(old) || holds_modules(new)) {
		s.concerns = is_any;
		return search(&s, source, ".", new) ? -EXDEV : 0;
	}
	if (guard_may_be_git_dir(source, ".git")) {
		s.concerns = name_is(to->name, ".git") ? is_link_there : is_any;
		return search(&s, source, ".", new) ? -EXDEV : 0;
	}
	s.concerns = comes_as_link;
	return search_around(&s, to) ? -EXDEV : 0;
}
