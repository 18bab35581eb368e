/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command line: a table of commands over the libraries. A command returns
 * 0 and its exit status, or -errno with the error that main() prints, once.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "cli/options.h"
#include "policy/policy.h"

struct egress_record;
struct run;
struct violation;

enum {
	EXIT_DENIED = 1, /* explain: denied; check: something is missing */
	EXIT_AMBIT = 125, /* ambit itself failed or refused */
	EXIT_NOT_EXECUTABLE = 126,
	EXIT_NOT_FOUND = 127,
};

struct invocation {
	struct arena *arena;
	const struct command *command;
	struct options options;
	const char *chdir_by; /* who gave options.chdir; NULL = --chdir */
	char *const *environ_in;
	bool srt; /* called as srt */
};

typedef int command_fn(const struct invocation *inv, int *ret_status, struct error *e);

struct command {
	const char *name;
	command_fn *run; /* NULL: belongs to a later version, shown nowhere */
	unsigned groups; /* of options */
	bool takes_command; /* options end at the first word */
	const char *first; /* what the first word can be, "a|b"; NULL = anything */
	const char *usage; /* after the name; one line per form */
	const char *help;
};

extern const struct command commands_table[];
extern const size_t commands_count;

const struct command *command_find(const char *name);
/* The error for words of which the first is not a command. */
int command_refuse(struct arena *a, char *const *environ_in, char *const *words, struct error *e);

command_fn cmd_run, cmd_policy, cmd_explain, cmd_plan, cmd_check, cmd_wrap, cmd_trust, cmd_mcp,
	cmd_log, cmd_learn, cmd_help;

/*
 * How this program calls itself, for nobody else's use: true when argv[1] is such a word, with
 * the status to exit with. own_words.c, or macos.c.
 */
bool own_word(char *const *argv, char *const *environ_in, int *ret_status);

/* help.c */
void help_overview(struct buf *out);
void help_command(const struct command *c, struct buf *out);
void help_usage(struct buf *out); /* a few lines */
/* Tab-separated, for completion and tools/checkdocs.py. */
void help_list_options(struct buf *out);
void help_list_settings(struct buf *out);
void help_list_profiles(struct arena *a, char *const *environ_in, struct buf *out);

/* ask.c: --ask at a terminal */
int ask_check(struct error *e) NODISCARD;
void ask_person(struct run *run, const struct egress_record *r, const char *grant_file);
void ask_person_write(struct run *run, const struct violation *v, const char *grant_file);

/* report_file.c: where --report goes; NULL = nowhere, "-" = stderr */
struct report_file {
	const char *path, *name; /* name: below dir */
	int dir, fd; /* dir: -1 when it is a descriptor of ours */
};
int report_file_open(struct report_file *f, const char *path, struct error *e) NODISCARD;
int report_file_write(struct report_file *f, const struct buf *text, struct error *e) NODISCARD;
void report_file_close(struct report_file *f);
#define _cleanup_report_file_ __attribute__((cleanup(report_file_close)))

/* output.c */
int output_write(const struct buf *b, struct error *e) NODISCARD; /* to stdout */
/* Text from outside, escaped to one harmless line. */
const char *output_safe(struct arena *a, const char *s);

/*
 * invocation.c: the policy that options, environment and files make, and one
 * more setting after them (NULL = none).
 */
int invocation_policy(const struct invocation *inv, const struct setting_text *extra,
		      const struct policy **ret, struct error *e) NODISCARD;
/* The same in two steps, for who needs the inputs again. */
int invocation_inputs(const struct invocation *inv, struct policy_inputs *ret, struct error *e)
	NODISCARD;
/* What the policy has to say to the user, as warnings. */
void invocation_notes(const struct invocation *inv, const struct policy *p);
/* The command to run: the words, or the shell for -c. -EINVAL without any. */
int invocation_argv(const struct invocation *inv, char *const **ret, struct error *e) NODISCARD;
/*
 * outside.c: becomes the command when it runs without a sandbox, because somebody said so or
 * because it is excluded. 0: it is to be sandboxed.
 */
int outside_run(const struct invocation *inv, const struct policy *p, char *const *argv,
		struct error *e) NODISCARD;
/* Who asked for no sandbox at all (NULL = nobody); an error when that is not for the caller to ask. */
int outside_asked(const struct invocation *inv, const struct policy *p, const char **ret,
		  struct error *e) NODISCARD;
/* cmd_run.c, macos_run.c: does this build have it? Not asked about auto and none. */
bool run_has_backend(enum backend_choice choice);
/* cmd_plan.c, on Linux: the backend that a run would choose, and its plan. */
struct backend_decision;
struct plan;
int plan_run(const struct invocation *inv, const struct policy *p, struct backend_decision *chosen,
	     const struct plan **ret, struct error *e) NODISCARD;
/* plan_seatbelt.c: the profile that a run on macOS would use. */
int plan_seatbelt(const struct invocation *inv, const struct policy *p, struct error *e) NODISCARD;
/* check_show.c: what is held, for people and as a member of a JSON object. */
struct json;
struct properties;
size_t check_count(const struct properties *props); /* those that are */
void check_print_text(const struct properties *props, struct buf *out);
void check_print_json(const struct properties *props, struct json *j);
/* cmd_run.c: runs the request and tells what there is to tell. */
struct run_request;
struct events;
int run_sandboxed(const struct invocation *inv, struct run_request *req, struct events *events,
		  int *ret_status, struct error *e) NODISCARD;
/* No words are taken. */
int invocation_no_words(const struct invocation *inv, struct error *e) NODISCARD;
