/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One more entry for a list in a settings file, with everything else left as it is: comments,
 * order, layout, JSON or YAML.
 */
#pragma once

#include <stddef.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"

/* "network", "allowedDomains", "github.com". Pure: the new text is appended to out. */
struct amendment {
	const char *group, *list, *entry;
};

int amend_text(const char *name, const char *text, size_t len, const struct amendment *what,
	       struct buf *out, struct error *e) NODISCARD;
/*
 * The same to a file, which is replaced as a whole; a missing one is made, with its
 * directories. Links are followed.
 */
int amend_file(const char *path, const struct amendment *what, struct error *e) NODISCARD;
