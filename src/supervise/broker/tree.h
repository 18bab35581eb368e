/* SPDX-License-Identifier: Apache-2.0 */
/* What lies in a directory, all of it: walked without following links, and not without end. */
#pragma once

#include "base/macros.h"

enum tree_next { TREE_GO_ON, TREE_SKIP /* what lies in it */, TREE_STOP };

/* One entry: its name in an open directory, the path it is known by, its DT_* type. */
struct tree_entry {
	int dirfd;
	const char *name;
	const char *path;
	unsigned char type;
};

typedef enum tree_next tree_visit(void *ctx, const struct tree_entry *e);

/*
 * Visits everything in dirfd/name, which is called `path`. 0 when all was seen, 1 when the visitor
 * stopped, -errno when something could not be looked at, or was too much.
 */
int tree_walk(int dirfd, const char *name, const char *path, tree_visit *visit, void *ctx)
	NODISCARD;
