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
	struct error broken; /* code other than 0: it could not be opened, all records are lost */
	struct chain_lost lost; /* those that could be remembered nowhere else */
	bool looked; /* at the second place for those of others */
};

/*
 * Add a line: its first fields are made here, `fields` (,"key":value...) follow. Others' lines
 * may come in between those of one writer, never inside one. On failure the log is as
 * it was.
 */
int store_append(struct audit *log, const char *event, const struct buf *fields, struct error *e)
	NODISCARD;
