/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Path patterns: `*` (no slash), `?` (one byte, no slash), `[set]` (ranges,
 * `!` or `^` negates, no slash), `**` as a whole component (any number of
 * components, also none). A backslash takes the next byte literally. Patterns
 * and paths are absolute and clean. Matching is linear in practice: `*` and
 * `**` backtrack to the last star of their kind only.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/error.h"

/* Does the text hold pattern characters (unescaped)? */
bool pattern_is_glob(const char *text);
/* The path that a text without pattern characters names: backslashes taken away. */
char *pattern_unescape(struct arena *a, const char *text);
/* The other way: the text of a rule that means this path and no other. */
const char *pattern_escape(struct arena *a, const char *path);
/*
 * 0, or -EINVAL with the reason: unclosed or empty set, backward range, [:class:],
 * "**" inside a component, backslash at the end of one. What fails here matches nothing.
 */
int pattern_check(const char *pattern, struct error *e) NODISCARD;
/* The whole path is matched. */
bool pattern_matches(const char *pattern, const char *path);
/* The path or one of its ancestors is matched: a rule on a directory covers what is below. */
bool pattern_covers(const char *pattern, const char *path);
/*
 * Could a path strictly below `dir` match? (for expanding without visiting the
 * whole tree)
 */
bool pattern_may_match_below(const char *pattern, const char *dir);
/*
 * Length of the leading part without pattern characters, up to and without the
 * last '/' before the first one: "/a/b/ *.c" -> 4, "/a/b" -> 4, "/" and "/ *" -> 1.
 * A backslash ends it too: the part is a path as it stands.
 */
size_t pattern_fixed_len(const char *pattern);
