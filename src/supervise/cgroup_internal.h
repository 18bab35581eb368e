/* SPDX-License-Identifier: Apache-2.0 */
/* Between the files of supervise/cgroup*.c only. */
#pragma once

#include "supervise/cgroup.h"

#define CGROUP_NAME_PREFIX "ambit-run-"
#define CGROUP_LEAF "ambit-supervisor" /* where we go when the group must have no members */
#define CGROUP_FILE_MAX 65536

/* One directory: all of version 2, or one hierarchy of version 1. */
struct cgroup_dir {
	enum cgroup_kind kind;
	bool holds[CGROUP_CONTROLLER_MAX_];
	int parent; /* O_PATH */
	char name[48];
	int fd; /* the group, -1 = not made yet; locked while the run lasts */
};

/* Write a whole value to dir/name; with `fake` (tests) the file is made. 0 or -errno. */
int cgroup_write(int dir, const char *name, const char *value, bool fake) NODISCARD;

/*
 * Removes the directories, whether they are made yet or not, when this process is gone; the
 * descriptor keeps it waiting.
 */
int cgroup_guard_start(const struct cgroup_dir *dirs, size_t n, pid_t *ret_pid, int *ret_fd,
		       struct error *e) NODISCARD;
/* The pidfd of init: when that is gone the groups are empty. */
void cgroup_guard_watch(int fd, int init);

/*
 * A transient scope of systemd around `child`, with the limits: `name` without ".scope". The
 * directory of its group, to be closed by the caller, or -errno. `root` as for cgroup_find().
 */
int cgroup_scope_start(const char *root, const char *name, pid_t child,
		       const struct cgroup_limits *limits, struct error *e) NODISCARD;
/* Is there a manager that this user can ask? */
bool cgroup_scope_available(const char *root);
