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
#include <pthread.h>
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
#include "supervise/broker/internal.h"

#ifndef RENAME_EXCHANGE
#define RENAME_EXCHANGE 2
#define RENAME_WHITEOUT 4
#endif

#define SYMLINK_HOPS_MAX 40
#define SLOW_RETRY_US 5000

/* What openat2() knows; it refuses the rest, which open() ignores. */
#define OPEN_FLAGS                                                                                 \
	(O_ACCMODE | O_CREAT | O_EXCL | O_TRUNC | O_APPEND | O_NOFOLLOW | O_DIRECTORY | O_SYNC |   \
	 O_DSYNC | O_DIRECT | O_LARGEFILE | O_NOATIME | O_ASYNC | O_TMPFILE)
#define STATUS_FLAGS (O_APPEND | O_ASYNC | O_DIRECT | O_NOATIME | O_NONBLOCK)

/*
 * Decisions that depend on what a directory holds are made and acted on under a lock that all
 * sandboxes of this user share: another one must not change the content between.
 */
static bool is_special(const struct place *p)
{
	static const char *const names[] = { "config",    "config.worktree", "hooks",
					     "commondir", "objects",         "refs" };

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		if (strcmp(p->name, names[i]) == 0)
			return true;
	}
	return strstr(p->path, "/hooks") != NULL;
}

static int lock_git(const struct broker *b, bool special)
{
	if (!special || b->lock < 0)
		return -1;
	while (flock(b->lock, LOCK_EX) < 0 && errno == EINTR)
		;
	return b->lock;
}

static void unlock_git(const int *lock)
{
	if (*lock >= 0)
		(void)flock(*lock, LOCK_UN);
}
#define _cleanup_lock_ __attribute__((cleanup(unlock_git)))

/* Ask about one place; a refusal is reported. */
static int ask(const struct call *c, const struct place *p, enum guard_op op, bool directory,
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
	char path[PLACE_TEXT_MAX];

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
	if (ret->allowed)
		return 0;
	place_text(p, path);
	call_report(c, kind, path, ret);
	return -EACCES;
}

/* Set the umask of the caller for a call that creates something. */
static void adopt_umask(struct call *c)
{
	(void)umask(call_umask(c));
}

/* ---- open ---- */

struct opening {
	int flags;
	mode_t mode;
};

