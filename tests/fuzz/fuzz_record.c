/* SPDX-License-Identifier: Apache-2.0 */
/* Records of the proxy: whatever it sends, the fields stay within their bounds. */
#include <stdlib.h>
#include <string.h>

#include "supervise/egress_record.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct egress_record r;
	struct violation v;

	if (egress_record_parse((const char *)data, size, &r) < 0)
		return 0;
	if (r.kind < 0 || r.kind >= EGRESS_KIND_MAX_ || !memchr(r.host, 0, sizeof(r.host)) ||
	    !memchr(r.rule, 0, sizeof(r.rule)) || !memchr(r.reason, 0, sizeof(r.reason)) ||
	    !memchr(r.via, 0, sizeof(r.via)) || !memchr(r.address, 0, sizeof(r.address)))
		abort();
	egress_record_violation(&r, &v);
	if (!memchr(v.path, 0, sizeof(v.path)))
		abort();
	return 0;
}
