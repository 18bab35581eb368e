/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limits, from inside: what only a process of the sandbox can do about them, before it gives up
 * its rights. Nothing is decided here; supervise/limit.c has chosen the mechanisms.
 *
 * Everything set here is inherited by the command and cannot be taken back without a
 * capability over the host: a lowered hard limit cannot be raised, a cgroup is left only by
 * writing to a file that is read-only inside.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "sandbox/native/native.h"

#define COUNT_ROOM 32 /* for what the user starts meanwhile; the supervisor counts exactly */
#define COUNT_MAX ((uint64_t)1 << 22) /* processes: more than the kernel has numbers for */
#define FIRST_VICTIM "1000" /* of oom_score_adj: the kernel's choice when memory runs out */

int native_limits_begin(const struct sandbox_limits *l, struct error *e)
{
	_cleanup_fd_ int fd = -1;
	int r;

	if (!l || !l->first_victim)
		return 0;
	fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
	r = fd < 0 ? -errno : fd_write_all(fd, FIRST_VICTIM, strlen(FIRST_VICTIM));
	return r < 0 ? error_set(e, -r, "/proc/self/oom_score_adj: %s", strerror(-r)) : 0;
}

/* bwrap makes each private directory a file system; /dev is the one that is always there. */
static int hand_out_private(const struct plan *plan, int sock, struct error *e)
{
	const char word[NATIVE_PRIVATE_LEN] = { 0 };
	size_t n = 0;

	for (size_t i = 0; plan->backend == BACKEND_BWRAP && i < plan->n_mounts; i++) {
		const struct mount_step *m = &plan->mounts[i];
		_cleanup_fd_ int fd = -1;
		int r;

		if (m->kind != MOUNT_PRIVATE)
			continue;
		if (n++ == NATIVE_PRIVATE_MAX)
			return error_set(e, E2BIG,
					 "more than %d private directories cannot be measured, as "
					 "the limits need here",
					 NATIVE_PRIVATE_MAX);
		fd = open(m->path, O_PATH | O_DIRECTORY | O_CLOEXEC);
		r = fd < 0 ? -errno : fd_send(sock, word, sizeof(word), fd);
		if (r < 0)
			return error_set(e, -r, "cannot hand out %s: %s", m->path, strerror(-r));
	}
	return 0;
}

/* What shows the supervisor how much is used: opened here, because only here it means us. */
static int hand_out(int sock, struct error *e)
{
	static const struct {
		const char *path;
		int flags;
	} files[NATIVE_USAGE_MAX_] = {
		[NATIVE_PROC] = { "/proc", O_RDONLY | O_DIRECTORY },
		[NATIVE_SCRATCH] = { "/dev", O_PATH | O_DIRECTORY },
		[NATIVE_SHM] = { "/proc/sysvipc/shm", O_RDONLY },
	};
	const char word[NATIVE_USAGE_LEN] = { 0 };
	int fds[NATIVE_USAGE_MAX_], r = 0;
	size_t n = 0;

	while (n < NATIVE_USAGE_MAX_ && r == 0) {
		fds[n] = open(files[n].path, files[n].flags | O_CLOEXEC);
		if (fds[n] < 0 && errno == ENOENT && n == NATIVE_SHM)
			break; /* a kernel without System V memory */
		if (fds[n] < 0)
			r = error_set(e, errno, "cannot open %s: %s", files[n].path,
				      strerror(errno));
		else
			n++;
	}
	if (r == 0)
		r = fd_send_many(sock, word, sizeof(word), fds, n);
	while (n > 0)
		fd_close(fds[--n]);
	return r < 0 && !e->code ? error_set(e, -r, "cannot reach the supervisor: %s", strerror(-r))
				 : r;
}

/*
 * The supervisor's word that the limits stand, with the tasks files of version 1 cgroups to enter.
 * Written by the task itself they cost no grace period of the kernel.
 */
