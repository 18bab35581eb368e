/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles: named settings files that others build on. Private to src/policy. */
#pragma once

#include "policy/build.h"

struct profile {
	const char *name; /* as asked for */
	const char *file;
	const struct node *root;
	bool by_path; /* a file of whoever asks, not one of the user's or ours */
	struct source asked_by; /* the most trusted of them */
	unsigned line, column; /* where in its file */
	bool by_option; /* among others */
};

struct profiles {
	struct profile *v;
	size_t n, loaded;
};

enum profiles_part {
	PROFILES_TRUSTED, /* whole, as the profile layers */
	PROFILES_OF_UNTRUSTED, /* asked for by an untrusted project only: their narrowing part */
	PROFILES_OF_OPTIONS, /* single values of those asked for by options, where they narrow */
};

/* Note down what the `profiles` list of a file (root may be NULL) or an option asks for. */
int profiles_of_tree(struct builder *b, struct profiles *ps, const struct source *s,
		     const struct node *root, struct error *e) NODISCARD;
int profile_request(struct builder *b, struct profiles *ps, const struct source *s,
		    const struct node *n, struct error *e) NODISCARD;
/* Read those that were not yet, and those they ask for in turn. */
int profiles_load(struct builder *b, struct profiles *ps, struct error *e) NODISCARD;
int profiles_apply(struct builder *b, const struct profiles *ps, enum profiles_part part,
		   struct error *e) NODISCARD;
