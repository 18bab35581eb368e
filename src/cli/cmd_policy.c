/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"
#include "cli/cli.h"
#include "policy/schema.h"

int cmd_policy(const struct invocation *inv, int *ret_status, struct error *e)
{
	_cleanup_buf_ struct buf out = BUF_INIT(BUF_MAX_TEXT);
	const struct policy *p;
	int r = invocation_no_words(inv, e);

	(void)ret_status;
	if (r < 0)
		return r;
	if (inv->options.schema) {
		settings_print_schema(&out);
		return output_write(&out, e);
	}
	r = invocation_policy(inv, NULL, &p, e);
	if (r < 0)
		return r;
	invocation_notes(inv, p);
	if (inv->options.json)
		policy_print_json(p, &out);
	else
		policy_print(p, &out);
	return output_write(&out, e);
}
