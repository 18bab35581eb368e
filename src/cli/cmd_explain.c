/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ambit explain: the policy's answer about one target, with the rule that
 * decides. A hint is given only where following it would change the answer.
 */
#include <errno.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "cli/cli.h"
#include "policy/excluded.h"
#include "policy/inputs.h"
#include "policy/schema.h"

#define JSON_INDENT 2
#define PORT_HTTPS 443 /* judged when the target names none */

struct question {
	const struct invocation *inv;
	const struct policy *policy;
	const char *access, *target; /* as asked */
};

struct answer {
	enum verdict verdict;
	const char *target; /* canonical: what was judged */
	const char *rule; /* setting that decided, NULL = none */
	const char *entry; /* the deciding entry of that list, NULL = none matched */
	const char *source;
	const char *reason;
	const char *hint; /* options that would allow it, NULL = none would */
	const char *word; /* the verdict, where it is not "allowed" or "denied" */
	bool auto_allowed; /* command: an agent need not ask */
};

static const char *hint_option(struct arena *a, const char *option, const char *target)
{
	_cleanup_buf_ struct buf b = BUF_INIT(BUF_MAX_TEXT);

	buf_printf(&b, "%s ", option);
	text_append_shell(&b, target);
	return arena_strdup(a, buf_str(&b));
}

/* The same for a path rule: * ? [ in the name mean themselves. */
static const char *hint_path(struct arena *a, const char *option, const char *path)
{
	_cleanup_buf_ struct buf b = BUF_INIT(BUF_MAX_TEXT);

	for (; *path; path++) {
		if (strchr("*?[\\", *path))
			buf_putc(&b, '\\');
		buf_putc(&b, *path);
	}
	return hint_option(a, option, buf_str(&b));
}

static const char *path_rule_key(const struct path_rule *r)
{
	static const char *const keys[][2] = {
		[ACCESS_READ] = { [VERDICT_DENY] = "filesystem.denyRead",
				  [VERDICT_ALLOW] = "filesystem.allowRead" },
		[ACCESS_WRITE] = { [VERDICT_DENY] = "filesystem.denyWrite",
				   [VERDICT_ALLOW] = "filesystem.allowWrite" },
	};

	return keys[r->access][r->verdict];
}

/* The target as the kernel would reach it from the command's directory. */
static int canonical_target(const struct question *q, const char **ret, struct error *e)
{
	struct arena *a = q->inv->arena;
	const char *path = q->target;
	struct view_entry entry;

	if (strcmp(path, "~") == 0 || text_starts(path, "~/"))
		path = arena_printf(a, "%s%s", q->policy->home, path + 1);
	path = path_absolute(a, q->policy->cwd, path);
	path_host_view.look(&path_host_view, a, path, &entry);
	if (entry.kind == FILE_UNKNOWN)
		return error_set(e, entry.err, "%s: %s", path, strerror(entry.err));
	*ret = entry.real;
	return 0;
}

static int explain_path(const struct question *q, enum access access, struct answer *ret,
			struct error *e)
{
	struct arena *a = q->inv->arena;
	const char *option = access == ACCESS_READ ? "--allow-read" : "--allow-write";
	struct decision d;
	int r = canonical_target(q, &ret->target, e);

	if (r < 0)
		return r;
	policy_decide_path(q->policy, access, ret->target, &d);
	ret->verdict = d.verdict;
	ret->reason = d.reason;
	ret->source = "default";
	if (d.protected) {
		ret->rule = "filesystem.protect";
		ret->entry = d.protected->pattern;
		ret->source = origin_text(a, &d.protected->origin);
		if (d.protected->origin.layer == LAYER_DEFAULT)
			ret->hint = hint_option(
				a, "--set",
				arena_printf(a, "filesystem.unprotect=%s", d.protected->pattern));
		return 0;
	}
	if (d.rule) {
		ret->rule = path_rule_key(d.rule);
		ret->entry = d.rule->text;
		ret->source = origin_text(a, &d.rule->origin);
		/* a deny of writing beats every allow, a managed deny is never re-opened */
		if (d.rule->locked ||
		    (d.rule->access == ACCESS_WRITE && d.rule->verdict == VERDICT_DENY))
			return 0;
	} else if (d.verdict == VERDICT_DENY) {
		ret->rule =
			access == ACCESS_READ ? "filesystem.allowRead" : "filesystem.allowWrite";
	}
	if (d.verdict == VERDICT_DENY)
		ret->hint = hint_path(a, option, ret->target);
	return 0;
}

static int explain_read(const struct question *q, struct answer *ret, struct error *e)
{
	return explain_path(q, ACCESS_READ, ret, e);
}

static int explain_write(const struct question *q, struct answer *ret, struct error *e)
{
	return explain_path(q, ACCESS_WRITE, ret, e);
}

