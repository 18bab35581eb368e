/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ambit mcp serve: an MCP server on two descriptors whose tools run code, each call in a
 * sandbox of its own, all under one policy that no call can widen.
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "policy/policy.h"

/* How the program calls itself inside a sandbox to write the files of a call, then to run it. */
#define MCP_UNPACK_WORD "--mcp-unpack"

struct audit;

struct mcp_serve {
	const struct policy *policy; /* policy->cwd is the project */
	char *const *environ_in;
	const char *version; /* of this program */
	const char *self; /* this program's file */
	const char *proxy_program;
	bool report_reads; /* watch every open for reading */
	const char *spool_dir; /* where long outputs are kept, without a name */
	/*
	 * Who asked for no sandbox ("AMBIT_NO_SANDBOX"); NULL = there is one. Then nothing
	 * confines what is run, and every response says so.
	 */
	const char *unsandboxed;
	struct audit *audit; /* NULL = the user wants no log */
	int in, out;
	/* What the person at the terminal should know, one line each. */
	void (*warn)(const char *text);
};

/* Until the client is gone. */
int mcp_serve(const struct mcp_serve *req, struct error *e) NODISCARD;

/* argv: the list of files, then the command to become. Exit status when that fails. */
int mcp_unpack(char *const *argv);
