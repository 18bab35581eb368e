/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of files that some program outside runs or follows without being asked
 * again, but that are ordinary work to write: build files, package scripts, CI.
 * They are not refused; what a run made or changed of them is told at its end.
 */
#pragma once

#include <stdbool.h>

/* Inside installed packages: as many files of all names as packages, and nobody works there. */
bool later_is_installed(const char *path);
/* Why a file of this path runs later, or NULL. */
const char *later_reason(const char *path);