static bool exists(const struct place *p)
{
	return faccessat(p->parent, p->name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static int open_place(const struct place *p, const struct opening *o)
{
	mode_t mode = o->flags & (O_CREAT | (O_TMPFILE & ~O_DIRECTORY)) ? o->mode & 07777 : 0;

	return sys_openat2(p->parent, p->name,
			   (uint64_t)((unsigned)o->flags & (unsigned)OPEN_FLAGS) | O_CLOEXEC |
				   O_NOCTTY | O_NONBLOCK,
			   mode, SYS_RESOLVE_NO_SYMLINKS);
}

/* Guard and open, following a final symlink by hand. A descriptor, or an answer. */
static int open_guarded(struct call *c, struct place *p, const struct opening *o)
{
	bool follow =
		!(o->flags & O_NOFOLLOW) && (o->flags & (O_CREAT | O_EXCL)) != (O_CREAT | O_EXCL);

	for (unsigned hops = 0; hops < SYMLINK_HOPS_MAX; hops++) {
		bool creates = (o->flags & O_CREAT) != 0;
		enum violation_kind kind = creates ? VIOLATION_CREATE : VIOLATION_WRITE;
		struct guard_answer why;
		int fd, r;

		if (!p->root) {
			call_report_outside(c, kind, p);
			return ANSWER_CONTINUE;
		}
		if (p->slash)
			return ANSWER_CONTINUE;
		{
			_cleanup_lock_ int lock = lock_git(c->b, is_special(p));

			if (!creates && !exists(p))
				return -ENOENT;
			r = ask(c, p, GUARD_WRITE, false, kind, &why);
			if (r < 0)
				return r;
			if (why.way == GUARD_COMMONDIR)
				return give_commondir(c, p, o->flags, o->mode);
			if (creates)
				adopt_umask(c);
			fd = open_place(p, o);
		}
		if (fd != -ELOOP || !follow)
			return fd;
		r = place_follow(c->b, p);
		if (r < 0)
			return r;
	}
	return -ELOOP;
}

/* A pipe without a reader, a lease: somebody waits, but not this thread. */
struct slow_open {
	struct broker *b;
	struct seccomp_notif n;
	struct place p;
	struct opening o;
};

static void finish_open(const struct call *c, int fd, int flags);

static void *slow_open_main(void *arg)
{
	struct slow_open *s = arg;
	struct call c = { .b = s->b, .n = &s->n, .tid = (pid_t)s->n.pid };
	int fd = -ENXIO;

	while ((fd == -ENXIO || fd == -EAGAIN) && call_is_valid(&c)) {
		(void)usleep(SLOW_RETRY_US);
		fd = open_place(&s->p, &s->o);
	}
	finish_open(&c, fd, s->o.flags);
	place_done(&s->p);
	free(s);
	return NULL;
}

static int open_slowly(const struct call *c, struct place *p, const struct opening *o)
{
	struct slow_open *s = calloc(1, sizeof(*s));
	pthread_t thread;

	if (!s)
		return -ENOMEM;
	s->b = c->b;
	s->n = *c->n;
	s->p = *p;
	p->parent = -1;
	s->o = *o;
	s->o.flags &= ~(O_CREAT | O_EXCL | O_TRUNC);
	if (pthread_create(&thread, NULL, slow_open_main, s) != 0) {
		place_done(&s->p);
		free(s);
		return -EAGAIN;
	}
	(void)pthread_detach(thread);
	return ANSWER_SENT;
}

static void send_answer(const struct call *c, int64_t value, int error, unsigned flags)
{
	struct seccomp_notif_resp resp = {
		.id = c->n->id, .val = value, .error = error, .flags = flags
	};

	/* ENOENT: the caller was killed meanwhile */
	(void)ioctl(c->b->listener, SECCOMP_IOCTL_NOTIF_SEND, &resp);
}

/* Hand an opened file over with the flags the caller asked for. */
static int deliver(const struct call *c, int fd, int flags)
{
	if (fd < 0)
		return fd;
	if (!(flags & O_NONBLOCK))
		(void)fcntl(fd, F_SETFL, flags & STATUS_FLAGS);
	return call_send_fd(c, fd, (flags & O_CLOEXEC) != 0);
}

static void finish_open(const struct call *c, int fd, int flags)
{
	int r = deliver(c, fd, flags);

	fd_close(fd);
	send_answer(c, r < 0 ? 0 : r, r < 0 ? r : 0, 0);
}

/* A descriptor of the command by its magic name: judged by where the file lies now. */
static int open_magic(struct call *c, int number, const struct opening *o)
{
	_cleanup_place_ struct place p = PLACE_INIT;
	_cleanup_fd_ int file = -1, fd = -1;
	struct guard_answer why;
	char path[PATH_MAX], link[48];
	struct stat st;
	bool relayed;
	int r;

	(void)snprintf(link, sizeof(link), "%d/fd/%d", c->tid, number);
	file = openat(c->b->proc, link, O_PATH | O_CLOEXEC);
	if (file < 0 || fd_path(c->b, file, path) < 0 || !guarded_root(c->b, path, &relayed) ||
	    fstat(file, &st) < 0)
		return ANSWER_CONTINUE;
	if (st.st_nlink > 0) { /* an unlinked file has no name to guard */
		r = place_resolve(c->b, c->b->root, path, &p);
		if (r < 0 || !p.root)
			return ANSWER_CONTINUE;
		r = ask(c, &p, GUARD_WRITE, false, VIOLATION_WRITE, &why);
		if (r < 0)
			return r;
	}
	(void)snprintf(link, sizeof(link), "self/fd/%d", file);
	fd = openat(c->b->proc, link,
		    (o->flags & OPEN_FLAGS & ~(O_CREAT | O_EXCL | O_NOFOLLOW)) | O_CLOEXEC |
			    O_NOCTTY | O_NONBLOCK);
	return fd < 0 ? -errno : deliver(c, fd, o->flags);
}

/* An unnamed file in a directory; the name comes with linkat(). */
static int open_unnamed(struct call *c, int dirfd, const char *path, const struct opening *o)
{
	_cleanup_fd_ int base = call_open_base(c, dirfd, path);
	_cleanup_fd_ int dir = -1, fd = -1;
	char real[PATH_MAX];
	bool relayed;

	if (base < 0)
		return ANSWER_CONTINUE;
	dir = sys_openat2(base, path, O_PATH | O_DIRECTORY | O_CLOEXEC, 0,
			  SYS_RESOLVE_NO_MAGICLINKS);
	if (dir < 0 || fd_path(c->b, dir, real) < 0 || !guarded_root(c->b, real, &relayed))
		return ANSWER_CONTINUE;
	adopt_umask(c);
	fd = sys_openat2(dir, ".",
			 (uint64_t)((unsigned)o->flags & (unsigned)OPEN_FLAGS) | O_CLOEXEC,
			 o->mode & 07777, SYS_RESOLVE_NO_SYMLINKS);
	return deliver(c, fd, o->flags | O_NONBLOCK); /* nothing to take back */
}

static int do_open(struct call *c, int dirfd, uint64_t address, struct opening o)
{
	_cleanup_place_ struct place p = PLACE_INIT;
	_cleanup_fd_ int fd = -1;
	char path[PATH_MAX];
	int number, r;

	if ((o.flags & O_PATH) || call_read_path(c, address, path) < 0)
		return ANSWER_CONTINUE;
	number = call_magic_fd(c, path);
	if (number >= 0)
		return open_magic(c, number, &o);
	if ((o.flags & O_TMPFILE) == O_TMPFILE)
		return open_unnamed(c, dirfd, path, &o);
	if (call_resolve(c, dirfd, path, &p) < 0)
		return ANSWER_CONTINUE;
	r = open_guarded(c, &p, &o);
	if ((r == -ENXIO || r == -EAGAIN) && !(o.flags & O_NONBLOCK))
		return open_slowly(c, &p, &o);
	if (r < 0)
		return r;
	fd = r;
	return deliver(c, fd, o.flags);
}

#define RESOLVE_UNUSUAL (~(uint64_t)(SYS_RESOLVE_NO_MAGICLINKS | SYS_RESOLVE_NO_SYMLINKS | 0x01))

static int do_openat2(struct call *c)
{
	uint64_t how[3];
	const uint64_t intent = O_ACCMODE | O_CREAT | O_TRUNC;

	if (c->args[3] < sizeof(how) || call_read(c, c->args[2], how, sizeof(how)) < 0)
		return ANSWER_CONTINUE;
	if (!(how[0] & intent) || (how[2] & RESOLVE_UNUSUAL))
		return ANSWER_CONTINUE; /* reading; or a walk that only the kernel can take */
	return do_open(c, (int)c->args[0], c->args[1],
		       (struct opening){ (int)how[0], (mode_t)how[1] });
}

/* ---- creating names ---- */

/* Resolve, leave alone or ask: 0 when the guarded call should be performed. */
static int prepare(struct call *c, int dirfd, uint64_t address, struct place *p,
		   enum violation_kind kind)
{
	char path[PATH_MAX];

	if (call_read_path(c, address, path) < 0 || call_resolve(c, dirfd, path, p) < 0)
		return ANSWER_CONTINUE;
	if (!p->root) {
		call_report_outside(c, kind, p);
		return ANSWER_CONTINUE;
	}
	return 0;
}

static int do_mkdir(struct call *c, int dirfd, uint64_t address, mode_t mode)
{
	_cleanup_place_ struct place p = PLACE_INIT;
	_cleanup_lock_ int lock = -1;
	struct guard_answer why;
	int r = prepare(c, dirfd, address, &p, VIOLATION_CREATE);

	if (r < 0)
		return r;
	if (exists(&p))
		return -EEXIST;
	lock = lock_git(c->b, is_special(&p));
	r = ask(c, &p, GUARD_MAKE_DIR, true, VIOLATION_CREATE, &why);
	if (r == 0 && why.way == GUARD_BIRTH)
		r = replace_config(c, &p);
	if (r < 0)
		return r;
	adopt_umask(c);
	if (mkdirat(p.parent, p.name, mode) < 0)
		return -errno;
	guard_note_directory(c->b->guard, p.parent, p.name);
	return 0;
}

static int do_mknod(struct call *c, int dirfd, uint64_t address, mode_t mode, uint64_t dev)
{
	_cleanup_place_ struct place p = PLACE_INIT;
	_cleanup_lock_ int lock = -1;
	struct guard_answer why;
	bool regular = (mode & S_IFMT) == S_IFREG || (mode & S_IFMT) == 0;
	int r = prepare(c, dirfd, address, &p, VIOLATION_CREATE);

	if (r < 0)
		return r;
	if (p.slash)
		return ANSWER_CONTINUE;
	lock = lock_git(c->b, is_special(&p));
	r = ask(c, &p, regular ? GUARD_WRITE : GUARD_MAKE_OTHER, false, VIOLATION_CREATE, &why);
	if (r < 0)
		return r;
	if (why.way != GUARD_PLAIN)
		return -EACCES;
	adopt_umask(c);
	return mknodat(p.parent, p.name, mode, (dev_t)dev) < 0 ? -errno : 0;
}

static int do_symlink(struct call *c, uint64_t target, int dirfd, uint64_t address)
{
	_cleanup_place_ struct place p = PLACE_INIT;
	_cleanup_lock_ int lock = -1;
	struct guard_answer why;
	char text[PATH_MAX];
	int r;

	if (call_read_path(c, target, text) < 0)
		return ANSWER_CONTINUE;
	r = prepare(c, dirfd, address, &p, VIOLATION_CREATE);
	if (r < 0)
		return r;
	if (p.slash)
		return ANSWER_CONTINUE;
	lock = lock_git(c->b, is_special(&p));
	r = ask(c, &p, GUARD_MAKE_OTHER, false, VIOLATION_CREATE, &why);
	if (r < 0)
		return r;
	return symlinkat(text, p.parent, p.name) < 0 ? -errno : 0;
}

static int do_bind(struct call *c)
{
	_cleanup_place_ struct place p = PLACE_INIT;
	_cleanup_fd_ int sock = -1;
	struct sockaddr_un addr = { 0 };
	struct guard_answer why;
	char path[sizeof(addr.sun_path) + 1] = { 0 };
	size_t len = c->args[2] < sizeof(addr) ? (size_t)c->args[2] : sizeof(addr);
	int r;

	if (len <= offsetof(struct sockaddr_un, sun_path) ||
	    call_read(c, c->args[1], &addr, len) < 0 || addr.sun_family != AF_UNIX ||
	    !addr.sun_path[0])
		return ANSWER_CONTINUE; /* other families and abstract names are no files */
	memcpy(path, addr.sun_path, sizeof(addr.sun_path));
	r = call_resolve(c, AT_FDCWD, path, &p);
	if (r < 0 || !p.root || p.slash)
		return ANSWER_CONTINUE;
	r = ask(c, &p, GUARD_MAKE_OTHER, false, VIOLATION_CREATE, &why);
	if (r < 0)
		return r;
	sock = call_take_fd(c, (int)c->args[0]);
	if (sock < 0)
		return sock;
	if (strlen(p.name) >= sizeof(addr.sun_path))
		return -ENAMETOOLONG;
	memset(addr.sun_path, 0, sizeof(addr.sun_path));
	memcpy(addr.sun_path, p.name, strlen(p.name));
	adopt_umask(c);
	if (fchdir(p.parent) < 0)
		return -errno;
	r = bind(sock, (const struct sockaddr *)&addr, sizeof(addr)) < 0 ? -errno : 0;
	if (fchdir(c->b->root) < 0)
		abort(); /* never go on from a place of the command's choice */
	return r;
}

/* ---- links and renames ---- */

/* linkat() of an open file: O_TMPFILE gets its name this way. */
static int link_open_file(struct call *c, int number, int dirfd, uint64_t address)
{
	_cleanup_place_ struct place to = PLACE_INIT;
	_cleanup_lock_ int lock = -1;
	_cleanup_fd_ int file = -1;
	struct guard_answer why;
	struct stat st, dir;
	char link[32];
	int r = prepare(c, dirfd, address, &to, VIOLATION_CREATE);

	if (r < 0)
		return r;
	file = call_take_fd(c, number);
	if (file < 0)
		return file;
	if (fstat(file, &st) < 0 || fstat(to.parent, &dir) < 0)
		return -errno;
	if (st.st_nlink > 0 && st.st_dev == dir.st_dev) {
		/* it has a name already: a second one must not free a guarded file */
		return -EPERM;
	}
	lock = lock_git(c->b, is_special(&to));
	r = ask(c, &to, GUARD_MAKE_OTHER, false, VIOLATION_CREATE, &why);
	if (r < 0)
		return r;
	(void)snprintf(link, sizeof(link), "self/fd/%d", file);
	return linkat(c->b->proc, link, to.parent, to.name, AT_SYMLINK_FOLLOW) < 0 ? -errno : 0;
}

static int do_link(struct call *c, int fromfd, uint64_t from_at, int tofd, uint64_t to_at,
		   int flags)
{
	_cleanup_place_ struct place from = PLACE_INIT, to = PLACE_INIT;
	_cleanup_lock_ int lock = -1;
	char from_path[PATH_MAX], to_path[PATH_MAX];
	struct guard_answer why;
	int number, r;

	if (call_read_path(c, from_at, from_path) < 0 || call_read_path(c, to_at, to_path) < 0)
		return ANSWER_CONTINUE;
	if ((flags & AT_EMPTY_PATH) && !from_path[0])
		return link_open_file(c, fromfd, tofd, to_at);
	number = flags & AT_SYMLINK_FOLLOW ? call_magic_fd(c, from_path) : -1;
	if (number >= 0)
		return link_open_file(c, number, tofd, to_at);
	if (call_resolve(c, fromfd, from_path, &from) < 0 ||
	    call_resolve(c, tofd, to_path, &to) < 0)
		return ANSWER_CONTINUE;
	for (unsigned i = 0; (flags & AT_SYMLINK_FOLLOW) && i < SYMLINK_HOPS_MAX; i++) {
		if (place_follow(c->b, &from) < 0)
			break; /* not a link (any more) */
	}
	if (!from.root && !to.root) {
		call_report_outside(c, VIOLATION_CREATE, &to);
		return ANSWER_CONTINUE;
	}
	if (from.slash || to.slash)
		return ANSWER_CONTINUE;
	lock = lock_git(c->b, is_special(&from) || is_special(&to));
	/* a second name for a protected file would be a way to write to it */
	r = from.root ? ask(c, &from, GUARD_WRITE, false, VIOLATION_WRITE, &why) : 0;
	if (r == 0 && to.root)
		r = ask(c, &to, GUARD_MAKE_OTHER, false, VIOLATION_CREATE, &why);
	if (r < 0)
		return r;
	return linkat(from.parent, from.name, to.parent, to.name, 0) < 0 ? -errno : 0;
}

static void with_slash(const struct place *p, char *ret, size_t size)
{
	(void)snprintf(ret, size, "%s%s", p->name, p->slash ? "/" : "");
}

static bool is_directory(const struct place *p)
{
	struct stat st;

	return fstatat(p->parent, p->name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

/* Both ends were resolved and at least one is guarded. */
static int rename_guarded(struct call *c, const struct place *from, const struct place *to,
			  unsigned flags)
{
	_cleanup_lock_ int lock = lock_git(c->b, is_special(from) || is_special(to));
	struct guard_answer why = { 0 };
	char old_name[NAME_MAX + 2], new_name[NAME_MAX + 2];
	bool directory = is_directory(from);
	int r = 0;

	/* a directory from an unguarded place may hold anything: let it be copied, name by name */
	if (directory && !from->root)
		return -EXDEV;
	if (from->root)
		r = ask(c, from, flags & RENAME_EXCHANGE ? GUARD_RENAME_TO : GUARD_RENAME_FROM,
			flags & RENAME_EXCHANGE ? is_directory(to) : directory, VIOLATION_RENAME,
			&why);
	if (r == 0 && flags & RENAME_EXCHANGE && why.way != GUARD_PLAIN)
		return -EACCES;
	if (r == 0 && to->root)
		r = ask(c, to, GUARD_RENAME_TO, directory, VIOLATION_RENAME, &why);
	if (r < 0)
		return r;
	if (why.way == GUARD_CONFIG) {
		r = flags ? -EACCES : install_config(c, from, to, &why);
		if (r == -EACCES) {
			char path[PLACE_TEXT_MAX];

			place_text(to, path);
			call_report(c, VIOLATION_RENAME, path, &why);
		}
		return r;
	}
	with_slash(from, old_name, sizeof(old_name));
	with_slash(to, new_name, sizeof(new_name));
	r = (int)syscall(SYS_renameat2, from->parent, old_name, to->parent, new_name, flags);
	return r < 0 ? -errno : 0;
}

static int do_rename(struct call *c, int fromfd, uint64_t from_at, int tofd, uint64_t to_at,
		     unsigned flags)
{
	_cleanup_place_ struct place from = PLACE_INIT, to = PLACE_INIT;
	char path[PATH_MAX];

	if (call_read_path(c, from_at, path) < 0 || call_resolve(c, fromfd, path, &from) < 0 ||
	    call_read_path(c, to_at, path) < 0 || call_resolve(c, tofd, path, &to) < 0)
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

static int do_truncate(struct call *c)
{
	_cleanup_place_ struct place p = PLACE_INIT;
	struct opening o = { .flags = O_WRONLY };
	_cleanup_fd_ int fd = -1;
	int r = prepare(c, AT_FDCWD, c->args[0], &p, VIOLATION_WRITE);

	if (r < 0)
		return r;
	if (is_directory(&p))
		return -EISDIR;
	r = open_guarded(c, &p, &o);
	if (r < 0)
		return r == -ENXIO ? -EINVAL : r;
	fd = r;
	return ftruncate(fd, (off_t)c->args[1]) < 0 ? -errno : 0;
}

int broker_answer(struct call *c)
{
	const uint64_t *a = c->args;

	switch (c->n->data.nr) {
#ifdef SYS_open
	case SYS_open:
		return do_open(c, AT_FDCWD, a[0], (struct opening){ (int)a[1], (mode_t)a[2] });
	case SYS_creat:
		return do_open(c, AT_FDCWD, a[0],
			       (struct opening){ O_CREAT | O_WRONLY | O_TRUNC, (mode_t)a[1] });
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
#endif
#ifdef SYS_renameat
	case SYS_renameat:
		return do_rename(c, (int)a[0], a[1], (int)a[2], a[3], 0);
#endif
	case SYS_openat:
		return do_open(c, (int)a[0], a[1], (struct opening){ (int)a[2], (mode_t)a[3] });
	case SYS_openat2:
		return do_openat2(c);
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
		return do_truncate(c);
	case SYS_bind:
		return do_bind(c);
	case SYS_umask:
		c->b->umask_used = true;
		return ANSWER_CONTINUE;
	default:
		return ANSWER_CONTINUE;
	}
}
