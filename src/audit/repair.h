/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a log goes on when its end is not what the head says: because a writer was killed
 * between its two writes, in the middle of one, or in the middle of putting a file aside;
 * or because somebody else changed the files.
 */
#pragma once

#include "audit/chain.h"
#include "audit/files.h"

#define REPAIR_TEXT_MAX 512 /* of a cut line that is kept in the record about it */

enum repair_problem {
	REPAIR_NONE, /* a writer was killed, nothing was lost */
	REPAIR_TORN, /* a line was cut short: it is taken out, its text is in the record */
	REPAIR_SHORTENED, /* lines that the head knows are not there */
	REPAIR_FOREIGN, /* there are lines that do not belong to the chain */
	REPAIR_HEAD, /* the head was missing, emptied or not readable */
};

struct repair {
	enum repair_problem problem;
	struct chain_head head; /* where the chain goes on; size is that of the file as it is now */
	uint64_t cut; /* bytes of the line that was cut short */
	char text[REPAIR_TEXT_MAX]; /* its beginning */
};

/* "torn", "shortened", ... */
const char *repair_name(enum repair_problem p);

/*
 * Under the lock. fd: the present file, of `size` bytes; known: the head, or NULL. A line that
 * was cut short is taken out of the file, nothing else is changed. -errno when even that fails.
 */
int repair_tail(const struct audit_files *f, int fd, uint64_t size, const struct chain_head *known,
		struct repair *ret) NODISCARD;
