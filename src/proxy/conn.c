/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Life of a connection: making, waiting, dispatch by state, closing. What the
 * states mean is in conn.h. Nothing here blocks, and nothing is freed before
 * the end of the loop's turn.
 */
#include "proxy/conn.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/fd.h"
#include "proxy/proxy.h"
#include "proxy/sni.h"

#define SIDE_BUF_MAX ((size_t)256 << 10) /* far above what the limits below let in */
#define YOUNG_MS 5 /* in which much is said in short time */
#define HEAD_CROWDED ((size_t)8 << 10) /* of a head, when there are very many connections */

static const uint32_t wait_ms[WAIT_MAX_] = {
	[WAIT_HEAD] = 10000, /* a whole request head, SOCKS request or DNS message */
	[WAIT_IDLE] = 60000, /* between requests, and for the first byte of a hello */
	[WAIT_HELLO] = 5000, /* from its first byte to its last */
	[WAIT_LINE] = 1000, /* for the rest of a line that may be a request's */
	[WAIT_NEXT] = 10000, /* for an address when there is another to try */
	[WAIT_DIAL] = 30000, /* for the resolver, the last address, the parent's answer */
	[WAIT_LINGER] = 2000, /* for the client to read our last words */
	[WAIT_HALF] = 300000, /* half-closed and silent */
};

static const char *const via_names[] = {
	[VIA_HTTP] = "http",       [VIA_CONNECT] = "connect",
	[VIA_SOCKS] = "socks",     [VIA_TRANSPARENT] = "transparent",
	[VIA_DNS] = "dns",         [VIA_FORWARD] = "forward",
	[VIA_PUBLISH] = "publish",
};

const char *conn_via_name(enum conn_via via)
{
	return via_names[via];
}

void conn_wait(struct proxy *p, struct conn *c, enum wait w)
{
	struct wait_queue *q = &p->waiting[c->wait];

	if (c->wait != WAIT_NONE) {
		*(c->wait_prev ? &c->wait_prev->wait_next : &q->first) = c->wait_next;
		*(c->wait_next ? &c->wait_next->wait_prev : &q->last) = c->wait_prev;
	}
	c->wait = w;
	if (w == WAIT_NONE)
		return;
	q = &p->waiting[w];
	c->deadline_ms = p->now_ms + (w == WAIT_ASK ? p->config->ask_ms : wait_ms[w]);
	/* behind all others, but where the length has changed meanwhile */
	c->wait_prev = q->last;
	while (c->wait_prev && c->wait_prev->deadline_ms > c->deadline_ms)
		c->wait_prev = c->wait_prev->wait_prev;
	c->wait_next = c->wait_prev ? c->wait_prev->wait_next : q->first;
	*(c->wait_prev ? &c->wait_prev->wait_next : &q->first) = c;
	*(c->wait_next ? &c->wait_next->wait_prev : &q->last) = c;
}

static void side_init(struct side *s, unsigned index, int fd)
{
	*s = (struct side){
		.ref = REF_SIDE,
		.index = (uint8_t)index,
		.fd = fd,
		.in = BUF_INIT(SIDE_BUF_MAX),
		.out = BUF_INIT(SIDE_BUF_MAX),
	};
}

struct conn *conn_new(struct proxy *p, const struct listener *l, int fd, enum conn_front front,
		      enum conn_via via)
{
	struct conn *c = calloc(1, sizeof(*c));

	if (!c) {
		fd_close(fd);
		return NULL;
	}
	side_init(&c->side[0], 0, fd);
	side_init(&c->side[1], 1, -1);
	c->side[0].readable = true; /* clients that speak first have often spoken */
	c->owner = l->owner;
	c->owner->n_conns++;
	c->front = front;
	c->via = via;
	c->born_ms = c->started_ms = p->now_ms;
	c->address.kind = HOST_NAME;
	if (front == FRONT_HTTP)
		http_attach(c);
	if (front == FRONT_SOCKS)
		c->words = WORDS_SOCKS;
	conn_wait(p, c, WAIT_HEAD);
	c->next = p->conns;
	if (c->next)
		c->next->prev = c;
	p->conns = c;
	p->n_conns++;
	return c;
}

void conn_set_state(struct proxy *p UNUSED, struct conn *c, enum conn_state s)
{
	c->state = s;
}

