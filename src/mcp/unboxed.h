/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A command without any sandbox, for servers whose user asked for that or whose machine
 * cannot do better and whose user allowed it. It has the same shape as a session.
 */
#pragma once

#include <signal.h>
#include <sys/types.h>

#include "base/arena.h"
#include "base/error.h"
#include "policy/policy.h"
#include "sandbox/plan.h"
#include "supervise/session.h"

struct unboxed {
	pid_t pid; /* leader of a session of its own */
	int pidfd; /* readable when it has ended */
	uint64_t started_ms;
	char *stage; /* directory of the files, removed at the end */
};

#define UNBOXED_INIT                                                                               \
	{                                                                                          \
		.pid = -1, .pidfd = -1                                                             \
	}

/* Make the directory for the files of one run: its name, in `a`. */
int unboxed_stage(struct arena *a, struct unboxed *u, const char **ret, struct error *e) NODISCARD;
/* Uses argv, policy (cwd and environment), environ_in, files, stdio and mask of the request. */
int unboxed_start(struct unboxed *u, const struct session_request *req, struct error *e) NODISCARD;
void unboxed_signal(const struct unboxed *u, int sig);
/* Once pidfd is readable. */
void unboxed_end(struct unboxed *u, struct run_result *ret);
