/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `ambit trust`: which project settings files may widen. The store is a
 * text file below $XDG_STATE_HOME/ambit (0600), a line per file: SHA-256 of
 * the settings file, a space, its canonical path. A changed file is not trusted.
 *
 * What is judged is text that was read already: a file that is read twice can be two.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/error.h"

/* The line for a file with this content, without its end. NULL: it is gone, or no line can name it. */
const char *trust_line(struct arena *a, const char *file, const char *text, size_t len);
/* The whole store. A missing one is empty, one that others could write is an error. */
int trust_read(struct arena *a, const char *store, const char **ret, struct error *e) NODISCARD;
/* list: what trust_read() gave, or NULL. */
bool trust_holds(const char *list, const char *line);
/* Replaces the entries of these paths. Written atomically; directories are created 0700. */
int trust_add(const char *store, const char *const *lines, size_t n, struct error *e) NODISCARD;
