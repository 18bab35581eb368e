/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The supervisor's side of ambit-proxy: start it, give it the rules and the
 * listeners that were made inside the sandbox, hear its decisions.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "policy/policy.h"
#include "sandbox/native/egress.h"
#include "supervise/broker/broker.h"

struct egress {
	pid_t pid;
	int control; /* SOCK_SEQPACKET */
};

#define EGRESS_INIT                                                                                \
	{                                                                                          \
		.pid = -1, .control = -1                                                           \
	}

/* Start the proxy program with the network rules of the policy. */
int egress_start(struct egress *x, const char *program, const struct policy *p, struct error *e)
	NODISCARD;
/* role: enum egress_role, or EGRESS_FORWARD plus a port */
int egress_add_listener(const struct egress *x, int role, int fd) NODISCARD;
/* One waiting record as a violation; false when there is none that denies something. */
bool egress_next_denial(const struct egress *x, struct violation *ret);
/* Closes the control socket, which ends the proxy, and reaps it. */
void egress_stop(struct egress *x);
