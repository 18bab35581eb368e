/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The event loop: one thread, level-triggered epoll, time-outs from queues that
 * are in order by construction. What a turn closes is freed when the turn is
 * over.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "proxy/proxy.h"

#define EVENTS_MAX 256
#define FDS_RESERVED 64 /* listeners, resolver, control, and air */
#define CONNS_MAX 32768u
#define RESUME_MS 100 /* look again whether there is room */
#define DRAIN_MS 1000 /* for what is on its way when the sandbox has ended */

static uint64_t monotonic_ms(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

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
		.now_ms = monotonic_ms(),
		.max_conns = connection_limit(),
		.report.fd = PROXY_CONTROL_FD,
		.seeds = { { -1, -1 }, { -1, -1 } },
		.epoll_fd = epoll_create1(EPOLL_CLOEXEC),
		.relay.buffer = malloc(RELAY_BUFFER),
	};
	if (p->epoll_fd < 0 || !p->relay.buffer)
		return error_set(e, errno, "cannot set up: %s", strerror(errno));
	r = config_parse("", 0, &p->config, e);
	if (r == 0)
		r = names_set_networks(&p->names, p->config->synthetic4, p->config->synthetic6, e);
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

/* Until the next time-out; -1 = none. */
static int poll_timeout(const struct proxy *p)
{
	uint64_t next = p->paused ? p->now_ms + RESUME_MS : UINT64_MAX;

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
	if (p->paused && p->n_conns < p->max_conns)
		listeners_pause(p, false);
}

/* Close everything, so that every record is written; give back what is ours. */
static void finish(struct proxy *p)
{
	p->report.patient = true;
	while (p->conns)
		conn_close(p, p->conns);
	report_finish(&p->report);
	bury(p);
	while (p->listeners) {
		struct listener *next = p->listeners->next;

		fd_close(p->listeners->fd);
		free(p->listeners);
		p->listeners = next;
	}
	for (size_t i = 0; i < ARRAY_LEN(p->seeds); i++) {
		fd_close(p->seeds[i].fd);
		fd_close(p->seeds[i].listener);
	}
	relay_done(&p->relay);
	names_done(&p->names);
	config_free(p->config);
	free(p->own.v);
}

/* Bytes that a program inside believes to be sent, and are not yet. */
static bool is_owing(const struct conn *c)
{
	unsigned s = c->via == VIA_PUBLISH; /* its side */
	const struct relay_pipe *pipe = c->flow[s].pipe;

	if (c->via == VIA_DNS || c->state == CONN_FLUSH)
		return false;
	return c->state == CONN_RESOLVE || c->state == CONN_DIAL || c->state == CONN_PARENT ||
	       c->side[!s].out.len > 0 || (pipe && pipe->fill > 0) ||
	       (c->state != CONN_HEAD && c->side[s].in.len > 0) || c->side[s].readable;
}

static bool is_owing_any(const struct proxy *p)
{
	for (const struct conn *c = p->conns; c; c = c->next) {
		if (is_owing(c))
			return true;
	}
	return false;
}

static int turn(struct proxy *p, int timeout)
{
	struct epoll_event events[EVENTS_MAX];
	int n = epoll_wait(p->epoll_fd, events, EVENTS_MAX, timeout);

	if (n < 0 && errno != EINTR)
		return -errno;
	p->now_ms = monotonic_ms();
	for (int i = 0; i < n; i++)
		dispatch(p, &events[i]);
	expire(p);
	bury(p);
	return n > 0 ? n : 0;
}

/* A program that sends and ends need not wait for its words to arrive; nor may they be lost. */
static int drain(struct proxy *p)
{
	uint64_t end = p->now_ms + DRAIN_MS;
	int n;

	/* first what the kernel has for us, then what we have for it */
	while ((n = turn(p, 0)) > 0 && p->now_ms < end)
		;
	while (n >= 0 && is_owing_any(p) && p->now_ms < end)
		n = turn(p, (int)(end - p->now_ms));
	return n < 0 ? n : 0;
}

int proxy_run(struct proxy *p, struct error *e)
{
	int r = 0;

	while (!p->quit && r >= 0)
		r = turn(p, poll_timeout(p));
	if (r >= 0)
		r = drain(p);
	if (r < 0)
		return error_set(e, -r, "epoll_wait: %s", strerror(-r));
	finish(p);
	return 0;
}
