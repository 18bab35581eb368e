/* SPDX-License-Identifier: Apache-2.0 */
/* For ambit-init, and for its helper. */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "sandbox/plan.h"

/* Does everything that bwrap mounted stand as the plan says? */
int bwrap_check_mounts(const struct plan *plan, struct error *e) NODISCARD;
/* May this process not change its namespaces, though it was given the capabilities? */
bool bwrap_is_powerless(void);
/* What bwrap has no words for; with capabilities over the namespaces. Listeners go to `errors`. */
int bwrap_finish(const struct plan *plan, int errors, struct error *e) NODISCARD;
