/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records for the supervisor: JSON objects, a line each, on the control socket. What was refused
 * or asked for is sent at the end of the turn of the loop; a tunnel that is over may wait a few
 * milliseconds for others, so that a program that makes many does not wake the supervisor for each.
 * The proxy never waits for a reader; what does not fit is counted and the count
 * is reported when there is room again.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

struct report {
	int fd;
	struct buf batch; /* records that wait */
	unsigned batched; /* their number */
	bool hurry; /* one of them is to be sent at the end of the turn */
	uint64_t due_ms; /* when all are sent; 0 = not known yet */
	uint64_t dropped;
	bool patient; /* at the end: wait a little for the reader */
	/* what was refused by the resolver lately: programs ask in pairs and again and again */
	struct {
		uint32_t hash;
		uint64_t until_ms;
	} recent[64];
};

struct record {
	uint32_t owner;
	const char *host, *via, *rule, *reason, *address; /* NULL = leave out */
	uint16_t port;
	bool allow;
	bool over; /* of a tunnel that was allowed: nobody waits for it */
	const char *process; /* that wanted it, where known; else NULL */
	int pid;
	uint64_t sent, received, ms;
};

void report_connect(struct report *r, const struct record *rec);
/* A refused name; the same one within a second is reported once. */
void report_name(struct report *r, const struct record *rec, uint64_t now_ms);
/* kind: "error" or "warning" */
void report_text(struct report *r, const char *kind, const char *reason);
void report_ready(struct report *r);
/* A question, sent at once. False: it could not be. */
bool report_ask(struct report *r, uint32_t owner, uint32_t id, const char *host, uint16_t port,
		const char *via) NODISCARD;
void report_unask(struct report *r, uint32_t owner, uint32_t id); /* it need not be answered */
void report_gone(struct report *r, uint32_t owner); /* the last record of this owner */
void report_flush(struct report *r, uint64_t now_ms); /* at the end of a turn: what is due */
void report_finish(struct report *r); /* at the end: all of it, with the count of what was lost */
