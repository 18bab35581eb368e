/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ambit run: one session, and the terminal and signals of the process that waits for it.
 * Signals are passed on to the command: to the process for those meant for one
 * (TERM, HUP, USR1, USR2), to its group for those a terminal sends.
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
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/sys.h"
#include "base/text.h"
#include "supervise/prompt.h"
#include "supervise/relay.h"

#define DRAIN_MS 1000 /* for the rest of the output of a command that had to be ended */
#define PROMPT_MS 60000 /* then the answer is no */
#define PROMPT_LOOK_MS 100
#define PROMPT_ECHO_MS 2000 /* how long after a question a stop may still be because of it */
#define JOB_PAUSE_NS 20000000 /* after an interrupt, for the rest of the job */

#define LOOK_MS 300 /* between looks of who observes */

struct run {
	const struct run_request *req;
	struct session *session;
	struct relay *relay; /* NULL = the command's bytes go directly */
	bool log_failed; /* and it was told */
	int signals;
	int tty; /* our controlling terminal, -1 = none */
	bool given;
	pid_t inner_group;
	uint64_t prompted_ms; /* when a question was last over */
};

/* The command's terminal is a pty of ours: its keys, size and modes are ours to carry. */
static bool has_pty(const struct run *run)
{
	return run->relay && relay_terminal_path(run->relay);
}

static void begin_message(const struct run *run)
{
	if (run->relay)
		relay_begin_message(run->relay);
}

static void end_message(const struct run *run)
{
	if (run->relay)
		relay_end_message(run->relay);
}

static void tell_note(void *ctx, const char *text)
{
	const struct run *run = ctx;

	begin_message(run);
	if (run->req->note)
		run->req->note(run->req->ctx, text);
	end_message(run);
}

static void tell_chosen(void *ctx, const char *backend, const char *why)
{
	const struct run *run = ctx;

	if (run->req->chosen)
		run->req->chosen(run->req->ctx, backend, why);
}

static void tell_denied(void *ctx, const struct report_entry *entry)
{
	const struct run *run = ctx;

	begin_message(run);
	if (run->req->tell)
		run->req->tell(run->req->ctx, entry);
	end_message(run);
}

static void tell_unlogged(void *ctx, const struct error *e)
{
	const struct run *run = ctx;

	begin_message(run);
	if (run->req->unlogged)
		run->req->unlogged(run->req->ctx, e);
	end_message(run);
}

/* What was read is shown escaped. */
static void tell_control(struct run *run, const char *text, const char *rest)
{
	_cleanup_buf_ struct buf b = BUF_INIT(BUF_MAX_TEXT);

	text_append_safe(&b, text);
	buf_puts(&b, rest);
	tell_note(run, buf_str(&b));
}

static bool is_group_signal(int sig)
{
	return sig == SIGINT || sig == SIGQUIT || sig == SIGTSTP || sig == SIGCONT ||
	       sig == SIGWINCH;
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
	(void)snprintf(path, sizeof(path), "/proc/%d/task/%d/children", session_pid(run->session),
		       session_pid(run->session));
	if (fd_read_file(AT_FDCWD, path, 4096, &text, NULL) < 0)
		return -1;
	return (pid_t)text_leading_u64(text);
}

static void follow_continue(struct run *run)
{
	if (has_pty(run)) {
		relay_resume(run->relay);
	} else if (run->tty >= 0 && tcgetpgrp(run->tty) == getpgrp()) {
		pid_t group = command_group(run);

		if (group > 0)
			run->given = tcsetpgrp(run->tty, group) == 0;
	}
	session_signal(run->session, SIGCONT, true);
}

/* The command stopped: on a terminal the whole job stops, as the shell expects. */
static void follow_stop(void *ctx, int sig)
{
	struct run *run = ctx;

	if (run->tty < 0)
		return;
	/* it met the terminal while a question was on it; that is over */
	if ((sig == SIGTTIN || sig == SIGTTOU) && run->prompted_ms &&
	    sys_now_ms() - run->prompted_ms < PROMPT_ECHO_MS) {
		session_signal(run->session, SIGCONT, true);
		return;
	}
	/* the shell may have put us in the foreground only after we looked */
	if (!has_pty(run) && (sig == SIGTTIN || sig == SIGTTOU) &&
	    tcgetpgrp(run->tty) == getpgrp()) {
		follow_continue(run);
		return;
	}
	if (session_freeze(run->session, sig))
		return; /* called again when all have stopped */
	take_terminal_back(run);
	if (run->relay)
		relay_pause(run->relay);
	(void)kill(sig == SIGSTOP ? getpid() : 0, SIGSTOP);
}

