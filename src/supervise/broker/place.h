/* SPDX-License-Identifier: Apache-2.0 */
/* Paths of the command, taken apart (target.c). */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

struct broker;
struct call;

/*
 * A path of the command, taken apart: the directory that holds the last
 * component, open, with its canonical path.
 */
struct place {
	int parent; /* O_PATH */
	bool lent; /* the parent is the broker's to close: see struct recent */
	char path[PATH_MAX];
	char name[NAME_MAX + 1];
	const char *root; /* the guarded directory it lies in, NULL = not guarded */
	bool relayed; /* root is a private directory: performed, but nothing is protected */
	bool slash; /* the path ended in a slash */
};

/* The directory that the last path led to, kept open: most calls come back to it. */
struct recent {
	int parent; /* -1 = none */
	char path[PATH_MAX];
	uint64_t lent_to; /* the last call with a place that uses it */
	uint64_t since_ms; /* when the way there was last walked */
	bool direct; /* it is left to the kernel (direct.c) */
};

#define PLACE_INIT                                                                                 \
	{                                                                                          \
		.parent = -1                                                                       \
	}

#define PLACE_TEXT_MAX (PATH_MAX + NAME_MAX + 2)
#define SYMLINK_HOPS_MAX 40 /* links that are followed by hand, as many as the kernel does */

void place_done(struct place *p);
/* The thing itself, O_PATH, without following a link; -1 when it is not there. */
int place_open(const struct place *p);
/* Something has that name, be it a link that leads nowhere. */
bool place_exists(const struct place *p);
/* The whole path; ret has PLACE_TEXT_MAX bytes. */
void place_text(const struct place *p, char *ret);
#define _cleanup_place_ __attribute__((cleanup(place_done)))

/*
 * Resolve (dirfd, path) to a place. -errno as the kernel would give it, or ANSWER_CONTINUE
 * when it is better left to the kernel (".", "..", odd things in /proc). `how`: RESOLVE_*
 * of openat2(), for the way to the parent. On failure *ret is as before.
 */
int call_resolve(const struct call *c, int dirfd, const char *path, uint64_t how,
		 struct place *ret);
/* The same for a second path of the call, where the first one may have led to the same place. */
int call_resolve_second(const struct call *c, int dirfd, const char *path,
			const struct place *first, int first_dirfd, const char *first_path,
			struct place *ret);
/*
 * What to answer when that failed. A missing directory is answered here: another call may make it
 * before the kernel looks, and the command would be told that it has no right to it.
 */
int call_unresolved(int r, const char *path);
int place_resolve(const struct broker *b, int base, const char *path, uint64_t how,
		  struct place *ret);
/* Text of the symlink that p names, PATH_MAX bytes; -EINVAL when it is none. */
int place_read_link(const struct place *p, char *ret);
/* Does the directory part of a path lead to that directory, by its text? */
bool recent_leads(const struct call *c, int dirfd, const char *dir);
/* Rights on directories were changed: walk the whole way next time. */
void recent_forget(struct broker *b);
/* Where the place lies now: after waiting for a lock. */
int place_refresh(const struct broker *b, struct place *p);
/* p is, or holds, a bulk directory: the kernel's grant would move along with it. */
bool place_holds_bulk(const struct broker *b, const struct place *p);
/* A name that makes, or belongs to, a git directory. */
bool place_is_special(const struct place *p);
int fd_path(const struct broker *b, int fd, char *ret); /* canonical path of an open file */
const char *guarded_root(const struct broker *b, const char *path, bool *ret_relayed);
