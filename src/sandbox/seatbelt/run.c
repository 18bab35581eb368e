/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One command under sandbox-exec, supervised until it ends.
 *
 *   ambit ─┬─ fork: own process group ─ sandbox-exec -p PROFILE -- ambit WORD FD ... ─ command
 *          └─ fork: guard, outside, own session
 *
 * The waiting is done with sigwait(): what is to be passed on, SIGCHLD and the clock are all
 * signals, taken one by one, so that there are no handlers and nothing is shared with them.
 *
 * Always: the command's group is killed before its leader is reaped, so that the number cannot be
 * somebody else's by then. When ambit dies, however, its end of the guard's pipe closes: the
 * guard kills the group and removes the run's directory. It is not in the sandbox, so nobody
 * inside can signal it.
 *
 * Trust: nothing that the command says is read. What comes over the pipe of struct error is from
 * our own program, which closes it before it becomes the command.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/sys.h"
#include "policy/inputs.h"
#include "sandbox/seatbelt/internal.h"

#define GRACE_MS 2000 /* between SIGTERM and SIGKILL at the time limit */
#define PROFILE_ARGUMENT_MAX ((size_t)64 << 10) /* longer ones are given in a file */
#define INNER_ERRORS 3 /* the pipe's number on the way in */
#define EXIT_TIMED_OUT 124

static const int forwarded[] = { SIGINT,  SIGTERM, SIGHUP,   SIGQUIT,
				 SIGUSR1, SIGUSR2, SIGWINCH, SIGTSTP };

struct seatbelt {
	struct arena *a;
	const struct seatbelt_request *req;
	struct seatbelt_scratch scratch;
	char *const *argv; /* of sandbox-exec */
	char *const *env;
	sigset_t mask; /* the caller's */
	sigset_t waited; /* what sigwait() takes */
	pid_t child, guard; /* child: also the number of its group */
	int errors, life; /* pipes: to read from the child; the guard's, to hold */
	int tty; /* -1 = none */
	bool given; /* the command's side has the foreground */
	uint64_t start_ms, deadline_ms; /* 0 = no limit */
	bool timed_out;
};

/* --- what is started ---------------------------------------------------------------- */

static bool sets(const struct policy *p, const char *name)
{
	for (size_t i = 0; i < p->env.set.n; i++) {
		if (strcmp(p->env.set.v[i].name, name) == 0)
			return true;
	}
	return false;
}

/* The places of this run, unless the user has said otherwise. */
static void put_variable(const struct seatbelt *s, char ***env, size_t *n, const char *name,
			 const char *value)
{
	char *entry = arena_printf(s->a, "%s=%s", name, value);
	size_t len = strlen(name) + 1;

	if (sets(s->req->policy, name))
		return;
	for (size_t i = 0; i < *n; i++) {
		if (strncmp((*env)[i], entry, len) == 0) {
			(*env)[i] = entry;
			return;
		}
	}
	*ARENA_PUSH(s->a, *env, *n) = entry;
}

static void make_environment(struct seatbelt *s)
{
	const struct policy *p = s->req->policy;
	char **given = policy_environment(p, s->a, s->req->environ_in, NULL), **env = NULL;
	size_t n = 0;

	for (; *given; given++)
		*ARENA_PUSH(s->a, env, n) = *given;
	if (p->fs.tmp == TMP_PRIVATE)
		put_variable(s, &env, &n, "TMPDIR", s->scratch.tmp);
	if (s->scratch.home)
		put_variable(s, &env, &n, "HOME", s->scratch.home);
	*ARENA_PUSH(s->a, env, n) = NULL;
	s->env = env;
}

