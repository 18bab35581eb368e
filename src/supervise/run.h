/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Run one command under a policy and wait for it: the supervisor.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "policy/policy.h"
#include "supervise/control.h"
#include "supervise/report.h"
#include "supervise/seslog.h"
#include "supervise/session.h"

struct run;

/* Who wants to know all that a command does (ambit learn). Hosts that no rule covers are allowed. */
struct run_observer {
	void (*used)(void *ctx, const struct violation *v);
	void (*decision)(void *ctx, const struct egress_record *r);
	/* Now and then while the command runs: pid of its init. */
	void (*look)(void *ctx, pid_t init);
	void (*ended)(void *ctx, const struct report *report, const struct run_result *result);
	void *ctx;
};

struct run_request {
	const struct policy *policy;
	char *const *argv; /* argv[0] is looked up on PATH of the command's environment */
	char *const *environ_in;
	struct report *report; /* filled in */
	struct audit *audit; /* the log; NULL = none is kept */
	const char *proxy_program; /* ambit-proxy; needed with network allowlist */
	bool report_reads; /* watch opens for reading and setuid execs too */
	/*
	 * When this hangs up, who wanted the run is gone: it ends. When it can be read from,
	 * `heard` is called. 0 = nobody.
	 */
	int owner;
	void (*heard)(void *ctx, struct session *s);
	/* EGRESS_ASK and EGRESS_UNASK, for session_answer(); NULL = nobody is asked. */
	void (*ask)(void *ctx, struct run *run, const struct egress_record *r);
	/* VIOLATION_ASK, for session_answer_write(); NULL = nobody is asked. */
	void (*ask_write)(void *ctx, struct run *run, const struct violation *v);
	struct control *control; /* changes of the network lists; NULL = none */
	/* Called for the first of each denial, at once; may be NULL. */
	void (*tell)(void *ctx, const struct report_entry *entry);
	/* ambit learn: what is used is told, peaks are measured; NULL = an ordinary run. */
	const struct run_observer *observer;
	/* The command's standard output, above 2; 0 = our own. */
	int out;
	struct seslog *log; /* of what is read and printed; NULL = none */
	bool last; /* this process ends soon after: what goes with it need not be given back */
	/* Called once when the audit log cannot be written; may be NULL. */
	void (*unlogged)(void *ctx, const struct error *e);
	/* Called when it starts, with the backend and why this one; may be NULL. */
	void (*chosen)(void *ctx, const char *backend, const char *why);
	/* Called before the command starts, for what the user should know; may be NULL. */
	void (*note)(void *ctx, const char *text);
	void *ctx;
};

/* For `ask`: the session to answer to. */
struct session *run_session(struct run *run);
/*
 * A question to the person at the terminal, who has it meanwhile instead of the command: the key
 * that was typed, one of `keys`, or 0. Without a terminal, or in the background, nobody is asked.
 */
char run_prompt(struct run *run, const char *question, const char *again, const char *keys);

/*
 * 0 when the command was started (whatever became of it). Otherwise nothing
 * was run; e->exit_code says how ambit exits (125, 126 or 127).
 */
int run_command(const struct run_request *req, struct run_result *ret, struct error *e) NODISCARD;
