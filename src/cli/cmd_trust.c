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
	struct inputs_request req = { .chdir = o->n_words > 0 ? o->words[0] : NULL };
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
static void show_widening(const struct policy *p, const char *file, struct buf *out)
{
	size_t shown = 0;

	for (size_t i = 0; i < p->notes.n; i++) {
		const char *text = p->notes.v[i].text, *advice = strstr(text, " (accept with");

		if (p->notes.v[i].origin.layer != LAYER_PROJECT)
			continue;
		text_append_safe_n(out, text, advice ? (size_t)(advice - text) : strlen(text));
		buf_putc(out, '\n');
		shown++;
	}
	text_append_safe(out, file);
	buf_puts(out, shown > 0 ? ": this counts from now on, until the file changes\n"
				: ": trusted until it changes; now it widens nothing\n");
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
	_cleanup_audit_ struct audit *log = invocation_log(p);
	struct error e = { 0 };

	if (audit_policy_change(log, &change, &e) < 0)
		log_warn("the audit log cannot be written: %s; the trust is not recorded", e.text);
}

int cmd_trust(const struct invocation *inv, int *ret_status, struct error *e)
{
	_cleanup_buf_ struct buf out = BUF_INIT(BUF_MAX_TEXT);
	struct policy_inputs in;
	const struct policy *p;
	int r = find_project(inv, &in, e);

	(void)ret_status;
	if (r < 0)
		return r;
	in.trusted = NULL;
	r = policy_load(inv->arena, &in, &p, e);
	if (r < 0)
		return r;
	show_widening(p, in.project_file, &out);
	r = p->project_lines.n
		    ? remember(inv, &in, p, e)
		    : error_set(e, EINVAL, "%s: gone, or a line break in its path: not trusted",
				in.project_file);
	if (r < 0)
		return r;
	record(p, in.project_file);
	return output_write(&out, e);
}
