/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Init: pid 1 inside. Starts the command as pid 2, reaps what it leaves
 * behind, passes on the supervisor's signals, and tells it what became of the
 * command. It ends with the command or with the supervisor, and the kernel then
 * kills everything else in the pid namespace: no daemon survives.
 *
 * Trust: the command runs under the same user, in the same pid namespace. Init is not
 * dumpable (no ptrace, no /proc/1/mem), outside the command's Landlock domain
 * (no signals where the kernel scopes them), and reads nothing the command
 * writes: only wait statuses and the supervisor's orders.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/sys.h"
#include "sandbox/native/native.h"
#include "sandbox/native/seccomp.h"

static void tell(int control, enum init_event_type type, int value)
{
	struct init_event event = { .type = (int32_t)type, .value = value };

	(void)!send(control, &event, sizeof(event), MSG_NOSIGNAL);
}

/* Reap everything that is ready. Returns true when the command itself has ended. */
static bool reap(pid_t command, int control)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG | WUNTRACED | __WALL)) > 0) {
		if (pid != command)
			continue;
		if (WIFSTOPPED(status)) {
			tell(control, INIT_STOPPED, WSTOPSIG(status));
			continue;
		}
		tell(control, INIT_EXITED, status);
		return true;
	}
	return false;
}

static void obey(pid_t command, int control, const struct init_order *order)
{
	if (order->signal <= 0 || order->signal >= NSIG)
		return;
	(void)kill(order->target == INIT_ALL     ? -1
		   : order->target == INIT_GROUP ? -command
						 : command,
		   order->signal);
	if (order->target == INIT_ALL && order->signal == SIGSTOP)
		tell(control, INIT_FROZEN, 0);
}

static _Noreturn void serve(pid_t command, int control, int signals)
{
	struct pollfd fds[] = { { .fd = control, .events = POLLIN },
				{ .fd = signals, .events = POLLIN } };

	for (;;) {
		struct signalfd_siginfo info;
		struct init_order order;
		ssize_t n;

		if (poll(fds, ARRAY_LEN(fds), -1) < 0 && errno != EINTR)
			_exit(125);
		if (fds[1].revents) {
			(void)!read(signals, &info, sizeof(info));
			if (reap(command, control))
				_exit(0);
		}
		if (!fds[0].revents)
			continue;
		n = recv(control, &order, sizeof(order), MSG_DONTWAIT);
		if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
			_exit(125); /* the supervisor is gone */
		if (n == sizeof(order))
			obey(command, control, &order);
	}
}

int native_init(const struct plan *plan, const struct sandbox_command *cmd, int control, int errors,
		mode_t mask, struct error *e)
{
	sigset_t child;
	int signals;
	pid_t pid;

	(void)sigemptyset(&child);
	(void)sigaddset(&child, SIGCHLD);
	(void)sigprocmask(SIG_BLOCK, &child, NULL);
	signals = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
	if (signals < 0)
		return error_set(e, errno, "cannot make a signalfd: %s", strerror(errno));
	(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); /* exec makes the command dumpable again */
	/* vfork: nothing to copy; native_exec() never comes back here */
	pid = vfork();
	if (pid < 0)
		return error_set(e, errno, "cannot start the command: %s", strerror(errno));
	if (pid == 0)
		native_exec(plan, cmd, errors, mask);
	(void)setpgid(pid, pid);
	/* keep control and signals only: the rest (old mounts among them) is closed */
	if (dup2(control, 0) < 0 || dup2(signals, 1) < 0 || sys_close_range(2, ~0u, 0) < 0)
		_exit(125);
	serve(pid, 0, 1);
}
