/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The options that would allow what was denied, for the report of a run and for `ambit explain`:
 * the words that work, taken as they are. NULL where none would, or where the one that would is
 * too much to give away: the whole home, the root.
 *
 * Asked outside of the sandbox, with the caller's rights.
 */
#pragma once

#include "base/arena.h"
#include "policy/policy.h"

enum hint_deed {
	HINT_WRITE, /* a file is made or changed */
	HINT_MAKE_DIRECTORY,
	HINT_NAME, /* a name goes or changes: removed, renamed */
	HINT_MODE, /* mode, owner, times */
};

/* "--allow-write PLACE"; path is canonical, but need not exist. */
const char *hint_write(struct arena *a, const struct policy *p, const char *path,
		       enum hint_deed deed);
/* A protected name, or pattern. */
const char *hint_unprotect(struct arena *a, const struct policy *p, const char *pattern);
/* A git configuration, of which the broker lets harmless keys pass anyway. */
const char *hint_git_config(const struct policy *p);
