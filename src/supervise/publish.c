/* SPDX-License-Identifier: Apache-2.0 */
#include "supervise/publish.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"

#define LISTEN_BACKLOG 1024

static int set_option(int fd, int level, int option)
{
	int one = 1;

	return setsockopt(fd, level, option, &one, sizeof(one)) < 0 ? -errno : 0;
}

static int bind_loopback(int fd, int family, uint16_t port)
{
	struct sockaddr_in v4 = { .sin_family = AF_INET,
				  .sin_port = htons(port),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6,
				   .sin6_port = htons(port),
				   .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	int r = family == AF_INET ? bind(fd, (const struct sockaddr *)&v4, sizeof(v4))
				  : bind(fd, (const struct sockaddr *)&v6, sizeof(v6));

	return r < 0 ? -errno : 0;
}

static int listen_on(struct egress_user *u, int family, const struct plan_port *port)
{
	_cleanup_fd_ int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int r = fd < 0 ? -errno : set_option(fd, SOL_SOCKET, SO_REUSEADDR);

	if (r == 0 && family == AF_INET6)
		r = set_option(fd, IPPROTO_IPV6, IPV6_V6ONLY);
	if (r == 0)
		r = bind_loopback(fd, family, port->host);
	/* two may bind, the second to listen is refused */
	if (r == 0 && listen(fd, LISTEN_BACKLOG) < 0)
		r = -errno;
	return r < 0 ? r : egress_add_listener(u, EGRESS_PUBLISH + port->inside, fd);
}

static int refuse(int r, const char *address, const struct plan_port *port, struct error *e)
{
	if (r == -EADDRINUSE)
		return error_set(e, -r,
				 "cannot publish port %u: %s:%u of the host is in use; publish it "
				 "on another one: --publish HOSTPORT:%u",
				 port->inside, address, port->host, port->inside);
	if (r == -EACCES)
		return error_set(e, -r,
				 "cannot publish port %u: port %u of the host needs root; publish "
				 "it on another one: --publish HOSTPORT:%u",
				 port->inside, port->host, port->inside);
	return error_set(e, -r, "cannot publish port %u on %s:%u of the host: %s", port->inside,
			 address, port->host, strerror(-r));
}

int publish_listen(struct egress_user *u, const struct plan *plan, struct error *e)
{
	for (size_t i = 0; i < plan->n_publish; i++) {
		const struct plan_port *port = &plan->publish[i];
		int r = listen_on(u, AF_INET, port);

		if (r < 0)
			return refuse(r, "127.0.0.1", port, e);
		/* localhost may mean either; a host without IPv6 has no ::1 to listen on */
		r = listen_on(u, AF_INET6, port);
		if (r < 0 && r != -EAFNOSUPPORT && r != -EADDRNOTAVAIL)
			return refuse(r, "[::1]", port, e);
	}
	return 0;
}
