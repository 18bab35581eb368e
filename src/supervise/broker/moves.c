/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Brokered calls about names that are there already: a second name (link), another place (rename),
 * the end (rmdir). They have the shape of calls.c, twice where there are two places: each end is
 * judged for itself, then what comes to lie where.
 *
 * What was allowed only because of where it was must not arrive where it would not have been:
 * links in git directories, a directory as .git, names from new territory, sockets of the host's. A directory that cannot
 * be judged as a whole is answered with EXDEV, as on another file system: then programs copy it,
 * and each name is asked about.
 */
#include "supervise/broker/calls.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/text.h"
#include "supervise/broker/gitfiles.h"
#include "supervise/broker/tree.h"

#ifndef RENAME_EXCHANGE
#define RENAME_NOREPLACE 1
#define RENAME_EXCHANGE 2
#define RENAME_WHITEOUT 4
#endif

/*
 * For a call with two places, of which at least one is guarded. False when one that was has come
 * to lie elsewhere, moved by somebody else while we waited: nothing would be judged there.
 */
static bool call_both_alone(const struct call *c, struct place *a, struct place *b)
{
	bool was_guarded[] = { a->root != NULL, b->root != NULL };

	(void)call_alone(c, a);
	(void)call_alone(c, b);
	return (a->root || !was_guarded[0]) && (b->root || !was_guarded[1]);
}

static bool is_guarded(const struct place *p)
{
	return p->root && !p->relayed;
}

/*
 * Git opens many of its files for writing as they are (COMMIT_EDITMSG, logs, the gitdir of
 * worktrees): outside it would do so through a link, with text that was chosen in here. And in the
 * place of a directory a link could lead to one that is new.
 */
int call_refuse_link(const struct call *c, const struct place *p, const char *text,
		     enum violation_kind kind)
{
	struct guard_answer why = { .reason = "git outside would write to what the link leads to" };
	char path[PLACE_TEXT_MAX];

	if (!is_guarded(p))
		return 0;
	place_text(p, path);
	if (guard_surely_was_there(c->b->guard, path) || call_is_old_directory(c, p))
		why.reason = "a directory was here before this run, and a link leads elsewhere";
	else if (modules_need_place(c, p))
		why.reason = "a submodule's files belong here: git outside would write to what the "
			     "link leads to";
	/* with this one `git init` finds out whether there are links; in there it leads nowhere */
	else if ((text && strcmp(text, "testing") == 0) || !guard_checks_links(c->b->guard) ||
		 !guard_in_git_dir(p->parent, p->path, p->root, true))
		return 0;
	call_refuse(c, p, kind, &why);
	return -EACCES;
}

