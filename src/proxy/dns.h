/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DNS messages: one question in, one answer out. Pure. What is asked is never
 * sent anywhere: a name is a way to carry data out (N2).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policy/match_host.h"

#define DNS_QUERY_MAX 1232 /* more than one question with EDNS options ever needs */
#define DNS_REPLY_MAX 1024
#define DNS_TTL_S 30

enum dns_type { DNS_A = 1, DNS_PTR = 12, DNS_AAAA = 28 };

enum dns_rcode { DNS_NOERROR = 0, DNS_FORMERR = 1, DNS_NXDOMAIN = 3, DNS_NOTIMP = 4 };

struct dns_query {
	uint16_t id;
	bool recursion_desired;
	uint16_t type;
	bool has_host; /* the name is one that host_parse() accepts */
	bool printable; /* text is the name; else it had bytes that no host name has */
	struct host host;
	struct host reverse; /* DNS_PTR of an address: that address; else name "" */
	size_t question_len; /* bytes after the header that make up the question */
};

/*
 * 0: *ret is a question to answer. -EBADMSG: malformed, answer FORMERR.
 * -EOPNOTSUPP: answer NOTIMP. -EINVAL: not a query at all, drop it.
 * id and recursion_desired are set in all cases but the last.
 */
int dns_parse(const uint8_t *data, size_t len, struct dns_query *ret) NODISCARD;

struct dns_answer {
	enum dns_rcode rcode;
	const uint8_t *address; /* DNS_A 4 bytes, DNS_AAAA 16 bytes; NULL = no answer record */
	const char *name; /* DNS_PTR; NULL = no answer record */
};

/* query is the message that q came from. Length of the reply. */
size_t dns_reply(const struct dns_query *q, const uint8_t *query, const struct dns_answer *answer,
		 uint8_t ret[DNS_REPLY_MAX]);
