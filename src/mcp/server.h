/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of the server among themselves.
 *
 *   serve.c      descriptors, signals, the loop
 *   methods.c    the protocol: versions, methods, replies
 *   call.c       a tools/call from its arguments to its end
 *   result.c     what a call returns, as text and as data; result_schema.c: its schemas
 *   resources.c  outputs that were too long, by URI
 *   run.c        one program and its output
 *   ready.c      a sandbox for the next one
 */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/json_read.h"
#include "mcp/arguments.h"
#include "mcp/frame.h"
#include "mcp/language.h"
#include "mcp/rpc.h"
#include "mcp/run.h"
#include "mcp/serve.h"

#define SERVER_RUNS_MAX 32 /* at a time; further calls wait */
#define SERVER_JOBS_MAX 16
#define SERVER_CALLS_MAX 256
#define SERVER_SUBSCRIPTIONS_MAX 8
#define SERVER_NOTES_MAX 8
#define RESULT_BLOCKED_MAX 20 /* denials of a run told in words; the data has all */
#define SERVER_REPLY_MAX (FRAME_LINE_MAX - 4096)

enum log_severity {
	SEVERITY_DEBUG,
	SEVERITY_INFO,
	SEVERITY_NOTICE,
	SEVERITY_WARNING,
	SEVERITY_ERROR,
	SEVERITY_CRITICAL,
	SEVERITY_ALERT,
	SEVERITY_EMERGENCY,
	SEVERITY_NONE, /* nobody asked for messages */
};

/* Replies to the requests of one JSON array, until all are there (2025-03-26). */
struct batch {
	struct buf text;
	unsigned open; /* replies to come, and one while the array is being read */
	unsigned count;
};

/* What a reply depends on. */
struct request {
	struct json_span id;
	bool modern; /* 2026-07-28: stateless */
	bool links; /* the client knows resource_link */
	struct json_span token; /* for progress; without text = none wanted */
	enum log_severity log; /* the least severe message wanted */
	struct batch *batch; /* NULL = replied to by itself */
};

struct subscription {
	char id[RPC_ID_MAX + 1]; /* as text; empty = free */
};

struct tool;

/* One tools/call on its way. */
struct call {
	struct call *next;
	struct arena *a;
	struct request request; /* spans in `a` */
	const struct tool *tool;
	struct json_span raw; /* its arguments, for the log; in `a` */
	struct arguments args;
	const char *cwd;
	struct run **runs; /* one per command; NULL = not started */
	size_t n_runs, next_run;
	uint64_t started_ms, progress_ms; /* when the next progress is due */
	uint64_t reply_ms; /* background, job_output: the latest time for the reply; 0 = none */
	uint64_t seen_bytes;
	bool started, stopped; /* stopped: nothing more is started */
	bool failed; /* isError */
	const char *refused; /* why nothing was run; NULL = it was */
};

/* A sandbox for a call that has not come yet. */
struct ready {
	struct session *session; /* NULL = there is none */
	struct arena *work; /* its policy */
	uint64_t until_ms;
	bool wanted; /* there was a call that could have used one */
	bool off; /* none can be made here */
	unsigned stale; /* that could not be used, in a row */
	uint64_t pause_ms; /* none is made until then */
};

struct server {
	const struct mcp_serve *req;
	struct arena *a;
	sigset_t command_mask;
	struct frame_in in;
	struct frame_out out;
	bool modern; /* a modern request was seen, and no initialize */
	bool initialized;
	unsigned version; /* index into the legacy versions */
	enum log_severity log;
	struct languages languages;
	struct run *asking_sandbox; /* whether there can be one is not known until it has ended */
	struct run *asking_node; /* nor are the languages, until this has */
	const char *unsandboxed; /* why nothing is confined; NULL = it is */
	const char *notes[SERVER_NOTES_MAX]; /* what the sandbox does not hold here */
	size_t n_notes;
	struct egress *egress; /* one proxy for all; NULL = none is needed */
	struct ready ready;
	struct run *runs;
	uint64_t last_run;
	struct call *calls; /* oldest first */
	size_t n_calls;
	struct subscription subscriptions[SERVER_SUBSCRIPTIONS_MAX];
	struct waiting_list *lists; /* tools/list that wait for the languages */
	pid_t remains[16 * SESSION_REMAINS_MAX_]; /* children that are leaving */
};

