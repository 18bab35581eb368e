/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The event loop: one thread, level-triggered epoll, time-outs from queues that
 * are in order by construction. What a turn closes is freed when the turn is
 * over.
 */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/sys.h"
#include "proxy/proxy.h"

#define EVENTS_MAX 256
#define FDS_RESERVED 64 /* listeners, resolver, control, and air */
#define CONNS_MAX 32768u
#define LINGER_NS 100000
#define LINGER_PAUSE_MAX 63 /* 2^n - 1 */
#define RESUME_MS 100 /* look again whether there is room */

int proxy_watch(struct proxy *p, int fd, void *ref)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.ptr = ref };

	return epoll_ctl(p->epoll_fd, EPOLL_CTL_ADD, fd, &ev) < 0 ? -errno : 0;
}

/* Two fds per connection, pipes, and a reserve: past that, clients wait in the backlog. */
static unsigned connection_limit(void)
{
	struct rlimit r;
	rlim_t n, taken = FDS_RESERVED + 2 * RELAY_PIPES_MAX;

	if (getrlimit(RLIMIT_NOFILE, &r) < 0)
		return 256;
	r.rlim_cur = r.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &r);
	(void)getrlimit(RLIMIT_NOFILE, &r);
	n = r.rlim_cur > taken ? (r.rlim_cur - taken) / 2 : 8;
	return n < CONNS_MAX ? (unsigned)n : CONNS_MAX;
}

int proxy_init(struct proxy *p, struct error *e)
{
	int r;

	*p = (struct proxy){
		.control_ref = REF_CONTROL,
		.resolver_ref = REF_RESOLVER,
		.now_ms = sys_now_ms(),
		.max_conns = connection_limit(),
		.report.fd = PROXY_CONTROL_FD,
		.epoll_fd = epoll_create1(EPOLL_CLOEXEC),
		.relay = { .buffer = malloc(RELAY_BUFFER), .chunk = RELAY_BUFFER },
	};
	if (p->epoll_fd < 0 || !p->relay.buffer)
		return error_set(e, errno, "cannot set up: %s", strerror(errno));
	r = config_parse("", 0, &p->config, e);
	if (r < 0)
		return r;
	r = resolver_init(&p->resolver);
	if (r == 0)
		r = proxy_watch(p, p->resolver.event_fd, &p->resolver_ref);
	if (r == 0)
		r = proxy_watch(p, p->report.fd, &p->control_ref);
	return r < 0 ? error_set(e, -r, "cannot set up: %s", strerror(-r)) : 0;
}

static void collect_resolved(struct proxy *p)
{
	struct resolve_job *job = resolver_collect(&p->resolver);

	while (job) {
		struct resolve_job *next = job->next;

		dial_resolved(p, job);
		free(job);
		job = next;
	}
}

static void dispatch(struct proxy *p, const struct epoll_event *ev)
{
	enum ref_kind *ref = ev->data.ptr;

	switch (*ref) {
	case REF_CONTROL:
		control_event(p);
		break;
	case REF_RESOLVER:
		collect_resolved(p);
		break;
	case REF_LISTENER:
		listener_event(p, ev->data.ptr);
		break;
	case REF_INQUIRIES:
		inquiries_event(p, ev->data.ptr);
		break;
	case REF_SIDE:
		conn_event(p, ev->data.ptr, ev->events);
		break;
	}
}

static void expire(struct proxy *p)
{
	for (int w = WAIT_NONE + 1; w < WAIT_MAX_; w++) {
		while (p->waiting[w].first && p->waiting[w].first->deadline_ms <= p->now_ms)
			conn_expire(p, p->waiting[w].first);
	}
}

/* When an owner wants to be looked at again; UINT64_MAX = never. */
static uint64_t owner_due(const struct proxy *p, const struct owner *o)
{
	if (o->leave_ms)
		return o->busy ? p->now_ms : o->leave_ms;
	return o->paused ? p->now_ms + RESUME_MS : UINT64_MAX;
}

/* Until the next time-out; -1 = none. */
static int poll_timeout(const struct proxy *p)
{
	uint64_t next = p->report.due_ms ? p->report.due_ms : UINT64_MAX;

	for (const struct owner *o = p->owners; o; o = o->next) {
		if (owner_due(p, o) < next)
			next = owner_due(p, o);
	}
	for (int w = WAIT_NONE + 1; w < WAIT_MAX_; w++) {
		const struct conn *c = p->waiting[w].first;

		if (c && c->deadline_ms < next)
			next = c->deadline_ms;
	}
	if (next == UINT64_MAX)
		return -1;
	return next > p->now_ms ? (int)(next - p->now_ms) : 0;
}

static void bury(struct proxy *p)
{
	while (p->dead) {
		struct conn *next = p->dead->next;

		conn_free(p->dead);
		p->dead = next;
	}
}

/* Every record is written; what is ours is given back. */
static void finish(struct proxy *p)
{
	p->report.patient = true;
	owners_done(p);
	report_finish(&p->report);
	bury(p);
	relay_done(&p->relay);
	config_free(p->config);
	free(p->own.v);
}

/*
 * Who has just connected mostly says more at once, and a server on this machine answers at once. To
 * fall asleep and be woken takes longer than that, in a virtual machine several times as long,
 * so there we look again and again. After it was in vain, the next times we sleep.
 */
static int linger(struct proxy *p, struct epoll_event *events)
{
	uint64_t end = sys_now_ns() + LINGER_NS;
	int n;

	if (p->linger_not > 0) {
		p->linger_not--;
		return 0;
	}
	while ((n = epoll_wait(p->epoll_fd, events, EVENTS_MAX, 0)) == 0 && sys_now_ns() < end)
		(void)sched_yield(); /* whom we wait for may need this processor */
	if (n != 0)
		p->linger_pause = 0;
	else if (p->linger_pause < LINGER_PAUSE_MAX)
		p->linger_pause = 2 * p->linger_pause + 1;
	p->linger_not = p->linger_pause;
	return n;
}

static int turn(struct proxy *p)
{
	struct epoll_event events[EVENTS_MAX];
	int n = p->lively ? linger(p, events) : 0;

	if (n == 0)
		n = epoll_wait(p->epoll_fd, events, EVENTS_MAX, poll_timeout(p));
	if (n < 0 && errno != EINTR)
		return -errno;
	p->lively = false;
	p->now_ms = sys_now_ms();
	relay_share(&p->relay, p->n_conns);
	for (struct owner *o = p->owners; o; o = o->next)
		o->busy = n == EVENTS_MAX; /* there may be more */
	for (int i = 0; i < n; i++)
		dispatch(p, &events[i]);
	expire(p);
	owners_settle(p);
	report_flush(&p->report, p->now_ms);
	bury(p);
	return 0;
}

int proxy_run(struct proxy *p, struct error *e)
{
	int r = 0;

	/* a program that sends and ends need not wait for its words to arrive; nor may they be lost */
	while (r == 0 && (!p->quit || p->owners))
		r = turn(p);
	if (r < 0)
		return error_set(e, -r, "epoll_wait: %s", strerror(-r));
	finish(p);
	return 0;
}
