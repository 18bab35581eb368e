/* SPDX-License-Identifier: Apache-2.0 */
/* The rules of the network, as ambit-proxy wants them. */
#include <errno.h>

#include "base/text.h"
#include "supervise/egress.h"

#define ASK_MS 120000 /* a person may be away; programs do not wait longer either */

static void write_hosts(struct buf *b, const char *verb, const struct host_rules *rules)
{
	for (size_t i = 0; i < rules->n; i++) {
		buf_printf(b, "%s %s", verb, rules->v[i].text);
		if (rules->v[i].reason) {
			buf_putc(b, ' ');
			text_append_safe(b, rules->v[i].reason);
		}
		buf_putc(b, '\n');
	}
}

int egress_write_config(struct buf *b, const struct policy *p, bool ask)
{
	const struct policy_network *n = &p->network;

	write_hosts(b, "allow", &n->allowed);
	write_hosts(b, "deny", &n->denied);
	buf_printf(b, "private %d\n", n->allow_private_addresses);
	/* an answer adds to the list */
	if (ask && !n->strict_allowlist && !policy_is_locked(p, "network.allowedDomains"))
		buf_printf(b, "ask %d\n", ASK_MS);
	buf_printf(b, "requireSNI %d\n", n->require_sni);
	buf_printf(b, "allowECH %d\n", n->allow_ech);
	buf_printf(b, "denyOwn %d\n", n->deny_own_addresses);
	for (size_t i = 0; i < n->denied_resolved.n; i++)
		buf_printf(b, "denyAddress %s\n", n->denied_resolved.v[i].text);
	if (n->parent_http)
		buf_printf(b, "parentHttp %s\n", n->parent_http);
	if (n->parent_https || n->parent_http)
		buf_printf(b, "parentHttps %s\n",
			   n->parent_https ? n->parent_https : n->parent_http);
	if (n->parent_no_proxy)
		buf_printf(b, "noProxy %s\n", n->parent_no_proxy);
	return b->overflow ? -EFBIG : 0;
}
