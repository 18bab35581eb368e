/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A held connection is in CONN_ASK with its input untouched. The answer is put down, for the
 * connection or for its owner, and the connection goes back to its front, which judges the
 * same bytes again: there is one road to a decision, asked or not.
 */
#include "proxy/ask.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "proxy/proxy.h"

static void set_answer(struct verdict *v, bool allow, const char *rule, const char *reason)
{
	v->allow = allow;
	v->ask = false;
	(void)snprintf(v->rule, sizeof(v->rule), "%s", rule);
	(void)snprintf(v->reason, sizeof(v->reason), "%s", allow ? "" : reason);
}

void judge(const struct proxy *p, const struct conn *c, const struct host *host, uint16_t port,
	   struct verdict *ret)
{
	const struct answer *answer;
	const struct grant *grant = c->grant;

	decide_host(p->config, host, port, ret);
	if (ret->allow || !ret->ask)
		return;
	answer = owner_answer(c->owner, host->name, port);
	if (answer)
		set_answer(ret, answer->allow, "asked: for this run", "it was refused when asked");
	else if (grant && grant->port == port && strcmp(grant->name, host->name) == 0)
		set_answer(ret, grant->allow, "asked: once", grant->reason);
	else
		ret->ask = p->config->ask_ms > 0;
}

static struct question *find_question(const struct proxy *p, const struct owner *o,
				      const struct host *host, uint16_t port)
{
	struct question *q = p->questions;

	while (q && (q->owner != o || q->port != port || strcmp(q->host.name, host->name) != 0))
		q = q->next;
	return q;
}

static void give(struct conn *c, const struct host *host, uint16_t port, bool allow,
		 const char *reason)
{
	struct grant *g = c->grant ? c->grant : malloc(sizeof(*g));

	if (!g)
		abort();
	*g = (struct grant){ .allow = allow, .port = port, .reason = reason };
	text_copy(g->name, sizeof(g->name), host->name);
	c->grant = g;
}

static struct question *new_question(struct proxy *p, const struct conn *c, const struct host *host,
				     uint16_t port)
{
	struct question *q;
	unsigned n = 0;

	for (q = p->questions; q; q = q->next)
		n++;
	if (n >= QUESTIONS_MAX)
		return NULL;
	q = malloc(sizeof(*q));
	if (!q)
		abort();
	*q = (struct question){
		.next = p->questions,
		.id = ++p->last_question,
		.owner = c->owner,
		.host = *host,
		.port = port,
	};
	if (!report_ask(&p->report, q->owner->id, q->id, host->name, port, conn_via_name(c->via))) {
		free(q);
		return NULL;
	}
	p->questions = q;
	return q;
}

void ask_hold(struct proxy *p, struct conn *c, const struct host *host, uint16_t port)
{
	struct question *q = find_question(p, c->owner, host, port);

	if (!q)
		q = new_question(p, c, host, port);
	if (!q) {
		struct verdict v = { .allow = false };

		set_answer(&v, false, "network.ask", "too many questions are open");
		conn_deny(p, c, host->name, port, &v);
		return;
	}
	conn_drop_upstream(c);
	q->waiting++;
	c->question = q;
	conn_wait(p, c, WAIT_ASK);
	conn_set_state(p, c, CONN_ASK);
}

static void unlink_question(struct proxy *p, const struct question *q)
{
	struct question **at = &p->questions;

	while (*at != q)
		at = &(*at)->next;
	*at = q->next;
}

void ask_leave(struct proxy *p, struct conn *c)
{
	struct question *q = c->question;

	c->question = NULL;
	if (!q || --q->waiting > 0)
		return;
	report_unask(&p->report, q->owner->id, q->id);
	unlink_question(p, q);
	free(q);
}

/* Back to where it came from; the question is not its business any more. */
static void resume(struct proxy *p, struct conn *c)
{
	const struct question *q = c->question;
	struct host host = q->host;
	uint16_t port = q->port;

	c->question = NULL;
	conn_wait(p, c, WAIT_HEAD);
	conn_set_state(p, c, CONN_HEAD);
	if (c->http)
		c->http->scanned[0] = 0;
	if (c->front == FRONT_HELLO)
		listener_captured(p, c, &host, port);
	conn_advance(p, c);
}

/* Every connection that waits for it goes on. */
static void settle(struct proxy *p, struct question *q)
{
	unlink_question(p, q);
	for (struct conn *c = p->conns, *next; c; c = next) {
		next = c->next;
		if (c->question == q)
			resume(p, c);
	}
	free(q);
}

static void give_all(const struct proxy *p, const struct question *q, bool allow,
		     const char *reason)
{
	for (struct conn *c = p->conns; c; c = c->next) {
		if (c->question == q)
			give(c, &q->host, q->port, allow, reason);
	}
}

void ask_expired(struct proxy *p, struct conn *c)
{
	struct question *q = c->question;

	report_unask(&p->report, q->owner->id, q->id);
	give_all(p, q, false, "nobody answered in time");
	settle(p, q);
}

void ask_review(struct proxy *p)
{
	for (struct question *q = p->questions, *next; q; q = next) {
		struct verdict v;

		next = q->next;
		decide_host(p->config, &q->host, q->port, &v);
		if (v.ask && p->config->ask_ms)
			continue;
		report_unask(&p->report, q->owner->id, q->id);
		settle(p, q);
	}
}

int ask_answer(struct proxy *p, const char *text, struct error *e)
{
	static const char *const words[] = {
		[ASK_DENY] = "deny",
		[ASK_DENY_RUN] = "deny-run",
		[ASK_ALLOW_ONCE] = "allow-once",
		[ASK_ALLOW_RUN] = "allow-run",
	};
	const char *word = strchr(text, ' ');
	struct question *q = p->questions;
	uint64_t id = text_leading_u64(text);
	size_t i = 0;

	while (word && i < ARRAY_LEN(words) && strcmp(word + 1, words[i]) != 0)
		i++;
	if (!word || i == ARRAY_LEN(words))
		return error_set(e, EINVAL, "answer: not ID and a known word");
	while (q && q->id != id)
		q = q->next;
	if (!q)
		return 0; /* whoever waited is gone */
	if (i == ASK_DENY_RUN || i == ASK_ALLOW_RUN)
		owner_remember(q->owner, q->host.name, q->port, i == ASK_ALLOW_RUN);
	else
		give_all(p, q, i == ASK_ALLOW_ONCE, "it was refused when asked");
	settle(p, q);
	return 0;
}