/* serve.c */
size_t server_running(const struct server *s);
size_t server_jobs(const struct server *s);
/* What is to be known before the first answer is known. */
bool server_is_ready(const struct server *s);
/* Something about the sandbox that the user should hear of, once. */
void server_note(struct server *s, const char *text);

/* ready.c */
/* Throw it away when it is too old or lost; make another when nobody waits for an answer. */
#define READY_FDS 2
void ready_poll(const struct server *s, struct pollfd ret[READY_FDS]);
void ready_step(struct server *s, const struct pollfd polled[READY_FDS], uint64_t now);
int ready_wait_ms(const struct server *s, uint64_t now);
/* True: the run has it, and its command runs. */
bool ready_take(struct server *s, struct run *run, const struct session_request *req);
void ready_drop(struct server *s);

/* methods.c */
/* One line of the client: one message, or an array of them. */
void server_take_line(struct server *s, const char *line, size_t len);
void server_refuse_long_line(struct server *s);
/* What waits for the languages can be answered. */
void server_answer_waiting(struct server *s);
/* Tell subscribers that this is the end. */
void server_end_subscriptions(struct server *s);

/* replies: an open object inside "result" */
struct reply {
	struct buf text;
	struct json json;
};
void reply_begin(const struct server *s, const struct request *rq, struct reply *r);
/* With how long it may be kept by the client. */
void reply_begin_cacheable(const struct server *s, const struct request *rq, struct reply *r);
void reply_send(struct server *s, const struct request *rq, struct reply *r);
void reply_error(struct server *s, const struct request *rq, int code, const char *message,
		 const char *data);
/* The client does not want a reply any more. */
void reply_drop(struct server *s, const struct request *rq);

void notify_progress(struct server *s, const struct request *rq, uint64_t progress,
		     const char *message);
void notify_log(struct server *s, const struct request *rq, enum log_severity severity,
		const char *text);

/* call.c */
void tools_list(const struct server *s, struct json *j);
void tools_call(struct server *s, const struct rpc_message *m, struct request *rq);
void calls_step(struct server *s, uint64_t now);
int calls_wait_ms(const struct server *s, uint64_t now);
void calls_cancel(struct server *s, const struct json_span *id);
void calls_free(struct server *s);

/* result.c */
struct tool {
	const char *name, *title, *description;
	enum argument_set takes;
	bool runs; /* it runs code */
	/* Begin; 0, or an error for the model. */
	int (*begin)(struct server *s, struct call *c, struct error *e);
	/* true: the result can be written. */
	bool (*step)(struct server *s, struct call *c, uint64_t now);
	void (*write)(struct server *s, struct call *c, struct buf *text, struct json *j);
	void (*schema)(struct json *j);
};
void result_run(struct server *s, struct call *c, struct buf *text, struct json *j);
void result_batch(struct server *s, struct call *c, struct buf *text, struct json *j);
void result_output(struct server *s, struct call *c, struct buf *text, struct json *j);
void result_kill(struct server *s, struct call *c, struct buf *text, struct json *j);
void result_schema_run(struct json *j);
void result_schema_batch(struct json *j);
void result_schema_output(struct json *j);
void result_schema_kill(struct json *j);
/* Did it fail, as a caller would see it? */
bool result_failed(const struct run *run);
/* exec:// links for what was left out, as content blocks. */
void result_links(const struct call *c, struct json *j);
/* "denied write to /etc/hosts — this path is outside the project directory" */
void result_describe(const struct report_entry *entry, struct buf *out);

/* record.c: the audit log. A call that cannot be recorded is not run, or its result not given. */
int record_start(struct server *s, struct call *c, struct error *e) NODISCARD;
/* error: why there is no result, or NULL. */
int record_end(struct server *s, struct call *c, const char *error, struct error *e) NODISCARD;

/* denied.c: hidden files that the program could not open, as far as it has said so. */
void denied_by_output(struct run *run);

/* resources.c */
void resources_list(struct server *s, const struct rpc_message *m, struct request *rq);
void resources_templates(struct server *s, const struct rpc_message *m, struct request *rq);
void resources_read(struct server *s, const struct rpc_message *m, struct request *rq);
