/* SPDX-License-Identifier: Apache-2.0 */
/* Between the files of ambit explain. */
#pragma once

#include "cli/cli.h"
#include "policy/policy.h"

struct plan;

struct question {
	const struct invocation *inv;
	const struct policy *policy;
	const char *access, *target; /* as asked */
};

struct answer {
	enum verdict verdict;
	const char *target; /* canonical: what was judged */
	const char *rule; /* setting that decided, NULL = none */
	const char *entry; /* the deciding entry of that list, NULL = none matched */
	const struct protected_name *name; /* what decided was this one; else NULL */
	const char *source;
	const char *reason;
	const char *hint; /* options that would allow it, NULL = none would */
	const char *word; /* the verdict, where it is not "allowed" or "denied" */
	bool auto_allowed; /* command: an agent need not ask */
};

/* "--option target", safe for a shell. */
const char *explain_hint(struct arena *a, const char *option, const char *target);
/* The target as the kernel would reach it from the command's directory. */
int explain_path_target(const struct question *q, const char **ret, struct error *e) NODISCARD;

/* The option that shows a path: * ? [ in its name mean themselves. */
const char *explain_hint_read(struct arena *a, const char *path);
/* The rule, or the name, as what decides. True: an option could decide otherwise. */
bool explain_rule(const struct question *q, const struct path_rule *r, struct answer *ret);
void explain_protected(const struct question *q, const struct protected_name *n,
		       struct answer *ret);
/*
 * The sandbox may say otherwise than the rules, whose answer is in ret (explain_plan.c): true when
 * it does, with its own. Fails as `ambit run` would where the rules cannot be enforced.
 */
int explain_by_plan(const struct question *q, enum access access, struct answer *ret,
		    bool *ret_decided, struct error *e) NODISCARD;

/* The rules allow this write: true when the broker would not, with its answer (explain_guard.c). */
bool explain_guarded(const struct question *q, const struct plan *plan, struct answer *ret);

/*
 * A protected name denies this write: true when the broker would allow it, in a directory that is not
 * there yet, if the command makes that.
 */
bool explain_new_territory(const struct question *q, const struct plan *plan, struct answer *ret);

int explain_connect(const struct question *q, struct answer *ret, struct error *e) NODISCARD;
int explain_unix(const struct question *q, struct answer *ret, struct error *e) NODISCARD;
