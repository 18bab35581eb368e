/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The start of a session: choose a backend, compile the plan, put up what stands around the
 * sandbox (proxy, ports, limits), start it, watch it. Whatever is not enforced is said first.
 */
#include "supervise/session_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/sys.h"
#include "base/text.h"
#include "sandbox/backend.h"
#include "sandbox/native/native.h"
#include "supervise/broker/broker.h"
#include "supervise/egress.h"
#include "supervise/journal.h"
#include "supervise/publish.h"

/* In the keeper of a sandbox without namespaces. */
static void serve_calls(void *ctx, int listener, int until)
{
	struct broker_setup *setup = ctx;

	setup->listener = listener;
	broker_serve(setup, until);
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

/* Everything is judged before the first directory is made; then looked at for real. */
static int compile(struct session *s, struct plan_facts *facts, struct error *e)
{
	const struct policy *p = s->req.policy;
	const struct backend *b = s->chosen.backend;
	int r;

	facts->dry = true;
	r = b->compile(s->a, p, facts, &path_host_view, &s->plan, e);
	if (r < 0 || !plan_must_prepare(p))
		return r;
	r = plan_prepare(s->a, p, facts, e);
	facts->dry = false;
	return r < 0 ? r : b->compile(s->a, p, facts, &path_host_view, &s->plan, e);
}

int session_prepare(struct session *s, const struct error *refused, struct error *e)
{
	struct plan_facts facts;
	int r;

	plan_gather_facts(s->a, s->req.environ_in, &facts);
	facts.watch = s->req.report_reads;
	facts.asks = s->req.hooks && s->req.hooks->ask_write;
	facts.files = s->req.files;
	facts.n_files = s->req.n_files;
	if (s->req.learn)
		facts.direct_library = NULL; /* who learns is told of every write */
	/* a terminal that the command gets nothing of is not shown to it either */
	if (s->standby || (s->req.stdio[0] >= 0 && s->req.stdio[1] >= 0 && s->req.stdio[2] >= 0))
		facts.tty = NULL;
	if (s->req.own_terminal)
		facts.tty = s->req.own_terminal;
	r = backend_choose(s->a, s->req.policy, refused, &facts, &s->chosen, e);
	return r < 0 ? r : compile(s, &facts, e);
}

static int start_watching(struct session *s, struct error *e)
{
	const int fds[SOURCE_MAX_] = {
		[SOURCE_ERRORS] = s->child.errors,
		[SOURCE_CONTROL] = s->child.control,
		[SOURCE_REPORTS] = s->reports[0],
		[SOURCE_EGRESS] = s->egress ? egress_fd(s->egress) : -1,
		[SOURCE_LISTENER] = -1, /* comes later */
		[SOURCE_VEIL] = -1,
		[SOURCE_LIMITS] = s->limits ? limits_fd(s->limits) : -1,
		[SOURCE_INIT] = s->child.pidfd,
	};

	for (enum source i = 0; i < SOURCE_MAX_; i++) {
		int r = session_watch(s, i, fds[i]);

		if (r < 0)
			return error_set(e, -r, "cannot watch a descriptor: %s", strerror(-r));
	}
	return 0;
}

/* The proxy that we were given, or one of our own. */
static int start_egress(struct session *s, struct error *e)
{
	const struct egress_setup setup = { .program = s->req.proxy_program,
					    .policy = s->req.policy,
					    .ask = s->req.hooks && s->req.hooks->ask };
	int r = s->req.egress ? 0 : egress_new(&setup, &s->egress, e);

	if (r < 0)
		return r;
	if (s->req.egress)
		s->egress = s->req.egress;
	s->user = (struct egress_user){ .record = session_on_egress, .ctx = s };
	egress_attach(s->egress, &s->user);
	return 0;
}

static void tell_note(const struct session *s, const char *text)
{
	if (s->req.report)
		report_note(s->req.report, text);
	if (s->req.hooks && s->req.hooks->note)
		s->req.hooks->note(s->req.ctx, text);
}

/* Our copy of the broker's end stays open: its end is no reason to start the proxy. */
static int open_inquiries(struct session *s, struct error *e)
{
	int pair[2], r;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return error_set(e, errno, "cannot make a socket: %s", strerror(errno));
	s->inquiries = pair[1];
	r = egress_add_listener(&s->user, EGRESS_INQUIRIES, pair[0]);
	fd_close(pair[0]);
	return r < 0 ? error_set(e, -r, "cannot reach the egress proxy: %s", strerror(-r)) : 0;
}

static void tell_notes(const struct session *s, const struct text_rules *notes)
{
	for (size_t i = 0; i < notes->n; i++)
		tell_note(s, notes->v[i].text);
}

void session_note_lost(const struct session *s)
{
	struct report *r = s->req.report;

	tell_notes(s, &s->chosen.lost);
	r->backend = s->chosen.backend->name;
	r->lost = (struct text_rules){ 0 };
	for (size_t i = 0; i < s->chosen.lost.n; i++)
		ARENA_PUSH(r->a, r->lost.v, r->lost.n)->text =
			arena_strdup(r->a, s->chosen.lost.v[i].text);
}

static void tell_chosen(const struct session *s)
{
	if (s->req.hooks && s->req.hooks->chosen)
		s->req.hooks->chosen(s->req.ctx, s->chosen.backend->name, s->chosen.why);
	tell_notes(s, &s->plan->notes);
}

/* What stands around the sandbox, by the plan: proxy, ports, limits. */
static int prepare_outside(struct session *s, struct error *e)
{
	int r = 0;

	if (s->plan->broker && s->reports[0] < 0 &&
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, s->reports) < 0)
		return error_set(e, errno, "cannot make a socket: %s", strerror(errno));
	if ((s->plan->egress || s->plan->n_publish) && !s->egress)
		r = start_egress(s, e);
	if (r == 0)
		r = publish_listen(&s->user, s->plan, e);
	if (r == 0 && s->plan->egress && s->plan->broker && s->inquiries < 0)
		r = open_inquiries(s, e);
	if (r == 0 && s->plan->contained && s->req.measure)
		return error_set(e, ENOTSUP,
				 "what a container uses cannot be measured: use "
				 "another backend");
	/* a container's limits are its engine's */
	if (r == 0 && !s->limits && !s->plan->contained)
		r = limits_new(s->a, s->req.policy,
			       &(struct limits_how){ s->req.measure, s->plan->bare }, &s->limits,
			       e);
	return r;
}

