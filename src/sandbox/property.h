/* SPDX-License-Identifier: Apache-2.0 */
/* What a backend holds: every one is judged by the same list; `check` prints it, `require` names it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct property {
	const char *name; /* "landlock", "user-namespaces": what `require` says */
	bool enforced;
	bool inherent; /* not enforced, and not by this backend on any machine */
	const char *mechanism; /* by what: "mount namespace", "Landlock ABI 7", ... */
	const char *missing; /* when not enforced, or less strictly: what is missing here */
	const char *remedy; /* the one command or setting that mends it, or NULL */
};

struct properties {
	struct property *v;
	size_t n;
};
