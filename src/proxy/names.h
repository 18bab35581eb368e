/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table behind the resolver: each name that was asked for and is allowed
 * gets a number, and with it one address in each synthetic network. Numbers go
 * up and are not given again before the network is used up, so that an address
 * a program has cached never comes to mean another name soon. The table keeps
 * the NAMES_MAX youngest: a wildcard rule cannot be used to fill the memory.
 */
#pragma once

#include <stdint.h>

#include "policy/match_host.h"

#define NAMES_MAX 4096

struct names {
	struct host net4, net6; /* as addresses; kind says which */
	uint8_t bits4;
	uint32_t next; /* number of the next name */
	struct name_slot *slots; /* NAMES_MAX, made on first use */
};

/* net4/net6: CIDR text as in the configuration; 0 or -EINVAL. An unchanged network keeps the names. */
int names_set_networks(struct names *t, const char *net4, const char *net6, struct error *e)
	NODISCARD;
void names_done(struct names *t);

/* Number of the (canonical) name, which is entered if it is new. */
uint32_t names_number(struct names *t, const char *name);
void names_address4(const struct names *t, uint32_t number, uint8_t ret[4]);
void names_address6(const struct names *t, uint32_t number, uint8_t ret[16]);

bool names_is_synthetic(const struct names *t, const struct host *address);
/* The name behind a synthetic address; NULL when it has none (any more). */
const char *names_find(const struct names *t, const struct host *address);
/* Put the name in the place of its synthetic address; false: it is none, or has no name. */
bool names_restore(const struct names *t, struct host *host);
