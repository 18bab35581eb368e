/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/decide.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"

bool decide_is_localhost(const struct host *host)
{
	return host->kind == HOST_NAME &&
	       (strcmp(host->name, "localhost") == 0 || text_ends(host->name, ".localhost"));
}

static const struct named_rule *find_rule(const struct rule_list *list, const struct host *host,
					  uint16_t port)
{
	for (size_t i = 0; i < list->n; i++) {
		if (host_rule_matches(&list->v[i].rule, host, port))
			return &list->v[i];
	}
	return NULL;
}

static void set_rule(struct verdict *v, const char *setting, const struct named_rule *rule)
{
	size_t n = strlen(setting);

	text_copy(v->rule, sizeof(v->rule), setting);
	text_copy(v->rule + n, sizeof(v->rule) - n, " ");
	text_copy(v->rule + n + 1, sizeof(v->rule) - n - 1, rule->text);
}

static void refuse(struct verdict *v, const char *reason)
{
	v->allow = false;
	(void)snprintf(v->reason, sizeof(v->reason), "%s", reason);
}

/* The last address of the rule's network. */
static void last_address(const struct host_rule *rule, struct host *ret)
{
	uint8_t addr[16];
	unsigned bits = rule->host.kind == HOST_IPV4 ? 32 : 128;

	memcpy(addr, rule->host.addr, sizeof(addr));
	for (unsigned i = rule->prefix_len; i < bits; i++)
		addr[i / 8] |= (uint8_t)(0x80 >> (i % 8));
	*ret = rule->host;
	memcpy(ret->addr, addr, sizeof(addr));
}

/* Does the rule mean this address: by itself, or as a network wholly of its class? */
static bool rule_means(const struct host_rule *rule, const struct host *address)
{
	enum host_class class = host_classify(address);
	struct host last;

	if (class == HOST_CLASS_PUBLIC || rule->type == HOST_RULE_EXACT)
		return true;
	if (class == HOST_CLASS_METADATA)
		return false;
	last_address(rule, &last);
	return host_classify(&rule->host) == class && host_classify(&last) == class;
}

/*
 * The address rule that lets the literal through; NULL when none does. An own address of this
 * machine needs a rule of its own: a network that it happens to lie in does not mean it.
 */
static const struct named_rule *find_meaning(const struct config *c, const struct host *address,
					     uint16_t port, bool own)
{
	for (size_t i = 0; i < c->allow.n; i++) {
		const struct host_rule *rule = &c->allow.v[i].rule;

		if (host_rule_matches(rule, address, port) && rule_means(rule, address) &&
		    (!own || rule->type == HOST_RULE_EXACT))
			return &c->allow.v[i];
	}
	return NULL;
}

static void refuse_class(struct verdict *v, const struct host *host, const struct host *address,
			 const char *class, const char *rule)
{
	const char *article = strchr("aeiou", class[0]) ? "an" : "a";

	v->allow = false;
	v->address = true;
	(void)snprintf(v->rule, sizeof(v->rule), "%s", rule);
	if (host == address)
		(void)snprintf(v->reason, sizeof(v->reason),
			       "%s is %s %s address: only a rule for that address allows it",
			       address->name, article, class);
	else
		(void)snprintf(v->reason, sizeof(v->reason),
			       "the name resolves to %s %s address (%s)", article, class,
			       address->name);
}

void decide_host(const struct config *c, const struct host *host, uint16_t port,
		 struct verdict *ret)
{
	const struct named_rule *rule = find_rule(&c->deny, host, port);

	ret->allow = true;
	ret->ask = ret->address = false;
	ret->rule[0] = ret->reason[0] = '\0';
	if (rule) {
		set_rule(ret, "deniedDomains", rule);
		refuse(ret, rule->reason ? rule->reason : "the host is on the deny list");
		return;
	}
	rule = find_rule(&c->allow, host, port);
	if (!rule) {
		(void)snprintf(ret->rule, sizeof(ret->rule), "network.allowedDomains");
		ret->ask = host->kind == HOST_NAME ? !decide_is_localhost(host)
						   : host_classify(host) == HOST_CLASS_PUBLIC;
		refuse(ret, c->allow.n ? "the host and port are not on the allow list"
				       : "the allow list is empty");
		return;
	}
	set_rule(ret, "allowedDomains", rule);
	if (host->kind == HOST_NAME)
		return;
	rule = find_meaning(c, host, port, false);
	if (rule)
		set_rule(ret, "allowedDomains", rule);
	else
		refuse_class(ret, host, host, host_class_name(host_classify(host)),
			     "network.allowedDomains");
}

