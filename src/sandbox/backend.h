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
#include "sandbox/property.h"

/*
 * What a process of the sandbox does about limits, before the command starts. The mechanisms
 * were chosen outside (supervise/limit.h); a backend does all of it, or fails to start.
 */
struct sandbox_limits {
	bool groups; /* wait on `control` for one message: tasks files of cgroups to enter */
	int born_in; /* directory of a version 2 cgroup to start in, -1 = none */
	bool measured; /* hand out what shows the use: enum native_usage */
	bool no_memfd; /* memory that only descriptors hold cannot be seen: refused */
	bool no_fallocate; /* what is written is counted, what is only reserved is not: refused */
	bool first_victim; /* when the machine runs out of memory */
	bool last_look; /* its group goes with init, which waits on `control` until it was looked at */
	bool counted; /* at its end a dead process is left: its number tells how many there were */
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
	bool own_terminal; /* it is of no session yet: a session of the sandbox's own gets it */
	const struct sandbox_limits *limits; /* NULL = none */
	/*
	 * The command comes later (native_send_command()): argv, stdio and the terminal are not
	 * there, and no other descriptor of the caller's stays open meanwhile. Native only.
	 */
	bool later;
	/*
	 * Answers notified calls, in a process of the backend's own, until `until` (a pidfd) is
	 * readable. For backends that hand out no namespaces to join; the others send the
	 * listener to whoever holds the child. Keeps of the caller's descriptors what it needs.
	 */
	void (*serve)(void *ctx, int listener, int until);
	void *ctx;
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
	/* What is held when it starts, by what is known. Pure. */
	void (*hold)(struct arena *a, const struct plan_facts *facts, struct properties *ret);
	/* What would be held, found by trying, in a short-lived child; nothing is changed. */
	int (*probe)(struct arena *a, struct properties *ret, struct error *e);
	/* Pure. Fails when a rule cannot be held. */
	int (*compile)(struct arena *a, const struct policy *p, const struct plan_facts *facts,
		       const struct view *view, const struct plan **ret, struct error *e);
	int (*start)(const struct plan *plan, const struct sandbox_command *cmd,
		     struct sandbox_child *ret, struct error *e);
};

extern const struct backend backend_native, backend_bwrap, backend_landlock;

/* All that this build has, the strongest first. */
extern const struct backend *const backends_table[];
extern const size_t backends_count;

/* NULL for one that does not exist here, for auto and none. */
const struct backend *backend_find(enum backend_choice choice);

struct backend_decision {
	const struct backend *backend;
	const char *why; /* one line for -v */
	struct text_rules lost; /* what is not enforced, one line each, for the user to see */
};

/*
 * The backend that the policy asks for, or the strongest that works here. What is needed
 * to compile for it goes into `facts`. `refused` is what the native backend said when it was
 * tried, or NULL; without it, it is believed to work unless there is a reason for doubt.
 *
 * Fails when less than wanted could be enforced and the policy does not say `fallback: warn`.
 */
int backend_choose(struct arena *a, const struct policy *p, const struct error *refused,
		   struct plan_facts *facts, struct backend_decision *ret, struct error *e)
	NODISCARD;

/* Whether it would start here, by its probe; else the error says what is missing. */
int backend_try(struct arena *a, const struct backend *b, struct error *e) NODISCARD;

/* Whether all that the policy requires is held by the backend of these facts. */
int backend_check_required(struct arena *a, const struct policy *p, const struct plan_facts *facts,
			   struct error *e) NODISCARD;
