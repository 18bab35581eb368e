/* SPDX-License-Identifier: Apache-2.0 */
/*
 * connect(2) where there is no network namespace: whatever address the command gives, its socket
 * is connected to one of ours, and our end of the connection goes to ambit-proxy together with
 * that address. Nothing listens on the host for the proxy, at any port.
 *
 * The connection is made over the host's loopback by a listener that lives as long as the call
 * does. Others on this machine can connect to it in that moment; they are told apart by the
 * address that a connection comes from, which must be that of the command's socket, and
 * are dropped. The socket is the command's own, so that whatever it has set on it or
 * watches it with stays as it is; only getpeername(2) tells another address.
 *
 * Trust: what matters of the socket is looked at on our copy of it. It cannot be connected, bound or
 * made to listen but through here (the filter notifies these calls and refuses others that connect,
 * and the options by which packets for the loopback would take another way); so where it leads is
 * known, whatever other threads of the command do meanwhile. At worst they make the call fail.
 */
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "base/sys.h"
#include "base/text.h"
#include "sandbox/native/egress.h"
#include "supervise/broker/connect.h"

#define BACKLOG 16 /* ours, and others' that come at the same moment */
#define STRANGERS_MAX 1000
#define ARRIVE_MS 2000 /* it is there at once, unless strangers fill the queue */

static int option(int sock, int name)
{
	int value = -1;

	(void)getsockopt(sock, SOL_SOCKET, name, &value, &(socklen_t){ sizeof(value) });
	return value;
}

int deliver_check(int sock, const struct address *to)
{
	if (option(sock, SO_PROTOCOL) != IPPROTO_TCP)
		return -EACCES;
	return option(sock, SO_DOMAIN) == to->u.any.sa_family ? 0 : -EAFNOSUPPORT;
}

/* Listen on any port of a family's loopback. */
static int listen_shortly(int family, struct address *ret)
{
	_cleanup_fd_ int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_in v4 = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	int r;

	if (fd < 0)
		return -errno;
	r = family == AF_INET ? bind(fd, (const struct sockaddr *)&v4, sizeof(v4))
			      : bind(fd, (const struct sockaddr *)&v6, sizeof(v6));
	*ret = (struct address){ .len = sizeof(ret->u) };
	if (r < 0 || listen(fd, BACKLOG) < 0 || getsockname(fd, &ret->u.any, &ret->len) < 0)
		return -errno;
	return TAKE_FD(fd);
}

/* 127.0.0.1 for a socket of IPv6. */
static void map_address(struct address *at)
{
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6 };
	struct sockaddr_in v4;

	memcpy(&v4, &at->u, sizeof(v4));
	v6.sin6_port = v4.sin_port;
	v6.sin6_addr.s6_addr[10] = v6.sin6_addr.s6_addr[11] = 0xff;
	memcpy(v6.sin6_addr.s6_addr + 12, &v4.sin_addr, 4);
	memcpy(&at->u, &v6, sizeof(v6));
	at->len = sizeof(v6);
}

static bool is_equal(const struct inquiry *a, const struct inquiry *b)
{
	return a->port == b->port && a->v6 == b->v6 &&
	       memcmp(a->address, b->address, sizeof(a->address)) == 0;
}

/* Does this connection come from that socket? */
static bool comes_from(int conn, int sock)
{
	struct address theirs = { .len = sizeof(theirs.u) }, own = { .len = sizeof(own.u) };
	struct inquiry a = { 0 }, b = { 0 };

	return getpeername(conn, &theirs.u.any, &theirs.len) == 0 &&
	       getsockname(sock, &own.u.any, &own.len) == 0 && address_read(&theirs, &a) &&
	       address_read(&own, &b) && a.port != 0 && is_equal(&a, &b);
}

static int accept_from(int listener, int sock)
{
	uint64_t end = sys_now_ms() + ARRIVE_MS;

	for (unsigned i = 0; i < STRANGERS_MAX; i++) {
		struct pollfd ready = { .fd = listener, .events = POLLIN };
		/* cppcheck-suppress nullPointer ; who it is is looked at below */
		_cleanup_fd_ int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		uint64_t now = sys_now_ms();

		if (fd >= 0 && comes_from(fd, sock))
			return TAKE_FD(fd);
		if (fd < 0 && errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
			return -errno;
		if (fd < 0 && (now >= end || poll(&ready, 1, (int)(end - now)) == 0))
			break;
	}
	return -ECONNREFUSED;
}

/* Our end of a connection with the command's socket. */
static int join(int sock, bool v6)
{
	const struct sockaddr none = { .sa_family = AF_UNSPEC };
	_cleanup_fd_ int listener = -1;
	struct address at = { .len = 0 };
	int fd, r;

	listener = v6 ? listen_shortly(AF_INET6, &at) : -1;
	if (listener < 0) /* IPv4, or a machine without IPv6 */
		listener = listen_shortly(AF_INET, &at);
	if (listener < 0)
		return listener;
	if (at.u.any.sa_family == AF_INET && option(sock, SO_DOMAIN) == AF_INET6)
		map_address(&at);
	r = connect_shortly(sock, &at);
	if (r < 0 && r != -EINPROGRESS)
		return r;
	fd = accept_from(listener, sock);
	if (fd < 0)
		(void)connect(sock, &none, sizeof(none));
	return fd;
}

int deliver(const struct broker *b, int sock, const struct inquiry *as)
{
	const struct sockaddr none = { .sa_family = AF_UNSPEC };
	struct inquiry what = *as;
	_cleanup_fd_ int fd = join(sock, as->v6);
	int r;

	if (fd < 0)
		return fd;
	if (what.kind == INQUIRY_QUESTION)
		what.kind = INQUIRY_CAPTURED;
	r = fd_send(b->inquiries_fd, &what, sizeof(what), fd);
	if (r < 0) /* the proxy is gone, or stuck */
		(void)connect(sock, &none, sizeof(none));
	return r < 0 ? -ECONNREFUSED : 0;
}

static bool is_host_port(const struct plan *plan, uint16_t port)
{
	for (size_t i = 0; i < plan->n_host_ports; i++) {
		if (plan->host_ports[i] == port)
			return true;
	}
	return false;
}

static void tell_refused(const struct call *c, const struct address *to)
{
	struct violation v = { .kind = VIOLATION_CONNECT };
	char text[ADDRESS_TEXT_MAX];

	(void)address_describe(to, text);
	text_copy(v.rule, sizeof(v.rule), "network.allowHostPorts");
	call_set_source(&v, "network.allowHostPorts", c->b->policy);
	text_copy(v.reason, sizeof(v.reason), "a port of this machine");
	call_send(c, &v, text);
}

int deliver_local(const struct call *c, int sock, const struct address *to,
		  const struct inquiry *where)
{
	const struct plan *plan = c->b->plan;
	struct inquiry as = *where;

	if (is_host_port(plan, where->port)) {
		as.kind = INQUIRY_HOST_PORT;
	} else if (where->port == EGRESS_HTTP_PORT) {
		as.kind = plan->http_proxy ? INQUIRY_HTTP_PROXY : INQUIRY_HTTP;
		as.port = plan->http_proxy;
	} else if (where->port == EGRESS_SOCKS_PORT) {
		as.kind = plan->socks_proxy ? INQUIRY_SOCKS_PROXY : INQUIRY_SOCKS;
		as.port = plan->socks_proxy;
	} else {
		tell_refused(c, to);
		call_note_wanted_port(c, to);
		return -ECONNREFUSED;
	}
	return deliver(c->b, sock, &as);
}
