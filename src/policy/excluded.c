/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The judge of excludedCommands. The command line is the agent's and hostile, the entries are
 * the user's. Running outside is all of the user's rights, so every doubt ends inside.
 *
 * Programs that run the program named by their arguments (env, sudo, xargs, sh -c) would
 * make an entry mean "everything"; an entry for one must also name what it runs.
 */
#include "policy/excluded.h"

#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "policy/shell_words.h"

/* Run what their arguments, their input or a file says. The builtins are here for other shells. */
static const char *const runners[] = {
	".",        "ash",    "bash",    "builtin", "busybox", "chroot",  "chrt",    "command",
	"csh",      "dash",   "doas",    "env",     "eval",    "exec",    "fish",    "flock",
	"ionice",   "ksh",    "ld.so",   "mksh",    "nice",    "nohup",   "nsenter", "numactl",
	"parallel", "pkexec", "prlimit", "runuser", "script",  "setarch", "setpriv", "setsid",
	"sh",       "source", "ssh",     "stdbuf",  "strace",  "su",      "sudo",    "taskset",
	"tcsh",     "time",   "timeout", "unshare", "watch",   "xargs",   "zsh",
};

const char *command_place_text(enum command_place place)
{
	switch (place) {
	case COMMAND_SANDBOXED:
		return "sandboxed";
	case COMMAND_OUTSIDE:
		return "allowed outside";
	case COMMAND_REFUSED:
		break;
	}
	return "refused";
}

/* By its last component: /usr/bin/env is env. */
bool command_is_runner(const char *word)
{
	const char *slash = strrchr(word, '/'), *name = slash ? slash + 1 : word;

	for (size_t i = 0; i < ARRAY_LEN(runners); i++) {
		if (strcmp(name, runners[i]) == 0)
			return true;
	}
	return false;
}

static size_t without_suffix(const char *text, bool *ret_more)
{
	size_t n = strlen(text);

	*ret_more = text_ends(text, ":*") || text_ends(text, " *");
	return *ret_more ? n - 2 : n;
}

static bool names_what_it_runs(const struct command_entry *entry)
{
	for (size_t i = 1; i < entry->n; i++) {
		if (entry->words[i][0] != '-' && !strchr(entry->words[i], '='))
			return true;
	}
	return false;
}

int command_entry_parse(struct arena *a, const char *text, struct command_entry *ret,
			struct error *e)
{
	struct shell_words words;
	size_t len = without_suffix(text, &ret->more);

	shell_words_parse(a, text, len, &words);
	if (words.reason)
		return error_set(e, EINVAL,
				 "\"%s\": %s; write the words of one command, with \":*\" at the "
				 "end for any further ones",
				 text, words.reason);
	ret->words = words.v;
	ret->n = words.n;
	/* one word is the command with whatever arguments */
	ret->more = ret->more || words.n == 1;
	return 0;
}

int excluded_check(const char *entry, struct error *e)
{
	_cleanup_arena_ struct arena *a = arena_new();
	struct command_entry parsed;
	int r = command_entry_parse(a, entry, &parsed, e);

	if (r < 0 || !command_is_runner(parsed.words[0]) || names_what_it_runs(&parsed))
		return r;
	return error_set(e, EINVAL,
			 "\"%s\" would let every command out: %s runs others; name the one, as in "
			 "\"%s docker:*\"",
			 entry, parsed.words[0], parsed.words[0]);
}

static bool entry_matches(const struct command_entry *entry, char *const *argv)
{
	for (size_t i = 0; i < entry->n; i++) {
		if (!argv[i] || strcmp(argv[i], entry->words[i]) != 0)
			return false;
	}
	return entry->more || !argv[entry->n];
}

static const struct text_rule *find_entry(const struct policy *p, struct arena *a,
					  char *const *argv)
{
	const struct text_rules *list = &p->excluded_commands;

	for (size_t i = 0; i < list->n; i++) {
		struct command_entry entry;

		if (command_entry_parse(a, list->v[i].text, &entry, NULL) == 0 &&
		    entry_matches(&entry, argv))
			return &list->v[i];
	}
	return NULL;
}

static bool judge_denied(const struct text_rule *rule, struct command_answer *ret)
{
	if (rule)
		*ret = (struct command_answer){ .place = COMMAND_REFUSED,
						.key = "deniedCommands",
						.rule = rule,
						.reason = "a denied command" };
	return rule != NULL;
}

static void judge_excluded(const struct policy *p, struct arena *a, char *const *argv,
			   struct command_answer *ret)
{
	*ret = (struct command_answer){ .place = COMMAND_SANDBOXED,
					.key = "excludedCommands",
					.reason = "not an excluded command" };
	if (!argv[0])
		return;
	ret->rule = find_entry(p, a, argv);
	if (!ret->rule)
		return;
	ret->argv = argv;
	if (p->only_managed_outside && !layer_is_managed(ret->rule->origin.layer)) {
		ret->reason = "the managed settings keep the sandbox on";
	} else if (!p->allow_unsandboxed_commands) {
		ret->place = COMMAND_REFUSED;
		ret->reason = "an excluded command, but allowUnsandboxedCommands is false";
	} else {
		ret->place = COMMAND_OUTSIDE;
		ret->reason = "an excluded command";
	}
}

void command_judge_argv(const struct policy *p, struct arena *a, char *const *argv,
			struct command_answer *ret)
{
	if (!judge_denied(denied_find_argv(p, a, argv), ret))
		judge_excluded(p, a, argv, ret);
}

/* Nothing but words: then it matters what they are. */
void command_judge_text(const struct policy *p, struct arena *a, const char *text,
			struct command_answer *ret)
{
	struct shell_words words;

	if (judge_denied(denied_find_text(p, a, text), ret))
		return;
	shell_words_parse(a, text, strlen(text), &words);
	if (!words.reason) {
		judge_excluded(p, a, words.v, ret);
		return;
	}
	*ret = (struct command_answer){
		.place = COMMAND_SANDBOXED,
		.key = "excludedCommands",
		.reason = p->excluded_commands.n == 0
				  ? "no command is excluded"
				  : arena_printf(a, "not one simple command with literal words: %s",
						 words.reason),
	};
}

static void find_program(const struct policy *p, struct arena *a, const char *path,
			 struct command_answer *ret)
{
	const char *script;

	if (ret->place != COMMAND_OUTSIDE)
		return;
	ret->program = excluded_program(p, a, ret->argv[0], path, &ret->reason);
	script = ret->program ? excluded_script(p, a, ret->argv) : NULL;
	if (script) {
		ret->program = NULL;
		ret->reason = script;
	}
	if (!ret->program)
		ret->place = COMMAND_SANDBOXED;
}

void command_decide_text(const struct policy *p, struct arena *a, const char *text,
			 const char *path, struct command_answer *ret)
{
	command_judge_text(p, a, text, ret);
	find_program(p, a, path, ret);
}

void command_decide_argv(const struct policy *p, struct arena *a, char *const *argv,
			 const char *path, struct command_answer *ret)
{
	command_judge_argv(p, a, argv, ret);
	find_program(p, a, path, ret);
}

bool command_auto_allowed(const struct policy *p, const struct command_answer *answer)
{
	return p->enabled && p->backend != BACKEND_NONE && p->auto_allow_bash &&
	       answer->place == COMMAND_SANDBOXED;
}

bool command_can_bypass(const struct policy *p, bool asked)
{
	return asked && p->allow_unsandboxed_commands && !p->only_managed_outside;
}
