/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Written paths to directories. Below the home directory most programs keep to a place of their
 * own, whose form is known (~/.npm, ~/.cache/pip, ~/.cargo/registry): that place is the
 * rule. Elsewhere it is the deepest directory that holds everything written
 * nearby, and never one as wide as the home directory or one right below the root.
 */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "supervise/learn.h"

#define PROCESSES_TEXT_MAX 64

/* Directories of many programs: one more component says whose. */
static const char *const shared_places[] = {
	".cache",  ".config", ".local/share", ".local/state", ".local/lib",     ".cargo",
	".gradle", ".m2",     ".rustup",      "go/pkg",       "Library/Caches", "snap",
};

static const char *parent_of(struct arena *a, const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash == path ? "/" : arena_strndup(a, path, (size_t)(slash - path));
}

/* The first n components below dir. */
static const char *prefix_below(struct arena *a, const char *dir, const char *path, unsigned n)
{
	const char *p = path + (strcmp(dir, "/") == 0 ? 0 : strlen(dir));

	while (n-- > 0 && *p)
		p += 1 + strcspn(p + 1, "/");
	return arena_strndup(a, path, (size_t)(p - path));
}

/* The place of a program that path lies in; NULL = in none of a known form. */
static const char *known_place(struct arena *a, const char *home, const char *path)
{
	const char *rest;

	if (!path_within(path, home) || strcmp(path, home) == 0)
		return NULL;
	rest = path + strlen(home) + 1;
	for (size_t i = 0; i < ARRAY_LEN(shared_places); i++) {
		const char *place = path_join(a, home, shared_places[i]);

		if (path_within(path, place) && strcmp(path, place) != 0)
			return prefix_below(a, place, path, 1);
		if (path_within(place, path))
			return NULL; /* the shared directory itself, or above it */
	}
	/* ~/.npm; a file right in the home directory is not one */
	return *rest == '.' && strchr(rest, '/') ? prefix_below(a, home, path, 1) : NULL;
}

/* Both lie in the same neighbourhood: two components below the home directory or the root. */
static const char *neighbourhood(struct arena *a, const char *home, const char *dir)
{
	return prefix_below(a, path_within(dir, home) ? home : "/", dir, 2);
}

static const char *common_directory(struct arena *a, const char *x, const char *y)
{
	size_t i = 0, last = 0;

	for (; x[i] && x[i] == y[i]; i++) {
		if (x[i] == '/')
			last = i;
	}
	if ((!x[i] || x[i] == '/') && (!y[i] || y[i] == '/'))
		last = i;
	return last ? arena_strndup(a, x, last) : "/";
}

struct generaliser {
	struct arena *a;
	const struct view *view;
	const char *home;
	struct learned_paths out, wide;
};

static bool is_too_wide(const struct generaliser *g, const char *dir)
{
	return path_depth(dir) < 2 || path_within(g->home, dir);
}

static bool has_process(const char *list, const char *process)
{
	size_t n = strlen(process);

	for (const char *p = list; p; p = strchr(p, ',') ? strchr(p, ',') + 2 : NULL) {
		if (strncmp(p, process, n) == 0 && (!p[n] || p[n] == ','))
			return true;
	}
	return false;
}

static const char *add_process(struct arena *a, const char *list, const char *process)
{
	if (!list || !*list)
		return process;
	if (!*process || strlen(list) > PROCESSES_TEXT_MAX || has_process(list, process))
		return list;
	return arena_printf(a, "%s, %s", list, process);
}

/* Count `used` for a rule. */
static void take(struct generaliser *g, struct learned_path *rule, const struct learned_path *used)
{
	rule->count++;
	rule->processes = add_process(g->a, rule->processes, used->processes);
	if (!rule->used)
		rule->used = used->path;
}

static struct learned_path *find_rule(const struct learned_paths *list, const char *path)
{
	for (size_t i = 0; i < list->n; i++) {
		if (path_within(path, list->v[i].path))
			return &list->v[i];
	}
	return NULL;
}

static void add(struct generaliser *g, struct learned_paths *list, const char *path,
		const struct learned_path *used)
{
	struct learned_path *rule = find_rule(list, path);

	if (!rule) {
		rule = ARENA_PUSH(g->a, list->v, list->n);
		*rule = (struct learned_path){ .path = path };
	}
	take(g, rule, used);
}

/* A rule that has the neighbours in it as well. */
static void add_near(struct generaliser *g, const char *dir, const struct learned_path *used)
{
	const char *area = neighbourhood(g->a, g->home, dir);

	for (size_t i = 0; i < g->out.n; i++) {
		struct learned_path *rule = &g->out.v[i];

		if (path_within(rule->path, area) &&
		    g->view->kind(g->view, rule->path) == FILE_DIRECTORY) {
			rule->path = common_directory(g->a, rule->path, dir);
			take(g, rule, used);
			return;
		}
	}
	add(g, &g->out, dir, used);
}

static void place_one(struct generaliser *g, const struct learned_path *used)
{
	const char *place = known_place(g->a, g->home, used->path);
	enum file_kind kind = g->view->kind(g->view, used->path);
	const char *dir;

	/* it was made and is there now: what was written below it counts */
	if (kind == FILE_DIRECTORY)
		return;
	/* a place that is only a file for the moment cannot be named */
	if (place && g->view->kind(g->view, place) != FILE_ABSENT) {
		add(g, &g->out, place, used);
		return;
	}
	dir = parent_of(g->a, used->path);
	if (!is_too_wide(g, dir) && path_depth(dir) > 2 &&
	    !(path_within(dir, g->home) && path_depth(dir) < path_depth(g->home) + 2)) {
		add_near(g, dir, used);
	} else if (kind == FILE_REGULAR) {
		add(g, &g->out, used->path, used);
	} else if (!is_too_wide(g, dir)) {
		add(g, &g->out, dir, used);
	} else {
		add(g, &g->wide, used->path, used);
	}
}

/* Rules that grew may hold others by now. */
static void merge_rules(struct generaliser *g)
{
	size_t kept = 0;

	for (size_t i = 0; i < g->out.n; i++) {
		bool inside = false;

		for (size_t k = 0; k < g->out.n && !inside; k++)
			inside = k != i && path_within(g->out.v[i].path, g->out.v[k].path) &&
				 (k < i || strcmp(g->out.v[i].path, g->out.v[k].path) != 0);
		if (!inside)
			g->out.v[kept++] = g->out.v[i];
	}
	g->out.n = kept;
}

void learn_generalise(struct arena *a, const struct view *view, const char *home,
		      const struct learned_paths *used, struct learned_paths *ret,
		      struct learned_paths *ret_wide)
{
	struct generaliser g = { .a = a, .view = view, .home = home };

	for (size_t i = 0; i < used->n; i++)
		place_one(&g, &used->v[i]);
	merge_rules(&g);
	*ret = g.out;
	*ret_wide = g.wide;
}
