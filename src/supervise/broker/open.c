/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opening for writing: open, openat, openat2, creat, truncate. The file is
 * opened here, on (parent descriptor, name) without following a link, and the
 * descriptor is handed over. A final symlink is followed by hand, each
 * step asked about like the first.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/sys.h"
#include "base/text.h"
#include "supervise/broker/gitfiles.h"

#define SLOW_RETRY_US 5000
#define STATUS_MAX (1u << 16)
#define ERESTARTSYS 512 /* the kernel's own: programs never see it */

/* What openat2() knows; it refuses the rest, which open() ignores. */
#define OPEN_FLAGS                                                                                 \
	(O_ACCMODE | O_CREAT | O_EXCL | O_TRUNC | O_APPEND | O_NOFOLLOW | O_DIRECTORY | O_SYNC |   \
	 O_DSYNC | O_DIRECT | O_LARGEFILE | O_NOATIME | O_ASYNC | O_TMPFILE)
#define STATUS_FLAGS (O_APPEND | O_ASYNC | O_DIRECT | O_NOATIME | O_NONBLOCK)

#define RESOLVE_IN_ROOT 0x10
#define RESOLVE_BENEATH_OR_IN_ROOT 0x18
#define RESOLVE_CACHED 0x20
#define RESOLVE_KNOWN 0x3f

