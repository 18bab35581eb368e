/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Is the log what was written? Finds any changed byte, any line that is missing, added or out of
 * order, and a cut end, as long as the head is the one that was written last. Whoever can
 * write all the files can write them anew, hashes and head included; that is not found.
 */
#pragma once

#include "audit/read.h"
#include "base/arena.h"

enum verify_kind {
	VERIFY_CHANGED, /* a line is not what was written, or no line of a log at all */
	VERIFY_MISSING, /* lines are not there */
	VERIFY_ORDER, /* lines are there twice, or not where they belong */
	VERIFY_TORN, /* the last line was cut short by the end of its writer */
	VERIFY_TRUNCATED, /* lines at the end are not there */
	VERIFY_HEAD, /* the head is not there or not what was written */
};

struct verify_problem {
	enum verify_kind kind;
	const char *file; /* name in the directory of the log */
	uint64_t line; /* in that file; 0 = the file as a whole */
	const char *text;
};

struct verify_result {
	uint64_t records, first, last; /* number of lines; of the oldest, of the newest */
	size_t files;
	struct verify_problem *problems;
	size_t n_problems;
	const char **notes; /* what happened and is no sign of tampering, one line each */
	size_t n_notes;
};

#define VERIFY_PROBLEMS_MAX 1000

const char *verify_kind_name(enum verify_kind k);
int audit_verify(struct arena *a, const struct snapshot *s, struct verify_result *ret,
		 struct error *e) NODISCARD;
