/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one table of commands. Names of later versions are in it so that they
 * are answered as such instead of as an unknown word.
 */
#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "cli/cli.h"
#include "policy/inputs.h"

#define LINE_SHOWN_MAX 512
#define SHARED (GROUP_GENERAL | GROUP_POLICY | GROUP_RUN)

/* clang-format off */
const struct command commands_table[] = {
	{ "run", cmd_run, SHARED | GROUP_SHELL | GROUP_JSON, true, NULL,
	  "[OPTIONS] [--] COMMAND [ARG...]\n[OPTIONS] -c STRING",
	  "run a command in the sandbox" },
	{ "check", cmd_check, GROUP_GENERAL | GROUP_JSON | GROUP_ATTACK, false, NULL,
	  "[--json] [--attack]",
	  "what this machine can enforce, what is missing and how to mend it" },
	{ "policy", cmd_policy, SHARED | GROUP_JSON | GROUP_SCHEMA, false, NULL,
	  "[OPTIONS] [--json]\n--schema",
	  "the resolved policy, each rule with where it came from" },
	{ "explain", cmd_explain, SHARED | GROUP_JSON, false, "read|write|connect|unix|command",
	  "[OPTIONS] read|write|connect|unix|command TARGET",
	  "whether something is allowed, and the rule that decides" },
	{ "plan", cmd_plan, SHARED | GROUP_SHELL | GROUP_JSON, true, NULL,
	  "[OPTIONS] [--json] [--] COMMAND [ARG...]",
	  "what run would do; runs nothing" },
	{ "wrap", cmd_wrap, SHARED | GROUP_SHELL, true, NULL,
	  "[OPTIONS] [--] COMMAND [ARG...]\n[OPTIONS] -c STRING",
	  "print a shell line that runs the command in the sandbox" },
	{ "learn", cmd_learn, SHARED | GROUP_SHELL | GROUP_LEARN, true, NULL,
	  "[OPTIONS] [-o FILE | --update FILE] [--] COMMAND [ARG...]\n[OPTIONS] -c STRING",
	  "run a command, watch what it uses, and write the least policy that allows it" },
	{ "log", cmd_log, GROUP_GENERAL | GROUP_JSON | GROUP_LOG, false, "verify",
	  "[OPTIONS]\n[--file FILE] [--json] verify",
	  "read, follow (-f) and verify the audit log" },
	{ "trust", cmd_trust, GROUP_GENERAL, false, NULL, "[DIR]",
	  "let a project's own settings widen the policy, until they change" },
	{ "mcp", cmd_mcp, GROUP_GENERAL | GROUP_POLICY, false, "serve", "serve [OPTIONS]",
	  "serve the tools execute, execute_file and batch_execute over MCP, on stdin and stdout" },
	{ "help", cmd_help, GROUP_GENERAL, false, NULL, "[COMMAND]", "show this, or the help of a command" },
	{ .name = "agent" },
};
/* clang-format on */
const size_t commands_count = ARRAY_LEN(commands_table);

const struct command *command_find(const char *name)
{
	for (size_t i = 0; i < commands_count; i++) {
		if (strcmp(commands_table[i].name, name) == 0)
			return &commands_table[i];
	}
	return NULL;
}

static const char *line_of(struct arena *a, char *const *words)
{
	_cleanup_buf_ struct buf b = BUF_INIT(LINE_SHOWN_MAX);

	for (size_t i = 0; words[i]; i++) {
		if (i)
			buf_putc(&b, ' ');
		text_append_shell(&b, words[i]);
	}
	return output_safe(a, b.overflow ? words[0] : buf_str(&b));
}

int command_refuse(struct arena *a, char *const *environ_in, char *const *words, struct error *e)
{
	const char *word = words[0], *shown = output_safe(a, word);
	struct nearest near = { 0 };

	if (word[0] == '-')
		return error_set(
			e, EINVAL,
			"%s: options follow the command, as in: ambit run [OPTIONS] -- COMMAND",
			shown);
	for (size_t i = 0; i < commands_count; i++) {
		if (commands_table[i].run)
			nearest_try(&near, word, commands_table[i].name);
	}
	if (near.name)
		return error_set(e, EINVAL, "unknown command '%s'; did you mean: ambit %s?", shown,
				 near.name);
	if (inputs_find_program(a, environ_in, word))
		return error_set(e, EINVAL,
				 "unknown command '%s'; to run it in the sandbox: ambit run -- %s",
				 shown, line_of(a, words));
	return error_set(e, EINVAL, "unknown command '%s' (see: ambit help)", shown);
}
