/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The brokered calls, one function each. All have the same shape: copy the
 * arguments, resolve them to places, leave alone what is not guarded, ask the
 * guard, perform the call on (parent descriptor, name).
 *
 * Errors that the kernel would give before it looks at rights (bad pointer,
 * missing directory, loop) are left to the kernel by answering "continue", so that
 * the command sees exactly what it would see without us.
 */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/sys.h"
#include "policy/match_name.h"
#include "supervise/broker/connect.h"
#include "supervise/broker/gitfiles.h"

#ifndef RENAME_EXCHANGE
#define RENAME_EXCHANGE 2
#define RENAME_WHITEOUT 4
#endif

#define SYMLINK_HOPS_MAX 40

/*
 * Several sandboxes of a user may work in one directory, each with a broker of its own. One lock
 * for all of them is held shared while a call is resolved, judged and performed, and
 * alone by a call that depends on what a directory holds, or that moves a directory: so
 * where a parent lies, and whether it is a git directory, does not change in between.
 */
static void lock_broker(const struct broker *b, int operation)
{
	while (b->lock >= 0 && flock(b->lock, operation) < 0 && errno == EINTR)
		;
}

int call_alone(const struct call *c, struct place *p)
{
	lock_broker(c->b, LOCK_EX);
	return place_refresh(c->b, p) < 0 || !p->root ? ANSWER_CONTINUE : 0;
}

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

bool place_is_special(const struct place *p)
{
	static const char *const names[] = { "config",    "config.worktree", "hooks",
					     "commondir", "objects",         "refs",
					     "HEAD",      "remotes",         "branches" };
	const char *last = strrchr(p->path, '/');

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		if (name_is(p->name, names[i]))
			return true;
	}
	return (last && (name_is(last + 1, "remotes") || name_is(last + 1, "branches"))) ||
	       name_pattern_covers("hooks", p->path, 0) >= 0;
}

int call_judge(const struct call *c, const struct place *p, enum guard_op op, bool directory,
	       enum violation_kind kind, struct guard_answer *ret)
{
	struct guard_question q = {
		.parent = p->parent,
		.path = p->path,
		.name = p->name,
		.root = p->root,
		.op = op,
		.directory = directory,
		.creates = kind == VIOLATION_CREATE,
	};
	char path[PLACE_TEXT_MAX] _unfilled_;

	if (p->relayed) {
		*ret = (struct guard_answer){ .allowed = true };
		return 0;
	}
	guard_ask(c->b->guard, &q, ret);
	if (ret->allowed && ret->way == GUARD_BIRTH) {
		const char *reason = guard_check_birth(c->b->guard, &q);

		if (reason) {
			ret->allowed = false;
			ret->reason = reason;
		}
	}
	if (ret->allowed && c->b->plan->bare) {
		place_text(p, path);
		if (bare_is_read_only(c->b, path)) {
			ret->allowed = false;
			ret->reason = "a protected name leads here";
		}
	}
	if (ret->allowed)
		call_note_used(c, p);
	return ret->allowed ? 0 : -EACCES;
}

void call_refuse(const struct call *c, const struct place *p, enum violation_kind kind,
		 const struct guard_answer *why)
{
	struct violation v;
	char path[PLACE_TEXT_MAX];

	place_text(p, path);
	call_explain(kind, why, &v);
	call_send(c, &v, path);
}

int call_ask(const struct call *c, const struct place *p, enum guard_op op, bool directory,
	     enum violation_kind kind, struct guard_answer *ret)
{
	int r = call_judge(c, p, op, directory, kind, ret);

	if (r < 0)
		call_refuse(c, p, kind, ret);
	return r;
}

void call_adopt_umask(const struct call *c)
{
	mode_t mask = call_umask(c);

	if (mask != c->b->own_umask)
		(void)umask(mask);
	c->b->own_umask = mask;
}

/* ---- creating names ---- */

