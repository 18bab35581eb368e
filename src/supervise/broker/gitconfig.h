/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which changes of a git configuration are harmless. Pure.
 *
 * Git runs programs that its configuration names, in dozens of keys and more with
 * every release, so the check is an allow-list: every entry that is new or
 * changed must be a key that only holds data. Removing entries is always fine.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/gitconfig.h"
#include "base/macros.h"

struct gitconfig_finding {
	char key[GITCONFIG_KEY_MAX]; /* canonical: section.subsection.name */
	const char *reason;
	bool url; /* where git fetches from or pushes to is new or changed */
	char worktree
		[PATH_MAX]; /* where core.worktree leads, if it is new: for the caller to look at */
};

/* Where the configuration lives, for core.worktree: both absolute and clean. */
struct gitconfig_place {
	const char *git_dir;
	const char *root; /* the writable directory around it */
};

/*
 * 0 when going from `before` (NULL = no file) to `after` is harmless, if the directory that may be
 * named in `worktree` is a checkout of this very repository; -EACCES with the first offending entry; -EINVAL when `after` is not a configuration git would read.
 */
int gitconfig_check(const char *before, const char *after, const struct gitconfig_place *place,
		    struct gitconfig_finding *ret) NODISCARD;

/*
 * Does a core.worktree mean one place, whatever stands there? Not with ".." behind a name, which
 * leads elsewhere once that name is a link; nor with a tab, of which older gits make a space.
 */
bool gitconfig_worktree_is_plain(const char *value);

/* Only data transfer, no program: http, https, ssh, git, file, scp form, a path. */
bool gitconfig_url_harmless(const char *url);
