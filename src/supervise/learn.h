/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From what a command was seen to do to the least policy under which it does it again. The
 * observations come from a run that was allowed much (cli/cmd_learn.c); whatever that
 * run was refused is not learned, only listed, for a person to decide.
 *
 *   learn_new()  learn_used()... while the command runs  learn_finish()  rules
 */
#pragma once

#include <stddef.h>
#include <sys/types.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/path.h"
#include "policy/policy.h"
#include "supervise/egress_record.h"
#include "supervise/report.h"
#include "supervise/session.h"

/* One line of the policy. */
struct learned_rule {
	const char *key; /* "filesystem.allowWrite" */
	const char *value;
	const char *comment; /* what needed it; one line, of safe text */
};

struct learned_rules {
	struct learned_rule *v; /* rules of one key stand together */
	size_t n;
};

struct learned {
	struct learned_rules rules;
	struct learned_rules refused; /* value: an option or setting as text */
};

struct learn;

/* base: what is allowed anyway; used until learn_finish(). */
struct learn *learn_new(struct arena *a, const struct policy *base, const struct view *view);
/* VIOLATION_USED and what follows it */
void learn_used(struct learn *l, const struct violation *v);
void learn_decision(struct learn *l, const struct egress_record *r);
/* Look at what listens inside. */
void learn_look(struct learn *l, pid_t init);
/* A setting that the user gave for the run and that it may have needed. */
void learn_given(struct learn *l, const char *key, const char *value, const char *source);
void learn_finish(struct learn *l, const struct report *report, const struct run_result *result,
		  struct learned *ret);

/*
 * learn_paths.c, pure but for the view: directories that hold all the paths, each as narrow as makes
 * sense for its place. What only a too wide rule would allow goes to ret_wide.
 */
struct learned_path {
	const char *path;
	const char *used; /* an example of what was written below it */
	const char *processes; /* "npm, node" */
	size_t count; /* places below it */
	bool made; /* it was not there before */
	const char *replaced_by; /* too wide: what seems to have been renamed to it, or NULL */
};

struct learned_paths {
	struct learned_path *v;
	size_t n;
};

void learn_generalise(struct arena *a, const struct view *view, const char *home,
		      const struct learned_paths *used, struct learned_paths *ret,
		      struct learned_paths *ret_wide);

/*
 * learn_text.c, pure. A settings file (YAML) with these rules; or a file that is there, with
 * the rules put into it and everything else left as it is.
 */
void learn_print(const struct learned *l, const char *title, struct buf *out);
int learn_update(const char *name, const char *old, const struct learned *l, struct buf *out,
		 struct error *e) NODISCARD;
/* What was not learned, a line each, for people. */
void learn_print_refused(const struct learned *l, const char *lead, struct buf *out);
