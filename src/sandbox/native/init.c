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
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/sys.h"
#include "sandbox/landlock/landlock.h"
#include "sandbox/native/native.h"
#include "sandbox/native/seccomp.h"

#define LAST_PAUSE_NS 1000000
#define LAST_LOOK_MS 2000

#define WORDS_MAX (8 << 20) /* more than the kernel takes */

static void tell(int control, enum init_event_type type, int value)
{
	struct init_event event = { .type = (int32_t)type, .value = value };

	(void)!send(control, &event, sizeof(event), MSG_NOSIGNAL);
}

struct init_usage native_usage(const struct rusage *usage)
{
	const struct timeval *user = &usage->ru_utime, *system = &usage->ru_stime;

	return (struct init_usage){
		.cpu_ms = (uint64_t)(user->tv_sec + system->tv_sec) * 1000 +
			  (uint64_t)(user->tv_usec + system->tv_usec) / 1000,
		.max_rss_kb = (uint64_t)usage->ru_maxrss,
	};
}

struct init {
	const struct plan *plan;
	bool held; /* RLIMIT_NPROC holds a limit of this sandbox's processes */
	bool counted; /* somebody wants to know how many there were */
	bool last_look; /* somebody looks at our group when the command has ended */
	pid_t command;
	int control, signals, keeper, lock;
};

/*
 * The last word. When nobody else is left, which only a pid namespace of our own can show, the
 * supervisor need not wait until the kernel has taken the namespaces apart. That should not happen
 * on the processor on which it hears of this: so it is given a moment to go first.
 */
static void tell_end(const struct init *in, int status, bool childless)
{
	struct rusage usage;
	struct init_event event = { .type = INIT_EXITED,
				    .value = status,
				    .alone = childless && !in->plan->bare && !in->plan->contained };

	if (event.alone && getrusage(RUSAGE_CHILDREN, &usage) == 0)
		event.usage = native_usage(&usage);
	(void)!send(in->control, &event, sizeof(event), MSG_NOSIGNAL);
	if (event.alone)
		(void)nanosleep(&(struct timespec){ .tv_nsec = LAST_PAUSE_NS }, NULL);
}

/* True when there may be one process more. It is gone, but holds its place until it is reaped. */
static bool take_place(pid_t *ret)
{
	*ret = vfork();
	if (*ret == 0)
		_exit(0);
	return *ret > 0 || errno != EAGAIN;
}

/*
 * Was the last place taken when the command ended? Nobody counts refused forks, and a command that
 * gives up at the first one is gone before the supervisor looks. With itself it has given up
 * one place, so that two must be free if it was not.
 */
static bool was_full(void)
{
	pid_t first = 0, second = 0;
	bool full = !take_place(&first) || !take_place(&second);

	if (first > 0)
		(void)waitpid(first, NULL, __WALL);
	if (second > 0)
		(void)waitpid(second, NULL, __WALL);
	return full;
}

/*
 * One that is dead and not reaped shows the last number of our pid namespace to who looks at its
 * /proc. The kernel would tell only who is inside (ns_last_pid).
 */
static void leave_number(void)
{
	siginfo_t info;
	pid_t pid = vfork();

	if (pid == 0)
		_exit(0);
	/* we go on while it is still leaving */
	if (pid > 0)
		(void)waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT);
}

/* Reap everything that is ready. Returns true when the command itself has ended. */
static bool reap(const struct init *in)
{
	bool childless;
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG | WUNTRACED | __WALL)) > 0) {
		if (pid != in->command)
			continue;
		if (WIFSTOPPED(status)) {
			tell(in->control, INIT_STOPPED, WSTOPSIG(status));
			continue;
		}
		/* one look, no more: others may fork and end for ever */
		childless = waitpid(-1, NULL, WNOHANG | __WALL) < 0 && errno == ECHILD;
		if (in->held && status && !childless && was_full())
			tell(in->control, INIT_OUT_OF_PIDS, 0);
		if (in->counted)
			leave_number();
		tell_end(in, status, childless);
		return true;
	}
	return false;
}

/* Without a pid namespace the kernel does not do it for us. */
static _Noreturn void leave(const struct init *in, int status)
{
	if (in->plan->bare)
		landlock_end_all(in->plan);
	_exit(status);
}

/* Groups of a container or a scope of systemd go with us: what they say must be read before. */
static void wait_for_last_look(const struct init *in)
{
	struct pollfd word = { .fd = in->control, .events = POLLIN };
	uint64_t now = sys_now_ms(), end = now + LAST_LOOK_MS;
	struct init_order order = { .signal = SIGCONT };
	ssize_t n = sizeof(order);

	/* signals to the command may still be on their way: they are not the word */
	for (; n == sizeof(order) && order.signal > 0 && order.signal != SIGKILL && now < end;
	     now = sys_now_ms()) {
		if (poll(&word, 1, (int)(end - now)) == 1)
			n = recv(in->control, &order, sizeof(order), MSG_DONTWAIT);
	}
}

