/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one table of options. A row yields: the parser, `ambit help`, completion
 * (through `ambit --list-options`) and the docs check. Parsing is pure: it
 * records which options were used, in order, and looks at nothing outside argv.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/error.h"

/* Which commands take an option: a command has a set of groups. */
enum option_group {
	GROUP_GENERAL = 1 << 0, /* every command */
	GROUP_POLICY = 1 << 1, /* what shapes a run: run, policy, explain, plan, wrap, mcp */
	GROUP_SHELL = 1 << 2, /* commands that take a COMMAND */
	GROUP_JSON = 1 << 3,
	GROUP_SCHEMA = 1 << 4,
	GROUP_ATTACK = 1 << 5,
	GROUP_LOG = 1 << 6,
	GROUP_LEARN = 1 << 7,
	GROUP_RUN =
		1 << 8, /* of a run by itself, and of those who answer about it; not of a server */
};

enum option_effect {
	OPTION_SETTING, /* the setting `key` gets the argument, or `value` where there is none */
	OPTION_SET, /* KEY=VALUE */
	OPTION_TEXT, /* the argument is kept in the field at `offset` */
	OPTION_FLAG, /* the bool at `offset` becomes true */
};

struct option {
	char letter; /* 0 = none */
	const char *name; /* without the dashes */
	const char *argument; /* how help calls it ("a|b|c" = one of these words); NULL = none */
	unsigned groups;
	enum option_effect effect;
	const char *key, *value;
	size_t offset; /* into struct options */
	bool once; /* a second one would silently drop the first: refused */
	bool file; /* the argument names a file relative to the caller's directory */
	const char *help;
};

extern const struct option options_table[];
extern const size_t options_count;

struct option_use {
	const struct option *option;
	const char *value; /* NULL for a flag */
};

struct options {
	struct option_use *uses; /* in the order given */
	size_t n_uses;
	char **words; /* what is not an option, NULL-terminated */
	size_t n_words;

	const char *shell; /* -c */
	const char *settings, *chdir, *report, *log, *control_fd, *events_fd, *env_fd;
	bool json, schema, attack;
	bool quiet, verbose, debug, help;
	bool report_reads, ask;
	const char *kind, *run, *since, *until, *file; /* log */
	bool follow, violations;
	const char *out, *update; /* learn */
};

/* What options_parse() needs to know about the command. */
struct option_scope {
	const char *command; /* for messages */
	unsigned groups;
	bool words_end_options; /* the first word that is not an option starts a COMMAND */
};

/* args: what follows the command's name, NULL-terminated. */
int options_parse(struct arena *a, const struct option_scope *scope, char *const *args,
		  struct options *ret, struct error *e) NODISCARD;

/* A name near to `word` for "did you mean": near enough, else NULL. */
struct nearest {
	const char *name;
	unsigned distance;
};
void nearest_try(struct nearest *n, const char *word, const char *candidate);
