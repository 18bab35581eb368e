/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server's loop: one thread, poll() over the client, the runs and the signals.
 *
 * The end comes in one of three ways. SIGINT, SIGTERM, SIGHUP, or a client that does not read any
 * more: everything is ended at once. The client closes our input: calls that are on their way get
 * a moment to answer, because `printf ... | ambit mcp serve` is a fair way to use this, then
 * everything is ended. Dying by SIGKILL is fine too: what runs inside dies with us.
 */
#include "mcp/serve.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/sys.h"
#include "mcp/server.h"
#include "supervise/egress.h"

#define END_GRACE_MS 1500 /* less than clients wait before they send signals */
#define REMAINS_MS 10 /* children that are leaving tell nobody when they are gone */
#define FLUSH_MS 500
#define ANSWER_MS 2000
#define EXIT_SET_UP 125
#define READY_AT 3
#define FIXED_FDS (READY_AT + READY_FDS)

size_t server_running(const struct server *s)
{
	size_t n = 0;

	for (const struct run *run = s->runs; run; run = run->next)
		n += run->state == RUN_RUNNING;
	return n;
}

size_t server_jobs(const struct server *s)
{
	size_t n = 0;

	for (const struct run *run = s->runs; run; run = run->next)
		n += run->state == RUN_RUNNING && run->job;
	return n;
}

/* --- languages ---------------------------------------------------------------------------------- */

static void find_languages(struct server *s)
{
	const char *path = "/usr/local/bin:/usr/bin:/bin";

	for (char *const *v = s->req->environ_in; *v; v++) {
		if (strncmp(*v, "PATH=", 5) == 0)
			path = *v + 5;
	}
	languages_find(s->a, path, &s->languages);
}

/* A question of our own, in a sandbox like everything that is run here. */
static struct run *ask(struct server *s, const char *program, const char *argument)
{
	char *argv[] = { arena_strdup(s->a, program),
			 argument ? arena_strdup(s->a, argument) : NULL, NULL };
	struct run_spec spec = { .label = program,
				 .language = "shell",
				 .argv = argv,
				 .cwd = s->req->policy->cwd,
				 .no_network = argument != NULL,
				 .read_only = argument != NULL,
				 .timeout_ms = ANSWER_MS };
	struct run *run = run_new(s);

	run->users++;
	run_start(s, run, &spec);
	run->label = NULL; /* not one to be listed */
	return run;
}

/* Which version is it? Only then is it known whether it runs TypeScript. */
static void ask_node(struct server *s)
{
	if (s->languages.node_to_ask)
		s->asking_node = ask(s, s->languages.node_to_ask, "--version");
}

bool server_is_ready(const struct server *s)
{
	return !s->asking_sandbox && !s->asking_node;
}

void server_note(struct server *s, const char *text)
{
	for (size_t i = 0; i < s->n_notes; i++) {
		if (strcmp(s->notes[i], text) == 0)
			return;
	}
	if (s->n_notes == SERVER_NOTES_MAX)
		return;
	s->notes[s->n_notes++] = arena_strdup(s->a, text);
	s->req->warn(text);
}

/*
 * The kernel lacks something, or refuses it: no reason that a command could have brought about with
 * what it left in the project, nor one that may be gone with the next call.
 */
static bool is_lack(const struct error *e)
{
	return (e->exit_code == 0 || e->exit_code == EXIT_SET_UP) &&
	       (e->code == ENOSYS || e->code == EOPNOTSUPP || e->code == EPERM ||
		e->code == EUSERS);
}

/*
 * With `fallback warn` a machine without the means runs without a sandbox, and says so. What may
 * fail is the setting up (125); a command that cannot be run is another matter.
 */
static void hear_sandbox(struct server *s)
{
	const struct run *run = s->asking_sandbox;
	const struct error *e;

	if (!run || run->state != RUN_ENDED)
		return;
	e = &run->failure;
	if (is_lack(e)) {
		s->unsandboxed = arena_printf(s->a,
					      "no sandbox is possible here (%s), and fallback "
					      "is warn",
					      e->text);
		s->req->warn(arena_printf(s->a,
					  "NO SANDBOX: %s: all calls run with all your rights",
					  s->unsandboxed));
	}
	s->asking_sandbox->users--;
	s->asking_sandbox = NULL;
	ask_node(s);
	if (server_is_ready(s))
		server_answer_waiting(s);
}

