/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The calling task as the broker sees it: its memory, its descriptors, its working
 * directory, its umask. Whatever is read from its memory is copied once; decisions are
 * made on the copy and acted on by descriptor.
 *
 * A task is known by a number only, and the number may belong to somebody else as soon as
 * it is killed. So the number is used once, to open the task's directory in /proc, and
 * the kernel is asked afterwards whether the call still waits: then it was its directory.
 * That descriptor is kept for the calls to come: nothing is found through it once the task
 * is gone, and while the task lives nobody else has its number.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/text.h"
#include "supervise/broker/connect.h"

#define PAGE 4096u
#define PATH_USUAL 256u /* longer ones take a second look */
#define STATUS_MAX (1u << 16)
#define THREAD_PIDFD O_EXCL /* PIDFD_THREAD, Linux 6.9 */

bool call_is_valid(const struct call *c)
{
	return ioctl(c->b->listener, SECCOMP_IOCTL_NOTIF_ID_VALID, &c->n->id) == 0;
}

/* ---- memory ---- */

static int read_memory(const struct call *c, uint64_t address, void *buf, size_t len)
{
	struct iovec local = { buf, len }, remote = { (void *)(uintptr_t)address, len };
	ssize_t n = process_vm_readv(c->tid, &local, 1, &remote, 1, 0);

	if (n < 0)
		return -errno;
	return (size_t)n == len ? 0 : -EFAULT;
}

/* ---- tasks ---- */

static void forget(struct task *t)
{
	fd_close(t->dir);
	fd_close(t->pidfd);
	*t = (struct task){ .dir = -1, .pidfd = -1 };
}

void tasks_start(struct tasks *all)
{
	for (size_t i = 0; i < TASKS_MAX; i++)
		all->v[i] = (struct task){ .dir = -1, .pidfd = -1 };
}

/* The task that calls, or another one that had its number: see live_task(). */
static struct task *find_task(const struct call *c)
{
	struct tasks *all = &c->b->tasks;
	struct task *oldest = &all->v[0];
	char name[16];

	for (size_t i = 0; i < TASKS_MAX; i++) {
		struct task *t = &all->v[i];

		if (t->tid == c->tid) {
			t->used = ++all->clock;
			t->changing = false;
			return t;
		}
		if (t->used < oldest->used)
			oldest = t;
	}
	forget(oldest);
	(void)snprintf(name, sizeof(name), "%d", c->tid);
	oldest->dir = openat(c->b->proc, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (oldest->dir < 0 || !call_is_valid(c)) {
		forget(oldest);
		return NULL;
	}
	oldest->tid = c->tid;
	oldest->used = ++all->clock;
	oldest->answered = c->n->id;
	return oldest;
}

/* The calling task itself, which lives and can be looked at; NULL when it does not. */
static struct task *live_task(const struct call *c)
{
	struct task *t = find_task(c);

