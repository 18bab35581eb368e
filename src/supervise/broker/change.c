/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Modes, owners, attributes and times of files. Landlock does not know them, and read-only
 * mounts only hold what is reached by the sandbox's own mounts: a descriptor that came from outside
 * (standard input: a file of the caller's, the terminal, /dev/null) is on a mount of the host's.
 * So these calls are performed here, on an open descriptor of the file that was judged: the
 * number of a descriptor and the text of a path may mean another a moment later.
 *
 * Times alone are left to the kernel where there are mounts: tar sets them for every file, and
 * the worst that can be done to a file from outside is to make it look old.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <utime.h>

#include "base/fd.h"
#include "base/statx.h"
#include "base/sys.h"
#include "base/text.h"
#include "supervise/broker/internal.h"

#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452
#endif

#ifndef STATX_MNT_ID_UNIQUE
#define STATX_MNT_ID_UNIQUE 0x4000u
#endif

#define XATTR_VALUE_MAX 65536
#define XATTR_FLAGS (XATTR_CREATE | XATTR_REPLACE)

/* The file that a call is about. */
struct subject {
	int file; /* O_PATH, or a copy of the command's own */
	bool by_number; /* one of the command's descriptors, not a path */
};

#define _cleanup_subject_ __attribute__((cleanup(subject_done)))

static void subject_done(struct subject *s)
{
	fd_close(s->file);
}

/* A path that was resolved, as a place to speak of. */
static bool place_of(const struct broker *b, const char *path, struct place *ret)
{
	const char *slash = strrchr(path, '/');
	size_t n = slash ? (size_t)(slash - path) : 0;

	*ret = (struct place)PLACE_INIT;
	if (!slash || n >= sizeof(ret->path) || strlen(slash + 1) >= sizeof(ret->name))
		return false;
	memcpy(ret->path, path, n);
	text_copy(ret->name, sizeof(ret->name), slash + 1);
	if (n == 0)
		text_copy(ret->path, sizeof(ret->path), "/");
	ret->root = guarded_root(b, path, &ret->relayed);
	return true;
}

/*
 * Is it on a mount of the sandbox's that was met before? Only where mounts have numbers that are
 * never used again (Linux 6.8): one that is the sandbox's once is so for ever.
 */
static bool is_on_known_mount(const struct broker *b, int file, struct statx *ret)
{
	const struct own_mounts *own = &b->own_mounts;

	if (own->n == 0 ||
	    statx(file, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE | STATX_MNT_ID_UNIQUE,
		  ret) < 0 ||
	    !(ret->stx_mask & STATX_MNT_ID_UNIQUE))
		return false;
	for (size_t i = 0; i < own->n; i++) {
		if (own->id[i] == ret->stx_mnt_id)
			return true;
	}
	return false;
}

static void note_mount(struct broker *b, const struct statx *st)
{
	struct own_mounts *own = &b->own_mounts;

	if ((st->stx_mask & STATX_MNT_ID_UNIQUE) && !b->plan->bare && own->n < OWN_MOUNTS_MAX)
		own->id[own->n++] = st->stx_mnt_id;
}

bool file_is_foreign(struct broker *b, int file, const char *path)
{
	const unsigned want = STATX_MNT_ID | STATX_MNT_ID_UNIQUE;
	_cleanup_fd_ int here = sys_openat2(b->root, path, O_PATH | O_NOFOLLOW | O_CLOEXEC, 0,
					    SYS_RESOLVE_NO_SYMLINKS);
	struct statx theirs, ours;

	if (here < 0 || statx(file, "", AT_EMPTY_PATH, want, &theirs) < 0 ||
	    statx(here, "", AT_EMPTY_PATH, want, &ours) < 0 || ours.stx_mnt_id != theirs.stx_mnt_id)
		return true;
	note_mount(b, &ours);
	return false;
}

/* May it be changed? What has no name any more is nobody else's. */
static int judge(const struct call *c, const struct subject *s)
{
	struct broker *b = c->b;
	char path[PATH_MAX];
	struct place p;
	struct statx known;
	struct stat st;
	int r = 0;

	recent_forget(b); /* it may be a directory */
	if (!b->plan->bare && (!s->by_number || is_on_known_mount(b, s->file, &known)))
		return 0; /* the mounts decide */
	if (fstat(s->file, &st) < 0)
		return -errno;
	if (fd_path(b, s->file, path) < 0 || st.st_nlink == 0)
		return 0; /* a pipe, a socket; removed */
	if (b->plan->bare)
		r = bare_judge_change(b, path);
	else if (file_is_foreign(b, s->file, path))
		r = -EACCES;
	if (r < 0 && place_of(b, path, &p))
		call_report_outside(c, VIOLATION_MODE, &p);
	return r;
}

/* Tell what the kernel refused, and for `learn` what it let happen. */
static int tell(const struct call *c, const struct subject *s, int r)
{
	bool refused = r == -EROFS || r == -EACCES || r == -EPERM;
	char path[PATH_MAX];
	struct place p;

	if ((!refused && !(r == 0 && c->b->learns)) || fd_path(c->b, s->file, path) < 0 ||
	    !place_of(c->b, path, &p))
		return r;
	if (refused)
		call_report_outside(c, VIOLATION_MODE, &p);
	else
		call_note_used(c, &p);
	return r;
}

static int open_number(const struct call *c, int number, struct subject *ret)
{
	ret->by_number = true;
	ret->file = call_open_fd(c, number);
	return ret->file < 0 ? ret->file : 0;
}

static int open_subject(const struct call *c, int dirfd, uint64_t address, int flags,
			struct subject *ret)
{
	_cleanup_fd_ int base = -1;
	char path[PATH_MAX];
	int number, r = call_read_path(c, address, path);

	if (r < 0)
		return r == -EFAULT || r == -ENAMETOOLONG ? r : -EACCES;
	if (!*path && !(flags & AT_EMPTY_PATH))
		return -ENOENT;
	if (!*path && dirfd != AT_FDCWD)
		return open_number(c, dirfd, ret);
	/* how a C library changes a file that it has open */
	number = flags & AT_SYMLINK_NOFOLLOW ? -1 : call_magic_fd(c, path);
	if (number >= 0)
		return open_number(c, number, ret);
	base = call_open_base(c, dirfd, path);
	if (base < 0)
		return base;
	r = sys_openat2(base, *path ? path : ".",
			O_PATH | O_CLOEXEC | (flags & AT_SYMLINK_NOFOLLOW ? O_NOFOLLOW : 0), 0,
			SYS_RESOLVE_NO_MAGICLINKS);
	ret->file = r;
	return r < 0 ? r : 0;
}

/* The name of our descriptor below our own /proc. */
struct own_name {
	char text[32];
};

static struct own_name own_name(int file)
{
	struct own_name n;

	(void)snprintf(n.text, sizeof(n.text), "self/fd/%d", file);
	return n;
}

static bool is_link(int file)
{
	struct stat st;

	return fstat(file, &st) == 0 && S_ISLNK(st.st_mode);
}

static int change_mode(const struct call *c, const struct subject *s, mode_t mode)
{
	if (is_link(s->file))
		return -EOPNOTSUPP;
	return fchmodat(c->b->proc, own_name(s->file).text, mode & 01777, 0) < 0 ? -errno : 0;
}

static int change_owner(const struct call *c, const struct subject *s, const uint64_t *ids)
{
	(void)c;
	return fchownat(s->file, "", (uid_t)ids[0], (gid_t)ids[1], AT_EMPTY_PATH) < 0 ? -errno : 0;
}

static int change_times(const struct call *c, const struct subject *s, const struct timespec *times)
{
	if (utimensat(s->file, "", times, AT_EMPTY_PATH) == 0)
		return 0;
	if (errno != EINVAL || is_link(s->file))
		return -errno;
	/* before Linux 5.8 an empty path is not known here */
	return utimensat(c->b->proc, own_name(s->file).text, times, 0) < 0 ? -errno : 0;
}

/* An attribute to set, or to remove: name, value, size, flags. */
static int change_attribute(const struct call *c, const struct subject *s, bool set)
{
	const uint64_t *a = c->args;
	_cleanup_free_ char *value = NULL;
	char name[PATH_MAX], path[48];
	int r;

	if (set && ((int)a[4] & ~XATTR_FLAGS))
		return -EINVAL;
	r = call_read_path(c, a[1], name);
	if (r == 0 && (!*name || strlen(name) > XATTR_NAME_MAX))
		r = -ERANGE;
	if (r < 0)
		return r == -ENAMETOOLONG ? -ERANGE : r;
	if (set && a[3] > XATTR_VALUE_MAX)
		return -E2BIG;
	if (is_link(s->file))
		return -EPERM; /* nothing but the kernel's own attributes */
	/* our own /proc has the same name in the sandbox's mounts, but not us in it */
	(void)snprintf(path, sizeof(path), "%s", own_name(s->file).text);
	value = malloc(set ? a[3] + 1 : 1);
	if (!value || fchdir(c->b->proc) < 0)
		return -ENOMEM;
	if (!set)
		return removexattr(path, name) < 0 ? -errno : 0;
	r = a[3] ? call_read(c, a[2], value, a[3]) : 0;
	if (r < 0)
		return r;
	return setxattr(path, name, value, a[3], (int)a[4]) < 0 ? -errno : 0;
}

/* utime() has seconds, utimes() and futimesat() microseconds, utimensat() nanoseconds. */
static int read_times(const struct call *c, uint64_t address, struct timespec *ret)
{
	struct utimbuf seconds;
	struct timeval micro[2];
	int r;

	switch (c->n->data.nr) {
#ifdef SYS_utime
	case SYS_utime:
		r = call_read(c, address, &seconds, sizeof(seconds));
		ret[0] = (struct timespec){ .tv_sec = seconds.actime };
		ret[1] = (struct timespec){ .tv_sec = seconds.modtime };
		return r;
	case SYS_utimes:
	case SYS_futimesat:
		r = call_read(c, address, micro, sizeof(micro));
		for (size_t i = 0; i < 2 && r == 0; i++) {
			if (micro[i].tv_usec < 0 || micro[i].tv_usec >= 1000000)
				return -EINVAL;
			ret[i] = (struct timespec){ .tv_sec = micro[i].tv_sec,
						    .tv_nsec = micro[i].tv_usec * 1000 };
		}
		return r;
#endif
	default:
		(void)seconds;
		(void)micro;
		return call_read(c, address, ret, 2 * sizeof(*ret));
	}
}

/* --- the calls ---------------------------------------------------------------------------- */

#define FLAGS_KNOWN (AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH)

static int call_mode(struct call *c, int dirfd, uint64_t address, uint64_t mode, int flags)
{
	_cleanup_subject_ struct subject s = { .file = -1 };
	int r = flags & ~FLAGS_KNOWN ? -EINVAL : open_subject(c, dirfd, address, flags, &s);

	if (r == 0)
		r = judge(c, &s);
	return r < 0 ? r : tell(c, &s, change_mode(c, &s, (mode_t)mode));
}

static int call_owner(struct call *c, int dirfd, uint64_t address, const uint64_t *ids, int flags)
{
	_cleanup_subject_ struct subject s = { .file = -1 };
	int r = flags & ~FLAGS_KNOWN ? -EINVAL : open_subject(c, dirfd, address, flags, &s);

	if (r == 0)
		r = judge(c, &s);
	return r < 0 ? r : tell(c, &s, change_owner(c, &s, ids));
}

static int call_attribute(struct call *c, bool set, int flags)
{
	_cleanup_subject_ struct subject s = { .file = -1 };
	int r = open_subject(c, AT_FDCWD, c->args[0], flags, &s);

	if (r == 0)
		r = judge(c, &s);
	return r < 0 ? r : tell(c, &s, change_attribute(c, &s, set));
}

static int call_times(struct call *c, int dirfd, uint64_t address, uint64_t times, int flags)
{
	_cleanup_subject_ struct subject s = { .file = -1 };
	struct timespec both[2];
	int r;

	if (!c->b->plan->bare)
		return ANSWER_OTHER;
	r = times ? read_times(c, times, both) : 0;
	if (r < 0)
		return r == -EFAULT || r == -EINVAL ? r : -EACCES;
	r = address ? open_subject(c, dirfd, address, flags, &s) : open_number(c, dirfd, &s);
	if (r == 0)
		r = judge(c, &s);
	return r < 0 ? r : tell(c, &s, change_times(c, &s, times ? both : NULL));
}

/* On our copy of the descriptor: the kernel refuses one that was opened with O_PATH. */
static int change_copy(const struct call *c, const struct subject *s)
{
	const uint64_t *a = c->args;
	int nr = c->n->data.nr;

	/* the kernel's own: a C library may help out where it refuses, by way of /proc */
	if (nr == SYS_fchmod)
		return syscall(SYS_fchmod, s->file, (mode_t)a[1] & 01777) < 0 ? -errno : 0;
	if (nr == SYS_fchown)
		return syscall(SYS_fchown, s->file, (uid_t)a[1], (gid_t)a[2]) < 0 ? -errno : 0;
	return change_attribute(c, s, nr == SYS_fsetxattr);
}

static int call_by_descriptor(struct call *c)
{
	_cleanup_subject_ struct subject s = { .file = call_take_fd(c, (int)c->args[0]),
					       .by_number = true };
	bool direct = c->n->data.nr == SYS_fchmod || c->n->data.nr == SYS_fchown;
	struct statx st;
	int r;

	if (s.file < 0)
		return s.file;
	if (direct && !c->b->plan->bare && is_on_known_mount(c->b, s.file, &st) &&
	    !S_ISDIR(st.stx_mode))
		return tell(c, &s, change_copy(c, &s));
	if (fcntl(s.file, F_GETFL) & O_PATH)
		return -EBADF;
	r = judge(c, &s);
	return r < 0 ? r : tell(c, &s, change_copy(c, &s));
}

static int answer_old(struct call *c)
{
#ifdef SYS_chmod
	const uint64_t *a = c->args;

	switch (c->n->data.nr) {
	case SYS_chmod:
		return call_mode(c, AT_FDCWD, a[0], a[1], 0);
	case SYS_chown:
		return call_owner(c, AT_FDCWD, a[0], a + 1, 0);
	case SYS_lchown:
		return call_owner(c, AT_FDCWD, a[0], a + 1, AT_SYMLINK_NOFOLLOW);
	case SYS_utime:
	case SYS_utimes:
		return call_times(c, AT_FDCWD, a[0], a[1], 0);
	case SYS_futimesat:
		return call_times(c, (int)a[0], a[1], a[2], 0);
	default:
		break;
	}
#else
	(void)c;
#endif
	return ANSWER_OTHER;
}

int broker_change(struct call *c)
{
	const uint64_t *a = c->args;

	switch (c->n->data.nr) {
	case SYS_fchmodat:
		return call_mode(c, (int)a[0], a[1], a[2], 0);
	case SYS_fchmodat2:
		return call_mode(c, (int)a[0], a[1], a[2], (int)a[3]);
	case SYS_fchownat:
		return call_owner(c, (int)a[0], a[1], a + 2, (int)a[4]);
	case SYS_utimensat:
		return call_times(c, (int)a[0], a[1], a[2], (int)a[3]);
	case SYS_setxattr:
		return call_attribute(c, true, 0);
	case SYS_lsetxattr:
		return call_attribute(c, true, AT_SYMLINK_NOFOLLOW);
	case SYS_removexattr:
		return call_attribute(c, false, 0);
	case SYS_lremovexattr:
		return call_attribute(c, false, AT_SYMLINK_NOFOLLOW);
	case SYS_fchmod:
	case SYS_fchown:
	case SYS_fsetxattr:
	case SYS_fremovexattr:
		return call_by_descriptor(c);
	default:
		return answer_old(c);
	}
}