static void hear_node(struct server *s)
{
	char version[32] = { 0 };

	if (!s->asking_node || s->asking_node->state != RUN_ENDED)
		return;
	(void)spool_read(&s->asking_node->spool[0], 0, version, sizeof(version) - 1);
	languages_add_node(&s->languages, version);
	s->asking_node->users--;
	s->asking_node = NULL;
	server_answer_waiting(s);
}

static void ask_first(struct server *s)
{
	if (!s->unsandboxed && s->req->policy->fallback == FALLBACK_WARN)
		s->asking_sandbox = ask(s, "/bin/sh", NULL);
	else
		ask_node(s);
}

/* --- the loop ------------------------------------------------------------------------------------- */

struct loop {
	struct pollfd *fds;
	size_t room;
	int signals;
	bool input_ended;
	uint64_t end_ms; /* when to leave; 0 = not yet */
	bool leave;
};

static int least(int a, int b)
{
	return a < 0 || (b >= 0 && b < a) ? b : a;
}

static size_t gather(struct server *s, struct loop *l)
{
	size_t need = FIXED_FDS, n = FIXED_FDS;

	for (const struct run *run = s->runs; run; run = run->next)
		need += RUN_FDS;
	if (need > l->room) {
		l->room = need * 2;
		free(l->fds);
		l->fds = calloc(l->room, sizeof(*l->fds));
		if (!l->fds)
			abort();
	}
	l->fds[0] = (struct pollfd){ .fd = l->signals, .events = POLLIN };
	l->fds[1] =
		(struct pollfd){ .fd = l->input_ended || frame_waiting(&s->out) > FRAME_BACKLOG_MAX
					       ? -1
					       : s->req->in,
				 .events = POLLIN };
	l->fds[2] = (struct pollfd){ .fd = s->req->out,
				     .events = frame_waiting(&s->out) ? POLLOUT : 0 };
	ready_poll(s, l->fds + READY_AT);
	for (struct run *run = s->runs; run; run = run->next)
		n += run_poll(run, l->fds + n);
	return n;
}

static int wait_ms(const struct server *s, const struct loop *l)
{
	uint64_t now = sys_now_ms();
	int wait = least(calls_wait_ms(s, now), ready_wait_ms(s, now));

	for (size_t i = 0; i < ARRAY_LEN(s->remains); i++) {
		if (s->remains[i] > 0)
			wait = least(wait, REMAINS_MS);
	}
	for (const struct run *run = s->runs; run; run = run->next)
		wait = least(wait, run_wait_ms(run, now));
	if (l->end_ms)
		wait = least(wait, l->end_ms > now ? (int)(l->end_ms - now) : 0);
	return wait;
}

static void take_lines(struct server *s, bool at_end)
{
	enum frame_event event;
	const char *line;
	size_t len;

	while ((event = frame_next(&s->in, at_end, &line, &len)) != FRAME_NONE) {
		if (event == FRAME_TOO_LONG)
			server_refuse_long_line(s);
		else
			server_take_line(s, line, len);
	}
}

static void read_input(struct server *s, struct loop *l)
{
	ssize_t n = frame_read(&s->in, s->req->in);

	if (n == -EAGAIN)
		return;
	l->input_ended = n <= 0;
	take_lines(s, l->input_ended);
	if (l->input_ended)
		l->end_ms = sys_now_ms() + END_GRACE_MS;
}

static void step_runs(struct server *s)
{
	uint64_t now = sys_now_ms();
	struct run *next;

	for (struct run *run = s->runs; run; run = next) {
		next = run->next;
		run_step(s, run, now);
	}
	hear_sandbox(s);
	hear_node(s);
	for (size_t i = 0; i < ARRAY_LEN(s->remains); i++) {
		if (s->remains[i] > 0 && waitpid(s->remains[i], NULL, WNOHANG) != 0)
			s->remains[i] = 0;
	}
}

static void turn(struct server *s, struct loop *l)
{
	size_t n = gather(s, l);

	if (poll(l->fds, n, wait_ms(s, l)) < 0)
		return; /* EINTR */
	if (l->fds[0].revents)
		l->leave = true;
	if (l->fds[1].revents)
		read_input(s, l);
	step_runs(s);
	calls_step(s, sys_now_ms());
	if (l->fds[2].revents & (POLLERR | POLLHUP | POLLNVAL))
		l->leave = true; /* nobody reads */
	else if (frame_waiting(&s->out) && frame_write(&s->out, s->req->out) < 0)
		l->leave = true;
	runs_tidy(s);
	if (!l->end_ms && !l->leave)
		ready_step(s, l->fds + READY_AT, sys_now_ms());
	if (l->end_ms && (!s->calls || sys_now_ms() >= l->end_ms) && !s->lists)
		l->leave = true;
}