/* host, host:port, [v6]:port, v6 */
static int parse_target(const char *text, struct host *ret, uint16_t *ret_port, struct error *e)
{
	const char *bracket = text[0] == '[' ? strchr(text, ']') : NULL;
	const char *colon = strchr(bracket ? bracket : text, ':');
	size_t len = strlen(text);
	uint64_t port = PORT_HTTPS;

	if (colon && (bracket || !strchr(colon + 1, ':'))) {
		len = (size_t)(colon - text);
		if (text_parse_u64(colon + 1, UINT16_MAX, &port) < 0 || port == 0)
			return error_set(e, EINVAL, "'%s' is not a port", colon + 1);
	}
	*ret_port = (uint16_t)port;
	return host_parse(text, len, ret, e);
}

static const struct host_rule_entry *find_host(const struct host_rules *rules,
					       const struct host *host, uint16_t port)
{
	for (size_t i = 0; i < rules->n; i++) {
		if (host_rule_matches(&rules->v[i].rule, host, port))
			return &rules->v[i];
	}
	return NULL;
}

static void answer_host_rule(struct arena *a, const struct host_rule_entry *entry,
			     enum verdict verdict, struct answer *ret)
{
	ret->verdict = verdict;
	ret->rule = verdict == VERDICT_ALLOW ? "network.allowedDomains" : "network.deniedDomains";
	ret->entry = entry->text;
	ret->source = origin_text(a, &entry->origin);
	ret->reason = entry->reason;
	if (!ret->reason)
		ret->reason = verdict == VERDICT_ALLOW ? "an allowed domain, whatever is sent there"
						       : "a denied domain";
}

static int explain_connect(const struct question *q, struct answer *ret, struct error *e)
{
	const struct policy_network *net = &q->policy->network;
	const struct origin *mode = &q->policy->value_origin[setting_find("network.mode")];
	struct arena *a = q->inv->arena;
	const struct host_rule_entry *denied, *allowed;
	struct host host;
	uint16_t port = 0;
	int r = parse_target(q->target, &host, &port, e);

	if (r < 0)
		return error_wrap(e, "connect %s", output_safe(a, q->target));
	ret->target = arena_printf(a, host.kind == HOST_IPV6 ? "[%s]:%u" : "%s:%u", host.name,
				   (unsigned)port);
	denied = find_host(&net->denied, &host, port);
	allowed = find_host(&net->allowed, &host, port);
	ret->rule = "network.mode";
	ret->source = origin_text(a, mode);
	if (net->mode == NETWORK_NONE) {
		ret->reason = "there is no network";
		ret->hint = hint_option(a,
					mode->layer == LAYER_DEFAULT
						? "--allow-domain"
						: "--network allowlist --allow-domain",
					host.name);
	} else if (denied) {
		answer_host_rule(a, denied, VERDICT_DENY, ret);
	} else if (net->mode == NETWORK_HOST) {
		ret->verdict = VERDICT_ALLOW;
		ret->reason = "the host's network, unfiltered";
	} else if (allowed) {
		answer_host_rule(a, allowed, VERDICT_ALLOW, ret);
	} else {
		ret->rule = "network.allowedDomains";
		ret->source = "default";
		ret->reason =
			net->http_proxy_port || net->socks_proxy_port
				? "not an allowed domain (the proxy of network.httpProxyPort or "
				  "socksProxyPort decides for itself)"
				: "not an allowed domain";
		ret->hint = hint_option(a, "--allow-domain", host.name);
	}
	return 0;
}

static int explain_unix(const struct question *q, struct answer *ret, struct error *e)
{
	const struct policy_network *net = &q->policy->network;
	const struct policy *p = q->policy;
	struct arena *a = q->inv->arena;
	int r = canonical_target(q, &ret->target, e);

	if (r < 0)
		return r;
	for (size_t i = 0; i < net->unix_sockets.n; i++) {
		const struct text_rule *rule = &net->unix_sockets.v[i];
		struct view_entry entry;

		path_host_view.look(&path_host_view, a, rule->text, &entry);
		if (strcmp(entry.real, ret->target) != 0)
			continue;
		ret->verdict = VERDICT_ALLOW;
		ret->rule = "network.allowUnixSockets";
		ret->entry = rule->text;
		ret->source = origin_text(a, &rule->origin);
		ret->reason = "an allowed socket";
		return 0;
	}
	ret->rule = "network.allowUnixSockets";
	ret->source = "default";
	ret->reason = "not an allowed socket";
	ret->hint = hint_option(a, "--allow-unix", ret->target);
	if (net->allow_all_unix_sockets) {
		ret->verdict = VERDICT_ALLOW;
		ret->rule = "network.allowAllUnixSockets";
		ret->source = origin_text(
			a, &p->value_origin[setting_find("network.allowAllUnixSockets")]);
		ret->reason = "every socket is allowed";
		ret->hint = NULL;
	}
	return 0;
}