static bool is_missing(const struct place *p)
{
	return faccessat(p->parent, p->name, F_OK, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT;
}

/* A file that is new cannot be a pipe: no need to add O_NONBLOCK, nor to take it back. */
static bool makes_file(int flags)
{
	return (flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL);
}

static int open_place(const struct place *p, const struct opening *o)
{
	mode_t mode = o->flags & (O_CREAT | (O_TMPFILE & ~O_DIRECTORY)) ? o->mode & 01777
									: 0; /* never setuid */

	return sys_openat2(p->parent, p->name,
			   (uint64_t)((unsigned)o->flags & (unsigned)OPEN_FLAGS) | O_CLOEXEC |
				   O_NOCTTY |
				   (makes_file(o->flags) ? o->flags & O_NONBLOCK : O_NONBLOCK),
			   mode, SYS_RESOLVE_NO_SYMLINKS);
}

/* An open file again, with other rights: the very inode, whatever its name is now. */
static int open_again(const struct broker *b, int file, int flags)
{
	char link[32];
	int fd;

	(void)snprintf(link, sizeof(link), "self/fd/%d", file);
	fd = openat(b->proc, link,
		    (flags & OPEN_FLAGS & ~(O_CREAT | O_EXCL | O_NOFOLLOW)) | O_CLOEXEC | O_NOCTTY |
			    O_NONBLOCK);
	return fd < 0 ? -errno : fd;
}

/* Give an opened file the flags that the caller asked for. */
static void set_flags(int fd, int flags)
{
	if (!makes_file(flags) && !(flags & O_NONBLOCK))
		(void)fcntl(fd, F_SETFL, flags & STATUS_FLAGS);
}

static int deliver(const struct call *c, int fd, int flags)
{
	if (fd < 0)
		return fd;
	set_flags(fd, flags);
	return call_hand_over(c, fd, (flags & O_CLOEXEC) != 0);
}

/*
 * A pipe without a reader, a lease: somebody waits, but not this thread. It waits for
 * the file that was judged, by descriptor: under its name another may stand by then.
 */
struct slow_open {
	struct broker *b;
	struct seccomp_notif n;
	int file, flags;
};

/* A set of signals in /proc/TID/status: 16 hexadecimal digits. */
static uint64_t signals_of(const char *status, const char *field)
{
	const char *line = strstr(status, field);
	uint64_t set = 0;

	if (!line)
		return 0;
	line += strlen(field);
	for (line += *line == '\t'; ascii_hex(*line) >= 0; line++)
		set = set << 4 | (uint64_t)ascii_hex(*line);
	return set;
}

/*
 * Has the caller a signal to handle? While it waits for us the kernel only lets it be killed, and not
 * even that once another signal is waiting. 0, or what such a call is answered with: as the kernel does
 * it, so that it may be made again behind the handler; where another thread could take the
 * signal meanwhile, nobody would make it again.
 */
static int interruption(const struct call *c)
{
	_cleanup_free_ char *status = NULL;
	char path[32];
	uint64_t waiting;

	(void)snprintf(path, sizeof(path), "%d/status", c->tid);
	if (fd_read_file(c->b->proc, path, STATUS_MAX, &status, NULL) < 0)
		return 0;
	waiting = signals_of(status, "\nSigPnd:") | signals_of(status, "\nShdPnd:");
	if (!(waiting & ~signals_of(status, "\nSigBlk:")))
		return 0;
	return strstr(status, "\nThreads:\t1\n") ? -ERESTARTSYS : -EINTR;
}

static void *slow_open_main(void *arg)
{
	struct slow_open *s = arg;
	struct call c = { .b = s->b, .n = &s->n, .tid = (pid_t)s->n.pid };
	struct seccomp_notif_resp resp = { .id = s->n.id };
	int fd = -ENXIO, r;

	while ((fd == -ENXIO || fd == -EAGAIN) && call_is_valid(&c)) {
		(void)usleep(SLOW_RETRY_US);
		fd = open_again(s->b, s->file, s->flags);
		r = fd == -ENXIO || fd == -EAGAIN ? interruption(&c) : 0;
		if (r < 0)
			fd = r;
	}
	r = fd;
	if (fd >= 0) {
		set_flags(fd, s->flags);
		r = call_send_fd(&c, fd, (s->flags & O_CLOEXEC) != 0);
	}
	fd_close(fd);
	resp.error = r;
	/* ENOENT: the caller was killed meanwhile */
	if (r != ANSWER_SENT)
		(void)ioctl(s->b->listener, SECCOMP_IOCTL_NOTIF_SEND, &resp);
	fd_close(s->file);
	free(s);
	return NULL;
}

/* Does opening this wait, where the caller did not ask for the opposite? */
static bool is_slow(int r, int file, int flags)
{
	struct stat st;

	if ((r != -ENXIO && r != -EAGAIN) || (flags & O_NONBLOCK) || fstat(file, &st) < 0)
		return false;
	return r == -EAGAIN || S_ISFIFO(st.st_mode); /* ENXIO of a socket is for good */
}

static int open_slowly(const struct call *c, int *file, int flags)
{
	struct slow_open *s = calloc(1, sizeof(*s));
	pthread_t thread;

	if (!s)
		return -ENOMEM;
	*s = (struct slow_open){ c->b, *c->n, *file, flags };
	if (!domain_is_entered(c))
		handover_leave(c->b); /* it would stay where we do */
	if (pthread_create(&thread, NULL, slow_open_main, s) != 0) {
		free(s);
		return -EAGAIN;
	}
	*file = -1;
	(void)pthread_detach(thread);
	return ANSWER_SENT;
}

bool place_is_file(const struct place *p, const struct stat *st)
{
	struct stat here;

	return fstatat(p->parent, p->name, &here, AT_SYMLINK_NOFOLLOW) == 0 &&
	       here.st_dev == st->st_dev && here.st_ino == st->st_ino;
}

/*
 * A descriptor of the command by its magic name: judged by where the file lies now, if it is what lies
 * there in the sandbox. It may have been opened outside (what stdin was given), where that path
 * means something else: then it is opened by that name. Or its name was removed, and it has
 * another one: which one, and whether that is protected, nobody knows.
 */
static int open_magic(struct call *c, int number, const struct opening *o, int *ret_slow)
{
	_cleanup_place_ struct place p = PLACE_INIT;
	_cleanup_fd_ int file = call_open_fd(c, number);
	struct guard_answer why;
	char path[PATH_MAX];
	const char *root;
	struct stat st;
	bool relayed, foreign;
	int r;

	if (file < 0 || fd_path(c->b, file, path) < 0 || fstat(file, &st) < 0 ||
	    (o->flags & (O_NOFOLLOW | O_EXCL)))
		return ANSWER_CONTINUE;
	root = guarded_root(c->b, path, &relayed);
	if (!root)
		return ANSWER_CONTINUE;
	foreign = !c->b->plan->bare && file_is_foreign(c->b, file, st.st_nlink > 0 ? path : root);
	if (foreign && st.st_nlink == 0)
		return ANSWER_CONTINUE;
	if (st.st_nlink > 0) { /* an unlinked file has no name to guard */
		r = place_resolve(c->b, c->b->root, path, 0, &p);
		if (r < 0 || !p.root || !place_is_file(&p, &st))
			return ANSWER_CONTINUE;
		r = call_ask(c, &p, GUARD_WRITE, false, VIOLATION_WRITE, &why);
		if (r < 0)
			return r;
	}
	r = foreign ? open_place(&p, &(struct opening){ o->flags & ~O_CREAT, 0, 0 })
		    : open_again(c->b, file, o->flags);
	if (r == -ENXIO || r == -EAGAIN) {
		*ret_slow = file;
		file = -1;
	}
	return r;
}

/*
 * What the kernel answers where such a call changes nothing: a descriptor, or why not; ANSWER_OTHER
 * when it would change something, or might (a link).
 */
static int open_unchanged(const struct place *p, const struct opening *o)
{
	struct opening reading = *o;
	struct stat st;

	reading.flags &= ~O_CREAT;
	if (fstatat(p->parent, p->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return ANSWER_OTHER;
	if ((o->flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL))
		return -EEXIST;
	if (S_ISDIR(st.st_mode))
		return -EISDIR;
	if (!S_ISREG(st.st_mode) || (o->flags & (O_ACCMODE | O_TRUNC)) != O_RDONLY)
		return ANSWER_OTHER;
	return open_place(p, &reading);
}

/* The place p, -ELOOP when it is a link: a descriptor, or an answer. */
static int open_asked(struct call *c, struct place *p, const struct opening *o, int *ret_slow)
{
	bool creates = (o->flags & O_CREAT) != 0;
	enum violation_kind kind = creates ? VIOLATION_CREATE : VIOLATION_WRITE;
	struct guard_answer why;
	int r, unchanged;

	if (place_is_special(p) && call_alone(c, p) < 0)
		return ANSWER_CONTINUE;
	r = call_judge(c, p, GUARD_WRITE, false, kind, &why);
	if (r < 0 && !creates && is_missing(p))
		return -ENOENT;
	unchanged = r < 0 ? open_unchanged(p, o) : ANSWER_OTHER;
	if (unchanged != ANSWER_OTHER)
		return unchanged;
	if (r < 0)
		r = call_plead(c, p, kind, &why);
	if (r < 0)
		return r;
	if (why.way == GUARD_COMMONDIR)
		return give_commondir(c, p, o->mode);
	call_note_before(c, p);
	if (creates)
		call_adopt_umask(c);
	r = open_place(p, o);
	if (r >= 0)
		call_note_later(c, p, &why);
	if (r == -ENXIO || r == -EAGAIN)
		*ret_slow = sys_openat2(p->parent, p->name, O_PATH | O_CLOEXEC, 0,
					SYS_RESOLVE_NO_SYMLINKS);
	return r;
}

/* Guard and open, following a final symlink by hand. A descriptor, or an answer. */
static int open_guarded(struct call *c, struct place *p, const struct opening *o, int *ret_slow)
{
	bool follow =
		!(o->flags & O_NOFOLLOW) && (o->flags & (O_CREAT | O_EXCL)) != (O_CREAT | O_EXCL);

	for (unsigned hops = 0; hops < SYMLINK_HOPS_MAX; hops++) {
		bool guarded = p->root != NULL;
		char text[PATH_MAX] _unfilled_;
		int r = guarded && !p->slash ? open_asked(c, p, o, ret_slow) : ANSWER_CONTINUE;

		if (guarded && (r != -ELOOP || !follow))
			return r;
		/* the kernel's own, but for a link that may lead to what is guarded */
		if (p->slash || !follow || place_read_link(p, text) < 0) {
			if (guarded)
				continue; /* no longer a link */
			call_report_outside(
				c, o->flags & O_CREAT ? VIOLATION_CREATE : VIOLATION_WRITE, p);
			call_note_direct(c, p);
			return ANSWER_CONTINUE;
		}
		if (o->resolve & SYS_RESOLVE_NO_SYMLINKS)
			return -ELOOP;
		if (o->resolve & RESOLVE_BENEATH_OR_IN_ROOT)
			return ANSWER_CONTINUE; /* a walk that only the kernel can take */
		r = call_magic_fd(c, text);
		if (r >= 0)
			return open_magic(c, r, o, ret_slow);
		r = place_resolve(c->b, p->parent, text, o->resolve, p);
		if (r < 0)
			return guarded ? r : ANSWER_CONTINUE;
	}
	return -ELOOP;
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
			  o->resolve | SYS_RESOLVE_NO_MAGICLINKS);
	if (dir < 0 || fd_path(c->b, dir, real) < 0 || !guarded_root(c->b, real, &relayed))
		return ANSWER_CONTINUE;
	call_adopt_umask(c);
	fd = sys_openat2(dir, ".",
			 (uint64_t)((unsigned)o->flags & (unsigned)OPEN_FLAGS) | O_CLOEXEC,
			 o->mode & 01777, SYS_RESOLVE_NO_SYMLINKS);
	return deliver(c, fd, o->flags | O_NONBLOCK); /* nothing to take back */
}

bool call_only_reads(const struct call *c)
{
	switch (c->n->data.nr) {
#ifdef SYS_open
	case SYS_open:
		return !(c->args[1] & OPEN_WRITE_INTENT);
#endif
	case SYS_openat:
		return !(c->args[2] & OPEN_WRITE_INTENT);
	default:
		return false;
	}
}

/* With RESOLVE_IN_ROOT "/" is the directory that was given, not ours. */
static void drop_root(char *path)
{
	size_t n = strspn(path, "/");

	memmove(path, path + n, strlen(path + n) + 1);
	if (n > 0 && !*path)
		memcpy(path, ".", 2);
}

int call_open(struct call *c, int dirfd, uint64_t address, struct opening o)
{
	_cleanup_place_ struct place p = PLACE_INIT;
	_cleanup_fd_ int fd = -1, slow = -1;
	char path[PATH_MAX] _unfilled_;
	int r;

	if (!(o.flags & OPEN_WRITE_INTENT)) {
		broker_watch(c); /* only sent here with --report-reads */
		return ANSWER_CONTINUE;
	}
	if ((o.flags & O_PATH) || call_read_path(c, address, path) < 0)
		return ANSWER_CONTINUE;
	if (o.resolve & RESOLVE_IN_ROOT)
		drop_root(path);
	if ((o.flags & O_TMPFILE) == O_TMPFILE)
		return open_unnamed(c, dirfd, path, &o);
	r = o.resolve ? -1 : call_magic_fd(c, path);
	if (r >= 0) {
		r = open_magic(c, r, &o, &slow);
	} else {
		r = call_resolve(c, dirfd, path, o.resolve, &p);
		if (r < 0)
			return call_unresolved(r, path);
		r = open_guarded(c, &p, &o, &slow);
	}
	if (slow >= 0 && is_slow(r, slow, o.flags))
		return open_slowly(c, &slow, o.flags);
	if (r < 0)
		return r;
	fd = r;
	return deliver(c, fd, o.flags);
}

int call_openat2(struct call *c)
{
	const uint64_t known = (uint64_t)OPEN_FLAGS | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
	uint64_t how[3]; /* flags, mode, resolve */

	if (c->args[3] != sizeof(how) || call_read(c, c->args[2], how, sizeof(how)) < 0)
		return ANSWER_CONTINUE;
	if (!(how[0] & OPEN_WRITE_INTENT)) {
		broker_watch(c);
		return ANSWER_CONTINUE;
	}
	/* what the kernel refuses at once: let it */
	if ((how[0] & ~known) || (how[1] & ~(uint64_t)07777) ||
	    (how[2] & ~(uint64_t)RESOLVE_KNOWN) ||
	    (how[1] && !(how[0] & (O_CREAT | (O_TMPFILE & ~O_DIRECTORY)))))
		return ANSWER_CONTINUE;
	how[2] &= ~(uint64_t)RESOLVE_CACHED; /* an optimisation; we may take the slow way */
	return call_open(c, (int)c->args[0], c->args[1],
			 (struct opening){ (int)how[0], (mode_t)how[1], how[2] });
}

/* Where the kernel could be deceived about it (see may_cut()), we do it outside as well. */
static int open_to_cut(struct call *c, struct place *p, const struct opening *o, int *ret_slow)
{
	const struct plan *plan = c->b->plan;
	char path[PLACE_TEXT_MAX];
	struct stat st;
	int r = open_guarded(c, p, o, ret_slow);

	if (r != ANSWER_CONTINUE || !plan->cut_unguarded)
		return r;
	if (p->slash)
		return fstatat(p->parent, p->name, &st, 0) < 0 ? -errno
		       : S_ISDIR(st.st_mode)                   ? -EISDIR
							       : -ENOTDIR;
	place_text(p, path);
	for (size_t i = 0; i < plan->n_writable; i++) {
		if (path_within(path, plan->writable[i]))
			return open_place(p, o);
	}
	return r;
}

int call_truncate(struct call *c)
{
	_cleanup_place_ struct place p = PLACE_INIT;
	struct opening o = { .flags = O_WRONLY };
	_cleanup_fd_ int fd = -1, slow = -1;
	char path[PATH_MAX];
	struct stat st;
	int r;

	if ((int64_t)c->args[1] < 0)
		return -EINVAL;
	r = call_read_path(c, c->args[0], path);
	if (r == 0)
		r = call_resolve(c, AT_FDCWD, path, 0, &p);
	if (r < 0)
		return c->b->plan->cut_unguarded ? r : ANSWER_CONTINUE;
	r = open_to_cut(c, &p, &o, &slow);
	if (r == -ENXIO)
		return -EINVAL; /* a pipe, a socket */
	if (r < 0)
		return r;
	fd = r;
	if (fstat(fd, &st) == 0 && !S_ISREG(st.st_mode))
		return -EINVAL;
	return ftruncate(fd, (off_t)c->args[1]) < 0 ? -errno : 0;
}
