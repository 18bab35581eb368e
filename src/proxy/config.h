/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The proxy's configuration: text lines from the supervisor, parsed once into a
 * struct that is then const and replaced as a whole. Keys: see config.c.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "policy/match_host.h"

#define CONFIG_MAX ((size_t)4 << 20)

/* A rule with the text it was written as, for records and messages. */
struct named_rule {
	struct host_rule rule;
	const char *text;
	const char *reason; /* of a deny rule, to be shown; NULL = none given */
};

struct rule_list {
	struct named_rule *v;
	size_t n;
};

struct fixed_host {
	struct host name, address;
};

/* A proxy that stands between us and the network. host.name "" = none. */
struct parent {
	struct host host;
	uint16_t port;
	const char *authorization; /* value of Proxy-Authorization, NULL = none */
};

struct config {
	struct arena *arena;
	struct rule_list allow, deny, deny_address;
	struct fixed_host *hosts;
	size_t n_hosts;
	struct parent parent_http, parent_https;
	const char **no_proxy;
	size_t n_no_proxy;
	const char *synthetic4, *synthetic6;
	bool allow_private, require_sni, allow_ech;
	uint32_t ask_ms; /* to wait for an answer about a host that no rule covers; 0 = not asked */
	bool deny_own; /* private addresses, but not loopback and those of this machine */
};

/* Errors name the line. The text is not kept. */
int config_parse(const char *text, size_t len, struct config **ret, struct error *e) NODISCARD;
void config_free(struct config *c); /* NULL is fine */
