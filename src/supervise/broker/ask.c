/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --ask for protected names: the call waits while a person is asked, through the supervisor.
 * Only what a plain protected name refuses is asked about, never what a rule denies, nor
 * anything of git's. The broker does nothing else meanwhile, so the command waits as a whole; the
 * lock is given up, and afterwards the place must still be the one that was asked about.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>

#include "base/sys.h"
#include "base/text.h"
#include "supervise/broker/internal.h"

#define ANSWER_MS 65000 /* more than the person has */
#define ANSWERS_MAX 1000 /* remembered for the run */

static enum violation_answer remembered(const struct broker *b, const char *path, bool *ret_known)
{
	for (size_t i = 0; i < b->n_answers; i++) {
		*ret_known = strcmp(b->answers[i].path, path) == 0;
		if (*ret_known)
			return b->answers[i].answer;
	}
	return VIOLATION_REFUSE;
}

static void remember(struct broker *b, const char *path, enum violation_answer answer)
{
	struct answer *more;
	char *copy;

	if (answer != VIOLATION_ALLOW_RUN && answer != VIOLATION_REFUSE_RUN)
		return;
	copy = b->n_answers < ANSWERS_MAX ? strdup(path) : NULL;
	more = copy ? reallocarray(b->answers, b->n_answers + 1, sizeof(*more)) : NULL;
	if (!more) {
		free(copy);
		return;
	}
	b->answers = more;
	b->answers[b->n_answers++] = (struct answer){ copy, answer };
}

/* The answer to question `id`; answers to older ones may still be in the way. */
static enum violation_answer wait_for(const struct broker *b, uint32_t id)
{
	uint64_t end = sys_now_ms() + ANSWER_MS;

	for (;;) {
		struct pollfd fds[] = { { .fd = b->reports, .events = POLLIN },
					{ .fd = b->listener } };
		struct violation_reply reply;
		uint64_t now = sys_now_ms();

		/* nobody left inside, or no supervisor: it does not matter any more */
		if (now >= end || poll(fds, ARRAY_LEN(fds), (int)(end - now)) <= 0 ||
		    fds[1].revents & POLLHUP ||
		    recv(b->reports, &reply, sizeof(reply), MSG_DONTWAIT) != sizeof(reply))
			return VIOLATION_REFUSE;
		if (reply.id == id)
			return (enum violation_answer)reply.answer;
	}
}

/* The lock is given up for the question; the place must be the same afterwards. */
static enum violation_answer question(const struct call *c, struct place *p, const char *path,
				      struct violation *v)
{
	struct broker *b = c->b;
	enum violation_answer answer;
	char now[PLACE_TEXT_MAX];

	if (b->lock >= 0)
		(void)flock(b->lock, LOCK_UN);
	v->kind = VIOLATION_ASK;
	v->id = ++b->questions;
	call_send(c, v, path);
	answer = wait_for(b, v->id);
	while (b->lock >= 0 && flock(b->lock, LOCK_SH) < 0 && errno == EINTR)
		;
	if (!call_is_valid(c) || place_refresh(b, p) < 0 || !p->root)
		return VIOLATION_REFUSE;
	place_text(p, now);
	if (strcmp(now, path) != 0)
		return VIOLATION_REFUSE;
	remember(b, path, answer);
	return answer;
}

int call_plead(const struct call *c, struct place *p, enum violation_kind kind,
	       struct guard_answer *why)
{
	enum violation_answer answer = VIOLATION_REFUSE;
	char path[PLACE_TEXT_MAX];
	struct violation v;
	bool known = false;

	place_text(p, path);
	call_explain(kind, why, &v);
	/* a special place is judged with the lock held alone: nothing to wait with */
	if (c->b->asks && why->protected && !why->protected->locked && !place_is_special(p)) {
		answer = remembered(c->b, path, &known);
		if (!known)
			answer = question(c, p, path, &v);
	}
	if (answer == VIOLATION_ALLOW_ONCE || answer == VIOLATION_ALLOW_RUN) {
		call_note_made(c, p);
		why->allowed = true;
		why->way = GUARD_PLAIN;
		return 0;
	}
	v.kind = (int32_t)kind;
	call_send(c, &v, path);
	return -EACCES;
}
