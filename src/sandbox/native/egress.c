/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/native/egress.h"

#include <errno.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/macros.h"
#include "sandbox/native/native.h"

#ifndef IPV6_TRANSPARENT
#define IPV6_TRANSPARENT 75
#endif

/* from linux/netfilter.h, which cannot be included beside netinet/in.h */
#define HOOK_PREROUTING 0
#define FAMILY_IPV4 2
#define FAMILY_IPV6 10

#define MESSAGE_MAX 4096
#define LISTEN_BACKLOG 4096
#define SEED_BACKLOG 64
#define TABLE_NAME "ambit"
#define CHAIN_NAME "egress"
#define PRIORITY_MANGLE (-150)

/* ---- netlink messages, built in a fixed buffer ---- */

struct message {
	_Alignas(4) unsigned char data[MESSAGE_MAX];
	size_t len;
	size_t start; /* of the message being written, when there are several */
};

static struct nlmsghdr *header(struct message *m)
{
	return (struct nlmsghdr *)(void *)(m->data + m->start);
}

static void *put(struct message *m, const void *data, size_t len)
{
	void *at = m->data + m->len;

	/* the sizes are all known here; the buffer is several times larger */
	if (m->len + NLMSG_ALIGN(len) > sizeof(m->data))
		__builtin_trap();
	memcpy(at, data, len);
	m->len += NLMSG_ALIGN(len);
	return at;
}

static void begin(struct message *m, uint16_t type, uint16_t flags, const void *body, size_t len)
{
	struct nlmsghdr h = { .nlmsg_type = type,
			      .nlmsg_flags = (uint16_t)(NLM_F_REQUEST | flags) };

	m->start = m->len;
	(void)put(m, &h, sizeof(h));
	(void)put(m, body, len);
}

static void end(struct message *m)
{
	header(m)->nlmsg_len = (uint32_t)(m->len - m->start);
}

static void attribute(struct message *m, uint16_t type, const void *data, size_t len)
{
	struct nlattr a = { .nla_type = type, .nla_len = (uint16_t)(sizeof(a) + len) };

	(void)put(m, &a, sizeof(a));
	(void)put(m, data, len);
}

static void attribute_text(struct message *m, uint16_t type, const char *s)
{
	attribute(m, type, s, strlen(s) + 1);
}

static void attribute_be32(struct message *m, uint16_t type, uint32_t v)
{
	uint32_t be = htonl(v);

	attribute(m, type, &be, sizeof(be));
}

static size_t nest(struct message *m, uint16_t type)
{
	size_t at = m->len;
	struct nlattr a = { .nla_type = (uint16_t)(type | NLA_F_NESTED) };

	(void)put(m, &a, sizeof(a));
	return at;
}

static void unnest(struct message *m, size_t at)
{
	struct nlattr *a = (struct nlattr *)(void *)(m->data + at);

	a->nla_len = (uint16_t)(m->len - at);
}

/* Send, and read answers until `acks` of them came or one is an error. */
static int transact(int protocol, struct message *m, unsigned acks)
{
	_cleanup_fd_ int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol);
	struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };
	_Alignas(4) unsigned char answer[8192];

	if (fd < 0)
		return -errno;
	if (sendto(fd, m->data, m->len, 0, (const struct sockaddr *)&kernel, sizeof(kernel)) < 0)
		return -errno;
	while (acks > 0) {
		ssize_t n = recv(fd, answer, sizeof(answer), 0);

		if (n < 0)
			return -errno;
		for (struct nlmsghdr *h = (struct nlmsghdr *)(void *)answer;
		     NLMSG_OK(h, (uint32_t)n) && acks > 0; h = NLMSG_NEXT(h, n)) {
			const struct nlmsgerr *err = NLMSG_DATA(h);

			if (h->nlmsg_type == NLMSG_ERROR && err->error)
				return err->error;
			acks--;
		}
	}
	return 0;
}

/* ---- every address is local ---- */

