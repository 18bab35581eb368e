/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The guard: waits for the end of the supervisor, whichever way it comes, and removes the groups of
 * its run. The kernel has no group that goes with its last process, and everything else of ours is
 * gone when the supervisor is killed. It is there before the first group is made, so that there
 * is no moment at which a group has no guard.
 *
 * It holds the directories that the groups lie in, init's pidfd and the end of a socket, and
 * nothing else. It obeys no signal that can be blocked, and no key reaches its process group.
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

#define SWEEP_MS 100 /* after the start */
#define LEAVE_MS 5000 /* for a killed sandbox to be gone */
#define TRIES 1000
#define PAUSE_NS 5000000

struct guard {
	const struct cgroup_dir *dirs;
	size_t n;
	int socket;
};

/* The socket and the parents. */
static void keep_only(const struct guard *guard)
{
	int keep[1 + CGROUP_CONTROLLER_MAX_] = { guard->socket };

	for (size_t i = 0; i < guard->n; i++)
		keep[1 + i] = guard->dirs[i].parent;
	sys_close_all_but(0, keep, 1 + guard->n);
}

/* The supervisor that is named in it, if there is such a process here. */
static bool is_of_the_living(const char *name)
{
	uint64_t pid = text_leading_u64(name + strlen(CGROUP_NAME_PREFIX));

	return pid > 0 && pid <= INT32_MAX && (kill((pid_t)pid, 0) == 0 || errno == EPERM);
}

/*
 * Groups of supervisors that were killed together with their guard. In another pid namespace a
 * living one cannot be seen: there the lock on the group says so.
 */
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
		    is_of_the_living(entry->d_name))
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

static void sweep_all(const struct guard *guard)
{
	for (size_t i = 0; i < guard->n; i++) {
		if (guard->dirs[i].kind != CGROUP_SCOPE)
			sweep(&guard->dirs[i]);
	}
}

/* The only word that comes is init's pidfd, which is kept. False at the end. */
static bool hear(const struct guard *guard, int *init)
{
	char word;
	int fd = -1;
	ssize_t n = fd_receive(guard->socket, &word, sizeof(word), &fd);

	if (n > 0)
		*init = fd;
	return n > 0 || n == -EINTR || n == -EAGAIN;
}

/* Nobody is kept waiting by the sweeping: a short run is over before. */
static void wait_for_end(const struct guard *guard)
{
	struct pollfd word = { .fd = guard->socket, .events = POLLIN };
	struct pollfd init = { .fd = -1, .events = POLLIN };
	int timeout = SWEEP_MS;

	while (hear(guard, &init.fd)) {
		if (poll(&word, 1, timeout) != 0)
			continue;
		sweep_all(guard);
		timeout = -1;
	}
	/* the sandbox dies with its supervisor, but not at the same instant */
	if (init.fd >= 0)
		(void)poll(&init, 1, LEAVE_MS);
}

static _Noreturn void guard_main(const struct guard *guard)
{
	sigset_t all;

	(void)sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, NULL);
	(void)setpgid(0, 0); /* a session of its own costs the scheduler a group */
	(void)prctl(PR_SET_NAME, "ambit-guard", 0, 0, 0);
	(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	keep_only(guard);
	(void)!chdir("/"); /* holds no directory of the caller's */
	wait_for_end(guard);
	for (size_t i = 0; i < guard->n; i++) {
		if (guard->dirs[i].kind != CGROUP_SCOPE)
			remove_group(&guard->dirs[i]);
	}
	sweep_all(guard);
	_exit(0);
}

int cgroup_guard_start(const struct cgroup_dir *dirs, size_t n, pid_t *ret_pid, int *ret_fd,
		       struct error *e)
{
	int pair[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return error_set(e, errno, "limits: cannot make a socket: %s", strerror(errno));
	pid = fork();
	if (pid == 0) {
		fd_close(pair[0]);
		guard_main(&(struct guard){ dirs, n, pair[1] });
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

void cgroup_guard_watch(int fd, int init)
{
	if (fd >= 0 && init >= 0)
		(void)!fd_send(fd, "", 1, init);
}
