/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests: absolute-form and CONNECT to the proxy, origin-form on port 80 of a
 * tunnel or of a captured connection (`fixed`). Every request on a connection
 * is judged by itself, also when the upstream is kept (N9, N10). What goes
 * upstream is written anew from the parsed parts, with the canonical host, so
 * that the next reader sees what was judged.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/text.h"
#include "proxy/proxy.h"

#define PORT_HTTP 80

struct target {
	struct host host;
	uint16_t port;
	struct span path;
};

void http_attach(struct conn *c)
{
	if (!c->http)
		c->http = calloc(1, sizeof(*c->http));
	if (!c->http)
		abort();
	c->http->request.max = 2 * HTTP_HEAD_MAX;
	c->front = FRONT_HTTP;
	c->words = WORDS_HTTP;
}

void http_detach(struct conn *c)
{
	if (c->http)
		buf_done(&c->http->request);
	free(c->http);
	c->http = NULL;
	c->words = WORDS_NONE;
}

void http_make_fixed(struct conn *c)
{
	http_attach(c);
	c->http->fixed = true;
	c->http->via_parent = false; /* what is open, if anything, leads to the target itself */
	c->http->scanned[0] = 0;
}

static bool is_same_host(const struct host *a, const struct host *b)
{
	return a->kind == b->kind && strcmp(a->name, b->name) == 0;
}

/* A client that resolves names itself has only our address for this one: the name is meant. */
static int parse_authority(const struct conn *c, struct span text, uint16_t default_port,
			   struct host *ret_host, uint16_t *ret_port, struct error *e)
{
	int r = http_parse_authority(text, default_port, ret_host, ret_port, e);

	if (r == 0)
		(void)names_restore(&c->owner->names, ret_host);
	return r;
}

/* The Host field, if there is one, must mean the target. */
static int check_host(const struct conn *c, const struct http_head *head, const struct target *t,
		      struct error *e)
{
	struct host host;
	uint16_t port;

	if (!head->host.ptr)
		return 0;
	if (parse_authority(c, head->host, t->port, &host, &port, e) < 0)
		return error_wrap(e, "Host field");
	if (!is_same_host(&host, &t->host) || port != t->port)
		return error_set(e, EINVAL, "the Host field does not name the request's target");
	return 0;
}

static int absolute_target(const struct conn *c, const struct http_head *head, struct target *ret,
			   struct error *e)
{
	struct span authority;

	if (http_split_absolute(head->target, &authority, &ret->path, e) < 0 ||
	    parse_authority(c, authority, PORT_HTTP, &ret->host, &ret->port, e) < 0)
		return -EINVAL;
	return check_host(c, head, ret, e);
}

static int fixed_target(const struct conn *c, const struct http_head *head, struct target *ret,
			struct error *e)
{
	struct target t = { .port = c->port, .path = head->target };

	if (host_parse(c->name, strlen(c->name), &t.host, e) < 0)
		return -EINVAL;
	if (head->target.ptr[0] != '/' && !span_is(head->target, "*")) {
		struct target asked;

		if (absolute_target(c, head, &asked, e) < 0)
			return -EINVAL;
		if (!is_same_host(&asked.host, &t.host) || asked.port != t.port)
			return error_set(e, EINVAL, "the request is for another host");
		t.path = asked.path;
	}
	*ret = t;
	/* behind an address there may be any number of names */
	return t.host.kind == HOST_NAME ? check_host(c, head, ret, e) : 0;
}

static int request_target(const struct conn *c, const struct http_head *head, struct target *ret,
			  struct error *e)
{
	/* what a server takes for a tunnel is not judged any more */
	if (span_is(head->method, "connect"))
		return error_set(e, EINVAL, "CONNECT is for the proxy, not for a server");
	return c->http->fixed ? fixed_target(c, head, ret, e) : absolute_target(c, head, ret, e);
}

static void put_authority(struct buf *b, const struct target *t)
{
	bool v6 = t->host.kind == HOST_IPV6;

	buf_printf(b, "%s%s%s", v6 ? "[" : "", t->host.name, v6 ? "]" : "");
	if (t->port != PORT_HTTP)
		buf_printf(b, ":%u", t->port);
}

static void put_span(struct buf *b, struct span s)
{
	buf_append(b, s.ptr, s.len);
}

static void put_fields(struct buf *b, const struct http_head *head)
{
	struct span rest = head->fields;
	struct http_field f;

	while (http_next_field(&rest, &f)) {
		if (span_is(f.name, "host") || http_is_hop_by_hop(head, f.name))
			continue;
		http_put_field(b, &f);
	}
}

static void write_request(struct conn *c, const struct http_head *head, const struct target *t,
			  const struct parent *parent)
{
	struct buf *b = &c->http->request;

	buf_drop(b, b->len);
	put_span(b, head->method);
	buf_putc(b, ' ');
	if (parent) {
		buf_puts(b, "http://");
		put_authority(b, t);
	}
	if (t->path.len == 0 || (t->path.ptr[0] != '/' && !span_is(t->path, "*")))
		buf_putc(b, '/');
	put_span(b, t->path);
	buf_printf(b, " HTTP/1.%u\r\nHost: ", head->minor);
	if (c->http->fixed && t->host.kind != HOST_NAME && head->host.ptr)
		put_span(b, head->host);
	else
		put_authority(b, t);
	buf_puts(b, "\r\n");
	put_fields(b, head);
	/* a server that does not read the body must not take it for the next request */
	if (head->body != HTTP_BODY_NONE)
		buf_puts(b, "Connection: close\r\n");
	if (head->upgrade.ptr)
		http_put_upgrade(b, head->upgrade);
	if (parent && parent->authorization)
		buf_printf(b, "Proxy-Authorization: %s\r\n", parent->authorization);
	buf_puts(b, "\r\n");
}

