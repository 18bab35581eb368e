/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Published ports: the mirror image of everything else here. Connections come from the host,
 * on listeners that the supervisor made, and go to a port inside the sandbox.
 *
 * A socket belongs to the network namespace it was made in, and this process is not in the
 * sandbox's. But an accepted socket belongs to the namespace of its listener. So the set-up left
 * two sockets of the sandbox's with us, a seed and a listener: the seed connects, the
 * listener accepts, both ends are disconnected, and what was accepted is a new
 * socket in there. The command can connect to the listener too: then what is accepted was its
 * connection, and after the disconnect is as good as any other. It can keep the queue full:
 * then its own published port is slow or closed, nobody else's.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "proxy/proxy.h"

#define ACCEPT_WAIT_MS 10 /* loopback answers within the call; the queue may have been full */

/* Dissolve the association, and with it the error that says so. */
static void disconnect(int fd)
{
	const struct sockaddr none = { .sa_family = AF_UNSPEC };
	socklen_t len = sizeof(int);
	int error;

	(void)connect(fd, &none, sizeof(none));
	(void)getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len);
}

int publish_socket(const struct seed *seed)
{
	struct sockaddr_storage to = { 0 };
	socklen_t len = sizeof(to);
	struct pollfd ready = { .fd = seed->listener, .events = POLLIN };
	int fd;

	if (seed->fd < 0 || seed->listener < 0)
		return -ENOTCONN;
	if (getsockname(seed->listener, (struct sockaddr *)&to, &len) < 0)
		return -errno;
	if (connect(seed->fd, (const struct sockaddr *)&to, len) < 0 && errno != EINPROGRESS)
		return -errno;
	/* cppcheck-suppress nullPointer ; whose connection it was does not matter */
	fd = accept4(seed->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (fd < 0 && errno == EAGAIN && poll(&ready, 1, ACCEPT_WAIT_MS) > 0)
		/* cppcheck-suppress nullPointer */
		fd = accept4(seed->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (fd < 0)
		fd = -errno;
	else
		disconnect(fd);
	disconnect(seed->fd);
	return fd;
}

int publish_add_seed(struct owner *o, bool listens, int fd)
{
	int domain = 0;
	socklen_t len = sizeof(domain);
	struct seed *seed;

	if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) < 0)
		return -errno;
	seed = &o->seeds[domain == AF_INET6];
	fd_close(listens ? seed->listener : seed->fd);
	*(listens ? &seed->listener : &seed->fd) = fd;
	return 0;
}

/*
 * Nobody is accepted before the sandbox stands; IPv4's seed is the last to come. And since
 * other users of the host can connect, half of the room is the command's own.
 */
bool publish_must_wait(const struct proxy *p, const struct owner *o)
{
	return o->seeds[0].fd < 0 || o->seeds[0].listener < 0 ||
	       o->n_published >= owner_share(p) / 2;
}

void publish_accept(struct proxy *p, const struct listener *l, int fd)
{
	static const uint8_t v4[4] = { 127, 0, 0, 1 }, v6[16] = { [15] = 1 };
	struct conn *c = conn_new(p, l, fd, FRONT_HELLO, VIA_PUBLISH);
	struct host inside[2];

	if (!c)
		return;
	c->owner->n_published++;
	host_from_addr(HOST_IPV4, v4, &inside[0]);
	host_from_addr(HOST_IPV6, v6, &inside[1]);
	conn_set_target(p, c, &inside[0], l->forward_port, "network.publish");
	dial_direct(p, c, inside, ARRAY_LEN(inside), l->forward_port);
	conn_advance(p, c);
}
