/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Submodules say by core.worktree where their checkout is, relative to their own place in
 * .git/modules. The text was checked when it came in (gitinstall.c); what it leads to must not
 * change afterwards, or git outside would write files that were chosen in here to wherever it
 * leads then. So no link comes to stand in the place of a checkout, or above it, and no git
 * directory moves with such a text in it, unless that leads to as good a place. Callers hold the lock.
 *
 * What is there on disk is looked at each time: a link may be made in a later run than the text. All
 * other sandboxes of the user wait meanwhile, so a search has an end: what is more than it
 * looks at is taken for what was looked for. What a configuration said is remembered.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/gitconfig.h"
#include "base/sys.h"
#include "base/text.h"
#include "policy/match_name.h"
#include "supervise/broker/gitconfig.h"
#include "supervise/broker/gitfiles.h"
#include "supervise/broker/tree.h"

/* One search: of a submodule as git makes it about 75 steps, and a few hundred bytes. */
#define STEPS_MAX 80000
#define STEPS_OF_DIRECTORY 8 /* an entry is one */
#define TEXT_MAX ((size_t)4 << 20)

#define KNOWN_MAX 1024
#define KNOWN_TEXT_MAX 120 /* longer ones are read each time */
#define SETTLED_S 4 /* the clock of files is coarse: in less they may have changed unseen */

/* What a configuration says of core.worktree: "" = nothing. */
struct known {
	struct stat was;
	uint64_t search; /* the one that read it */
	char worktree[KNOWN_TEXT_MAX];
};

struct modules {
	uint64_t searches;
	struct known known[KNOWN_MAX];
};

struct search {
	const struct call *c;
	uint64_t number;
	unsigned steps;
	size_t text; /* bytes that were read */
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

static struct known *place_of(const struct search *s, const struct stat *st)
{
	uint64_t hash = ((uint64_t)st->st_ino ^ (uint64_t)st->st_dev << 32) * 0x9e3779b97f4a7c15u;

	return &s->c->b->modules->known[(hash >> 32) % KNOWN_MAX];
}

/* Times of modification can be set, those of the change of an inode cannot. */
static bool same_state(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec &&
	       a->st_ctim.tv_sec == b->st_ctim.tv_sec && a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

static bool is_settled(const struct stat *st)
{
	struct timespec now;

	return clock_gettime(CLOCK_REALTIME, &now) == 0 &&
	       st->st_ctim.tv_sec + SETTLED_S < now.tv_sec;
}

/*
 * NULL when it has to be read. Nobody inside has a git directory's configuration open for writing
 * (gitinstall.c): no memory that is mapped changes it without the kernel's clock.
 */
static const char *recall(const struct search *s, const struct stat *st)
{
	const struct known *k = place_of(s, st);

	return k->search && same_state(&k->was, st) && (k->search == s->number || is_settled(st))
		       ? k->worktree
		       : NULL;
}

static void remember(const struct search *s, const struct stat *st, const char *worktree)
{
	struct known *k = place_of(s, st);

	if (strlen(worktree) >= sizeof(k->worktree))
		return;
	k->was = *st;
	k->search = s->number;
	text_copy(k->worktree, sizeof(k->worktree), worktree);
}

/* Is the checkout that it names what is looked for? */
static bool meets(const struct search *s, struct arena *a, const struct tree_entry *e,
		  const char *worktree)
{
	/* nor does anybody know where this leads, a link later; it came in before that was refused */
	return !gitconfig_worktree_is_plain(worktree) ||
	       s->concerns(s, path_absolute(a, directory_of(a, e->path), worktree));
}

/* It is as `st` says, if nobody changes it meanwhile. */
static bool read_worktree(struct search *s, struct arena *a, const struct tree_entry *e,
			  const struct stat *st)
{
	_cleanup_free_ char *text = NULL;
	struct gitconfig_entries entries = { 0 };
	const char *found = "";
	size_t len, n = 0;
	struct stat now;
	mode_t mode;

	if (st->st_size > (off_t)(TEXT_MAX - s->text) ||
	    git_read_regular(e->dirfd, e->name, &text, &len, &mode) < 0 || strlen(text) != len ||
	    gitconfig_parse(a, text, is_core, &entries) < 0)
		return true; /* nobody knows what it says */
	s->text += len < TEXT_MAX - s->text ? len : TEXT_MAX - s->text;
	for (size_t i = 0; i < entries.n; i++) {
		const struct gitconfig_entry *x = &entries.v[i];

		if (strcmp(x->key, "core.worktree") != 0 || !x->value)
			continue;
		if (meets(s, a, e, x->value))
			return true;
		found = x->value;
		n += *found ? 1 : 2; /* "" is remembered for none */
	}
	if (n <= 1 && fstatat(e->dirfd, e->name, &now, AT_SYMLINK_NOFOLLOW) == 0 &&
	    same_state(st, &now))
		remember(s, st, found);
	return false;
}

static bool names_worktree(struct search *s, const struct tree_entry *e)
{
	_cleanup_arena_ struct arena *a = NULL;
	const char *known;
	struct stat st;

	if (fstatat(e->dirfd, e->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return true;
	known = recall(s, &st);
	if (known && !*known)
		return false;
	a = arena_new();
	return known ? meets(s, a, e, known) : read_worktree(s, a, e, &st);
}

/*
 * Is it one that git reads? What only has the name is checked when its directory becomes git's
 * (replace_config()); but what is called .git may do so outside.
 */
static bool is_configuration(const struct tree_entry *e)
{
	if (strcmp(e->name, "config") != 0)
		return strcmp(e->name, "config.worktree") == 0;
	return guard_is_git_dir(e->dirfd, e->path, (size_t)(strrchr(e->path, '/') - e->path));
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
	bool directory = e->type == DT_DIR || e->type == DT_UNKNOWN;
	struct search *s = ctx;

	s->steps += directory ? STEPS_OF_DIRECTORY : 1;
	if (s->steps > STEPS_MAX)
		return TREE_STOP;
	if (directory)
		return is_passed_over(e) ? TREE_SKIP : TREE_GO_ON;
	return is_configuration(e) && names_worktree(s, e) ? TREE_STOP : TREE_GO_ON;
}

/* Is there such a checkout among the modules in dirfd/name, which is at `path`? */
static bool search(struct search *s, int dirfd, const char *name, const char *path)
{
	struct broker *b = s->c->b;
	int r;

	if (!b->modules)
		b->modules = arena_alloc(b->a, sizeof(*b->modules));
	if (!s->number)
		s->number = ++b->modules->searches;
	r = tree_walk(dirfd, name, path, visit, s);
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
