/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clone into the new namespaces and set them up, step by step. The child is
 * a copy of the supervisor until it becomes init; whatever fails there is written to
 * the error pipe as it is and reported by the supervisor as its own.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/sys.h"
#include "sandbox/native/native.h"

static int write_file(const char *path, const char *text, struct error *e)
{
	_cleanup_fd_ int fd = open(path, O_WRONLY | O_CLOEXEC);
	int r = fd < 0 ? -errno : fd_write_all(fd, text, strlen(text));

	return r < 0 ? error_set(e, -r, "%s: %s", path, strerror(-r)) : 0;
}

/* One to one: the command keeps the caller's user and group, and has no other. */
static int map_ids(const struct plan *plan, struct error *e)
{
	char map[64];
	int r = write_file("/proc/self/setgroups", "deny", e);

	if (r == 0) {
		(void)snprintf(map, sizeof(map), "%u %u 1\n", plan->uid, plan->uid);
		r = write_file("/proc/self/uid_map", map, e);
	}
	if (r == 0) {
		(void)snprintf(map, sizeof(map), "%u %u 1\n", plan->gid, plan->gid);
		r = write_file("/proc/self/gid_map", map, e);
	}
	if (r == -EPERM || r == -EACCES)
		return native_refused(-r, plan->uid, NATIVE_NO_IDS, e);
	return r;
}

static int set_up(const struct plan *plan, const struct sandbox_limits *limits, int control,
		  int errors, struct error *e)
{
	int r;

	/* a supervisor that nobody may look into has a child that may not write its own maps */
	(void)prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
	r = map_ids(plan, e);

	if (r == 0)
		r = native_limits_begin(limits, e);
	if (r == 0)
		r = native_network(plan, errors, e);
	if (r == 0)
		r = native_mounts(plan, e);
	return r == 0 ? native_settle(plan, limits, control, errors, e) : r;
}

/*
 * Who waits for its command may do so for a while, in which nothing of the caller's must be held
 * open: another sandbox's sockets, say, whose end would not be noticed.
 */
static int close_all_but(int *control, int *errors, struct error *e)
{
	_cleanup_fd_ int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	int a = fcntl(*control, F_DUPFD_CLOEXEC, 5), b = fcntl(*errors, F_DUPFD_CLOEXEC, 5);
	int r = null < 0 || a < 0 || b < 0 ? -errno : 0;

	for (int fd = 0; fd <= 2 && r == 0; fd++)
		r = dup2(null, fd) < 0 ? -errno : 0;
	if (r == 0 && (dup3(a, 3, O_CLOEXEC) < 0 || dup3(b, 4, O_CLOEXEC) < 0))
		r = -errno;
	if (r == 0)
		r = sys_close_range(5, ~0u, 0);
	*control = 3;
	*errors = 4;
	null = -1; /* closed, or over 4 and so gone */
	return r < 0 ? error_set(e, -r, "cannot close inherited files: %s", strerror(-r)) : 0;
}

static _Noreturn void child_main(const struct plan *plan, const struct sandbox_command *cmd,
				 int control, int errors)
{
	struct error e = { 0 };
	mode_t mask = umask(0);
	int r;

	/* the supervisor cannot be seen from here: if it is gone already, `control` says so */
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	r = cmd->later ? close_all_but(&control, &errors, &e) : 0;
	if (r == 0)
		r = set_up(plan, cmd->limits, control, errors, &e);
	if (r == 0)
		r = native_init(plan, cmd,
				&(struct init_sockets){ .control = control,
							.errors = errors,
							.listener = errors,
							.keeper = -1,
							.lock = -1 },
				mask, &e);
	if (r < 0)
		(void)!send(errors, &e, sizeof(e), MSG_NOSIGNAL);
	_exit(125);
}

static int native_start(const struct plan *plan, const struct sandbox_command *cmd,
			struct sandbox_child *ret, struct error *e)
{
	int control[2] = { -1, -1 }, errors[2] = { -1, -1 }, pidfd = -1;
	const struct sandbox_limits *l = cmd->limits;
	struct sys_clone_args args = {
		.flags = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS |
			 CLONE_PIDFD | (plan->new_net ? CLONE_NEWNET : 0),
		.pidfd = (uint64_t)(uintptr_t)&pidfd,
		.exit_signal = SIGCHLD,
	};
	pid_t pid;

	if (!l || !l->groups)
		args.flags |= CLONE_NEWCGROUP; /* else it is made when the groups are entered */
	if (l && l->born_in >= 0) {
		args.flags |= SYS_CLONE_INTO_CGROUP;
		args.cgroup = (uint64_t)l->born_in;
	}
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, control) < 0)
		return error_set(e, errno, "cannot make a socket: %s", strerror(errno));
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, errors) < 0) {
		int err = errno;

		fd_close(control[0]);
		fd_close(control[1]);
		return error_set(e, err, "cannot make a socket: %s", strerror(err));
	}
	pid = sys_clone3(&args);
	if (pid == 0) {
		fd_close(control[0]);
		fd_close(errors[0]);
		child_main(plan, cmd, control[1], errors[1]);
	}
	fd_close(control[1]);
	fd_close(errors[1]);
	if (pid < 0) {
		fd_close(control[0]);
		fd_close(errors[0]);
		return native_refused(-pid, plan->uid, NATIVE_NO_NAMESPACE, e);
	}
	*ret = (struct sandbox_child){
		.pid = pid, .init = pid, .pidfd = pidfd, .control = control[0], .errors = errors[0]
	};
	return 0;
}

const struct backend backend_native = {
	.name = "native",
	.choice = BACKEND_NATIVE,
	.hold = native_properties,
	.probe = native_probe,
	.compile = plan_compile,
	.start = native_start,
};