static void obey(const struct init *in, const struct init_order *order)
{
	bool all = order->target == INIT_ALL;

	if (order->signal <= 0 || order->signal >= NSIG)
		return;
	/* "all" is what kill() reaches, which is ours alone in a pid namespace only */
	if (all && in->plan->bare && order->signal == SIGKILL)
		leave(in, 125);
	if (all && in->plan->bare)
		return;
	(void)kill(all                           ? -1
		   : order->target == INIT_GROUP ? -in->command
						 : in->command,
		   order->signal);
	if (all && order->signal == SIGSTOP)
		tell(in->control, INIT_FROZEN, 0);
}

static _Noreturn void serve(const struct init *in)
{
	struct pollfd fds[] = { { .fd = in->control, .events = POLLIN },
				{ .fd = in->signals, .events = POLLIN },
				{ .fd = in->keeper, .events = POLLIN } };

	for (;;) {
		struct signalfd_siginfo info;
		struct init_order order;
		ssize_t n;

		if (poll(fds, ARRAY_LEN(fds), -1) < 0 && errno != EINTR)
			leave(in, 125);
		if (fds[1].revents) {
			(void)!read(in->signals, &info, sizeof(info));
			if (reap(in)) {
				if (in->plan->contained || in->last_look)
					wait_for_last_look(in);
				leave(in, 0);
			}
		}
		if (fds[2].revents)
			leave(in, 125); /* nobody is left who answers the command's calls */
		if (!fds[0].revents)
			continue;
		n = recv(in->control, &order, sizeof(order), MSG_DONTWAIT);
		if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
			leave(in, 125); /* the supervisor is gone */
		if (n == sizeof(order))
			obey(in, &order);
	}
}

/* Keep what is needed, from 0 on: the rest (old mounts among them) is closed. */
static void keep_only(struct init *in)
{
	int *const all[] = { &in->control, &in->signals, &in->keeper, &in->lock };
	unsigned n = 0;

	/* above all that is to be kept first, so that none is overwritten */
	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		if (*all[i] >= 0)
			*all[i] = fcntl(*all[i], F_DUPFD_CLOEXEC, ARRAY_LEN(all));
	}
	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		if (*all[i] >= 0)
			*all[i] = dup2(*all[i], (int)n++);
	}
	if (in->control < 0 || in->signals < 0 || sys_close_range(n, ~0u, 0) < 0)
		leave(in, 125);
}

/*
 * Everybody inside can read our command line, and the options of the caller are not theirs to know:
 * the password of a proxy may be among them. Nothing refers to these words any more (main() has
 * copied them); they lie in one piece, the environment or the program's name behind them.
 */
static void hide_words(void)
{
	static const char shown[] = "ambit-init";
	char *start = program_invocation_name;
	char *end = environ[0] ? environ[0] : (char *)(uintptr_t)getauxval(AT_EXECFN);
	ptrdiff_t room = start && end ? end - start : 0;

	if (room <= 0 || room > WORDS_MAX)
		return;
	memset(start, 0, (size_t)room);
	if (room >= (ptrdiff_t)sizeof(shown))
		memcpy(start, shown, sizeof(shown));
}

int native_init(const struct plan *plan, const struct sandbox_command *cmd,
		const struct init_sockets *sockets, mode_t mask, struct error *e)
{
	struct init in = { .plan = plan,
			   .held = cmd->limits && cmd->limits->processes && !plan->bare,
			   .counted = cmd->limits && cmd->limits->counted,
			   .last_look = cmd->limits && cmd->limits->last_look,
			   .control = sockets->control,
			   .keeper = sockets->keeper,
			   .lock = sockets->lock };
	sigset_t child;

	(void)sigemptyset(&child);
	(void)sigaddset(&child, SIGCHLD);
	(void)sigprocmask(SIG_BLOCK, &child, NULL);
	in.signals = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
	if (in.signals < 0)
		return error_set(e, errno, "cannot make a signalfd: %s", strerror(errno));
	/* in a container we lead a session already */
	if (cmd->own_terminal &&
	    ((setsid() < 0 && getsid(0) != getpid()) || ioctl(cmd->tty, TIOCSCTTY, 0) < 0))
		return error_set(e, errno, "cannot make a session for the terminal: %s",
				 strerror(errno));
	/* exec makes the command dumpable again; a keeper around us has to see what it does before */
	if (!plan->bare) {
		(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
		hide_words(); /* without a pid namespace all others can be seen as well */
	}
	/* vfork: nothing to copy; native_exec() never comes back here */
	in.command = vfork();
	if (in.command < 0)
		return error_set(e, errno, "cannot start the command: %s", strerror(errno));
	if (in.command == 0)
		native_exec(plan, cmd, sockets->errors, sockets->listener, mask);
	(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); /* until here, Landlock keeps the command off */
	(void)setpgid(in.command, in.command);
	keep_only(&in);
	serve(&in);
}
