/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The brokered calls, one function each. All have the same shape: copy the
 * arguments, resolve them to places, leave alone what is not guarded, ask the
 * guard, perform the call on (parent descriptor, name). Here are those that make
 * names; links and renames are in moves.c, opening is in open.c.
 *
 * Errors that the kernel would give before it looks at rights (bad pointer,
 * missing directory, loop) are left to the kernel by answering "continue", so that
 * the command sees exactly what it would see without us.
 */
#include "supervise/broker/calls.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/fd.h"
#include "supervise/broker/connect.h"
#include "supervise/broker/gitfiles.h"

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

bool place_is_special(const struct place *p)
{
	return guard_looks_around(p->path, p->name);
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

int call_prepare(struct call *c, int dirfd, uint64_t address, struct place *p,
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
		if (!place_exists(p))
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
	int r = call_prepare(c, dirfd, address, &p, VIOLATION_MAKE_DIRECTORY);

	if (r < 0)
		return r == ANSWER_CONTINUE && take_fresh(c, &p, mode) ? 0 : r;
	r = call_judge(c, &p, GUARD_MAKE_DIR, true, VIOLATION_MAKE_DIRECTORY, &why);
	if ((r < 0 || why.way != GUARD_PLAIN) && place_exists(&p))
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
	int r = call_prepare(c, dirfd, address, &p, VIOLATION_CREATE);

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

static int do_symlink(struct call *c, uint64_t target, int dirfd, uint64_t address)
{
	_cleanup_place_ struct place p = PLACE_INIT;
	struct guard_answer why;
	char text[PATH_MAX];
	int r;

	if (call_read_path(c, target, text) < 0)
		return ANSWER_CONTINUE;
	r = call_prepare(c, dirfd, address, &p, VIOLATION_CREATE);
	/* nobody else renames what is no link yet meanwhile */
	if (r == 0)
		r = call_alone(c, &p);
	if (r < 0)
		return r;
	if (p.slash)
		return ANSWER_CONTINUE;
	r = call_ask(c, &p, GUARD_MAKE_OTHER, true, VIOLATION_CREATE, &why);
	if (r == 0)
		r = call_refuse_link(c, &p, text, VIOLATION_CREATE);
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
		return call_link(c, AT_FDCWD, a[0], AT_FDCWD, a[1], 0);
	case SYS_rename:
		return call_rename(c, AT_FDCWD, a[0], AT_FDCWD, a[1], 0);
	case SYS_rmdir:
		return call_rmdir(c, AT_FDCWD, a[0]);
#endif
#ifdef SYS_renameat
	case SYS_renameat:
		return call_rename(c, (int)a[0], a[1], (int)a[2], a[3], 0);
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
		return call_link(c, (int)a[0], a[1], (int)a[2], a[3], (int)a[4]);
	case SYS_renameat2:
		return call_rename(c, (int)a[0], a[1], (int)a[2], a[3], (unsigned)a[4]);
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
			return call_rmdir(c, (int)a[0], a[1]);
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

bool call_may_make(const struct call *c)
{
	switch (c->n->data.nr) {
#ifdef SYS_open
	case SYS_open:
		return c->args[1] & O_CREAT;
	case SYS_creat:
	case SYS_mkdir:
	case SYS_mknod:
	case SYS_symlink:
#endif
	case SYS_openat2:
	case SYS_mkdirat:
	case SYS_mknodat:
	case SYS_symlinkat:
		return true;
	case SYS_openat:
		return c->args[2] & O_CREAT;
	default:
		return false;
	}
}

/*
 * Would the kernel make a set-uid or set-gid file? What we make has neither; where we make nothing,
 * nobody does. (The mode of openat2() could change after a look: in directories that are not guarded
 * it makes what it is told. The bits go with the first byte that gets into the file.)
 */
static bool makes_special(const struct call *c)
{
	uint64_t flags, mode;

	switch (c->n->data.nr) {
#ifdef SYS_open
	case SYS_open:
		flags = c->args[1];
		mode = c->args[2];
		break;
	case SYS_creat:
		flags = O_CREAT;
		mode = c->args[1];
		break;
#endif
	case SYS_openat:
		flags = c->args[2];
		mode = c->args[3];
		break;
	default:
		return false;
	}
	return (flags & (O_CREAT | (O_TMPFILE & ~O_DIRECTORY))) && (mode & (S_ISUID | S_ISGID));
}

int broker_answer(struct call *c)
{
	bool judges = !is_only_watched(c) && !call_only_reads(c), special = makes_special(c);
	int r = broker_change(c);

	if (r != ANSWER_OTHER)
		return r;
	if (!special && call_is_direct(c))
		return ANSWER_CONTINUE;
	if (judges)
		lock_broker(c->b, LOCK_SH);
	r = c->b->plan->bare ? bare_answer(c) : ANSWER_OTHER;
	if (r == ANSWER_OTHER)
		r = answer(c);
	if (r == ANSWER_CONTINUE && c->b->plan->cut_unguarded && may_cut(c))
		r = -EACCES;
	if (r == ANSWER_CONTINUE && special)
		r = -EPERM;
	if (judges)
		lock_broker(c->b, LOCK_UN);
	call_send_deferred(c);
	return r;
}
