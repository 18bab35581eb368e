/* SPDX-License-Identifier: Apache-2.0 */
/* Between the files of supervise/broker/guard*.c only. */
#pragma once

#include "supervise/broker/guard.h"

/* A directory by identity; the birth time tells a re-used inode number. */
struct territory {
	uint64_t dev, ino;
	int64_t born_sec;
	uint32_t born_nsec;
};

struct guard {
	struct arena *a;
	const struct policy *p;
	const struct plan *plan;
	bool has_deny_rules;
	/* of git's own: lifted or not, each for all of its kind (protected_lifter()) */
	const struct protected_name *hooks, *config, *commondir, *remotes, *branches;
	uint64_t *gone; /* hashes of paths */
	size_t n_gone;
	struct territory *v; /* open addressing, power of two */
	size_t n, cap;
};

/* New territory: the open directory is one of this run, and its place was free before. */
bool guard_is_new(const struct guard *g, int dirfd, const char *path);

/* What git would run or follow, by the content of the directory (guard_git.c). */
void guard_ask_git(const struct guard *g, const struct guard_question *q, struct guard_answer *ret);

static inline void guard_deny(struct guard_answer *ret, const char *reason)
{
	ret->allowed = false;
	ret->reason = reason;
}

/* The directory `levels` above an open one; -1 when it cannot be opened. */
int guard_open_above(int dirfd, unsigned levels);
