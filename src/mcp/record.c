/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two lines per call: before anything is run, that it will be, and afterwards what became of it.
 * So nothing runs that the log does not know of, however the server ends.
 */
#include <string.h>

#include "audit/audit.h"
#include "base/sys.h"
#include "mcp/server.h"

static const char *request_id(struct call *c)
{
	return arena_strndup(c->a, c->request.id.text, c->request.id.len);
}

int record_start(struct server *s, struct call *c, struct error *e)
{
	struct audit_record r;

	audit_begin(s->req->audit, &r, "mcp-start", NULL);
	json_kstring(&r.json, "requestId", request_id(c));
	json_kstring(&r.json, "serverName", "ambit");
	json_kstring(&r.json, "toolName", c->tool->name);
	json_kstring(&r.json, "cwd", c->cwd);
	json_kbool(&r.json, "sandboxed", !s->unsandboxed);
	return audit_commit(s->req->audit, &r, e);
}

static bool was_blocked(const struct call *c)
{
	for (size_t i = 0; i < c->next_run; i++) {
		if (c->runs[i]->report.n_denied)
			return true;
	}
	return false;
}

int record_end(struct server *s, struct call *c, const char *error, struct error *e)
{
	bool blocked = was_blocked(c);
	struct audit_mcp_call line = {
		.run = c->tool->runs && c->next_run && *c->runs[0]->result.run
			       ? c->runs[0]->result.run
			       : NULL,
		.request_id = request_id(c),
		.server_name = "ambit",
		.tool_name = c->tool->name,
		.arguments = c->raw.text ? c->raw.text : "{}",
		.arguments_len = c->raw.text ? c->raw.len : strlen("{}"),
		.policy_decision = blocked || c->refused ? "deny" : "allow",
		.policy_reason = c->refused ? c->refused
				 : blocked  ? "see the violations"
					    : NULL,
		.result = c->refused           ? "denied"
			  : error || c->failed ? "error"
					       : "success",
		.error = error,
		.duration_ms = sys_now_ms() - c->started_ms,
		.sandboxed = !s->unsandboxed,
	};

	return audit_mcp_call(s->req->audit, &line, e);
}
