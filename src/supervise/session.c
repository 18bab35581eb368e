/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A session: the sandbox of one command and the descriptors it is watched by.
 *
 *   errors    a set-up failure of the child, reported as our own; descriptors
 *             from inside; or end of file: the command runs
 *   control   init's events: the command stopped, the command ended
 *   listener  the first notified call: the broker is started for it
 *   reports   what the broker denied
 *   egress    the proxy's records, or the first packet for it
 *   limits    the kernel has stopped something for memory or processes
 *   veil      something appeared outside where a rule hides
 *   pidfd     init is gone, and with it everything inside
 *
 * What is heard from the broker and the proxy is in session_hear.c.
 */
#include "supervise/session_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/sys.h"
#include "base/text.h"
#include "sandbox/backend.h"
#include "sandbox/landlock/landlock.h"
#include "sandbox/native/native.h"
#include "supervise/broker/broker.h"
#include "supervise/egress.h"
#include "supervise/journal.h"
#include "supervise/publish.h"

#define TERM_GRACE_MS 2000 /* between SIGTERM and SIGKILL when the time is up */

int session_watch(struct session *s, enum source which, int fd)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.u32 = which };

	if (fd < 0)
		return 0;
	s->sources[which] = fd;
	return epoll_ctl(s->events, EPOLL_CTL_ADD, fd, &ev) < 0 ? -errno : 0;
}

/* Before the descriptor is closed: another process may have it open too. */
static void unwatch(struct session *s, enum source which)
{
	if (s->sources[which] >= 0)
		(void)epoll_ctl(s->events, EPOLL_CTL_DEL, s->sources[which], NULL);
	s->sources[which] = -1;
}

static void give_order(const struct session *s, int sig, enum init_target target)
{
	struct init_order o = { .signal = sig, .target = (int32_t)target };

	(void)!send(s->child.control, &o, sizeof(o), MSG_NOSIGNAL | MSG_DONTWAIT);
}

void session_signal(struct session *s, int sig, bool group)
{
	if (sig == SIGCONT && s->frozen) {
		s->frozen = false;
		give_order(s, SIGCONT, INIT_ALL);
		return;
	}
	give_order(s, sig, group ? INIT_GROUP : INIT_COMMAND);
}

bool session_freeze(struct session *s, int sig)
{
	if (s->frozen || s->plan->bare || !s->limits || !limits_is_sampling(s->limits))
		return false;
	s->frozen_by = sig;
	give_order(s, SIGSTOP, INIT_ALL);
	return true;
}

/* With init goes its pid namespace; where there is none, init has to do it itself. */
void session_kill(struct session *s)
{
	if (s->plan->bare || s->plan->contained)
		give_order(s, SIGKILL, INIT_ALL);
	else
		(void)sys_pidfd_send_signal(s->child.pidfd, SIGKILL);
}

int session_limit(const struct session *s)
{
	return s->limit;
}

const char *session_name(const struct session *s)
{
	return s->journal.run;
}

pid_t session_pid(const struct session *s)
{
	return s->child.init;
}

int session_change_network(struct session *s, const struct policy *p, struct error *e)
{
	int r = s->plan->egress ? egress_change(s->egress, p) : -EPERM;

	if (r == 0)
		journal_network(&s->journal, "control-fd", p);
	return r < 0 ? error_set(e, -r, "the network lists could not be changed: %s", strerror(-r))
		     : 0;
}

static void fail(struct session *s)
{
	s->failed = true;
	session_kill(s);
}

int session_fill_setup(struct session *s, struct broker_setup *ret, struct error *e)
{
	if (s->lost < 0)
		s->lost = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (s->lost < 0)
		return error_set(e, errno, "cannot make an eventfd: %s", strerror(errno));
	*ret = (struct broker_setup){
		.policy = s->req.policy,
		.plan = s->plan,
		.listener = s->listener,
		.user_ns = s->user_ns,
		.mount_ns = s->mount_ns,
		.reports = s->reports[1],
		.lost = s->lost,
		.performed = s->limits ? limits_performed(s->limits) : NULL,
		.inquiries = s->inquiries,
		.redirects = s->redirects,
		.learns = s->req.learn,
		.asks = s->req.hooks && s->req.hooks->ask_write,
		.lock = broker_open_lock(s->req.policy),
	};
	if (ret->lock < 0)
		return error_set(e, errno, "cannot open the lock file of ambit: %s",
				 strerror(errno));
	return 0;
}

