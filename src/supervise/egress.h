/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The supervisor's side of ambit-proxy: give it the rules and the listeners that
 * were made inside the sandbox, hear its decisions, let it end.
 *
 * The proxy is started when the first packet is for it: most commands never use the
 * network. Until then the kernel keeps connections in the listeners' queues, where
 * nobody answers: not started, or not startable, means that nothing gets out.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "policy/policy.h"
#include "sandbox/native/egress.h"
#include "supervise/broker/broker.h"

struct egress_listener {
	int role, fd;
};

struct egress {
	int events; /* poll this for input, then ask for denials: an epoll descriptor */
	int control; /* of the running proxy, SOCK_SEQPACKET; -1 = not running */
	pid_t pid;
	bool ending; /* it was told to finish */
	const char *program;
	const struct policy *policy;
	struct egress_listener *listeners; /* that wait for the proxy */
	size_t n_listeners;
};

#define EGRESS_INIT                                                                                \
	{                                                                                          \
		.events = -1, .control = -1, .pid = -1                                             \
	}

/* Both are used until egress_stop(). */
int egress_start(struct egress *x, const char *program, const struct policy *p, struct error *e)
	NODISCARD;
/* role: enum egress_role, or EGRESS_FORWARD or _PUBLISH plus a port; fd stays the caller's. */
int egress_add_listener(struct egress *x, int role, int fd) NODISCARD;
/*
 * Other network lists, at once: connections that they do not allow are cut. -errno: the proxy
 * could not be told and was ended, so that nothing gets out by the old ones.
 */
int egress_change(struct egress *x, const struct policy *p) NODISCARD;
/*
 * One waiting record as a violation; false when there is none that denies something. Starts
 * the proxy when it is needed.
 */
bool egress_next_denial(struct egress *x, struct violation *ret);
/*
 * Nobody is left inside: what was sent still goes out, for a moment at most, and all records are
 * there for egress_next_denial().
 */
void egress_finish(struct egress *x);
void egress_stop(struct egress *x);