	if (!t || t->answered == c->n->id)
		return t;
	if (faccessat(t->dir, "status", F_OK, 0) < 0) {
		forget(t);
		return find_task(c);
	}
	t->answered = c->n->id;
	return t;
}

/* For all threads alike from Linux 6.9 on, before that for the first one of a process. */
static int task_pidfd(const struct call *c, struct task *t)
{
	if (t->pidfd >= 0 || t->no_pidfd)
		return t->pidfd;
	t->pidfd = (int)syscall(SYS_pidfd_open, t->tid, THREAD_PIDFD);
	if (t->pidfd < 0)
		t->pidfd = (int)syscall(SYS_pidfd_open, t->tid, 0);
	t->no_pidfd = t->pidfd < 0;
	if (t->pidfd >= 0 && !call_is_valid(c)) {
		fd_close(t->pidfd);
		t->pidfd = -1;
	}
	return t->pidfd;
}

/* What the task has open under a number, or where it works (AT_FDCWD): as a directory. */
static int open_through(const struct call *c, struct task *t, int dirfd)
{
	char link[24];
	int fd;

	if (dirfd == AT_FDCWD) {
		fd = openat(t->dir, "cwd", O_PATH | O_DIRECTORY | O_CLOEXEC);
		return fd < 0 ? -errno : fd;
	}
	if (task_pidfd(c, t) >= 0) {
		fd = (int)syscall(SYS_pidfd_getfd, t->pidfd, dirfd, 0);
		return fd < 0 ? -errno : fd;
	}
	(void)snprintf(link, sizeof(link), "fd/%d", dirfd);
	fd = openat(t->dir, link, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int open_base(const struct call *c, int dirfd, const char *path)
{
	struct task *t;
	int fd;

	if (*path == '/')
		return call_is_valid(c) ? fcntl(c->b->root, F_DUPFD_CLOEXEC, 3) : -ESRCH;
	t = find_task(c);
	if (!t)
		return -ESRCH;
	fd = open_through(c, t, dirfd);
	if ((fd == -ENOENT || fd == -ESRCH) && t->answered != c->n->id) {
		forget(t); /* of a task that is gone */
		t = find_task(c);
		fd = t ? open_through(c, t, dirfd) : -ESRCH;
	}
	if (fd >= 0)
		t->answered = c->n->id;
	return fd;
}

static void base_text(const struct call *c, int dirfd, char *ret)
{
	struct task *t = find_task(c);
	char link[24] = "cwd";
	ssize_t n;

	if (dirfd != AT_FDCWD)
		(void)snprintf(link, sizeof(link), "fd/%d", dirfd);
	n = t ? readlinkat(t->dir, link, ret, PATH_MAX - 1) : 0;
	if (n < 0 && (t = live_task(c))) /* of a task that is gone */
		n = readlinkat(t->dir, link, ret, PATH_MAX - 1);
	if (n > 0)
		t->answered = c->n->id;
	ret[n > 0 ? n : 0] = '\0';
}

/* By the first thread of its process, where a thread has no descriptor of its own. */
static int take_from_leader(const struct call *c, const struct task *t, int fd)
{
	_cleanup_free_ char *status = NULL;
	_cleanup_fd_ int process = -1;
	const char *group;
	long r;

	if (fd_read_file(t->dir, "status", STATUS_MAX, &status, NULL) < 0)
		return -ESRCH;
	group = strstr(status, "\nTgid:\t");
	if (!group)
		return -ESRCH;
	process = (int)syscall(SYS_pidfd_open, (pid_t)text_leading_u64(group + 7), 0);
	if (process < 0)
		return -errno;
	if (!call_is_valid(c))
		return -ESRCH;
	r = syscall(SYS_pidfd_getfd, process, fd, 0);
	return r < 0 ? -errno : (int)r;
}

static int take_fd_of(const struct call *c, int fd)
{
	struct task *t = find_task(c);
	long r;

	/* known from an earlier call: if it is gone, nothing is taken */
	if (t && t->pidfd >= 0) {
		r = syscall(SYS_pidfd_getfd, t->pidfd, fd, 0);
		if (r >= 0 || errno != ESRCH)
			return r < 0 ? -errno : (int)r;
	}
	t = live_task(c);
	if (!t)
		return -ESRCH;
	if (task_pidfd(c, t) < 0)
		return take_from_leader(c, t, fd);
	r = syscall(SYS_pidfd_getfd, t->pidfd, fd, 0);
	return r < 0 ? -errno : (int)r;
}

static int open_fd_of(const struct call *c, int fd)
{
	const struct task *t = live_task(c);
	char link[24];
	int file;

	if (!t)
		return -ESRCH;
	(void)snprintf(link, sizeof(link), "fd/%d", fd);
	file = openat(t->dir, link, O_PATH | O_CLOEXEC);
	return file >= 0 ? file : errno == ENOENT ? -EBADF : -errno;
}

/* ---- umask ---- */

static mode_t parse_octal(const char *s)
{
	mode_t v = 0;

	for (; *s >= '0' && *s <= '7'; s++)
		v = v << 3 | (mode_t)(*s - '0');
	return v & 0777;
}

/* 1: both have one umask in common (CLONE_FS, as threads do). -errno: nobody knows. */
static int share_umask(const struct task *a, const struct task *b)
{
	long r = syscall(SYS_kcmp, a->tid, b->tid, KCMP_FS, 0, 0);

	return r < 0 ? -errno : r == 0;
}

/* The umask of a task as it is now. Somebody who shares it may be about to change it. */
static void learn_umask(struct broker *b, struct task *t)
{
	_cleanup_free_ char *status = NULL;
	const char *line;

	t->umask = b->initial_umask;
	if (fd_read_file(t->dir, "status", STATUS_MAX, &status, NULL) < 0)
		return;
	line = strstr(status, "\nUmask:\t");
	if (!line)
		return;
	t->umask = parse_octal(line + 8);
	t->umask_known = true;
	for (size_t i = 0; i < TASKS_MAX; i++) {
		const struct task *other = &b->tasks.v[i];
		int shared = other->changing && other != t ? share_umask(other, t) : 0;

		if (shared > 0)
			t->umask = other->umask;
		else if (shared < 0)
			t->umask_known = false;
	}
}

/*
 * Reading it takes longer than the call that it is for, so it is remembered with the task;
 * every change comes by here.
 */
static void note_umask(const struct call *c, mode_t mask)
{
	struct broker *b = c->b;
	struct task *t = live_task(c);

	b->umask_used = true;
	for (size_t i = 0; i < TASKS_MAX; i++) {
		struct task *other = &b->tasks.v[i];
		int shared = other == t ? 1 : -1;

		if (t && other != t && other->umask_known)
			shared = share_umask(other, t);
		if (shared > 0)
			other->umask = mask & 0777;
		if (shared)
			other->umask_known = shared > 0;
	}
	if (t)
		t->changing = true;
}

static mode_t umask_of(const struct call *c)
{
	struct broker *b = c->b;
	struct task *t;

	if (!b->umask_used)
		return b->initial_umask;
	t = live_task(c);
	if (!t)
		return b->initial_umask;
	if (!t->umask_known)
		learn_umask(b, t);
	return t->umask;
}

/* ---- all of it, from whichever thread answers ---- */

struct errand {
	const struct call *c;
	enum {
		ERRAND_READ,
		ERRAND_OPEN_BASE,
		ERRAND_BASE_TEXT,
		ERRAND_TAKE_FD,
		ERRAND_OPEN_FD,
		ERRAND_UMASK,
		ERRAND_NOTE_UMASK
	} kind;
	uint64_t address;
	void *buf;
	size_t len;
	int fd;
	const char *path;
	mode_t mask;
};

static int run_errand(void *arg)
{
	struct errand *e = arg;

	switch (e->kind) {
	case ERRAND_READ:
		return read_memory(e->c, e->address, e->buf, e->len);
	case ERRAND_OPEN_BASE:
		return open_base(e->c, e->fd, e->path);
	case ERRAND_BASE_TEXT:
		base_text(e->c, e->fd, e->buf);
		break;
	case ERRAND_TAKE_FD:
		return take_fd_of(e->c, e->fd);
	case ERRAND_OPEN_FD:
		return open_fd_of(e->c, e->fd);
	case ERRAND_UMASK:
		e->mask = umask_of(e->c);
		break;
	case ERRAND_NOTE_UMASK:
		note_umask(e->c, e->mask);
		break;
	}
	return 0;
}

int call_read(const struct call *c, uint64_t address, void *buf, size_t len)
{
	struct errand e = { c, ERRAND_READ, .address = address, .buf = buf, .len = len };

	return domain_errand(c, run_errand, &e);
}

int call_read_path(const struct call *c, uint64_t address, char *buf)
{
	const struct path_read *known = &c->b->read;
	size_t done = 0;

	if (known->id == c->n->id && known->address == address) {
		memcpy(buf, known->text, strlen(known->text) + 1);
		return 0;
	}
	/* not over the end of a page: the string may end right before unmapped memory */
	while (done < PATH_MAX) {
		size_t room = PAGE - (size_t)((address + done) % PAGE);
		size_t want = done ? PATH_MAX - done : PATH_USUAL;
		size_t len = room < want ? room : want;
		int r = call_read(c, address + done, buf + done, len);

		if (r < 0)
			return r;
		if (memchr(buf + done, '\0', len))
			return 0;
		done += len;
	}
	return -ENAMETOOLONG;
}

int call_open_base(const struct call *c, int dirfd, const char *path)
{
	struct errand e = { c, ERRAND_OPEN_BASE, .fd = dirfd, .path = path };

	return domain_errand(c, run_errand, &e);
}

void call_base_text(const struct call *c, int dirfd, char *ret)
{
	struct errand e = { c, ERRAND_BASE_TEXT, .fd = dirfd, .buf = ret };

	(void)domain_errand(c, run_errand, &e);
}

int call_take_fd(const struct call *c, int fd)
{
	struct errand e = { c, ERRAND_TAKE_FD, .fd = fd };

	return domain_errand(c, run_errand, &e);
}

int call_open_fd(const struct call *c, int fd)
{
	struct errand e = { c, ERRAND_OPEN_FD, .fd = fd };

	return domain_errand(c, run_errand, &e);
}

int call_read_address(const struct call *c, struct address *ret)
{
	int r;

	memset(ret, 0, sizeof(*ret));
	if ((uint32_t)c->args[2] > sizeof(ret->u))
		return -EINVAL;
	ret->len = (socklen_t)c->args[2];
	r = ret->len ? call_read(c, c->args[1], &ret->u, ret->len) : 0;
	return r < 0 && r != -EFAULT ? -EACCES : r; /* a program that may only be executed */
}

void call_note_umask(const struct call *c, mode_t mask)
{
	struct errand e = { c, ERRAND_NOTE_UMASK, .mask = mask };

	(void)domain_errand(c, run_errand, &e);
}

mode_t call_umask(const struct call *c)
{
	struct errand e = { c, ERRAND_UMASK, .mask = 0 };

	(void)domain_errand(c, run_errand, &e);
	return e.mask;
}