static int start_broker(struct session *s)
{
	struct broker_setup setup;
	int r = session_fill_setup(s, &setup, &s->failure);

	if (r < 0)
		return r;
	r = broker_start(&setup, &s->broker, &s->failure);
	fd_close(setup.lock);
	/* from now on the end of file on `reports` means that the broker is gone */
	fd_close(TAKE_FD(s->reports[1]));
	return r;
}

static void note_redirects(struct session *s)
{
	s->redirects = true;
	if (s->req.hooks && s->req.hooks->note)
		s->req.hooks->note(s->req.ctx,
				   "nftables tproxy is not available here: only programs that call "
				   "connect(2) reach allowed domains (ambit check says more)");
}

/* A listener for the proxy, made inside; the message that came with it is in s->failure. */
static int take_listener(struct session *s, int fd)
{
	struct egress_message m;
	int r;

	memcpy(&m, &s->failure, sizeof(m));
	if (m.role == EGRESS_REDIRECTED && !s->redirects)
		note_redirects(s);
	r = egress_add_listener(&s->user, m.role, fd);
	return r < 0 ? error_set(&s->failure, -r, "the egress proxy does not answer: %s",
				 strerror(-r))
		     : 0;
}

/* The broker is started when it is first needed, unless that is sure: many commands write nothing. */
static void on_first_call(struct session *s, uint32_t events)
{
	if (events & EPOLLIN && start_broker(s) < 0)
		fail(s);
	unwatch(s, SOURCE_LISTENER);
	/* the broker has its own, or nobody is left to ask */
	fd_close(TAKE_FD(s->listener));
}

/* Nobody is left from whom anything could be hidden; and with us, nobody keeps the namespaces. */
static void end_veil(struct session *s)
{
	unwatch(s, SOURCE_VEIL);
	if (s->veil)
		s->unveiling = veil_free(TAKE_PTR(s->veil));
	fd_close(TAKE_FD(s->changes));
	s->veil_ms = 0;
	fd_close(TAKE_FD(s->user_ns));
	fd_close(TAKE_FD(s->mount_ns));
}

static void tell_appeared(void *ctx, const char *path)
{
	struct session *s = ctx;

	report_note(s->req.report,
		    arena_printf(s->a,
				 "%s was made or replaced outside while the command ran, and was "
				 "hidden again at once",
				 path));
}

static void on_veil(struct session *s)
{
	struct error e = { 0 };

	if (veil_step(s->veil, s->user_ns, s->mount_ns, tell_appeared, s, &e) < 0 && !s->failed) {
		s->failure =
			e; /* not before: a command that could not be executed has said so there */
		fail(s);
	}
	if (veil_fd(s->veil) >= 0)
		return;
	s->sources[SOURCE_VEIL] = -1; /* closed, and so no longer watched */
	s->veil_ms = sys_now_ms() + VEIL_LOOK_MS;
}

void session_reserve_veil(struct session *s)
{
	s->veiled = !s->plan->bare && !s->plan->contained && s->plan->broker &&
		    veil_is_needed(s->req.policy);
	if (s->veiled)
		s->changes = veil_reserve();
}

void session_begin_veil(struct session *s)
{
	if (s->user_ns >= 0 && s->mount_ns >= 0 && s->veiled && !s->ended)
		s->veil_ms = s->started_ms + VEIL_BEGIN_MS;
}

static void act_on_veil(struct session *s)
{
	int r = 0;

	if (!s->veil_ms || sys_now_ms() < s->veil_ms)
		return;
	s->veil_ms = 0;
	if (!s->veil) {
		s->veil =
			veil_new(s->a, s->req.policy, s->plan, s->started_ms, TAKE_FD(s->changes));
		r = session_watch(s, SOURCE_VEIL, veil_fd(s->veil));
	}
	if (r < 0) {
		(void)error_set(&s->failure, -r, "cannot watch a descriptor: %s", strerror(-r));
		fail(s);
	} else {
		on_veil(s);
	}
}

