/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Is this shell command line one simple command with literal words, and which words?
 *
 * The question is asked before a command is let out of the sandbox, so the answer "yes"
 * must hold in bash, dash and zsh alike, whatever variables, aliases, functions and files
 * there are. Whatever is not known to be harmless makes the answer "no".
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"

#define SHELL_TEXT_MAX ((size_t)128 << 10)
#define SHELL_WORDS_MAX 4096

struct shell_words {
	char **v; /* as the program would get them, NULL-terminated */
	size_t n;
	/* Why it is not one simple command with literal words; NULL when it is. */
	const char *reason;
	size_t offset; /* of the byte that decided, when there is a reason */
};

/* text may hold any bytes. Pure. */
void shell_words_parse(struct arena *a, const char *text, size_t len, struct shell_words *ret);
