/* SPDX-License-Identifier: Apache-2.0 */
/* Records that are the same whoever writes them. */
#include "audit/audit.h"

static void put_optional(const struct audit *log, struct audit_record *r, const char *key,
			 const char *text)
{
	if (text)
		audit_put_text(log, r, key, text);
}

int audit_policy_change(struct audit *log, const struct audit_policy_change *c, struct error *e)
{
	struct audit_record r;

	audit_begin(log, &r, "policy-change", c->run);
	json_kstring(&r.json, "by", c->by);
	json_kstring(&r.json, "action", c->action);
	put_optional(log, &r, "setting", c->setting);
	put_optional(log, &r, "value", c->value);
	put_optional(log, &r, "scope", c->scope);
	return audit_commit(log, &r, e);
}

int audit_mcp_call(struct audit *log, const struct audit_mcp_call *c, struct error *e)
{
	struct audit_record r;

	audit_begin(log, &r, "mcp-call", c->run);
	put_optional(log, &r, "requestId", c->request_id);
	put_optional(log, &r, "serverName", c->server_name);
	put_optional(log, &r, "toolName", c->tool_name);
	audit_put_json(log, &r, "arguments", c->arguments, c->arguments_len);
	if (c->policy_decision) {
		json_key(&r.json, "policyDecision");
		json_begin_object(&r.json);
		json_kstring(&r.json, "status", c->policy_decision);
		put_optional(log, &r, "rule", c->policy_rule);
		put_optional(log, &r, "reason", c->policy_reason);
		json_end_object(&r.json);
	}
	put_optional(log, &r, "escalationResult", c->escalation_result);
	json_key(&r.json, "result");
	json_begin_object(&r.json);
	json_kstring(&r.json, "status", c->result ? c->result : "unknown");
	put_optional(log, &r, "error", c->error);
	json_end_object(&r.json);
	json_kint(&r.json, "durationMs", (int64_t)c->duration_ms);
	json_kbool(&r.json, "sandboxed", c->sandboxed);
	return audit_commit(log, &r, e);
}
