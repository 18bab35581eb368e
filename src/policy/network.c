/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the network settings mean together: the mode that follows from them, the proxy that the
 * caller's own variables name, and whether a proxy of the user's may stand where ours judges.
 */
#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "policy/build.h"

static struct row_state *row_of(const struct builder *b, const char *key)
{
	return &b->rows[setting_find(key)];
}

/* "http://[user:password@]host[:port][/]": what ambit-proxy can use. */
int network_check_proxy_url(const char *text, struct error *e)
{
	const char *authority = text + strlen("http://"), *slash, *at;
	struct host_rule rule;
	char host[HOST_NAME_MAX_LEN + 16];

	if (text[strcspn(text, " \t\r\n")])
		return error_set(e, EINVAL, "a URL has no blanks");
	if (text_starts(text, "https://"))
		return error_set(e, EINVAL,
				 "\"%s\": a proxy that is itself reached by TLS cannot be used",
				 text);
	if (!text_starts(text, "http://"))
		return error_set(e, EINVAL, "\"%s\" must begin with http://", text);
	slash = authority + strcspn(authority, "/");
	at = text_find_last(authority, (size_t)(slash - authority), '@');
	if (at)
		authority = at + 1;
	if ((*slash && slash[1]) || (size_t)(slash - authority) >= sizeof(host))
		return error_set(e, EINVAL, "\"%s\" must be http://HOST:PORT and no more", text);
	memcpy(host, authority, (size_t)(slash - authority));
	host[slash - authority] = '\0';
	if (host_rule_parse(host, false, &rule, e) < 0)
		return error_wrap(e, "\"%s\"", text);
	if (rule.type != HOST_RULE_EXACT)
		return error_set(e, EINVAL, "\"%s\" names no single host", text);
	return 0;
}

int network_check_no_proxy(const char *text, struct error *e)
{
	return text[strcspn(text, "\r\n")] ? error_set(e, EINVAL, "must be one line") : 0;
}

/* The caller's own way out: below everything that anybody wrote down for ambit. */
void network_add_defaults(struct builder *b)
{
	const struct policy_inputs *in = b->in;
	const struct {
		const struct inputs_text *from;
		const char *key;
		const char **to;
		int (*check)(const char *, struct error *);
	} rows[] = {
		{ &in->parent_http, "network.parentProxy.http", &b->p->network.parent_http,
		  network_check_proxy_url },
		{ &in->parent_https, "network.parentProxy.https", &b->p->network.parent_https,
		  network_check_proxy_url },
		{ &in->parent_no_proxy, "network.parentProxy.noProxy",
		  &b->p->network.parent_no_proxy, network_check_no_proxy },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct origin o = { .layer = LAYER_DEFAULT, .name = rows[i].from->source };
		const char *text = rows[i].from->text;

		if (!text)
			continue;
		if (rows[i].check == network_check_proxy_url && !strstr(text, "://"))
			text = arena_printf(b->a, "http://%s", text);
		if (rows[i].check(text, NULL) < 0)
			continue; /* a kind that we cannot use: network_finish() says so */
		*rows[i].to = text;
		row_of(b, rows[i].key)->origin = o;
	}
}

static void note_unused_variables(struct builder *b)
{
	const struct inputs_text *const from[] = { &b->in->parent_http, &b->in->parent_https };
	const char *const used[] = { b->p->network.parent_http, b->p->network.parent_https };

	for (size_t i = 0; i < ARRAY_LEN(from); i++) {
		struct origin o = { .layer = LAYER_ENVIRONMENT, .name = from[i]->source };

		if (from[i]->text && !used[i] && b->p->network.mode == NETWORK_ALLOWLIST)
			builder_note(b, &o,
				     "not used: allowed hosts are reached directly, since only "
				     "http:// proxies can be used");
	}
}

