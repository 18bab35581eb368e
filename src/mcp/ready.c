/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One sandbox that stands ready for the next call. It is made when a call has been answered, and
 * thrown away when none comes for a while. A call that asks for less than the server's policy, or
 * brings files, gets one of its own as always, and so does one for which it would not be what is made
 * now (session_take() looks). Each is used for one call and no more: nothing of a call is ever in
 * the sandbox of the next.
 */
#include <errno.h>

#include "base/sys.h"
#include "mcp/server.h"
#include "supervise/session.h"

#define READY_FOR_MS 20000 /* between two calls a model thinks for some seconds */
/* So many in a row that could not be used: then none is made for a while. */
#define STALE_MAX 8
#define STALE_PAUSE_MS 300000

static const struct session_hooks hooks = { .note = run_take_note };

static void begin(struct server *s, uint64_t now)
{
	struct ready *r = &s->ready;
	struct arena *work = arena_new();
	struct policy *policy = arena_alloc(work, sizeof(*policy));
	const struct run_spec plain = { .cwd = s->req->policy->cwd };
	struct session_request req = {
		.policy = policy, .stdio = { -1, -1, -1 }, .tty = -1, .hooks = &hooks
	};
	struct error e = { 0 };

	run_policy(s, work, &plain, policy);
	run_request(s, &req);
	r->wanted = false;
	if (session_stand_by(&req, &r->session, &e) < 0) {
		r->off = true; /* whatever it is, the next call tells of it */
		r->session = NULL;
		arena_free(work);
		return;
	}
	r->work = work;
	r->until_ms = now + READY_FOR_MS;
}

void ready_drop(struct server *s)
{
	struct ready *r = &s->ready;

	if (!r->session)
		return;
	run_free_session(s, r->session);
	r->session = NULL;
	arena_free(r->work);
	r->work = NULL;
}

void ready_step(struct server *s, const struct pollfd polled[READY_FDS], uint64_t now)
{
	struct ready *r = &s->ready;

	/* it may be another one by now than the one that was polled: then this is one too many */
	if (r->session && ((polled[0].revents && session_step(r->session)) || polled[1].revents ||
			   session_is_lost(r->session) || now >= r->until_ms))
		ready_drop(s);
	if (!r->session && r->wanted && !r->off && !s->unsandboxed && !s->calls &&
	    now >= r->pause_ms)
		begin(s, now);
}

int ready_wait_ms(const struct server *s, uint64_t now)
{
	if (!s->ready.session)
		return -1;
	return s->ready.until_ms > now ? (int)(s->ready.until_ms - now) : 0;
}

void ready_poll(const struct server *s, struct pollfd ret[READY_FDS])
{
	const struct session *session = s->ready.session;

	ret[0] = (struct pollfd){ .fd = session ? session_fd(session) : -1, .events = POLLIN };
	ret[1] =
		(struct pollfd){ .fd = session ? session_watched(session) : -1, .events = POLLPRI };
}

bool ready_take(struct server *s, struct run *run, const struct session_request *req)
{
	struct ready *r = &s->ready;
	int err;

	r->wanted = true;
	if (!r->session)
		return false;
	err = session_take(r->session, req);
	if (err < 0) {
		ready_drop(s);
		if (err == -ESTALE && ++r->stale == STALE_MAX) {
			r->stale = 0;
			r->pause_ms = sys_now_ms() + STALE_PAUSE_MS;
		}
		return false;
	}
	r->stale = 0;
	run->session = TAKE_PTR(r->session);
	run->kept = TAKE_PTR(r->work);
	return true;
}
