/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy_load(): which sources there are and in which order they are applied.
 *
 * All files are read first, because two things must be known before the first
 * value is taken: what the managed file locks, and which profiles anybody asks
 * for. Then every source runs through the same apply_tree()/apply_text(); what a
 * source may do is in struct source and judged in merge.c.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/text.h"
#include "policy/build.h"
#include "policy/claude.h"
#include "policy/profile.h"
#include "policy/srt.h"
#include "policy/trust.h"

struct file {
	struct source source;
	const struct node *root; /* NULL: there is none */
	bool outer; /* above the project's own: trust does not count */
	unsigned left_out; /* of such a one: what would widen */
};

struct load {
	struct builder b;
	struct file managed, user, project, only;
	struct file *outer; /* outermost first */
	size_t n_outer;
	struct profiles profiles;
	bool claude;
};

const char *origin_text(struct arena *a, const struct origin *o)
{
	const char *prefix = layer_is_profile(o->layer) ? "profile " : "";
	const char *suffix = o->layer == LAYER_MANAGED_PROFILE ? " (managed)" : "";

	if (o->line == 0)
		return arena_printf(a, "%s%s%s", prefix, o->name ? o->name : "default", suffix);
	return arena_printf(a, "%s%s:%u%s", prefix, o->name, o->line, suffix);
}

bool policy_is_locked(const struct policy *p, const char *key)
{
	int row = setting_find(key);

	return p->locked && row >= 0 && p->locked[row];
}

/* "8080", or "8080:80" where the two differ */
const char *port_rule_text(struct arena *a, const struct port_rule *r)
{
	return r->host_port == r->port ? arena_printf(a, "%u", r->port)
				       : arena_printf(a, "%u:%u", r->host_port, r->port);
}

bool builder_trusts(struct builder *b, const char *file, const char *text, size_t len)
{
	struct text_rules *lines = &b->p->project_lines;
	const char *line = trust_line(b->a, file, text, len);

	if (!line)
		return false;
	*ARENA_PUSH(b->a, lines->v, lines->n) = (struct text_rule){ .text = line };
	return trust_holds(b->in->trusted, line);
}

void builder_reads(struct builder *b, const char *file)
{
	struct text_rules *files = &b->read_from;

	*ARENA_PUSH(b->a, files->v, files->n) = (struct text_rule){ .text = file };
}

int builder_check_project_file(const struct builder *b, const char *dir, const char *file,
			       struct error *e)
{
	const struct view *view = b->in->view;
	struct view_entry at, above;

	view->look(view, b->a, file, &at);
	if (at.kind == FILE_ABSENT || at.kind == FILE_UNKNOWN)
		return 0; /* reading will tell */
	if (at.kind != FILE_REGULAR)
		return error_set(e, EINVAL, "%s: not a regular file", file);
	view->look(view, b->a, dir, &above);
	if (!path_within(at.real, above.real))
		return error_set(e, EPERM,
				 "%s: leads out of the project, to %s: settings of a project must "
				 "lie in it",
				 file, at.real);
	return 0;
}

static const char *directory_of(const struct load *l, const char *file)
{
	return path_absolute(l->b.a, l->b.in->cwd, path_join(l->b.a, file, ".."));
}

/* A file that is not there is fine unless it was named with -s. */
static int read_settings(struct load *l, struct file *f, bool required, struct error *e)
{
	_cleanup_free_ char *text = NULL;
	size_t len;
	int r = 0;

	if (f->source.layer == LAYER_PROJECT)
		r = builder_check_project_file(&l->b, directory_of(l, f->source.file),
					       f->source.file, e);
	if (r < 0)
		return r;
	r = fd_read_file(AT_FDCWD, f->source.file, TREE_TEXT_MAX, &text, &len);
	if ((r == -ENOENT || r == -ENOTDIR) && !required)
		return 0;
	if (r == -EFBIG)
		return error_set(e, EFBIG, "%s: larger than %zu MiB", f->source.file,
				 TREE_TEXT_MAX >> 20);
	if (r < 0)
		return error_set(e, -r, "%s: %s", f->source.file, strerror(-r));
	if (f->source.layer == LAYER_PROJECT && !f->outer)
		l->b.p->project_trusted = builder_trusts(&l->b, f->source.file, text, len);
	return tree_parse(l->b.a, f->source.name, text, len, &f->root, e);
}

static int open_file(struct load *l, struct file *f, enum layer layer, const char *path,
		     struct error *e)
{
	if (!path)
		return 0;
	f->source = (struct source){
		.layer = layer,
		.name = arena_strdup(l->b.a, path),
		.base = l->b.p->cwd,
	};
	f->source.file = f->source.name;
	return read_settings(l, f, false, e);
}