static void on_signal(struct run *run)
{
	struct signalfd_siginfo info;

	if (read(run->signals, &info, sizeof(info)) != sizeof(info))
		return;
	if (info.ssi_signo == SIGWINCH && run->relay)
		relay_resize(run->relay);
	if (info.ssi_signo == SIGCONT)
		follow_continue(run);
	else if (info.ssi_signo != SIGWINCH || !has_pty(run)) /* the pty tells it by itself */
		session_signal(run->session, (int)info.ssi_signo,
			       is_group_signal((int)info.ssi_signo));
}

/*
 * Died of the terminal's interrupt: the rest of the job (a pipeline, a script) would have had
 * it too, were the command not in a group of its own.
 */
static void follow_interrupt(const struct run *run, int sig)
{
	bool ours =
		run->given || (has_pty(run) && run->tty >= 0 && tcgetpgrp(run->tty) == getpgrp());

	if (!ours || (sig != SIGINT && sig != SIGQUIT))
		return;
	(void)signal(sig, SIG_IGN);
	(void)kill(0, sig);
	/* each of them would have had it before it could see our end of a pipe close */
	(void)nanosleep(&(struct timespec){ .tv_nsec = JOB_PAUSE_NS }, NULL);
}

/* What the control descriptor has brought by now; the last accepted line counts. */
static const struct policy *read_control(struct run *run)
{
	const struct policy *p, *last = NULL;
	struct control *c = run->req->control;
	struct error e = { 0 };
	int r;

	while (c && (r = control_next(c, &p, &e)) != 0) {
		for (size_t i = 0; r > 0 && i < p->notes.n; i++)
			tell_control(run, p->notes.v[i].text, "");
		if (r > 0)
			last = p;
		else
			tell_control(run, e.text, "; ignored, the network lists stay as they are");
	}
	return last;
}

static void on_control(struct run *run)
{
	const struct policy *p = read_control(run);
	struct error e = { 0 };

	if (p && session_change_network(run->session, p, &e) < 0)
		tell_note(run, e.text);
}

struct session *run_session(struct run *run)
{
	return run->session;
}

static int sooner(int a, int b)
{
	return a < 0 || (b >= 0 && b < a) ? b : a;
}

static int wait_for_session(void *ctx)
{
	const struct run *run = ctx;

	/* who waits for a person still has to hide what appears */
	return sooner(session_wait_ms(run->session), PROMPT_LOOK_MS);
}

static bool hold_limits(void *ctx)
{
	const struct run *run = ctx;

	return session_hold(run->session);
}

char run_prompt(struct run *run, const char *question, const char *again, const char *keys)
{
	const struct prompt prompt = { .tty = run->tty,
				       .signals = run->signals,
				       .timeout_ms = PROMPT_MS,
				       .wait_ms = wait_for_session,
				       .look = hold_limits,
				       .ctx = run };
	char key;

	if (run->tty < 0 || (!run->given && tcgetpgrp(run->tty) != getpgrp()))
		return 0;
	take_terminal_back(run);
	if (run->relay)
		relay_pause(run->relay);
	key = prompt_ask(&prompt, question, again, keys);
	follow_continue(run);
	run->prompted_ms = sys_now_ms();
	return key;
}

static void ask(void *ctx, const struct egress_record *r)
{
	struct run *run = ctx;

	run->req->ask(run->req->ctx, run, r);
}

static void allow(void *ctx, const struct egress_record *r)
{
	struct run *run = ctx;

	if (r->kind == EGRESS_ASK)
		session_answer(run->session, r->id, EGRESS_ALLOW_RUN);
}

static void tell_used(void *ctx, const struct violation *v)
{
	const struct run *run = ctx;

	run->req->observer->used(run->req->observer->ctx, v);
}

static void tell_decision(void *ctx, const struct egress_record *r)
{
	const struct run *run = ctx;

	run->req->observer->decision(run->req->observer->ctx, r);
}