/* A directory, or a link that may stand for one; what cannot be looked at is taken for it. */
static bool may_hold_names(const struct place *p)
{
	struct stat st;

	if (fstatat(p->parent, p->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno != ENOENT;
	return S_ISDIR(st.st_mode) || S_ISLNK(st.st_mode);
}

/*
 * The name that an open file has. Where that is gone and it has others, nobody knows those: it is
 * judged by the one that it had, which the kernel shows with a word behind it. (That of an unnamed
 * file is a number.)
 */
static int find_name(const struct broker *b, int file, const struct stat *st, struct place *ret)
{
	static const char gone[] = " (deleted)";
	char path[PATH_MAX];

	if (fd_path(b, file, path) < 0 || place_resolve(b, b->root, path, 0, ret) < 0)
		return -EXDEV;
	if (place_is_file(ret, st))
		return ret->root ? 0 : -EXDEV;
	if (!text_ends(path, gone))
		return -EXDEV;
	path[strlen(path) - strlen(gone)] = '\0';
	return place_resolve(b, b->root, path, 0, ret) < 0 || !ret->root ? -EXDEV : 0;
}

/* linkat() of an open file: O_TMPFILE gets its name this way. */
static int link_open_file(struct call *c, int number, int dirfd, uint64_t address)
{
	_cleanup_place_ struct place from = PLACE_INIT, to = PLACE_INIT;
	_cleanup_fd_ int file = -1;
	struct guard_answer why;
	char link[32];
	struct stat st;
	int r = call_prepare(c, dirfd, address, &to, VIOLATION_CREATE);

	if (r < 0)
		return r;
	file = call_take_fd(c, number);
	if (file < 0 || fstat(file, &st) < 0 || S_ISDIR(st.st_mode))
		return ANSWER_CONTINUE;
	if (st.st_nlink > 0) {
		/* it has a name already: a second one must not free a guarded file */
		r = find_name(c->b, file, &st, &from);
		if (r == 0)
			r = call_ask(c, &from, GUARD_WRITE, false, VIOLATION_WRITE, &why);
	}
	if (r == 0)
		r = call_ask(c, &to, GUARD_MAKE_OTHER, S_ISLNK(st.st_mode), VIOLATION_CREATE, &why);
	if (r == 0 && S_ISLNK(st.st_mode))
		r = call_refuse_link(c, &to, NULL, VIOLATION_CREATE);
	if (r == 0)
		r = call_refuse_open_socket(c, file, &to);
	if (r < 0)
		return r;
	(void)snprintf(link, sizeof(link), "self/fd/%d", file);
	if (linkat(c->b->proc, link, to.parent, to.name, AT_SYMLINK_FOLLOW) < 0)
		return -errno;
	call_note_later(c, &to, &why);
	return 0;
}

/* What mounts would do to a rename or link, where there are none: 0 or -errno. */
static int check_mounts(const struct call *c, const struct place *from, const struct place *to,
			bool moves)
{
	char old[PLACE_TEXT_MAX] _unfilled_, new[PLACE_TEXT_MAX] _unfilled_;

	if (!c->b->plan->bare)
		return 0;
	place_text(from, old);
	place_text(to, new);
	if (moves && (bare_is_kept(c->b, old) || bare_is_kept(c->b, new)))
		return -EBUSY;
	return bare_is_apart(c->b, old, new) ? -EXDEV : 0;
}

/* What the kernel says of a link before it looks at rights: 0 or -errno. */
static int check_link(const struct place *from, const struct place *to)
{
	struct stat st;

	if (fstatat(from->parent, from->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	return place_exists(to) ? -EEXIST : 0;
}

/* Both ends were resolved and at least one is guarded. */
static int link_guarded(struct call *c, struct place *from, struct place *to)
{
	struct guard_answer why;
	int r;

	if (from->slash || to->slash)
		return ANSWER_CONTINUE;
	if ((place_is_special(from) || place_is_special(to) || may_hold_names(from)) &&
	    !call_both_alone(c, from, to))
		return ANSWER_CONTINUE;
	r = check_link(from, to);
	/* a second name for a protected file would be a way to write to it */
	if (r == 0 && from->root)
		r = call_ask(c, from, GUARD_WRITE, false, VIOLATION_WRITE, &why);
	if (r == 0 && to->root)
		r = call_ask(c, to, GUARD_MAKE_OTHER, may_hold_names(from), VIOLATION_CREATE, &why);
	if (r == 0 && may_hold_names(from))
		r = call_refuse_link(c, to, NULL, VIOLATION_CREATE);
	if (r == 0)
		r = call_refuse_socket(c, from, to, VIOLATION_CREATE);
	if (r == 0)
		r = check_mounts(c, from, to, false);
	if (r < 0)
		return r;
	if (linkat(from->parent, from->name, to->parent, to->name, 0) < 0)
		return -errno;
	if (to->root)
		call_note_later(c, to, &why);
	return 0;
}

int call_link(struct call *c, int fromfd, uint64_t from_at, int tofd, uint64_t to_at, int flags)
{
	_cleanup_place_ struct place from = PLACE_INIT, to = PLACE_INIT;
	char from_path[PATH_MAX], to_path[PATH_MAX];
	int number;

	if ((flags & ~(AT_SYMLINK_FOLLOW | AT_EMPTY_PATH)) ||
	    call_read_path(c, from_at, from_path) < 0 || call_read_path(c, to_at, to_path) < 0)
		return ANSWER_CONTINUE;
	if ((flags & AT_EMPTY_PATH) && !from_path[0])
		return link_open_file(c, fromfd, tofd, to_at);
	number = flags & AT_SYMLINK_FOLLOW ? call_magic_fd(c, from_path) : -1;
	if (number >= 0)
		return link_open_file(c, number, tofd, to_at);
	if (call_resolve(c, fromfd, from_path, 0, &from) < 0 ||
	    call_resolve(c, tofd, to_path, 0, &to) < 0)
		return ANSWER_CONTINUE;
	for (unsigned i = 0; (flags & AT_SYMLINK_FOLLOW) && i < SYMLINK_HOPS_MAX; i++) {
		if (place_read_link(&from, from_path) < 0)
			break; /* not a link */
		if (place_resolve(c->b, from.parent, from_path, 0, &from) < 0)
			return ANSWER_CONTINUE;
	}
	if (!from.root && !to.root) {
		call_report_outside(c, VIOLATION_CREATE, &to);
		return ANSWER_CONTINUE;
	}
	return link_guarded(c, &from, &to);
}

/* The name as it was given, with a slash at its end or not; ret has NAME_MAX + 2 bytes. */
static void with_slash(const struct place *p, char *ret)
{
	size_t n = strlen(p->name);

	memcpy(ret, p->name, n);
	ret[n] = p->slash ? '/' : '\0';
	ret[n + p->slash] = '\0';
}

static bool is_directory(const struct place *p)
{
	struct stat st;

	return fstatat(p->parent, p->name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

/*
 * A file that may not be written keeps its name: under another one it could be, and with it
 * whatever else it is called; and it could not come back. Git removes such files by unlink(2).
 */
static int ask_source(const struct call *c, const struct place *from, struct guard_answer *ret)
{
	int r = call_judge(c, from, GUARD_WRITE, false, VIOLATION_RENAME, ret);

	if (r < 0 && (is_directory(from) || call_is_of_this_run(c, from)))
		r = call_judge(c, from, GUARD_RENAME_FROM, false, VIOLATION_RENAME, ret);
	if (r < 0)
		call_refuse(c, from, VIOLATION_RENAME, ret);
	return r;
}

/* Of a configuration: it is only put in place as a copy, which leaves nothing to exchange. */
static int refuse_exchange(const struct call *c, const struct place *p, struct guard_answer *why)
{
	why->reason = why->protected ? why->protected->reason : GIT_CONFIG_REASON;
	call_refuse(c, p, VIOLATION_RENAME, why);
	return -EACCES;
}

/* Ask both ends; 0, or the answer. `directory`: from may hold names. */
static int ask_rename(const struct call *c, const struct place *from, const struct place *to,
		      bool directory, unsigned flags, struct guard_answer *ret)
{
	bool exchange = (flags & RENAME_EXCHANGE) != 0;
	int r = 0;

	/* nobody guarded how it was filled: let it be copied, name by name */
	if ((is_guarded(to) && !is_guarded(from)) || (exchange && !is_guarded(to)))
		return -EXDEV;
	if (place_holds_bulk(c->b, from) || (exchange && place_holds_bulk(c->b, to)))
		return -EBUSY;
	if (!to->root)
		call_report_outside(c, VIOLATION_RENAME, to);
	if (from->root)
		r = exchange ? call_ask(c, from, GUARD_RENAME_TO, may_hold_names(to),
					VIOLATION_RENAME, ret)
			     : ask_source(c, from, ret);
	if (r == 0 && exchange && ret->way != GUARD_PLAIN)
		return refuse_exchange(c, from, ret);
	if (r == 0 && to->root)
		r = call_ask(c, to, GUARD_RENAME_TO, directory, VIOLATION_RENAME, ret);
	return r;
}

/* Directories that get a name of git's: see guard_may_be_git_dir(). */
static bool becomes_git_dir(const struct place *from, const struct place *to, unsigned flags)
{
	_cleanup_fd_ int source = place_open(from), other = -1;

	if (is_guarded(to) && !guard_may_be_git_dir(source, to->name))
		return false;
	if (!(flags & RENAME_EXCHANGE) || !is_guarded(from))
		return true;
	other = place_open(to);
	return guard_may_be_git_dir(other, from->name);
}

/*
 * Is it a link that gets into a git directory, or a directory that may hold some: 0, or -errno.
 * One from a git directory holds none, nor one that is such a directory itself.
 */
static int check_links(const struct call *c, const struct place *from, const struct place *to)
{
	_cleanup_fd_ int source = place_open(from);
	struct stat st;

	if (source < 0)
		return 0; /* not there: the kernel says so */
	if (fstat(source, &st) < 0 || S_ISLNK(st.st_mode))
		return call_refuse_link(c, to, NULL, VIOLATION_RENAME);
	if (!S_ISDIR(st.st_mode) || !is_guarded(to) || !guard_checks_links(c->b->guard) ||
	    !guard_in_git_dir(to->parent, to->path, to->root, true) ||
	    guard_in_git_dir(from->parent, from->path, from->root, false) ||
	    guard_may_be_git_dir(source, ".git"))
		return 0;
	return -EXDEV; /* let it be copied, name by name */
}

/*
 * May the directory `from` come to lie at `to`, where one was before this run? Not with names that
 * were only allowed because it is new: -EXDEV, so that it is copied, and judged name by name.
 */
static int check_arrival(const struct call *c, const struct place *from, const struct place *to)
{
	char path[PLACE_TEXT_MAX] _unfilled_;
	struct stat st;
	bool old;

	if (!is_guarded(to) || fstatat(from->parent, from->name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
	    !S_ISDIR(st.st_mode))
		return 0;
	place_text(to, path);
	old = call_is_old_directory(c, to);
	if (!old && !guard_was_there(c->b->guard, path))
		return 0;
	return guard_is_tainted(c->b->guard, from->parent, from->name, path, to->root, old) ? -EXDEV
											    : 0;
}

static enum tree_next visit_shared(void *ctx, const struct tree_entry *e)
{
	struct stat st;

	(void)ctx;
	if (e->type == DT_DIR)
		return TREE_GO_ON;
	if (fstatat(e->dirfd, e->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return TREE_STOP;
	return st.st_nlink > 1 && !S_ISDIR(st.st_mode) ? TREE_STOP : TREE_GO_ON;
}

/*
 * A directory that is protected by its own name is not where it goes. If a file in it has another
 * name, which may be protected too, it must not become free with it: let it be copied.
 */
static int check_shared(const struct call *c, const struct place *from)
{
	struct guard_answer why;
	char path[PLACE_TEXT_MAX] _unfilled_;

	if (!is_guarded(from) || !call_is_old_directory(c, from) ||
	    call_judge(c, from, GUARD_RENAME_TO, true, VIOLATION_RENAME, &why) == 0)
		return 0;
	place_text(from, path);
	return tree_walk(from->parent, from->name, path, visit_shared, NULL) != 0 ? -EXDEV : 0;
}

/* What comes to lie where: 0, or -errno. */
static int check_moves(const struct call *c, const struct place *from, const struct place *to,
		       bool directory, unsigned flags)
{
	static const struct guard_answer half = {
		.reason = "it would become the .git of a directory unchecked"
	};
	int r;

	if (directory && !becomes_git_dir(from, to, flags)) {
		call_refuse(c, to, VIOLATION_RENAME, &half);
		return -EACCES;
	}
	r = call_refuse_socket(c, from, to, VIOLATION_RENAME);
	if (r == 0 && (flags & RENAME_EXCHANGE))
		r = call_refuse_socket(c, to, from, VIOLATION_RENAME);
	if (r == 0 && directory)
		r = check_links(c, from, to);
	if (r == 0 && directory)
		r = check_arrival(c, from, to);
	if (r == 0 && directory)
		r = check_shared(c, from);
	if (r == 0 && directory)
		r = modules_check_move(c, from, to);
	if (r == 0 && (flags & RENAME_EXCHANGE))
		r = modules_check_move(c, to, from);
	if (r == 0 && (flags & RENAME_EXCHANGE))
		r = check_links(c, to, from);
	if (r == 0 && (flags & RENAME_EXCHANGE))
		r = check_arrival(c, to, from);
	return r < 0 ? r : check_mounts(c, from, to, true);
}

enum presence {
	PRESENT,
	PRESENT_SAME, /* two names of one file, which rename(2) leaves alone */
};

/* What the kernel says of a rename before it looks at rights: enum presence, or -errno. */
static int check_presence(const struct place *from, const struct place *to, unsigned flags)
{
	struct stat source, target;

	if (fstatat(from->parent, from->name, &source, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (fstatat(to->parent, to->name, &target, AT_SYMLINK_NOFOLLOW) < 0)
		return (flags & RENAME_EXCHANGE) ? -errno : PRESENT;
	if (flags & RENAME_NOREPLACE)
		return -EEXIST;
	return source.st_dev == target.st_dev && source.st_ino == target.st_ino ? PRESENT_SAME
										: PRESENT;
}

/* A rename onto a configuration of git's, which is checked: see install_config(). */
static int rename_config(struct call *c, const struct place *from, const struct place *to,
			 unsigned flags, struct guard_answer *why)
{
	int r;

	if (flags & RENAME_EXCHANGE)
		return refuse_exchange(c, to, why);
	if (flags & RENAME_NOREPLACE)
		return -EINVAL; /* as where no file system knows it: mv(1) looks by itself then */
	r = install_config(c, from, to, why);
	if (r == -EACCES)
		call_refuse(c, to, VIOLATION_RENAME, why);
	return r;
}

/* Both ends were resolved and at least one is guarded. */
static int rename_guarded(struct call *c, struct place *from, struct place *to, unsigned flags)
{
	bool directory = may_hold_names(from);
	struct guard_answer why = { 0 };
	char old_name[NAME_MAX + 2] _unfilled_, new_name[NAME_MAX + 2] _unfilled_;
	bool moves_old, meets_old;
	int r;

	if (directory || (flags & RENAME_EXCHANGE) || place_is_special(from) ||
	    place_is_special(to)) {
		if (!call_both_alone(c, from, to))
			return ANSWER_CONTINUE;
		directory = may_hold_names(from);
	}
	r = check_presence(from, to, flags);
	if (r != PRESENT)
		return r == PRESENT_SAME ? 0 : r;
	r = ask_rename(c, from, to, directory, flags, &why);
	if (r < 0)
		return r;
	if (why.way == GUARD_CONFIG)
		return rename_config(c, from, to, flags, &why);
	r = check_moves(c, from, to, directory, flags);
	if (r < 0)
		return r;
	call_note_before(c, to);
	moves_old = directory && is_guarded(from) && call_is_old_directory(c, from);
	meets_old = is_guarded(to) && call_is_old_directory(c, to);
	with_slash(from, old_name);
	with_slash(to, new_name);
	r = (int)syscall(SYS_renameat2, from->parent, old_name, to->parent, new_name, flags);
	if (r < 0) {
		r = -errno;
		if (r == -EBUSY || r == -EROFS) /* one of them is a mount of ours */
			call_report_outside(c, VIOLATION_RENAME, from);
		return r;
	}
	if (to->root && (!directory || why.new_territory))
		call_note_later(c, to, &why);
	if (moves_old)
		call_note_moved(c, from, to);
	if (meets_old && (flags & RENAME_EXCHANGE))
		call_note_moved(c, to, from);
	else if (meets_old)
		call_note_gone(c, to);
	if (directory)
		call_move_later(c, from, to);
	if (directory || (flags & RENAME_EXCHANGE))
		call_note_origin(c, from, to, flags & RENAME_EXCHANGE ? MOVE_EXCHANGE : MOVE_AWAY);
	return 0;
}

int call_rename(struct call *c, int fromfd, uint64_t from_at, int tofd, uint64_t to_at,
		unsigned flags)
{
	_cleanup_place_ struct place from = PLACE_INIT, to = PLACE_INIT;
	char old_path[PATH_MAX] _unfilled_, new_path[PATH_MAX] _unfilled_;

	if (call_read_path(c, from_at, old_path) < 0 || call_read_path(c, to_at, new_path) < 0 ||
	    call_resolve(c, fromfd, old_path, 0, &from) < 0 ||
	    call_resolve_second(c, tofd, new_path, &from, fromfd, old_path, &to) < 0)
		return ANSWER_CONTINUE;
	if (!from.root && !to.root) {
		call_report_outside(c, VIOLATION_RENAME, &from);
		call_report_outside(c, VIOLATION_RENAME, &to);
		return ANSWER_CONTINUE;
	}
	/* the first: overlay file systems only, makes a device node */
	if ((flags & RENAME_WHITEOUT) ||
	    (flags & (RENAME_NOREPLACE | RENAME_EXCHANGE)) == (RENAME_NOREPLACE | RENAME_EXCHANGE))
		return -EINVAL;
	/* of a large directory there is much to tell, and other sandboxes wait meanwhile */
	c->defers = true;
	return rename_guarded(c, &from, &to, flags);
}

/* Which directories went is remembered: see guard_note_gone(). */
int call_rmdir(struct call *c, int dirfd, uint64_t address)
{
	_cleanup_place_ struct place p = PLACE_INIT;
	char path[PLACE_TEXT_MAX] _unfilled_, name[NAME_MAX + 2] _unfilled_;
	bool old;
	int r;

	if (call_read_path(c, address, path) < 0 || call_resolve(c, dirfd, path, 0, &p) < 0)
		return ANSWER_CONTINUE;
	if (!p.root) {
		if (place_exists(&p))
			call_report_outside(c, VIOLATION_DELETE, &p);
		return ANSWER_CONTINUE;
	}
	place_text(&p, path);
	if (c->b->plan->bare && bare_is_kept(c->b, path)) {
		call_report_outside(c, VIOLATION_DELETE, &p);
		return -EACCES;
	}
	old = is_guarded(&p) && call_is_old_directory(c, &p);
	with_slash(&p, name);
	r = unlinkat(p.parent, name, AT_REMOVEDIR) < 0 ? -errno : 0;
	if (r == -EBUSY || r == -EROFS) /* a mount of ours */
		call_report_outside(c, VIOLATION_DELETE, &p);
	if (r == 0)
		call_note_used(c, &p);
	if (r == 0 && old)
		call_note_gone(c, &p);
	return r;
}
