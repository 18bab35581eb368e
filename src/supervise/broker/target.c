/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The calling process as the broker sees it: its memory, its directories, its
 * descriptors. Everything read from its memory is copied once; decisions are
 * made on the copy and acted on by descriptor.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/sys.h"
#include "base/text.h"
#include "supervise/broker/internal.h"

#define PAGE 4096u
#define PIDFD_OF_THREAD O_EXCL /* PIDFD_THREAD of Linux 6.9 */

int call_read(const struct call *c, uint64_t address, void *buf, size_t len)
{
	struct iovec local = { buf, len }, remote = { (void *)(uintptr_t)address, len };
	ssize_t n = process_vm_readv(c->tid, &local, 1, &remote, 1, 0);

	if (n < 0)
		return -errno;
	return (size_t)n == len ? 0 : -EFAULT;
}

int call_read_path(const struct call *c, uint64_t address, char *buf)
{
	size_t done = 0;

	/* page by page: the string may end right before unmapped memory */
	while (done < PATH_MAX) {
		size_t room = PAGE - (size_t)((address + done) % PAGE);
		size_t len = room < PATH_MAX - done ? room : PATH_MAX - done;
		int r = call_read(c, address + done, buf + done, len);

		if (r < 0)
			return r;
		if (memchr(buf + done, '\0', len))
			return 0;
		done += len;
	}
	return -ENAMETOOLONG;
}

bool call_is_valid(const struct call *c)
{
	return ioctl(c->b->listener, SECCOMP_IOCTL_NOTIF_ID_VALID, &c->n->id) == 0;
}

