/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The arguments of the tools: one table of fields, from which come the schema that clients see,
 * the reading of a call and its errors.
 *
 * Models and their clients write "5000" for 5000, "true" for true, a list as a string that
 * holds JSON, one word for a list of one. All of that is understood. What is not a field
 * is an error: a misspelt `readOnly` must not be a run that writes.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/json.h"
#include "base/json_read.h"
#include "mcp/language.h"

#define ARGUMENTS_COMMANDS_MAX 64
#define ARGUMENTS_QUERIES_MAX 16
#define ARGUMENTS_WORDS_MAX 256 /* args, env, files */
#define ARGUMENTS_CONCURRENCY_MAX 8
#define ARGUMENTS_TIMEOUT_MAX_MS ((uint64_t)24 * 3600 * 1000)
#define ARGUMENTS_WAIT_MAX_MS ((uint64_t)300 * 1000)

struct words {
	char **v; /* NULL-terminated once there is one */
	size_t n;
};

struct named_command { /* one of batch_execute */
	const char *label, *code;
	const struct language *language;
};

struct arguments {
	const struct language *language;
	const char *code, *path, *cwd, *intent, *run, *stream, *signal, *scope, *encoding;
	const char *input; /* stdin; NULL = none */
	size_t input_len;
	struct words args, env, queries;
	const char *files; /* JSON: [{"path":...,"content":...}, ...]; NULL = none */
	struct named_command *commands;
	size_t n_commands;
	uint64_t timeout_ms, wait_ms, offset, concurrency; /* timeout 0 = none */
	bool background, no_network, read_only, stop_on_error;
};

/* What a tool takes; the bits of struct field in arguments.c. */
enum argument_set {
	TAKES_EXECUTE = 1,
	TAKES_EXECUTE_FILE = 2,
	TAKES_BATCH = 4,
	TAKES_OUTPUT = 8,
	TAKES_KILL = 16,
};

/* JSON Schema of the arguments, in the subset that every client reads. */
void arguments_schema(struct json *j, enum argument_set set, const struct languages *l);

/* `object`: the arguments; without text = none. On failure the error is for the model. */
int arguments_read(struct arena *a, enum argument_set set, const struct json_span *object,
		   struct arguments *ret, struct error *e) NODISCARD;
