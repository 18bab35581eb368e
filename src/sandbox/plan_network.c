/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the network inside will be: none, allowed domains through the proxy, or the host's; which
 * ports lead in and out. A port that is asked for and could not work is an error, since
 * nobody would notice before something waits for it.
 */
#include <errno.h>

#include "sandbox/plan_points.h"

#define PUBLISH_MAX 128 /* ports; each has two sockets of the supervisor */

static int refuse_port(struct compiler *c, const struct port_rule *r, const char *why)
{
	return error_set(c->e, EINVAL, "network.publish %s (%s): %s", port_rule_text(c->a, r),
			 origin_text(c->a, &r->origin), why);
}

static int add_published(struct compiler *c, const struct port_rule *r)
{
	struct plan *plan = c->plan;

	for (size_t i = 0; i < plan->n_publish; i++) {
		const struct plan_port *other = &plan->publish[i];

		if (other->host == r->host_port && other->inside == r->port)
			return 0; /* named twice, by a profile and by the user */
		if (other->host == r->host_port)
			return refuse_port(c, r, "this port of the host is for another one inside");
	}
	if (plan->n_publish == PUBLISH_MAX)
		return refuse_port(c, r, "too many ports");
	*ARENA_PUSH(c->a, plan->publish, plan->n_publish) =
		(struct plan_port){ .host = r->host_port, .inside = r->port };
	return 0;
}

static int compile_published(struct compiler *c)
{
	const struct policy_network *net = &c->p->network;

	for (size_t i = 0; i < net->publish.n; i++) {
		const struct port_rule *r = &net->publish.v[i];
		int err;

		if (!net->allow_local_binding)
			return refuse_port(c, r,
					   "nobody inside may listen on it: "
					   "network.allowLocalBinding is false");
		if (!c->plan->new_net && r->host_port != r->port)
			return refuse_port(c, r,
					   "with --network host the command listens on the host "
					   "itself, its port cannot become another one");
		err = c->plan->new_net ? add_published(c, r) : 0;
		if (err < 0)
			return err;
	}
	return 0;
}

/* Proxies of the user's: what is lost by them is said at every start. */
static void compile_external(struct compiler *c)
{
	const struct policy_network *net = &c->p->network;
	const struct {
		uint16_t port, *to;
		const char *key, *who;
	} rows[] = {
		{ net->http_proxy_port, &c->plan->http_proxy, "network.httpProxyPort",
		  "HTTP_PROXY and the like" },
		{ net->socks_proxy_port, &c->plan->socks_proxy, "network.socksProxyPort",
		  "ALL_PROXY and the like" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		if (!rows[i].port)
			continue;
		*rows[i].to = rows[i].port;
		plan_note(c,
			  "not enforced: the network lists, for what programs send by %s "
			  "to the proxy at 127.0.0.1:%u of the host (%s); that proxy alone decides",
			  rows[i].who, rows[i].port, rows[i].key);
	}
}

/* A name without a file belongs to the network namespace: from another one nothing leads there. */
static void note_abstract(struct compiler *c)
{
	const struct text_rules *sockets = &c->p->network.unix_sockets;

	for (size_t i = 0; c->plan->new_net && i < sockets->n; i++) {
		if (sockets->v[i].text[0] == '@')
			plan_note(c,
				  "network.allowUnixSockets %s (%s): cannot be reached from a "
				  "network "
				  "of the sandbox's own, only with --network host",
				  sockets->v[i].text, origin_text(c->a, &sockets->v[i].origin));
	}
}

int plan_compile_network(struct compiler *c)
{
	const struct policy_network *net = &c->p->network;
	struct plan *plan = c->plan;
	int r;

	plan->new_net = net->mode != NETWORK_HOST;
	plan->all_unix = net->allow_all_unix_sockets;
	plan->no_listen = !net->allow_local_binding;
	plan->egress = plan->new_net && (net->mode == NETWORK_ALLOWLIST || net->host_ports.n);
	for (size_t i = 0; plan->egress && i < net->host_ports.n; i++)
		*ARENA_PUSH(c->a, plan->host_ports, plan->n_host_ports) = net->host_ports.v[i].port;
	if (net->mode == NETWORK_ALLOWLIST)
		compile_external(c);
	plan->unix_sockets = &net->unix_sockets;
	note_abstract(c);
	r = compile_published(c);
	if (r < 0)
		return r;
	plan->loopback = !plan->bare && (plan->egress || plan->n_publish ||
					 (plan->new_net && net->allow_local_binding));
	return 0;
}
