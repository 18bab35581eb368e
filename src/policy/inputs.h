/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From options, environment and the places of the machine to the inputs of
 * policy_load(). This is the only file that knows where settings live.
 */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "base/path.h"
#include "policy/policy.h"

/* not to be moved by any variable or option */
#define INPUTS_MANAGED_DIR "/etc/ambit"
#ifdef __APPLE__
#define INPUTS_CLAUDE_MANAGED_DIR "/Library/Application Support/ClaudeCode"
#else
#define INPUTS_CLAUDE_MANAGED_DIR "/etc/claude-code"
#endif

/* The variable's value; NULL when it is unset or empty. */
const char *inputs_variable(char *const *environ_in, const char *name);

/* The caller's directory as it calls it ($PWD) when that is true, else as the kernel does. */
int inputs_working_directory(struct arena *a, char *const *environ_in, const char **ret,
			     struct error *e) NODISCARD;

/*
 * A file named relative to the caller's directory, absolute. Not cleaned: ".."
 * stays the kernel's, and /dev/fd/63 of a shell's <(...) stays what it is.
 */
int inputs_caller_path(struct arena *a, const char *path, const char **ret, struct error *e)
	NODISCARD;

/* $HOME, or the home directory that passwd (text of /etc/passwd) has for uid. NULL = unknown. */
const char *inputs_home(struct arena *a, const char *home_variable, const char *passwd,
			unsigned uid);

/*
 * Whose settings count in a canonical directory. Up to `own` they are the project's: the top of the
 * git work tree, or (without one) the last directory below the home. A command can make a .git, so
 * that is not the end: up to `top`, the last below the home or the outermost work tree, as far as
 * directories are the caller's own, what is found can still narrow.
 */
struct project_span {
	const char *own, *top;
};
struct project_span inputs_project_span(struct arena *a, const char *dir, const char *home);
/*
 * The project's settings file: in dir, or in the nearest parent up to span.own; NULL = none.
 * ret_outer: the others, which may only narrow, the outermost first.
 */
int inputs_project_files(struct arena *a, const char *dir, struct project_span span,
			 const char **ret, const char ***ret_outer, size_t *ret_n_outer,
			 struct error *e) NODISCARD;

/* Where `ambit trust` keeps its records. */
const char *inputs_trust_store(struct arena *a, char *const *environ_in, const char *home);

/* This program's own file, absolute. */
int inputs_self(struct arena *a, const char **ret, struct error *e) NODISCARD;

/* A helper program that belongs to this one: build tree or relocated install. */
const char *inputs_helper(struct arena *a, const char *name);

/* An executable file of this name in an absolute directory of PATH; NULL = none. */
char *inputs_find_program(struct arena *a, char *const *environ_in, const char *name);

/* What the caller wants besides; all may be empty. */
struct inputs_request {
	const char *program; /* ambit's own file, absolute; NULL = this process runs it */
	const char *settings; /* this file instead of the user's and the project's */
	bool machine_only; /* of files the managed ones, no variables: the caller has its own */
	const char *chdir; /* the directory to run in */
	const char *chdir_by; /* who says so, for messages; NULL = --chdir */
	bool live_network;
	const struct setting_text *options;
	size_t n_options;
};

/* Everything. -ENOENT and the like name the place. */
int inputs_gather(struct arena *a, const struct inputs_request *o, char *const *environ_in,
		  struct policy_inputs *ret, struct error *e) NODISCARD;
