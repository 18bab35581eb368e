/* SPDX-License-Identifier: Apache-2.0 */
/* The table of `ambit check`. */
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "cli/cli.h"
#include "sandbox/property.h"

size_t check_count(const struct properties *props)
{
	size_t n = 0;

	for (size_t i = 0; i < props->n; i++)
		n += props->v[i].enforced;
	return n;
}

void check_print_text(const struct properties *props, struct buf *out)
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
		if (p->enforced && p->missing) {
			buf_printf(out, "%-*s  but: ", (int)width, "");
			text_append_safe(out, p->missing);
			buf_putc(out, '\n');
		}
		if (p->remedy) {
			buf_printf(out, "%-*s  mend with: ", (int)width, "");
			text_append_safe(out, p->remedy);
			buf_putc(out, '\n');
		}
	}
	buf_printf(out, "%zu of %zu properties enforced\n", check_count(props), props->n);
}

void check_print_json(const struct properties *props, struct json *j)
{
	json_key(j, "properties");
	json_begin_array(j);
	for (size_t i = 0; i < props->n; i++) {
		const struct property *p = &props->v[i];

		json_begin_object(j);
		json_kstring(j, "name", p->name);
		json_kbool(j, "enforced", p->enforced);
		json_kstring(j, "mechanism", p->enforced ? p->mechanism : NULL);
		json_kstring(j, "missing", p->missing);
		json_kstring(j, "remedy", p->remedy);
		json_end_object(j);
	}
	json_end_array(j);
}