static int add_local_route(uint8_t family)
{
	struct message m = { .len = 0 };
	struct rtmsg route = {
		.rtm_family = family,
		.rtm_table = RT_TABLE_LOCAL,
		.rtm_protocol = RTPROT_STATIC,
		.rtm_scope = family == AF_INET ? RT_SCOPE_HOST : RT_SCOPE_UNIVERSE,
		.rtm_type = RTN_LOCAL,
	};
	int lo = 1; /* the first interface of a network namespace */

	begin(&m, RTM_NEWROUTE, NLM_F_CREATE | NLM_F_EXCL | NLM_F_ACK, &route, sizeof(route));
	attribute(&m, RTA_OIF, &lo, sizeof(lo));
	end(&m);
	return transact(NETLINK_ROUTE, &m, 1);
}

/* ---- nftables: TCP to anything but loopback goes to the transparent listener ---- */

static void nf_begin(struct message *m, uint16_t type, uint16_t flags, uint8_t family)
{
	struct nfgenmsg g = { .nfgen_family = family, .version = NFNETLINK_V0 };

	begin(m, (uint16_t)(NFNL_SUBSYS_NFTABLES << 8 | type), flags, &g, sizeof(g));
}

static void nf_batch(struct message *m, uint16_t type)
{
	struct nfgenmsg g = { .version = NFNETLINK_V0, .res_id = htons(NFNL_SUBSYS_NFTABLES) };

	begin(m, type, 0, &g, sizeof(g));
	end(m);
}

struct expression {
	size_t element, data;
};

static struct expression expression_begin(struct message *m, const char *name)
{
	struct expression x = { .element = nest(m, NFTA_LIST_ELEM) };

	attribute_text(m, NFTA_EXPR_NAME, name);
	x.data = nest(m, NFTA_EXPR_DATA);
	return x;
}

static void expression_end(struct message *m, struct expression x)
{
	unnest(m, x.data);
	unnest(m, x.element);
}

static void value(struct message *m, uint16_t type, const void *data, size_t len)
{
	size_t at = nest(m, type);

	attribute(m, NFTA_DATA_VALUE, data, len);
	unnest(m, at);
}

static void compare(struct message *m, uint32_t op, const void *data, size_t len)
{
	struct expression x = expression_begin(m, "cmp");

	attribute_be32(m, NFTA_CMP_SREG, NFT_REG_1);
	attribute_be32(m, NFTA_CMP_OP, op);
	value(m, NFTA_CMP_DATA, data, len);
	expression_end(m, x);
}

static void only_tcp(struct message *m)
{
	static const uint8_t tcp = IPPROTO_TCP;
	struct expression x = expression_begin(m, "meta");

	attribute_be32(m, NFTA_META_DREG, NFT_REG_1);
	attribute_be32(m, NFTA_META_KEY, NFT_META_L4PROTO);
	expression_end(m, x);
	compare(m, NFT_CMP_EQ, &tcp, sizeof(tcp));
}

static void load_destination(struct message *m, uint32_t offset, uint32_t len)
{
	struct expression x = expression_begin(m, "payload");

	attribute_be32(m, NFTA_PAYLOAD_DREG, NFT_REG_1);
	attribute_be32(m, NFTA_PAYLOAD_BASE, NFT_PAYLOAD_NETWORK_HEADER);
	attribute_be32(m, NFTA_PAYLOAD_OFFSET, offset);
	attribute_be32(m, NFTA_PAYLOAD_LEN, len);
	expression_end(m, x);
}

static void not_loopback4(struct message *m)
{
	static const uint8_t mask[4] = { 0xff, 0, 0, 0 }, zero[4], net[4] = { 127, 0, 0, 0 };
	struct expression x;

	load_destination(m, 16, 4);
	x = expression_begin(m, "bitwise");
	attribute_be32(m, NFTA_BITWISE_SREG, NFT_REG_1);
	attribute_be32(m, NFTA_BITWISE_DREG, NFT_REG_1);
	attribute_be32(m, NFTA_BITWISE_LEN, 4);
	value(m, NFTA_BITWISE_MASK, mask, 4);
	value(m, NFTA_BITWISE_XOR, zero, 4);
	expression_end(m, x);
	compare(m, NFT_CMP_NEQ, net, 4);
}

static void not_loopback6(struct message *m)
{
	static const uint8_t one[16] = { [15] = 1 };

	load_destination(m, 24, 16);
	compare(m, NFT_CMP_NEQ, one, 16);
}

