/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What ambit-proxy tells, as a struct. The proxy handles hostile bytes: every field is
 * bounded, and text is only ever shown, escaped.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/macros.h"
#include "supervise/broker/broker.h"

enum egress_kind {
	/* a decision: a denial at once, what was allowed when it is over, with bytes and time */
	EGRESS_CONNECT,
	EGRESS_ASK, /* somebody has to answer `id` about host and port */
	EGRESS_UNASK, /* that is not needed any more */
	EGRESS_NOTICE, /* `reason`: what the user should know about the proxy itself */
	EGRESS_LOST, /* `count` records that could not be sent */
	EGRESS_FAILED, /* `reason`: the proxy is gone, and with it every way out */
	EGRESS_READY, /* from here on of interest to egress.c only */
	EGRESS_GONE,
	EGRESS_KIND_MAX_,
};

struct egress_record {
	enum egress_kind kind;
	uint32_t owner, id;
	bool allow;
	uint16_t port; /* 0 = it was only resolved */
	uint64_t sent, received; /* bytes, by the command and by the other side */
	uint64_t ms; /* since the request */
	uint64_t count;
	uint32_t pid; /* as the command sees it; 0 = not known */
	char process[PROCESS_NAME_MAX]; /* that wanted it; "" = not known */
	char via[16]; /* http, connect, socks, transparent, dns, forward, publish */
	char host[256];
	char address[64]; /* dialled; "" = none */
	char rule[320]; /* "allowedDomains *.example.org", or the setting that decided */
	char reason[400]; /* "" where there is nothing to say */
};

/* One line. -EINVAL when it is no record. */
int egress_record_parse(const char *line, size_t len, struct egress_record *ret) NODISCARD;
/* A denial or a failure, as the report takes it. */
void egress_record_violation(const struct egress_record *r, struct violation *ret);
