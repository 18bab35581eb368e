/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entries of the domain lists. Both sides are canonical (host_parse), so that
 * matching is byte comparison. A rule that could never match is an error where
 * it is written, not a silent hole in a deny list.
 */
#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "policy/match_host.h"

/* The parts of an entry, as they stand in its text. */
struct parts {
	const char *host;
	size_t host_len;
	const char *prefix, *port; /* NULL = not given */
	size_t prefix_len, port_len;
};

static uint8_t addr_bits(const struct host *h)
{
	return h->kind == HOST_IPV4 ? 32 : 128;
}

/* A decimal between 0 and max in its only spelling: no sign, no leading zero. */
static bool parse_decimal(const char *s, size_t n, unsigned max, unsigned *ret)
{
	unsigned v = 0;

	if (n == 0 || n > 5 || (n > 1 && s[0] == '0'))
		return false;
	for (size_t i = 0; i < n; i++) {
		if (!ascii_digit(s[i]))
			return false;
		v = v * 10 + (unsigned)(s[i] - '0');
	}
	if (v > max)
		return false;
	*ret = v;
	return true;
}

static void cut_prefix(struct parts *p)
{
	const char *slash = memchr(p->host, '/', p->host_len);

	if (!slash)
		return;
	p->prefix = slash + 1;
	p->prefix_len = (size_t)(p->host + p->host_len - p->prefix);
	p->host_len = (size_t)(slash - p->host);
}

/* [v6], [v6]:port, [v6/len], [v6/len]:port, [v6]/len, [v6]/len:port */
static int split_bracketed(const char *text, struct parts *ret, struct error *e)
{
	const char *close = strchr(text, ']');
	const char *rest;

	if (!close)
		return error_set(e, EINVAL, "'[' without ']'");
	*ret = (struct parts){ .host = text + 1, .host_len = (size_t)(close - text - 1) };
	cut_prefix(ret);
	rest = close + 1;
	if (*rest == '/' && !ret->prefix) {
		ret->prefix = rest + 1;
		ret->prefix_len = strcspn(ret->prefix, ":");
		rest = ret->prefix + ret->prefix_len;
	}
	if (*rest == ':') {
		ret->port = rest + 1;
		ret->port_len = strlen(ret->port);
	} else if (*rest) {
		return error_set(e, EINVAL, "only a :port may follow ']'");
	}
	if (!memchr(ret->host, ':', ret->host_len))
		return error_set(e, EINVAL, "only an IPv6 address is written in brackets");
	return 0;
}

static int split(const char *text, struct parts *ret, struct error *e)
{
	const char *colon = strchr(text, ':');
	size_t len = strlen(text);

	if (len == 0)
		return error_set(e, EINVAL, "empty entry");
	if (strstr(text, "://"))
		return error_set(e, EINVAL, "a URL: write only the host name");
	if (text[0] == '[')
		return split_bracketed(text, ret, e);
	*ret = (struct parts){ .host = text, .host_len = len };
	/* More than one colon: an IPv6 address, which without brackets has no port. */
	if (colon && !strchr(colon + 1, ':')) {
		ret->host_len = (size_t)(colon - text);
		ret->port = colon + 1;
		ret->port_len = strlen(ret->port);
	}
	cut_prefix(ret);
	return 0;
}

static void mask_addr(uint8_t *addr, unsigned bits)
{
	for (unsigned i = 0; i < 16; i++) {
		unsigned keep = bits > 8 * i ? bits - 8 * i : 0;

		if (keep < 8)
			addr[i] &= (uint8_t)(0xff00u >> keep);
	}
}

static int parse_cidr(const struct parts *p, struct host_rule *r, struct error *e)
{
	bool v6_text = memchr(p->host, ':', p->host_len) != NULL;
	unsigned bits, dots = 0;

	if (r->host.kind == HOST_NAME)
		return error_set(e, EINVAL,
				 "'/' is only allowed after an IP address: "
				 "rules match hosts, not paths");
	for (size_t i = 0; i < p->host_len; i++)
		dots += p->host[i] == '.';
	/* inet_aton() takes 10/8 for 0.0.0.10/8: never what was meant */
	if (!v6_text && dots != 3)
		return error_set(e, EINVAL, "a network is written with all four numbers");
	if (!parse_decimal(p->prefix, p->prefix_len, v6_text ? 128 : 32, &bits))
		return error_set(e, EINVAL, "the prefix length must be a number from 0 to %d",
				 v6_text ? 128 : 32);
	/* IPv4-mapped: the host is IPv4 by now, the length was counted from 128 */
	if (v6_text && r->host.kind == HOST_IPV4) {
		if (bits < 96)
			return error_set(e, EINVAL,
					 "an IPv4-mapped network needs a prefix of at least 96");
		bits -= 96;
	}
	mask_addr(r->host.addr, bits);
	host_from_addr(r->host.kind, r->host.addr, &r->host);
	r->type = HOST_RULE_CIDR;
	r->prefix_len = (uint8_t)bits;
	return 0;
}