static bool is_own(const struct own_addresses *own, const struct host *address)
{
	for (size_t i = 0; i < own->n; i++) {
		if (own->v[i].kind == address->kind && strcmp(own->v[i].name, address->name) == 0)
			return true;
	}
	return false;
}

void decide_address(const struct config *c, const struct own_addresses *own,
		    const struct host *host, const struct host *address, uint16_t port,
		    struct verdict *ret)
{
	enum host_class class = host_classify(address);
	const struct named_rule *rule = find_rule(&c->deny_address, address, port);

	ret->allow = true;
	ret->ask = ret->address = false;
	ret->rule[0] = ret->reason[0] = '\0';
	if (!rule)
		rule = find_rule(&c->deny, address, port);
	if (rule) {
		set_rule(ret, "network.deniedAddresses", rule);
		refuse_class(ret, host, address, "denied", ret->rule);
		return;
	}
	/* 127.0.0.0/8 is the machine itself, and a rule for it says so */
	if (find_meaning(c, address, port, class != HOST_CLASS_LOOPBACK && is_own(own, address)))
		return;
	/* who allows localhost by name means loopback; by any other name it is a trick */
	if (decide_is_localhost(host) && class == HOST_CLASS_LOOPBACK)
		return;
	if (c->allow_private && !c->deny_own &&
	    (class == HOST_CLASS_PRIVATE || class == HOST_CLASS_LOOPBACK))
		return;
	if (c->allow_private && class == HOST_CLASS_PRIVATE && !is_own(own, address))
		return;
	if (class != HOST_CLASS_PUBLIC)
		refuse_class(ret, host, address, host_class_name(class),
			     "network.allowPrivateAddresses");
	else if ((!c->allow_private || c->deny_own) && is_own(own, address))
		refuse_class(ret, host, address, "own", "network.allowPrivateAddresses");
}

bool decide_name(const struct config *c, const struct host *host, struct verdict *ret)
{
	for (size_t i = 0; i < c->deny.n; i++) {
		const struct host_rule *rule = &c->deny.v[i].rule;

		if (rule->port == 0 && host_rule_matches(rule, host, 1)) {
			decide_host(c, host, 1, ret);
			return false;
		}
	}
	for (size_t i = 0; i < c->allow.n; i++) {
		const struct host_rule *rule = &c->allow.v[i].rule;

		if (host_rule_matches(rule, host, rule->port ? rule->port : 1))
			return true;
	}
	decide_host(c, host, 1, ret);
	refuse(ret, "the name is not on the allow list");
	return false;
}

/*
 * One element of NO_PROXY: "*", an address or network, or a domain with
 * everything below it (a leading "." or "*." is understood), each with an
 * optional port.
 */
static bool no_proxy_matches(const char *item, const struct host *host, uint16_t port)
{
	struct host_rule rule;
	const char *base = item;
	size_t n, m;

	if (strcmp(item, "*") == 0)
		return true;
	if (*base == '*')
		base++;
	if (*base == '.')
		base++;
	if (host_rule_parse(base, false, &rule, NULL) < 0)
		return false;
	if (host_rule_matches(&rule, host, port))
		return true;
	if (rule.type != HOST_RULE_EXACT || rule.host.kind != HOST_NAME ||
	    host->kind != HOST_NAME || (rule.port && rule.port != port))
		return false;
	n = strlen(host->name);
	m = strlen(rule.host.name);
	return n > m && host->name[n - m - 1] == '.' && text_ends(host->name, rule.host.name);
}

const struct parent *decide_parent(const struct config *c, const struct host *host, uint16_t port,
				   bool plain_http)
{
	const struct parent *p = plain_http ? &c->parent_http : &c->parent_https;

	if (!p->host.name[0])
		return NULL;
	/* this machine is never reached through another */
	if (decide_is_localhost(host) ||
	    (host->kind != HOST_NAME && host_classify(host) == HOST_CLASS_LOOPBACK))
		return NULL;
	for (size_t i = 0; i < c->n_no_proxy; i++) {
		if (no_proxy_matches(c->no_proxy[i], host, port))
			return NULL;
	}
	return p;
}

const struct host *decide_fixed(const struct config *c, const struct host *host)
{
	for (size_t i = 0; i < c->n_hosts; i++) {
		if (c->hosts[i].name.kind == host->kind &&
		    strcmp(c->hosts[i].name.name, host->name) == 0)
			return &c->hosts[i].address;
	}
	return NULL;
}
