/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One HTTP request and its response. The request's head has been judged and
 * rewritten; its body follows as it comes. The response's head is parsed too,
 * for its end must be known before the client's next request may be taken up;
 * one whose end is open to doubt is not passed on.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "proxy/proxy.h"

static const enum flow_mode body_flow[] = {
	[HTTP_BODY_NONE] = FLOW_DONE,
	[HTTP_BODY_LENGTH] = FLOW_LENGTH,
	[HTTP_BODY_CHUNKED] = FLOW_CHUNKED,
	[HTTP_BODY_TO_EOF] = FLOW_TO_EOF,
};

static void set_flow(struct flow *f, enum http_body body, uint64_t length)
{
	f->mode = body_flow[body];
	f->left = length;
	f->chunked = (struct http_chunked){ 0 };
	f->run = 0;
}

void exchange_start(struct proxy *p, struct conn *c)
{
	struct http_exchange *h = c->http;

	h->responded = false;
	h->upstream_close = false;
	h->scanned[1] = 0;
	buf_append(&c->side[1].out, h->request.data, h->request.len);
	set_flow(&c->flow[0], h->body, h->length);
	c->flow[1] = (struct flow){ .mode = FLOW_NONE };
	conn_wait(p, c, c->side[0].hung ? WAIT_HALF : WAIT_NONE);
	conn_set_state(p, c, CONN_EXCHANGE);
}

static void exchange_failed(struct proxy *p, struct conn *c)
{
	struct http_exchange *h = c->http;

	/* a kept upstream may have ended just as we wrote to it: once more, afresh */
	if (h->reused && !h->responded && h->harmless && !h->outdated) {
		h->reused = false;
		dial_start(p, c, true);
		return;
	}
	conn_refuse(p, c, REFUSE_UNREACHABLE, "the server ended the connection without an answer");
}

/* The head as the client gets it: our version, no fields of the other hop. */
static void write_response(struct conn *c, const struct http_head *head)
{
	struct buf *out = &c->side[0].out;
	struct span rest = head->fields;
	struct http_field f;

	buf_puts(out, "HTTP/1.1");
	buf_append(out, head->start_line.ptr + 8, head->start_line.len - 8);
	buf_puts(out, "\r\n");
	while (http_next_field(&rest, &f)) {
		if (!http_is_hop_by_hop(head, f.name))
			http_put_field(out, &f);
	}
	if (head->status == 101)
		http_put_upgrade(out, head->upgrade);
	else if (head->status >= 200 && c->http->client_close)
		buf_puts(out, "Connection: close\r\n");
	buf_puts(out, "\r\n");
}

/* The final head of the response; false: the connection is no exchange any more. */
static bool begin_response(struct proxy *p, struct conn *c, const struct http_head *head)
{
	struct http_exchange *h = c->http;

	if (head->status == 101 && (!h->upgrade || !head->upgrade.ptr)) {
		conn_refuse(p, c, REFUSE_UNREACHABLE,
			    "the server switches to a protocol that "
			    "was not asked for");
		return false;
	}
	h->responded = true;
	buf_drop(&h->request, h->request.len);
	if (head->status == 101) {
		write_response(c, head);
		c->words = WORDS_NONE;
		c->flow[0].mode = c->flow[1].mode = FLOW_FREE;
		conn_set_state(p, c, CONN_RELAY);
		return false;
	}
	if (head->status < 200) {
		if (!h->old_client)
			write_response(c, head);
		return true;
	}
	/* a server that did not read the body may answer what stands in it, too */
	h->upstream_close =
		head->close || head->body == HTTP_BODY_TO_EOF || h->body != HTTP_BODY_NONE;
	h->client_close = h->client_close || head->body == HTTP_BODY_TO_EOF;
	write_response(c, head);
	set_flow(&c->flow[1], head->body, head->length);
	return true;
}

/* True: go on with the body. */
static bool read_response_head(struct proxy *p, struct conn *c)
{
	struct http_exchange *h = c->http;
	struct side *up = &c->side[1];

	while (c->flow[1].mode == FLOW_NONE) {
		struct error e = { 0 };
		struct http_head head;
		bool more;
		int n;

		/* what is behind the head need not be read with it */
		if (relay_fill(&p->relay, up,
			       up->in.len < p->relay.chunk / 2 ? p->relay.chunk / 2
							       : HTTP_HEAD_MAX) < 0)
			up->eof = true;
		n = http_head_end(buf_str(&up->in), up->in.len, &h->scanned[1], &e);
		if (n == 0 && up->eof) {
			exchange_failed(p, c);
			return false;
		}
		if (n == 0)
			return false;
		if (n < 0 ||
		    http_parse_response(up->in.data, (size_t)n, h->to_head, &head, &e) < 0) {
			(void)error_wrap(&e, "the server's answer cannot be understood");
			conn_refuse(p, c, REFUSE_UNREACHABLE, e.text);
			return false;
		}
		h->scanned[1] = 0;
		more = begin_response(p, c, &head);
		buf_drop(&up->in, (size_t)n);
		if (!more)
			return false;
	}
	return true;
}

static void finish(struct proxy *p, struct conn *c)
{
	struct http_exchange *h = c->http;
	bool whole = relay_finished(c, 0);

	conn_record(p, c, NULL);
	h->responded = false;
	c->side[1].readable = false; /* should there be more, epoll will say so */
	if (h->upstream_close || !whole || c->side[1].in.len > 0 || c->side[1].eof)
		conn_drop_upstream(c);
	relay_release(&p->relay, &c->flow[0]);
	relay_release(&p->relay, &c->flow[1]);
	/* a request whose body is not read to its end leaves no place to find the next one */
	if (h->client_close || !whole) {
		conn_wait(p, c, WAIT_LINGER);
		conn_set_state(p, c, CONN_FLUSH);
	} else {
		conn_wait(p, c, WAIT_IDLE);
		conn_set_state(p, c, CONN_HEAD);
	}
}

void exchange_step(struct proxy *p, struct conn *c)
{
	uint64_t before = c->bytes[1];
	int r = relay_pump(&p->relay, c, 0);

	if (r == -EBADMSG) {
		conn_refuse(p, c, REFUSE_BAD, "the request's body is not what its head says");
		return;
	}
	/* the server may have answered before the body's end and closed: its answer counts */
	if (r < 0) {
		c->flow[0].mode = FLOW_NONE;
		buf_drop(&c->side[1].out, c->side[1].out.len);
	}
	if (c->flow[1].mode == FLOW_NONE) {
		bool more = read_response_head(p, c);

		if (c->state != CONN_EXCHANGE)
			return;
		if (!more) { /* an interim answer may wait to go out */
			if (relay_flush(&c->side[0]) < 0)
				conn_reset(p, c);
			return;
		}
	}
	if (relay_pump(&p->relay, c, 1) < 0)
		conn_reset(p, c);
	else if (relay_finished(c, 1))
		finish(p, c);
	else if (c->side[0].hung && c->bytes[1] != before)
		conn_wait(p, c, WAIT_HALF); /* it is still read */
}