/* What stands before the port: "*", "*.base", a name or an address. */
static int parse_host_part(const struct parts *p, bool allow_any, struct host_rule *r,
			   struct error *e)
{
	const char *host = p->host;
	size_t len = p->host_len;
	int err;

	if (len == 1 && host[0] == '*' && !p->prefix) {
		if (!allow_any)
			return error_set(e, EINVAL, "\"*\" is only possible in a deny list");
		r->type = HOST_RULE_ANY;
		return 0;
	}
	r->type = HOST_RULE_EXACT;
	if (len >= 2 && host[0] == '*' && host[1] == '.') {
		r->type = HOST_RULE_SUBDOMAINS;
		host += 2;
		len -= 2;
	}
	err = host_parse(host, len, &r->host, e);
	if (err < 0)
		return err;
	if (r->type == HOST_RULE_SUBDOMAINS) {
		if (r->host.kind != HOST_NAME)
			return error_set(e, EINVAL, "a wildcard never matches an IP address");
		if (!strchr(r->host.name, '.'))
			return error_set(e, EINVAL,
					 "\"*.%s\" is too wide: at least two labels must follow",
					 r->host.name);
	}
	return p->prefix ? parse_cidr(p, r, e) : 0;
}

int host_rule_parse(const char *text, bool allow_any, struct host_rule *ret, struct error *e)
{
	struct host_rule rule = { .port = 0 };
	struct parts parts = { .host = text };
	unsigned port = 0;
	int r = split(text, &parts, e);

	if (r < 0)
		return r;
	r = parse_host_part(&parts, allow_any, &rule, e);
	if (r < 0)
		return r;
	if (parts.port &&
	    (!parse_decimal(parts.port, parts.port_len, UINT16_MAX, &port) || port == 0))
		return error_set(e, EINVAL, "the port must be a number from 1 to 65535");
	rule.port = (uint16_t)port;
	*ret = rule;
	return 0;
}

static bool addr_in_network(const struct host *net, unsigned bits, const struct host *h)
{
	struct host masked = *h;

	if (net->kind != h->kind || h->kind == HOST_NAME)
		return false;
	mask_addr(masked.addr, bits);
	return memcmp(masked.addr, net->addr, addr_bits(h) / 8) == 0;
}

static bool is_strictly_below(const char *name, const char *base)
{
	size_t n = strlen(name), m = strlen(base);

	return n > m + 1 && name[n - m - 1] == '.' && memcmp(name + n - m, base, m) == 0;
}

bool host_rule_matches(const struct host_rule *rule, const struct host *host, uint16_t port)
{
	if (rule->port != 0 && rule->port != port)
		return false;
	switch (rule->type) {
	case HOST_RULE_ANY:
		return true;
	case HOST_RULE_EXACT:
		return rule->host.kind == host->kind && strcmp(rule->host.name, host->name) == 0;
	case HOST_RULE_SUBDOMAINS:
		return host->kind == HOST_NAME && is_strictly_below(host->name, rule->host.name);
	case HOST_RULE_CIDR:
		return addr_in_network(&rule->host, rule->prefix_len, host);
	}
	return false;
}

/* A single address is the network of its full length. */
static unsigned rule_bits(const struct host_rule *r)
{
	return r->type == HOST_RULE_CIDR ? r->prefix_len : addr_bits(&r->host);
}

bool host_rule_covers(const struct host_rule *outer, const struct host_rule *inner)
{
	if (outer->port != 0 && outer->port != inner->port)
		return false;
	if (outer->type == HOST_RULE_ANY || inner->type == HOST_RULE_ANY)
		return outer->type == HOST_RULE_ANY;
	if (outer->host.kind != inner->host.kind)
		return false;
	if (outer->host.kind != HOST_NAME)
		return rule_bits(outer) <= rule_bits(inner) &&
		       addr_in_network(&outer->host, rule_bits(outer), &inner->host);
	if (strcmp(outer->host.name, inner->host.name) == 0)
		return outer->type == inner->type;
	return outer->type == HOST_RULE_SUBDOMAINS &&
	       is_strictly_below(inner->host.name, outer->host.name);
}