static void to_listener(struct message *m, uint8_t family)
{
	uint16_t port = htons(EGRESS_TRANSPARENT_PORT);
	struct expression x = expression_begin(m, "immediate");

	attribute_be32(m, NFTA_IMMEDIATE_DREG, NFT_REG_1);
	value(m, NFTA_IMMEDIATE_DATA, &port, sizeof(port));
	expression_end(m, x);
	x = expression_begin(m, "tproxy");
	attribute_be32(m, NFTA_TPROXY_FAMILY, family);
	attribute_be32(m, NFTA_TPROXY_REG_PORT, NFT_REG_1);
	expression_end(m, x);
}

static void add_table(struct message *m, uint8_t family)
{
	size_t at;

	nf_begin(m, NFT_MSG_NEWTABLE, NLM_F_CREATE, family);
	attribute_text(m, NFTA_TABLE_NAME, TABLE_NAME);
	end(m);
	nf_begin(m, NFT_MSG_NEWCHAIN, NLM_F_CREATE, family);
	attribute_text(m, NFTA_CHAIN_TABLE, TABLE_NAME);
	attribute_text(m, NFTA_CHAIN_NAME, CHAIN_NAME);
	at = nest(m, NFTA_CHAIN_HOOK);
	attribute_be32(m, NFTA_HOOK_HOOKNUM, HOOK_PREROUTING);
	attribute_be32(m, NFTA_HOOK_PRIORITY, (uint32_t)PRIORITY_MANGLE);
	unnest(m, at);
	attribute_text(m, NFTA_CHAIN_TYPE, "filter");
	end(m);
	nf_begin(m, NFT_MSG_NEWRULE, NLM_F_CREATE | NLM_F_APPEND | NLM_F_ACK, family);
	attribute_text(m, NFTA_RULE_TABLE, TABLE_NAME);
	attribute_text(m, NFTA_RULE_CHAIN, CHAIN_NAME);
	at = nest(m, NFTA_RULE_EXPRESSIONS);
	only_tcp(m);
	if (family == FAMILY_IPV4)
		not_loopback4(m);
	else
		not_loopback6(m);
	to_listener(m, family);
	unnest(m, at);
	end(m);
}

int native_capture(void)
{
	struct message m = { .len = 0 };

	nf_batch(&m, NFNL_MSG_BATCH_BEGIN);
	add_table(&m, FAMILY_IPV4);
	add_table(&m, FAMILY_IPV6);
	nf_batch(&m, NFNL_MSG_BATCH_END);
	return transact(NETLINK_NETFILTER, &m, 2);
}

/* ---- listeners ---- */

static int send_listener(int sock, int role, int fd)
{
	struct egress_message text = { .magic = EGRESS_MAGIC, .role = role };

	return fd_send(sock, &text, sizeof(text), fd);
}

static int set_option(int fd, int level, int option)
{
	int one = 1;

	return setsockopt(fd, level, option, &one, sizeof(one)) < 0 ? -errno : 0;
}

static int bind_any(int fd, int family, uint16_t port, bool loopback)
{
	struct sockaddr_in v4 = {
		.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(loopback ? INADDR_LOOPBACK : INADDR_ANY),
	};
	struct sockaddr_in6 v6 = {
		.sin6_family = AF_INET6,
		.sin6_port = htons(port),
		.sin6_addr = loopback ? (struct in6_addr)IN6ADDR_LOOPBACK_INIT
				      : (struct in6_addr)IN6ADDR_ANY_INIT,
	};
	int r = family == AF_INET ? bind(fd, (const struct sockaddr *)&v4, sizeof(v4))
				  : bind(fd, (const struct sockaddr *)&v6, sizeof(v6));

	return r < 0 ? -errno : 0;
}

