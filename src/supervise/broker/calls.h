/* SPDX-License-Identifier: Apache-2.0 */
/* Between the two files of brokered calls: calls.c, and moves.c for links and renames. */
#pragma once

#include "supervise/broker/internal.h"

/*
 * Resolve the place of a name that is to be made, or leave the call alone: 0 when the guard should
 * be asked about it, ANSWER_CONTINUE when it is not guarded.
 */
int call_prepare(struct call *c, int dirfd, uint64_t address, struct place *p,
		 enum violation_kind kind);

/* A symbolic link is to lie at p: 0, or -EACCES, which is told. `text`: NULL when not looked at. */
int call_refuse_link(const struct call *c, const struct place *p, const char *text,
		     enum violation_kind kind);

/*
 * What lies at `from` is to lie at `to`: 0, or -EACCES, which is told, when a socket of the host's
 * would get to where it may be connected to; -EXDEV when nobody can tell (sockets.c).
 */
int call_refuse_socket(const struct call *c, const struct place *from, const struct place *to,
		       enum violation_kind kind);
/* The same for an open file that gets a name. */
int call_refuse_open_socket(const struct call *c, int file, const struct place *to);

/* The kernel may make a file or directory for it. */
bool call_may_make(const struct call *c);

int call_link(struct call *c, int fromfd, uint64_t from_at, int tofd, uint64_t to_at, int flags);
int call_rename(struct call *c, int fromfd, uint64_t from_at, int tofd, uint64_t to_at,
		unsigned flags);
int call_rmdir(struct call *c, int dirfd, uint64_t address);
