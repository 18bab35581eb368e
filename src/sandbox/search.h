/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/error.h"

/*
 * Becomes `file`, looked up on PATH of `env`. Comes back only when that failed: e->exit_code is
 * 127 for a command that was not found, 126 for one that cannot be executed.
 */
int sandbox_exec(const char *file, char *const *argv, char *const *env, struct error *e);
