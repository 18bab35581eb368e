/* SPDX-License-Identifier: Apache-2.0 */
/* Between the files of ambit explain. */
#pragma once

#include "cli/cli.h"
#include "policy/policy.h"

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

int explain_connect(const struct question *q, struct answer *ret, struct error *e) NODISCARD;
int explain_unix(const struct question *q, struct answer *ret, struct error *e) NODISCARD;
