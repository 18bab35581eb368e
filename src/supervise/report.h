/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What was blocked in a run, and what the run left that will run later outside.
 * The same thing repeated is one entry with a count. Entries are bounded: a
 * command that is denied a million things fills no memory.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/json.h"
#include "policy/policy.h"
#include "supervise/broker/broker.h"
#include "supervise/limit.h"

#define REPORT_ENTRIES_MAX 1000

struct report_entry {
	const char *kind; /* "write", "read", ...: of denials one of report_kind() */
	const char *target;
	const char *rule, *source, *reason, *hint, *process;
	int pid;
	int64_t time_ms; /* since the epoch, of the first */
	uint64_t count;
};

struct report {
	struct arena *a;
	struct report_entry *denied;
	/* target and reason only: what runs later outside, protected names that are gone */
	struct report_entry *later, *removed;
	size_t n_denied, n_later, n_removed;
	const char **notes; /* what was weaker or otherwise than asked for */
	size_t n_notes;
	uint64_t dropped; /* denials past the bound */
	const char *backend; /* NULL = nothing was started */
	struct text_rules lost; /* what was not enforced in this run, one line each */
	/* The owner may know better why something was denied: asked before anybody hears of it. */
	void (*reword)(void *ctx, struct report_entry *entry);
	void *ctx;
};

struct run_result;

/*
 * Take in what the broker says. The entry when it is the first of its kind and
 * not ignored by the policy (ignoreViolations; `command` is matched), else NULL.
 */
const struct report_entry *report_add(struct report *r, const struct policy *p, const char *command,
				      const struct violation *v);

/*
 * A limit was reached: the entry, or NULL when it was told before. The reason says what
 * follows from it.
 */
const struct report_entry *report_add_limit(struct report *r, const struct policy *p,
					    enum limit which, const char *reason);

void report_note(struct report *r, const char *text);

/* When the run is over: forget what is not so any more. */
void report_prune(struct report *r);

/* "denied write to /etc/hosts — outside the writable directories (allow with: ...)" */
void report_describe(const struct report_entry *entry, struct buf *out);

/* The kinds of denials, by number; NULL past the last. */
const char *report_kind(size_t i);

/* There is a hint, and it works as it is shown. */
bool report_can_hint(const struct report_entry *entry);

/* The members of a JSON object, for an entry and for the whole. */
void report_write_entry(const struct report_entry *e, struct json *j);
/* Of all processes together, and never less than the largest of them had. */
uint64_t report_memory_peak(const struct run_result *result);
void report_write_fields(const struct report *r, char *const *argv, const struct run_result *result,
			 struct json *j);
void report_print_json(const struct report *r, char *const *argv, const struct run_result *result,
		       struct buf *out);
