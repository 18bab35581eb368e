/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Git's configuration files as git reads them: entries in order, nothing is judged. The
 * text is of hostile origin. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/path.h"

#define GITCONFIG_MAX VIEW_READ_MAX /* what the broker lets it grow to is read in the next run */
#define GITCONFIG_KEY_MAX 256

struct gitconfig_entry {
	const char *key; /* section[.subsection].name, section and name in lower case */
	const char *value; /* NULL for a name without "=" */
	size_t taken; /* the caller's own */
};

struct gitconfig_entries {
	struct gitconfig_entry *v;
	size_t n;
};

/* Is this section ("core.", `remote.origin.`) of interest? The others are only passed over. */
typedef bool gitconfig_wanted(const char *section);

/* 0, or -EINVAL where git would not go on; *ret has what stands before. wanted NULL = all. */
int gitconfig_parse(struct arena *a, const char *text, gitconfig_wanted *wanted,
		    struct gitconfig_entries *ret) NODISCARD;

/*
 * Is it one of the names (" url pushurl ", NULL = any) of that section? "remote.*" stands for
 * any subsection.
 */
bool gitconfig_key_is(const char *key, const char *section, const char *names);
