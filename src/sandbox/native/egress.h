/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sandbox's own network namespace, prepared so that everything that leaves a
 * program ends at the egress proxy: an address of any kind is local here, TCP
 * to it is handed to one transparent listener, names are answered by our own resolver.
 *
 * All listeners are made inside the namespace at set-up and sent to the
 * supervisor, who gives them to ambit-proxy: nothing listens on the host. What is not
 * captured has nowhere to go: the wall is the namespace, which has only lo.
 */
#pragma once

#include <stdint.h>

#include "base/error.h"

enum egress_role {
	EGRESS_HTTP,
	EGRESS_SOCKS,
	EGRESS_TRANSPARENT,
	EGRESS_DNS_UDP,
	EGRESS_DNS_TCP,
	EGRESS_SEED, /* not connected: with the next, new sockets of the namespace are made */
	EGRESS_SEED_LISTENER,
	EGRESS_REDIRECTED, /* transparent, but only what the broker sends there arrives */
	EGRESS_INQUIRIES, /* the broker's questions; not a listener, and not from inside */
	EGRESS_ROLE_MAX_,
	EGRESS_FORWARD = 0x10000, /* plus the port of the host's 127.0.0.1 */
	EGRESS_PUBLISH = 0x20000, /* plus the port inside; listens on the host */
};

#define EGRESS_HTTP_PORT 3128
#define EGRESS_SOCKS_PORT 1080
#define EGRESS_TRANSPARENT_PORT 61080

/* What travels on the errors socket: this, with the descriptor beside it. */
struct egress_message {
	char magic[8]; /* EGRESS_MAGIC */
	int32_t role;
};
#define EGRESS_MAGIC "egress"

/*
 * Inside the new network namespace, with CAP_NET_ADMIN there and lo up. Without nftables the
 * transparent listener is an EGRESS_REDIRECTED one.
 */
int native_egress(int sock, const uint16_t *host_ports, size_t n_host_ports, struct error *e)
	NODISCARD;
/* There too: TCP to anything but loopback goes to the transparent listener. 0 or -errno. */
int native_capture(void) NODISCARD;
/*
 * What published ports need: for each family a socket and a listener on loopback. Whoever
 * has the two can make any number of sockets that live in this namespace, without
 * entering it: connect one to the other, accept, disconnect both.
 */
int native_seeds(int sock, struct error *e) NODISCARD;
