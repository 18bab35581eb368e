/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the broker does besides where there are no namespaces (sandbox/landlock): there no
 * read-only mount stands behind "continue", and Landlock does not know modes, owners, times,
 * attributes, connections and listening. So these calls are performed here, on an open
 * descriptor of what was judged, or refused; never left to the kernel.
 *
 * Removing names is performed too: a read-only mount does not protect what is protected.
 */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <utime.h>

#include "base/fd.h"
#include "base/sys.h"
#include "base/text.h"
#include "supervise/broker/connect.h"

#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452
#endif

#define XATTR_VALUE_MAX 65536

/* The last of the plan's places that holds `path`: how it is to look. */
static const struct mount_step *cover_of(const struct plan *plan, const char *path)
{
	const struct mount_step *cover = NULL;

	for (size_t i = 0; i < plan->n_mounts; i++) {
		if (path_within(path, plan->mounts[i].path))
			cover = &plan->mounts[i];
	}
	return cover;
}

static bool is_writable(const struct broker *b, const char *path)
{
	const struct plan *plan = b->plan;
	const struct mount_step *m = cover_of(plan, path);
	bool relayed;

	for (size_t i = 0; i < plan->n_writable; i++) {
		if (path_within(path, plan->writable[i]))
			return true;
	}
	return guarded_root(b, path, &relayed) && m &&
	       (m->kind == MOUNT_RW || m->kind == MOUNT_PIN);
}

bool bare_is_read_only(const struct broker *b, const char *path)
{
	const struct mount_step *m = b->plan->bare ? cover_of(b->plan, path) : NULL;

	return m && m->kind == MOUNT_RO;
}

bool bare_is_apart(const struct broker *b, const char *one, const char *other)
{
	return b->plan->bare && cover_of(b->plan, one) != cover_of(b->plan, other);
}

bool bare_is_kept(const struct broker *b, const char *path)
{
	const struct plan *plan = b->plan;

	if (!plan->bare)
		return false; /* the mounts do it */
	for (size_t i = 0; i < plan->n_mounts; i++) {
		/* what holds something else would take it along */
		if (path_within(plan->mounts[i].path, path))
			return true;
	}
	return bare_is_read_only(b, path);
}

static void report_change(const struct call *c, const char *path)
{
	struct place p = { .parent = -1 };
	const char *slash = strrchr(path, '/');
	size_t n = (size_t)(slash - path);

	if (n >= sizeof(p.path) || strlen(slash + 1) >= sizeof(p.name))
		return;
	memcpy(p.path, path, n);
	text_copy(p.name, sizeof(p.name), slash + 1);
	if (n == 0)
		text_copy(p.path, sizeof(p.path), "/");
	call_report_outside(c, VIOLATION_MODE, &p);
}

/* May what is open as `file` be changed? What has no name any more is nobody else's. */
static int judge(const struct call *c, int file)
{
	char path[PATH_MAX];
	struct stat st;

	if (fstat(file, &st) < 0)
		return -errno;
	if (fd_path(c->b, file, path) < 0 || st.st_nlink == 0)
		return 0;
	if (is_writable(c->b, path))
		return 0;
	report_change(c, path);
	return -EACCES;
}

