/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What ambit-init has to know: the part of a plan and of its command that is carried out after
 * the mounts, as bytes. Both sides are of one build and one machine, so numbers are as the machine
 * has them; a version and a length for everything keep a reader of another build from
 * guessing.
 */
#pragma once

#include <stddef.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "sandbox/backend.h"
#include "sandbox/plan.h"

#define INNER_MAX ((size_t)32 << 20) /* arguments, environment and rules together */

struct inner {
	struct plan plan; /* mounts have kind, path, directory, dev and ino only */
	struct sandbox_command cmd; /* limits points to the next, or is NULL; no descriptors */
	struct sandbox_limits limits;
	bool limited;
	bool has_tty, has_group; /* the descriptors beside it */
};

void inner_pack(const struct plan *plan, const struct sandbox_command *cmd, struct buf *out);
/* Pure; what *ret points to lives in the arena. On failure *ret is unchanged. */
int inner_unpack(struct arena *a, const void *data, size_t len, struct inner **ret, struct error *e)
	NODISCARD;
