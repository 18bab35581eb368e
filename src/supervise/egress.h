/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The supervisor's side of ambit-proxy: give it the rules and the listeners that
 * were made inside the sandboxes, hear its decisions, answer its questions, let it end.
 *
 * One proxy serves any number of sandboxes under one policy: egress_new() once, then for each
 * sandbox egress_attach() ... egress_detach(). Records go to the user they belong to, by its
 * function, from within egress_step().
 *
 * The proxy is started when the first packet is for it: most commands never use the
 * network. Until then the kernel keeps connections in the listeners' queues, where
 * nobody answers: not started, or not startable, means that nothing gets out.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/error.h"
#include "policy/policy.h"
#include "sandbox/native/egress.h"
#include "supervise/egress_record.h"

struct egress;

struct egress_setup {
	const char *program; /* ambit-proxy */
	const struct policy *policy; /* its network part; both are used until egress_free() */
	bool ask; /* EGRESS_ASK is answered: hosts that no rule covers are asked about */
};

/* A sandbox at a proxy. The first two are set by its owner, the rest is ours. */
struct egress_user {
	void (*record)(void *ctx, const struct egress_record *r);
	void *ctx;
	struct egress *egress; /* NULL = not attached */
	struct egress_user *next;
	uint32_t id;
	bool gone; /* nothing more will be heard */
	struct egress_listener *listeners; /* that wait for the proxy */
	size_t n_listeners;
};

#define EGRESS_CONFIG_MAX ((size_t)4 << 20) /* what the proxy takes */
/* The rules, as ambit-proxy reads them; -EFBIG when they are longer. */
int egress_write_config(struct buf *b, const struct policy *p, bool ask) NODISCARD;
/* What can be known to fail later fails here: a missing program, a policy too large. */
int egress_new(const struct egress_setup *setup, struct egress **ret, struct error *e) NODISCARD;
void egress_free(struct egress *x); /* NULL is fine; ends the proxy */

pid_t egress_pid(const struct egress *x); /* -1 = it does not run */
/* Readable when egress_step() has something to do. */
int egress_fd(const struct egress *x);
/* Start the proxy when it is needed, hand out what it has told. Never waits. */
void egress_step(struct egress *x);
/*
 * Other network lists for all users, at once: connections that they do not allow are cut.
 * -errno: the proxy could not be told and was ended, so that nothing gets out by the old ones.
 */
int egress_change(struct egress *x, const struct policy *p) NODISCARD;

enum egress_answer { EGRESS_DENY, EGRESS_DENY_RUN, EGRESS_ALLOW_ONCE, EGRESS_ALLOW_RUN };
/*
 * To EGRESS_ASK; _RUN holds for this host and port as long as the user is attached. An answer that
 * comes too late changes nothing.
 */
void egress_answer(struct egress *x, uint32_t id, enum egress_answer answer);

void egress_attach(struct egress *x, struct egress_user *u);
/* role: enum egress_role, or EGRESS_FORWARD or _PUBLISH plus a port; fd stays the caller's. */
int egress_add_listener(struct egress_user *u, int role, int fd) NODISCARD;
/*
 * Nobody is left inside: what was sent still goes out, for a moment at most, and all records
 * are there when egress_is_gone(). A proxy that does not answer in EGRESS_LEAVE_MS is
 * not waited for.
 */
#define EGRESS_LEAVE_MS 1500 /* more than the proxy allows itself */
void egress_leave(struct egress_user *u);
bool egress_is_gone(const struct egress_user *u);
/* At once, with everything that is its. Fine when it was never attached. */
void egress_detach(struct egress_user *u);
