/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/explain.h"

#include "base/text.h"
#include "proxy/decide.h"

int proxy_explain(const char *config, size_t len, const struct host *host, uint16_t port,
		  struct explanation *ret, struct error *e)
{
	static const struct own_addresses unknown;
	struct config *c = NULL;
	struct verdict v;
	int r = config_parse(config, len, &c, e);

	if (r < 0)
		return r;
	decide_host(c, host, port, &v);
	if (v.allow && host->kind != HOST_NAME)
		decide_address(c, &unknown, host, host, port, &v);
	config_free(c);
	ret->allow = v.allow;
	text_copy(ret->reason, sizeof(ret->reason), v.allow ? "" : v.reason);
	return 0;
}