/* What the broker will need, and the last that comes before the command runs. */
static int take_broker(struct session *s, int *fds)
{
	int r;

	if (fds[NATIVE_USER_NS] < 0 || fds[NATIVE_MOUNT_NS] < 0)
		return error_set(&s->failure, EMFILE, "too many open files");
	if (s->standby)
		standby_take_root(s, TAKE_FD(fds[NATIVE_ROOT]));
	s->listener = TAKE_FD(fds[NATIVE_LISTENER]);
	s->user_ns = TAKE_FD(fds[NATIVE_USER_NS]);
	s->mount_ns = TAKE_FD(fds[NATIVE_MOUNT_NS]);
	if (!s->standby)
		session_begin_veil(s);
	unwatch(s, SOURCE_ERRORS); /* a failing exec is heard of when init is gone */
	if (s->req.calls_soon) {
		on_first_call(s, EPOLLIN);
		return s->failed ? -s->failure.code : 0;
	}
	r = session_watch(s, SOURCE_LISTENER, s->listener);
	return r < 0 ? error_set(&s->failure, -r, "cannot watch a descriptor: %s", strerror(-r))
		     : 0;
}

_Static_assert((int)NATIVE_USAGE_MAX_ <= (int)NATIVE_DESCRIPTOR_MAX_,
	       "on_error() has room for them");

static int take_usage(struct session *s, int *fds)
{
	int r = s->limits ? limits_take(s->limits, fds) : -EINVAL;

	return r < 0 ? error_set(&s->failure, -r, "cannot measure what the command uses: %s",
				 strerror(-r))
		     : 0;
}

static int take_private(struct session *s, int *fd)
{
	int r = s->limits ? limits_take_private(s->limits, *fd) : -EINVAL;

	if (r == 0)
		*fd = -1;
	return r < 0 ? error_set(&s->failure, -r, "cannot measure what the command uses: %s",
				 strerror(-r))
		     : 0;
}

/* A struct error, or descriptors, or the end. True when there may be more. */
static bool on_error(struct session *s)
{
	int fds[NATIVE_DESCRIPTOR_MAX_];
	ssize_t n;
	int r;

	if (s->failed)
		return false; /* the first failure is the one to report */
	n = fd_receive_many(s->child.errors, &s->failure, sizeof(s->failure), fds, ARRAY_LEN(fds));
	if (n == -EAGAIN || n == -EINTR)
		return false;
	if (n <= 0 || fds[0] < 0) {
		s->failed = n == sizeof(s->failure);
		unwatch(s, SOURCE_ERRORS); /* the end, or all that will come */
		return false;
	}
	r = n == sizeof(struct egress_message) ? take_listener(s, fds[0])
	    : n == NATIVE_USAGE_LEN            ? take_usage(s, fds)
	    : n == NATIVE_PRIVATE_LEN          ? take_private(s, &fds[0])
					       : take_broker(s, fds);
	if (r < 0)
		fail(s);
	for (size_t i = 0; i < ARRAY_LEN(fds); i++)
		fd_close(fds[i]);
	return true;
}

/*
 * Without its broker the command only gets errors. It may also have ended by itself a
 * moment ago, with init still to say so: then this changes nothing.
 */
static void watch_early_end(struct session *s)
{
	pid_t broker = s->broker;
	int status;

	s->broker = 0;
	if (waitpid(broker, &status, 0) != broker || (WIFEXITED(status) && !WEXITSTATUS(status)))
		return;
	(void)error_set(&s->failure, ECHILD, "the broker ended, so the command was ended too");
	fail(s);
}

void session_log_start(struct session *s)
{
	s->logged = true;
	journal_start(&s->journal, s->req.policy, s->req.argv,
		      s->chosen.backend ? s->chosen.backend->name : "unknown");
}

static void tell_unlogged(struct session *s)
{
	if (!s->journal.failed || s->told)
		return;
	s->told = true;
	if (s->req.hooks && s->req.hooks->unlogged)
		s->req.hooks->unlogged(s->req.ctx, &s->journal.error);
}

static void on_report(struct session *s)
{
	if (session_hear_reports(s) != 0)
		return;
	unwatch(s, SOURCE_REPORTS); /* the broker left: with the last process, or too early */
	if (s->broker > 0 && !s->ended && sys_pidfd_send_signal(s->child.pidfd, 0) == 0)
		watch_early_end(s);
}

