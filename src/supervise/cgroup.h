/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Control groups for one run: found, made, watched, removed.
 *
 * A group is made below the one that this process is in, so that the caller's own limits
 * hold for the sandbox too. Version 2: one group for all controllers, in which init is
 * born; where the subtree is not ours, a transient scope of systemd (cgroup_scope.c).
 * Version 1: one group per hierarchy, which init enters by itself.
 *
 * A group is removed when its run ends, by a small process that waits for the end of the
 * supervisor, whichever way it comes (cgroup_guard.c); should that one be killed, the next run
 * finds the empty group, sees that nobody holds its lock any more, and removes it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/arena.h"
#include "base/error.h"
#include "sandbox/backend.h"

enum cgroup_controller { CGROUP_MEMORY, CGROUP_PIDS, CGROUP_CPU, CGROUP_CONTROLLER_MAX_ };

enum cgroup_kind {
	CGROUP_NONE,
	CGROUP_V1,
	CGROUP_V2, /* below the group we are in */
	CGROUP_SCOPE, /* version 2, by systemd */
};

/* Where a controller can be used, and how. */
struct cgroup_place {
	enum cgroup_kind kind;
	const char *parent; /* V1, V2: directory to make the group in */
	const char *missing; /* NONE: why not */
	const char *remedy; /* or NULL */
};

struct cgroup_places {
	struct cgroup_place by[CGROUP_CONTROLLER_MAX_];
};

/*
 * What this process can use of the controllers that are wanted. `root` is put in front of /proc and /sys: "" but in tests. Looks only.
 * CGROUP_SCOPE means that systemd is there; whether it agrees is seen when it is asked.
 */
void cgroup_find(struct arena *a, const char *root, const bool wanted[CGROUP_CONTROLLER_MAX_],
		 struct cgroup_places *ret);

/* 0 = no limit of this kind. */
struct cgroup_limits {
	uint64_t memory; /* bytes, swap included */
	uint64_t pids;
	double cpu; /* processors */
};

struct cgroup;

/*
 * The groups that the limits need. A version 2 group, in which the child is born, is there at once;
 * others are made by cgroup_start(). All limits that are set have a place.
 */
int cgroup_new(const char *root, const struct cgroup_places *places,
	       const struct cgroup_limits *limits, struct cgroup **ret, struct error *e) NODISCARD;
/* Directory for CLONE_INTO_CGROUP, or -1. */
int cgroup_born_in(const struct cgroup *g);
/*
 * While the child sets itself up: makes the groups and their guard, and tells the child, over
 * `control`, what to enter and that it may go on.
 */
int cgroup_start(struct cgroup *g, const struct sandbox_child *child, struct error *e) NODISCARD;
/* An epoll descriptor, readable when a limit was hit; -1 = none, look now and then. */
int cgroup_fd(const struct cgroup *g);
/* The kernel killed somebody for memory; refused a fork. Counted since the start. */
uint64_t cgroup_memory_kills(const struct cgroup *g);
uint64_t cgroup_fork_refusals(const struct cgroup *g);
/* Now, and the most so far; 0 = not known. */
uint64_t cgroup_memory_peak(const struct cgroup *g);
uint64_t cgroup_pids_peak(const struct cgroup *g);
/*
 * Every process but init must be gone, and init be leaving. NULL is fine. The guard, about to
 * remove the groups and to end, to wait for; or 0.
 */
pid_t cgroup_free(struct cgroup *g);