/* How long to wait; who observes looks now and then. */
static int wait_ms(const struct run *run)
{
	int ms = session_wait_ms(run->session);

	if (run->relay)
		ms = sooner(ms, relay_wait_ms(run->relay));
	if (!run->req->observer)
		return ms;
	run->req->observer->look(run->req->observer->ctx, session_pid(run->session));
	return ms < 0 || ms > LOOK_MS ? LOOK_MS : ms;
}

static void ask_write(void *ctx, const struct violation *v)
{
	struct run *run = ctx;

	run->req->ask_write(run->req->ctx, run, v);
}

static void on_owner(struct run *run, int events)
{
	if (events & POLLIN && run->req->heard)
		run->req->heard(run->req->ctx, run->session);
	if (events & (POLLHUP | POLLERR | POLLRDHUP))
		session_kill(run->session);
}

/* The command's bytes went on; what follows from that. */
static void on_relay(struct run *run, const struct pollfd *fds, size_t n)
{
	struct seslog *log = run->req->log;
	char text[128];

	relay_step(run->relay, fds, n);
	if (relay_is_over(run->relay))
		session_reach(run->session, LIMIT_OUTPUT);
	if (!log || run->log_failed || !seslog_failure(log))
		return;
	run->log_failed = true;
	(void)snprintf(text, sizeof(text), "the session log cannot be written: %.64s",
		       strerror(seslog_failure(log)));
	tell_note(run, text);
}

enum { WAIT_SESSION, WAIT_SIGNALS, WAIT_CONTROL, WAIT_OWNER, WAIT_RELAY };

static void wait_for_end(struct run *run)
{
	struct pollfd fds[WAIT_RELAY + RELAY_POLL_MAX] = {
		[WAIT_SESSION] = { .fd = session_fd(run->session), .events = POLLIN },
		[WAIT_SIGNALS] = { .fd = run->signals, .events = POLLIN },
		[WAIT_CONTROL] = { .fd = -1, .events = POLLIN },
		[WAIT_OWNER] = { .fd = run->req->owner > 0 ? run->req->owner : -1,
				 .events = run->req->heard ? POLLIN | POLLRDHUP : POLLRDHUP },
	};
	size_t n = 0;

	do {
		fds[WAIT_CONTROL].fd = run->req->control ? run->req->control->fd : -1;
		if (run->relay)
			n = relay_poll(run->relay, fds + WAIT_RELAY);
		if (poll(fds, WAIT_RELAY + n, wait_ms(run)) < 0)
			continue; /* EINTR */
		if (fds[WAIT_SIGNALS].revents)
			on_signal(run);
		if (fds[WAIT_CONTROL].revents)
			on_control(run);
		if (fds[WAIT_OWNER].revents)
			on_owner(run, fds[WAIT_OWNER].revents);
		if (run->relay)
			on_relay(run, fds + WAIT_RELAY, n);
	} while (!session_step(run->session));
}

/*
 * Nobody is left inside. Who reads slowly is waited for, as he would have made the command
 * wait; a signal to us ends that, and after a limit there is not much of it.
 */
static void pass_on_rest(struct run *run)
{
	struct pollfd fds[1 + RELAY_POLL_MAX] = { { .fd = run->signals, .events = POLLIN } };
	uint64_t end = 0;

	while (!relay_drain(run->relay)) {
		size_t n = relay_poll(run->relay, fds + 1);

		if (session_limit(run->session) >= 0 && !end)
			end = sys_now_ms() + DRAIN_MS;
		if ((end && sys_now_ms() >= end) ||
		    (poll(fds, 1 + n, end ? 50 : -1) > 0 && fds[0].revents))
			break;
	}
	if (relay_is_over(run->relay))
		session_reach(run->session, LIMIT_OUTPUT);
}

/* A container has a session of its own, which our terminal is not of. */
static bool is_contained(const struct policy *p)
{
	return p->backend == BACKEND_PODMAN || p->backend == BACKEND_DOCKER;
}

