/* SPDX-License-Identifier: Apache-2.0 */
/*
 * May this host and port be connected to, and may this address be dialled for
 * it? Pure: the configuration and the addresses of this machine are arguments.
 *
 *   1. a rule of deniedDomains matches: no;
 *   2. no rule of allowedDomains matches: no (an empty list allows nothing);
 *   3. an address literal of a special class needs a rule that means that class:
 *      0.0.0.0/0 is not leave to talk to the machine itself;
 *   4. a name may be dialled at an address only if that is public and not one of
 *      this machine's own, or is itself allowed by an address rule, or is private
 *      or loopback and allowPrivateAddresses is on. Denied addresses never.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proxy/config.h"

struct verdict {
	bool allow;
	bool ask; /* not allowed because no rule covers it: somebody may be asked */
	bool address; /* not allowed because of what the host resolves to */
	char rule[64 + HOST_NAME_MAX_LEN]; /* "allowedDomains *.x", or the setting */
	char reason[128 + HOST_NAME_MAX_LEN]; /* why not; "" when allowed */
};

/* Addresses of this machine's interfaces. */
struct own_addresses {
	struct host *v;
	size_t n;
};

void decide_host(const struct config *c, const struct host *host, uint16_t port,
		 struct verdict *ret);
/* host was allowed by decide_host() and resolved to address. */
void decide_address(const struct config *c, const struct own_addresses *own,
		    const struct host *host, const struct host *address, uint16_t port,
		    struct verdict *ret);
/* Is there a port at which the name may be connected to? (the resolver's question) */
bool decide_name(const struct config *c, const struct host *host, struct verdict *ret);

/* Does the way to host:port lead through a parent proxy? NULL = direct. */
const struct parent *decide_parent(const struct config *c, const struct host *host, uint16_t port,
				   bool plain_http);
/* Address given by a "hosts" line; NULL = ask the resolver. */
const struct host *decide_fixed(const struct config *c, const struct host *host);
bool decide_is_localhost(const struct host *host);
