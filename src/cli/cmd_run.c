/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ambit run. Running without a sandbox is possible when the user says so, in
 * one of three ways; it is never the outcome of a failure, always said on
 * stderr (-q does not silence it), and not for those inside a sandbox or
 * under managed settings that keep it on.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/text.h"
#include "cli/cli.h"
#include "cli/inputs.h"
#include "policy/schema.h"
#include "supervise/run.h"

/* Who asked for no sandbox; NULL = nobody. */
static const char *unsandboxed_by(struct arena *a, const struct policy *p)
{
	const char *key = !p->enabled ? "enabled" : p->backend == BACKEND_NONE ? "backend" : NULL;

	return key ? origin_text(a, &p->value_origin[setting_find(key)]) : NULL;
}

static int check_may_be_unsandboxed(const struct invocation *inv, const char *by, struct error *e)
{
	const struct setting_text off = { "enabled", "false", by, LAYER_OPTION };
	const struct policy *p;
	int r;

	/* AMBIT=1 proves nothing, but who sets it falsely only refuses himself */
	if (inputs_variable(inv->environ_in, "AMBIT"))
		return error_set(e, EPERM, "no sandbox (%s): refused, this is inside a sandbox",
				 by);
	/* "backend": "none" is `enabled: false` by another name: what locks that locks this */
	r = invocation_policy(inv, &off, &p, e);
	return r < 0 ? error_wrap(e, "no sandbox") : 0;
}

/* The caller's own environment, with what was explicitly set for the command. */
static char **unsandboxed_environment(const struct invocation *inv, const struct policy *p)
{
	char **env = NULL;
	size_t n = 0;

	for (size_t i = 0; i < p->env.set.n; i++)
		*ARENA_PUSH(inv->arena, env, n) = arena_printf(
			inv->arena, "%s=%s", p->env.set.v[i].name, p->env.set.v[i].value);
	for (char *const *v = inv->environ_in; *v; v++) {
		size_t len = strcspn(*v, "=");
		bool replaced = false;

		for (size_t i = 0; i < p->env.set.n && !replaced; i++) {
			const char *name = p->env.set.v[i].name;

			replaced = strlen(name) == len && memcmp(name, *v, len) == 0;
		}
		if (!replaced)
			*ARENA_PUSH(inv->arena, env, n) = *v;
	}
	*ARENA_PUSH(inv->arena, env, n) = NULL;
	return env;
}

/* Becomes the command; comes back only when that fails. */
static int run_unsandboxed(const struct invocation *inv, const struct policy *p, const char *by,
			   char *const *argv, struct error *e)
{
	int r = check_may_be_unsandboxed(inv, by, e);

	if (r < 0)
		return r;
	log_error("NO SANDBOX (%s): %s runs with all your rights; no rule and no limit applies",
		  output_safe(inv->arena, by), output_safe(inv->arena, argv[0]));
	if (chdir(p->cwd) < 0)
		return error_set(e, errno, "%s: %s", p->cwd, strerror(errno));
	(void)execvpe(argv[0], argv, unsandboxed_environment(inv, p));
	r = error_set(e, errno, "%s: %s", argv[0], errno == ENOENT ? "not found" : strerror(errno));
	e->exit_code = r == -ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE;
	return r;
}

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
	const char *by;
	int r = invocation_inputs(inv, &inputs, e);

	if (r == 0)
		r = policy_load(inv->arena, &inputs, &req->policy, e);
	if (r < 0)
		return r;
	invocation_notes(inv, req->policy);
	by = unsandboxed_by(inv->arena, req->policy);
	if (by)
		return run_unsandboxed(inv, req->policy, by, req->argv, e);
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