/* What a call is about, open with O_PATH: a descriptor of ours, or -errno. */
static int open_target(const struct call *c, int dirfd, uint64_t address, int flags)
{
	_cleanup_fd_ int base = -1;
	char path[PATH_MAX];
	int number, r = call_read_path(c, address, path);

	if (r < 0)
		return r == -EFAULT || r == -ENAMETOOLONG ? r : -EACCES;
	if (!*path)
		return flags & AT_EMPTY_PATH ? call_open_fd(c, dirfd) : -ENOENT;
	/* how a C library changes a file that it has open */
	number = flags & AT_SYMLINK_NOFOLLOW ? -1 : call_magic_fd(c, path);
	if (number >= 0)
		return call_open_fd(c, number);
	base = call_open_base(c, dirfd, path);
	if (base < 0)
		return base;
	r = sys_openat2(base, path,
			O_PATH | O_CLOEXEC | (flags & AT_SYMLINK_NOFOLLOW ? O_NOFOLLOW : 0), 0,
			SYS_RESOLVE_NO_MAGICLINKS);
	return r == -ELOOP ? -EACCES : r;
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

static int change_mode(const struct call *c, int file, mode_t mode)
{
	int r = judge(c, file);

	if (r < 0)
		return r;
	if (is_link(file))
		return -EOPNOTSUPP;
	return fchmodat(c->b->proc, own_name(file).text, mode & 01777, 0) < 0 ? -errno : 0;
}

static int change_owner(const struct call *c, int file, uint64_t user, uint64_t group)
{
	int r = judge(c, file);

	if (r < 0)
		return r;
	return fchownat(file, "", (uid_t)user, (gid_t)group, AT_EMPTY_PATH) < 0 ? -errno : 0;
}

static int change_times(const struct call *c, int file, const struct timespec *times)
{
	int r = judge(c, file);

	if (r < 0)
		return r;
	if (utimensat(file, "", times, AT_EMPTY_PATH) == 0)
		return 0;
	if (errno != EINVAL || is_link(file))
		return -errno;
	/* before Linux 5.8 an empty path is not known here */
	return utimensat(c->b->proc, own_name(file).text, times, 0) < 0 ? -errno : 0;
}

/* An attribute to set, or with no value to remove. */
static int change_attribute(const struct call *c, int file, const uint64_t *a, bool set)
{
	char name[PATH_MAX], path[48];
	_cleanup_free_ char *value = NULL;
	int r = judge(c, file);

	if (r == 0)
		r = call_read_path(c, a[1], name);
	if (r < 0)
		return r == -ENAMETOOLONG ? -ERANGE : r;
	if (set && a[3] > XATTR_VALUE_MAX)
		return -E2BIG;
	if (is_link(file))
		return -EPERM; /* nothing but the kernel's own attributes */
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
	if (!set)
		return removexattr(path, name) < 0 ? -errno : 0;
	value = malloc(a[3] + 1);
	if (!value)
		return -ENOMEM;
	r = a[3] ? call_read(c, a[2], value, a[3]) : 0;
	if (r < 0)
		return r;
	return setxattr(path, name, value, a[3], (int)a[4]) < 0 ? -errno : 0;
}

/* --- the calls ---------------------------------------------------------------------------- */

static int call_mode(struct call *c, int dirfd, uint64_t address, uint64_t mode, int flags)
{
	_cleanup_fd_ int file = open_target(c, dirfd, address, flags);

	return file < 0 ? file : change_mode(c, file, (mode_t)mode);
}

static int call_owner(struct call *c, int dirfd, uint64_t address, const uint64_t *ids, int flags)
{
	_cleanup_fd_ int file = open_target(c, dirfd, address, flags);

	return file < 0 ? file : change_owner(c, file, ids[0], ids[1]);
}

static int call_attribute(struct call *c, bool set, int flags)
{
	_cleanup_fd_ int file = open_target(c, AT_FDCWD, c->args[0], flags);

	return file < 0 ? file : change_attribute(c, file, c->args, set);
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

static int call_times(struct call *c, int dirfd, uint64_t address, uint64_t times, int flags)
{
	_cleanup_fd_ int file = -1;
	struct timespec both[2];
	int r = times ? read_times(c, times, both) : 0;

	if (r < 0)
		return r == -EFAULT || r == -EINVAL ? r : -EACCES;
	file = address ? open_target(c, dirfd, address, flags) : call_open_fd(c, dirfd);
	return file < 0 ? file : change_times(c, file, times ? both : NULL);
}

static int call_by_descriptor(struct call *c)
{
	_cleanup_fd_ int file = call_open_fd(c, (int)c->args[0]);

	if (file < 0)
		return file;
	if (c->n->data.nr == SYS_fchmod)
		return change_mode(c, file, (mode_t)c->args[1]);
	if (c->n->data.nr == SYS_fchown)
		return change_owner(c, file, c->args[1], c->args[2]);
	return change_attribute(c, file, c->args, c->n->data.nr == SYS_fsetxattr);
}

/* Only a unix socket may listen: an internet one would be open to the network. */
static int call_listen(struct call *c)
{
	_cleanup_fd_ int sock = call_take_fd(c, (int)c->args[0]);
	int domain = 0;

	if (sock < 0)
		return sock;
	if (getsockopt(sock, SOL_SOCKET, SO_DOMAIN, &domain, &(socklen_t){ sizeof(domain) }) < 0)
		return -ENOTSOCK;
	if (domain != AF_UNIX)
		return -EACCES;
	return listen(sock, (int)c->args[1]) < 0 ? -errno : 0;
}

/* Abstract names are the host's; files are made where the command may write. */
static int call_bind(struct call *c)
{
	_cleanup_place_ struct place p = PLACE_INIT;
	_cleanup_fd_ int sock = call_take_fd(c, (int)c->args[0]);
	char name[sizeof(((struct sockaddr_un *)0)->sun_path) + 1] = { 0 }, path[PLACE_TEXT_MAX];
	size_t head = offsetof(struct sockaddr_un, sun_path);
	struct address to;
	int r = sock < 0 ? sock : call_read_address(c, &to);

	if (r < 0)
		return r;
	if (to.u.any.sa_family != AF_UNIX || to.len <= head)
		return bind(sock, &to.u.any, to.len) < 0 ? -errno : 0;
	if (to.len > sizeof(to.u.local))
		return -EINVAL;
	if (!to.u.local.sun_path[0])
		return c->b->plan->all_unix && bind(sock, &to.u.any, to.len) == 0 ? 0 : -EACCES;
	memcpy(name, to.u.local.sun_path, to.len - head);
	r = call_resolve(c, AT_FDCWD, name, 0, &p);
	if (r < 0)
		return r == ANSWER_CONTINUE ? -EACCES : r;
	place_text(&p, path);
	if (!p.root && is_writable(c->b, path)) {
		p.root = "/"; /* granted directly: nothing is protected there */
		p.relayed = true;
	}
	if (!p.root || p.slash)
		return -EACCES;
	return call_bind_at(c, &p, sock);
}

static int call_remove(struct call *c, int dirfd, uint64_t address, int flags)
{
	_cleanup_place_ struct place p = PLACE_INIT;
	char path[PATH_MAX], whole[PLACE_TEXT_MAX], name[NAME_MAX + 2];

	broker_watch(c);
	if (call_read_path(c, address, path) < 0 || call_resolve(c, dirfd, path, 0, &p) < 0 ||
	    !p.root)
		return ANSWER_CONTINUE; /* Landlock decides */
	place_text(&p, whole);
	if (bare_is_kept(c->b, whole)) {
		call_report_outside(c, VIOLATION_DELETE, &p);
		return -EACCES;
	}
	(void)snprintf(name, sizeof(name), "%s%s", p.name, p.slash ? "/" : "");
	return unlinkat(p.parent, name, flags & AT_REMOVEDIR) < 0 ? -errno : 0;
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
	case SYS_unlink:
		return call_remove(c, AT_FDCWD, a[0], 0);
	case SYS_rmdir:
		return call_remove(c, AT_FDCWD, a[0], AT_REMOVEDIR);
	default:
		break;
	}
#else
	(void)c;
#endif
	return ANSWER_OTHER;
}

int bare_answer(struct call *c)
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
	case SYS_bind:
		return call_bind(c);
	case SYS_listen:
		return call_listen(c);
	case SYS_unlinkat:
		return call_remove(c, (int)a[0], a[1], (int)a[2]);
	default:
		return answer_old(c);
	}
}
