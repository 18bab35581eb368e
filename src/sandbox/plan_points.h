/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of plan_compile(): plan_points.c finds the places that matter, plan_held.c those
 * that protected names lead to, plan_git.c those that git's configuration leads to, plan_mounted.c
 * second mounts of what is hidden and of the kernel's own, plan.c makes mounts of them,
 * plan_network.c says what the network will be, plan_direct.c how bulk directories are filled;
 * plan_shut.c refuses what cannot be seen, and the command could open; plan_prepare.c makes what is
 * missing, before.
 */
#pragma once

#include "sandbox/plan.h"

#define LINKS_MAX 40 /* as the kernel follows */

struct region;

struct point {
	const char *path;
	const char *name; /* of a link to it that a denyRead pattern matches; NULL = none */
	size_t order; /* in which it was added: the first at a path says why */
	struct view_entry at;
	bool replaced; /* one of the sandbox's own places: kind and mode below hold */
	bool guarded; /* a protected name: read-only at the most */
	bool shown; /* the working directory: seen even in a private place */
	const struct path_rule *alias; /* another mount of what this rule hides; NULL = none */
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
	bool aliases; /* some of the points are */
	bool refused; /* there will be no plan: `e` says why */
	bool guarding; /* the broker watches names; what does not exist yet is covered too */
};

/* A variable of the command's environment. */
void plan_set_variable(struct compiler *c, const char *name, const char *value);

/* Files are made in bulk directories without the broker (plan_direct.c): the place, the rest. */
void plan_show_direct(struct compiler *c);
void plan_make_direct(struct compiler *c);

/* The places, rules and protected names as points: each path once, in path order. */
int plan_gather_points(struct compiler *c) NODISCARD;

/*
 * The protected name at dir/pattern may be a link, or lie behind one: list what it leads to
 * (plan_held.c).
 */
void plan_hold_links(struct compiler *c, const char *dir, const struct protected_name *name);

/* Where a path leads, as the kernel walks, from the canonical directory `at`; there or not. */
const char *plan_follow(struct compiler *c, const char *at, const char *path);
/* List that, too, and the links on the way; false where nothing can be written, or it was. */
bool plan_hold_path(struct compiler *c, const char *at, const char *path,
		    const struct protected_name *name, const char *why);

/* What git's configuration, as it is now, makes git outside run or read (plan_git.c). */
void plan_hold_git(struct compiler *c);

/*
 * The way to a path could not be looked at: there is no plan if the command could open it
 * (plan_shut.c). name: what that would hide from us, and what it is: "would be hidden".
 */
void plan_refuse_shut(struct compiler *c, const char *path, const char *name, const char *what);
/* Is the place the host's, and the command's to change? Protected names in it count as well. */
bool plan_is_writable(const struct compiler *c, const char *path);

/* Said to whoever runs it: what is weaker or otherwise than the policy sounds. */
void plan_note(struct compiler *c, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* The place as a point, to be filled in by the caller. */
struct point *plan_add_point(struct compiler *c, const char *path);

/* What is hidden, hidden at the other places where it is mounted as well (plan_mounted.c). */
void plan_add_mounted(struct compiler *c);

/* If the directory is missing, is it made on the way to what the rule names (plan_prepare.c)? */
bool plan_is_on_the_way(const struct policy *p, const struct path_rule *r, const char *dir);

int plan_compile_network(struct compiler *c) NODISCARD;

/* "denyRead ~/.ssh (built-in)" */
const char *plan_rule_text(struct compiler *c, const struct path_rule *r);
