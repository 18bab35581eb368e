/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records that could not be written, remembered beyond the process that lost them: how many,
 * why, and since when. The next writer puts that into the log and forgets it here.
 */
#pragma once

#include "audit/chain.h"
#include "audit/files.h"

/* more happened too: the first reason stays. */
void lost_merge(struct chain_lost *sum, const struct chain_lost *more);

/*
 * In the head, behind what it says of the log, under its lock. -errno, and the head as it was:
 * above all when it is empty or no head, in which nothing is written.
 */
int lost_add_to_head(int head, const struct chain_lost *more) NODISCARD;

/*
 * The second place, for when the head cannot be used: a file in state_dir, what ambit remembers, or
 * in the user's runtime directory where the log itself lies in state_dir. state_dir may be NULL.
 */
void lost_choose_place(const char *log, const char *state_dir, char ret[FILES_PATH_MAX]);
int lost_add_to_place(const char *place, const struct chain_lost *more) NODISCARD;
/*
 * What is there, locked until the descriptor is closed. -ENOENT, after one system call: nothing. What
 * cannot be read counts as one.
 */
int lost_open_place(const char *place, struct chain_lost *ret) NODISCARD;
/* While it is locked. */
void lost_forget_place(const char *place);