static int explain_command(const struct question *q, struct answer *ret, struct error *e)
{
	const struct policy *p = q->policy;
	struct arena *a = q->inv->arena;
	struct command_answer answer;

	(void)e;
	command_decide_text(p, a, q->target, inputs_variable(q->inv->environ_in, "PATH"), &answer);
	ret->target = q->target;
	ret->verdict = answer.place == COMMAND_OUTSIDE ? VERDICT_ALLOW : VERDICT_DENY;
	ret->word = command_place_text(answer.place);
	ret->reason = answer.reason;
	ret->rule = answer.key;
	ret->source = "default";
	ret->auto_allowed = command_auto_allowed(p, &answer);
	if (!p->enabled || p->backend == BACKEND_NONE) {
		ret->rule = p->enabled ? "backend" : "enabled";
		ret->source = origin_text(a, &p->value_origin[setting_find(ret->rule)]);
		ret->verdict = VERDICT_ALLOW;
		ret->word = command_place_text(COMMAND_OUTSIDE);
		ret->reason = "there is no sandbox";
	} else if (answer.rule) {
		ret->entry = answer.rule->text;
		ret->source = origin_text(a, &answer.rule->origin);
	}
	if (answer.place == COMMAND_REFUSED && answer.argv && ret->entry)
		ret->hint = "--set allowUnsandboxedCommands=true";
	return 0;
}

static const struct {
	const char *access;
	int (*explain)(const struct question *q, struct answer *ret, struct error *e);
} questions[] = {
	{ "read", explain_read }, { "write", explain_write },     { "connect", explain_connect },
	{ "unix", explain_unix }, { "command", explain_command },
};

static const char *verdict_word(const struct answer *n)
{
	if (n->word)
		return n->word;
	return n->verdict == VERDICT_ALLOW ? "allowed" : "denied";
}

static void print_text(const struct question *q, const struct answer *n, struct buf *out)
{
	bool allowed = n->verdict == VERDICT_ALLOW;

	buf_printf(out, "%s: %s ", verdict_word(n), q->access);
	text_append_safe(out, n->target);
	buf_puts(out, " — ");
	text_append_safe(out, n->reason ? n->reason
			      : allowed ? "no rule denies it"
					: "not allowed");
	if (n->entry) {
		buf_printf(out, ": %s ", n->rule);
		text_append_safe(out, n->entry);
	}
	if (n->entry || allowed) {
		buf_puts(out, " (");
		text_append_safe(out, n->source);
		buf_putc(out, ')');
	}
	if (n->hint) {
		buf_puts(out, " (allow with: ");
		text_append_safe(out, n->hint);
		buf_putc(out, ')');
	}
	buf_putc(out, '\n');
}

static void print_json(const struct question *q, const struct answer *n, struct buf *out)
{
	struct json j = { .out = out, .indent = JSON_INDENT };

	json_begin_object(&j);
	json_kstring(&j, "verdict", verdict_word(n));
	json_kstring(&j, "access", q->access);
	json_kstring(&j, "target", n->target);
	json_kstring(&j, "rule", n->rule);
	json_kstring(&j, "entry", n->entry);
	json_kstring(&j, "source", n->source);
	json_kstring(&j, "reason", n->reason);
	json_kstring(&j, "hint", n->hint);
	if (n->word)
		json_kbool(&j, "autoAllowed", n->auto_allowed);
	json_end_object(&j);
	buf_putc(out, '\n');
}

int cmd_explain(const struct invocation *inv, int *ret_status, struct error *e)
{
	_cleanup_buf_ struct buf out = BUF_INIT(BUF_MAX_TEXT);
	struct question q = { .inv = inv };
	struct answer answer = { .verdict = VERDICT_DENY };
	size_t kind = 0;
	int r;

	if (inv->options.n_words != 2)
		return error_set(e, EINVAL, "usage: ambit explain %s", inv->command->usage);
	q.access = inv->options.words[0];
	q.target = inv->options.words[1];
	while (kind < ARRAY_LEN(questions) && strcmp(questions[kind].access, q.access) != 0)
		kind++;
	if (kind == ARRAY_LEN(questions))
		return error_set(e, EINVAL,
				 "explain: '%s' is not one of read, write, connect, unix, command",
				 output_safe(inv->arena, q.access));
	if (!*q.target)
		return error_set(e, EINVAL, "explain: the target is empty");
	r = invocation_policy(inv, NULL, &q.policy, e);
	if (r == 0)
		r = questions[kind].explain(&q, &answer, e);
	if (r < 0)
		return r;
	if (inv->options.json)
		print_json(&q, &answer, &out);
	else
		print_text(&q, &answer, &out);
	*ret_status = answer.verdict == VERDICT_ALLOW ? 0 : EXIT_DENIED;
	return output_write(&out, e);
}
