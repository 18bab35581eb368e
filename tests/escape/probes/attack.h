/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Try the operations (NULL-terminated names, "all" for every one) on an existing file;
 * prints "OP<TAB>open|denied<TAB>detail" lines.
 */
int attack_path(const char *scratch, const char *path, char *const *ops);

/* Flip `name` between two directories and write through it, for so many milliseconds. */
int attack_dial(const char *path, const char *what, const char *ms);
int attack_swap(const char *name, const char *good, const char *bad, const char *ms);

/* Try to make every name (NULL-terminated) in BASE/WAY/INDEX, in every way; says nothing. */
int attack_make(const char *base, char *const *names);
