/* SPDX-License-Identifier: Apache-2.0 */
/*
 * network.allowLocalBinding false: nothing inside may be a server. A socket of the internet
 * families may neither listen nor take a port of its choice; unix sockets may, and so may a
 * client that asks for any port (resolvers of some C libraries bind that way).
 *
 * As with connect(), both are done here on a copy of the descriptor, whose family cannot
 * change any more: the number may mean another socket a moment later.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "base/text.h"
#include "supervise/broker/internal.h"

#define ADDRESS_TEXT_MAX (INET6_ADDRSTRLEN + sizeof("[]:65535"))

static bool is_internet(int family)
{
	return family == AF_INET || family == AF_INET6;
}

static int family_of(int sock)
{
	int family = AF_UNSPEC;

	(void)getsockopt(sock, SOL_SOCKET, SO_DOMAIN, &family, &(socklen_t){ sizeof(family) });
	return family;
}

static uint16_t describe(const struct sockaddr_storage *a, char *ret)
{
	char host[INET6_ADDRSTRLEN] = "";
	struct sockaddr_in6 v6;
	struct sockaddr_in v4;
	uint16_t port;

	memcpy(&v4, a, sizeof(v4));
	memcpy(&v6, a, sizeof(v6));
	port = ntohs(a->ss_family == AF_INET6 ? v6.sin6_port : v4.sin_port);
	if (a->ss_family == AF_INET6)
		(void)inet_ntop(AF_INET6, &v6.sin6_addr, host, sizeof(host));
	else
		(void)inet_ntop(AF_INET, &v4.sin_addr, host, sizeof(host));
	(void)snprintf(ret, ADDRESS_TEXT_MAX, a->ss_family == AF_INET6 ? "[%s]:%u" : "%s:%u", host,
		       port);
	return port;
}

static int refuse(const struct call *c, const char *address)
{
	struct violation v = { .kind = VIOLATION_LISTEN };

	text_copy(v.rule, sizeof(v.rule), "network.allowLocalBinding");
	text_copy(v.source, sizeof(v.source), "network");
	text_copy(v.reason, sizeof(v.reason), "the policy allows no servers");
	call_send(c, &v, address);
	return -EACCES;
}

int broker_listen(struct call *c)
{
	_cleanup_fd_ int sock = call_take_fd(c, (int)c->args[0]);
	struct sockaddr_storage at = { .ss_family = AF_UNSPEC };
	char text[ADDRESS_TEXT_MAX];

	if (sock < 0)
		return sock;
	if (!is_internet(family_of(sock)))
		return listen(sock, (int)c->args[1]) < 0 ? -errno : 0;
	(void)getsockname(sock, (struct sockaddr *)&at, &(socklen_t){ sizeof(at) });
	(void)describe(&at, text);
	return refuse(c, text);
}

int broker_bind_port(struct call *c)
{
	_cleanup_fd_ int sock = call_take_fd(c, (int)c->args[0]);
	struct sockaddr_storage at = { .ss_family = AF_UNSPEC };
	socklen_t len = (uint32_t)c->args[2] < sizeof(at) ? (socklen_t)c->args[2] : sizeof(at);
	char text[ADDRESS_TEXT_MAX];
	int r;

	if (sock < 0)
		return sock;
	if (!is_internet(family_of(sock)))
		return ANSWER_CONTINUE; /* Landlock judges the files that others would make */
	r = call_read(c, c->args[1], &at, len);
	if (r < 0)
		return r == -EFAULT ? r : -EACCES;
	if (describe(&at, text) != 0)
		return refuse(c, text);
	return bind(sock, (const struct sockaddr *)&at, len) < 0 ? -errno : 0;
}
