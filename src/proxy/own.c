/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The addresses of this machine's interfaces, as they are now or were a few
 * seconds ago: a public one of them is as much the machine itself as 127.0.0.1.
 */
#include <ifaddrs.h>
#include <stdlib.h>
#include <string.h>

#include "proxy/proxy.h"

#define OWN_FRESH_MS 5000
#define OWN_MAX 1024

static bool to_host(const struct sockaddr *sa, struct host *ret)
{
	struct sockaddr_in in;
	struct sockaddr_in6 in6;

	if (sa && sa->sa_family == AF_INET) {
		memcpy(&in, sa, sizeof(in));
		host_from_addr(HOST_IPV4, (const uint8_t *)&in.sin_addr, ret);
		return true;
	}
	if (sa && sa->sa_family == AF_INET6) {
		memcpy(&in6, sa, sizeof(in6));
		host_from_addr(HOST_IPV6, (const uint8_t *)&in6.sin6_addr, ret);
		return true;
	}
	return false;
}

const struct own_addresses *own_addresses(struct proxy *p)
{
	struct ifaddrs *list;
	size_t n = 0;

	if (p->now_ms < p->own_until_ms || getifaddrs(&list) < 0)
		return &p->own;
	for (const struct ifaddrs *i = list; i && n < OWN_MAX; i = i->ifa_next)
		n++;
	free(p->own.v);
	p->own = (struct own_addresses){ .v = calloc(n ? n : 1, sizeof(struct host)) };
	if (!p->own.v)
		abort();
	for (const struct ifaddrs *i = list; i && p->own.n < n; i = i->ifa_next) {
		if (to_host(i->ifa_addr, &p->own.v[p->own.n]))
			p->own.n++;
	}
	freeifaddrs(list);
	p->own_until_ms = p->now_ms + OWN_FRESH_MS;
	return &p->own;
}
