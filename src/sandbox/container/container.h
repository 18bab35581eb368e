/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The backends podman and docker: the namespaces, the read-only root (an image) and the mounts are
 * the engine's work, called with a list of words that is made from the plan (argv.c). The
 * rest is ours:
 *
 *   supervisor ── keeper ── engine (podman run)
 *                   └── socket ──► ambit-enter, pid 1 in the container ── command
 *
 * The keeper (start.c) calls the engine and waits for ambit-enter on a socket that is mounted
 * into the container. What to run comes over that socket: argv, environment, and the
 * descriptors 0, 1 and 2 themselves, so that nothing of it is seen in the list of processes or
 * in the engine's records, and no byte of input or output passes through the engine. Before it
 * starts the command, ambit-enter looks whether the engine has done what it was told (enter.c).
 *
 * When the keeper or the supervisor dies, the socket ends, ambit-enter leaves, and with pid 1
 * everything inside; the engine removes the container (--rm).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/arena.h"
#include "base/error.h"
#include "policy/policy.h"
#include "sandbox/backend.h"
#include "sandbox/plan.h"
#include "sandbox/plan_points.h"

/* Where the two things of ours are inside. */
#define CONTAINER_ENTER "/run/ambit/enter"
#define CONTAINER_SOCKET "/run/ambit/socket"

extern const struct backend backend_podman, backend_docker;

/* The contained part of plan_compile(). Pure. */
int container_compile(struct compiler *c) NODISCARD;
/* The engine's argv. */
int container_argv(struct compiler *c, struct plan_engine *engine) NODISCARD;

/* Which engine, which ambit-enter: facts->engine and ->enter. */
void container_gather(struct arena *a, struct plan_facts *facts);
/* What is held. Pure. */
void container_properties(struct arena *a, const struct plan_facts *facts, struct properties *ret);

int container_start(const struct plan *plan, const struct sandbox_command *cmd,
		    struct sandbox_child *ret, struct error *e) NODISCARD;
/* Run `ENGINE VERB... ` without input or output, for at most that long. Its wait status, or -errno. */
int container_ask(char *const *argv, char *const *env, int timeout_ms);

/* Counters of the groups that the engine has put a container into; -1 = not there. */
struct container_groups {
	int memory_events, pids_events;
};
#define CONTAINER_GROUPS_INIT                                                                      \
	{                                                                                          \
		.memory_events = -1, .pids_events = -1                                             \
	}

/* Does the engine hold the plan's limits for this process? A limit that it does not is an error. */
int container_groups_check(const struct plan_engine *engine, pid_t pid,
			   struct container_groups *ret, struct error *e) NODISCARD;
bool container_groups_out_of_memory(const struct container_groups *g);
bool container_groups_out_of_pids(const struct container_groups *g);
void container_groups_close(struct container_groups *g);
