/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading a log while others write to it: a snapshot is all its files, oldest first, as they were at
 * one moment. What is appended, put aside or removed afterwards does not change it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "audit/chain.h"
#include "audit/files.h"
#include "base/error.h"

struct snapshot_file {
	int fd;
	uint64_t start,
		size; /* what is given: from the beginning, unless the owner says otherwise */
	char name[FILES_NAME_MAX];
};

enum snapshot_head {
	SNAPSHOT_HEAD_MISSING,
	SNAPSHOT_HEAD_BAD,
	SNAPSHOT_HEAD_EMPTY,
	SNAPSHOT_HEAD_OK,
};

struct snapshot {
	struct snapshot_file *v; /* the last is the present one, if it exists */
	size_t n;
	bool has_present;
	enum snapshot_head head_state;
	struct chain_head head;
	struct chain_lost lost; /* records that could not be written, and no record tells yet */
	char head_name[FILES_NAME_MAX];
	uint64_t present_ino; /* of the present file; 0 = none */
};

/* Lines up to `after` are not needed: files that hold nothing else are left out. */
int snapshot_take(const struct audit_files *f, uint64_t after, struct snapshot *ret,
		  struct error *e) NODISCARD;
void snapshot_done(struct snapshot *s);
#define _cleanup_snapshot_ __attribute__((cleanup(snapshot_done)))

#define SNAPSHOT_LINE_MAX ((size_t)1 << 20) /* of a longer one only the beginning is given */

struct snapshot_line {
	const struct snapshot_file *file;
	uint64_t number; /* in its file, from 1 */
	uint64_t offset; /* where it begins */
	const char *text; /* without the line break, which may be missing at the very end */
	size_t len;
	bool whole; /* it has its line break, and all of it is here */
};

/*
 * Every line in order, until visit() returns other than 0, which is passed on. -errno when
 * a file cannot be read.
 */
typedef int snapshot_visit(void *ctx, const struct snapshot_line *line);
int snapshot_each(const struct snapshot *s, snapshot_visit *visit, void *ctx, struct error *e)
	NODISCARD;