/* Only the first is told: what follows from ending the command is no news. */
static void tell_limit(struct session *s, enum limit which, const char *reason)
{
	const struct report_entry *entry;

	if (s->limit >= 0)
		return;
	s->limit = (int)which;
	entry = report_add_limit(s->req.report, s->req.policy, which, reason);
	if (entry)
		journal_denied(&s->journal, entry);
	if (entry && s->req.hooks && s->req.hooks->denied)
		s->req.hooks->denied(s->req.ctx, entry);
}

static void on_event(struct session *s)
{
	struct init_event event;
	ssize_t n = recv(s->child.control, &event, sizeof(event), MSG_DONTWAIT);

	if (n != sizeof(event)) {
		/* ECONNRESET: it left with an order of ours unread; what it said comes next */
		if (n == 0 || (errno != EAGAIN && errno != EINTR && errno != ECONNRESET))
			unwatch(s, SOURCE_CONTROL);
		return;
	}
	if (event.type == INIT_OUT_OF_MEMORY)
		tell_limit(s, LIMIT_MEMORY, "the kernel ended a process");
	if (event.type == INIT_OUT_OF_PIDS)
		tell_limit(s, LIMIT_PIDS, "a new process was refused");
	if (event.type == INIT_FROZEN) {
		s->frozen = true;
		event = (struct init_event){ .type = INIT_STOPPED, .value = s->frozen_by };
	}
	if (event.type == INIT_STOPPED && s->req.hooks && s->req.hooks->stopped) {
		s->req.hooks->stopped(s->req.ctx, event.value);
	} else if (event.type == INIT_EXITED) {
		s->ended = true;
		end_veil(s);
		s->status = event.value;
		s->alone = event.alone;
		s->usage = event.usage;
		if (limits_remember(s->limits))
			give_order(s, 0, INIT_COMMAND); /* no signal: it may leave */
	}
}

int session_fd(const struct session *s)
{
	return s->events;
}

int session_wait_ms(const struct session *s)
{
	uint64_t now, end = s->over_ms ? s->over_ms : s->deadline_ms;
	int look = s->over_ms ? -1 : limits_wait_ms(s->limits), left;

	if (s->veil_ms && (!end || s->veil_ms < end))
		end = s->veil_ms;
	if (!end)
		return look;
	now = sys_now_ms();
	if (now >= end)
		return 0;
	left = (int)(end - now < 60000 ? end - now : 60000);
	return look >= 0 && look < left ? look : left;
}

void session_reach(struct session *s, enum limit which)
{
	(void)limits_remember(s->limits);
	tell_limit(s, which, "everything inside was ended");
	session_kill(s);
}

/* Also to what has left the command's group; but without a pid namespace that is not known. */
static void ask_to_end(struct session *s)
{
	enum init_target all = s->plan->bare ? INIT_GROUP : INIT_ALL;

	give_order(s, SIGTERM, all);
	give_order(s, SIGCONT, all);
	s->frozen = false;
}

/* The time is up: first a word, then the end. */
static void act_on_time(struct session *s)
{
	if (s->over_ms || !s->deadline_ms || sys_now_ms() < s->deadline_ms)
		return;
	if (s->limit >= 0) {
		(void)limits_remember(s->limits);
		session_kill(s);
		s->deadline_ms = 0;
		return;
	}
	tell_limit(s, LIMIT_TIMEOUT,
		   "SIGTERM was sent; what is still there in 2 seconds is killed");
	ask_to_end(s);
	s->deadline_ms += TERM_GRACE_MS;
}

static void act_on_limits(struct session *s)
{
	int hit = s->limits ? limits_look(s->limits) : -1;

	if (hit >= 0)
		session_reach(s, (enum limit)hit);
}

bool session_hold(struct session *s)
{
	struct pollfd fds[] = { { .fd = s->child.pidfd, .events = POLLIN },
				{ .fd = s->sources[SOURCE_LIMITS], .events = POLLIN },
				{ .fd = s->sources[SOURCE_VEIL], .events = POLLIN } };

	(void)poll(fds, ARRAY_LEN(fds), 0);
	act_on_time(s);
	act_on_veil(s);
	if (fds[2].revents)
		on_veil(s);
	if (limits_wait_ms(s->limits) == 0 || fds[1].revents)
		act_on_limits(s);
	return s->limit < 0 && !fds[0].revents;
}

