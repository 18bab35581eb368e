/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From an allowed target to a connected upstream. The name is resolved once;
 * each address of the answer is judged (decide_address) and exactly those that
 * passed are dialled, in order, until one connects. Through a parent proxy the
 * name is not resolved here at all: that is what such networks want, and what
 * the parent may reach is the parent's decision.
 */
#include <errno.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "proxy/proxy.h"

static void dial_next(struct proxy *p, struct conn *c);

void dial_free(struct proxy *p, struct conn *c)
{
	if (!c->dial)
		return;
	/* a client that asks and hangs up, again and again, must not leave its questions behind */
	if (c->dial->job)
		resolver_cancel(&p->resolver, c->dial->job);
	free(c->dial);
	c->dial = NULL;
}

static void fail(struct proxy *p, struct conn *c, const char *what)
{
	enum refusal why = c->dial->error == ETIMEDOUT ? REFUSE_TIMEOUT : REFUSE_UNREACHABLE;
	_cleanup_buf_ struct buf text = BUF_INIT(512);

	buf_puts(&text,
		 c->through_parent ? "cannot reach the parent proxy for " : "cannot connect to ");
	conn_put_endpoint(&text, c->name, c->port);
	buf_printf(&text, ": %s", what);
	conn_refuse(p, c, why, buf_str(&text));
}

/* Keep of the addresses those that may be dialled; false: none, and it was said. */
static bool vet(struct proxy *p, struct conn *c)
{
	struct dial *d = c->dial;
	struct verdict v = { .allow = false };
	struct host host, address;
	size_t kept = 0;

	if (c->through_parent || c->via == VIA_FORWARD || c->via == VIA_PUBLISH)
		return true;
	if (host_parse(c->name, strlen(c->name), &host, NULL) < 0)
		abort(); /* it is the canonical form that host_parse() made */
	for (size_t i = 0; i < d->n; i++) {
		struct verdict one;

		host_from_addr(d->address[i].kind, d->address[i].bytes, &address);
		decide_address(p->config, own_addresses(p), &host, &address, c->port, &one);
		if (one.allow)
			d->address[kept++] = d->address[i];
		else
			v = one;
	}
	d->n = kept;
	if (kept == 0) {
		c->open_record = false;
		conn_deny(p, c, c->name, c->port, &v);
	}
	return kept > 0;
}

static void connected(struct proxy *p, struct conn *c)
{
	struct dial *d = c->dial;
	struct buf *out = &c->side[1].out;

	conn_wait(p, c, WAIT_NONE);
	if (d->plain) {
		c->http->via_parent = c->through_parent;
		dial_free(p, c);
		exchange_start(p, c);
		return;
	}
	if (!c->through_parent) {
		tunnel_open(p, c);
		return;
	}
	buf_puts(out, "CONNECT ");
	conn_put_endpoint(out, c->name, c->port);
	buf_puts(out, " HTTP/1.1\r\nHost: ");
	conn_put_endpoint(out, c->name, c->port);
	buf_puts(out, "\r\n");
	if (p->config->parent_https.authorization)
		buf_printf(out, "Proxy-Authorization: %s\r\n",
			   p->config->parent_https.authorization);
	buf_puts(out, "\r\n");
	conn_wait(p, c, WAIT_DIAL);
	conn_set_state(p, c, CONN_PARENT);
}

static socklen_t to_sockaddr(const struct address *a, uint16_t port, struct sockaddr_storage *ret)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(port) };
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6, .sin6_port = htons(port) };

	if (a->kind == HOST_IPV4) {
		memcpy(&in.sin_addr, a->bytes, 4);
		memcpy(ret, &in, sizeof(in));
		return sizeof(in);
	}
	memcpy(&in6.sin6_addr, a->bytes, 16);
	memcpy(ret, &in6, sizeof(in6));
	return sizeof(in6);
}

/* Of our own namespace, or of the sandbox's. */
static int new_socket(const struct conn *c, int family)
{
	int fd;

	if (c->via == VIA_PUBLISH)
		return publish_socket(&c->owner->seeds[family == AF_INET6]);
	fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP);
	return fd < 0 ? -errno : fd;
}