/* Mostly it is what it was: the next request on a connection. */
static void set_text(char **at, const char *text)
{
	if (*at && strcmp(*at, text) == 0)
		return;
	free(*at);
	*at = strdup(text);
	if (!*at)
		abort();
}

void conn_set_target(struct proxy *p, struct conn *c, const struct host *host, uint16_t port,
		     const char *rule)
{
	set_text(&c->name, host->name);
	set_text(&c->rule, rule);
	c->port = port;
	c->bytes[0] = c->bytes[1] = 0;
	c->started_ms = p->now_ms;
	c->open_record = true;
}

void conn_drop_upstream(struct conn *c)
{
	struct side *s = &c->side[1];

	fd_close(s->fd); /* which also takes it out of epoll */
	buf_done(&s->in);
	buf_done(&s->out);
	side_init(s, 1, -1);
}

static void address_text(const struct address *a, struct host *ret)
{
	if (a->kind == HOST_NAME)
		ret->name[0] = '\0';
	else
		host_from_addr(a->kind, a->bytes, ret);
}

void conn_record(struct proxy *p, struct conn *c, const char *reason)
{
	struct host address;

	if (!c->open_record)
		return;
	c->open_record = false;
	address_text(&c->address, &address);
	report_connect(&p->report, &(struct record){
					   .owner = c->owner->id,
					   .host = c->name,
					   .port = c->port,
					   .via = via_names[c->via],
					   .allow = true,
					   .over = c->state == CONN_RELAY,
					   .rule = c->rule,
					   .reason = reason,
					   .address = address.name,
					   .sent = c->bytes[0],
					   .received = c->bytes[1],
					   .ms = p->now_ms - c->started_ms,
				   });
}

void conn_close(struct proxy *p, struct conn *c)
{
	if (c->state == CONN_CLOSING)
		return;
	conn_record(p, c, NULL);
	conn_wait(p, c, WAIT_NONE);
	ask_leave(p, c);
	dial_free(p, c);
	for (unsigned s = 0; s < 2; s++) {
		relay_release(&p->relay, &c->flow[s]);
		fd_close(c->side[s].fd);
		c->side[s].fd = -1;
	}
	*(c->prev ? &c->prev->next : &p->conns) = c->next;
	if (c->next)
		c->next->prev = c->prev;
	c->prev = NULL;
	c->next = p->dead;
	p->dead = c;
	p->n_conns--;
	c->owner->n_published -= c->via == VIA_PUBLISH;
	c->owner->n_conns--;
	conn_set_state(p, c, CONN_CLOSING);
}

