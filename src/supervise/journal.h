/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One run in the audit log: its start, what was denied, where it connected, how it ended. The
 * first of each thing at once, repetitions as counts at the end; and no more than a
 * bounded number of lines of each kind, so that a command cannot push what was logged before out
 * of the log by being denied things, nor keep its connections out of it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "audit/audit.h"
#include "base/error.h"
#include "policy/policy.h"

struct egress_record;
struct report;
struct report_entry;
struct run_result;

enum journal_kind {
	JOURNAL_VIOLATION,
	JOURNAL_REFUSED, /* connections that were */
	JOURNAL_CONNECTED,
	JOURNAL_CHANGE,
	JOURNAL_KIND_MAX_,
};

#define JOURNAL_LINES_MAX 1000 /* of each kind */
#define JOURNAL_PLACES_MAX ((size_t)2 * JOURNAL_LINES_MAX)

/* What somebody was asked about and has not answered yet. */
struct journal_question {
	uint32_t id;
	bool write; /* a path, not a host */
	char target[256];
};

#define JOURNAL_QUESTIONS_MAX 16 /* the last ones; of older ones only the answer is known */

struct journal {
	struct audit *log; /* NULL: nothing is written */
	char run[AUDIT_RUN_ID_LEN + 1];
	unsigned lines[JOURNAL_KIND_MAX_];
	uint64_t left_out; /* records past the bound */
	uint64_t allowed, denied; /* connections */
	uint64_t lost; /* connections that the proxy could not tell us of */
	uint64_t sent, received; /* bytes of them */
	uint64_t places[JOURNAL_PLACES_MAX]; /* hashes of what was logged: host, port, verdict */
	size_t n_places;
	struct journal_question questions[JOURNAL_QUESTIONS_MAX]; /* a ring */
	size_t n_questions;
	int failed; /* -errno of the first record that could not be written */
	struct error error;
};

void journal_init(struct journal *j, struct audit *log);
void journal_start(struct journal *j, const struct policy *p, char *const *argv,
		   const char *backend);
void journal_denied(struct journal *j, const struct report_entry *entry);
void journal_decision(struct journal *j, const struct egress_record *d);
/* The network lists are those of p from now on. */
void journal_network(struct journal *j, const char *by, const struct policy *p);
/* A grant or refusal by a person: what was asked, and the answer. scope: "once", "run". */
void journal_asked(struct journal *j, uint32_t id, bool write, const char *target);
void journal_answered(struct journal *j, uint32_t id, bool write, const char *by, bool allow,
		      const char *scope);
/* Any other change of what is allowed; its run is this one. */
void journal_change(struct journal *j, const struct audit_policy_change *c);
/* result NULL: nothing was run, because of e. */
void journal_end(struct journal *j, const struct run_result *result, const struct report *report,
		 const struct error *e);