/* The command ended by itself, but perhaps because of a limit. */
static void look_back(struct session *s)
{
	int hit = s->limits ? limits_look_last(s->limits, s->status) : -1;

	if (hit >= 0)
		tell_limit(s, (enum limit)hit,
			   hit == LIMIT_MEMORY ? "the kernel ended a process"
			   : hit == LIMIT_PIDS
				   ? "a new process was refused"
				   : "a write was refused, or the last one was too much");
}

/* Nobody is left inside but perhaps init, which has said all: hear what is still in the pipes. */
static void hear_the_rest(struct session *s)
{
	uint64_t lost;

	while (s->sources[SOURCE_CONTROL] >= 0 && !s->ended)
		on_event(s);
	while (on_error(s))
		;
	/*
	 * A denial is sent before the call is answered, so what was denied is in the queue. The
	 * broker leaves when nobody is left inside; waiting for it would only mean waiting
	 * for the kernel to take the mounts apart.
	 */
	if (s->sources[SOURCE_REPORTS] >= 0)
		on_report(s);
	if (s->lost >= 0 && read(s->lost, &lost, sizeof(lost)) == sizeof(lost))
		s->req.report->dropped += lost;
	s->deadline_ms = 0;
	look_back(s);
	egress_leave(&s->user);
	unwatch(s, SOURCE_INIT);
	s->over_ms = sys_now_ms() + EGRESS_LEAVE_MS;
}

/* Nobody is left inside, and what they sent is on its way. */
static bool is_over(const struct session *s)
{
	return s->over_ms && (egress_is_gone(&s->user) || sys_now_ms() >= s->over_ms);
}

bool session_step(struct session *s)
{
	struct epoll_event events[SOURCE_MAX_];
	int n = epoll_wait(s->events, events, SOURCE_MAX_, 0);
	bool gone = false;

	act_on_time(s);
	act_on_veil(s);
	if (!s->standby && limits_wait_ms(s->limits) == 0)
		act_on_limits(s);
	for (int i = 0; i < n; i++) {
		enum source which = events[i].data.u32;

		if (s->sources[which] < 0)
			continue; /* an earlier event ended it */
		switch (which) {
		case SOURCE_ERRORS:
			while (on_error(s))
				;
			break;
		case SOURCE_CONTROL:
			on_event(s);
			break;
		case SOURCE_REPORTS:
			on_report(s);
			break;
		case SOURCE_EGRESS:
			egress_step(s->egress);
			break;
		case SOURCE_LISTENER:
			on_first_call(s, events[i].events);
			break;
		case SOURCE_LIMITS:
			if (s->standby)
				fail(s); /* nothing of it is worth a limit */
			else
				act_on_limits(s);
			break;
		case SOURCE_VEIL:
			on_veil(s);
			break;
		case SOURCE_INIT:
			gone = true;
			break;
		case SOURCE_MAX_:
			break;
		}
	}
	if (s->standby && (gone || s->ended)) {
		s->failed = true; /* before it had a command */
		unwatch(s, SOURCE_INIT);
		return true;
	}
	if ((gone || s->alone) && !s->over_ms)
		hear_the_rest(s);
	tell_unlogged(s);
	return is_over(s);
}

static void fill_result(const struct session *s, struct run_result *ret)
{
	*ret = (struct run_result){
		.wall_ms = sys_now_ms() - s->started_ms,
		.cpu_ms = s->usage.cpu_ms,
		.max_rss = s->usage.max_rss_kb * 1024,
		.timed_out = s->limit == LIMIT_TIMEOUT,
		.limit = s->limit,
	};
	text_copy(ret->run, sizeof(ret->run), s->journal.run);
	if (!s->ended) /* init was killed with everything inside */
		ret->signal = SIGKILL;
	else if (WIFSIGNALED(s->status))
		ret->signal = WTERMSIG(s->status);
	/* even if only a child of the command was ended, or the rest of its output was lost */
	if (s->limit == LIMIT_MEMORY || s->limit == LIMIT_OUTPUT)
		ret->signal = SIGKILL;
	ret->exit_code = s->limit == LIMIT_TIMEOUT ? 124
			 : ret->signal             ? 128 + ret->signal
						   : WEXITSTATUS(s->status);
	if (s->limits)
		ret->peak = *limits_peak(s->limits);
	for (enum limit i = 0; i < LIMIT_MAX_; i++)
		ret->means[i] = s->plan->contained && i <= LIMIT_PIDS &&
						limit_is_set(&s->req.policy->limits, i)
					? "cgroup of the container"
					: limits_means(s->limits, &s->req.policy->limits, i);
}

