/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The supervisor: compiles the plan, starts the sandbox, and then only waits,
 * in one loop over five descriptors:
 *
 *   signals   passed on to the command: to the process for those meant for one
 *             (TERM, HUP, USR1, USR2), to its group for those a terminal sends
 *   errors    a set-up failure of the child, reported as our own; or end of
 *             file: the command runs
 *   control   init's events: the command stopped, the command ended
 *   reports   what the broker denied
 *   pidfd     init is gone
 *
 * The command has a process group of its own, so that nothing it sends to its
 * group reaches ours; on a terminal that group is put in the foreground, taken
 * back when the command stops or ends, and given again on SIGCONT: job control
 * works as if ambit were not there.
 */
#include "supervise/run.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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
#include "base/text.h"
#include "sandbox/native/native.h"
#include "supervise/broker/broker.h"
#include "supervise/egress.h"

#define TERM_GRACE_MS 2000 /* between SIGTERM and SIGKILL when the time is up */

enum {
	POLL_SIGNALS,
	POLL_ERRORS,
	POLL_CONTROL,
	POLL_REPORTS,
	POLL_EGRESS,
	POLL_LISTENER,
	POLL_INIT,
	POLL_COUNT,
};

struct run {
	const struct run_request *req;
	const struct plan *plan;
	const char *command; /* the words, for ignoreViolations */
	struct native_child child;
	pid_t broker;
	struct egress egress;
	int listener; /* of the system call filter, until the broker has it */
	int user_ns, mount_ns; /* for the broker to join */
	int reports[2]; /* ours, the broker's */
	int signals;
	int tty; /* our controlling terminal, -1 = none */
	bool given;
	pid_t inner_group;
	bool ended, failed;
	int status; /* wait status of the command */
	struct error failure;
	uint64_t deadline_ms; /* 0 = none */
	bool warned; /* SIGTERM was sent because the time is up */
};

