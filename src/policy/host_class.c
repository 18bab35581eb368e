/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where an address leads. Used on what a name resolved to, so that an allowed
 * name cannot be pointed at the machine itself, its network or a cloud's
 * metadata service. IPv6 addresses that carry an IPv4 address are judged by it:
 * a gateway on the way may well unpack them.
 */
#include <string.h>

#include "policy/match_host.h"

struct net {
	uint8_t addr[16];
	uint8_t bits;
	enum host_class class;
};

/* First match wins: the single metadata addresses stand before their networks. */
static const struct net ipv4_nets[] = {
	{ { 169, 254, 169, 254 }, 32, HOST_CLASS_METADATA }, /* AWS, Azure, GCP and most others */
	{ { 169, 254, 170, 2 }, 32, HOST_CLASS_METADATA }, /* ECS task credentials */
	{ { 169, 254, 170, 23 }, 32, HOST_CLASS_METADATA }, /* EKS pod identity */
	{ { 100, 100, 100, 200 }, 32, HOST_CLASS_METADATA }, /* Alibaba */
	{ { 168, 63, 129, 16 }, 32, HOST_CLASS_METADATA }, /* Azure wire server */
	{ { 192, 0, 0, 192 }, 32, HOST_CLASS_METADATA }, /* Oracle */
	{ { 0 }, 8, HOST_CLASS_UNSPECIFIED },
	{ { 10 }, 8, HOST_CLASS_PRIVATE },
	{ { 100, 64 }, 10, HOST_CLASS_PRIVATE },
	{ { 127 }, 8, HOST_CLASS_LOOPBACK },
	{ { 169, 254 }, 16, HOST_CLASS_LINK_LOCAL },
	{ { 172, 16 }, 12, HOST_CLASS_PRIVATE },
	{ { 192, 0, 0 }, 24, HOST_CLASS_PRIVATE },
	{ { 192, 168 }, 16, HOST_CLASS_PRIVATE },
	{ { 198, 18 }, 15, HOST_CLASS_PRIVATE }, /* benchmarks, and tunnels that borrow it */
	{ { 224 }, 4, HOST_CLASS_MULTICAST },
	{ { 240 }, 4, HOST_CLASS_MULTICAST },
};

static const struct net ipv6_nets[] = {
	{ { 0xfd, 0, 0x0e, 0xc2 }, 32, HOST_CLASS_METADATA }, /* AWS */
	{ { 0xfd, 0x20, 0, 0xce, [14] = 0x02, 0x54 }, 128, HOST_CLASS_METADATA }, /* GCP */
	{ { 0xfd, 0, 0, 0xc1, [12] = 0xa9, 0xfe, 0xa9, 0xfe }, 128, HOST_CLASS_METADATA },
	{ { 0xfd, 0, 0, 0x42, [15] = 0x42 }, 128, HOST_CLASS_METADATA },
	{ { 0xfd, 0, 0xa9, 0xfe, 0xa9, 0xfe, [15] = 0x01 }, 128, HOST_CLASS_METADATA },
	{ { 0xfd, 0, 0x01, 0, [12] = 0x01, 0, 0x02, 0 }, 128, HOST_CLASS_METADATA },
	{ { 0 }, 128, HOST_CLASS_UNSPECIFIED },
	{ { [15] = 1 }, 128, HOST_CLASS_LOOPBACK },
	{ { 0xfe, 0x80 }, 10, HOST_CLASS_LINK_LOCAL },
	{ { 0xfe, 0xc0 }, 10, HOST_CLASS_PRIVATE }, /* site-local, deprecated but routed */
	{ { 0xfc }, 7, HOST_CLASS_PRIVATE },
	/* local NAT64: where the IPv4 address sits is the operator's choice */
	{ { 0, 0x64, 0xff, 0x9b, 0, 1 }, 48, HOST_CLASS_PRIVATE },
	{ { 0xff }, 8, HOST_CLASS_MULTICAST },
};

/* Networks whose addresses carry an IPv4 address, and where. */
static const struct {
	struct net net;
	uint8_t offset, flip;
} embeddings[] = {
	{ { { [10] = 0xff, 0xff }, 96, 0 }, 12, 0 }, /* mapped */
	{ { { [8] = 0xff, 0xff }, 96, 0 }, 12, 0 }, /* translated (SIIT) */
	{ { { 0 }, 96, 0 }, 12, 0 }, /* compatible */
	{ { { 0, 0x64, 0xff, 0x9b }, 96, 0 }, 12, 0 }, /* NAT64 */
	{ { { 0x20, 0x02 }, 16, 0 }, 2, 0 }, /* 6to4 */
	{ { { 0x20, 0x01, 0, 0 }, 32, 0 }, 12, 0xff }, /* Teredo client */
	{ { { 0x20, 0x01, 0, 0 }, 32, 0 }, 4, 0 }, /* Teredo server */
};

static const struct net global_unicast = { { 0x20 }, 3, HOST_CLASS_PUBLIC };

static bool in_net(const struct net *net, const uint8_t *addr)
{
	unsigned whole = net->bits / 8, rest = net->bits % 8;

	if (memcmp(net->addr, addr, whole) != 0)
		return false;
	return rest == 0 || (net->addr[whole] ^ addr[whole]) >> (8 - rest) == 0;
}

static enum host_class classify_ipv4(const uint8_t *addr)
{
	for (size_t i = 0; i < ARRAY_LEN(ipv4_nets); i++) {
		if (in_net(&ipv4_nets[i], addr))
			return ipv4_nets[i].class;
	}
	return HOST_CLASS_PUBLIC;
}

static enum host_class classify_ipv6(const uint8_t *addr)
{
	bool embedded = false;

	for (size_t i = 0; i < ARRAY_LEN(ipv6_nets); i++) {
		if (in_net(&ipv6_nets[i], addr))
			return ipv6_nets[i].class;
	}
	for (size_t i = 0; i < ARRAY_LEN(embeddings); i++) {
		enum host_class class;
		uint8_t inner[4];

		if (!in_net(&embeddings[i].net, addr))
			continue;
		for (size_t j = 0; j < sizeof(inner); j++)
			inner[j] = addr[embeddings[i].offset + j] ^ embeddings[i].flip;
		class = classify_ipv4(inner);
		if (class != HOST_CLASS_PUBLIC)
			return class;
		embedded = true;
	}
	/* What is not assigned as global unicast leads nowhere good. */
	if (embedded || in_net(&global_unicast, addr))
		return HOST_CLASS_PUBLIC;
	return HOST_CLASS_MULTICAST;
}

enum host_class host_classify(const struct host *host)
{
	switch (host->kind) {
	case HOST_IPV4:
		return classify_ipv4(host->addr);
	case HOST_IPV6:
		return classify_ipv6(host->addr);
	case HOST_NAME:
		break;
	}
	/* A name leads nowhere before it is resolved; never call it public. */
	return HOST_CLASS_UNSPECIFIED;
}

const char *host_class_name(enum host_class c)
{
	switch (c) {
	case HOST_CLASS_PUBLIC:
		return "public";
	case HOST_CLASS_LOOPBACK:
		return "loopback";
	case HOST_CLASS_UNSPECIFIED:
		return "unspecified";
	case HOST_CLASS_LINK_LOCAL:
		return "link-local";
	case HOST_CLASS_METADATA:
		return "cloud metadata";
	case HOST_CLASS_PRIVATE:
		return "private";
	case HOST_CLASS_MULTICAST:
		return "multicast or reserved";
	}
	return "unknown";
}
