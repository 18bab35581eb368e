/* SPDX-License-Identifier: Apache-2.0 */
/* ambit run. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/text.h"
#include "cli/cli.h"
#include "policy/inputs.h"
#include "supervise/run.h"

/* --report none is the absence of a report; --json asks for one on stderr. */
static const char *report_path(const struct options *o)
{
	if (!o->report)
		return o->json ? "-" : NULL;
	return strcmp(o->report, "none") == 0 ? NULL : o->report;
}

/* Opened before the run: a report that cannot be written stops it. */
static int open_report(const char *path, int *ret, struct error *e)
{
	*ret = -1;
	if (!path)
		return 0;
	*ret = strcmp(path, "-") == 0 ? fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3)
				      : open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	return *ret < 0 ? error_set(e, errno, "--report %s: %s", path, strerror(errno)) : 0;
}

#define TOLD_MAX 20 /* lines on stderr; the report has them all */

static void tell_denied(void *ctx, const struct report_entry *entry)
{
	_cleanup_buf_ struct buf b = BUF_INIT(BUF_MAX_TEXT);
	unsigned *told = ctx;

	if (++*told > TOLD_MAX)
		return;
	report_describe(entry, &b);
	log_warn("%s", buf_str(&b));
}

static void tell_note(void *ctx, const char *text)
{
	(void)ctx;
	log_warn("%s", text);
}

/* What is left to say when the command has ended. */
static void tell_end(const struct report *r, const struct run_result *result, unsigned told)
{
	_cleanup_buf_ struct buf b = BUF_INIT(BUF_MAX_TEXT);

	if (told > TOLD_MAX)
		log_warn("and %u more things were denied (--report FILE lists them)",
			 told - TOLD_MAX);
	if (result->timed_out)
		log_warn("limit: the time limit was reached after %.1f s and the command ended",
			 (double)result->wall_ms / 1000);
	if (r->n_later == 0)
		return;
	buf_puts(&b, "this run made or changed files that run later outside the sandbox:");
	for (size_t i = 0; i < r->n_later && i < TOLD_MAX; i++) {
		buf_puts(&b, i ? ", " : " ");
		text_append_safe(&b, r->later[i].target);
	}
	if (r->n_later > TOLD_MAX)
		buf_printf(&b, " and %zu more", r->n_later - TOLD_MAX);
	log_warn("%s", buf_str(&b));
}

static int write_report(int fd, const struct report *r, char *const *argv,
			const struct run_result *result, struct error *e)
{
	_cleanup_buf_ struct buf b = BUF_INIT(BUF_MAX_TEXT);
	int err;

	if (fd < 0)
		return 0;
	report_print_json(r, argv, result, &b);
	err = fd_write_all(fd, buf_str(&b), b.len);
	return err < 0 ? error_set(e, -err, "cannot write the report: %s", strerror(-err)) : 0;
}

static int run_sandboxed(const struct invocation *inv, struct run_request *req, int *ret_status,
			 struct error *e)
{
	struct report report = { .a = inv->arena };
	struct run_result result = { 0 };
	_cleanup_fd_ int fd = -1;
	unsigned told = 0;
	int r = open_report(report_path(&inv->options), &fd, e);

	if (r < 0)
		return r;
	req->report = &report;
	req->proxy_program = inputs_helper(inv->arena, "ambit-proxy");
	req->report_reads = inv->options.report_reads;
	req->tell = tell_denied;
	req->note = tell_note;
	req->ctx = &told;
	r = run_command(req, &result, e);
	req->report = NULL;
	req->ctx = NULL;
	if (r < 0)
		return r;
	*ret_status = result.exit_code;
	tell_end(&report, &result, told);
	return write_report(fd, &report, req->argv, &result, e);
}

static int open_control(const struct invocation *inv, struct control *c, struct error *e)
{
	const char *text = inv->options.control_fd;
	uint64_t fd;

	if (!text)
		return 0;
	if (text_parse_u64(text, INT_MAX, &fd) < 0)
		return error_set(e, EINVAL, "--control-fd: '%s' is not the number of a descriptor",
				 output_safe(inv->arena, text));
	return control_open(c, (int)fd, e);
}

static int run(const struct invocation *inv, struct run_request *req, int *ret_status,
	       struct error *e)
{
	struct policy_inputs inputs;
	int r = invocation_inputs(inv, &inputs, e);

	if (r == 0)
		r = policy_load(inv->arena, &inputs, &req->policy, e);
	if (r < 0)
		return r;
	invocation_notes(inv, req->policy);
	r = outside_run(inv, req->policy, req->argv, e);
	if (r < 0)
		return r;
	req->control->inputs = &inputs;
	req->control->start = req->policy;
	return run_sandboxed(inv, req, ret_status, e);
}

int cmd_run(const struct invocation *inv, int *ret_status, struct error *e)
{
	struct control control = { .fd = -1 };
	struct run_request req = { .environ_in = inv->environ_in, .control = &control };
	int r = open_control(inv, &control, e);

	if (r == 0)
		r = invocation_argv(inv, &req.argv, e);
	if (r == 0)
		r = run(inv, &req, ret_status, e);
	control_close(&control);
	return r;
}
