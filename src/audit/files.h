/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files of a log. NAME is the present one; NAME.00000000000000000123 are those that were
 * put aside, called after their last line; NAME.head is the head, which is also what
 * writers lock, because it is never renamed.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "audit/chain.h"
#include "base/error.h"

#define FILES_NAME_MAX 256
#define FILES_PATH_MAX 4096

struct audit_files {
	int dir; /* -1 = closed */
	uid_t user; /* whose log it is: asked once, it is a system call */
	char name[FILES_NAME_MAX];
	char path[FILES_PATH_MAX]; /* as given, for messages */
	char place[FILES_PATH_MAX]; /* a second one, for what is lost (lost.h); "" = none */
};

#define AUDIT_FILES_INIT                                                                           \
	{                                                                                          \
		.dir = -1                                                                          \
	}

enum files_use { FILES_READ, FILES_WRITE };

/*
 * Open the directory; for writing it is made when it is missing. It must belong to this user (or
 * root) and be writable by nobody else. -ENOENT for reading: there is no log.
 */
int files_open(const char *path, enum files_use use, struct audit_files *ret, struct error *e)
	NODISCARD;
/* Make it, with those above it, as well as that goes. */
void files_make_directory(const char *dir);
void files_close(struct audit_files *f);

/*
 * One of the files, by its name: a regular file of this user, followed through no link. For
 * writing it is made when it is missing. -errno.
 */
int files_open_one(const struct audit_files *f, const char *name, enum files_use use,
		   uint64_t *ret_size, struct error *e) NODISCARD;
/*
 * The head of a log whose directory may not be safe: never made, only as long as it is a file of
 * this user alone. What is in it is for the caller to judge.
 */
int files_open_head_anyway(const char *path) NODISCARD;
void files_head_name(const struct audit_files *f, char ret[FILES_NAME_MAX]);
void files_old_name(const struct audit_files *f, uint64_t seq, char ret[FILES_NAME_MAX]);

#define FILES_OLD_MAX 4096 /* more are not looked at */

/* The last lines' numbers of the files that were put aside, ascending. -errno. Free with free(). */
int files_list_old(const struct audit_files *f, uint64_t **ret, size_t *ret_n) NODISCARD;

/* flock() with a bound on the waiting: -ETIMEDOUT. */
int files_lock(int fd, int operation) NODISCARD;

/*
 * The head. An empty one is that of a log that nobody has written to: its first writer fills it
 * before there is a line. *ret is set unless it is bad.
 */
enum files_head { FILES_HEAD_BAD, FILES_HEAD_EMPTY, FILES_HEAD_OK };
enum files_head files_read_head(int fd, struct chain_head *ret);