static bool exists(const struct place *p)
{
	return faccessat(p->parent, p->name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* Resolve, or leave alone: 0 when the guarded call should be asked about and performed. */
static int prepare(struct call *c, int dirfd, uint64_t address, struct place *p,
		   enum violation_kind kind)
{
	char path[PATH_MAX] _unfilled_;

	int r;

	if (call_read_path(c, address, path) < 0)
		return ANSWER_CONTINUE;
	r = call_resolve(c, dirfd, path, 0, p);
	if (r < 0)
		return call_unresolved(r, path);
	if (!p->root) {
		/* what is there already fails for that reason: `mkdir -p` is no attempt to write */
		if (!exists(p))
			call_report_outside(c, kind, p);
		call_note_direct(c, p);
		return ANSWER_CONTINUE;
	}
	return place_is_special(p) ? call_alone(c, p) : 0;
}

/*
 * A writable directory that was made for this run, because only what is there can be mounted: for
 * the command it was not there, so its own first mkdir succeeds.
 */
static bool take_fresh(const struct call *c, const struct place *p, mode_t mode)
{
	const struct plan *plan = c->b->plan;
	_cleanup_fd_ int dir = -1;
	char path[PLACE_TEXT_MAX] _unfilled_;
	struct stat st;
	size_t i = 0;

	if (!plan->n_fresh || p->parent < 0)
		return false;
	place_text(p, path);
	while (i < plan->n_fresh && strcmp(plan->fresh[i], path) != 0)
		i++;
	if (i == plan->n_fresh || c->b->taken[i])
		return false;
	dir = openat(p->parent, p->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir < 0 || fstat(dir, &st) < 0)
		return false;
	c->b->taken[i] = true;
	/* where only something below it is writable, it stays as it is */
	(void)fchmod(dir, (st.st_mode & S_ISGID) | (mode & 01777 & ~call_umask(c)));
	return true;
}

static int do_mkdir(struct call *c, int dirfd, uint64_t address, mode_t mode)
{
	_cleanup_place_ struct place p = PLACE_INIT;
	struct guard_answer why;
	int r = prepare(c, dirfd, address, &p, VIOLATION_MAKE_DIRECTORY);

	if (r < 0)
		return r == ANSWER_CONTINUE && take_fresh(c, &p, mode) ? 0 : r;
	r = call_judge(c, &p, GUARD_MAKE_DIR, true, VIOLATION_MAKE_DIRECTORY, &why);
	if ((r < 0 || why.way != GUARD_PLAIN) && exists(&p))
		return -EEXIST;
	if (r == 0 && why.way == GUARD_BIRTH)
		r = replace_config(c, &p, &why);
	if (r == -EACCES)
		r = call_plead(c, &p, VIOLATION_MAKE_DIRECTORY, &why);
	if (r < 0)
		return r;
	call_adopt_umask(c);
	if (mkdirat(p.parent, p.name, mode) < 0) {
		r = -errno;
		return r == -EEXIST && take_fresh(c, &p, mode) ? 0 : r;
	}
	guard_note_directory(c->b->guard, p.parent, p.name);
	return 0;
}

static int do_mknod(struct call *c, int dirfd, uint64_t address, mode_t mode, uint64_t dev)
{
	_cleanup_place_ struct place p = PLACE_INIT;
	struct guard_answer why;
	bool regular = (mode & S_IFMT) == S_IFREG || (mode & S_IFMT) == 0;
	int r = prepare(c, dirfd, address, &p, VIOLATION_CREATE);

	if (r < 0)
		return r;
	if (p.slash)
		return ANSWER_CONTINUE;
	r = call_ask(c, &p, regular ? GUARD_WRITE : GUARD_MAKE_OTHER, false, VIOLATION_CREATE,
		     &why);
	if (r < 0)
		return r;
	if (why.way != GUARD_PLAIN)
		return -EACCES;
	call_adopt_umask(c);
	if (mknodat(p.parent, p.name, mode & (S_IFMT | 01777), (dev_t)dev) < 0)
		return -errno;
	if (S_ISFIFO(mode))
		call_tell_later(c, &p, "a pipe: a program that opens it waits");
	return 0;
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
static int refuse_link(const struct call *c, const struct place *p, enum violation_kind kind)
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
	else if (!guard_checks_links(c->b->guard) ||
		 !guard_in_git_dir(p->parent, p->path, p->root, true))
		return 0;
	call_refuse(c, p, kind, &why);
	return -EACCES;
}

static int do_symlink(struct call *c, uint64_t target, int dirfd, uint64_t address)
{
	_cleanup_place_ struct place p = PLACE_INIT;
	struct guard_answer why;
	char text[PATH_MAX];
	int r;

	if (call_read_path(c, target, text) < 0)
		return ANSWER_CONTINUE;
	r = prepare(c, dirfd, address, &p, VIOLATION_CREATE);
	/* nobody else renames what is no link yet meanwhile */
	if (r == 0)
		r = call_alone(c, &p);
	if (r < 0)
		return r;
	if (p.slash)
		return ANSWER_CONTINUE;
	r = call_ask(c, &p, GUARD_MAKE_OTHER, true, VIOLATION_CREATE, &why);
	/* with this one `git init` finds out whether there are links; it leads nowhere */
	if (r == 0 && strcmp(text, "testing") != 0)
		r = refuse_link(c, &p, VIOLATION_CREATE);
	if (r < 0)
		return r;
	if (symlinkat(text, p.parent, p.name) < 0)
		return -errno;
	call_note_later(c, &p, &why);
	return 0;
}

int call_bind_at(struct call *c, const struct place *p, int sock)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	struct guard_answer why;
	int r = call_ask(c, p, GUARD_MAKE_OTHER, false, VIOLATION_CREATE, &why);

	if (r < 0)
		return r;
	if (strlen(p->name) >= sizeof(addr.sun_path))
		return -ENAMETOOLONG;
	memcpy(addr.sun_path, p->name, strlen(p->name));
	call_adopt_umask(c);
	if (fchdir(p->parent) < 0)
		return -errno;
	r = bind(sock, (const struct sockaddr *)&addr, sizeof(addr)) < 0 ? -errno : 0;
	if (r == 0)
		guard_note_directory(c->b->guard, p->parent, p->name); /* may be connected to */
	if (fchdir(c->b->root) < 0)
		abort(); /* never go on from a place of the command's choice */
	return r;
}

static int do_bind(struct call *c)
{
	_cleanup_place_ struct place p = PLACE_INIT;
	_cleanup_fd_ int sock = -1;
	struct address to;
	char path[sizeof(to.u.local.sun_path) + 1] = { 0 };
	int r = c->b->plan->no_listen ? broker_bind_port(c) : ANSWER_CONTINUE;

	if (r != ANSWER_CONTINUE)
		return r;
	r = call_read_address(c, &to);
	if (r < 0 || to.len <= offsetof(struct sockaddr_un, sun_path) ||
	    to.u.any.sa_family != AF_UNIX || !to.u.local.sun_path[0])
		return ANSWER_CONTINUE; /* other families and abstract names are no files */
	memcpy(path, to.u.local.sun_path, sizeof(to.u.local.sun_path));
	r = call_resolve(c, AT_FDCWD, path, 0, &p);
	if (r < 0 || !p.root || p.slash || (place_is_special(&p) && call_alone(c, &p) < 0))
		return ANSWER_CONTINUE;
	sock = call_take_fd(c, (int)c->args[0]);
	return sock < 0 ? sock : call_bind_at(c, &p, sock);
}

/* ---- links and renames ---- */

/* A directory, or a link that may stand for one; what cannot be looked at is taken for it. */
static bool may_hold_names(const struct place *p)
{
	struct stat st;

	if (fstatat(p->parent, p->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno != ENOENT;
	return S_ISDIR(st.st_mode) || S_ISLNK(st.st_mode);
}

/* linkat() of an open file: O_TMPFILE gets its name this way. */
static int link_open_file(struct call *c, int number, int dirfd, uint64_t address)
{
	_cleanup_place_ struct place from = PLACE_INIT, to = PLACE_INIT;
	_cleanup_fd_ int file = -1;
	struct guard_answer why;
	char path[PATH_MAX], link[32];
	struct stat st;
	int r = prepare(c, dirfd, address, &to, VIOLATION_CREATE);

	if (r < 0)
		return r;
	file = call_take_fd(c, number);
	if (file < 0 || fstat(file, &st) < 0 || S_ISDIR(st.st_mode))
		return ANSWER_CONTINUE;
	if (st.st_nlink > 0) {
		/* it has a name already: a second one must not free a guarded file */
		if (fd_path(c->b, file, path) < 0 ||
		    place_resolve(c->b, c->b->root, path, 0, &from) < 0 || !from.root)
			return -EXDEV;
		r = call_ask(c, &from, GUARD_WRITE, false, VIOLATION_WRITE, &why);
	}
	if (r == 0)
		r = call_ask(c, &to, GUARD_MAKE_OTHER, S_ISLNK(st.st_mode), VIOLATION_CREATE, &why);
	if (r == 0 && S_ISLNK(st.st_mode))
		r = refuse_link(c, &to, VIOLATION_CREATE);
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

/* Both ends were resolved and at least one is guarded. */
static int link_guarded(struct call *c, struct place *from, struct place *to)
{
	struct guard_answer why;
	int r = 0;

	if (from->slash || to->slash)
		return ANSWER_CONTINUE;
	if ((place_is_special(from) || place_is_special(to) || may_hold_names(from)) &&
	    !call_both_alone(c, from, to))
		return ANSWER_CONTINUE;
	/* a second name for a protected file would be a way to write to it */
	if (from->root)
		r = call_ask(c, from, GUARD_WRITE, false, VIOLATION_WRITE, &why);
	if (r == 0 && to->root)
		r = call_ask(c, to, GUARD_MAKE_OTHER, may_hold_names(from), VIOLATION_CREATE, &why);
	if (r == 0 && may_hold_names(from))
		r = refuse_link(c, to, VIOLATION_CREATE);
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

static int do_link(struct call *c, int fromfd, uint64_t from_at, int tofd, uint64_t to_at,
		   int flags)
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
		r = call_ask(c, from, exchange ? GUARD_RENAME_TO : GUARD_RENAME_FROM,
			     exchange ? may_hold_names(to) : directory, VIOLATION_RENAME, ret);
	if (r == 0 && exchange && ret->way != GUARD_PLAIN)
		return -EACCES;
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
		return refuse_link(c, to, VIOLATION_RENAME);
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

/* What comes to lie where: 0, or -errno. */
static int check_moves(const struct call *c, const struct place *from, const struct place *to,
		       bool directory, unsigned flags)
{
	static const struct guard_answer half = {
		.reason = "it would become the .git of a directory unchecked"
	};
	int r = 0;

	if (directory && !becomes_git_dir(from, to, flags)) {
		call_refuse(c, to, VIOLATION_RENAME, &half);
		return -EACCES;
	}
	if (directory)
		r = check_links(c, from, to);
	if (r == 0 && directory)
		r = check_arrival(c, from, to);
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
	r = ask_rename(c, from, to, directory, flags, &why);
	if (r < 0)
		return r;
	if (why.way == GUARD_CONFIG) {
		r = flags ? -EACCES : install_config(c, from, to, &why);
		if (r == -EACCES)
			call_refuse(c, to, VIOLATION_RENAME, &why);
		return r;
	}
	r = check_moves(c, from, to, directory, flags);
	if (r < 0)
		return r;
	call_note_before(c, to);
	if (from->root && !directory)
		call_note_removal(c, from);
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
	return 0;
}

/* Which directories went is remembered: see guard_note_gone(). */
static int do_rmdir(struct call *c, int dirfd, uint64_t address)
{
	_cleanup_place_ struct place p = PLACE_INIT;
	char path[PLACE_TEXT_MAX] _unfilled_, name[NAME_MAX + 2] _unfilled_;
	bool old;
	int r;

	if (call_read_path(c, address, path) < 0 || call_resolve(c, dirfd, path, 0, &p) < 0)
		return ANSWER_CONTINUE;
	if (!p.root) {
		if (exists(&p))
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

static int do_rename(struct call *c, int fromfd, uint64_t from_at, int tofd, uint64_t to_at,
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
	if (flags & RENAME_WHITEOUT)
		return -EINVAL; /* overlay file systems only; makes a device node */
	return rename_guarded(c, &from, &to, flags);
}

static int answer(struct call *c)
{
	const uint64_t *a = c->args;

	switch (c->n->data.nr) {
#ifdef SYS_open
	case SYS_open:
		return call_open(c, AT_FDCWD, a[0], (struct opening){ (int)a[1], (mode_t)a[2], 0 });
	case SYS_creat:
		return call_open(c, AT_FDCWD, a[0],
				 (struct opening){ O_CREAT | O_WRONLY | O_TRUNC, (mode_t)a[1], 0 });
	case SYS_mkdir:
		return do_mkdir(c, AT_FDCWD, a[0], (mode_t)a[1]);
	case SYS_mknod:
		return do_mknod(c, AT_FDCWD, a[0], (mode_t)a[1], a[2]);
	case SYS_symlink:
		return do_symlink(c, a[0], AT_FDCWD, a[1]);
	case SYS_link:
		return do_link(c, AT_FDCWD, a[0], AT_FDCWD, a[1], 0);
	case SYS_rename:
		return do_rename(c, AT_FDCWD, a[0], AT_FDCWD, a[1], 0);
	case SYS_rmdir:
		return do_rmdir(c, AT_FDCWD, a[0]);
#endif
#ifdef SYS_renameat
	case SYS_renameat:
		return do_rename(c, (int)a[0], a[1], (int)a[2], a[3], 0);
#endif
	case SYS_openat:
		return call_open(c, (int)a[0], a[1],
				 (struct opening){ (int)a[2], (mode_t)a[3], 0 });
	case SYS_openat2:
		return call_openat2(c);
	case SYS_mkdirat:
		return do_mkdir(c, (int)a[0], a[1], (mode_t)a[2]);
	case SYS_mknodat:
		return do_mknod(c, (int)a[0], a[1], (mode_t)a[2], a[3]);
	case SYS_symlinkat:
		return do_symlink(c, a[0], (int)a[1], a[2]);
	case SYS_linkat:
		return do_link(c, (int)a[0], a[1], (int)a[2], a[3], (int)a[4]);
	case SYS_renameat2:
		return do_rename(c, (int)a[0], a[1], (int)a[2], a[3], (unsigned)a[4]);
	case SYS_truncate:
		return call_truncate(c);
	case SYS_bind:
		return do_bind(c);
	case SYS_connect:
		return broker_connect(c);
	case SYS_listen:
		return broker_listen(c);
	case SYS_umask:
		call_note_umask(c, (mode_t)a[0]);
		return ANSWER_CONTINUE;
	case SYS_unlinkat:
		if (a[2] & AT_REMOVEDIR)
			return do_rmdir(c, (int)a[0], a[1]);
		broker_watch(c);
		return ANSWER_CONTINUE;
	default:
		broker_watch(c);
		return ANSWER_CONTINUE;
	}
}

/* Nothing is decided about these, or not by what a directory holds: no lock is needed. */
static bool is_only_watched(const struct call *c)
{
	switch (c->n->data.nr) {
#ifdef SYS_unlink
	case SYS_unlink:
	case SYS_utime:
	case SYS_utimes:
#endif
	case SYS_utimensat:
	case SYS_connect:
	case SYS_listen:
	case SYS_umask:
	case SYS_execve:
		return true;
	case SYS_unlinkat:
		return !(c->args[2] & AT_REMOVEDIR);
	default:
		return false;
	}
}

/*
 * Could the call empty a file that it may not write to? Before ABI 3 Landlock does not know
 * that, so the kernel must not go on with a path that may have changed meanwhile.
 */
static bool may_cut(const struct call *c)
{
	int flags;

	switch (c->n->data.nr) {
	case SYS_truncate:
		return true;
#ifdef SYS_open
	case SYS_open:
		flags = (int)c->args[1];
		break;
#endif
	case SYS_openat:
		flags = (int)c->args[2];
		break;
	default:
		return false;
	}
	return (flags & O_TRUNC) && (flags & O_ACCMODE) != O_WRONLY &&
	       (flags & O_ACCMODE) != O_RDWR;
}

int broker_answer(struct call *c)
{
	bool judges = !is_only_watched(c) && !call_only_reads(c);
	int r = broker_change(c);

	if (r != ANSWER_OTHER)
		return r;
	if (call_is_direct(c))
		return ANSWER_CONTINUE;
	if (judges)
		lock_broker(c->b, LOCK_SH);
	r = c->b->plan->bare ? bare_answer(c) : ANSWER_OTHER;
	if (r == ANSWER_OTHER)
		r = answer(c);
	if (r == ANSWER_CONTINUE && c->b->plan->cut_unguarded && may_cut(c))
		r = -EACCES;
	if (judges)
		lock_broker(c->b, LOCK_UN);
	return r;
}
