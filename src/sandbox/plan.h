/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plan: what the native backend will do, as data. compile() makes it purely
 * from a policy and a view of the file system; it can be printed (`ambit
 * plan`) and compared (tests/plan) without privileges. The executor
 * (native/mounts.c and friends) carries it out inside the new namespaces and
 * decides nothing.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/path.h"
#include "policy/policy.h"

/*
 * One mount, at `path`. Applied in order: a parent always stands before its
 * children. Host trees are grabbed (open_tree) before anything is changed.
 */
enum mount_kind {
	MOUNT_RW, /* the host's own tree at this path, writable */
	MOUNT_RO, /* the same, read-only */
	MOUNT_PIN, /* writable self-bind: the directory cannot be renamed or removed */
	MOUNT_HIDE_DIR, /* an empty, unwritable directory (may hold mount points) */
	MOUNT_HIDE_FILE, /* a file that cannot be opened */
	MOUNT_PRIVATE, /* an empty writable directory of this sandbox's own, gone at the end */
	MOUNT_DEV, /* minimal /dev */
	MOUNT_PROC, /* /proc of the new pid namespace, kernel knobs read-only */
	MOUNT_SYS, /* /sys read-only, with the revealing parts hidden */
};

struct mount_step {
	enum mount_kind kind;
	const char *path; /* canonical */
	bool directory; /* what stands at path (file binds need a file) */
	bool make_point; /* the mount point lies in a PRIVATE or HIDE_DIR tree and is made there */
	uint32_t mode; /* MOUNT_PRIVATE: permissions */
	uint64_t dev,
		ino; /* host object seen by compile(): the executor refuses another (0 = unchecked) */
	const char *why; /* rule text and origin, for `plan` and error messages */
};

struct plan {
	/* namespaces */
	uint64_t clone_flags; /* CLONE_NEW* */
	uint32_t uid, gid;
	bool new_net;
	bool loopback; /* bring lo up */

	/* files */
	bool root_writable; /* allowWrite "/": the tree is not made read-only */
	struct mount_step *mounts;
	size_t n_mounts;
	const char *cwd;

	/* Landlock: directories and files that may be written to (everything else is refused) */
	const char **landlock_write;
	size_t n_landlock_write;
	bool landlock; /* required; the executor fails when the kernel has none */

	/* command */
	char **env;
	const char *hostname;
};

/* Facts about the caller that compile() needs; tests set them by hand. */
struct plan_facts {
	uint32_t uid, gid;
	const char *tty; /* path of the caller's terminal, NULL = none */
	char *const *environ_in;
	bool landlock; /* the kernel has Landlock */
};

/* Pure. Fails when a rule cannot be enforced. */
int plan_compile(struct arena *a, const struct policy *p, const struct plan_facts *facts,
		 const struct view *view, const struct plan **ret, struct error *e) NODISCARD;

void plan_print(const struct plan *plan, struct buf *out);
void plan_print_json(const struct plan *plan, struct buf *out);
