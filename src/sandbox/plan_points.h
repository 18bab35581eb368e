/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of plan_compile(): plan_points.c finds the places that matter, plan.c makes
 * mounts of them, plan_network.c says what the network will be.
 */
#pragma once

#include "sandbox/plan.h"

struct region;

struct point {
	const char *path;
	size_t order; /* in which it was added: the first at a path says why */
	struct view_entry at;
	bool replaced; /* one of the sandbox's own places: kind and mode below hold */
	bool guarded; /* a protected name: read-only at the most */
	bool shown; /* the working directory: seen even in a private place */
	bool socket; /* one that may be connected to: the same, though no rule names it */
	enum mount_kind kind;
	uint32_t mode;
	const char *text; /* MOUNT_TEXT */
	const struct path_rule *rule; /* NULL for own places, protected names and the cwd */
	const char *why;
};

/* State of one compilation. */
struct compiler {
	struct arena *a;
	const struct policy *p;
	const struct plan_facts *facts;
	const struct view *view;
	struct plan *plan;
	struct error *e;
	struct point *points;
	size_t n_points;
	struct region *stack; /* of plan.c */
	size_t n_stack;
	size_t visited; /* by pattern expansion */
	bool guarding; /* the broker watches names; what does not exist yet is covered too */
};

/* The places, rules and protected names as points: each path once, in path order. */
int plan_gather_points(struct compiler *c) NODISCARD;

int plan_compile_network(struct compiler *c) NODISCARD;

/* "denyRead ~/.ssh (built-in)" */
const char *plan_rule_text(struct compiler *c, const struct path_rule *r);
