/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Talking to the host when there is no network: services on its loopback, abstract
 * and named unix sockets, odd socket families. Each attempt says its own name, so that
 * the listener knows who got through. Keys: port, and an address for each unix-*.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "probe.h"

#define PROBE(name) static int name(const struct context *c, char *detail, size_t size)
#define UNUSED_ARGS ((void)c, (void)detail, (void)size)

static int say(const char *name, int fd, const struct sockaddr *to, socklen_t len)
{
	int rc = 0;

	if (fd < 0)
		return -errno;
	if (connect(fd, to, len) < 0 || send(fd, name, strlen(name), MSG_NOSIGNAL) < 0)
		rc = -errno;
	close(fd);
	return rc;
}

static int say_inet(const char *name, const struct context *c, int protocol)
{
	struct sockaddr_in a = { .sin_family = AF_INET,
				 .sin_port = htons((uint16_t)context_int(c, "port")),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };

	return say(name, socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, protocol),
		   (struct sockaddr *)&a, sizeof a);
}

PROBE(net_tcp)
{
	UNUSED_ARGS;
	return say_inet("net-tcp", c, 0);
}

/* Sending always works; that nobody was there comes back a moment later. */
PROBE(net_udp)
{
	struct sockaddr_in a = { .sin_family = AF_INET,
				 .sin_port = htons((uint16_t)context_int(c, "port")),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	UNUSED_ARGS;
	if (fd < 0)
		return -errno;
	if (connect(fd, (struct sockaddr *)&a, sizeof a) < 0 || send(fd, "net-udp", 7, 0) < 0)
		return -errno;
	usleep(100000);
	return recv(fd, detail, size, 0) < 0 && errno != EAGAIN ? -errno : 0;
}

PROBE(net_mptcp)
{
	int rc = say_inet("net-mptcp", c, 262 /* IPPROTO_MPTCP */);

	UNUSED_ARGS;
	return rc == -EPROTONOSUPPORT || rc == -ENOPROTOOPT ? ABSENT : rc;
}

PROBE(net_fastopen)
{
	struct sockaddr_in a = { .sin_family = AF_INET,
				 .sin_port = htons((uint16_t)context_int(c, "port")),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	UNUSED_ARGS;
	if (fd < 0)
		return -errno;
	return sendto(fd, "net-fastopen", 12, MSG_FASTOPEN | MSG_NOSIGNAL, (struct sockaddr *)&a,
		      sizeof a) < 0
		       ? -errno
		       : 0;
}

PROBE(net_tcp6)
{
	struct sockaddr_in6 a = { .sin6_family = AF_INET6,
				  .sin6_port = htons((uint16_t)context_int(c, "port")),
				  .sin6_addr = IN6ADDR_LOOPBACK_INIT };

	UNUSED_ARGS;
	return say("net-tcp6", socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0),
		   (struct sockaddr *)&a, sizeof a);
}

PROBE(net_interfaces)
{
	struct if_nameindex *all = if_nameindex();
	int other = 0;

	(void)c;
	if (!all)
		return -errno;
	for (struct if_nameindex *i = all; i->if_index; i++) {
		if (!strcmp(i->if_name, "lo"))
			continue;
		snprintf(detail, size, "%s", i->if_name);
		other++;
	}
	if_freenameindex(all);
	return other ? 0 : -ENODEV;
}

static socklen_t unix_address(struct sockaddr_un *a, const char *name, int abstract)
{
	*a = (struct sockaddr_un){ .sun_family = AF_UNIX };
	strncpy(a->sun_path + abstract, name, sizeof a->sun_path - 2);
	return (socklen_t)(sizeof(sa_family_t) + (size_t)abstract + strlen(name) +
			   (abstract ? 0 : 1));
}

/* The key of a socket's address is the name of the attempt. */
static int say_unix(const struct context *c, const char *name, int abstract)
{
	struct sockaddr_un a;
	socklen_t len = unix_address(&a, context_get(c, name), abstract);

	return say(name, socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), (struct sockaddr *)&a,
		   len);
}

