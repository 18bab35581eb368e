/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `ambit trust`: which project settings files may widen. The store is a
 * text file below $XDG_STATE_HOME/ambit (0600), a line per project: SHA-256 of
 * the settings file, a space, its canonical path. A changed file is not trusted.
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"

/* store: path of the trust file. A missing store trusts nothing. */
int trust_check(const char *store, const char *settings_file, bool *ret, struct error *e) NODISCARD;
/* Replaces the entry of this path. Written atomically; directories are created 0700. */
int trust_add(const char *store, const char *settings_file, struct error *e) NODISCARD;
