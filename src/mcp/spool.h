/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The output of one run, whole: in memory while it is small, in a nameless file when it is not.
 * The file has no name at any time, so nothing of it outlives this process.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"

#define SPOOL_MEMORY ((size_t)32 << 10)

struct spool {
	struct buf memory;
	int file; /* -1 = all of it is in memory */
	uint64_t size;
};

#define SPOOL_INIT                                                                                 \
	{                                                                                          \
		.memory = BUF_INIT(SPOOL_MEMORY), .file = -1                                       \
	}

/* dir: where the file is made. -errno when it cannot be kept. */
int spool_append(struct spool *s, const char *dir, const char *data, size_t len) NODISCARD;
/* Up to len bytes from offset; how many. */
size_t spool_read(const struct spool *s, uint64_t offset, char *ret, size_t len);
void spool_done(struct spool *s);
