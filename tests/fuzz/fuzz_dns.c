/* SPDX-License-Identifier: Apache-2.0 */
/* DNS queries, and the replies made from them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proxy/dns.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint8_t address[16] = { 1, 2, 3 };
	uint8_t reply[DNS_REPLY_MAX];
	struct dns_query q, back;
	int r = dns_parse(data, size, &q);
	size_t n;

	if (r == -EINVAL)
		return 0;
	n = dns_reply(&q, data, &(struct dns_answer){ .rcode = DNS_FORMERR }, reply);
	if (n < 12 || n > DNS_REPLY_MAX || dns_parse(reply, n, &back) != -EINVAL)
		abort();
	if (r < 0)
		return 0;
	if (q.type == DNS_A || q.type == DNS_AAAA)
		n = dns_reply(&q, data, &(struct dns_answer){ .address = address }, reply);
	else if (q.has_host)
		n = dns_reply(&q, data, &(struct dns_answer){ .name = q.host.name }, reply);
	if (n > DNS_REPLY_MAX)
		abort();
	/* what was asked is what is answered */
	reply[2] = 1;
	reply[6] = reply[7] = 0;
	if (dns_parse(reply, n, &back) < 0 || back.has_host != q.has_host ||
	    (q.has_host && strcmp(back.host.name, q.host.name) != 0))
		abort();
	return 0;
}
