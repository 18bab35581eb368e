/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One command in one sandbox, supervised without blocking: whoever owns the event loop
 * (ambit run, the MCP server) polls one descriptor and calls session_step().
 *
 *   session_start()  compiles the plan, starts the sandbox
 *   session_fd()     readable when session_step() has something to do
 *   session_wait_ms() how long at most until then, for time limits; -1 = no bound
 *   session_step()   true when everything inside is gone and what it sent has left
 *   session_end()    what became of it; kills it if it still runs
 *   session_free()   and closes what was open for it
 *
 * One that is asked for often can be set up before its command is known:
 *
 *   session_stand_by()  everything but the command
 *   session_take()      gives it the command, if the policy would still make the same sandbox
 *
 * A session touches nothing of its process: no signal handler, no terminal, no printing.
 */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "audit/audit.h"
#include "base/error.h"
#include "policy/policy.h"
#include "sandbox/plan.h"
#include "supervise/egress.h"
#include "supervise/report.h"

struct session;

/* What the owner hears of; each may be NULL. */
struct session_hooks {
	/* Before the command starts: the backend, and why this one. */
	void (*chosen)(void *ctx, const char *backend, const char *why);
	/* Before the command starts: what the user should know. */
	void (*note)(void *ctx, const char *text);
	/* The first of each denial, at once. */
	void (*denied)(void *ctx, const struct report_entry *entry);
	/*
	 * Every decision of the network: EGRESS_CONNECT; also EGRESS_LOST and EGRESS_FAILED. Denials
	 * come to `denied` too.
	 */
	void (*decision)(void *ctx, const struct egress_record *r);
	/*
	 * EGRESS_ASK, to be answered with session_answer() now or later, or EGRESS_UNASK. With
	 * NULL nobody is asked. (A shared `egress` has its own switch.)
	 */
	void (*ask)(void *ctx, const struct egress_record *r);
	/* With `learn`: VIOLATION_USED and what follows it. */
	void (*used)(void *ctx, const struct violation *v);
	/*
	 * VIOLATION_ASK: may a protected name be written to? The call waits for
	 * session_answer_write(). With NULL nobody is asked.
	 */
	void (*ask_write)(void *ctx, const struct violation *v);
	/* The command was stopped by this signal. */
	void (*stopped)(void *ctx, int sig);
	/* The audit log could not be written; told once. */
	void (*unlogged)(void *ctx, const struct error *e);
};

struct session_request {
	const struct policy *policy;
	char *const *argv; /* argv[0] is looked up on PATH of the command's environment */
	char *const *environ_in;
	struct report *report; /* filled in */
	struct audit *audit; /* the log; NULL = none is kept */
	const char *proxy_program; /* ambit-proxy; needed with network allowlist */
	struct egress
		*egress; /* one that several sessions share; NULL = one of its own, if needed */
	bool report_reads; /* watch opens for reading and setuid execs too */
	bool learn; /* tell what is used, too */
	bool calls_soon; /* the broker is sure to be needed: it starts while the command does */
	const struct plan_file *files; /* text files to put below /run */
	size_t n_files;
	int stdio[3]; /* the command's, each above 2; -1 = the caller's own */
	bool measure; /* learn the peaks of memory and processes though nothing limits them */
	int tty; /* terminal to give to the command's process group; -1 = none */
	const char
		*own_terminal; /* path of `tty`, a fresh one for a session of its own; NULL = not */
	sigset_t mask; /* the command's signal mask */
	const struct session_hooks *hooks;
	void *ctx;
};

/* Children of ours that are about to end after a session. */
enum session_remains {
	SESSION_INIT, /* alone in its namespaces */
	SESSION_BROKER, /* with which the mounts go */
	SESSION_GUARD,
	SESSION_VEIL, /* what was watched */
	SESSION_REMAINS_MAX_
};

struct run_result {
	int exit_code; /* what ambit exits with (CONTRACT 4) */
	int signal; /* the command died of it, else 0 */
	bool timed_out; /* the time limit ended it */
	int limit; /* enum limit that was reached first, -1 = none */
	char run[AUDIT_RUN_ID_LEN + 1]; /* its name in the audit log; "" = not in it */
	uint64_t wall_ms, cpu_ms;
	uint64_t max_rss; /* bytes, of the largest process */
	struct limits_peak peak; /* of all processes together, as far as it was measured */
	const char *means[LIMIT_MAX_]; /* by what each limit was held; NULL = not set */
};

/* Everything the request points to is used until session_free(). */
int session_start(const struct session_request *req, struct session **ret, struct error *e)
	NODISCARD;
/*
 * A sandbox that waits for its command, by the native backend only (-ENOTSUP: not for this policy, or
 * not here). argv, report, files and stdio of the request are left empty.
 */
int session_stand_by(const struct session_request *req, struct session **ret, struct error *e)
	NODISCARD;
/* POLLPRI on this: it cannot be used any more, since mounts of the host have changed. */
int session_watched(const struct session *s);
/* It has failed, or somebody has ended it. */
bool session_is_lost(const struct session *s);
/*
 * From now on it is the session of this request, and its policy is the one that is used. The policy
 * must have been looked at again (policy_look_again()): everything that the sandbox was made from is
 * compared with how it is now, down to each mount inside. -ESTALE: something has changed; -E2BIG,
 * -EAGAIN: it cannot take this command, or is not there in time. Then nothing has happened.
 */
int session_take(struct session *s, const struct session_request *req) NODISCARD;
int session_fd(const struct session *s);
int session_wait_ms(const struct session *s);
bool session_step(struct session *s);
/* To the command, or to its process group. */
void session_signal(struct session *s, int sig, bool group);
/* Other network lists from now on (policy_load_live()); p is used until session_free(). */
int session_change_network(struct session *s, const struct policy *p, struct error *e) NODISCARD;
void session_answer(struct session *s, uint32_t id, enum egress_answer answer);
/*
 * Before the owner stops itself: while nobody looks at the limits, nothing may run. True when the
 * `stopped` hook will be called again, with this signal, as soon as everything inside has
 * stopped; false when there is nothing to wait for. SIGCONT by session_signal() goes to all then.
 */
bool session_freeze(struct session *s, int sig);
/*
 * For an owner who waits for something else, as often as session_wait_ms() says: only the limits
 * are looked at. False when one was reached, or everything inside is gone.
 */
bool session_hold(struct session *s);
void session_answer_write(struct session *s, uint32_t id, enum violation_answer answer);
/* For the audit log: what is allowed was changed beyond this run. */
void session_note_change(struct session *s, const struct audit_policy_change *c);
/* Everything inside, at once. */
void session_kill(struct session *s);
/* The owner found that a limit is reached which only he can see (output): tells it, ends all. */
void session_reach(struct session *s, enum limit which);
int session_limit(const struct session *s); /* enum limit that was reached, -1 = none */
const char *session_name(const struct session *s); /* of the run, as the logs have it */
/* pid of init on the host */
pid_t session_pid(const struct session *s);
/*
 * 0 when the command was started (whatever became of it). Otherwise nothing was run;
 * e->exit_code says how ambit exits (125, 126 or 127).
 */
int session_end(struct session *s, struct run_result *ret, struct error *e);
/*
 * Whoever lives longer than the session waits for those that remain by their ids, later (0 = none);
 * with NULL they are waited for here.
 */
void session_free(struct session *s, pid_t ret_remains[SESSION_REMAINS_MAX_]);
/* After session_end(): would session_free() only do what the end of this process does? */
bool session_goes_with_us(const struct session *s);
