/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finding and applying profiles. A file is used once, for the first that asks:
 * requests come in order of trust, each with all that it asks for in turn, so an
 * untrusted project cannot take a profile away from the user by naming it too, nor
 * the user one from the managed file. Those of the managed file are applied first: the
 * others may narrow them, and what goes beyond them is seen.
 */
#include "policy/profile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/text.h"

#define PROFILES_MAX 64

static const char *const extensions[] = { ".yaml", ".yml", ".json" };

static bool is_file_name(const char *text)
{
	if (strchr(text, '/'))
		return true;
	for (size_t i = 0; i < ARRAY_LEN(extensions); i++) {
		if (text_ends(text, extensions[i]))
			return true;
	}
	return false;
}

/* The n-th place to look in, NULL after the last. */
static const char *profile_place(const struct policy_inputs *in, size_t n)
{
	size_t user = 0;

	while (in->profile_dirs_user && in->profile_dirs_user[user]) {
		if (user == n)
			return in->profile_dirs_user[user];
		user++;
	}
	return n == user ? in->profile_dir : NULL;
}

/* What the managed file asks for is ours: the user's of that name would go beyond its locks. */
static const char *find_by_name(const struct builder *b, const struct source *s, const char *name)
{
	const char *dir;

	for (size_t i = 0; (dir = profile_place(b->in, i)); i++) {
		if (s->layer == LAYER_MANAGED && dir != b->in->profile_dir)
			continue;
		for (size_t x = 0; x < ARRAY_LEN(extensions); x++) {
			const char *file = arena_printf(b->a, "%s/%s%s", dir, name, extensions[x]);

			if (access(file, F_OK) == 0)
				return file;
		}
	}
	return NULL;
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

size_t policy_profiles(struct arena *a, const struct policy_inputs *in, const char ***ret)
{
	const char *dir, **names = NULL;
	size_t n = 0, kept = 0;

	for (size_t i = 0; (dir = profile_place(in, i)); i++) {
		const char *const *files = NULL;
		int count = path_host_view.list(&path_host_view, a, dir, &files);

		for (int f = 0; f < count; f++) {
			for (size_t x = 0; x < ARRAY_LEN(extensions); x++) {
				size_t len = strlen(files[f]) - strlen(extensions[x]);

				if (text_ends(files[f], extensions[x]))
					*ARENA_PUSH(a, names, n) = arena_strndup(a, files[f], len);
			}
		}
	}
	if (n > 0)
		qsort(names, n, sizeof(*names), compare_names);
	for (size_t i = 0; i < n; i++) {
		if (kept == 0 || strcmp(names[kept - 1], names[i]) != 0)
			names[kept++] = names[i];
	}
	*ret = names;
	return kept;
}

static int unknown_profile(const struct builder *b, const struct source *s, const struct node *n,
			   struct error *e)
{
	_cleanup_buf_ struct buf known = BUF_INIT(512);
	const char **names, *near = NULL;
	size_t count = policy_profiles(b->a, b->in, &names);

	for (size_t i = 0; i < count; i++) {
		unsigned d = text_distance(names[i], n->text);

		if (!near && d <= 2 && d < strlen(n->text))
			near = names[i];
		buf_printf(&known, "%s%s", i ? ", " : "", names[i]);
	}
	if (near)
		return source_fail(s, n, "profiles", e,
				   "no profile \"%s\" (did you mean \"%s\"?); there are: %s",
				   n->text, near, buf_str(&known));
	return source_fail(s, n, "profiles", e, "no profile \"%s\"; there are: %s", n->text,
			   known.len ? buf_str(&known) : "none");
}

static bool name_ok(const char *name)
{
	for (const char *c = name; *c; c++) {
		if (!ascii_alnum(*c) && !strchr("._-", *c))
			return false;
	}
	return *name != '.';
}

/*
 * An untrusted project has us read files of its own, no others: what messages show of them would be
 * for whoever reads those, and some paths are read by reading (/dev/stdin). What a profile found by
 * its name asks for is not the project's word.
 */
static bool leads_out(struct builder *b, const struct source *s, const char *file)
{
	const char *by, *dir;
	bool absent;

	if (s->mode != SOURCE_NARROWING || b->in->trusting)
		return false;
	by = path_absolute(b->a, "/", s->file);
	dir = rule_resolve(b, s->trust_dir, &absent);
	return (path_within(by, s->trust_dir) || path_within(rule_resolve(b, by, &absent), dir)) &&
	       !path_within(rule_resolve(b, file, &absent), dir);
}

int profile_request(struct builder *b, struct profiles *ps, const struct source *s,
		    const struct node *n, struct error *e)
{
	struct text_rules *list = &b->p->profiles;
	const char *name, *file = NULL;
	int r = node_string(s, "profiles", n, &name, e);

	if (r >= 0)
		r = merge_admit(b, s, (size_t)setting_find("profiles"), n, true, e);
	if (r <= 0)
		return r;
	name = arena_strdup(b->a, name);
	if (is_file_name(name)) {
		if (rule_expand(b, s, name, &file, e) < 0)
			return source_wrap(s, n, "profiles", e);
		if (leads_out(b, s, file))
			return merge_widening(b, s, "profiles", n);
	} else if (name_ok(name)) {
		file = find_by_name(b, s, name);
	}
	if (!file)
		return unknown_profile(b, s, n, e);
	for (size_t i = 0; i < ps->n; i++) {
		if (strcmp(ps->v[i].file, file) == 0) {
			/* what a file asks for too is still what the option asks for */
			ps->v[i].by_option |= s->layer == LAYER_OPTION;
			return 0;
		}
	}
	if (ps->n >= PROFILES_MAX)
		return source_fail(s, n, "profiles", e, "more than %d profiles", PROFILES_MAX);
	*ARENA_PUSH(b->a, ps->v, ps->n) = (struct profile){ .name = name,
							    .file = file,
							    .by_path = is_file_name(name),
							    .asked_by = *s,
							    .line = n->line,
							    .column = n->column,
							    .by_option = s->layer == LAYER_OPTION };
	*ARENA_PUSH(b->a, list->v, list->n) = (struct text_rule){ name, source_origin(s, n) };
	return 1;
}

int profiles_of_tree(struct builder *b, struct profiles *ps, const struct source *s,
		     const struct node *root, struct error *e)
{
	const struct node *list = root ? tree_get(root, "profiles") : NULL;
	int r = 0;

	if (!list || list->kind == NODE_NULL)
		return 0;
	if (list->kind != NODE_LIST)
		return source_fail(s, list, "profiles", e, "must be a list");
	for (size_t i = 0; r >= 0 && i < list->n; i++)
		r = profile_request(b, ps, s, &list->v[i], e);
	return r < 0 ? r : 0;
}

/* Who named it in a file is told where. */
static int unreadable(const struct profile *p, int r, struct error *e)
{
	const struct node at = { .line = p->line, .column = p->column };

	if (p->line)
		return source_fail(&p->asked_by, &at, "profiles", e, "%s: %s", p->file,
				   strerror(-r));
	return error_set(e, -r, "%s: %s", p->file, strerror(-r));
}

int profiles_load(struct builder *b, struct profiles *ps, struct error *e)
{
	/* the list grows while it is walked */
	while (ps->loaded < ps->n) {
		struct profile *p = &ps->v[ps->loaded++];
		struct source s;
		_cleanup_free_ char *text = NULL;
		const struct node *root;
		size_t len;
		int r = fd_read_file(AT_FDCWD, p->file, TREE_TEXT_MAX, &text, &len);

		if (r < 0)
			return unreadable(p, r, e);
		if (p->by_path && p->asked_by.layer != LAYER_PROJECT)
			builder_reads(b, p->file);
		r = tree_parse(b->a, p->file, text, len, &root, e);
		if (r < 0)
			return r;
		/* a project is trusted with what it says now: the files that it names belong to it */
		if (p->by_path && p->asked_by.layer == LAYER_PROJECT &&
		    !builder_trusts(b, p->file, text, len))
			p->asked_by.mode = SOURCE_NARROWING;
		p->root = root;
		s = p->asked_by;
		/* its own requests come with the rights of who asked for it */
		s.name = s.file = p->file;
		s.base = path_absolute(b->a, "/", path_join(b->a, p->file, ".."));
		r = profiles_of_tree(b, ps, &s, root, e);
		if (r < 0)
			return r;
	}
	return 0;
}

static bool belongs_to(const struct profile *p, enum profiles_part part)
{
	bool untrusted = p->asked_by.mode == SOURCE_NARROWING;

	switch (part) {
	case PROFILES_TRUSTED:
		return !untrusted;
	case PROFILES_OF_UNTRUSTED:
		return untrusted;
	case PROFILES_OF_OPTIONS:
		return p->by_option;
	}
	return false;
}

int profiles_apply(struct builder *b, const struct profiles *ps, enum profiles_part part,
		   struct error *e)
{
	for (size_t i = 0; i < ps->n; i++) {
		const struct profile *p = &ps->v[i];
		struct source s = { .layer = LAYER_PROFILE, .name = p->name, .file = p->file };
		int r;

		if (!belongs_to(p, part))
			continue;
		s.base = b->p->cwd;
		if (part == PROFILES_OF_UNTRUSTED) {
			s.layer = LAYER_PROJECT;
			s.name = p->file;
			s.mode = SOURCE_NARROWING;
			s.trust_dir = p->asked_by.trust_dir;
			s.left_out = p->asked_by.left_out;
		} else if (part == PROFILES_OF_OPTIONS) {
			s.mode = SOURCE_TIGHTER_VALUES;
		} else if (p->asked_by.layer == LAYER_MANAGED) {
			s.layer = LAYER_MANAGED_PROFILE;
		}
		r = apply_tree(b, &s, p->root, e);
		if (r < 0)
			return r;
	}
	return 0;
}
