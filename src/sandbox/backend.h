/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What this machine can enforce, property by property. Every backend is judged by the
 * same list, `ambit check` prints it, and settings' `require` names its rows.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/error.h"

struct property {
	const char *name; /* "landlock", "user-namespaces": what `require` says */
	bool enforced;
	const char *mechanism; /* by what: "mount namespace", "Landlock ABI 7", ... */
	const char *missing; /* when not enforced: what is missing here */
	const char *remedy; /* the one command or setting that mends it, or NULL */
};

struct properties {
	struct property *v;
	size_t n;
};

/* Probe the native backend on this machine, in a short-lived child; nothing is changed. */
int native_probe(struct arena *a, struct properties *ret, struct error *e) NODISCARD;
