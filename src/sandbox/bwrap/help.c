/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Help for an ambit-init that may not change its own namespaces: AppArmor's usual profile lets
 * bwrap make them, and takes all capabilities from what bwrap starts. The user namespace is ours
 * all the same: who made it, the caller, has every right over it from outside. So a process of
 * the supervisor's goes in (as the broker does later), does what is to be done, and ends.
 *
 * It is nobody's child, since nobody has time to wait for it: the one it helps does. It has no
 * descriptors but those it needs, and is gone, or about to end, when the command starts.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/sys.h"
#include "sandbox/bwrap/bwrap.h"
#include "sandbox/bwrap/inside.h"
#include "sandbox/native/native.h"

#define HELP_FD 256

struct helper {
	const struct plan *plan; /* NULL: for a probe */
	int pidfd; /* of ambit-init */
	int answers; /* where the result goes */
	int errors; /* where listeners go; the same as `answers` for a probe */
};

/* Nothing else of the supervisor's stays open. */
static int keep_three(struct helper *h)
{
	int *const fds[] = { &h->pidfd, &h->answers, &h->errors };
	const int above = HELP_FD + (int)ARRAY_LEN(fds);

	for (size_t i = 0; i < ARRAY_LEN(fds); i++) {
		*fds[i] = fcntl(*fds[i], F_DUPFD_CLOEXEC, above);
		if (*fds[i] < 0)
			return -errno;
	}
	for (size_t i = 0; i < ARRAY_LEN(fds); i++) {
		*fds[i] = dup3(*fds[i], HELP_FD + (int)i, O_CLOEXEC);
		if (*fds[i] < 0)
			return -errno;
	}
	if (sys_close_range(STDERR_FILENO + 1, HELP_FD - 1, 0) < 0 ||
	    sys_close_range((unsigned)above, ~0u, 0) < 0)
		return -errno;
	return 0;
}

static int enter(struct helper *h, struct error *e)
{
	int spaces = CLONE_NEWUSER | CLONE_NEWNS;
	int r = keep_three(h);

	if (!h->plan || h->plan->new_net)
		spaces |= CLONE_NEWNET;
	if (!h->plan)
		spaces |= CLONE_NEWPID; /* a fresh /proc is of those that it is mounted by */
	if (r == 0 && setns(h->pidfd, spaces) < 0)
		r = -errno;
	(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	return r < 0 ? error_set(e, -r,
				 "ambit-init may not change its own namespaces here (as with "
				 "AppArmor's profile bwrap-userns-restrict), and they cannot be "
				 "entered from outside: %s",
				 strerror(-r))
		     : 0;
}

static _Noreturn void finish(struct helper *h)
{
	struct error e = { 0 };
	int r = enter(h, &e);

	if (r == 0)
		r = bwrap_finish(h->plan, h->errors, &e);
	/* a byte, or what went wrong */
	(void)!send(h->answers, r < 0 ? (const void *)&e : "", r < 0 ? sizeof(e) : 1, MSG_NOSIGNAL);
	_exit(0);
}

static _Noreturn void try(struct helper *h)
{
	int results[NATIVE_STEP_MAX_] = { 0 };

	/* a child of ours is the first to be in the pid namespace */
	if (enter(h, &(struct error){ 0 }) == 0 && fork() == 0) {
		native_try(results);
		(void)!send(h->answers, results, sizeof(results), MSG_NOSIGNAL);
	}
	_exit(0);
}

static int start(struct helper *h, struct error *e)
{
	pid_t pid = fork();

	if (pid == 0) {
		pid = fork();
		if (pid == 0 && h->plan)
			finish(h);
		if (pid == 0)
			try(h);
		_exit(pid < 0 ? 1 : 0);
	}
	if (pid < 0)
		return error_set(e, errno, "cannot help ambit-init: %s", strerror(errno));
	(void)waitpid(pid, NULL, 0);
	return 0;
}

int bwrap_help(const struct plan *plan, int pidfd, int ready, int errors, struct error *e)
{
	struct helper h = { .plan = plan, .pidfd = pidfd, .answers = ready, .errors = errors };

	return start(&h, e);
}

int bwrap_help_try(int pidfd, int *results)
{
	int pair[2], r;
	ssize_t n = -1;
	struct helper h = { .pidfd = pidfd };

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	h.answers = h.errors = pair[1];
	r = start(&h, NULL);
	fd_close(pair[1]);
	if (r == 0)
		n = recv(pair[0], results, NATIVE_STEP_MAX_ * sizeof(*results), 0);
	fd_close(pair[0]);
	return n == (ssize_t)(NATIVE_STEP_MAX_ * sizeof(*results)) ? 0 : -EPERM;
}