static int open_project(struct load *l, struct error *e)
{
	const struct policy_inputs *in = l->b.in;
	struct source *s = &l->project.source;
	int r = open_file(l, &l->project, LAYER_PROJECT, in->project_file, e);

	if (r < 0 || !l->project.root)
		return r;
	s->base = s->trust_dir = directory_of(l, s->name);
	if (!l->b.p->project_trusted)
		s->mode = SOURCE_NARROWING;
	return 0;
}

/* Those above the project's, trusted or not: whoever is there may be another project. */
static int open_outer(struct load *l, struct error *e)
{
	const struct policy_inputs *in = l->b.in;
	int r = 0;

	l->n_outer = in->trusting ? 0 : in->n_outer_files;
	l->outer = arena_array(l->b.a, l->n_outer + 1, sizeof(*l->outer));
	for (size_t i = 0; i < l->n_outer && r >= 0; i++) {
		struct file *f = &l->outer[i];

		f->outer = true;
		r = open_file(l, f, LAYER_PROJECT, in->outer_files[i], e);
		f->source.mode = SOURCE_NARROWING;
		f->source.base = f->source.trust_dir = directory_of(l, in->outer_files[i]);
		f->source.left_out = &f->left_out;
	}
	return r;
}

static int open_only(struct load *l, struct error *e)
{
	const struct policy_inputs *in = l->b.in;
	struct file *f = &l->only;
	int r;

	f->source = (struct source){
		.layer = LAYER_FILE,
		.name = arena_strdup(l->b.a, in->only_file ? in->only_file : "settings"),
		.base = l->b.p->cwd,
		.foreign = in->srt,
		.no_escapes = in->srt,
	};
	f->source.file = f->source.name;
	if (!in->only_text) {
		builder_reads(&l->b, f->source.file);
		r = read_settings(l, f, true, e);
	} else
		r = tree_parse_part(l->b.a, f->source.name, in->only_text, in->only_len,
				    in->only_lines_before, &f->root, e);
	return r < 0 || !in->srt ? r : srt_check_file(&f->source, f->root, e);
}

static int open_files(struct load *l, struct error *e)
{
	const struct policy_inputs *in = l->b.in;
	int r = open_file(l, &l->managed, LAYER_MANAGED, in->managed_file, e);

	if (r < 0)
		return r;
	if (in->only_file || in->only_text)
		return open_only(l, e);
	r = open_file(l, &l->user, LAYER_USER, in->user_file, e);
	if (r >= 0)
		r = open_project(l, e);
	return r < 0 ? r : open_outer(l, e);
}

static int read_locks(struct load *l, struct error *e)
{
	const struct source *s = &l->managed.source;
	const struct node *list = l->managed.root ? tree_get(l->managed.root, "locked") : NULL;

	if (!list || list->kind == NODE_NULL)
		return 0;
	if (list->kind != NODE_LIST)
		return source_fail(s, list, "locked", e, "must be a list of keys");
	for (size_t i = 0; i < list->n; i++) {
		const struct node *n = &list->v[i];
		const char *key, *near;
		int row, r = node_string(s, "locked", n, &key, e);

		if (r < 0)
			return r;
		row = setting_find(key);
		near = row < 0 ? setting_suggest(key) : NULL;
		if (row < 0)
			return source_fail(s, n, "locked", e,
					   near ? "unknown key \"%s\" (did you mean \"%s\"?)"
						: "unknown key \"%s\"",
					   key, near);
		l->b.rows[row].locked = true;
		l->b.rows[row].locked_origin = source_origin(s, n);
	}
	return 0;
}

static struct source source_of_setting(const struct load *l, const struct setting_text *t)
{
	const char *name = arena_strdup(l->b.a, t->source);

	return (struct source){
		.layer = t->layer,
		.name = name,
		.file = name,
		.base = l->b.p->cwd,
		.strict = true,
	};
}