void conn_reset(struct proxy *p, struct conn *c)
{
	const struct linger hard = { .l_onoff = 1, .l_linger = 0 };

	/* a plain close would look like an orderly end of data that was cut off */
	for (unsigned s = 0; s < 2; s++) {
		if (c->side[s].fd >= 0)
			(void)setsockopt(c->side[s].fd, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
	}
	conn_close(p, c);
}

void conn_free(struct conn *c)
{
	for (unsigned s = 0; s < 2; s++) {
		buf_done(&c->side[s].in);
		buf_done(&c->side[s].out);
	}
	hellos_free(c->flow[0].hellos);
	http_detach(c);
	free(c->name);
	free(c->rule);
	free(c->grant);
	free(c);
}

/* May side s of a flowing connection be read? */
static bool flow_wants(const struct conn *c, unsigned s)
{
	const struct flow *f = &c->flow[s];

	if (c->side[s].eof || c->side[!s].out.len > 0 || (f->pipe && f->pipe->fill > 0))
		return false;
	if (s == 0 && c->state == CONN_RELAY && c->gate != GATE_OPEN)
		return c->side[0].in.len < SNI_HELLO_MAX;
	/* the response's head is read before its flow begins */
	if (f->mode == FLOW_NONE)
		return s == 1 && c->state == CONN_EXCHANGE;
	return f->mode != FLOW_DONE;
}

/*
 * A client that has asked for something and shuts its side may still want the answer, or be gone
 * for good: it is to be noticed, once. Waited for between requests too, where reading would tell,
 * so that epoll need not be told with each of them.
 */
static uint32_t hang_up(const struct conn *c, unsigned s)
{
	return s == 0 && c->http && !c->side[0].eof && !c->side[0].hung ? EPOLLRDHUP : 0;
}

/* Pure: the events that side s has to wait for. */
static uint32_t interest(const struct conn *c, unsigned s)
{
	const struct relay_pipe *pipe = c->flow[!s].pipe;
	uint32_t out = c->side[s].out.len > 0 || (pipe && pipe->fill > 0) ? EPOLLOUT : 0;

	switch (c->state) {
	case CONN_HEAD:
		/* while the client does not take our answers, it is asked nothing more */
		return (out ? out : c->side[s].eof ? 0 : EPOLLIN) | hang_up(c, s);
	case CONN_ASK:
		/* who only ever wanted a tunnel, and has hung up, need not be asked about */
		return s == 0 && (c->via == VIA_CONNECT || c->via == VIA_SOCKS) ? EPOLLRDHUP : 0;
	case CONN_DIAL:
		return s == 1 ? EPOLLOUT : 0;
	case CONN_PARENT:
		return s == 1 ? out | EPOLLIN : 0;
	case CONN_EXCHANGE:
		return out | (flow_wants(c, s) ? EPOLLIN : 0) | hang_up(c, s);
	case CONN_RELAY:
		return out | (flow_wants(c, s) ? EPOLLIN : 0);
	case CONN_FLUSH:
		return s == 0 ? (out ? out : EPOLLIN) : 0;
	case CONN_RESOLVE:
	case CONN_CLOSING:
		break;
	}
	return 0;
}

/*
 * Tell epoll what to wait for. Input that is not wanted for the moment may stay asked for:
 * mostly it does not come before it is wanted again, and two calls are saved. When
 * it does come, conn_event() has it taken back (exact).
 */
static void arm(struct proxy *p, struct conn *c, unsigned s, bool exact)
{
	struct side *side = &c->side[s];
	struct epoll_event ev = { .events = interest(c, s), .data.ptr = side };
	/* once both ends have shut, epoll would report the hang-up for ever */
	bool leave = ev.events == 0 && side->shut;
	int op = side->registered ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;

	if (!exact && !side->eof && side->registered)
		ev.events |= side->armed & (EPOLLIN | EPOLLRDHUP);
	if (side->fd < 0 ||
	    (leave ? !side->registered : side->registered && side->armed == ev.events))
		return;
	if (leave)
		op = EPOLL_CTL_DEL;
	if (epoll_ctl(p->epoll_fd, op, side->fd, &ev) < 0) {
		conn_reset(p, c);
		return;
	}
	side->registered = !leave;
	side->armed = ev.events;
}

/* One round of reading and answering; true: it may go on, bytes are left and there is room. */
static bool head_round(struct proxy *p, struct conn *c)
{
	static void (*const fronts[])(struct proxy *, struct conn *) = {
		[FRONT_HTTP] = front_http,
		[FRONT_SOCKS] = front_socks,
		[FRONT_HELLO] = front_hello,
		[FRONT_DNS] = front_dns,
	};
	struct side *client = &c->side[0];
	size_t room = p->relay.chunk < RELAY_BUFFER ? HEAD_CROWDED : HTTP_HEAD_MAX, before;

	if (relay_flush(client) < 0) {
		conn_reset(p, c);
		return false;
	}
	if (client->out.len > 0)
		return false;
	if (relay_fill(&p->relay, client, room) < 0) {
		conn_reset(p, c);
		return false;
	}
	before = client->in.len;
	if (before > 0)
		fronts[c->front](p, c);
	if (c->state == CONN_HEAD && before >= room && client->in.len == before) {
		conn_refuse(p, c, REFUSE_TOO_BIG, "too many connections for a request this long");
		return false;
	}
	return c->state == CONN_HEAD && client->in.len < before;
}

static void step_head(struct proxy *p, struct conn *c)
{
	/* a kept upstream that says something unasked, or ends, is of no more use */
	if (c->side[1].fd >= 0 && c->side[1].readable)
		conn_drop_upstream(c);
	while (head_round(p, c))
		;
	/* an end in the middle of a request: nobody is left to answer */
	if (c->state == CONN_HEAD && c->side[0].eof && c->side[0].out.len == 0)
		conn_close(p, c);
}

static void step_flush(struct proxy *p, struct conn *c)
{
	struct side *client = &c->side[0];

	if (relay_flush(client) < 0) {
		conn_close(p, c);
		return;
	}
	if (client->out.len > 0)
		return;
	if (!client->shut) {
		client->shut = true;
		(void)shutdown(client->fd, SHUT_WR);
		conn_wait(p, c, WAIT_LINGER);
	}
	/* read away what still comes: with unread bytes close() resets, and eats our words; but who
	   sends without end must not keep the others waiting */
	for (size_t n = 0; client->readable && !client->eof && n < RELAY_TURN; n += RELAY_BUFFER) {
		buf_drop(&client->in, client->in.len);
		if (relay_fill(&p->relay, client, RELAY_BUFFER) < 0)
			client->eof = true;
	}
	buf_drop(&client->in, client->in.len);
	if (client->eof)
		conn_close(p, c);
}

static void step(struct proxy *p, struct conn *c)
{
	switch (c->state) {
	case CONN_HEAD:
		step_head(p, c);
		break;
	case CONN_PARENT:
		dial_parent_step(p, c);
		break;
	case CONN_EXCHANGE:
		exchange_step(p, c);
		break;
	case CONN_RELAY:
		tunnel_step(p, c);
		break;
	case CONN_FLUSH:
		step_flush(p, c);
		break;
	case CONN_ASK:
	case CONN_RESOLVE:
	case CONN_DIAL:
	case CONN_CLOSING:
		break;
	}
}

void conn_advance(struct proxy *p, struct conn *c)
{
	enum conn_state before;

	if (c->state == CONN_CLOSING)
		return;
	do {
		before = c->state;
		step(p, c);
	} while (c->state != before && c->state != CONN_CLOSING);
	/* cannot happen while the limits hold; bytes lost silently would be worse than this */
	if (c->side[0].out.overflow || c->side[1].out.overflow || c->side[0].in.overflow ||
	    c->side[1].in.overflow)
		conn_reset(p, c);
	for (unsigned s = 0; s < 2 && c->state != CONN_CLOSING; s++)
		arm(p, c, s, false);
	p->lively |= p->now_ms - c->born_ms < YOUNG_MS;
}

void conn_event(struct proxy *p, struct side *side, uint32_t events)
{
	struct conn *c =
		(struct conn *)(void *)((char *)(side - side->index) - offsetof(struct conn, side));

	if (c->state == CONN_CLOSING)
		return;
	c->owner->busy = true;
	if (c->state == CONN_ASK) {
		/* of a request that may still want its answer, epoll tells too: not asked for here */
		if (side->index == 0 && (events & (interest(c, 0) | EPOLLHUP | EPOLLERR)))
			conn_close(p, c);
		else
			arm(p, c, side->index, true);
		return;
	}
	/* nothing is wanted of it, and it hangs up without our doing: a reset */
	if ((interest(c, side->index) & ~(uint32_t)EPOLLRDHUP) == 0 && !side->shut &&
	    (events & (EPOLLERR | EPOLLHUP))) {
		conn_reset(p, c);
		return;
	}
	if ((events & EPOLLRDHUP) && c->http) {
		side->hung = true;
		if (c->state == CONN_EXCHANGE)
			conn_wait(p, c, WAIT_HALF);
	}
	if (events & (EPOLLIN | EPOLLERR | EPOLLHUP))
		side->readable = true;
	if (c->state == CONN_DIAL && side->index == 1)
		dial_event(p, c);
	conn_advance(p, c);
	/* it was not read, and would be told of again and again */
	if (c->state != CONN_CLOSING && (side->readable || (events & EPOLLRDHUP)) &&
	    !(interest(c, side->index) & EPOLLIN))
		arm(p, c, side->index, true);
}

void conn_expire(struct proxy *p, struct conn *c)
{
	bool began = c->side[0].in.len > 0;

	switch (c->state) {
	case CONN_HEAD:
		if (began && c->front == FRONT_HELLO)
			front_hello(p, c);
		else if (began)
			conn_refuse(p, c, REFUSE_SLOW, "the request did not come in time");
		else
			conn_close(p, c);
		break;
	case CONN_ASK:
		ask_expired(p, c);
		break;
	case CONN_RESOLVE:
	case CONN_DIAL:
	case CONN_PARENT:
		dial_expired(p, c);
		break;
	case CONN_RELAY:
		tunnel_step(p, c);
		break;
	case CONN_EXCHANGE:
	case CONN_FLUSH:
		conn_close(p, c);
		break;
	case CONN_CLOSING:
		return;
	}
	if (c->wait != WAIT_NONE && c->deadline_ms <= p->now_ms)
		conn_close(p, c); /* whatever it was: no timer fires twice */
	conn_advance(p, c);
}
