/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One more entry for a list in a settings file, or one value, with everything else left as it is:
 * comments, order, layout, JSON or YAML.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"

/* "network", "allowedDomains", "github.com" */
struct amendment {
	const char *group, *list, *entry;
	const char *comment; /* behind the entry, which ends its line then; NULL = none */
	bool number; /* the entry is written without quotes */
};

/* Pure: the new text is appended to out. */
int amend_text(const char *name, const char *text, size_t len, const struct amendment *what,
	       struct buf *out, struct error *e) NODISCARD;
/* The same for a single value ("limits", "memory", "512m"), which replaces one that is there. */
int amend_value(const char *name, const char *text, size_t len, const struct amendment *what,
		struct buf *out, struct error *e) NODISCARD;
/*
 * The same to a file, which is replaced as a whole; a missing one is made, with its
 * directories. Links are followed.
 */
int amend_file(const char *path, const struct amendment *what, struct error *e) NODISCARD;
