/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ambit trust: shows what a project's settings file widens and records it as it is, with the
 * profile files that it names. Any later change to one takes its trust away again.
 */
#include <errno.h>
#include <string.h>

#include "audit/audit.h"
#include "base/log.h"
#include "base/text.h"
#include "cli/cli.h"
#include "policy/inputs.h"
#include "policy/trust.h"

static int find_project(const struct invocation *inv, struct policy_inputs *ret, struct error *e)
{
	const struct options *o = &inv->options;
	struct inputs_request req = { .chdir = o->n_words > 0 ? o->words[0] : NULL,
				      .chdir_by = "trust" };
	int r;

	if (o->n_words > 1)
		return error_set(e, EINVAL, "trust takes one directory");
	r = inputs_gather(inv->arena, &req, inv->environ_in, ret, e);
	if (r < 0)
		return r;
	if (ret->only_file)
		return error_set(e, EINVAL,
				 "AMBIT_SETTINGS is set, so that no project's settings are used");
	if (!ret->project_file)
		return error_set(e, ENOENT, "no .ambit.json or .ambit.yaml found from %s upwards",
				 ret->cwd);
	return 0;
}

/* What the loader left out of the untrusted file is what trust lets in. */
static void show_widening(const struct invocation *inv, const struct policy *p, struct buf *out)
{
	for (size_t i = 0; i < p->widening.n; i++) {
		const struct text_rule *w = &p->widening.v[i];

		text_append_safe(out, origin_text(inv->arena, &w->origin));
		buf_puts(out, ": ");
		text_append_safe(out, w->text);
		buf_putc(out, '\n');
	}
	for (size_t i = 0; i < p->notes.n; i++) {
		if (p->notes.v[i].origin.layer != LAYER_PROJECT)
			continue;
		text_append_safe(out, p->notes.v[i].text);
		buf_putc(out, '\n');
	}
}

static void show_trust(const struct policy *p, const char *file, bool already, struct buf *out)
{
	text_append_safe(out, file);
	if (already)
		buf_puts(out, ": trusted already, until it changes");
	else
		buf_puts(out, p->widening.n ? ": this counts from now on, until the file changes"
					    : ": trusted until it changes");
	buf_puts(out, p->widening.n ? "\n" : "; now it widens nothing\n");
}

/* Each of the files, as it is now. */
static bool is_trusted(const char *list, const struct policy *p)
{
	for (size_t i = 0; i < p->project_lines.n; i++) {
		if (!trust_holds(list, p->project_lines.v[i].text))
			return false;
	}
	return p->project_lines.n > 0;
}

/* The files that were read and shown, as they were then. */
static int remember(const struct invocation *inv, const struct policy_inputs *in,
		    const struct policy *p, struct error *e)
{
	size_t n = p->project_lines.n;
	const char **lines = arena_array(inv->arena, n, sizeof(*lines));

	for (size_t i = 0; i < n; i++)
		lines[i] = p->project_lines.v[i].text;
	return trust_add(inputs_trust_store(inv->arena, inv->environ_in, in->home), lines, n, e);
}

static void record(const struct policy *p, const char *file)
{
	const struct audit_policy_change change = {
		.by = "trust", .action = "trust", .value = file, .scope = "until the file changes"
	};
	_cleanup_audit_ struct audit *log = audit_open_for(p);
	struct error e = { 0 };

	if (audit_policy_change(log, &change, &e) < 0)
		log_error("the audit log cannot be written: %s; the trust is not recorded", e.text);
}

int cmd_trust(const struct invocation *inv, int *ret_status, struct error *e)
{
	_cleanup_buf_ struct buf out = BUF_INIT(BUF_MAX_TEXT);
	struct policy_inputs in;
	const struct policy *p;
	const char *before;
	bool already;
	int r = find_project(inv, &in, e);

	(void)ret_status;
	if (r < 0)
		return r;
	before = in.trusted;
	in.trusted = NULL;
	in.trusting = true;
	r = policy_load(inv->arena, &in, &p, e);
	if (r < 0)
		return r;
	already = is_trusted(before, p);
	show_widening(inv, p, &out);
	show_trust(p, in.project_file, already, &out);
	if (already)
		return output_write(&out, e);
	r = p->project_lines.n
		    ? remember(inv, &in, p, e)
		    : error_set(e, EINVAL, "%s: gone, or a line break in its path: not trusted",
				in.project_file);
	if (r < 0)
		return r;
	record(p, in.project_file);
	return output_write(&out, e);
}
