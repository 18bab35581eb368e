/* SPDX-License-Identifier: Apache-2.0 */
/* ambit plan, for macOS: on any machine, since the profile is nothing but text. */
#include "base/log.h"
#include "cli/cli.h"
#include "sandbox/seatbelt/seatbelt.h"

int plan_seatbelt(const struct invocation *inv, const struct policy *p, struct error *e)
{
	const bool private_tmp = p->fs.tmp == TMP_PRIVATE,
		   private_home = p->fs.home == HOME_PRIVATE;
	/* a run makes a directory of its own, and puts its name here */
	const struct seatbelt_facts facts = {
		.tmp = private_tmp ? "/private/tmp/ambit-XXXXXX/tmp" : NULL,
		.home = private_home ? "/private/tmp/ambit-XXXXXX/home" : NULL,
	};
	_cleanup_buf_ struct buf out = BUF_INIT(BUF_MAX_TEXT);
	struct text_rules lost;
	int r = seatbelt_hold(inv->arena, p, &lost, e);

	if (r < 0)
		return r;
	for (size_t i = 0; i < lost.n; i++)
		log_warn("%s", lost.v[i].text);
	r = seatbelt_profile(inv->arena, p, &facts, &out, e);
	return r < 0 ? r : output_write(&out, e);
}
