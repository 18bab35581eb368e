/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Written paths to directories. Below the home directory most programs keep to a place of their
 * own, whose form is known (~/.npm, ~/.cache/pip, ~/.cargo/registry): that place is the
 * rule. Elsewhere it is the deepest directory that holds everything written
 * nearby, and never one as wide as the home directory or one right below the root.
 *
 * The rules must hold again where what the run made is not there: an absent directory is made
 * for its rule where its parent is there (plan_prepare()), an absent file is not. So only a file
 * that was there before is a rule of its own, and of nested directories that were made
 * the outermost is. In directories that many programs share (~/.config) also a file that
 * was made is: the next best rule would let the command write what others run. Not one
 * that may have been renamed into its place, which takes more than the file.
 */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "policy/places.h"
#include "supervise/learn.h"

#define PROCESSES_TEXT_MAX 64

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
	if (place_is_shared(home, path))
		return NULL;
	for (const char *const *p = shared_places; *p; p++) {
		const char *place = path_join(a, home, *p);

		if (path_within(path, place))
			return prefix_below(a, place, path, 1);
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
	const struct learned_paths *used;
	struct learned_paths out, wide;
};

static bool is_too_wide(const struct generaliser *g, const char *dir)
{
	return path_depth(dir) < 2 || path_within(g->home, dir) || place_is_shared(g->home, dir);
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
		const char *both = common_directory(g->a, rule->path, dir);

		if (path_within(rule->path, area) && !is_too_wide(g, both) &&
		    g->view->kind(g->view, rule->path) == FILE_DIRECTORY) {
			rule->path = both;
			take(g, rule, used);
			return;
		}
	}
	add(g, &g->out, dir, used);
}

/* A rule for exactly this path finds it, or makes what the command made. */
static bool can_be_named(const struct learned_path *used, enum file_kind kind)
{
	return kind == FILE_DIRECTORY || (kind == FILE_REGULAR && !used->made);
}

/* Something that was made beside it and is gone: it may be what was renamed to it. */
static const char *find_forerunner(const struct generaliser *g, const char *path, const char *dir)
{
	for (size_t i = 0; i < g->used->n; i++) {
		const char *other = g->used->v[i].path;

		if (g->used->v[i].made && strcmp(other, path) != 0 &&
		    strcmp(parent_of(g->a, other), dir) == 0 &&
		    g->view->kind(g->view, other) == FILE_ABSENT)
			return other;
	}
	return NULL;
}

/* In a directory that many programs share: the file alone, or nothing. */
static void place_shared(struct generaliser *g, const struct learned_path *used,
			 enum file_kind kind, const char *dir)
{
	const char *before = find_forerunner(g, used->path, dir);
	struct learned_path *rule;

	if (kind == FILE_REGULAR && !before) {
		add(g, &g->out, used->path, used);
		return;
	}
	add(g, &g->wide, used->path, used);
	rule = find_rule(&g->wide, used->path);
	if (rule && kind == FILE_REGULAR)
		rule->replaced_by = before;
}

static void place_one(struct generaliser *g, const struct learned_path *used, enum file_kind kind)
{
	const char *place = known_place(g->a, g->home, used->path);
	const char *dir = parent_of(g->a, used->path);

	if (kind != FILE_DIRECTORY && place_is_shared(g->home, dir)) {
		place_shared(g, used, kind, dir);
		return;
	}
	/* a place that is only a file for the moment cannot be named */
	if (place && g->view->kind(g->view, place) != FILE_ABSENT &&
	    (strcmp(place, used->path) != 0 || can_be_named(used, kind))) {
		add(g, &g->out, place, used);
		return;
	}
	if (!is_too_wide(g, dir) && path_depth(dir) > 2 &&
	    !(path_within(dir, g->home) && path_depth(dir) < path_depth(g->home) + 2)) {
		add_near(g, dir, used);
	} else if (can_be_named(used, kind)) {
		add(g, &g->out, used->path, used);
	} else if (!is_too_wide(g, dir)) {
		add(g, &g->out, dir, used);
	} else {
		add(g, &g->wide, used->path, used);
	}
}

/* Something in it is a rule. */
static bool holds_rule(const struct generaliser *g, const char *dir)
{
	for (size_t i = 0; i < g->out.n; i++) {
		if (path_within(g->out.v[i].path, dir))
			return true;
	}
	return false;
}

static void place_directory(struct generaliser *g, const struct learned_path *used)
{
	/* what many programs share is nobody's alone */
	if (is_too_wide(g, used->path))
		add(g, &g->wide, used->path, used);
	else
		place_one(g, used, FILE_DIRECTORY);
}

static bool was_made(const struct learned_paths *used, const char *path)
{
	for (size_t i = 0; i < used->n; i++) {
		if (used->v[i].made && strcmp(used->v[i].path, path) == 0)
			return true;
	}
	return false;
}

/* The directory of a missing one must be there, or be one that is made for everybody. */
static void lift_rules(struct generaliser *g, const struct learned_paths *used)
{
	for (size_t i = 0; i < g->out.n; i++) {
		struct learned_path *rule = &g->out.v[i];
		const char *parent = parent_of(g->a, rule->path);

		while (was_made(used, parent) && !place_is_shared(g->home, parent)) {
			rule->path = parent;
			parent = parent_of(g->a, parent);
		}
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
	struct generaliser g = { .a = a, .view = view, .home = home, .used = used };

	for (size_t i = 0; i < used->n; i++) {
		enum file_kind kind = view->kind(view, used->v[i].path);

		if (kind != FILE_DIRECTORY)
			place_one(&g, &used->v[i], kind);
	}
	/* of directories that were made, what lies below them counts first: it was made later */
	for (size_t i = used->n; i-- > 0;) {
		if (used->v[i].made && view->kind(view, used->v[i].path) == FILE_DIRECTORY &&
		    !holds_rule(&g, used->v[i].path))
			place_directory(&g, &used->v[i]);
	}
	lift_rules(&g, used);
	merge_rules(&g);
	*ret = g.out;
	*ret_wide = g.wide;
}
