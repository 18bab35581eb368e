/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The limits of one run: by which mechanism each is held here, and whether one was reached.
 *
 *   memory   cgroup; else the supervisor samples what the processes use
 *   cpu      cgroup; else whole processors, by affinity that the command cannot change
 *   pids     cgroup; else RLIMIT_NPROC, counted in the sandbox's own user namespace; else (root,
 *            no namespaces) sampled
 *   disk     size of the private file system, RLIMIT_FSIZE, the broker's count of new
 *            files, and samples of what was written to the writable directories
 *   output   counted by who reads it (relay.h, or the owner of the session)
 *   timeout  the session's own clock
 *
 * A limit that cannot be held is refused before anything runs. Without limits nothing of
 * this exists and nothing is sampled.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "policy/policy.h"
#include "sandbox/plan.h"

enum limit {
	LIMIT_MEMORY,
	LIMIT_CPU,
	LIMIT_PIDS,
	LIMIT_DISK,
	LIMIT_OUTPUT,
	LIMIT_TIMEOUT,
	LIMIT_MAX_,
};

const char *limit_name(enum limit which); /* "memory": also the option */
const char *limit_key(enum limit which); /* "limits.memory" */
bool limit_is_set(const struct policy_limits *l, enum limit which);
/* As it would be written: "512m", "200", "1.5", "30m"; `times` it. */
void limit_value(const struct policy_limits *l, enum limit which, unsigned times, struct buf *out);

/* What the sandbox used at most; 0 = not measured. */
struct limits_peak {
	uint64_t memory; /* bytes, all processes and private files */
	uint64_t pids;
	uint64_t disk; /* bytes */
	uint64_t output; /* bytes */
	bool memory_exact, pids_exact; /* counted by the kernel; else there may have been more */
	uint64_t tasks; /* that were started in all, when measuring; 0 = not known */
};

struct limits;
struct properties;
struct sandbox_child;
struct sandbox_limits;

struct limits_how {
	bool measure; /* also what has no limit */
	bool bare; /* without namespaces */
};

/* NULL in *ret when there is nothing to hold and nothing to measure. */
int limits_new(struct arena *a, const struct policy *p, const struct limits_how *how,
	       struct limits **ret, struct error *e) NODISCARD;
/* What the user should know before the command starts, or NULL. */
const char *limits_note(const struct limits *l);
const struct sandbox_limits *limits_inside(const struct limits *l);
/* Right after the child was started: it waits for this. */
int limits_start(struct limits *l, const struct plan *plan, const struct sandbox_child *child,
		 struct error *e) NODISCARD;
/* The command comes only now, to a sandbox that stood ready for it. */
void limits_restart(struct limits *l);
/* The descriptors from inside (enum native_usage); those that are kept become -1. 0 or -errno. */
int limits_take(struct limits *l, int *fds) NODISCARD;
/* One of several private file systems, before the others; it is kept. 0 or -errno. */
int limits_take_private(struct limits *l, int fd) NODISCARD;
/* Where the broker counts what it performed, in shared memory; NULL = nobody asks. */
uint64_t *limits_performed(struct limits *l);

/* Some limit is held by our own looks only. */
bool limits_is_sampling(const struct limits *l);
/* Readable when there is something to look at, -1 = never; and by when at the latest. */
int limits_fd(const struct limits *l);
int limits_wait_ms(const struct limits *l);
/* Look: the limit that was passed, or -1. */
int limits_look(struct limits *l);
/*
 * The last process is about to leave, and with it a scope of systemd: keeps what it says. True when
 * there is one, and init waits for a word that it was looked at.
 */
bool limits_remember(struct limits *l);
/*
 * Init is gone; the command's wait status, for what it ended by. One last look at what
 * was reached, and the peaks; then the groups begin to go.
 */
int limits_look_last(struct limits *l, int status);

const struct limits_peak *limits_peak(const struct limits *l);
/* By what a limit is held: "cgroup v2", "the supervisor's clock"; NULL = not set. l may be NULL. */
const char *limits_means(const struct limits *l, const struct policy_limits *set, enum limit which);
/* Every process must be gone. NULL is fine. A child that is about to end, to wait for; or 0. */
pid_t limits_free(struct limits *l);

/* What would hold each limit on this machine: rows for `ambit check`. */
void limits_probe(struct arena *a, struct properties *ret);
