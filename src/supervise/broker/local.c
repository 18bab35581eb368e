/* SPDX-License-Identifier: Apache-2.0 */
/*
 * network.allowLocalBinding false: nothing inside may be a server. A socket of the internet
 * families may neither listen nor take a port of its choice; unix sockets may, and so may a
 * client that asks for any port (resolvers of some C libraries bind that way).
 *
 * As with connect(), both are done here on a copy of the descriptor, whose family cannot
 * change any more: the number may mean another socket a moment later.
 */
#include <errno.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "base/text.h"
#include "supervise/broker/connect.h"

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

static int refuse(const struct call *c, const char *address)
{
	struct violation v = { .kind = VIOLATION_LISTEN };

	text_copy(v.rule, sizeof(v.rule), "network.allowLocalBinding");
	call_set_source(&v, "network.allowLocalBinding", c->b->policy);
	text_copy(v.reason, sizeof(v.reason), "the policy allows no servers");
	call_send(c, &v, address);
	return -EACCES;
}

int broker_listen(struct call *c)
{
	_cleanup_fd_ int sock = call_take_fd(c, (int)c->args[0]);
	struct address at = { .u.any.sa_family = AF_UNSPEC, .len = sizeof(at.u) };
	char text[ADDRESS_TEXT_MAX];

	if (sock < 0)
		return sock;
	if (!is_internet(family_of(sock)))
		return listen(sock, (int)c->args[1]) < 0 ? -errno : 0;
	(void)getsockname(sock, &at.u.any, &at.len);
	(void)address_describe(&at, text);
	return refuse(c, text);
}

int broker_bind_port(struct call *c)
{
	_cleanup_fd_ int sock = call_take_fd(c, (int)c->args[0]);
	struct address at = { .u.any.sa_family = AF_UNSPEC };
	char text[ADDRESS_TEXT_MAX];
	int r;

	if (sock < 0)
		return sock;
	if (!is_internet(family_of(sock)))
		return ANSWER_CONTINUE; /* Landlock judges the files that others would make */
	at.len = (uint32_t)c->args[2] < sizeof(at.u) ? (socklen_t)c->args[2] : sizeof(at.u);
	r = call_read(c, c->args[1], &at.u, at.len);
	if (r < 0)
		return r == -EFAULT ? r : -EACCES;
	if (address_describe(&at, text) != 0)
		return refuse(c, text);
	return bind(sock, &at.u.any, at.len) < 0 ? -errno : 0;
}
