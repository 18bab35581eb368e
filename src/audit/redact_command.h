/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which words of a command are secrets because of the program that reads them: mysql -pX,
 * curl -u me:X, docker login -p X. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum redact_where {
	REDACT_ATTACHED = 1, /* -pX */
	REDACT_NEXT = 2, /* -p X */
	REDACT_EITHER = 3,
};

struct redact_option {
	const char *name;
	enum redact_where where;
	char after; /* the secret begins behind it: "me:X"; 0 = all of it is */
};

/* What the words so far tell of the next one. All zero at a command's beginning. */
struct redact_command {
	const struct redact_program *program;
	bool has_subcommand;
	enum { SETTING_NOT, SETTING_MAYBE, SETTING_BEGUN, SETTING_NAMED } setting;
	bool was_option; /* the last word, of this program; it is no name: -pMyPassword */
	const struct redact_option *pending; /* the option whose value comes next */
};

void redact_command_pass(struct redact_command *c, const char *word, size_t n);

/* The option of a secret that the word is, and where in it the value begins; n = not in it. */
const struct redact_option *redact_command_option(const struct redact_command *c, const char *word,
						  size_t n, size_t *ret_value);

/* "-x", "--verbose", "--level=3"; a password may begin with a dash, too. */
bool redact_looks_like_option(const char *word, size_t n);
