/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Paths as text, and the view of the file system through which policy and
 * plans look at it. The view is an interface so that compile() stays pure:
 * tests give it a table, the program gives it the kernel.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"

/* Absolute, lexically clean (no //, /./, trailing /; ".." resolved as text). base must be absolute. */
char *path_absolute(struct arena *a, const char *base, const char *path);
char *path_join(struct arena *a, const char *dir, const char *name);
/* The same into ret, which has room for both, a slash and a zero. */
void path_put(char *ret, const char *dir, const char *name);
/* path == dir, or path lies below dir. Both clean and absolute. */
bool path_within(const char *path, const char *dir);
/* "/" -> 0, "/a" -> 1, "/a/b" -> 2 */
unsigned path_depth(const char *path);
/* Parent before child, siblings by byte order, subtrees contiguous ('/' sorts lowest). */
int path_compare(const char *a, const char *b);

enum file_kind {
	FILE_ABSENT,
	FILE_DIRECTORY,
	FILE_REGULAR,
	FILE_OTHER, /* device, socket, fifo */
	FILE_LINK, /* symbolic link; only from view.kind(), view.look() follows them */
	FILE_UNKNOWN, /* could not be looked at: see err */
};

struct view_entry {
	enum file_kind kind;
	int err; /* errno for FILE_UNKNOWN */
	/*
	 * Canonical path: symlinks resolved. For an absent path, the canonical
	 * form of the deepest existing ancestor plus the missing rest.
	 */
	const char *real;
	uint64_t dev, ino;
	uint64_t size; /* of a regular file */
	bool unreadable; /* this process may neither read nor search it, now */
};

/* What kind of file system: those with which the kernel shows itself, and all others. */
enum mount_type {
	TYPE_FILES,
	TYPE_PROC,
	TYPE_SYSFS,
	TYPE_DEBUGFS,
	TYPE_TRACEFS,
	TYPE_SECURITYFS,
	TYPE_CONTROL, /* more of the kernel's: what is written there changes the machine */
};

/* A mount: the directory `root` of a file system is seen at `point`. */
struct view_mount {
	uint64_t device; /* the same for all mounts of a file system */
	enum mount_type type;
	const char *root, *point;
};

struct view {
	void (*look)(const struct view *v, struct arena *a, const char *path,
		     struct view_entry *ret);
	/* What stands at exactly this path: cheap, does not follow a final symlink. */
	enum file_kind (*kind)(const struct view *v, const char *path);
	/* Text of a small file, NULL when unreadable, or above VIEW_READ_MAX. */
	char *(*read)(const struct view *v, struct arena *a, const char *path);
	/*
	 * Names in a directory (without . and ..), for expanding globs. Returns the
	 * count, or -errno. Order unspecified.
	 */
	int (*list)(const struct view *v, struct arena *a, const char *path,
		    const char *const **ret);
	/*
	 * The same when it is a small directory; -E2BIG after a first look at a large one. The
	 * cost does not grow with the directory. May be NULL.
	 */
	int (*peek)(const struct view *v, struct arena *a, const char *path,
		    const char *const **ret);
	/* What the symbolic link at exactly this path says; NULL when it is none. */
	char *(*target)(const struct view *v, struct arena *a, const char *path);
	/*
	 * The directory on the way to path, or path itself, that this process may not search (read,
	 * at the end of the way) although it could change that: it is the owner. NULL = none. Asked
	 * only where something could not be looked at; if now it can, *ret_changed is true, and where
	 * the way ends is returned.
	 */
	const char *(*shut)(const struct view *v, struct arena *a, const char *path,
			    bool *ret_changed);
	/*
	 * The mounts of file systems that have several, and of those that are the kernel's own;
	 * how many. May be NULL.
	 */
	size_t (*mounts)(const struct view *v, struct arena *a, const struct view_mount **ret);
	void *ctx;
};

#define VIEW_READ_MAX ((size_t)1 << 20) /* of read() */

/* The real file system of this process. */
extern const struct view path_host_view;
/* Its `mounts`; NULL where there is one place for each file system (macOS). */
size_t path_host_mounts(const struct view *v, struct arena *a, const struct view_mount **ret);
/* Its `peek`: path_peek.c, or path_peek_darwin.c. */
int path_host_peek(const struct view *v, struct arena *a, const char *path,
		   const char *const **ret);