/* Asked for just now and without effect: worth a word. */
static void note_dead_domains(struct builder *b, const struct origin *mode)
{
	const struct policy_network *net = &b->p->network;

	for (size_t i = 0; i < net->allowed.n; i++) {
		const struct host_rule_entry *h = &net->allowed.v[i];

		if (h->origin.layer < LAYER_ENVIRONMENT)
			continue;
		if (net->mode == NETWORK_NONE)
			builder_note(b, &h->origin,
				     "%s is not reachable: network.mode is none (%s)", h->text,
				     origin_text(b->a, mode));
		if (net->mode == NETWORK_HOST)
			builder_note(b, &h->origin,
				     "%s is no limit: network.mode is host (%s), where every host "
				     "can be reached",
				     h->text, origin_text(b->a, mode));
	}
}

/*
 * In the host's network nobody holds a deny list. Who says both at once is told so; who says "host"
 * over a list that is less his own (an option over a file) means it, and is reminded.
 */
static int check_dead_denials(struct builder *b, struct error *e)
{
	const struct policy_network *net = &b->p->network;
	const struct origin *mode = &row_of(b, "network.mode")->origin;

	for (size_t i = 0; net->mode == NETWORK_HOST && i < net->denied.n; i++) {
		const struct host_rule_entry *h = &net->denied.v[i];

		if (h->origin.layer >= mode->layer)
			return error_set(
				e, EINVAL,
				"%s: network.deniedDomains %s cannot hold: network.mode is "
				"host (%s), where every host can be reached",
				origin_text(b->a, &h->origin), h->text, origin_text(b->a, mode));
		builder_note(b, &h->origin, "%s can be reached: network.mode is host (%s)", h->text,
			     origin_text(b->a, mode));
	}
	return 0;
}

/* A proxy of the user's in place of ours; NULL = none. */
static const struct row_state *external_proxy(const struct builder *b)
{
	const struct policy_network *net = &b->p->network;

	if (net->http_proxy_port)
		return row_of(b, "network.httpProxyPort");
	return net->socks_proxy_port ? row_of(b, "network.socksProxyPort") : NULL;
}

/* A value on its narrow side, which only our proxy holds. */
static const struct origin *managed_value(const struct builder *b)
{
	static const struct {
		const char *key;
		bool narrow;
	} values[] = {
		{ "network.strictAllowlist", true },
		{ "network.requireSNI", true },
		{ "network.allowECH", false },
		{ "network.allowPrivateAddresses", false },
	};

	for (size_t i = 0; i < ARRAY_LEN(values); i++) {
		const struct row_state *row = row_of(b, values[i].key);

		if (row->managed && (row->managed_value.u != 0) == values[i].narrow)
			return &row->managed_origin;
	}
	return NULL;
}

static const struct origin *managed_entry(const struct policy_network *net)
{
	for (size_t i = 0; i < net->denied.n; i++) {
		if (net->denied.v[i].locked)
			return &net->denied.v[i].origin;
	}
	for (size_t i = 0; i < net->denied_resolved.n; i++) {
		if (layer_is_managed(net->denied_resolved.v[i].origin.layer))
			return &net->denied_resolved.v[i].origin;
	}
	return NULL;
}

/* A network rule of the managed settings, or NULL. */
static const struct origin *managed_rule(const struct builder *b)
{
	const char *const keys[] = { "network.mode", "network.allowedDomains",
				     "network.deniedDomains" };
	const struct origin *by;

	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		const struct row_state *row = row_of(b, keys[i]);

		if (row->locked || row->managed)
			return row->locked ? &row->locked_origin : &row->managed_origin;
	}
	by = managed_entry(&b->p->network);
	return by ? by : managed_value(b);
}

/* The first way to the host's ports that others than the managed settings ask for, or NULL. */
static const struct origin *port_of_others(const struct builder *b, const char **ret_key)
{
	const struct policy_network *net = &b->p->network;
	const struct {
		const char *key;
		const struct port_rules *list;
	} lists[] = { { "network.allowHostPorts", &net->host_ports },
		      { "network.publish", &net->publish } };

	for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
		*ret_key = lists[i].key;
		for (size_t k = 0; k < lists[i].list->n; k++) {
			if (!layer_is_managed(lists[i].list->v[k].origin.layer))
				return &lists[i].list->v[k].origin;
		}
	}
	*ret_key = net->http_proxy_port ? "network.httpProxyPort" : "network.socksProxyPort";
	if (!external_proxy(b) || layer_is_managed(external_proxy(b)->origin.layer))
		return NULL;
	return &external_proxy(b)->origin;
}

