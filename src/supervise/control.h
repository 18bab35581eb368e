/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The control descriptor: lines from whoever started the run, each a whole settings
 * file, of which the network lists are taken while the command runs (policy_load_live()).
 */
#pragma once

#include <stddef.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "policy/policy.h"

struct control {
	int number; /* as the caller knows it */
	int fd; /* poll this for input; -1 = there will be no more lines */
	const struct policy_inputs *inputs; /* of `start`; both are set by the owner */
	const struct policy *start;
	struct buf text; /* read, and not yet a whole line */
	size_t scanned; /* of it, without a line's end */
	size_t lines; /* that came before it */
	bool skipping; /* the rest of a line that was too long */
	struct arena *now, *before; /* of the last two policies that were given out */
};

/*
 * The descriptor must be open for reading and not one of the standard three. It is made
 * close-on-exec. Call it before anything else is opened: a number that the caller did not
 * open must not come to mean a file of ours.
 */
int control_open(struct control *c, int fd, struct error *e) NODISCARD;
/*
 * Never waits. 1: a line was accepted, *ret is the policy from now on, valid until the second
 * accepted line after it. 0: nothing (more) for now. -errno: a line was refused, or the
 * descriptor failed; e says why, and nothing has changed.
 */
int control_next(struct control *c, const struct policy **ret, struct error *e) NODISCARD;
void control_close(struct control *c);