/* head NULL: it could not be read, and whom it is for is known on a fixed connection only */
static void refuse_bad(struct proxy *p, struct conn *c, const struct http_head *head,
		       const struct error *e)
{
	_cleanup_buf_ struct buf shown = BUF_INIT(1024);
	struct span s = head ? (c->http->fixed ? head->host : head->target) : (struct span){ 0 };

	text_append_safe_n(&shown, s.ptr ? s.ptr : "", s.len < 200 ? s.len : 200);
	if (s.ptr || c->http->fixed) {
		report_connect(&p->report, &(struct record){
						   .owner = c->owner->id,
						   .host = s.ptr ? buf_str(&shown) : c->name,
						   .port = s.ptr ? 0 : c->port,
						   .via = conn_via_name(c->via),
						   .rule = "network.http",
						   .reason = e->text,
					   });
	}
	conn_refuse(p, c, e->code == E2BIG ? REFUSE_TOO_BIG : REFUSE_BAD, e->text);
}

void http_deny(struct proxy *p, struct conn *c, const char *reason)
{
	struct verdict v = { .rule = "network.http" };

	(void)snprintf(v.reason, sizeof(v.reason), "%s", reason);
	c->open_record = false;
	conn_deny(p, c, c->name, c->port, &v);
}

/* False: it was denied and the client told, or it is being asked about. */
static bool is_allowed(struct proxy *p, struct conn *c, const struct target *t, struct verdict *ret)
{
	judge(p, c, &t->host, t->port, ret);
	if (ret->ask)
		ask_hold(p, c, &t->host, t->port);
	else if (!ret->allow)
		conn_deny(p, c, t->host.name, t->port, ret);
	return ret->allow;
}

static void start_connect(struct proxy *p, struct conn *c, const struct http_head *head,
			  size_t head_len)
{
	struct target t = { .port = 0 };
	struct error e = { 0 };
	struct verdict v;

	c->via = VIA_CONNECT;
	if (parse_authority(c, head->target, 0, &t.host, &t.port, &e) < 0 ||
	    check_host(c, head, &t, &e) < 0) {
		refuse_bad(p, c, head, &e);
		return;
	}
	if (head->body != HTTP_BODY_NONE) {
		(void)error_set(&e, EINVAL, "CONNECT has no body");
		refuse_bad(p, c, head, &e);
		return;
	}
	if (!is_allowed(p, c, &t, &v))
		return;
	conn_set_target(p, c, &t.host, t.port, v.rule);
	buf_drop(&c->side[0].in, head_len);
	dial_start(p, c, false);
}

/* Nothing may have come that was not asked for: it would be taken for the next answer. */
static bool is_quiet(const struct side *upstream)
{
	char byte;

	return upstream->in.len == 0 && recv(upstream->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 &&
	       errno == EAGAIN;
}

static bool can_reuse(const struct conn *c, const struct target *t, const struct parent *parent)
{
	return c->side[1].fd >= 0 && !c->side[1].eof && c->name &&
	       strcmp(c->name, t->host.name) == 0 && c->port == t->port && !c->http->outdated &&
	       c->http->via_parent == (parent != NULL) && is_quiet(&c->side[1]);
}

/* May it be carried out twice? */
static bool is_harmless(const struct http_head *head)
{
	static const char *const methods[] = { "get", "head", "options", "trace" };

	for (size_t i = 0; i < ARRAY_LEN(methods); i++) {
		if (span_is(head->method, methods[i]))
			return head->body == HTTP_BODY_NONE;
	}
	return false;
}

static void start_request(struct proxy *p, struct conn *c, const struct http_head *head,
			  size_t head_len)
{
	struct http_exchange *h = c->http;
	const struct parent *parent;
	struct error e = { 0 };
	struct target t;
	struct verdict v;

	h->to_head = span_is(head->method, "head");
	if (request_target(c, head, &t, &e) < 0) {
		refuse_bad(p, c, head, &e);
		return;
	}
	if (!is_allowed(p, c, &t, &v))
		return;
	parent = decide_parent(p->config, &t.host, t.port, true);
	write_request(c, head, &t, parent);
	h->body = head->body;
	h->length = head->length;
	h->upgrade = head->upgrade.ptr != NULL;
	h->client_close = head->close;
	h->old_client = head->minor == 0;
	h->harmless = is_harmless(head);
	h->reused = can_reuse(c, &t, parent);
	h->outdated = false;
	h->scanned[0] = 0;
	conn_set_target(p, c, &t.host, t.port, v.rule);
	buf_drop(&c->side[0].in, head_len);
	if (h->reused)
		exchange_start(p, c);
	else
		dial_start(p, c, true);
}

void front_http(struct proxy *p, struct conn *c)
{
	struct buf *in = &c->side[0].in;
	struct error e = { 0 };
	struct http_head head;
	int n;

	if (c->wait == WAIT_IDLE)
		conn_wait(p, c, WAIT_HEAD);
	n = http_head_end(in->data, in->len, &c->http->scanned[0], &e);
	if (n == 0)
		return;
	if (n > 0 && c->http->fixed && http_is_preface(in->data, (size_t)n)) {
		http_deny(p, c, "HTTP/2 without TLS cannot be judged");
		return;
	}
	if (n < 0 || http_parse_request(in->data, (size_t)n, &head, &e) < 0) {
		refuse_bad(p, c, NULL, &e);
		return;
	}
	if (!c->http->fixed && head.method.len == 7 && memcmp(head.method.ptr, "CONNECT", 7) == 0)
		start_connect(p, c, &head, (size_t)n);
	else
		start_request(p, c, &head, (size_t)n);
}