/* The most trusted first, with all that it leads to: what others ask for may be there already. */
static int collect_profiles(struct load *l, struct error *e)
{
	const struct policy_inputs *in = l->b.in;
	const struct file *const files[] = { &l->managed, &l->user, &l->only };
	int r = 0;

	for (size_t i = 0; r >= 0 && i < ARRAY_LEN(files); i++) {
		struct source s = files[i]->source;

		/* not from the working directory: its files are the project's */
		if (files[i]->root && files[i] != &l->only)
			s.base = path_absolute(l->b.a, "/", path_join(l->b.a, s.file, ".."));
		r = profiles_of_tree(&l->b, &l->profiles, &s, files[i]->root, e);
		if (r >= 0)
			r = profiles_load(&l->b, &l->profiles, e);
	}
	for (size_t i = 0; r >= 0 && i < in->n_settings; i++) {
		struct source s = source_of_setting(l, &in->settings[i]);
		struct node n = { .kind = NODE_TEXT, .text = in->settings[i].value };

		if (strcmp(in->settings[i].key, "profiles") == 0)
			r = profile_request(&l->b, &l->profiles, &s, &n, e);
	}
	if (r >= 0)
		r = profiles_load(&l->b, &l->profiles, e);
	if (r >= 0)
		r = profiles_of_tree(&l->b, &l->profiles, &l->project.source, l->project.root, e);
	for (size_t i = 0; r >= 0 && i < l->n_outer; i++)
		r = profiles_of_tree(&l->b, &l->profiles, &l->outer[i].source, l->outer[i].root, e);
	return r < 0 ? r : profiles_load(&l->b, &l->profiles, e);
}

static bool says_claude(const struct node *root, bool *ret)
{
	const struct node *n = root ? tree_get(root, "claudeSettings") : NULL;

	if (!n || n->kind != NODE_BOOL)
		return false;
	*ret = ascii_lower(*n->text) == 't';
	return true;
}

/* Of those that the managed file asks for, or of all but an untrusted project's. */
static void profiles_say_claude(const struct load *l, bool managed, bool *ret)
{
	for (size_t i = 0; i < l->profiles.n; i++) {
		const struct profile *p = &l->profiles.v[i];

		if (managed ? p->asked_by.layer == LAYER_MANAGED
			    : p->asked_by.mode != SOURCE_NARROWING)
			(void)says_claude(p->root, ret);
	}
}

/*
 * Is Claude's configuration to be read? It must be known before the layers, in which it
 * stands low. An untrusted project is not asked, the managed file and its profiles have the last
 * word.
 */
static bool wants_claude(const struct load *l)
{
	const struct policy_inputs *in = l->b.in;
	bool wanted = false;

	profiles_say_claude(l, false, &wanted);
	(void)says_claude(l->user.root, &wanted);
	if (l->project.source.mode != SOURCE_NARROWING)
		(void)says_claude(l->project.root, &wanted);
	(void)says_claude(l->only.root, &wanted);
	for (size_t i = 0; i < in->n_settings; i++) {
		if (strcmp(in->settings[i].key, "claudeSettings") == 0)
			wanted = strcmp(in->settings[i].value, "true") == 0;
	}
	profiles_say_claude(l, true, &wanted);
	(void)says_claude(l->managed.root, &wanted);
	return wanted;
}

/* With -s, the file stands for everybody's but the managed. */
static int apply_claude(struct load *l, enum claude_part part, struct error *e)
{
	const struct policy_inputs *in = l->b.in;

	if (!l->claude || (part != CLAUDE_MANAGED && (in->only_file || in->only_text)))
		return 0;
	return claude_apply(&l->b, part, e);
}

static int apply_defaults(struct builder *b, struct error *e)
{
	const struct source s = { .layer = LAYER_DEFAULT, .name = "default", .file = "default" };

	for (size_t i = 0; i < settings_count; i++) {
		b->rows[i].origin = (struct origin){ .layer = LAYER_DEFAULT, .name = "default" };
		if (settings_table[i].def) {
			struct node n = { .kind = NODE_TEXT, .text = settings_table[i].def };
			struct value v;
			int r = value_parse(&s, &settings_table[i], &n, &v, e);

			if (r < 0)
				return r;
			value_put(b->p, &settings_table[i], v);
		}
	}
	protect_add_defaults(b);
	if (b->in->srt)
		srt_add_defaults(b);
	else
		defaults_add_rules(b);
	network_add_defaults(b);
	return 0;
}

static int apply_file(struct builder *b, const struct file *f, struct error *e)
{
	return f->root ? apply_tree(b, &f->source, f->root, e) : 0;
}

/* What they would widen is not for `ambit trust` to let in: it is told in one line. */
static int apply_outer(struct load *l, struct error *e)
{
	int r = 0;

	for (size_t i = 0; r >= 0 && i < l->n_outer; i++) {
		const struct file *f = &l->outer[i];
		struct origin o = { .layer = LAYER_PROJECT, .name = f->source.name };

		r = apply_file(&l->b, f, e);
		if (r >= 0 && f->left_out > 0)
			builder_note(&l->b, &o,
				     "ignored: %u of its settings would widen the policy: above %s "
				     "it can only narrow",
				     f->left_out,
				     l->project.root ? l->project.source.name : "another .git");
	}
	return r;
}

