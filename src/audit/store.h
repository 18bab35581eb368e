/* SPDX-License-Identifier: Apache-2.0 */
/* The writing side of the log: one line more, whole or not at all. */
#pragma once

#include "audit/audit.h"
#include "audit/files.h"

struct audit {
	struct audit_files files;
	int head; /* open and locked while a line is added */
	uint64_t max_bytes;
	unsigned max_files;
	bool redact;
	uint64_t fsize_limit; /* RLIMIT_FSIZE: going over it would be a signal */
	uint64_t lost; /* records that could not be written */
	int lost_code; /* why: errno of the first */
};

/*
 * Add a line: its first fields are made here, `fields` (,"key":value...) follow. Others' lines
 * may come in between those of one writer, never inside one. On failure the log is as
 * it was.
 */
int store_append(struct audit *log, const char *event, const struct buf *fields, struct error *e)
	NODISCARD;