/* An argument of this length is refused by some systems, and stands in every list of processes. */
static int put_profile(const struct seatbelt *s, const struct buf *profile, struct error *e)
{
	_cleanup_fd_ int fd =
		open(s->scratch.profile, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	int r = fd < 0 ? -errno : fd_write_all(fd, buf_str(profile), profile->len);

	return r < 0 ? error_set(e, -r, "%s: %s", s->scratch.profile, strerror(-r)) : 0;
}

static int make_arguments(struct seatbelt *s, const char *shared_tmp, struct error *e)
{
	const struct seatbelt_facts facts = { .tmp = s->req->policy->fs.tmp == TMP_PRIVATE
							     ? s->scratch.tmp
							     : NULL,
					      .home = s->scratch.home,
					      .shared_tmp = shared_tmp,
					      .self = s->req->self };
	_cleanup_buf_ struct buf profile = BUF_INIT(BUF_MAX_TEXT);
	const char **argv = NULL;
	size_t n = 0;
	bool in_file;
	int r = seatbelt_profile(s->a, s->req->policy, &facts, &profile, e);

	if (r < 0)
		return r;
	in_file = profile.len > PROFILE_ARGUMENT_MAX;
	if (in_file) {
		r = put_profile(s, &profile, e);
		if (r < 0)
			return r;
	}
	*ARENA_PUSH(s->a, argv, n) = s->req->program;
	*ARENA_PUSH(s->a, argv, n) = in_file ? "-f" : "-p";
	*ARENA_PUSH(s->a, argv, n) =
		in_file ? s->scratch.profile : arena_strndup(s->a, buf_str(&profile), profile.len);
	*ARENA_PUSH(s->a, argv, n) = "--";
	*ARENA_PUSH(s->a, argv, n) = s->req->self;
	*ARENA_PUSH(s->a, argv, n) = SEATBELT_ENTER_WORD;
	*ARENA_PUSH(s->a, argv, n) = arena_printf(s->a, "%d", INNER_ERRORS);
	for (char *const *word = s->req->argv; *word; word++)
		*ARENA_PUSH(s->a, argv, n) = *word;
	*ARENA_PUSH(s->a, argv, n) = NULL;
	s->argv = (char *const *)(uintptr_t)argv;
	return 0;
}

static int prepare(struct seatbelt *s, struct error *e)
{
	const char *base = inputs_variable(s->req->environ_in, "TMPDIR");
	char real[PATH_MAX];
	int r;

	if (access(s->req->program, X_OK) < 0)
		return error_set(e, errno, "%s, which confines the command: %s", s->req->program,
				 strerror(errno));
	base = base && *base == '/' ? base : "/tmp";
	r = scratch_make(s->a, base, s->req->policy, &s->scratch, e);
	if (r < 0)
		return r;
	make_environment(s);
	return make_arguments(s, realpath(base, real) ? real : NULL, e);
}

/* --- the child, up to exec ----------------------------------------------------------- */

static int enter_limits(const struct policy *p, struct error *e)
{
	const struct rlimit no_core = { 0, 0 };
	struct rlimit file = { 0 };

	(void)setrlimit(RLIMIT_CORE, &no_core);
	if (p->limits.disk == 0)
		return 0;
	/* said by seatbelt_hold(): each file, not all together */
	if (getrlimit(RLIMIT_FSIZE, &file) < 0)
		return error_set(e, errno, "limits.disk: %s", strerror(errno));
	if (file.rlim_max == RLIM_INFINITY || p->limits.disk < file.rlim_max)
		file.rlim_max = p->limits.disk;
	file.rlim_cur = file.rlim_max;
	return setrlimit(RLIMIT_FSIZE, &file) < 0
		       ? error_set(e, errno, "limits.disk: %s", strerror(errno))
		       : 0;
}

_Noreturn static void start_child(const struct seatbelt *s, int errors)
{
	const struct policy *p = s->req->policy;
	struct error e = { 0 };
	int r;

	(void)setpgid(0, 0);
	if (s->given)
		(void)tcsetpgrp(s->tty, getpid());
	/* nothing of the caller's but 0-2 reaches the command; the pipe survives one exec */
	if (errors != INNER_ERRORS && dup2(errors, INNER_ERRORS) < 0)
		_exit(SEATBELT_FAILED);
	r = fcntl(INNER_ERRORS, F_SETFD, 0) < 0 ? -errno : sys_close_from(INNER_ERRORS + 1);
	if (r < 0)
		(void)error_set(&e, -r, "cannot close inherited files: %s", strerror(-r));
	else if (chdir(p->cwd) < 0)
		(void)error_set(&e, errno, "%s: %s", p->cwd, strerror(errno));
	else if (enter_limits(p, &e) == 0) {
		(void)sigprocmask(SIG_SETMASK, &s->mask, NULL);
		(void)execve(s->argv[0], s->argv, s->env);
		(void)error_set(&e, errno, "%s: %s", s->argv[0], strerror(errno));
	}
	(void)!write(INNER_ERRORS, &e, sizeof(e));
	_exit(SEATBELT_FAILED);
}

/* --- the guard ------------------------------------------------------------------------ */

_Noreturn static void be_guard(const struct seatbelt *s, int life)
{
	char byte;
	ssize_t n;

	(void)setsid();
	if (dup2(life, STDIN_FILENO) < 0 || sys_close_from(STDIN_FILENO + 1) < 0)
		_exit(1);
	do
		n = read(STDIN_FILENO, &byte, 1);
	while (n < 0 && errno == EINTR);
	/* a byte: ambit has done it, and is about to end */
	if (n <= 0) {
		(void)kill(-s->child, SIGKILL);
		scratch_remove(&s->scratch);
	}
	_exit(0);
}

static void dismiss_guard(struct seatbelt *s)
{
	if (s->life >= 0)
		(void)!write(s->life, "", 1);
	fd_close(TAKE_FD(s->life));
	while (s->guard > 0 && waitpid(s->guard, NULL, 0) < 0 && errno == EINTR)
		;
	s->guard = -1;
}

static int make_pipe(int ret[2], struct error *e)
{
	int r = sys_pipe(ret);

	return r < 0 ? error_set(e, -r, "cannot make a pipe: %s", strerror(-r)) : 0;
}

static int start_both(struct seatbelt *s, struct error *e)
{
	int errors[2] = { -1, -1 }, life[2] = { -1, -1 };
	int r = make_pipe(errors, e);

	if (r == 0)
		r = make_pipe(life, e);
	s->errors = errors[0];
	s->life = life[1];
	if (r == 0) {
		s->child = fork();
		if (s->child == 0)
			start_child(s, errors[1]);
		if (s->child < 0)
			r = error_set(e, errno, "cannot make a process: %s", strerror(errno));
	}
	if (r == 0) {
		(void)setpgid(s->child, s->child); /* whoever comes first */
		s->guard = fork();
		if (s->guard == 0)
			be_guard(s, life[0]);
		if (s->guard < 0)
			r = error_set(e, errno, "cannot make a process: %s", strerror(errno));
	}
	fd_close(errors[1]);
	fd_close(life[0]);
	return r;
}

/* --- signals and the terminal ---------------------------------------------------------- */

static void take_no_notice(int sig)
{
	(void)sig;
}

/*
 * A handler that does nothing, so that a blocked signal is kept for sigwait() even where its
 * default is to be ignored. What the caller ignores (nohup) stays ignored, inside too.
 */
static void take_signal(struct seatbelt *s, int sig)
{
	const struct sigaction catch = { .sa_handler = take_no_notice };
	struct sigaction old;

	if (sig != SIGCHLD && sig != SIGALRM && sigaction(sig, NULL, &old) == 0 &&
	    old.sa_handler == SIG_IGN)
		return;
	(void)sigaction(sig, &catch, NULL);
	(void)sigaddset(&s->waited, sig);
}

static void take_signals(struct seatbelt *s)
{
	sigset_t blocked;

	(void)sigemptyset(&s->waited);
	for (size_t i = 0; i < ARRAY_LEN(forwarded); i++)
		take_signal(s, forwarded[i]);
	take_signal(s, SIGCONT);
	take_signal(s, SIGCHLD);
	take_signal(s, SIGALRM);
	blocked = s->waited;
	(void)sigaddset(&blocked, SIGTTOU); /* so that tcsetpgrp() works */
	(void)sigprocmask(SIG_BLOCK, &blocked, &s->mask);
}

static void find_terminal(struct seatbelt *s)
{
	s->tty = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
	s->given = s->tty >= 0 && tcgetpgrp(s->tty) == getpgrp();
}

static void take_terminal_back(struct seatbelt *s)
{
	if (s->given)
		(void)tcsetpgrp(s->tty, getpgrp());
	s->given = false;
}

static void follow_continue(struct seatbelt *s)
{
	if (s->tty >= 0 && tcgetpgrp(s->tty) == getpgrp())
		s->given = tcsetpgrp(s->tty, s->child) == 0;
	(void)kill(-s->child, SIGCONT);
}

/* The command stopped: on a terminal the whole job stops, as the shell expects. */
static void follow_stop(struct seatbelt *s, int sig)
{
	if (s->tty < 0)
		return;
	/* the shell may have put us in the foreground only after we looked */
	if ((sig == SIGTTIN || sig == SIGTTOU) && tcgetpgrp(s->tty) == getpgrp()) {
		follow_continue(s);
		return;
	}
	take_terminal_back(s);
	(void)kill(sig == SIGSTOP ? getpid() : 0, SIGSTOP);
}

/* --- until it ends ----------------------------------------------------------------------- */

static void set_clock(uint64_t ms)
{
	const struct itimerval in = { .it_value = { .tv_sec = (time_t)(ms / 1000),
						    .tv_usec = (suseconds_t)(ms % 1000 * 1000) } };

	(void)setitimer(ITIMER_REAL, &in, NULL);
}

/* Early: it is set again. At the limit: asked to end. Later: ended. */
static void on_clock(struct seatbelt *s)
{
	uint64_t now = sys_now_ms();

	if (s->deadline_ms == 0)
		return;
	if (now < s->deadline_ms) {
		set_clock(s->deadline_ms - now);
		return;
	}
	(void)kill(-s->child, s->timed_out ? SIGKILL : SIGTERM);
	(void)kill(-s->child, SIGCONT); /* who is stopped would not hear of it */
	s->timed_out = true;
	s->deadline_ms = now + GRACE_MS;
	set_clock(GRACE_MS);
}

/* True when it has ended: nobody of its group is left, and the leader not yet reaped. */
static bool on_child(struct seatbelt *s)
{
	siginfo_t info = { 0 };
	int status;

	if (waitid(P_PID, (id_t)s->child, &info, WEXITED | WNOWAIT | WNOHANG) == 0 &&
	    info.si_pid == s->child) {
		(void)kill(-s->child, SIGKILL);
		return true;
	}
	if (waitpid(s->child, &status, WUNTRACED | WNOHANG) == s->child && WIFSTOPPED(status))
		follow_stop(s, WSTOPSIG(status));
	return false;
}

static int wait_for_end(struct seatbelt *s)
{
	const uint64_t limit = s->req->policy->limits.timeout_ms;
	int sig, status = 0;

	if (limit > 0) {
		s->deadline_ms = s->start_ms + limit;
		set_clock(limit);
	}
	for (;;) {
		if (sigwait(&s->waited, &sig) != 0)
			continue;
		if (sig == SIGCHLD && on_child(s))
			break;
		if (sig == SIGALRM)
			on_clock(s);
		else if (sig == SIGCONT)
			follow_continue(s);
		else if (sig != SIGCHLD)
			(void)kill(-s->child, sig);
	}
	set_clock(0);
	while (waitpid(s->child, &status, 0) < 0 && errno == EINTR)
		;
	return status;
}

/* What came over the pipe tells whether the command was ever started. */
static int judge(const struct seatbelt *s, int status, struct seatbelt_result *ret, struct error *e)
{
	struct error said = { 0 };
	/* whoever still holds the other end has nothing to say any more */
	int flags = fcntl(s->errors, F_SETFL, O_NONBLOCK);
	ssize_t n = flags < 0 ? -1 : fd_read_full(s->errors, &said, sizeof(said));
	bool entered = n == (ssize_t)sizeof(said) && said.exit_code == SEATBELT_ENTERED;

	if (entered)
		n = fd_read_full(s->errors, &said, sizeof(said));
	ret->wall_ms = sys_now_ms() - s->start_ms;
	ret->timed_out = s->timed_out;
	ret->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
	ret->exit_code = ret->timed_out ? EXIT_TIMED_OUT
			 : ret->signal  ? 128 + ret->signal
					: WEXITSTATUS(status);
	if (n == (ssize_t)sizeof(said)) {
		said.text[sizeof(said.text) - 1] = '\0';
		*e = said;
		return error_negative(said.code);
	}
	if (entered || ret->timed_out || ret->signal)
		return 0;
	return error_set(e, ENOEXEC,
			 "%s ended with status %d before the command was started: it does not "
			 "accept the profile (ambit plan prints it), or this is inside another "
			 "sandbox",
			 s->req->program, WEXITSTATUS(status));
}

/* As the rest of the job would have had it, were the command not in a group of its own. */
static void follow_interrupt(const struct seatbelt *s, int sig)
{
	if (!s->given || (sig != SIGINT && sig != SIGQUIT))
		return;
	(void)signal(sig, SIG_IGN);
	(void)kill(0, sig);
}

static int supervise(struct seatbelt *s, struct seatbelt_result *ret, struct error *e)
{
	int r = prepare(s, e);

	if (r < 0)
		return r;
	s->start_ms = sys_now_ms();
	r = start_both(s, e);
	if (r < 0 && s->child > 0) {
		(void)kill(-s->child, SIGKILL);
		(void)waitpid(s->child, NULL, 0);
	}
	if (r < 0)
		return r;
	r = judge(s, wait_for_end(s), ret, e);
	if (r == 0)
		follow_interrupt(s, ret->signal);
	take_terminal_back(s);
	return r;
}

int seatbelt_run(struct arena *a, const struct seatbelt_request *req, struct seatbelt_result *ret,
		 struct error *e)
{
	struct seatbelt s = {
		.a = a, .req = req, .child = -1, .guard = -1, .errors = -1, .life = -1, .tty = -1
	};
	int r;

	*ret = (struct seatbelt_result){ 0 };
	take_signals(&s);
	find_terminal(&s);
	r = supervise(&s, ret, e);
	scratch_remove(&s.scratch);
	dismiss_guard(&s);
	fd_close(s.errors);
	fd_close(s.tty);
	(void)sigprocmask(SIG_SETMASK, &s.mask, NULL);
	return r;
}
