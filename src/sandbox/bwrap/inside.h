/* SPDX-License-Identifier: Apache-2.0 */
/* For ambit-init only. */
#pragma once

#include "base/error.h"
#include "sandbox/plan.h"

/* Does everything that bwrap mounted stand as the plan says? */
int bwrap_check_mounts(const struct plan *plan, struct error *e) NODISCARD;
/* What bwrap has no words for; with CAP_SYS_ADMIN over the namespaces. */
int bwrap_finish_mounts(struct error *e) NODISCARD;