/* No network by the managed settings is none at all: no port of the host's either. */
static int check_managed_none(const struct builder *b, struct error *e)
{
	const struct row_state *mode = row_of(b, "network.mode");
	const struct origin *who;
	const char *key;

	if (!mode->managed || mode->managed_value.u != NETWORK_NONE)
		return 0;
	who = port_of_others(b, &key);
	if (!who)
		return 0;
	return error_set(e, EPERM, "%s: %s is refused: the managed settings, %s, allow no network",
			 origin_text(b->a, who), key, origin_text(b->a, &mode->managed_origin));
}

/*
 * What goes through another's proxy, or straight to the host's network, is not judged by us, so the
 * managed file's network rules would not hold.
 */
static int check_managed_rules(const struct builder *b, struct error *e)
{
	const struct row_state *mode = row_of(b, "network.mode"), *port = external_proxy(b);
	const struct origin *by = managed_rule(b), *who = NULL;
	const char *what = NULL;

	if (b->p->network.mode == NETWORK_HOST && !mode->managed) {
		who = &mode->origin;
		what = "network.mode host";
	} else if (b->p->network.mode == NETWORK_ALLOWLIST && port) {
		who = &port->origin;
		what = "a proxy in place of ambit's";
	}
	if (!by || !who || layer_is_managed(who->layer))
		return 0;
	return error_set(e, EPERM,
			 "%s: %s is refused: the network rules of the managed settings, %s, would "
			 "not hold for it",
			 origin_text(b->a, who), what, origin_text(b->a, by));
}

static void choose_mode(struct builder *b)
{
	struct policy_network *net = &b->p->network;
	struct origin *mode = &row_of(b, "network.mode")->origin;
	const struct row_state *port = external_proxy(b);

	if (net->mode != NETWORK_UNSET) {
		note_dead_domains(b, mode);
		return;
	}
	net->mode =
		net->allowed.n || port || b->in->live_network ? NETWORK_ALLOWLIST : NETWORK_NONE;
	if (net->allowed.n)
		*mode = net->allowed.v[0].origin;
	else if (port)
		*mode = port->origin;
}

static bool is_allowed_by_others(const struct host_rules *allowed, const struct host_rule *rule)
{
	for (size_t i = 0; i < allowed->n; i++) {
		if (!allowed->v[i].origin.untrusted && host_rule_covers(&allowed->v[i].rule, rule))
			return true;
	}
	return false;
}

/*
 * Where every host could be reached, a project's list was no widening. It stands while the project
 * itself narrows the mode to it; a list that others ask for later is theirs.
 */
static void drop_untrusted_hosts(struct builder *b)
{
	struct host_rules *allowed = &b->p->network.allowed;
	const struct origin *mode = &row_of(b, "network.mode")->origin;
	size_t kept = 0;

	if (b->p->network.mode != NETWORK_ALLOWLIST || mode->untrusted)
		return;
	for (size_t i = 0; i < allowed->n; i++) {
		const struct host_rule_entry *h = &allowed->v[i];

		if (!h->origin.untrusted || is_allowed_by_others(allowed, &h->rule))
			allowed->v[kept++] = *h;
		else
			builder_note(b, &h->origin,
				     "ignored: %s would widen the list of allowed hosts (%s)",
				     h->text, origin_text(b->a, mode));
	}
	allowed->n = kept;
}

static void give_reasons(struct policy_network *net)
{
	for (size_t i = 0; i < net->denied_reasons.n; i++) {
		const struct env_setting *why = &net->denied_reasons.v[i];

		for (size_t j = 0; j < net->denied.n; j++) {
			if (strcmp(net->denied.v[j].text, why->name) == 0)
				net->denied.v[j].reason = why->value;
		}
	}
}

int network_finish(struct builder *b, struct error *e)
{
	int r;

	choose_mode(b);
	drop_untrusted_hosts(b);
	note_unused_variables(b);
	give_reasons(&b->p->network);
	r = check_managed_rules(b, e);
	if (r >= 0)
		r = check_managed_none(b, e);
	return r < 0 ? r : check_dead_denials(b, e);
}
