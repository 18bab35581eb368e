/* SPDX-License-Identifier: Apache-2.0 */
/* What the broker does to git's own files (gitinstall.c), and what submodules need (modules.c). */
#pragma once

#include "supervise/broker/internal.h"

/* Rename with the git configuration check (gitinstall.c). Under the lock. */
int install_config(struct call *c, const struct place *from, const struct place *to,
		   struct guard_answer *why);
/* by our own copy, at birth */
int replace_config(struct call *c, const struct place *p, struct guard_answer *why);
/* A regular file of at most GITCONFIG_MAX as it is now; *ret_mode gets its permissions. */
int git_read_regular(int dirfd, const char *name, char **ret, size_t *ret_len, mode_t *ret_mode);
/* What the .git of a checkout says: the directory that it leads to, open, or -1. */
int git_open_pointed(int checkout);

/* Is a submodule's checkout to lie at this place, or below (modules.c)? Then no link may. */
bool modules_need_place(const struct call *c, const struct place *p);
/* May a directory be renamed so, for all that submodules say of their checkouts: 0, or -EXDEV. */
int modules_check_move(const struct call *c, const struct place *from, const struct place *to);

/* A descriptor of ours for the command to write to in vain. */
int give_commondir(struct call *c, const struct place *p, mode_t mode);
