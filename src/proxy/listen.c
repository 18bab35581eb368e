/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Listeners were made inside the sandbox's network namespace and came here as
 * fds; whoever can connect to them is in that sandbox. Connections are taken in
 * batches before anything else is done with them: a full accept queue costs the
 * client a second. Without such a namespace there are no listeners, and the broker
 * brings each connection (inquiry.c).
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/fd.h"
#include "proxy/proxy.h"

#define ACCEPT_BATCH 256
#define SILENT_S 10 /* after which one that says nothing is taken all the same */
#define PORT_HTTP 80
#define PORT_DNS 53
#define PORT_TRANSPARENT 61080 /* as sandbox/native/egress.h has it */
#ifndef IPV6_FREEBIND
#define IPV6_FREEBIND 78
#endif

int listener_add(struct proxy *p, enum listener_kind kind, struct owner *o, int *ret_fd,
		 struct error *e)
{
	struct listener *l = calloc(1, sizeof(*l));
	const int on = 1, silent_s = SILENT_S, fd = *ret_fd;
	int r;

	if (!l)
		abort();
	*l = (struct listener){ .ref = REF_LISTENER, .owner = o, .kind = kind, .fd = fd };
	if (kind == LISTENER_DNS_UDP) {
		/* one of the two applies, by the socket's family */
		(void)setsockopt(fd, IPPROTO_IP, IP_PKTINFO, &on, sizeof(on));
		(void)setsockopt(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, &on, sizeof(on));
		/* IPv6 answers from an address that only a route makes local */
		(void)setsockopt(fd, IPPROTO_IPV6, IPV6_FREEBIND, &on, sizeof(on));
	} else {
		/* what is accepted inherits them */
		(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
		(void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	}
	/* where the client speaks first, it is not worth waking for one that has not yet */
	if (kind == LISTENER_HTTP || kind == LISTENER_SOCKS)
		(void)setsockopt(fd, IPPROTO_TCP, TCP_DEFER_ACCEPT, &silent_s, sizeof(silent_s));
	/* a client that is gone again before accept() must not stop the loop */
	r = fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) < 0 ? -errno : 0;
	if (r == 0)
		r = proxy_watch(p, fd, l);
	if (r < 0) {
		free(l);
		return error_set(e, -r, "cannot watch a listener: %s", strerror(-r));
	}
	*ret_fd = -1;
	l->next = p->listeners;
	p->listeners = l;
	return 0;
}

void listeners_remove(struct proxy *p, const struct owner *o)
{
	for (struct listener **at = &p->listeners; *at;) {
		struct listener *l = *at;

		if (l->owner != o) {
			at = &l->next;
			continue;
		}
		*at = l->next;
		fd_close(l->fd);
		free(l);
	}
}

void listeners_pause(struct proxy *p, struct owner *o, bool pause)
{
	o->paused = pause;
	for (struct listener *l = p->listeners; l; l = l->next) {
		struct epoll_event ev = { .events = EPOLLIN, .data.ptr = l };
		bool rest = pause || (l->kind == LISTENER_PUBLISH && publish_must_wait(p, o));

		if (l->owner != o)
			continue;
		o->paused |= rest;
		if (l->kind == LISTENER_DNS_UDP || l->paused == rest)
			continue;
		if (epoll_ctl(p->epoll_fd, rest ? EPOLL_CTL_DEL : EPOLL_CTL_ADD, l->fd, &ev) == 0)
			l->paused = rest;
	}
}

/* Where the client wanted to go: the address its socket was connected to. */
static bool original_destination(int fd, struct host *ret, uint16_t *ret_port)
{
	struct sockaddr_storage ss = { 0 };
	socklen_t len = sizeof(ss);
	struct sockaddr_in6 in6;
	struct sockaddr_in in;

	if (getsockname(fd, (struct sockaddr *)&ss, &len) < 0)
		return false;
	if (ss.ss_family == AF_INET) {
		memcpy(&in, &ss, sizeof(in));
		host_from_addr(HOST_IPV4, (const uint8_t *)&in.sin_addr, ret);
		*ret_port = ntohs(in.sin_port);
		return true;
	}
	memcpy(&in6, &ss, sizeof(in6));
	host_from_addr(HOST_IPV6, (const uint8_t *)&in6.sin6_addr, ret);
	*ret_port = ntohs(in6.sin6_port);
	return ss.ss_family == AF_INET6;
}

/* One that is neither DNS nor HTTP. */
void listener_captured(struct proxy *p, struct conn *c, const struct host *host, uint16_t port)
{
	struct verdict v;

	judge(p, c, host, port, &v);
	if (v.ask) {
		ask_hold(p, c, host, port);
		return;
	}
	if (!v.allow) {
		conn_deny(p, c, host->name, port, &v);
		return;
	}
	conn_set_target(p, c, host, port, v.rule);
	c->gate = tunnel_gate(p, c);
	if (c->gate == GATE_TLS)
		conn_wait(p, c, WAIT_IDLE); /* nothing is dialled before the hello is read */
	else
		dial_start(p, c, false);
}

/* It came to the listener's own port: the broker sent it here, or that was what it wanted. */
static uint16_t redirected_from(const struct listener *l, int fd, const struct host *to)
{
	struct sockaddr_storage from = { 0 };
	socklen_t len = sizeof(from);
	struct sockaddr_in in; /* the port is at the same place in both */
	uint16_t port = 0;

	if (getpeername(fd, (struct sockaddr *)&from, &len) == 0) {
		memcpy(&in, &from, sizeof(in));
		port = inquiries_arrived(l->owner, to, ntohs(in.sin_port));
	}
	return port ? port : PORT_TRANSPARENT;
}

/* `to` is where the client wanted to go. */
static void take_captured(struct proxy *p, const struct listener *l, int fd, const struct host *to,
			  uint16_t port)
{
	const struct names *names = &l->owner->names;
	struct verdict v = { .rule = "network.allowedDomains",
			     .reason = "no name belongs to this address" };
	struct host host = *to;
	struct conn *c;

	if (port == PORT_DNS && !names_is_synthetic(names, &host)) {
		c = conn_new(p, l, fd, FRONT_DNS, VIA_DNS);
		if (c)
			conn_advance(p, c);
		return;
	}
	c = conn_new(p, l, fd, FRONT_HELLO, VIA_TRANSPARENT);
	if (!c)
		return;
	if (!names_restore(names, &host) && names_is_synthetic(names, &host)) {
		conn_deny(p, c, host.name, port, &v);
	} else if (port == PORT_HTTP) {
		conn_set_target(p, c, &host, port, "");
		c->open_record = false; /* each request is judged, and can be told why not */
		http_make_fixed(c);
	} else {
		listener_captured(p, c, &host, port);
	}
	conn_advance(p, c);
}

static void accept_transparent(struct proxy *p, const struct listener *l, int fd)
{
	struct host host;
	uint16_t port;

	if (!original_destination(fd, &host, &port)) {
		fd_close(fd);
		return;
	}
	if (port == PORT_TRANSPARENT)
		port = redirected_from(l, fd, &host);
	take_captured(p, l, fd, &host, port);
}

/* "localhost" is either family's: where 127.0.0.1 refuses, the service may be at ::1. */
static void dial_forward(struct proxy *p, struct conn *c, const struct listener *l)
{
	static const uint8_t v4[4] = { 127, 0, 0, 1 }, v6[16] = { [15] = 1 };
	bool loopback = l->forward.kind == HOST_IPV4 && memcmp(l->forward.addr, v4, 4) == 0;
	struct host to[2] = { l->forward };

	host_from_addr(HOST_IPV6, v6, &to[1]);
	dial_direct(p, c, to, loopback ? 2 : 1, l->forward_port);
}

static void accept_plain(struct proxy *p, const struct listener *l, int fd)
{
	static const struct {
		enum conn_front front;
		enum conn_via via;
	} kinds[] = {
		[LISTENER_HTTP] = { FRONT_HTTP, VIA_HTTP },
		[LISTENER_SOCKS] = { FRONT_SOCKS, VIA_SOCKS },
		[LISTENER_DNS_TCP] = { FRONT_DNS, VIA_DNS },
		[LISTENER_FORWARD] = { FRONT_HELLO, VIA_FORWARD },
	};
	struct conn *c = conn_new(p, l, fd, kinds[l->kind].front, kinds[l->kind].via);

	if (!c)
		return;
	if (l->kind == LISTENER_FORWARD) {
		conn_set_target(p, c, &l->forward, l->forward_port, l->rule);
		dial_forward(p, c, l);
	}
	conn_advance(p, c);
}

void listener_take(struct proxy *p, const struct listener *l, int fd, const struct host *to,
		   uint16_t port)
{
	const int on = 1;

	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	(void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	if (fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) < 0)
		fd_close(fd);
	else if (l->kind == LISTENER_TRANSPARENT)
		take_captured(p, l, fd, to, port);
	else
		accept_plain(p, l, fd);
}

void listener_event(struct proxy *p, struct listener *l)
{
	l->owner->busy = true;
	if (l->kind == LISTENER_DNS_UDP) {
		dns_udp_event(p, l);
		return;
	}
	for (int i = 0; i < ACCEPT_BATCH; i++) {
		bool full = !owner_has_room(p, l->owner);
		int fd;

		if (full || (l->kind == LISTENER_PUBLISH && publish_must_wait(p, l->owner))) {
			listeners_pause(p, l->owner, full);
			return;
		}
		/* cppcheck-suppress nullPointer ; who connects is known: the sandbox */
		fd = accept4(l->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd < 0 &&
		    (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM))
			listeners_pause(p, l->owner, true);
		if (fd < 0 && (errno == ECONNABORTED || errno == EINTR))
			continue;
		if (fd < 0)
			return;
		if (l->kind == LISTENER_TRANSPARENT)
			accept_transparent(p, l, fd);
		else if (l->kind == LISTENER_PUBLISH)
			publish_accept(p, l, fd);
		else
			accept_plain(p, l, fd);
	}
}
