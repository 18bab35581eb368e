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
	bool unreadable; /* this process may neither read nor search it, now */
};

struct view {
	void (*look)(const struct view *v, struct arena *a, const char *path,
		     struct view_entry *ret);
	/* What stands at exactly this path: cheap, does not follow a final symlink. */
	enum file_kind (*kind)(const struct view *v, const char *path);
	/* Text of a small file (git pointers), NULL when unreadable. */
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
	void *ctx;
};

/* The real file system of this process. */
extern const struct view path_host_view;
/* Its `peek`: path_peek.c, or path_peek_darwin.c. */
int path_host_peek(const struct view *v, struct arena *a, const char *path,
		   const char *const **ret);