static int enter_groups(const struct plan *plan, int control, struct error *e)
{
	struct pollfd ready = { .fd = control, .events = POLLIN };
	int tasks[SANDBOX_GROUPS_MAX], r = 0;
	char word;
	ssize_t n;

	while (poll(&ready, 1, -1) < 0)
		; /* EINTR */
	n = fd_receive_many(control, &word, sizeof(word), tasks, ARRAY_LEN(tasks));
	if (n == 0)
		_exit(125); /* the supervisor is gone, or has given up */
	if (n < 0)
		return error_set(e, (int)-n, "cannot hear from the supervisor: %s",
				 strerror((int)-n));
	for (size_t i = 0; i < ARRAY_LEN(tasks); i++) {
		if (r == 0 && tasks[i] >= 0)
			r = fd_write_all(tasks[i], "0", 1);
		fd_close(tasks[i]);
	}
	if (r < 0)
		return error_set(e, -r, "cannot enter the cgroup: %s", strerror(-r));
	if (plan->bare)
		return 0;
	if (unshare(CLONE_NEWCGROUP) == 0)
		return 0;
	/* bwrap made one before, in which the group shows, and nothing above where we started */
	if (errno == EPERM && plan->backend == BACKEND_BWRAP)
		return 0;
	return error_set(e, errno, "cannot make a cgroup namespace: %s", strerror(errno));
}

static int set_limit(unsigned resource, uint64_t value, const char *name, struct error *e)
{
	struct rlimit lim;

	if (!value)
		return 0;
	if (getrlimit(resource, &lim) == 0 && lim.rlim_max != RLIM_INFINITY && lim.rlim_max < value)
		value = lim.rlim_max; /* the caller's own is narrower */
	lim.rlim_cur = lim.rlim_max = value;
	return setrlimit(resource, &lim) < 0
		       ? error_set(e, errno, "cannot set %s: %s", name, strerror(errno))
		       : 0;
}

/* May one more process be made with this limit? */
static bool can_fork(uint64_t limit)
{
	struct rlimit old, lim;
	pid_t pid;

	if (getrlimit(RLIMIT_NPROC, &old) < 0)
		return true;
	lim = (struct rlimit){ .rlim_cur = limit < old.rlim_max ? limit : old.rlim_max,
			       .rlim_max = old.rlim_max };
	(void)setrlimit(RLIMIT_NPROC, &lim);
	pid = fork();
	if (pid == 0)
		_exit(0);
	(void)setrlimit(RLIMIT_NPROC, &old);
	while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	return pid > 0;
}

/*
 * How many processes the kernel counts for this user now. Without a user namespace it counts all
 * of them, also those that cannot be seen from here, and does not say how many: it is asked
 * whether there may be one more.
 */
static uint64_t count_processes(void)
{
	uint64_t least = 0, most = 64;

	while (most < COUNT_MAX && !can_fork(most)) {
		least = most;
		most *= 2;
	}
	while (most - least > 1) {
		uint64_t middle = least + (most - least) / 2;

		if (can_fork(middle))
			most = middle;
		else
			least = middle;
	}
	return most - 1; /* without the one more */
}

int native_limits_enter(const struct plan *plan, const struct sandbox_limits *l, int control,
			int errors, struct error *e)
{
	int r = 0;

	if (!l)
		return 0;
	if (l->measured)
		r = hand_out_private(plan, errors, e);
	if (r == 0 && l->measured)
		r = hand_out(errors, e);
	if (r == 0 && l->groups)
		r = enter_groups(plan, control, e);
	if (r == 0)
		r = set_limit(RLIMIT_NPROC,
			      l->processes && plan->bare
				      ? count_processes() + l->processes + COUNT_ROOM
				      : l->processes,
			      "RLIMIT_NPROC", e);
	if (r == 0)
		r = set_limit(RLIMIT_FSIZE, l->file_size, "RLIMIT_FSIZE", e);
	if (r == 0 && l->pinned && sched_setaffinity(0, sizeof(l->cpus), &l->cpus) < 0)
		r = error_set(e, errno, "cannot choose processors: %s", strerror(errno));
	return r;
}
