/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The languages that `execute` knows, by which programs each is run, and what is put around a
 * piece of code so that it can be run as it is: one table.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"

#define LANGUAGE_COUNT 12
#define LANGUAGE_STAGE "/run/ambit" /* where the code lies inside the sandbox */

struct language;
struct launcher;

/* A language that this machine can run. */
struct language_found {
	const struct language *language; /* NULL: not here */
	const struct launcher *launcher;
	const char *program; /* absolute */
};

struct languages {
	struct language_found v[LANGUAGE_COUNT];
	/*
	 * Without another way to run TypeScript, a new enough node: which one it is only
	 * running it tells. The program to ask, or NULL.
	 */
	const char *node_to_ask;
};

/* Look for the programs in `path` (as in $PATH; relative entries are passed over). */
void languages_find(struct arena *a, const char *path, struct languages *ret);
/* node says "v22.18.0": does it run TypeScript? Then that is found too. */
void languages_add_node(struct languages *l, const char *version);

const char *language_name(const struct language *l);
/* By name or alias ("py", "bash"); NULL: there is no such language at all. */
const struct language *language_by_name(const char *name);
/* NULL: known, but its programs are not here. */
const struct language_found *language_if_found(const struct languages *l,
					       const struct language *which);
/* What must be installed for it: "python3". */
const char *language_wants(const struct language *l);
/* The names of what was found, in the order of the table: "javascript, python, shell". */
const char *languages_list(struct arena *a, const struct languages *l);

/* One piece of code, ready to be run. */
struct language_code {
	const char *file; /* its name: "main.py" */
	const char *text; /* its content */
	bool inline_only; /* no file: the text is in argv */
	char **argv; /* NULL-terminated, before the arguments of the code */
};

struct language_source {
	const char *code;
	const char *stage; /* the directory where the file will lie */
	bool with_file; /* execute_file: FILE_CONTENT and FILE_CONTENT_PATH are wanted */
};

void language_prepare(struct arena *a, const struct language_found *l,
		      const struct language_source *source, struct language_code *ret);
