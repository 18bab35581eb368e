/* SPDX-License-Identifier: Apache-2.0 */
/*
 * excludedCommands: where may this command run? Three answers, for `ambit run`, `ambit
 * explain command`, the MCP server and the library alike.
 *
 * An entry names a command by its words: "docker" (with any arguments), "npm run test"
 * (exactly this), "npm run test:*" or "npm run test *" (with any further words). Only a
 * line that is one simple command with literal words (shell_words.h) can match, and only
 * by the words as written: "docker" is not "./docker", not "sudo docker".
 */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "policy/policy.h"

enum command_place {
	COMMAND_SANDBOXED,
	COMMAND_OUTSIDE, /* allowed outside the sandbox */
	COMMAND_REFUSED, /* denied, or excluded while nothing may leave (allowUnsandboxedCommands) */
};

struct command_answer {
	enum command_place place;
	const char *key; /* the list that decided: "excludedCommands" or "deniedCommands" */
	const struct text_rule *rule; /* its entry that matched, or NULL */
	const char *reason; /* never NULL */
	char *const *argv; /* excluded: the words that were judged */
	/*
	 * OUTSIDE: the program, absolute. Execute this with argv, not the text in a shell:
	 * then what was judged is what runs.
	 */
	const char *program;
};

/* "allowed outside", "sandboxed", "refused" */
const char *command_place_text(enum command_place place);

/*
 * By the text or words alone; `program` is not looked for. Pure. The text is a C string
 * of any bytes; argv is what would be executed without a shell.
 */
void command_judge_text(const struct policy *p, struct arena *a, const char *text,
			struct command_answer *ret);
void command_judge_argv(const struct policy *p, struct arena *a, char *const *argv,
			struct command_answer *ret);

/*
 * The full answer: OUTSIDE only if besides the program is found (path = the value of PATH, NULL =
 * a default) in a place that the sandbox cannot write to, or the command could replace it
 * from inside and then be let out.
 */
void command_decide_text(const struct policy *p, struct arena *a, const char *text,
			 const char *path, struct command_answer *ret);
void command_decide_argv(const struct policy *p, struct arena *a, char *const *argv,
			 const char *path, struct command_answer *ret);

/* May an agent run it without asking its user? (autoAllowBashIfSandboxed) */
bool command_auto_allowed(const struct policy *p, const struct command_answer *answer);
/* May an agent that asks for it run a command without the sandbox? Its user decides then. */
bool command_can_bypass(const struct policy *p, bool asked);

/* Is the text an entry of excludedCommands, of deniedCommands? (schema.c) */
int excluded_check(const char *entry, struct error *e) NODISCARD;
int denied_check(const char *entry, struct error *e) NODISCARD;

/* An entry of either list, parsed. */
struct command_entry {
	char **words;
	size_t n;
	bool more; /* any further words */
};
int command_entry_parse(struct arena *a, const char *text, struct command_entry *ret,
			struct error *e) NODISCARD;
/* Does the program run what its arguments name (env, sudo, sh)? */
bool command_is_runner(const char *word);

/* denied.c: the entry of deniedCommands that goes against it, or NULL. */
const struct text_rule *denied_find_text(const struct policy *p, struct arena *a, const char *text);
const struct text_rule *denied_find_argv(const struct policy *p, struct arena *a,
					 char *const *argv);

/*
 * excluded_program.c: `name` as execvp() would find it, but only in absolute directories, and only
 * when nothing on the way there can be changed from inside the sandbox. NULL with the
 * reason otherwise.
 */
const char *excluded_program(const struct policy *p, struct arena *a, const char *name,
			     const char *path, const char **ret_reason);
/*
 * `sh ./deploy.sh`, `python3 tool.py`: why not, when a file among the arguments of such a program
 * can be changed from inside; else NULL.
 */
const char *excluded_script(const struct policy *p, struct arena *a, char *const *argv);
/*
 * The variables for an excluded command: of PATH and the like, only the places that cannot be
 * changed from inside. Others that the program needs it finds there, or not at all.
 */
char **excluded_environment(const struct policy *p, struct arena *a, char *const *env);