/* 0 = connected, -EINPROGRESS, or another -errno. On success and progress side 1 has the fd. */
static int try_address(struct conn *c, const struct address *a)
{
	struct sockaddr_storage to = { 0 };
	socklen_t len = to_sockaddr(a, c->dial->port, &to);
	_cleanup_fd_ int fd = new_socket(c, to.ss_family);
	const int on = 1;
	int r = 0;

	if (fd < 0)
		return fd;
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	(void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	/* what is on this machine has answered by the second time */
	for (int i = 0; i < 2 && (i == 0 || r == -EINPROGRESS); i++)
		r = connect(fd, (const struct sockaddr *)&to, len) == 0 ? 0 : -errno;
	if (r == -EALREADY)
		r = -EINPROGRESS;
	if (r == 0 || r == -EINPROGRESS)
		c->side[1].fd = TAKE_FD(fd);
	return r;
}

static void dial_next(struct proxy *p, struct conn *c)
{
	struct dial *d = c->dial;

	while (d->next < d->n) {
		int r;

		conn_drop_upstream(c);
		c->address = d->address[d->next++];
		r = try_address(c, &c->address);
		if (r == 0) {
			connected(p, c);
			return;
		}
		if (r == -EINPROGRESS) {
			conn_wait(p, c, d->next < d->n ? WAIT_NEXT : WAIT_DIAL);
			conn_set_state(p, c, CONN_DIAL);
			return;
		}
		d->error = -r;
	}
	fail(p, c, strerror(d->error));
}

void dial_event(struct proxy *p, struct conn *c)
{
	socklen_t len = sizeof(c->dial->error);

	if (getsockopt(c->side[1].fd, SOL_SOCKET, SO_ERROR, &c->dial->error, &len) < 0)
		c->dial->error = errno;
	c->side[1].readable = false;
	if (c->dial->error == 0)
		connected(p, c);
	else
		dial_next(p, c);
}

void dial_expired(struct proxy *p, struct conn *c)
{
	c->dial->error = ETIMEDOUT;
	if (c->state == CONN_DIAL)
		dial_next(p, c);
	else
		fail(p, c,
		     c->state == CONN_RESOLVE ? "the name was not resolved in time"
					      : "no answer in time");
}

static void add_address(struct dial *d, const struct host *address)
{
	d->address[d->n].kind = address->kind;
	memcpy(d->address[d->n].bytes, address->addr, 16);
	d->n++;
}

static void use_address(struct proxy *p, struct conn *c, const struct host *address)
{
	add_address(c->dial, address);
	if (vet(p, c))
		dial_next(p, c);
}

/* Addresses of the name to dial: its own, given, loopback's, or the resolver's. */
static void find_addresses(struct proxy *p, struct conn *c, const struct host *host)
{
	const struct host *fixed = decide_fixed(p->config, host);
	struct host loopback;

	if (host->kind != HOST_NAME || fixed) {
		use_address(p, c, fixed ? fixed : host);
		return;
	}
	if (decide_is_localhost(host)) {
		const uint8_t v4[4] = { 127, 0, 0, 1 }, v6[16] = { [15] = 1 };

		host_from_addr(HOST_IPV6, v6, &loopback);
		c->dial->address[c->dial->n++] = (struct address){ .kind = HOST_IPV4 };
		memcpy(c->dial->address[0].bytes, v4, sizeof(v4));
		use_address(p, c, &loopback);
		return;
	}
	c->dial->job = resolver_submit(&p->resolver, host->name, c);
	if (!c->dial->job) {
		fail(p, c, "no thread for the resolver");
		return;
	}
	conn_wait(p, c, WAIT_DIAL);
	conn_set_state(p, c, CONN_RESOLVE);
}

static void dial_new(struct conn *c, uint16_t port, bool plain)
{
	c->dial = calloc(1, sizeof(*c->dial));
	if (!c->dial)
		abort();
	c->dial->port = port;
	c->dial->plain = plain;
	c->dial->error = EHOSTUNREACH;
	c->address.kind = HOST_NAME;
	c->through_parent = false;
}

void dial_start(struct proxy *p, struct conn *c, bool plain_http)
{
	const struct parent *parent;
	struct host host;

	if (host_parse(c->name, strlen(c->name), &host, NULL) < 0)
		abort();
	conn_drop_upstream(c);
	dial_new(c, c->port, plain_http);
	parent = decide_parent(p->config, &host, c->port, plain_http);
	if (!parent) {
		find_addresses(p, c, &host);
		return;
	}
	c->through_parent = true;
	c->dial->port = parent->port;
	find_addresses(p, c, &parent->host);
}

void dial_direct(struct proxy *p, struct conn *c, const struct host *addresses, size_t n,
		 uint16_t port)
{
	dial_new(c, port, false);
	for (size_t i = 0; i < n; i++)
		add_address(c->dial, &addresses[i]);
	dial_next(p, c);
}

void dial_resolved(struct proxy *p, const struct resolve_job *job)
{
	struct conn *c = job->owner;

	if (!c)
		return;
	c->dial->job = NULL;
	c->dial->n = job->n;
	memcpy(c->dial->address, job->address, sizeof(job->address));
	if (job->error || job->n == 0)
		fail(p, c, job->error ? gai_strerror(job->error) : "the name has no address");
	else if (vet(p, c))
		dial_next(p, c);
	conn_advance(p, c);
}

void dial_parent_step(struct proxy *p, struct conn *c)
{
	struct side *up = &c->side[1];
	struct http_head head;
	size_t scanned = 0;
	int n;

	if (relay_flush(up) < 0 || relay_fill(&p->relay, up, HTTP_HEAD_MAX) < 0) {
		fail(p, c, "the connection broke");
		return;
	}
	n = http_head_end(buf_str(&up->in), up->in.len, &scanned, NULL);
	if (n == 0 && !up->eof)
		return;
	if (n <= 0 || http_parse_response(up->in.data, (size_t)n, false, &head, NULL) < 0 ||
	    head.status < 200) {
		fail(p, c, "its answer to CONNECT cannot be understood");
		return;
	}
	if (head.status >= 300) {
		char what[64];

		(void)snprintf(what, sizeof(what), "it answered %u to CONNECT", head.status);
		fail(p, c, what);
		return;
	}
	buf_drop(&up->in, (size_t)n);
	tunnel_open(p, c);
}
