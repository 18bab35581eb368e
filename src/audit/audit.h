/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The audit log, for those who write to it: one JSON object per line, each with the hash of
 * the line before. Any number of processes write to one log at a time.
 *
 *   struct audit *log;
 *   struct audit_record r;
 *
 *   audit_open(&config, &log, &e);
 *   audit_begin(log, &r, "mcp-call", run_id);
 *   json_kstring(&r.json, "toolName", name);      any number of fields
 *   audit_commit(log, &r, &e);                    in the log, or -errno and nothing of it
 *
 * A record that could not be written is counted, beyond the end of the process where that is
 * possible; the next one that can be, by whichever process, is preceded by a record that
 * says so. Whoever must not go on without a log (MCP) stops at the first
 * error; `ambit run` warns once.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/json.h"
#include "policy/policy.h"

#define AUDIT_RECORD_MAX ((size_t)64 << 10) /* bytes of one line; longer ones are cut to a stub */
#define AUDIT_RUN_ID_LEN 12

struct audit;

struct audit_config {
	const char *path; /* absolute */
	const char *state_dir; /* what ambit remembers besides; NULL = nothing */
	uint64_t max_bytes; /* a file that is larger is put aside; 0 = the default */
	unsigned max_files; /* kept besides the present one; 0 = the default */
	bool redact;
};

/* What the policy says about it. false: there is to be no log (audit.path none). */
bool audit_config_of(const struct policy *p, struct audit_config *ret);

/*
 * Open the log, making the directory (0700) and the files (0600) where they are missing. -errno
 * when it is not a place that only this user can write.
 */
int audit_open(const struct audit_config *config, struct audit **ret, struct error *e) NODISCARD;
void audit_close(struct audit *log); /* NULL is fine */
/*
 * For those who go on without a log: where it cannot be opened, one whose every record fails with
 * that error and is counted as lost.
 */
struct audit *audit_open_or_lose(const struct audit_config *config);
/*
 * The same for a policy; NULL where there is to be no log. The directory of ambit's own records is
 * made too, so that it can be hidden from the command.
 */
struct audit *audit_open_for(const struct policy *p);

static inline void audit_close_p(struct audit **log)
{
	audit_close(*log);
}
#define _cleanup_audit_ __attribute__((cleanup(audit_close_p)))

/* A name for all records of one run: AUDIT_RUN_ID_LEN lower-case digits and letters. */
void audit_new_run(char ret[AUDIT_RUN_ID_LEN + 1]);

/* A record under construction. */
struct audit_record {
	struct buf text;
	struct json json; /* inside the object: add fields with json_k... */
	const char *event; /* as given */
	const char *run; /* as given; NULL = of no run */
};

/* log may be NULL: then everything goes nowhere and audit_commit() is 0. */
void audit_begin(struct audit *log, struct audit_record *r, const char *event, const char *run);
int audit_commit(struct audit *log, struct audit_record *r, struct error *e) NODISCARD;

/*
 * Fields whose text may hold secrets: redacted, if the log is, and cut at a bound. `argv` as a
 * list, `json` (any JSON text, e.g. the arguments of a call) as JSON.
 */
void audit_put_text(const struct audit *log, struct audit_record *r, const char *key,
		    const char *text);
void audit_put_argv(const struct audit *log, struct audit_record *r, const char *key,
		    char *const *argv);
void audit_put_json(const struct audit *log, struct audit_record *r, const char *key,
		    const char *json, size_t len);

/* One record per change of what is allowed: `ambit trust`, --ask, --control-fd. */
struct audit_policy_change {
	const char *run; /* NULL = none */
	const char *by; /* "trust", "ask", "control-fd" */
	const char *action; /* "allow", "deny", "trust", ... */
	const char *setting; /* "network.allowedDomains"; NULL = leave out */
	const char *value; /* redacted; NULL = leave out */
	const char *scope; /* "once", "run", "always"; NULL = leave out */
};
int audit_policy_change(struct audit *log, const struct audit_policy_change *c, struct error *e)
	NODISCARD;

/* One record per MCP tool call. Texts may be NULL: left out, except result. */
struct audit_mcp_call {
	const char *run;
	const char *request_id, *server_name, *tool_name;
	const char *arguments; /* JSON text */
	size_t arguments_len;
	const char *policy_decision; /* "allow", "deny", "escalate" */
	const char *policy_rule, *policy_reason;
	const char *escalation_result; /* "approved", "denied" */
	const char *result; /* "success", "denied", "error" */
	const char *error;
	uint64_t duration_ms;
	bool sandboxed;
};
int audit_mcp_call(struct audit *log, const struct audit_mcp_call *c, struct error *e) NODISCARD;
