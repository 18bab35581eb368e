/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What explain says about connections. For allowed domains it is the proxy's own decision, by the
 * same functions on the same text; what a name resolves to is judged later, when it is dialled.
 */
#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "cli/explain.h"
#include "policy/schema.h"
#include "proxy/explain.h"
#include "supervise/egress.h"

#define PORT_HTTPS 443 /* judged when the target names none */

/* host, host:port, [v6]:port, v6 */
static int parse_target(const char *text, struct host *ret, uint16_t *ret_port, struct error *e)
{
	const char *bracket = text[0] == '[' ? strchr(text, ']') : NULL;
	const char *colon = strchr(bracket ? bracket : text, ':');
	size_t len = strlen(text);
	uint64_t port = PORT_HTTPS;

	if (strstr(text, "://"))
		return error_set(e, EINVAL, "a URL: write only the host name");
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

/* As the proxy will decide it. */
static int decide(const struct policy *p, const struct host *host, uint16_t port,
		  struct explanation *ret, struct error *e)
{
	_cleanup_buf_ struct buf text = BUF_INIT(EGRESS_CONFIG_MAX);
	int r = egress_write_config(&text, p, false);

	if (r < 0)
		return error_set(e, -r, "the network lists are too long");
	return proxy_explain(buf_str(&text), text.len, host, port, ret, e);
}

static int explain_allowlist(const struct question *q, const struct host *host, uint16_t port,
			     struct answer *ret, struct error *e)
{
	const struct policy_network *net = &q->policy->network;
	const struct host_rule_entry *entry = find_host(&net->denied, host, port);
	struct arena *a = q->inv->arena;
	struct explanation v = { .allow = false };
	int r = decide(q->policy, host, port, &v, e);

	if (r < 0)
		return r;
	if (entry) {
		answer_host_rule(a, entry, VERDICT_DENY, ret);
		return 0;
	}
	entry = find_host(&net->allowed, host, port);
	if (v.allow && entry) {
		answer_host_rule(a, entry, VERDICT_ALLOW, ret);
		return 0;
	}
	ret->rule = "network.allowedDomains";
	ret->source = "default";
	ret->hint = explain_hint(a, "--allow-domain", host->name);
	if (entry) { /* by a rule that does not mean this kind of address */
		ret->reason = arena_strdup(a, v.reason);
		ret->entry = entry->text;
		ret->source = origin_text(a, &entry->origin);
	} else {
		ret->reason =
			net->http_proxy_port || net->socks_proxy_port
				? "not an allowed domain (the proxy of network.httpProxyPort or "
				  "socksProxyPort decides for itself)"
				: "not an allowed domain";
	}
	return 0;
}

static void explain_none(const struct question *q, const struct host *host, struct answer *ret)
{
	const struct origin *mode = &q->policy->value_origin[setting_find("network.mode")];

	ret->reason = "there is no network";
	ret->hint =
		explain_hint(q->inv->arena,
			     mode->layer == LAYER_DEFAULT ? "--allow-domain"
							  : "--network allowlist --allow-domain",
			     host->name);
}

/* The sandbox's own loopback: what is there of the host was asked for. */
static void explain_loopback(const struct question *q, const struct host *host, uint16_t port,
			     struct answer *ret)
{
	const struct port_rules *ports = &q->policy->network.host_ports;
	struct arena *a = q->inv->arena;
	const char *number = arena_printf(a, "%u", port);

	ret->rule = "network.allowHostPorts";
	ret->source = "default";
	ret->reason = "the sandbox has a loopback of its own, with only its own servers";
	if (find_host(&q->policy->network.allowed, host, port))
		ret->reason =
			"the sandbox has a loopback of its own: an allowed domain counts only "
			"for what asks the proxy for it";
	ret->hint = explain_hint(a, "--allow-host-port", number);
	for (size_t i = 0; i < ports->n; i++) {
		if (ports->v[i].port != port)
			continue;
		ret->verdict = VERDICT_ALLOW;
		ret->entry = number;
		ret->source = origin_text(a, &ports->v[i].origin);
		ret->reason = "a port of the host";
		ret->hint = NULL;
	}
}

static bool is_loopback(const struct host *host)
{
	return host->kind == HOST_NAME ? strcmp(host->name, "localhost") == 0
				       : host_classify(host) == HOST_CLASS_LOOPBACK;
}

int explain_connect(const struct question *q, struct answer *ret, struct error *e)
{
	const struct policy_network *net = &q->policy->network;
	struct arena *a = q->inv->arena;
	struct host host;
	uint16_t port = 0;
	int r = parse_target(q->target, &host, &port, e);

	if (r < 0)
		return error_wrap(e, "connect %s", output_safe(a, q->target));
	ret->target = arena_printf(a, host.kind == HOST_IPV6 ? "[%s]:%u" : "%s:%u", host.name,
				   (unsigned)port);
	ret->rule = "network.mode";
	ret->source = origin_text(a, &q->policy->value_origin[setting_find("network.mode")]);
	if (net->mode == NETWORK_HOST) {
		ret->verdict = VERDICT_ALLOW;
		ret->reason = "the host's network, unfiltered";
		return 0;
	}
	if (is_loopback(&host)) {
		explain_loopback(q, &host, port, ret);
		return 0;
	}
	if (net->mode == NETWORK_ALLOWLIST)
		return explain_allowlist(q, &host, port, ret, e);
	explain_none(q, &host, ret);
	return 0;
}

/* A name without a file: it belongs to the network namespace. */
static void explain_abstract(const struct question *q, struct answer *ret)
{
	const struct policy_network *net = &q->policy->network;
	struct arena *a = q->inv->arena;

	ret->target = q->target;
	ret->rule = "network.mode";
	ret->source = origin_text(a, &q->policy->value_origin[setting_find("network.mode")]);
	if (net->mode != NETWORK_HOST) {
		ret->reason = "such a name belongs to the network, and the sandbox has its own";
		return;
	}
	ret->rule = "network.allowUnixSockets";
	ret->source = "default";
	ret->reason = "a socket of the host";
	ret->hint = explain_hint(a, "--allow-unix", q->target);
}

int explain_unix(const struct question *q, struct answer *ret, struct error *e)
{
	const struct policy_network *net = &q->policy->network;
	struct arena *a = q->inv->arena;
	bool abstract = q->target[0] == '@';
	int r = 0;

	ret->rule = "network.allowUnixSockets";
	ret->source = "default";
	ret->reason = "not an allowed socket";
	if (abstract)
		explain_abstract(q, ret);
	else
		r = explain_path_target(q, &ret->target, e);
	if (r < 0 || (abstract && net->mode != NETWORK_HOST))
		return r;
	if (!abstract)
		ret->hint = explain_hint(a, "--allow-unix", ret->target);
	for (size_t i = 0; i < net->unix_sockets.n; i++) {
		const struct text_rule *rule = &net->unix_sockets.v[i];
		struct view_entry entry = { .real = rule->text };

		if (!abstract)
			path_host_view.look(&path_host_view, a, rule->text, &entry);
		if (abstract ? strcmp(rule->text, ret->target) != 0
			     : !path_within(ret->target, entry.real))
			continue;
		ret->verdict = VERDICT_ALLOW;
		ret->rule = "network.allowUnixSockets";
		ret->entry = rule->text;
		ret->source = origin_text(a, &rule->origin);
		ret->reason = "an allowed socket";
		ret->hint = NULL;
		return 0;
	}
	if (net->allow_all_unix_sockets) {
		ret->verdict = VERDICT_ALLOW;
		ret->rule = "network.allowAllUnixSockets";
		ret->source = origin_text(
			a, &q->policy->value_origin[setting_find("network.allowAllUnixSockets")]);
		ret->reason = "every socket is allowed";
		ret->hint = NULL;
	}
	return 0;
}
