/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One program run once, and its output, kept for as long as there is room. A call of `execute`
 * has one, a batch has several, a background job is one that outlived its call.
 */
#pragma once

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "mcp/spool.h"
#include "mcp/unboxed.h"
#include "supervise/session.h"

#define RUN_ID_MAX 24
#define RUN_FDS 3 /* to poll for one run, at most */
#define RUN_OUTPUT_DEFAULT ((uint64_t)100 << 20)

struct server;

enum run_state { RUN_NEW, RUN_RUNNING, RUN_ENDED };

/* Why it did not end by itself. */
enum run_stop {
	RUN_STOP_NONE,
	RUN_STOP_TIMEOUT,
	RUN_STOP_OUTPUT,
	RUN_STOP_CANCEL,
	RUN_STOP_KILL, /* job_kill */
};

struct run {
	struct run *next; /* of the server's, newest first */
	char id[RUN_ID_MAX];
	struct arena *a; /* what is kept */
	struct arena *work; /* what is needed while it runs */
	struct arena *kept; /* the same, of a sandbox that stood ready; NULL = it did not */
	const char *label, *language;
	const char *code; /* until it has ended; NULL = none */
	bool job; /* nobody waits for it */
	unsigned users; /* calls that still look at it: not to be forgotten */

	enum run_state state;
	enum run_stop stop;
	bool sandboxed;
	struct session *session;
	struct unboxed unboxed;
	struct policy policy; /* of this run: the server's, narrowed */
	const struct policy *whole; /* the server's */
	bool no_network, read_only; /* in which way the call asked for less */
	struct report report;
	int out[2]; /* read ends of stdout, stderr; -1 = at the end */
	const struct pollfd *polled; /* what the last poll() said of it; NULL = it was not asked */
	struct spool spool[2];
	uint64_t output_limit, deadline_ms; /* deadline 0 = none */
	uint64_t started_ms;
	bool lost; /* output could not be kept */
	bool cut[2]; /* a result showed only a part of it */
	struct run_result result;
	struct error failure; /* code != 0: it could not be started */
};

/* What is to be run, and in which way less than the server's policy. */
struct run_spec {
	const char *label, *language;
	char *const *argv;
	const struct plan_file *files;
	size_t n_files;
	const char *cwd; /* canonical */
	char *const *env; /* NAME=value; NULL = none */
	size_t n_env;
	bool no_network, read_only;
	const char *input; /* NULL = none */
	size_t input_len;
	uint64_t timeout_ms; /* 0 = none */
};

/* A run of this server; it gets an id and is in the list. */
struct run *run_new(struct server *s);
/*
 * Without a sandbox the files lie in a directory of the host, which is made here; with one,
 * below /run/ambit.
 */
int run_stage(struct server *s, struct run *run, const char **ret, struct error *e) NODISCARD;
/* The server's policy as the files are now, narrowed; all that is new is in `a`. */
void run_policy(const struct server *s, struct arena *a, const struct run_spec *spec,
		struct policy *ret);
/* What all requests have in common. */
void run_request(struct server *s, struct session_request *ret);
void run_take_note(void *server, const char *text);
/* With NULL for the server, everything is waited for. */
void run_free_session(struct server *s, struct session *session);
/* Failing, it is RUN_ENDED with the reason in `failure`. */
void run_start(struct server *s, struct run *run, const struct run_spec *spec);
/* Up to RUN_FDS descriptors to poll, which stay there until run_step(); how many. */
size_t run_poll(struct run *run, struct pollfd *ret);
int run_wait_ms(const struct run *run, uint64_t now);
/* Take in what is there; afterwards it may have ended. */
void run_step(struct server *s, struct run *run, uint64_t now);
/* Lets go of what ended runs have no more use for; takes longer than an answer should wait. */
void runs_tidy(struct server *s);
/* End everything inside, at once. The state changes with a later step. */
void run_stop(struct run *run, enum run_stop why);
void run_signal(struct run *run, int sig);
uint64_t run_bytes(const struct run *run);
struct run *run_find(const struct server *s, const char *id);
/* Forget the oldest ended ones while there are too many or they hold too much. */
void run_forget_old(struct server *s);
/* Kill it if it runs, and free it. */
void run_free(struct run *run);
/* "SIGSEGV" */
const char *run_signal_name(int sig);