PROBE(unix_abstract)
{
	UNUSED_ARGS;
	return say_unix(c, "unix-abstract", 1);
}

PROBE(unix_tmp)
{
	UNUSED_ARGS;
	return say_unix(c, "unix-tmp", 0);
}

PROBE(unix_run)
{
	UNUSED_ARGS;
	return say_unix(c, "unix-run", 0);
}

PROBE(unix_home)
{
	UNUSED_ARGS;
	return say_unix(c, "unix-home", 0);
}

PROBE(unix_hidden)
{
	UNUSED_ARGS;
	return say_unix(c, "unix-hidden", 0);
}

/* A socket pair needs no address, but a datagram one can be pointed elsewhere. */
PROBE(unix_pair)
{
	struct sockaddr_un a;
	socklen_t len = unix_address(&a, context_get(c, "unix-pair"), 0);
	int fds[2];

	UNUSED_ARGS;
	if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, fds) < 0)
		return -errno;
	return sendto(fds[0], "unix-pair", 9, 0, (struct sockaddr *)&a, len) < 0 ? -errno : 0;
}

static int family(int domain, int type, int protocol)
{
	int fd = socket(domain, type | SOCK_CLOEXEC, protocol);

	if (fd < 0)
		return -errno;
	close(fd);
	return 0;
}

#define FAMILY(name, domain, type, protocol)                                                       \
	PROBE(name)                                                                                \
	{                                                                                          \
		UNUSED_ARGS;                                                                       \
		return family(domain, type, protocol);                                             \
	}

FAMILY(family_packet, AF_PACKET, SOCK_RAW, 0)
FAMILY(family_raw, AF_INET, SOCK_RAW, IPPROTO_TCP)
FAMILY(family_icmp, AF_INET, SOCK_RAW, IPPROTO_ICMP)
FAMILY(family_vsock, 40, SOCK_STREAM, 0)
FAMILY(family_alg, 38, SOCK_SEQPACKET, 0)
FAMILY(family_key, 15, SOCK_RAW, 2)
FAMILY(family_xdp, 44, SOCK_RAW, 0)
FAMILY(family_bluetooth, 31, SOCK_RAW, 1)
FAMILY(family_rds, 21, SOCK_SEQPACKET, 0)
FAMILY(family_tipc, 30, SOCK_SEQPACKET, 0)
FAMILY(family_netfilter, AF_NETLINK, SOCK_RAW, 12)
FAMILY(family_audit, AF_NETLINK, SOCK_RAW, 9)
FAMILY(family_uevent, AF_NETLINK, SOCK_RAW, 15)

static const struct probe table[] = {
	{ "net-tcp", net_tcp },
	{ "net-udp", net_udp },
	{ "net-mptcp", net_mptcp },
	{ "net-fastopen", net_fastopen },
	{ "net-tcp6", net_tcp6 },
	{ "net-interfaces", net_interfaces },
	{ "unix-abstract", unix_abstract },
	{ "unix-tmp", unix_tmp },
	{ "unix-run", unix_run },
	{ "unix-home", unix_home },
	{ "unix-hidden", unix_hidden },
	{ "unix-pair", unix_pair },
	{ "family-packet", family_packet },
	{ "family-raw", family_raw },
	{ "family-icmp", family_icmp },
	{ "family-vsock", family_vsock },
	{ "family-alg", family_alg },
	{ "family-key", family_key },
	{ "family-xdp", family_xdp },
	{ "family-bluetooth", family_bluetooth },
	{ "family-rds", family_rds },
	{ "family-tipc", family_tipc },
	{ "family-netfilter", family_netfilter },
	{ "family-audit", family_audit },
	{ "family-uevent", family_uevent },
};

const struct probe_table network_probes = { table, sizeof table / sizeof table[0] };
