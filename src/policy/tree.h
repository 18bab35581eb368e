/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A settings file as a tree in which every node knows its place in the text.
 * JSON (with comments) and YAML come out alike.
 */
#pragma once

#include <stddef.h>

#include "base/arena.h"
#include "base/error.h"

#define TREE_TEXT_MAX ((size_t)8 << 20)
#define TREE_DEPTH_MAX 16
#define TREE_KEYS_MAX 4096 /* of one mapping; looked through one by one for duplicates */

enum node_kind {
	NODE_NULL, /* nothing, or the plain word null */
	NODE_BOOL, /* plain true, false */
	NODE_NUMBER, /* plain decimal number */
	NODE_STRING, /* everything in quotes, and plain words */
	NODE_TEXT, /* a word of the command line: whatever the setting takes it for */
	NODE_LIST,
	NODE_MAP,
};

struct node {
	enum node_kind kind;
	unsigned line, column; /* from 1; 0 = not from a file */
	const char *text; /* of a scalar */
	const char *key; /* when it stands in a mapping */
	unsigned key_line, key_column;
	struct node *v; /* elements, or values in the order of the file */
	size_t n;
};

/*
 * name is for messages: "NAME:LINE:COLUMN: what". The text may hold any bytes.
 * The root is always a mapping; an empty file is an empty one.
 */
int tree_parse(struct arena *a, const char *name, const char *text, size_t len,
	       const struct node **ret, struct error *e) NODISCARD;

/* The same for a text with so many lines before it, which are counted. */
int tree_parse_part(struct arena *a, const char *name, const char *text, size_t len,
		    size_t lines_before, const struct node **ret, struct error *e) NODISCARD;

/* The value of a key, or NULL. */
const struct node *tree_get(const struct node *map, const char *key);