/* The word with each of the given files called as the plan calls it. */
static char *map_word(struct session *s, const char *word)
{
	_cleanup_buf_ struct buf b = BUF_INIT(BUF_MAX_TEXT);

	while (*word) {
		size_t i = 0;

		while (i < s->plan->n_files && !text_starts(word, s->req.files[i].path))
			i++;
		if (i < s->plan->n_files) {
			buf_puts(&b, s->plan->files[i].path);
			word += strlen(s->req.files[i].path);
		} else {
			buf_putc(&b, *word++);
		}
	}
	return b.overflow ? NULL : arena_strdup(s->a, buf_str(&b));
}

/* What to run: without mounts, given files have other paths than the caller knows. */
static int map_argv(struct session *s, char *const **ret, struct error *e)
{
	char **argv = NULL;
	size_t n = 0;

	*ret = s->req.argv;
	if (s->plan->n_files == 0)
		return 0;
	for (char *const *v = s->req.argv; *v; v++) {
		char *word = map_word(s, *v);

		if (!word)
			return error_set(e, E2BIG, "the command is too long");
		*ARENA_PUSH(s->a, argv, n) = word;
	}
	*ARENA_PUSH(s->a, argv, n) = NULL;
	*ret = argv;
	return 0;
}

static int start_child(struct session *s, struct error *e)
{
	struct sandbox_command cmd = { .argv = s->req.argv,
				       .mask = s->req.mask,
				       .stdio = { s->req.stdio[0], s->req.stdio[1],
						  s->req.stdio[2] },
				       .tty = s->req.tty,
				       .own_terminal = s->req.own_terminal != NULL,
				       .limits = s->limits ? limits_inside(s->limits) : NULL,
				       .later = s->standby != NULL };
	struct broker_setup setup;
	int r;

	if (!s->standby) {
		session_note_lost(s); /* what is not enforced is said before anything runs */
		r = map_argv(s, &cmd.argv, e);
		if (r < 0)
			return r;
	}
	if (!s->plan->bare || !s->plan->broker)
		return s->chosen.backend->start(s->plan, &cmd, &s->child, e);
	r = session_fill_setup(s, &setup, e);
	if (r < 0)
		return r;
	cmd.serve = serve_calls;
	cmd.ctx = &setup;
	r = s->chosen.backend->start(s->plan, &cmd, &s->child, e);
	fd_close(setup.lock);
	fd_close(TAKE_FD(s->reports[1]));
	return r;
}

/* With another backend, when the one that was believed to work does not. */
static int start_again(struct session *s, struct error *e)
{
	const struct error refused = *e;
	int r;

	if (s->req.policy->backend != BACKEND_AUTO || s->child.pid > 0 || s->standby)
		return -refused.code;
	r = session_prepare(s, &refused, e);
	if (r == 0) /* chosen for another backend; there is no guard yet */
		(void)limits_free(TAKE_PTR(s->limits));
	if (r == 0)
		r = prepare_outside(s, e);
	return r < 0 ? r : start_child(s, e);
}

/* What it is called, and what the user should know before it starts. */
void session_name_command(struct session *s)
{
	s->command = join_words(s->a, s->req.argv);
	if (s->limits && limits_note(s->limits))
		tell_note(s, limits_note(s->limits));
}

void session_tell_start(struct session *s)
{
	tell_chosen(s);
	session_log_start(s);
	if (s->req.policy->limits.timeout_ms)
		s->deadline_ms = s->started_ms + s->req.policy->limits.timeout_ms;
}

int session_launch(struct session *s, struct error *e)
{
	int r;

	s->started_ms = sys_now_ms();
	r = session_prepare(s, NULL, e);
	if (r == 0 && s->standby)
		r = standby_begin(s, e);
	if (r < 0)
		return r;
	s->events = epoll_create1(EPOLL_CLOEXEC);
	if (s->events < 0)
		return error_set(e, errno, "cannot make an epoll descriptor: %s", strerror(errno));
	r = prepare_outside(s, e);
	if (r < 0)
		return r;
	if (!s->standby)
		session_name_command(s);
	r = start_child(s, e);
	if (r < 0)
		r = start_again(s, e);
	/* while the child sets itself up, so that it costs the command nothing */
	if (r == 0)
		session_reserve_veil(s);
	if (r == 0 && s->limits)
		r = limits_start(s->limits, s->plan, &s->child, e);
	if (r == 0 && !s->standby)
		session_tell_start(s);
	return r == 0 ? start_watching(s, e) : r;
}
