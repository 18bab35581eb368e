/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records for the supervisor: one JSON object per datagram on the control
 * socket. The proxy never waits for a reader; what does not fit is counted and
 * the count is reported when there is room again.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct report {
	int fd;
	uint64_t dropped;
	bool patient; /* at the end: wait a little for the reader */
	/* what was refused by the resolver lately: programs ask in pairs and again and again */
	struct {
		uint32_t hash;
		uint64_t until_ms;
	} recent[64];
};

struct record {
	const char *host, *via, *rule, *reason, *address; /* NULL = leave out */
	uint16_t port;
	bool allow;
	uint64_t sent, received, ms;
};

void report_connect(struct report *r, const struct record *rec);
/* A refused name; the same one within a second is reported once. */
void report_name(struct report *r, const struct record *rec, uint64_t now_ms);
/* kind: "error" or "warning" */
void report_text(struct report *r, const char *kind, const char *reason);
void report_ready(struct report *r);
void report_finish(struct report *r); /* the count of what was lost, if anything was */
