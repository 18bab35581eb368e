/* SPDX-License-Identifier: Apache-2.0 */
/* Help, from the two tables. */
#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/text.h"
#include "cli/cli.h"
#include "policy/inputs.h"
#include "policy/schema.h"

#define HELP_COLUMN 34 /* where the explanations start */

void help_usage(struct buf *out)
{
	buf_puts(out, "usage: ambit run [OPTIONS] [--] COMMAND [ARG...]\n"
		      "       ambit run [OPTIONS] -c STRING\n"
		      "See: ambit help\n");
}

void help_overview(struct buf *out)
{
	buf_puts(out, "ambit - a sandbox for what agents do on your machine\n\n");
	buf_puts(out, "usage: ambit COMMAND [OPTIONS] ...\n\ncommands:\n");
	for (size_t i = 0; i < commands_count; i++) {
		const struct command *c = &commands_table[i];

		if (c->run)
			buf_printf(out, "  %-8s  %s\n", c->name, c->help);
	}
	buf_puts(out,
		 "\nFirst steps:\n"
		 "  ambit run -- npm test             the command may write here and in /tmp only\n"
		 "  ambit policy                      what that means in this directory\n"
		 "  ambit check                       what this machine can enforce\n"
		 "\nambit help COMMAND tells more, and so does the manual page ambit(1).\n");
}

static void print_option(const struct option *o, struct buf *out)
{
	size_t start = out->len, len;

	buf_puts(out, "  ");
	if (o->letter)
		buf_printf(out, "-%c, ", o->letter);
	else
		buf_puts(out, "    ");
	buf_printf(out, "--%s%s%s", o->name, o->argument ? " " : "",
		   o->argument ? o->argument : "");
	len = out->len - start;
	if (len + 2 > HELP_COLUMN) {
		buf_putc(out, '\n');
		len = 0;
	}
	buf_printf(out, "%*s%s\n", (int)(HELP_COLUMN - len), "", o->help);
}

static void print_usage_lines(const struct command *c, struct buf *out)
{
	const char *line = c->usage;

	for (const char *lead = "usage:"; line; lead = "      ") {
		size_t len = strcspn(line, "\n");

		buf_printf(out, "%s ambit %s %.*s\n", lead, c->name, (int)len, line);
		line = line[len] ? line + len + 1 : NULL;
	}
}

void help_command(const struct command *c, struct buf *out)
{
	print_usage_lines(c, out);
	buf_printf(out, "\n%s\n\noptions:\n", c->help);
	for (size_t i = 0; i < options_count; i++) {
		const struct option *o = &options_table[i];

		if (o->groups & c->groups)
			print_option(o, out);
	}
}

static void list_commands_of(const struct option *o, struct buf *out)
{
	const char *comma = "";

	for (size_t i = 0; i < commands_count; i++) {
		const struct command *c = &commands_table[i];

		if (!c->run || !(c->groups & o->groups))
			continue;
		buf_printf(out, "%s%s", comma, c->name);
		comma = ",";
	}
}

void help_list_options(struct buf *out)
{
	for (size_t i = 0; i < commands_count; i++) {
		const struct command *c = &commands_table[i];

		if (c->run)
			buf_printf(out, "command\t%s\t%s\t%s\n", c->name,
				   c->takes_command ? "command"
				   : c->first       ? c->first
						    : "-",
				   c->help);
	}
	for (size_t i = 0; i < options_count; i++) {
		const struct option *o = &options_table[i];

		buf_puts(out, "option\t");
		list_commands_of(o, out);
		buf_printf(out, "\t--%s\t-%.1s\t%s\t%s\n", o->name, o->letter ? &o->letter : "",
			   o->argument ? o->argument : "-", o->help);
	}
}

void help_list_settings(struct buf *out)
{
	for (size_t i = 0; i < settings_count; i++)
		buf_printf(out, "%s\n", settings_table[i].key);
}

void help_list_profiles(struct arena *a, char *const *environ_in, struct buf *out)
{
	const struct inputs_request anywhere = { .chdir = "/" };
	struct policy_inputs in;
	struct error e = { 0 };
	const char **names;
	size_t n;

	if (inputs_gather(a, &anywhere, environ_in, &in, &e) < 0)
		return; /* the command itself will say what is wrong */
	n = policy_profiles(a, &in, &names);
	for (size_t i = 0; i < n; i++) {
		text_append_safe(out, names[i]);
		buf_putc(out, '\n');
	}
}

int cmd_help(const struct invocation *inv, int *ret_status, struct error *e)
{
	_cleanup_buf_ struct buf out = BUF_INIT(BUF_MAX_TEXT);
	const struct options *o = &inv->options;
	const struct command *c;

	(void)ret_status;
	if (o->n_words == 0) {
		help_overview(&out);
		return output_write(&out, e);
	}
	if (o->n_words > 1)
		return error_set(e, EINVAL, "help takes one command");
	c = command_find(o->words[0]);
	if (!c)
		return command_refuse(inv->arena, inv->environ_in, o->words, e);
	if (!c->run)
		return error_set(e, ENOTSUP, "%s is not available in this version", c->name);
	help_command(c, &out);
	return output_write(&out, e);
}
