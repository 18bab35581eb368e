/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the keeper tells ambit-enter, as one block of bytes in a memory file: a header, the
 * places to look at, then all strings, each with its NUL. Both are of one build: a block of
 * another size or another beginning is refused, nothing is converted.
 */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "sandbox/backend.h"
#include "sandbox/plan.h"

#define REQUEST_MAX ((size_t)16 << 20)

/* How a place must look inside. */
enum place_kind {
	PLACE_SAME, /* the object of the host that was judged */
	PLACE_SAME_RO, /* and read-only */
	PLACE_EMPTY, /* a read-only file system without anything of the host */
	PLACE_NULL, /* a device that gives nothing */
};

struct place {
	uint32_t kind; /* enum place_kind */
	uint64_t dev, ino;
	const char *path; /* not in the block: among its strings */
};

struct request {
	char **argv, **env;
	const char *cwd;
	struct place *places;
	size_t n_places;
	sigset_t mask;
	uint32_t umask;
	bool own_terminal;
	uint32_t landlock; /* enum engine_landlock */
	uint64_t net; /* inode of the network namespace outside; 0 = it may be the same */
};

/* The request for a plan. */
void request_make(struct arena *a, const struct plan *plan, const struct sandbox_command *cmd,
		  struct request *ret);
/* A memory file that holds it, or -errno. */
int request_write(const struct request *q) NODISCARD;
/* Pure: text is the block, which `ret` points into afterwards. */
int request_parse(struct arena *a, char *block, size_t len, struct request *ret, struct error *e)
	NODISCARD;
