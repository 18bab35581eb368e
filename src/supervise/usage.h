/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much a sandbox uses, seen from outside: its own /proc, which shows every process of its
 * pid namespace and no other, whatever it calls itself and whoever its parent is; its private
 * file system; its System V memory; and the file systems that it may write to. Without
 * namespaces: the processes that descend from its init, whose children all orphans become, and
 * the file systems alone.
 */
#pragma once

#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "sandbox/native/native.h"
#include "sandbox/plan.h"

#define USAGE_DISKS_MAX 16

struct usage_disk {
	int fd; /* O_PATH */
	dev_t dev;
	uint64_t free_bytes, free_files; /* at the start */
};

struct usage_source {
	DIR *proc; /* NULL = not handed out yet */
	uint64_t init; /* its number there */
	bool tree; /* without a pid namespace: only what descends from init is inside */
	int shm, scratch;
	int more[NATIVE_PRIVATE_MAX]; /* where there are several */
	size_t n_more;
	struct usage_disk disks[USAGE_DISKS_MAX];
	size_t n_disks;
};

#define USAGE_SOURCE_INIT                                                                          \
	{                                                                                          \
		.init = 1, .shm = -1, .scratch = -1                                                \
	}

/* One cheap look. */
struct usage {
	uint64_t pids; /* processes and threads, without init */
	uint64_t memory; /* at most: pages shared after fork() count for each */
	uint64_t written; /* bytes written to files, taken back ones subtracted */
	uint64_t scratch, scratch_files; /* in private directories */
	uint64_t shm;
};

/* Bytes of a process that does not let us see how many it has written. */
#define USAGE_UNKNOWN (UINT64_MAX / 4)

/* Without a pid namespace: look at the host's /proc, at what descends from `init`. 0 or -errno. */
int usage_watch_tree(struct usage_source *s, pid_t init) NODISCARD;
/*
 * How many tasks there have been inside, by the number of a dead one that was left when the
 * command had ended (struct sandbox_limits, counted); 0 = there is none. True as long as numbers are
 * not used again.
 */
uint64_t usage_tasks(const struct usage_source *s);
/* Tasks that this machine has started since its own start, and how many numbers they have; 0 = unknown. */
uint64_t usage_started(void);
uint64_t usage_numbers(void);
/* Baselines of the writable directories of the plan. */
void usage_begin(struct usage_source *s, const struct plan *plan, bool disks);
/* Only what is there without processes: private files and System V memory. */
void usage_look_at_files(const struct usage_source *s, struct usage *ret);
void usage_look(const struct usage_source *s, bool io, struct usage *ret);
/*
 * Memory with shared pages counted once. Dear: walks page tables. Memory that nobody maps is in
 * private files or System V segments: memfds are refused where this is what holds the limit.
 */
uint64_t usage_memory(const struct usage_source *s, const struct usage *u);
/* How much the file systems have filled since the start, whoever did; each file counts too. */
uint64_t usage_disk_taken(const struct usage_source *s);
void usage_end(struct usage_source *s);

/* What an inode counts, besides its content. */
#define USAGE_FILE_BYTES 4096
