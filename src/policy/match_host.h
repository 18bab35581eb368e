/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Host rules and host names. A name from outside is brought to its canonical
 * form exactly once (host_parse) and from then on only that form is matched,
 * logged and dialled: what is decided about is what is used.
 *
 * Canonical: lower-case LDH labels, IDN as punycode (A-label), no trailing dot;
 * IPv4 in any inet_aton spelling (127.1, 0x7f000001, 0177.0.0.1, 2130706433)
 * as 4 bytes; IPv6 in any spelling, brackets allowed, zone ids refused; an
 * IPv4-mapped IPv6 address is the IPv4 address. NUL, CR, LF, spaces, '%', '@',
 * '/', and anything else outside LDH is refused. All functions are pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define HOST_NAME_MAX_LEN 253
#define HOST_LABEL_MAX_LEN 63

enum host_kind { HOST_NAME, HOST_IPV4, HOST_IPV6 };

struct host {
	enum host_kind kind;
	uint8_t addr[16]; /* IPv4: first 4 bytes */
	char name[HOST_NAME_MAX_LEN + 1]; /* canonical text, for addresses too (no brackets) */
};

/* text/len as received: may hold any byte. 0 or -EINVAL with the reason in e. */
int host_parse(const char *text, size_t len, struct host *ret, struct error *e) NODISCARD;
/* The host of 4 or 16 address bytes (a resolver's answer, a peer). Mapped IPv6 becomes IPv4. */
void host_from_addr(enum host_kind kind, const uint8_t *addr, struct host *ret);

/* One entry of allowedDomains/deniedDomains. */
struct host_rule {
	enum {
		HOST_RULE_EXACT, /* example.com, 10.1.2.3, [::1] */
		HOST_RULE_SUBDOMAINS, /* *.example.com: strict subdomains, never the apex, never an IP */
		HOST_RULE_CIDR, /* 10.0.0.0/8, fd00::/8 */
		HOST_RULE_ANY, /* "*": deniedDomains only */
	} type;
	struct host host; /* EXACT, SUBDOMAINS (the base), CIDR (the network, masked) */
	uint8_t prefix_len; /* CIDR */
	uint16_t port; /* 0 = every port */
};

/*
 * host, *.host, IP, [v6], CIDR, each with optional :port (v6 then in brackets).
 * "*" and "*:port" only with allow_any. Refused with a reason: URLs, paths,
 * single-label wildcards (*.com), bare top-level names other than localhost
 * without a dot are accepted as host names (intranet); dead rules (bad IDN,
 * empty labels) are refused.
 */
int host_rule_parse(const char *text, bool allow_any, struct host_rule *ret, struct error *e)
	NODISCARD;

bool host_rule_matches(const struct host_rule *rule, const struct host *host, uint16_t port);

/*
 * Is every host that `inner` matches also matched by `outer`? Used to tell
 * whether a project's entry widens.
 */
bool host_rule_covers(const struct host_rule *outer, const struct host_rule *inner);

/* Classes of addresses that a name must not resolve to unless allowed. */
enum host_class {
	HOST_CLASS_PUBLIC,
	HOST_CLASS_LOOPBACK,
	HOST_CLASS_UNSPECIFIED, /* 0/8, :: */
	HOST_CLASS_LINK_LOCAL,
	HOST_CLASS_METADATA, /* cloud metadata services */
	HOST_CLASS_PRIVATE, /* RFC 1918, ULA, CGNAT */
	HOST_CLASS_MULTICAST, /* and broadcast, reserved */
};

/* Address kinds only. Embedded IPv4 (mapped, compat, NAT64, 6to4, Teredo) is judged too. */
enum host_class host_classify(const struct host *host);
const char *host_class_name(enum host_class c);
