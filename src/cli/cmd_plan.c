/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "base/buf.h"
#include "base/log.h"
#include "cli/cli.h"
#include "sandbox/backend.h"

int plan_run(const struct invocation *inv, const struct policy *p, struct backend_decision *chosen,
	     const struct plan **ret, struct error *e)
{
	struct plan_facts facts;
	int r;

	plan_gather_facts(inv->arena, inv->environ_in, &facts);
	facts.dry = true;
	r = backend_choose(inv->arena, p, NULL, &facts, chosen, e);
	return r < 0 ? r : chosen->backend->compile(inv->arena, p, &facts, &path_host_view, ret, e);
}

int cmd_plan(const struct invocation *inv, int *ret_status, struct error *e)
{
	_cleanup_buf_ struct buf out = BUF_INIT(BUF_MAX_TEXT);
	const struct policy *p;
	struct backend_decision chosen = { 0 };
	const struct plan *plan;
	char *const *argv;
	int r = invocation_argv(inv, &argv, e);

	(void)ret_status;
	if (r == 0)
		r = invocation_policy(inv, NULL, &p, e);
	if (r != 0)
		return r;
	invocation_notes(inv, p);
	if (!p->enabled || p->backend == BACKEND_NONE)
		return error_set(e, EINVAL,
				 "there is nothing to plan: the policy asks for no sandbox");
	if (p->backend == BACKEND_SEATBELT)
		return plan_seatbelt(inv, p, e);
	r = plan_run(inv, p, &chosen, &plan, e);
	for (size_t i = 0; i < chosen.lost.n; i++)
		log_warn("%s", output_safe(inv->arena, chosen.lost.v[i].text));
	if (r < 0)
		return r;
	if (inv->options.json)
		plan_print_json(plan, &out);
	else
		plan_print(plan, &out);
	return output_write(&out, e);
}
