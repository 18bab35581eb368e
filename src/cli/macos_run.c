/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ambit run on macOS. What the profile denies is known to macOS alone, which writes it into its
 * own log: there are no violations in reports and in the audit log, and reports say so.
 */
#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "base/text.h"
#include "cli/cli.h"
#include "policy/inputs.h"
#include "sandbox/seatbelt/seatbelt.h"
#include "supervise/journal.h"
#include "supervise/session.h"

#define DENIALS                                                                                    \
	"what is denied is told by macOS's log only: log stream --predicate "                      \
	"'eventMessage CONTAINS \"ambit\"'"

static int refuse_options(const struct options *o, struct error *e)
{
	const struct {
		const char *name;
		bool used;
	} rows[] = {
		{ "--log", o->log != NULL },
		{ "--control-fd", o->control_fd != NULL },
		{ "--events-fd", o->events_fd != NULL },
		{ "--env-fd", o->env_fd != NULL },
		{ "--ask", o->ask },
		{ "--report-reads", o->report_reads },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		if (rows[i].used)
			return error_set(e, ENOTSUP,
					 "%s is not available on macOS: it needs the supervisor of "
					 "the Linux backends",
					 rows[i].name);
	}
	return 0;
}

static const char *report_path(const struct options *o)
{
	if (!o->report)
		return o->json ? "-" : NULL;
	return strcmp(o->report, "none") == 0 ? NULL : o->report;
}

/* Before the command starts: what is weaker than was asked for. */
static void tell_before(const struct invocation *inv, const struct policy *p, struct report *report)
{
	for (size_t i = 0; i < report->lost.n; i++)
		log_warn("%s", report->lost.v[i].text);
	for (size_t i = 0; i < p->env.set.n; i++) {
		if (text_starts(p->env.set.v[i].name, "DYLD_"))
			log_warn("%s: macOS takes variables of this kind away from whatever "
				 "sandbox-exec starts",
				 output_safe(inv->arena, p->env.set.v[i].name));
	}
	report_note(report, DENIALS);
	log_info("backend: seatbelt (%s)",
		 p->backend == BACKEND_AUTO ? "the one that macOS has" : "asked for");
	log_info("%s", DENIALS);
}

/* The same words as on Linux. */
static void tell_limit(struct report *report, const struct policy *p)
{
	_cleanup_buf_ struct buf b = BUF_INIT(BUF_MAX_TEXT);
	const struct report_entry *entry =
		report_add_limit(report, p, LIMIT_TIMEOUT, "the command was ended");

	if (!entry)
		return;
	report_describe(entry, &b);
	log_error("%s", buf_str(&b));
}

static int run_recorded(const struct invocation *inv, const struct seatbelt_request *req,
			struct report *report, struct run_result *ret, struct error *e)
{
	_cleanup_audit_ struct audit *log = audit_open_for(req->policy);
	struct seatbelt_result end;
	struct journal j;
	int r;

	journal_init(&j, log);
	journal_start(&j, req->policy, req->argv, "seatbelt");
	r = seatbelt_run(inv->arena, req, &end, e);
	ret->exit_code = end.exit_code;
	ret->signal = end.signal;
	ret->timed_out = end.timed_out;
	ret->limit = end.timed_out ? LIMIT_TIMEOUT : -1;
	ret->wall_ms = end.wall_ms;
	memcpy(ret->run, j.run, sizeof(ret->run));
	if (r == 0 && end.timed_out)
		tell_limit(report, req->policy);
	journal_end(&j, r < 0 ? NULL : ret, report, r < 0 ? e : NULL);
	if (j.failed)
		log_error("the audit log cannot be written: %s; the run is not recorded",
			  j.error.text);
	return r;
}

int cmd_run(const struct invocation *inv, int *ret_status, struct error *e)
{
	struct seatbelt_request req = { .environ_in = inv->environ_in, .program = SEATBELT_EXEC };
	struct report report = { .a = inv->arena, .backend = "seatbelt" };
	struct run_result result = { 0 };
	struct plan_facts facts = { 0 };
	_cleanup_report_file_ struct report_file file = { .dir = -1, .fd = -1 };
	_cleanup_buf_ struct buf text = BUF_INIT(BUF_MAX_TEXT);
	int r = refuse_options(&inv->options, e);

	if (r == 0)
		r = invocation_argv(inv, &req.argv, e);
	if (r == 0)
		r = invocation_policy(inv, NULL, &req.policy, e);
	if (r != 0)
		return r;
	invocation_notes(inv, req.policy);
	r = outside_run(inv, req.policy, req.argv, e);
	if (r == 0)
		r = seatbelt_hold(inv->arena, req.policy, &report.lost, e);
	if (r == 0)
		r = report_file_open(&file, report_path(&inv->options), e);
	if (r == 0)
		r = inputs_self(inv->arena, &req.self, e);
	if (r == 0)
		r = plan_prepare(inv->arena, req.policy, &facts, e);
	if (r != 0)
		return r;
	tell_before(inv, req.policy, &report);
	r = run_recorded(inv, &req, &report, &result, e);
	if (r != 0)
		return r;
	*ret_status = result.exit_code;
	report_print_json(&report, req.argv, &result, &text);
	return report_file_write(&file, &text, e);
}
