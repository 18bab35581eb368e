/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/text.h"
#include "cli/cli.h"
#include "sandbox/backend.h"

#define JSON_INDENT 2

static size_t count_enforced(const struct properties *props)
{
	size_t n = 0;

	for (size_t i = 0; i < props->n; i++)
		n += props->v[i].enforced;
	return n;
}

static void print_text(const struct properties *props, struct buf *out)
{
	size_t width = strlen("property");

	for (size_t i = 0; i < props->n; i++) {
		size_t n = strlen(props->v[i].name);

		width = n > width ? n : width;
	}
	buf_printf(out, "%-*s  enforced by\n", (int)width, "property");
	for (size_t i = 0; i < props->n; i++) {
		const struct property *p = &props->v[i];

		buf_printf(out, "%-*s  ", (int)width, p->name);
		if (p->enforced) {
			text_append_safe(out, p->mechanism ? p->mechanism : "yes");
		} else {
			buf_puts(out, "MISSING: ");
			text_append_safe(out, p->missing ? p->missing : "not available here");
		}
		buf_putc(out, '\n');
		if (!p->enforced && p->remedy) {
			buf_printf(out, "%-*s  mend with: ", (int)width, "");
			text_append_safe(out, p->remedy);
			buf_putc(out, '\n');
		}
	}
	buf_printf(out, "%zu of %zu properties enforced\n", count_enforced(props), props->n);
}

static void print_json(const struct properties *props, struct buf *out)
{
	struct json j = { .out = out, .indent = JSON_INDENT };

	json_begin_object(&j);
	json_kstring(&j, "backend", "native");
	json_kbool(&j, "complete", count_enforced(props) == props->n);
	json_key(&j, "properties");
	json_begin_array(&j);
	for (size_t i = 0; i < props->n; i++) {
		const struct property *p = &props->v[i];

		json_begin_object(&j);
		json_kstring(&j, "name", p->name);
		json_kbool(&j, "enforced", p->enforced);
		json_kstring(&j, "mechanism", p->enforced ? p->mechanism : NULL);
		json_kstring(&j, "missing", p->enforced ? NULL : p->missing);
		json_kstring(&j, "remedy", p->enforced ? NULL : p->remedy);
		json_end_object(&j);
	}
	json_end_array(&j);
	json_end_object(&j);
	buf_putc(out, '\n');
}

int cmd_check(const struct invocation *inv, int *ret_status, struct error *e)
{
	_cleanup_buf_ struct buf out = BUF_INIT(BUF_MAX_TEXT);
	struct properties props = { 0 };
	int r = invocation_no_words(inv, e);

	if (r < 0)
		return r;
	if (inv->options.attack)
		return error_set(e, ENOTSUP, "--attack is not available in this version");
	r = native_probe(inv->arena, &props, e);
	if (r < 0)
		return r;
	if (inv->options.json)
		print_json(&props, &out);
	else
		print_text(&props, &out);
	if (count_enforced(&props) == 0)
		*ret_status = EXIT_AMBIT;
	else if (count_enforced(&props) < props.n)
		*ret_status = EXIT_DENIED;
	return output_write(&out, e);
}
