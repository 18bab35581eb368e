/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sandbox that is served: its listeners, its connections, its resolver's names and
 * what was answered for it. Several can share the proxy and its rules; nothing of one
 * is visible to another.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "proxy/names.h"

#define ANSWERS_MAX 512 /* kept of one owner; the oldest goes first */

/* What was said about a host and port, for as long as the sandbox lives. */
struct answer {
	struct answer *next;
	bool allow;
	uint16_t port;
	char name[]; /* canonical */
};

/* Sockets of the sandbox from which more are made (publish.c); -1 = none. */
struct seed {
	int fd, listener;
};

struct owner {
	struct owner *next;
	uint32_t id;
	struct names names;
	struct answer *answers; /* the youngest first */
	unsigned n_answers;
	unsigned n_conns;
	unsigned n_published; /* of them, those that came from the host */
	struct seed seeds[2]; /* IPv4, IPv6 */
	struct inquiries *inquiries; /* of its broker; NULL = none will come */
	bool paused; /* its listeners are not polled: no room for another connection */
	bool busy; /* something of it happened in this turn of the loop */
	uint64_t leave_ms; /* it is to go, at this time at the latest; 0 = it stays */
};

struct proxy;

/* The owner with this id, made when it is new. */
struct owner *owner_get(struct proxy *p, uint32_t id);
struct owner *owner_find(const struct proxy *p, uint32_t id); /* NULL = none */
/* Nobody is left inside: what is on its way may still arrive, for a moment at most. */
void owner_leave(struct proxy *p, struct owner *o);
/* At the end of a turn: those that can go, go, and the supervisor is told. */
void owners_settle(struct proxy *p);
/* At the end of the program: all of them, at once. */
void owners_done(struct proxy *p);
/* Connections that one owner may have: not all of them, when there are others. */
unsigned owner_share(const struct proxy *p);
bool owner_has_room(const struct proxy *p, const struct owner *o);

void owner_remember(struct owner *o, const char *name, uint16_t port, bool allow);
const struct answer *owner_answer(const struct owner *o, const char *name, uint16_t port);
