/* SPDX-License-Identifier: Apache-2.0 */
/* The proxy's decision, for those who only want to know. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "policy/match_host.h"

struct explanation {
	bool allow;
	char reason[512]; /* why not; "" when allowed */
};

/*
 * As a proxy with this configuration would decide; what a name resolves to, and which
 * addresses are this machine's own, is only known when it is dialled.
 */
int proxy_explain(const char *config, size_t len, const struct host *host, uint16_t port,
		  struct explanation *ret, struct error *e) NODISCARD;
