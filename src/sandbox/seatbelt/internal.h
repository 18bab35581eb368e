/* SPDX-License-Identifier: Apache-2.0 */
/* Between seatbelt_run() and seatbelt_enter(). */
#pragma once

#include "sandbox/seatbelt/seatbelt.h"

/*
 * What comes over the pipe: a struct error whose exit_code is SEATBELT_ENTERED once the sandbox
 * holds, and another if the command could not be executed then. Its end, without any, means that
 * sandbox-exec failed.
 */
#define SEATBELT_ENTERED (-1)
#define SEATBELT_FAILED 125
