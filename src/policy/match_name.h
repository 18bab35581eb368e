/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names, as the least exact of file systems compares them. Whether a directory folds case
 * is not asked: a name that some file system would take for a protected one counts as that
 * one everywhere. So ".ENVRC" is ".envrc", and so is what differs only in invisible
 * characters, or in letters that fold to plain ones.
 *
 * A pattern is a sequence of components; "*" stands for exactly one. It covers what it names
 * and everything below.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"

bool name_is(const char *name, const char *wanted);
bool name_is_n(const char *name, size_t len, const char *wanted, size_t wanted_len);

/* path_within() of base/path.h, with names compared as here. */
bool name_path_within(const char *path, const char *dir);

/*
 * Where a pattern lies on a path: the number of components before its first one, or -1 when
 * it does not cover the path. It must end deeper than `top` components.
 */
int name_pattern_covers(const char *pattern, const char *path, unsigned top);
/* The path ends in the first components of a longer pattern (".config/systemd"): the same. */
int name_pattern_begun(const char *pattern, const char *path);

/*
 * Which of many patterns lie on a path, without looking at each. Of most paths that is none.
 */
struct name_index;

struct name_index *name_index_new(struct arena *a);
/* Patterns get the numbers 0, 1, 2 ... in the order in which they are added. */
void name_index_add(struct name_index *index, const char *pattern);
/* The number of the next pattern from `from` on that covers `path` or is begun by it, or -1. */
int name_index_next(const struct name_index *index, const char *path, int from);