static int apply_settings(struct load *l, enum layer layer, struct error *e)
{
	const struct policy_inputs *in = l->b.in;
	int r = 0;

	for (size_t i = 0; r >= 0 && i < in->n_settings; i++) {
		const struct setting_text *t = &in->settings[i];
		struct source s = source_of_setting(l, t);

		if (t->layer == layer)
			r = apply_text(&l->b, &s, t->key, t->value, e);
	}
	return r;
}

static int apply_all(struct load *l, struct error *e)
{
	struct builder *b = &l->b;
	int r = apply_defaults(b, e);

	if (r >= 0)
		r = profiles_apply(b, &l->profiles, PROFILES_TRUSTED, e);
	if (r >= 0)
		r = apply_claude(l, CLAUDE_MANAGED, e);
	if (r >= 0)
		r = apply_file(b, &l->managed, e);
	if (r >= 0)
		r = apply_claude(l, CLAUDE_USER, e);
	if (r >= 0)
		r = apply_file(b, &l->user, e);
	b->lower_rules = b->p->fs.rules.n;
	b->lower_hosts = b->p->network.allowed.n;
	if (r >= 0)
		r = profiles_apply(b, &l->profiles, PROFILES_OF_UNTRUSTED, e);
	if (r >= 0)
		r = apply_claude(l, CLAUDE_PROJECT, e);
	if (r >= 0)
		r = apply_outer(l, e);
	if (r >= 0)
		r = apply_file(b, &l->project, e);
	if (r >= 0)
		r = apply_file(b, &l->only, e);
	if (r >= 0)
		r = apply_settings(l, LAYER_ENVIRONMENT, e);
	/* `-p offline` means offline, whatever mode a file asks for */
	if (r >= 0)
		r = profiles_apply(b, &l->profiles, PROFILES_OF_OPTIONS, e);
	return r < 0 ? r : apply_settings(l, LAYER_OPTION, e);
}

static void finish_excluded(struct builder *b)
{
	const struct row_state *on = &b->rows[setting_find("enabled")];

	b->p->only_managed_outside =
		on->managed ? on->managed_value.u != 0 : on->locked && b->p->enabled;
}

static int finish(struct builder *b, struct error *e)
{
	struct origin *origins = arena_array(b->a, settings_count, sizeof(*origins));
	bool *locked = arena_array(b->a, settings_count, sizeof(*locked));
	int r = network_finish(b, e);

	if (r >= 0)
		r = protect_finish(b, e);
	if (r < 0)
		return r;
	finish_excluded(b);
	if (b->in->srt)
		srt_finish(b);
	for (size_t i = 0; i < settings_count; i++) {
		origins[i] = b->rows[i].origin;
		locked[i] = b->rows[i].locked;
	}
	b->p->value_origin = origins;
	b->p->locked = locked;
	return own_finish(b, e);
}

/* Rules are judged by canonical paths; the two anchors of relative ones are made so first. */
const char *builder_canonical(const struct builder *b, const char *path)
{
	const struct view *view = b->in->view;
	struct view_entry entry;

	view->look(view, b->a, path_absolute(b->a, "/", path), &entry);
	return arena_strdup(b->a, entry.real);
}

int policy_load(struct arena *a, const struct policy_inputs *in, const struct policy **ret,
		struct error *e)
{
	struct load *l = arena_alloc(a, sizeof(*l));
	struct builder *b = &l->b;
	int r;

	if (!in->cwd || *in->cwd != '/' || !in->home || *in->home != '/')
		return error_set(e, EINVAL,
				 "the working directory and HOME must be absolute paths");
	b->a = a;
	b->in = in;
	b->p = arena_alloc(a, sizeof(*b->p));
	b->rows = arena_array(a, settings_count, sizeof(*b->rows));
	b->p->cwd = builder_canonical(b, in->cwd);
	b->p->home = builder_canonical(b, in->home);
	r = open_files(l, e);
	if (r >= 0)
		r = read_locks(l, e);
	if (r >= 0)
		r = collect_profiles(l, e);
	l->claude = r >= 0 && wants_claude(l);
	if (r >= 0)
		r = apply_all(l, e);
	if (r < 0)
		return r;
	r = finish(b, e);
	if (r < 0)
		return r;
	*ret = b->p;
	return 0;
}
