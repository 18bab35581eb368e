/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The guard: waits for the end of the supervisor, whichever way it comes, and removes the groups
 * of its run. The kernel has no group that goes with its last process, and everything
 * else of ours is gone when the supervisor is killed.
 *
 * It holds the directories that the groups lie in and the end of a pipe, and nothing else;
 * it reads nothing and obeys nobody. Its session is its own: no key reaches it.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/sys.h"
#include "supervise/cgroup_internal.h"

#define TRIES 1000
#define PAUSE_NS 5000000

/* Descriptors 0.. become the pipe and the parents; the rest is closed. */
static void keep_only(int pipe, struct cgroup_dir *dirs, size_t n)
{
	int kept[1 + CGROUP_CONTROLLER_MAX_];

	/* above all that is to be kept first, so that none is overwritten */
	kept[0] = fcntl(pipe, F_DUPFD_CLOEXEC, ARRAY_LEN(kept));
	for (size_t i = 0; i < n; i++)
		kept[i + 1] = fcntl(dirs[i].parent, F_DUPFD_CLOEXEC, ARRAY_LEN(kept));
	for (size_t i = 0; i <= n; i++)
		(void)dup2(kept[i], (int)i);
	for (size_t i = 0; i < n; i++)
		dirs[i].parent = (int)i + 1;
	(void)sys_close_range((unsigned)n + 1, ~0u, 0);
}

static _Noreturn void wait_and_remove(int pipe, struct cgroup_dir *dirs, size_t n)
{
	const struct timespec pause = { .tv_nsec = PAUSE_NS };
	sigset_t all;
	char unused;

	(void)sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, NULL);
	(void)setsid();
	(void)prctl(PR_SET_NAME, "ambit-guard", 0, 0, 0);
	(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	keep_only(pipe, dirs, n);
	(void)!chdir("/"); /* holds no directory of the caller's */
	while (read(0, &unused, 1) < 0 && errno == EINTR)
		;
	for (size_t i = 0; i < n; i++) {
		/* the sandbox dies with its supervisor, but not at the same instant */
		for (unsigned t = 0; dirs[i].kind != CGROUP_SCOPE && t < TRIES; t++) {
			if (unlinkat(dirs[i].parent, dirs[i].name, AT_REMOVEDIR) == 0 ||
			    errno != EBUSY)
				break;
			(void)nanosleep(&pause, NULL);
		}
	}
	_exit(0);
}

int cgroup_guard_start(const struct cgroup_dir *dirs, size_t n, pid_t *ret_pid, int *ret_fd,
		       struct error *e)
{
	int pipes[2];
	pid_t pid;

	if (pipe2(pipes, O_CLOEXEC) < 0)
		return error_set(e, errno, "limits: cannot make a pipe: %s", strerror(errno));
	pid = fork();
	if (pid == 0) {
		struct cgroup_dir own[CGROUP_CONTROLLER_MAX_];

		memcpy(own, dirs, n * sizeof(*own));
		wait_and_remove(pipes[0], own, n);
	}
	fd_close(pipes[0]);
	if (pid < 0) {
		int err = errno;

		fd_close(pipes[1]);
		return error_set(e, err, "limits: cannot start the guard: %s", strerror(err));
	}
	*ret_pid = pid;
	*ret_fd = pipes[1];
	return 0;
}