/* Give what is said already to a client that still reads. */
static void flush(struct server *s)
{
	uint64_t until = sys_now_ms() + FLUSH_MS;

	while (frame_waiting(&s->out) && sys_now_ms() < until) {
		struct pollfd out = { .fd = s->req->out, .events = POLLOUT };

		if (poll(&out, 1, 50) > 0 &&
		    ((out.revents & (POLLERR | POLLNVAL)) || frame_write(&s->out, s->req->out) < 0))
			return;
	}
}

static void end_all(struct server *s)
{
	for (struct run *run = s->runs; run; run = run->next)
		run_stop(run, RUN_STOP_CANCEL);
	calls_free(s);
	server_answer_waiting(s);
	server_end_subscriptions(s);
	flush(s);
	ready_drop(s);
	while (s->runs) {
		struct run *run = s->runs;

		s->runs = run->next;
		run_free(run);
	}
	for (size_t i = 0; i < ARRAY_LEN(s->remains); i++) {
		if (s->remains[i] > 0)
			(void)waitpid(s->remains[i], NULL, 0);
	}
	egress_free(s->egress);
	frame_in_done(&s->in);
	frame_out_done(&s->out);
}

/* --- the process ----------------------------------------------------------------------------------- */

static int take_signals(struct server *s, struct error *e)
{
	static const int ours[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };
	sigset_t blocked;
	int fd;

	(void)sigemptyset(&blocked);
	for (size_t i = 0; i < ARRAY_LEN(ours); i++)
		(void)sigaddset(&blocked, ours[i]);
	fd = signalfd(-1, &blocked, SFD_CLOEXEC | SFD_NONBLOCK);
	/* blocked, not ignored: what is ignored would be so for the commands too */
	(void)sigaddset(&blocked, SIGPIPE);
	(void)sigprocmask(SIG_BLOCK, &blocked, NULL);
	(void)signal(SIGPIPE, SIG_DFL);
	(void)signal(SIGCHLD, SIG_DFL);
	(void)sigemptyset(&s->command_mask);
	return fd < 0 ? error_set(e, errno, "cannot make a signalfd: %s", strerror(errno)) : fd;
}

/*
 * The client's terminal is nothing for the code that is run here: without a controlling terminal of
 * ours there is none that a child could open.
 */
static void leave_terminal(void)
{
	_cleanup_fd_ int tty = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);

	if (tty < 0)
		return;
	/* as the leader of a session we would hear of it ourselves */
	(void)signal(SIGHUP, SIG_IGN);
	(void)ioctl(tty, TIOCNOTTY);
	(void)signal(SIGHUP, SIG_DFL);
}

/* The proxy process itself is started with the first packet. */
static int start_egress(struct server *s, struct error *e)
{
	const struct egress_setup setup = { .program = s->req->proxy_program,
					    .policy = s->req->policy };

	if (s->unsandboxed || (s->req->policy->network.mode != NETWORK_ALLOWLIST &&
			       !s->req->policy->network.host_ports.n))
		return 0;
	return egress_new(&setup, &s->egress, e);
}

int mcp_serve(const struct mcp_serve *req, struct error *e)
{
	_cleanup_arena_ struct arena *a = arena_new();
	struct server *s = arena_alloc(a, sizeof(*s));
	struct loop l = { .signals = -1 };
	int r;

	*s = (struct server){ .req = req,
			      .a = a,
			      .in = FRAME_IN_INIT,
			      .out = FRAME_OUT_INIT,
			      .log = SEVERITY_NONE,
			      .unsandboxed = req->unsandboxed };
	leave_terminal();
	l.signals = take_signals(s, e);
	if (l.signals < 0)
		return l.signals;
	(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	r = start_egress(s, e);
	if (r < 0) {
		fd_close(l.signals);
		return r;
	}
	find_languages(s);
	ask_first(s);
	while (!l.leave)
		turn(s, &l);
	end_all(s);
	free(l.fds);
	fd_close(l.signals);
	return 0;
}
