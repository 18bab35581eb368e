/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/owner.h"

#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "proxy/proxy.h"

#define LEAVE_MS 1000 /* for what is on its way when the sandbox has ended */

struct owner *owner_find(const struct proxy *p, uint32_t id)
{
	struct owner *o = p->owners;

	while (o && o->id != id)
		o = o->next;
	return o;
}

struct owner *owner_get(struct proxy *p, uint32_t id)
{
	struct owner *o = owner_find(p, id);

	if (o)
		return o;
	o = calloc(1, sizeof(*o));
	if (!o)
		abort();
	*o = (struct owner){ .next = p->owners, .id = id, .seeds = { { -1, -1 }, { -1, -1 } } };
	p->owners = o;
	/* config_parse() has let only good ones in */
	if (names_set_networks(&o->names, p->config->synthetic4, p->config->synthetic6, NULL) < 0)
		abort();
	return o;
}

unsigned owner_share(const struct proxy *p)
{
	return p->owners && p->owners->next ? p->max_conns / 2 : p->max_conns;
}

bool owner_has_room(const struct proxy *p, const struct owner *o)
{
	return o->n_conns < owner_share(p) && p->n_conns < p->max_conns;
}

static void forget_answers(struct owner *o)
{
	while (o->answers) {
		struct answer *next = o->answers->next;

		free(o->answers);
		o->answers = next;
	}
	o->n_answers = 0;
}

static void drop_oldest(struct owner *o)
{
	struct answer **a = &o->answers;

	while ((*a)->next)
		a = &(*a)->next;
	free(*a);
	*a = NULL;
	o->n_answers--;
}

void owner_remember(struct owner *o, const char *name, uint16_t port, bool allow)
{
	size_t size = strlen(name) + 1;
	struct answer *a = malloc(sizeof(*a) + size);

	if (!a)
		abort();
	*a = (struct answer){ .next = o->answers, .allow = allow, .port = port };
	memcpy(a->name, name, size);
	o->answers = a;
	if (++o->n_answers > ANSWERS_MAX)
		drop_oldest(o);
}

const struct answer *owner_answer(const struct owner *o, const char *name, uint16_t port)
{
	const struct answer *a = o->answers;

	while (a && (a->port != port || strcmp(a->name, name) != 0))
		a = a->next;
	return a;
}

void owner_leave(struct proxy *p, struct owner *o)
{
	o->leave_ms = p->now_ms + LEAVE_MS;
	o->busy = true; /* one more look at what the kernel has for us */
}

/*
 * Bytes that a program inside believes to be sent, and are not yet. Those that the kernel still has
 * cannot be seen, but behind them comes the end: nobody is left who would hold the socket.
 */
static bool is_owing(const struct conn *c)
{
	unsigned s = c->via == VIA_PUBLISH; /* its side */
	const struct relay_pipe *pipe = c->flow[s].pipe;

	if (c->via == VIA_DNS || c->state == CONN_FLUSH || c->state == CONN_ASK)
		return false;
	if (!c->side[s].eof && !c->side[s].hung && c->flow[s].mode != FLOW_DONE)
		return true;
	return c->state == CONN_RESOLVE || c->state == CONN_DIAL || c->state == CONN_PARENT ||
	       c->side[!s].out.len > 0 || (pipe && pipe->fill > 0) ||
	       (c->state != CONN_HEAD && c->side[s].in.len > 0) || c->side[s].readable;
}

static bool can_go(const struct proxy *p, const struct owner *o)
{
	if (p->now_ms >= o->leave_ms)
		return true;
	if (o->busy)
		return false;
	for (const struct conn *c = p->conns; c; c = c->next) {
		if (c->owner == o && is_owing(c))
			return false;
	}
	return true;
}

static void remove_owner(struct proxy *p, struct owner **at)
{
	struct owner *o = *at;

	for (struct conn *c = p->conns, *next; c; c = next) {
		next = c->next;
		if (c->owner == o)
			conn_close(p, c);
	}
	listeners_remove(p, o);
	inquiries_close(o);
	report_gone(&p->report, o->id);
	for (size_t i = 0; i < ARRAY_LEN(o->seeds); i++) {
		fd_close(o->seeds[i].fd);
		fd_close(o->seeds[i].listener);
	}
	names_done(&o->names);
	forget_answers(o);
	*at = o->next;
	free(o);
}

void owners_settle(struct proxy *p)
{
	for (struct owner **at = &p->owners; *at;) {
		struct owner *o = *at;

		if (o->leave_ms && can_go(p, o)) {
			remove_owner(p, at);
			continue;
		}
		if (o->paused && owner_has_room(p, o))
			listeners_pause(p, o, false);
		at = &o->next;
	}
}

void owners_done(struct proxy *p)
{
	while (p->owners)
		remove_owner(p, &p->owners);
}