static void wait_for_init(struct session *s)
{
	struct rusage usage;

	if (s->child.pid > 0 && wait4(s->child.pid, NULL, 0, &usage) > 0 && !s->alone)
		s->usage = native_usage(&usage);
	s->child.pid = -1;
}

void session_free(struct session *s, pid_t ret_remains[SESSION_REMAINS_MAX_])
{
	pid_t remains[SESSION_REMAINS_MAX_] = { 0 };

	if (!s)
		return;
	if (!s->alone) { /* it was ended already, or its start failed */
		if (s->child.pid > 0)
			session_kill(s);
		wait_for_init(s);
	}
	standby_end(s);
	if (s->plan && s->plan->bare && s->child.init > 0)
		landlock_remove_private(s->plan); /* init was killed, and its keeper: by a limit */
	egress_detach(&s->user);
	if (!s->req.egress)
		egress_free(s->egress);
	fd_close(s->events);
	fd_close(s->child.control);
	fd_close(s->child.errors);
	fd_close(s->child.pidfd);
	fd_close(s->listener);
	if (s->veil)
		s->unveiling = veil_free(s->veil);
	fd_close(s->changes);
	fd_close(s->user_ns);
	fd_close(s->mount_ns);
	fd_close(s->reports[0]);
	fd_close(s->reports[1]);
	fd_close(s->lost);
	fd_close(s->inquiries);
	remains[SESSION_INIT] = s->child.pid;
	remains[SESSION_BROKER] = s->broker;
	remains[SESSION_GUARD] = limits_free(s->limits);
	remains[SESSION_VEIL] = s->unveiling;
	arena_free(s->a);
	free(s);
	for (size_t i = 0; i < ARRAY_LEN(remains); i++) {
		if (ret_remains)
			ret_remains[i] = remains[i] > 0 ? remains[i] : 0;
		else if (remains[i] > 0)
			(void)waitpid(remains[i], NULL, 0);
	}
}

bool session_goes_with_us(const struct session *s)
{
	return s->alone && !s->standby && !s->egress && !s->plan->bare;
}

struct session *session_new(const struct session_request *req)
{
	struct session *s = malloc(sizeof(*s));

	if (!s)
		abort();
	*s = (struct session){ .req = *req,
			       .a = arena_new(),
			       .child = SANDBOX_CHILD_INIT,
			       .events = -1,
			       .limit = -1,
			       .listener = -1,
			       .user_ns = -1,
			       .mount_ns = -1,
			       .changes = -1,
			       .reports = { -1, -1 },
			       .lost = -1,
			       .inquiries = -1 };
	for (size_t i = 0; i < SOURCE_MAX_; i++)
		s->sources[i] = -1;
	journal_init(&s->journal, req->audit);
	return s;
}

int session_start(const struct session_request *req, struct session **ret, struct error *e)
{
	struct session *s = session_new(req);
	int r = session_launch(s, e);

	if (r < 0) {
		if (!s->logged)
			session_log_start(s);
		journal_end(&s->journal, NULL, req->report, e);
	}
	tell_unlogged(s);
	if (r == 0) {
		*ret = s;
		return 0;
	}
	session_free(s, NULL);
	return r;
}

int session_end(struct session *s, struct run_result *ret, struct error *e)
{
	int r = 0;

	if (!s->alone) {
		session_kill(s); /* changes nothing when it is gone */
		wait_for_init(s);
	}
	if (s->broker > 0 && waitpid(s->broker, NULL, WNOHANG) != 0)
		s->broker = 0;
	if (s->failed) {
		*e = s->failure;
		r = -e->code;
	} else {
		report_prune(s->req.report);
		fill_result(s, ret);
	}
	journal_end(&s->journal, s->failed ? NULL : ret, s->req.report, e);
	tell_unlogged(s);
	return r;
}
