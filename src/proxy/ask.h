/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Questions to the supervisor: a host that no rule covers can be asked about, and the
 * connection is held until the answer. Nothing leaves before it: no look-up, no dial. What a
 * rule denies, and addresses that need a rule of their own, are never asked about.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "proxy/decide.h"

#define QUESTIONS_MAX 16 /* open at the same time */

enum ask_answer { ASK_DENY, ASK_DENY_RUN, ASK_ALLOW_ONCE, ASK_ALLOW_RUN };

struct owner;
struct conn;
struct proxy;

struct question {
	struct question *next;
	uint32_t id;
	struct owner *owner;
	struct host host;
	uint16_t port;
	unsigned waiting; /* connections */
};

/* What was answered for this connection alone. */
struct grant {
	bool allow;
	uint16_t port;
	const char *reason; /* why not */
	char name[HOST_NAME_MAX_LEN + 1];
};

/* decide_host(), and what was answered. ret->ask: it can be asked about. */
void judge(const struct proxy *p, const struct conn *c, const struct host *host, uint16_t port,
	   struct verdict *ret);
/* Hold the connection until somebody has answered; its input stays where it is. */
void ask_hold(struct proxy *p, struct conn *c, const struct host *host, uint16_t port);
/* The connection closes: a question nobody waits for is taken back. */
void ask_leave(struct proxy *p, struct conn *c);
/* Time is up for a connection, and with it for the question. */
void ask_expired(struct proxy *p, struct conn *c);
/* The rules are others: what they decide now is not asked any more. */
void ask_review(struct proxy *p);
/* "ID WORD" from the supervisor; a question that is gone is no error. */
int ask_answer(struct proxy *p, const char *text, struct error *e) NODISCARD;
