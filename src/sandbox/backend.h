/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A way to confine a command. One policy, several mechanisms: each backend compiles the
 * policy to a plan, purely, and carries that plan out. A backend that cannot hold a
 * rule of the policy says so when it compiles; there is no weaker start.
 *
 *   backend_choose()  which one, and what it will not hold here
 *   ->probe()         what it can enforce on this machine, property by property
 *   ->compile()       policy to plan
 *   ->start()         plan to processes
 *
 * Whoever started a child talks to its init over `control` (SOCK_SEQPACKET, struct init_order
 * in, struct init_event out) and hears of its set-up on `errors`: see native/native.h.
 */
#pragma once

#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/path.h"
#include "policy/policy.h"
#include "sandbox/plan.h"

/* Every backend is judged by the same list; `check` prints it, `require` names its rows. */
struct property {
	const char *name; /* "landlock", "user-namespaces": what `require` says */
	bool enforced;
	const char *mechanism; /* by what: "mount namespace", "Landlock ABI 7", ... */
	const char *missing; /* when not enforced, or less strictly: what is missing here */
	const char *remedy; /* the one command or setting that mends it, or NULL */
};

struct properties {
	struct property *v;
	size_t n;
};

/*
 * What a process of the sandbox does about limits, before the command starts. The mechanisms
 * were chosen outside (supervise/limit.h); a backend does all of it, or fails to start.
 */
struct sandbox_limits {
	bool groups; /* wait on `control` for one message: tasks files of cgroups to enter */
	int born_in; /* directory of a version 2 cgroup to start in, -1 = none */
	bool measured; /* hand out what shows the use: enum native_usage */
	bool no_memfd; /* memory that only descriptors hold cannot be seen: refused */
	bool first_victim; /* when the machine runs out of memory */
	uint64_t processes, file_size; /* RLIMIT_NPROC, RLIMIT_FSIZE; 0 = as they are */
	bool pinned; /* to `cpus`, for good */
	cpu_set_t cpus;
};

#define SANDBOX_GROUPS_MAX 3

struct sandbox_command {
	char *const *argv;
	sigset_t mask; /* the caller's signal mask, restored for the command */
	int stdio[3]; /* for 0, 1, 2, each above 2; -1 = the caller's own */
	int tty; /* give this terminal to the command's process group, -1 = no */
	const struct sandbox_limits *limits; /* NULL = none */
};

struct sandbox_child {
	pid_t pid; /* to wait for: with it everything inside is gone */
	pid_t init; /* the parent of the command, as the host sees it */
	int pidfd, control, errors;
};

#define SANDBOX_CHILD_INIT                                                                         \
	{                                                                                          \
		.pid = -1, .init = -1, .pidfd = -1, .control = -1, .errors = -1                    \
	}

struct backend {
	const char *name;
	enum backend_choice choice;
	/* In a short-lived child; nothing is changed. */
	int (*probe)(struct arena *a, struct properties *ret, struct error *e);
	/* Pure. Fails when a rule cannot be held. */
	int (*compile)(struct arena *a, const struct policy *p, const struct plan_facts *facts,
		       const struct view *view, const struct plan **ret, struct error *e);
	int (*start)(const struct plan *plan, const struct sandbox_command *cmd,
		     struct sandbox_child *ret, struct error *e);
};

extern const struct backend backend_native;

/* The backend that the policy asks for, or the best one here. */
int backend_choose(const struct policy *p, const struct backend **ret, struct error *e) NODISCARD;