static int open_listener(int sock, int family, int role, uint16_t port)
{
	bool udp = role == EGRESS_DNS_UDP, v4 = family == AF_INET;
	bool loopback = role == EGRESS_HTTP || role == EGRESS_SOCKS || role >= EGRESS_FORWARD;
	_cleanup_fd_ int fd =
		socket(family, (udp ? SOCK_DGRAM : SOCK_STREAM) | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int r = fd < 0 ? -errno : 0;

	if (r == 0 && !v4)
		r = set_option(fd, IPPROTO_IPV6, IPV6_V6ONLY);
	if (r == 0)
		r = set_option(fd, SOL_SOCKET, SO_REUSEADDR);
	if (r == 0 && role == EGRESS_TRANSPARENT)
		r = v4 ? set_option(fd, IPPROTO_IP, IP_TRANSPARENT)
		       : set_option(fd, IPPROTO_IPV6, IPV6_TRANSPARENT);
	/* answers must leave from the address that was asked */
	if (r == 0 && udp)
		r = v4 ? set_option(fd, IPPROTO_IP, IP_PKTINFO)
		       : set_option(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO);
	if (r == 0)
		r = bind_any(fd, family, port, loopback);
	if (r == 0 && !udp && listen(fd, LISTEN_BACKLOG) < 0)
		r = -errno;
	return r < 0 ? r : send_listener(sock, role, fd);
}

static int open_listeners(int sock, int family, bool captured)
{
	static const uint16_t ports[] = {
		[EGRESS_HTTP] = EGRESS_HTTP_PORT,
		[EGRESS_SOCKS] = EGRESS_SOCKS_PORT,
		[EGRESS_TRANSPARENT] = EGRESS_TRANSPARENT_PORT,
		[EGRESS_DNS_UDP] = 53,
		[EGRESS_DNS_TCP] = 53,
	};
	int r = 0;

	_Static_assert(ARRAY_LEN(ports) == EGRESS_SEED, "a port for each listener");
	for (size_t i = 0; i < ARRAY_LEN(ports) && r == 0; i++) {
		/* the others have known addresses of IPv4; TCP to an unknown :53 is captured */
		if (i == EGRESS_TRANSPARENT && !captured)
			r = open_listener(sock, family, EGRESS_REDIRECTED, ports[i]);
		else if (family == AF_INET || i == EGRESS_TRANSPARENT || i == EGRESS_DNS_UDP)
			r = open_listener(sock, family, (int)i, ports[i]);
	}
	return r;
}

static int open_host_ports(int sock, const uint16_t *ports, size_t n, struct error *e)
{
	for (size_t i = 0; i < n; i++) {
		int r = open_listener(sock, AF_INET, EGRESS_FORWARD + ports[i], ports[i]);

		if (r == 0) /* localhost may mean either; without IPv6 it means the other */
			(void)!open_listener(sock, AF_INET6, EGRESS_FORWARD + ports[i], ports[i]);
		if (r < 0)
			return error_set(e, -r, "cannot listen on port %u inside: %s", ports[i],
					 strerror(-r));
	}
	return 0;
}

int native_egress(int sock, const uint16_t *host_ports, size_t n_host_ports, struct error *e)
{
	int r = add_local_route(AF_INET);
	bool captured;

	if (r < 0)
		return error_set(e, -r, "cannot make all addresses local: %s", strerror(-r));
	captured = native_capture() == 0;
	r = open_listeners(sock, AF_INET, captured);
	if (r < 0)
		return error_set(e, -r, "cannot make the proxy's listeners: %s", strerror(-r));
	/* a kernel without IPv6 has no way out over it either */
	if (add_local_route(AF_INET6) == 0) {
		r = open_listeners(sock, AF_INET6, captured);
		if (r < 0)
			return error_set(e, -r, "cannot make the proxy's IPv6 listeners: %s",
					 strerror(-r));
	}
	return open_host_ports(sock, host_ports, n_host_ports, e);
}

static int open_seed(int sock, int family)
{
	_cleanup_fd_ int seed = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	_cleanup_fd_ int listener = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int r;

	if (seed < 0 || listener < 0)
		return -errno;
	r = bind_any(listener, family, 0, true);
	if (r == 0 && listen(listener, SEED_BACKLOG) < 0)
		r = -errno;
	if (r == 0)
		r = send_listener(sock, EGRESS_SEED, seed);
	return r < 0 ? r : send_listener(sock, EGRESS_SEED_LISTENER, listener);
}

int native_seeds(int sock, struct error *e)
{
	int r;

	/* without IPv6 nobody listens there either; the last one to come is IPv4's */
	(void)!open_seed(sock, AF_INET6);
	r = open_seed(sock, AF_INET);
	return r < 0 ? error_set(e, -r, "cannot make sockets for published ports: %s", strerror(-r))
		     : 0;
}
