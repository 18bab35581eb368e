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
#include <unistd.h>

#include "base/fd.h"
#include "base/sys.h"
#include "base/text.h"
#include "supervise/prompt.h"

#define PROMPT_MS 60000 /* then the answer is no */
#define PROMPT_ECHO_MS 2000 /* how long after a question a stop may still be because of it */

#define LOOK_MS 300 /* between looks of who observes */

struct run {
	const struct run_request *req;
	struct session *session;
	int signals;
	int tty; /* our controlling terminal, -1 = none */
	bool given;
	pid_t inner_group;
	uint64_t prompted_ms; /* when a question was last over */
};

static void tell_note(void *ctx, const char *text)
{
	const struct run *run = ctx;

	if (run->req->note)
		run->req->note(run->req->ctx, text);
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

	if (run->req->tell)
		run->req->tell(run->req->ctx, entry);
}

static void tell_unlogged(void *ctx, const struct error *e)
{
	const struct run *run = ctx;

	if (run->req->unlogged)
		run->req->unlogged(run->req->ctx, e);
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
	if (run->tty >= 0 && tcgetpgrp(run->tty) == getpgrp()) {
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
	if ((sig == SIGTTIN || sig == SIGTTOU) && tcgetpgrp(run->tty) == getpgrp()) {
		follow_continue(run);
		return;
	}
	if (session_freeze(run->session, sig))
		return; /* called again when all have stopped */
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
		session_signal(run->session, (int)info.ssi_signo,
			       is_group_signal((int)info.ssi_signo));
}

/*
 * Died of the terminal's interrupt: the rest of the job (a pipeline, a script) would have had
 * it too, were the command not in a group of its own.
 */
static void follow_interrupt(const struct run *run, int sig)
{
	if (!run->given || (sig != SIGINT && sig != SIGQUIT))
		return;
	(void)signal(sig, SIG_IGN);
	(void)kill(0, sig);
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

char run_prompt(struct run *run, const char *question, const char *keys)
{
	char key;

	if (run->tty < 0 || (!run->given && tcgetpgrp(run->tty) != getpgrp()))
		return 0;
	take_terminal_back(run);
	key = prompt_ask(run->tty, run->signals, question, keys, PROMPT_MS);
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

static void wait_for_end(struct run *run)
{
	struct pollfd fds[] = { { .fd = session_fd(run->session), .events = POLLIN },
				{ .fd = run->signals, .events = POLLIN },
				{ .fd = -1, .events = POLLIN },
				{ .fd = run->req->owner > 0 ? run->req->owner : -1,
				  .events = run->req->heard ? POLLIN | POLLRDHUP : POLLRDHUP } };

	do {
		fds[2].fd = run->req->control ? run->req->control->fd : -1;
		if (poll(fds, ARRAY_LEN(fds), wait_ms(run)) < 0)
			continue; /* EINTR */
		if (fds[1].revents)
			on_signal(run);
		if (fds[2].revents)
			on_control(run);
		if (fds[3].revents)
			on_owner(run, fds[3].revents);
	} while (!session_step(run->session));
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
	r = session_start(&session, &run->session, e);
	if (r < 0)
		return r;
	/* from here on same-user processes cannot read our memory or take our descriptors */
	(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	wait_for_end(run);
	r = session_end(TAKE_PTR(run->session), ret, e);
	if (r == 0)
		follow_interrupt(run, ret->signal);
	take_terminal_back(run);
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
