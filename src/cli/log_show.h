/* SPDX-License-Identifier: Apache-2.0 */
/* Records of the audit log for people, and which of them are wanted. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "audit/chain.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/json_read.h"

/* Which records are shown. */
struct log_filter {
	const char *kind; /* of the record, or of the violation in it; NULL = all */
	const char *run; /* the beginning of a run's name; NULL = all */
	bool violations;
	int64_t since_ms, until_ms; /* 0 = unbounded */
};

/* record: the whole line, parsed. */
bool log_filter_takes(const struct log_filter *f, const struct chain_line *l,
		      const struct json_span *record);

/* The kinds of records, by number; NULL past the last. */
const char *log_event(size_t i);

/* One line for people, without line break; whatever the record holds is escaped. */
void log_show(const struct chain_line *l, const struct json_span *record, struct buf *out);

/*
 * "10m", "2h", "1d" (ago), "2026-01-31", "2026-01-31 12:00", "2026-01-31T12:00:00Z". Without Z in
 * local time. -EINVAL with a message.
 */
int log_parse_time(const char *text, int64_t now_ms, int64_t *ret_ms, struct error *e) NODISCARD;
