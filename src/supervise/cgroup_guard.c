/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The guard: makes the groups of a run, waits for the end of the supervisor, whichever way it
 * comes, and removes them. The kernel has no group that goes with its last process, and
 * everything else of ours is gone when the supervisor is killed. It makes them, too, because that
 * takes long, and so that there is no moment at which a group has no guard.
 *
 * Once they are made it holds them, the directories that they lie in, init's pidfd and the end of
 * a socket, and nothing else; it obeys nobody. Its session is its own: no key
 * reaches it.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/sys.h"
#include "base/text.h"
#include "supervise/cgroup_internal.h"

#define LEAVE_MS 5000 /* for a killed sandbox to be gone */
#define TRIES 1000
#define PAUSE_NS 5000000

struct guard {
	struct cgroup_dir *dirs;
	size_t n;
	int socket;
};

enum { KEPT_SOCKET, KEPT_PARENTS, KEPT_MAX_ = KEPT_PARENTS + 2 * CGROUP_CONTROLLER_MAX_ };

/* Descriptors 0.. become the socket, the parents and the groups; the rest is closed. */
static void keep_only(struct guard *guard)
{
	int fds[KEPT_MAX_] = { [KEPT_SOCKET] = guard->socket };
	size_t n = KEPT_PARENTS;

	for (size_t i = 0; i < guard->n; i++) {
		fds[n++] = guard->dirs[i].parent;
		fds[n++] = guard->dirs[i].fd; /* for its lock */
		guard->dirs[i].parent = (int)n - 2;
	}
	/* above all that is to be kept first, so that none is overwritten */
	for (size_t i = 0; i < n; i++)
		fds[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, KEPT_MAX_);
	for (size_t i = 0; i < n; i++) {
		if (fds[i] < 0 || dup2(fds[i], (int)i) < 0)
			(void)close((int)i);
	}
	(void)sys_close_range((unsigned)n, ~0u, 0);
	guard->socket = KEPT_SOCKET;
}

/* Groups of supervisors that were killed together with their guard. */
static void sweep(const struct cgroup_dir *own)
{
	int fd = openat(own->parent, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *list = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;

	if (!list) {
		fd_close(fd);
		return;
	}
	while ((entry = readdir(list))) {
		_cleanup_fd_ int group = -1;

		if (!text_starts(entry->d_name, CGROUP_NAME_PREFIX) ||
		    strcmp(entry->d_name, own->name) == 0)
			continue;
		group = openat(own->parent, entry->d_name,
			       O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
		/* with members it cannot be removed: the kernel refuses */
		if (group >= 0 && flock(group, LOCK_EX | LOCK_NB) == 0)
			(void)unlinkat(own->parent, entry->d_name, AT_REMOVEDIR);
	}
	(void)closedir(list);
}

static void remove_group(const struct cgroup_dir *d)
{
	const struct timespec pause = { .tv_nsec = PAUSE_NS };

	for (unsigned t = 0; t < TRIES; t++) {
		if (unlinkat(d->parent, d->name, AT_REMOVEDIR) == 0 || errno != EBUSY)
			return;
		(void)nanosleep(&pause, NULL);
	}
}

/* The only word that comes is init's pidfd. */
static void wait_for_end(const struct guard *guard)
{
	struct pollfd init = { .fd = -1, .events = POLLIN };
	char word;
	ssize_t n;

	do {
		int fd = -1;

		n = fd_receive(guard->socket, &word, sizeof(word), &fd);
		if (n == -EAGAIN)
			(void)poll(&(struct pollfd){ .fd = guard->socket, .events = POLLIN }, 1,
				   -1);
		if (n > 0)
			init.fd = fd;
	} while (n > 0 || n == -EINTR || n == -EAGAIN);
	/* the sandbox dies with its supervisor, but not at the same instant */
	if (init.fd >= 0)
		(void)poll(&init, 1, LEAVE_MS);
}

static void answer(const struct guard *guard, cgroup_begin *begin, void *ctx)
{
	struct error e = { 0 };
	int fds[CGROUP_GUARD_FDS_MAX];
	int n = begin(ctx, fds, &e);

	if (n > 0)
		(void)!fd_send_many(guard->socket, "", 1, fds, (size_t)n);
	else
		(void)!send(guard->socket, &e, n < 0 ? sizeof(e) : 1, MSG_NOSIGNAL);
}

static _Noreturn void guard_main(struct guard *guard, cgroup_begin *begin, void *ctx)
{
	sigset_t all;

	(void)sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, NULL);
	(void)setsid();
	(void)prctl(PR_SET_NAME, "ambit-guard", 0, 0, 0);
	(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	answer(guard, begin, ctx);
	keep_only(guard);
	(void)!chdir("/"); /* holds no directory of the caller's */
	for (size_t i = 0; i < guard->n; i++) {
		if (guard->dirs[i].kind != CGROUP_SCOPE)
			sweep(&guard->dirs[i]);
	}
	wait_for_end(guard);
	for (size_t i = 0; i < guard->n; i++) {
		if (guard->dirs[i].kind != CGROUP_SCOPE)
			remove_group(&guard->dirs[i]);
	}
	_exit(0);
}

int cgroup_guard_start(struct cgroup_dir *dirs, size_t n, cgroup_begin *begin, void *ctx,
		       pid_t *ret_pid, int *ret_fd, struct error *e)
{
	int pair[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return error_set(e, errno, "limits: cannot make a socket: %s", strerror(errno));
	pid = fork();
	if (pid == 0) {
		fd_close(pair[0]);
		guard_main(&(struct guard){ dirs, n, pair[1] }, begin, ctx);
	}
	fd_close(pair[1]);
	if (pid < 0) {
		int err = errno;

		fd_close(pair[0]);
		return error_set(e, err, "limits: cannot start the guard: %s", strerror(err));
	}
	*ret_pid = pid;
	*ret_fd = pair[0];
	return 0;
}

int cgroup_guard_wait(int fd, int ret[CGROUP_GUARD_FDS_MAX], struct error *e)
{
	struct pollfd ready = { .fd = fd, .events = POLLIN };
	struct error told;
	ssize_t n;

	while (poll(&ready, 1, -1) < 0)
		; /* EINTR */
	n = fd_receive_many(fd, &told, sizeof(told), ret, CGROUP_GUARD_FDS_MAX);
	if (n == 1)
		return 0;
	if (n != sizeof(told))
		return error_set(e, ECHILD, "limits: the guard of the cgroups has ended");
	*e = told;
	return -e->code;
}

void cgroup_guard_watch(int fd, int init)
{
	if (fd >= 0 && init >= 0)
		(void)!fd_send(fd, "", 1, init);
}