int call_open_base(const struct call *c, int dirfd, const char *path)
{
	char link[48];
	int fd;

	if (*path == '/')
		return fcntl(c->b->root, F_DUPFD_CLOEXEC, 3);
	if (dirfd == AT_FDCWD)
		(void)snprintf(link, sizeof(link), "%d/cwd", c->tid);
	else
		(void)snprintf(link, sizeof(link), "%d/fd/%d", c->tid, dirfd);
	fd = openat(c->b->proc, link, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	/* killed meanwhile: the number may be somebody else's by now */
	if (!call_is_valid(c)) {
		fd_close(fd);
		return -ESRCH;
	}
	return fd;
}

/* A descriptor for the process that the calling thread belongs to. */
static int open_process(const struct call *c)
{
	_cleanup_free_ char *status = NULL;
	const char *tgid;
	char path[32];
	long fd = syscall(SYS_pidfd_open, c->tid, PIDFD_OF_THREAD);

	if (fd >= 0)
		return (int)fd;
	/* before Linux 6.9 it must be the leader of the thread group */
	(void)snprintf(path, sizeof(path), "%d/status", c->tid);
	if (fd_read_file(c->b->proc, path, 1 << 16, &status, NULL) < 0)
		return -ESRCH;
	tgid = strstr(status, "\nTgid:\t");
	if (!tgid)
		return -ESRCH;
	fd = syscall(SYS_pidfd_open, (pid_t)text_leading_u64(tgid + 7), 0);
	return fd < 0 ? -errno : (int)fd;
}

int call_take_fd(const struct call *c, int fd)
{
	_cleanup_fd_ int process = open_process(c);
	long r;

	if (process < 0)
		return process;
	if (!call_is_valid(c))
		return -ESRCH;
	r = syscall(SYS_pidfd_getfd, process, fd, 0);
	return r < 0 ? -errno : (int)r;
}

int call_magic_fd(const struct call *c, const char *path)
{
	static const struct {
		const char *path;
		int fd;
	} known[] = { { "/dev/stdin", 0 }, { "/dev/stdout", 1 }, { "/dev/stderr", 2 } };
	static const char *const prefixes[] = { "/dev/fd/", "/proc/self/fd/",
						"/proc/thread-self/fd/" };
	uint64_t fd;

	(void)c;
	for (size_t i = 0; i < ARRAY_LEN(known); i++) {
		if (strcmp(path, known[i].path) == 0)
			return known[i].fd;
	}
	for (size_t i = 0; i < ARRAY_LEN(prefixes); i++) {
		if (text_starts(path, prefixes[i]) &&
		    text_parse_u64(path + strlen(prefixes[i]), INT_MAX, &fd) == 0)
			return (int)fd;
	}
	return -1;
}

int fd_path(const struct broker *b, int fd, char *ret)
{
	char link[32];
	ssize_t n;

	(void)snprintf(link, sizeof(link), "self/fd/%d", fd);
	n = readlinkat(b->proc, link, ret, PATH_MAX);
	if (n < 0 || n >= PATH_MAX)
		return n < 0 ? -errno : -ENAMETOOLONG;
	ret[n] = '\0';
	return ret[0] == '/' ? 0 : -EXDEV; /* pipes, sockets, what lies outside the root */
}

/* The longest of the directories that path lies in; `best` if none is longer. */
static const char *longest(const char *const *v, size_t n, const char *path, const char *best)
{
	for (size_t i = 0; i < n; i++) {
		if (path_within(path, v[i]) && (!best || strlen(v[i]) > strlen(best)))
			best = v[i];
	}
	return best;
}

/* The kernel's grant is for the directory that stood there at the start, no other. */
static bool bulk_is_there(const struct broker *b, size_t i)
{
	struct stat then, now;

	return fstat(b->bulk[i], &then) == 0 &&
	       fstatat(b->root, b->plan->bulk[i], &now, AT_SYMLINK_NOFOLLOW) == 0 &&
	       then.st_dev == now.st_dev && then.st_ino == now.st_ino;
}

/* In a bulk directory that was removed and made again: nothing is granted there any more. */
static bool in_new_bulk(const struct broker *b, const char *path)
{
	for (size_t i = 0; i < b->plan->n_bulk; i++) {
		if (path_within(path, b->plan->bulk[i]) && !bulk_is_there(b, i))
			return true;
	}
	return false;
}

const char *guarded_root(const struct broker *b, const char *path, bool *ret_relayed)
{
	const struct plan *plan = b->plan;
	const char *root = longest(plan->guarded, plan->n_guarded, path, NULL);
	const char *relayed = longest(plan->relayed, plan->n_relayed, path, root);
	const char *direct = longest(plan->writable, plan->n_writable, path, relayed);

	*ret_relayed = relayed != root;
	return direct != relayed && !in_new_bulk(b, path) ? NULL : relayed;
}

void place_done(struct place *p)
{
	fd_close(p->parent);
	p->parent = -1;
}

int place_open(const struct place *p)
{
	return openat(p->parent, p->name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
}

void place_text(const struct place *p, char *ret)
{
	(void)snprintf(ret, PLACE_TEXT_MAX, "%s/%s", strcmp(p->path, "/") == 0 ? "" : p->path,
		       p->name);
}

bool place_holds_bulk(const struct broker *b, const struct place *p)
{
	char path[PLACE_TEXT_MAX];

	place_text(p, path);
	for (size_t i = 0; i < b->plan->n_bulk; i++) {
		if (path_within(b->plan->bulk[i], path) && bulk_is_there(b, i))
			return true;
	}
	return false;
}

/* Split off the last component: *dir gets the rest ("" = the base itself). */
static int split(const char *path, char *dir, struct place *ret)
{
	size_t len = strlen(path), start;

	if (len == 0)
		return -ENOENT;
	ret->slash = path[len - 1] == '/';
	while (len > 0 && path[len - 1] == '/')
		len--;
	for (start = len; start > 0 && path[start - 1] != '/';)
		start--;
	if (len == 0 || (len - start == 1 && path[start] == '.') ||
	    (len - start == 2 && path[start] == '.' && path[start + 1] == '.'))
		return ANSWER_CONTINUE; /* names no entry: the kernel says what is wrong */
	if (len - start > NAME_MAX)
		return -ENAMETOOLONG;
	memcpy(ret->name, path + start, len - start);
	ret->name[len - start] = '\0';
	memcpy(dir, path, start);
	dir[start] = '\0';
	return 0;
}

int place_resolve(const struct broker *b, int base, const char *path, uint64_t how,
		  struct place *ret)
{
	struct place p = PLACE_INIT;
	char dir[PATH_MAX];
	int r = split(path, dir, &p);

	if (r < 0)
		return r;
	if (dir[0] == '/')
		base = b->root;
	/* relative to an O_PATH base; "." when the path is a single name */
	p.parent = sys_openat2(base, dir[0] ? dir : ".", O_PATH | O_DIRECTORY | O_CLOEXEC, 0,
			       how | SYS_RESOLVE_NO_MAGICLINKS);
	if (p.parent == -ELOOP)
		return ANSWER_CONTINUE; /* through /proc: the kernel's own rules hold there */
	if (p.parent < 0)
		return p.parent;
	if (place_refresh(b, &p) < 0) {
		place_done(&p);
		return ANSWER_CONTINUE;
	}
	place_done(ret);
	*ret = p;
	return 0;
}

int place_refresh(const struct broker *b, struct place *p)
{
	int r = fd_path(b, p->parent, p->path);

	p->root = r < 0 ? NULL : guarded_root(b, p->path, &p->relayed);
	return r;
}

/*
 * /proc/self/{cwd,root,fd/N}/...: our own view of /proc has no "self" that is the
 * caller. The way from there, and where it starts.
 */
static const char *after_self(const char *path, int *dirfd)
{
	static const char *const selves[] = { "/proc/self/", "/proc/thread-self/" };
	const char *rest = NULL;
	char number[12] = { 0 };
	uint64_t fd;

	for (size_t i = 0; i < ARRAY_LEN(selves); i++) {
		if (text_starts(path, selves[i]))
			rest = path + strlen(selves[i]);
	}
	if (!rest)
		return path;
	if (text_starts(rest, "root/"))
		return rest + 4;
	if (text_starts(rest, "cwd/")) {
		*dirfd = AT_FDCWD;
		rest += 4;
	} else if (text_starts(rest, "fd/")) {
		size_t n = strcspn(rest + 3, "/");

		if (n == 0 || n >= sizeof(number) || rest[3 + n] != '/')
			return path;
		memcpy(number, rest + 3, n);
		if (text_parse_u64(number, INT_MAX, &fd) < 0)
			return path;
		*dirfd = (int)fd;
		rest += 3 + n;
	} else {
		return path;
	}
	rest += strspn(rest, "/");
	return *rest ? rest : path;
}

int call_resolve(const struct call *c, int dirfd, const char *path, uint64_t how, struct place *ret)
{
	_cleanup_fd_ int base = -1;

	if (!how)
		path = after_self(path, &dirfd);
	base = call_open_base(c, dirfd, path);
	if (base < 0)
		return ANSWER_CONTINUE; /* a bad descriptor, a gone process */
	return place_resolve(c->b, base, path, how, ret);
}

int place_read_link(const struct place *p, char *ret)
{
	ssize_t n = readlinkat(p->parent, p->name, ret, PATH_MAX - 1);

	if (n < 0)
		return -errno;
	ret[n] = '\0';
	return 0;
}

static mode_t parse_octal(const char *s)
{
	mode_t v = 0;

	for (; *s >= '0' && *s <= '7'; s++)
		v = v << 3 | (mode_t)(*s - '0');
	return v & 0777;
}

/*
 * Reading it takes longer than the call it is for, so the last one is remembered: until
 * somebody calls umask(2), only for a task that no thread shares it with, and only
 * while the task lives, since nothing is found in the directory of a dead one, even
 * when its number is in use again.
 */
mode_t call_umask(struct call *c)
{
	_cleanup_free_ char *status = NULL;
	struct broker *b = c->b;
	const char *line;
	char path[16];

	if (!b->umask_used)
		return b->initial_umask;
	if (b->umask_tid == c->tid && faccessat(b->umask_task, "status", F_OK, 0) == 0)
		return b->umask_known;
	b->umask_tid = 0;
	fd_close(b->umask_task);
	(void)snprintf(path, sizeof(path), "%d", c->tid);
	b->umask_task = openat(b->proc, path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (b->umask_task < 0 || fd_read_file(b->umask_task, "status", 1 << 16, &status, NULL) < 0)
		return b->initial_umask;
	line = strstr(status, "\nUmask:\t");
	b->umask_known = line ? parse_octal(line + 8) : b->initial_umask;
	if (strstr(status, "\nThreads:\t1\n"))
		b->umask_tid = c->tid;
	return b->umask_known;
}

int call_send_fd(const struct call *c, int fd, bool cloexec)
{
	struct seccomp_notif_addfd add = {
		.id = c->n->id,
		.srcfd = (uint32_t)fd,
		.newfd_flags = cloexec ? O_CLOEXEC : 0,
	};
	int number = ioctl(c->b->listener, SECCOMP_IOCTL_NOTIF_ADDFD, &add);

	return number < 0 ? -errno : number;
}