static uint64_t now_ms(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

static bool is_group_signal(int sig)
{
	return sig == SIGINT || sig == SIGQUIT || sig == SIGTSTP || sig == SIGCONT ||
	       sig == SIGWINCH;
}

static void order(const struct run *run, int sig, bool group)
{
	struct init_order o = { .signal = sig, .group = group };

	(void)!send(run->child.control, &o, sizeof(o), MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void block_signals(sigset_t *ret_old, sigset_t *ret_blocked)
{
	static const int forwarded[] = { SIGINT,  SIGTERM,  SIGHUP,  SIGQUIT, SIGUSR1,
					 SIGUSR2, SIGWINCH, SIGTSTP, SIGCONT, SIGTTOU };

	(void)sigemptyset(ret_blocked);
	for (size_t i = 0; i < ARRAY_LEN(forwarded); i++)
		(void)sigaddset(ret_blocked, forwarded[i]);
	(void)sigprocmask(SIG_BLOCK, ret_blocked, ret_old);
	(void)sigdelset(ret_blocked, SIGTTOU); /* blocked so that tcsetpgrp() works; not read */
}

/*
 * The terminal. `given` while the command's side has the foreground; the group
 * that had it last is remembered, since a shell inside may have handed it on.
 */
static void find_terminal(struct run *run)
{
	run->tty = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
	run->given = run->tty >= 0 && tcgetpgrp(run->tty) == getpgrp();
}

static void take_terminal_back(struct run *run)
{
	pid_t now;

	if (!run->given)
		return;
	now = tcgetpgrp(run->tty);
	if (now > 0 && now != getpgrp()) {
		run->inner_group = now;
		(void)tcsetpgrp(run->tty, getpgrp());
	}
	run->given = false;
}

/* The command's group by its host id: it is the first child of init. */
static pid_t command_group(const struct run *run)
{
	_cleanup_free_ char *text = NULL;
	char path[64];

	if (run->inner_group > 0)
		return run->inner_group;
	(void)snprintf(path, sizeof(path), "/proc/%d/task/%d/children", run->child.pid,
		       run->child.pid);
	if (fd_read_file(AT_FDCWD, path, 4096, &text, NULL) < 0)
		return -1;
	return (pid_t)text_leading_u64(text);
}

static void follow_continue(struct run *run)
{
	if (run->tty >= 0 && tcgetpgrp(run->tty) == getpgrp()) {
		pid_t group = command_group(run);

		if (group > 0)
			run->given = tcsetpgrp(run->tty, group) == 0;
	}
	order(run, SIGCONT, true);
}

/* The command stopped: on a terminal the whole job stops, as the shell expects. */
static void follow_stop(struct run *run, int sig)
{
	if (run->tty < 0)
		return;
	/* the shell may have put us in the foreground only after we looked */
	if ((sig == SIGTTIN || sig == SIGTTOU) && tcgetpgrp(run->tty) == getpgrp()) {
		follow_continue(run);
		return;
	}
	take_terminal_back(run);
	(void)kill(sig == SIGSTOP ? getpid() : 0, SIGSTOP);
}

static void on_signal(struct run *run)
{
	struct signalfd_siginfo info;

	if (read(run->signals, &info, sizeof(info)) != sizeof(info))
		return;
	if (info.ssi_signo == SIGCONT)
		follow_continue(run);
	else
		order(run, (int)info.ssi_signo, is_group_signal((int)info.ssi_signo));
}

/* The lock that brokers of this user share; held only around decisions on git directories. */
static int open_lock(const struct policy *p)
{
	_cleanup_arena_ struct arena *a = arena_new();
	const char *runtime = arena_printf(a, "/run/user/%u", geteuid());
	struct stat st;
	char *dir;

	if (stat(runtime, &st) == 0 && st.st_uid == geteuid() && (st.st_mode & 022) == 0)
		return open(path_join(a, runtime, "ambit.lock"),
			    O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0200);
	dir = path_join(a, p->home, ".local/state/ambit");
	for (char *s = dir + strlen(p->home) + 1; (s = strchr(s, '/')); *s++ = '/') {
		*s = '\0';
		(void)mkdir(dir, 0700);
	}
	(void)mkdir(dir, 0700);
	return open(path_join(a, dir, "lock"), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0200);
}

static int start_broker(struct run *run)
{
	_cleanup_fd_ int lock = open_lock(run->req->policy);
	struct broker_setup setup = {
		.policy = run->req->policy,
		.plan = run->plan,
		.listener = run->listener,
		.user_ns = run->user_ns,
		.mount_ns = run->mount_ns,
		.reports = run->reports[1],
		.lock = lock,
	};
	int r;

	/* nobody inside may open it, else one sandbox could make all the others wait */
	if (lock >= 0)
		(void)fchmod(lock, 0200);
	if (lock < 0)
		return error_set(&run->failure, errno,
				 "cannot open the lock file in ~/.local/state/ambit: %s",
				 strerror(errno));
	r = broker_start(&setup, &run->broker, &run->failure);
	/* from now on the end of file on `reports` means that the broker is gone */
	fd_close(TAKE_FD(run->reports[1]));
	return r;
}

/* A descriptor from inside; the message that came with it is in run->failure. */
static int take_descriptor(struct run *run, int fd, size_t len)
{
	struct egress_message m;
	char which;
	int r;

	if (len == sizeof(m)) {
		memcpy(&m, &run->failure, sizeof(m));
		r = egress_add_listener(&run->egress, m.role, fd);
		return r < 0 ? error_set(&run->failure, -r, "the egress proxy does not answer: %s",
					 strerror(-r))
			     : 0;
	}
	memcpy(&which, &run->failure, sizeof(which));
	r = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	if (which == NATIVE_LISTENER)
		run->listener = r;
	else if (which == NATIVE_USER_NS)
		run->user_ns = r;
	else
		run->mount_ns = r;
	return r < 0 ? error_set(&run->failure, errno, "too many open files") : 0;
}

/* The broker is started when it is first needed: many commands write nothing. */
static void on_first_call(struct run *run, int events)
{
	if (events & POLLIN && start_broker(run) < 0) {
		run->failed = true;
		(void)sys_pidfd_send_signal(run->child.pidfd, SIGKILL);
	}
	fd_close(TAKE_FD(run->listener)); /* the broker has its own, or nobody is left to ask */
}

/* A struct error, or a descriptor, or the end. */
static bool on_error(struct run *run, struct pollfd *fd)
{
	_cleanup_fd_ int descriptor = -1;
	ssize_t n = fd_receive(run->child.errors, &run->failure, sizeof(run->failure), &descriptor);

	if (n > 0 && descriptor >= 0) {
		if (take_descriptor(run, descriptor, (size_t)n) < 0) {
			run->failed = true;
			(void)sys_pidfd_send_signal(run->child.pidfd, SIGKILL);
		}
		return true;
	}
	if (n == sizeof(run->failure))
		run->failed = true;
	else if (n == -EAGAIN || n == -EINTR)
		return false;
	fd->fd = -1; /* the end, or all that will come */
	return false;
}

/*
 * Without its broker the command only gets errors. It may also have ended by itself a
 * moment ago, with init still to say so: then this changes nothing.
 */
static void watch_early_end(struct run *run)
{
	int status;

	if (waitpid(run->broker, &status, 0) != run->broker ||
	    (WIFEXITED(status) && !WEXITSTATUS(status)))
		return;
	run->failed = true;
	(void)error_set(&run->failure, ECHILD, "the broker ended, so the command was ended too");
	(void)sys_pidfd_send_signal(run->child.pidfd, SIGKILL);
}

static void take_violation(const struct run *run, const struct violation *v)
{
	const struct report_entry *entry =
		report_add(run->req->report, run->req->policy, run->command, v);

	if (entry && v->kind != VIOLATION_LATER && run->req->tell)
		run->req->tell(run->req->ctx, entry);
}

static void on_report(struct run *run, struct pollfd *fd)
{
	struct violation v;
	ssize_t n;

	while ((n = recv(run->reports[0], &v, sizeof(v), MSG_DONTWAIT)) == sizeof(v)) {
		if (v.kind >= 0 && v.kind < VIOLATION_KIND_MAX_)
			take_violation(run, &v);
	}
	if (n == 0)
		fd->fd = -1; /* the broker left: with the last process, or too early */
	if (n == 0 && !run->ended && sys_pidfd_send_signal(run->child.pidfd, 0) == 0)
		watch_early_end(run);
}

static void on_decision(struct run *run)
{
	struct violation v;

	while (egress_next_denial(&run->egress, &v))
		take_violation(run, &v);
}

static void on_event(struct run *run, struct pollfd *fd)
{
	struct init_event event;
	ssize_t n = recv(run->child.control, &event, sizeof(event), MSG_DONTWAIT);

	if (n != sizeof(event)) {
		if (n == 0 || (errno != EAGAIN && errno != EINTR))
			fd->fd = -1;
		return;
	}
	if (event.type == INIT_STOPPED) {
		follow_stop(run, event.value);
	} else if (event.type == INIT_EXITED) {
		run->ended = true;
		run->status = event.value;
	}
}

/* Time left for poll(), acting on what is due. */
static int due(struct run *run)
{
	uint64_t now;

	if (!run->deadline_ms)
		return -1;
	now = now_ms();
	if (now >= run->deadline_ms) {
		if (run->warned) {
			(void)sys_pidfd_send_signal(run->child.pidfd, SIGKILL);
			run->deadline_ms = 0;
			return -1;
		}
		run->warned = true;
		order(run, SIGTERM, true);
		order(run, SIGCONT, true);
		run->deadline_ms = now + TERM_GRACE_MS;
	}
	return (int)(run->deadline_ms - now < 60000 ? run->deadline_ms - now + 1 : 60000);
}

static void loop(struct run *run)
{
	struct pollfd fds[POLL_COUNT] = {
		[POLL_SIGNALS] = { .fd = run->signals, .events = POLLIN },
		[POLL_ERRORS] = { .fd = run->child.errors, .events = POLLIN },
		[POLL_CONTROL] = { .fd = run->child.control, .events = POLLIN },
		[POLL_REPORTS] = { .fd = run->reports[0], .events = POLLIN },
		[POLL_LISTENER] = { .fd = -1, .events = POLLIN },
		[POLL_EGRESS] = { .fd = run->egress.events, .events = POLLIN },
		[POLL_INIT] = { .fd = run->child.pidfd, .events = POLLIN },
	};

	while (!fds[POLL_INIT].revents) {
		fds[POLL_LISTENER].fd = run->listener;
		if (poll(fds, POLL_COUNT, due(run)) < 0)
			continue; /* EINTR */
		if (fds[POLL_LISTENER].revents)
			on_first_call(run, fds[POLL_LISTENER].revents);
		if (fds[POLL_ERRORS].revents)
			(void)on_error(run, &fds[POLL_ERRORS]);
		if (fds[POLL_SIGNALS].revents)
			on_signal(run);
		if (fds[POLL_CONTROL].revents)
			on_event(run, &fds[POLL_CONTROL]);
		if (fds[POLL_REPORTS].revents)
			on_report(run, &fds[POLL_REPORTS]);
		if (fds[POLL_EGRESS].revents)
			on_decision(run);
	}
	/* init ends right after its last word: hear what is still in the pipes */
	while (fds[POLL_CONTROL].fd >= 0 && !run->ended)
		on_event(run, &fds[POLL_CONTROL]);
	while (fds[POLL_ERRORS].fd >= 0 && on_error(run, &fds[POLL_ERRORS]))
		;
	/*
	 * A denial is sent before the call is answered, so what was denied is in the queue. The
	 * broker leaves when nobody is left inside; waiting for it would only mean waiting
	 * for the kernel to take the mounts apart.
	 */
	if (fds[POLL_REPORTS].fd >= 0)
		on_report(run, &fds[POLL_REPORTS]);
	egress_finish(&run->egress);
	on_decision(run);
}

static void fill_result(const struct run *run, const struct rusage *usage, uint64_t started_ms,
			struct run_result *ret)
{
	*ret = (struct run_result){
		.wall_ms = now_ms() - started_ms,
		.cpu_ms = (uint64_t)(usage->ru_utime.tv_sec + usage->ru_stime.tv_sec) * 1000 +
			  (uint64_t)(usage->ru_utime.tv_usec + usage->ru_stime.tv_usec) / 1000,
		.max_rss = (uint64_t)usage->ru_maxrss * 1024,
		.timed_out = run->warned,
	};
	if (!run->ended) /* init was killed with everything inside */
		ret->signal = SIGKILL;
	else if (WIFSIGNALED(run->status))
		ret->signal = WTERMSIG(run->status);
	ret->exit_code = ret->signal ? 128 + ret->signal : WEXITSTATUS(run->status);
	if (run->warned)
		ret->exit_code = 124;
}

/*
 * Died of the terminal's interrupt: the rest of the job (a pipeline, a script) would have had
 * it too, were the command not in a group of its own.
 */
static void follow_interrupt(const struct run *run)
{
	int sig = run->ended && WIFSIGNALED(run->status) ? WTERMSIG(run->status) : 0;

	if (!run->given || (sig != SIGINT && sig != SIGQUIT))
		return;
	(void)signal(sig, SIG_IGN);
	(void)kill(0, sig);
}

static int supervise(struct run *run, const sigset_t *mask, struct run_result *ret, struct error *e)
{
	const struct run_request *req = run->req;
	struct native_command cmd = { .argv = req->argv,
				      .mask = *mask,
				      .tty = run->given ? run->tty : -1 };
	uint64_t started = now_ms();
	struct rusage usage = { 0 };
	int r = 0;

	if (run->plan->egress)
		r = egress_start(&run->egress, req->proxy_program, req->policy, e);
	if (r == 0)
		r = native_start(run->plan, &cmd, &run->child, e);
	if (r < 0)
		return r;
	/* from here on same-user processes cannot read our memory or take our descriptors */
	(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	if (req->policy->limits.timeout_ms)
		run->deadline_ms = started + req->policy->limits.timeout_ms;
	loop(run);
	(void)wait4(run->child.pid, NULL, 0, &usage);
	follow_interrupt(run);
	take_terminal_back(run);
	if (run->failed) {
		*e = run->failure;
		return -e->code;
	}
	report_prune(req->report);
	fill_result(run, &usage, started, ret);
	return 0;
}

static const char *join_words(struct arena *a, char *const *argv)
{
	_cleanup_buf_ struct buf b = BUF_INIT(BUF_MAX_TEXT);

	for (; *argv; argv++) {
		buf_puts(&b, *argv);
		if (argv[1])
			buf_putc(&b, ' ');
	}
	return arena_strdup(a, buf_str(&b));
}

/* Missing directories are made, and then looked at for real. */
static int compile_prepared(struct run *run, struct arena *a, struct plan_facts *facts,
			    struct error *e)
{
	int r = plan_prepare(run->req->policy, e);

	facts->dry = false;
	return r < 0 ? r : plan_compile(a, run->req->policy, facts, &path_host_view, &run->plan, e);
}

int run_command(const struct run_request *req, struct run_result *ret, struct error *e)
{
	_cleanup_arena_ struct arena *a = arena_new();
	struct run run = { .req = req,
			   .child = NATIVE_CHILD_INIT,
			   .egress = EGRESS_INIT,
			   .signals = -1,
			   .tty = -1,
			   .listener = -1,
			   .user_ns = -1,
			   .mount_ns = -1,
			   .reports = { -1, -1 } };
	struct plan_facts facts;
	sigset_t old, blocked;
	int r;

	/* a caller that ignores it would make the kernel swallow the exit status */
	(void)signal(SIGCHLD, SIG_DFL);
	plan_gather_facts(a, req->environ_in, &facts);
	facts.watch = req->report_reads;
	/* everything is judged before the first directory is made */
	facts.dry = true;
	r = plan_compile(a, req->policy, &facts, &path_host_view, &run.plan, e);
	if (r == 0 && plan_must_prepare(req->policy))
		r = compile_prepared(&run, a, &facts, e);
	if (r < 0)
		return r;
	for (size_t i = 0; req->note && i < run.plan->notes.n; i++)
		req->note(req->ctx, run.plan->notes.v[i].text);
	run.command = join_words(a, req->argv);
	if (run.plan->broker &&
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, run.reports) < 0)
		return error_set(e, errno, "cannot make a socket: %s", strerror(errno));
	block_signals(&old, &blocked);
	run.signals = signalfd(-1, &blocked, SFD_CLOEXEC | SFD_NONBLOCK);
	find_terminal(&run);
	r = run.signals < 0 ? error_set(e, errno, "cannot make a signalfd: %s", strerror(errno))
			    : supervise(&run, &old, ret, e);
	(void)sigprocmask(SIG_SETMASK, &old, NULL);
	egress_stop(&run.egress);
	fd_close(run.tty);
	fd_close(run.signals);
	fd_close(run.child.control);
	fd_close(run.child.errors);
	fd_close(run.child.pidfd);
	fd_close(run.listener);
	fd_close(run.user_ns);
	fd_close(run.mount_ns);
	fd_close(run.reports[0]);
	fd_close(run.reports[1]);
	return r;
}
