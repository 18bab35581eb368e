/* SPDX-License-Identifier: Apache-2.0 */
/* Directories below the home directory that many programs share, each with a place of its own. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

extern const char *const shared_places[]; /* ".cache", ".local/share": NULL at the end */

/* Is it one of them, or above one and below home? Programs make these when they need them. */
bool place_is_shared(const char *home, const char *dir);