static int start_session(struct run *run, struct session_request *session, struct error *e)
{
	const struct relay_setup setup = { .log = run->req->log,
					   .output_max = session->policy->limits.output,
					   .tty = run->tty,
					   .own_terminal = is_contained(session->policy) };
	int r = relay_new(&setup, &run->relay, e);

	if (r < 0)
		return r;
	if (run->relay)
		memcpy(session->stdio, relay_inner(run->relay), sizeof(session->stdio));
	if (has_pty(run)) {
		run->given = false; /* the terminal stays ours */
		session->tty = relay_terminal(run->relay);
		session->own_terminal = relay_terminal_path(run->relay);
	}
	r = session_start(session, &run->session, e);
	if (r == 0 && run->req->log)
		seslog_start(run->req->log, session_name(run->session), run->req->argv);
	if (r == 0 && run->relay)
		relay_started(run->relay);
	return r;
}

static void end_relay(struct run *run, int r, struct run_result *ret)
{
	enum relay_end how = r == 0 && !ret->signal ? RELAY_ENDED : RELAY_KILLED;
	uint64_t output = relay_free(TAKE_PTR(run->relay), how);

	if (r < 0)
		return;
	ret->peak.output = output;
	if (run->req->log)
		seslog_end(run->req->log, ret->exit_code);
}

/*
 * Processes of ours for which the kernel takes namespaces apart. They run nothing any more, and
 * the machine's init reaps them; unless it is the program that called us, in a container, which
 * knows nothing of them.
 */
static void leave(struct session *s, bool last)
{
	static struct session *left; /* it is not lost, for who looks for lost memory */
	pid_t remains[SESSION_REMAINS_MAX_];
	bool reaped = getppid() != 1;

	if (last && reaped && session_goes_with_us(s))
		left = s;
	else
		session_free(s, reaped ? remains : NULL);
	(void)left;
}

static int supervise(struct run *run, const struct run_request *req, const sigset_t *mask,
		     struct run_result *ret, struct error *e)
{
	const struct session_hooks hooks = { .chosen = tell_chosen,
					     .note = tell_note,
					     .denied = tell_denied,
					     .ask = req->ask        ? ask
						    : req->observer ? allow
								    : NULL,
					     .used = req->observer ? tell_used : NULL,
					     .decision = req->observer ? tell_decision : NULL,
					     .ask_write = req->ask_write ? ask_write : NULL,
					     .stopped = follow_stop,
					     .unlogged = tell_unlogged };
	struct session_request session = { .policy = req->policy,
					   .argv = req->argv,
					   .environ_in = req->environ_in,
					   .report = req->report,
					   .audit = req->audit,
					   .proxy_program = req->proxy_program,
					   .report_reads = req->report_reads,
					   .learn = req->observer != NULL,
					   .measure = req->observer != NULL,
					   .stdio = { -1, req->out > 2 ? req->out : -1, -1 },
					   .tty = run->given ? run->tty : -1,
					   .mask = *mask,
					   .hooks = &hooks,
					   .ctx = run };
	const struct policy *changed = read_control(run);
	int r;

	if (changed)
		session.policy = changed;
	r = start_session(run, &session, e);
	if (r < 0) {
		(void)relay_free(TAKE_PTR(run->relay), RELAY_KILLED);
		return r;
	}
	/* from here on same-user processes cannot read our memory or take our descriptors */
	(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	wait_for_end(run);
	if (run->relay)
		pass_on_rest(run);
	r = session_end(run->session, ret, e);
	if (r == 0)
		follow_interrupt(run, ret->signal);
	take_terminal_back(run);
	end_relay(run, r, ret);
	leave(TAKE_PTR(run->session), req->last);
	return r;
}

int run_command(const struct run_request *req, struct run_result *ret, struct error *e)
{
	struct run run = { .req = req, .signals = -1, .tty = -1 };
	sigset_t old, blocked;
	int r;

	/* a caller that ignores it would make the kernel swallow the exit status */
	(void)signal(SIGCHLD, SIG_DFL);
	block_signals(&old, &blocked);
	run.signals = signalfd(-1, &blocked, SFD_CLOEXEC | SFD_NONBLOCK);
	find_terminal(&run);
	r = run.signals < 0 ? error_set(e, errno, "cannot make a signalfd: %s", strerror(errno))
			    : supervise(&run, req, &old, ret, e);
	(void)sigprocmask(SIG_SETMASK, &old, NULL);
	fd_close(run.tty);
	fd_close(run.signals);
	return r;
}
