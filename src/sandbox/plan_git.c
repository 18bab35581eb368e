/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What git's configuration leads to. The user's own configuration may say that hooks lie in the
 * project (core.hooksPath = .githooks), that a file of it is read as configuration (include.path)
 * or that a program of it is run (core.fsmonitor, filters, textconv): git outside follows that, so
 * whoever writes there runs programs with the user's rights. These places are held like
 * git's own hooks and configuration, and lifted with them.
 *
 * Read are the files that git reads for the repositories that the working directory and the
 * writable directories lie in, and what they include. All values of a key count, also those that
 * another file overrides: the command may remove entries. Conditions of includes are taken to hold.
 */
#include <errno.h>
#include <string.h>

#include "base/gitconfig.h"
#include "base/text.h"
#include "sandbox/plan_points.h"

#define FILES_MAX                                                                                  \
	256 /* configuration files that are looked at, and how deep they include each other */
#define LIFTED_BY "--set filesystem.unprotect=.git/hooks --set filesystem.unprotect=.git/config"

enum lead_kind { LEAD_HOOKS, LEAD_CONFIG, LEAD_PROGRAM };

/* In lower case, as the parser gives them; names NULL = any. */
static const struct {
	const char *section, *names;
	enum lead_kind kind;
} leads[] = {
	{ "core", " hookspath ", LEAD_HOOKS },
	{ "init", " templatedir ", LEAD_HOOKS }, /* hooks of repositories to come */
	{ "include", " path ", LEAD_CONFIG },
	{ "includeif.*", " path ", LEAD_CONFIG },
	{ "core", " fsmonitor sshcommand editor pager askpass gitproxy alternaterefscommand ",
	  LEAD_PROGRAM },
	{ "sequence", " editor ", LEAD_PROGRAM },
	{ "gpg", " program ", LEAD_PROGRAM },
	{ "gpg.*", " program defaultkeycommand ", LEAD_PROGRAM },
	{ "diff", " external ", LEAD_PROGRAM },
	{ "diff.*", " command textconv ", LEAD_PROGRAM },
	{ "merge.*", " driver ", LEAD_PROGRAM },
	{ "filter.*", " clean smudge process ", LEAD_PROGRAM },
	{ "credential", " helper ", LEAD_PROGRAM },
	{ "credential.*", " helper ", LEAD_PROGRAM },
	{ "interactive", " difffilter ", LEAD_PROGRAM },
	{ "alias", NULL, LEAD_PROGRAM },
	{ "pager", NULL, LEAD_PROGRAM },
};

struct git_reader {
	struct compiler *c;
	const char *top; /* of the work tree: where git starts programs; NULL = not known */
	const char **files; /* that were read for this work tree */
	size_t n_files;
	bool worktree_config; /* extensions.worktreeConfig */
};

static void read_config(struct git_reader *g, const char *path);

/* Branches and remotes, of which a configuration may have hundreds, lead to no file. */
static bool is_wanted(const char *section)
{
	size_t n = strcspn(section, ".");

	for (size_t i = 0; i < ARRAY_LEN(leads); i++) {
		if (*leads[i].section == *section && strncmp(leads[i].section, section, n) == 0 &&
		    (leads[i].section[n] == '\0' || leads[i].section[n] == '.'))
			return true;
	}
	return strcmp(section, "extensions.") == 0;
}

/* The name that lifts it, NULL when somebody has. */
static const struct protected_name *name_for(const struct compiler *c, enum lead_kind kind)
{
	const struct protected_name *name =
		protected_find(c->p, kind == LEAD_HOOKS ? ".git/hooks" : ".git/config");

	return name && !name->lifted ? name : NULL;
}

/*
 * The file that a value names: all of it, or of a command its first word, if that is a path. What
 * a shell would have to take apart, and other users' homes, are left out: NULL.
 */
static const char *path_in(struct compiler *c, const char *value, enum lead_kind kind)
{
	size_t n = strlen(value);

	if (kind == LEAD_PROGRAM) {
		value += *value == '!';
		n = strcspn(value, " \t");
		if (!memchr(value, '/', n) || strcspn(value, "'\"`$\\;|&<>(){}*?") < n)
			return NULL;
	}
	value = arena_strndup(c->a, value, n);
	if (text_starts(value, "~/"))
		return path_join(c->a, c->p->home, value + 2);
	return *value == '\0' || *value == '~' || *value == '%' ? NULL : value;
}

static bool is_huskys(const char *path)
{
	for (const char *at = path; at; at = strchr(at, '/')) {
		at += *at == '/';
		if (text_starts(at, ".husky") && (at[6] == '\0' || at[6] == '/'))
			return true;
	}
	return false;
}

/*
 * Where hooks lie; NULL = not to be held. Husky's are written anew by every `npm install`, which
 * would fail: they are told at the end, as what is in .husky always is. Where it is called
 * otherwise, its hooks in _ run those of the same name beside it.
 */
static const char *hooks_in(struct compiler *c, const char *path)
{
	if (is_huskys(path))
		return NULL;
	return text_ends(path, "/_") ? arena_strndup(c->a, path, strlen(path) - 2) : path;
}

static bool holds_writable(const struct compiler *c, const char *dir)
{
	for (size_t i = 0; i < c->p->fs.rules.n; i++) {
		const struct path_rule *r = &c->p->fs.rules.v[i];

		if (!r->glob && r->access == ACCESS_WRITE && r->verdict == VERDICT_ALLOW &&
		    path_within(r->real, dir))
			return true;
	}
	return false;
}

/* A protected name already, or in a git directory, which the broker knows by its content. */
static bool is_guarded_anyway(const struct compiler *c, const char *path)
{
	struct decision d;

	policy_decide_path(c->p, ACCESS_WRITE, path, &d);
	return d.protected != NULL;
}

/* What exists is mounted read-only as well, as protected names are. */
static void add_guarded_point(struct compiler *c, const char *real,
			      const struct protected_name *name, const char *why)
{
	struct view_entry at;
	struct point *pt;

	c->view->look(c->view, c->a, real, &at);
	if (at.kind != FILE_DIRECTORY && at.kind != FILE_REGULAR)
		return;
	pt = plan_add_point(c, at.real);
	pt->at = at;
	pt->guarded = true;
	pt->why = arena_printf(c->a, "protected name %s: %s (%s)", name->pattern, why,
			       origin_text(c->a, &name->origin));
}

/* What something of git's leads to. */
struct git_lead {
	const char *base, *path; /* from that directory on, which is canonical */
	const char *real; /* where that is */
	enum lead_kind kind;
	const char *key, *file; /* where it is said; key NULL = git looks for it by itself */
};

static void hold_lead(struct compiler *c, const struct git_lead *l)
{
	const struct protected_name *name = name_for(c, l->kind);
	const char *why;

	if (!name || is_guarded_anyway(c, l->real))
		return;
	if (holds_writable(c, l->real)) {
		if (l->kind == LEAD_HOOKS)
			plan_note(c,
				  "%s of %s leads to %s: files there that are called as hooks are "
				  "run by git outside, and not protected",
				  l->key, l->file, l->real);
		return;
	}
	why = arena_printf(c->a, "git %s it: %s%s%s", l->kind == LEAD_CONFIG ? "reads" : "runs",
			   l->key ? l->key : "", l->key ? " of " : "", l->file);
	if (plan_hold_path(c, l->base, l->path, name, why))
		add_guarded_point(c, l->real, name, why);
}

/* Which kind of key it is; -1 = one that leads nowhere. */
static int kind_of(const struct gitconfig_entry *e)
{
	bool path = strchr(e->value, '/') != NULL;

	for (size_t i = 0; i < ARRAY_LEN(leads); i++) {
		/* most are ruled out by this: it is asked of every entry at every start */
		if (*leads[i].section == *e->key && (path || leads[i].kind != LEAD_PROGRAM) &&
		    gitconfig_key_is(e->key, leads[i].section, leads[i].names))
			return (int)leads[i].kind;
	}
	return -1;
}

static void follow_entry(struct git_reader *g, const struct gitconfig_entry *e, const char *file)
{
	struct git_lead l = { .key = e->key, .file = file };
	struct compiler *c = g->c;
	struct view_entry dir;
	int kind = kind_of(e);

	if (kind < 0)
		return;
	l.kind = (enum lead_kind)kind;
	l.path = path_in(c, e->value, l.kind);
	if (!l.path)
		return;
	if (*l.path == '/') {
		l.base = "/";
	} else if (l.kind == LEAD_CONFIG) {
		c->view->look(c->view, c->a, path_absolute(c->a, file, ".."), &dir);
		l.base = dir.real;
	} else {
		l.base = g->top;
	}
	if (!l.base)
		return;
	if (l.kind == LEAD_HOOKS)
		l.path = hooks_in(c, l.path);
	if (!l.path)
		return;
	l.real = plan_follow(c, l.base, l.path);
	hold_lead(c, &l);
	if (l.kind == LEAD_CONFIG)
		read_config(g, l.real);
}

/* Each file once: they may include each other. */
static bool is_new_file(struct git_reader *g, const char *path)
{
	for (size_t i = 0; i < g->n_files; i++) {
		if (strcmp(g->files[i], path) == 0)
			return false;
	}
	if (g->n_files == FILES_MAX) {
		if (!g->c->refused)
			(void)error_set(g->c->e, E2BIG,
					"git's configuration includes more than %d files: what %s "
					"and others lead to cannot be protected (" LIFTED_BY
					" does without)",
					FILES_MAX, path);
		g->c->refused = true;
		return false;
	}
	*ARENA_PUSH(g->c->a, g->files, g->n_files) = path;
	return true;
}

/* What git reads is there, and we could not read it: no plan, if the command may have done that. */
static void refuse_unread(struct compiler *c, const char *real)
{
	struct view_entry at;

	c->view->look(c->view, c->a, real, &at);
	if (at.size <= VIEW_READ_MAX || !plan_is_writable(c, at.real)) {
		plan_refuse_shut(c, real, real, "says what git runs");
		return;
	}
	if (!c->refused)
		(void)error_set(c->e, EFBIG,
				"%s is larger than %zu MiB: hooks and files that it leads git to "
				"cannot be protected (" LIFTED_BY " does without)",
				at.real, VIEW_READ_MAX >> 20);
	c->refused = true;
}

static void read_config(struct git_reader *g, const char *path)
{
	struct compiler *c = g->c;
	struct gitconfig_entries entries = { 0 };
	const char *text, *real = path;
	enum file_kind kind = c->view->kind(c->view, path);

	if (kind == FILE_LINK) {
		real = plan_follow(c, "/", path);
		kind = c->view->kind(c->view, real);
	}
	if (kind == FILE_UNKNOWN)
		refuse_unread(c, real);
	if (kind != FILE_REGULAR || !is_new_file(g, real))
		return;
	text = c->view->read(c->view, c->a, real);
	if (!text) {
		refuse_unread(c, real);
		plan_note(c,
			  "%s cannot be read, or is too large: hooks and files that it "
			  "leads git to are not protected",
			  path);
		return;
	}
	/* where git stops, it does so with an error: what stands before counts all the same */
	(void)!gitconfig_parse(c->a, text, is_wanted, &entries);
	for (size_t i = 0; i < entries.n; i++) {
		if (strcmp(entries.v[i].key, "extensions.worktreeconfig") == 0)
			g->worktree_config = true;
		else if (entries.v[i].value)
			follow_entry(g, &entries.v[i], path);
	}
}

/* One that git reads wherever it is: it may itself be a link into the project. */
static void read_common(struct git_reader *g, const char *path)
{
	if (g->c->view->kind(g->c->view, path) == FILE_LINK)
		hold_lead(g->c, &(struct git_lead){ .base = "/",
						    .path = path,
						    .real = plan_follow(g->c, "/", path),
						    .kind = LEAD_CONFIG,
						    .file = path });
	read_config(g, path);
}

/* The system's, and both of the user's; at other places, where the caller's variables say so. */
static void read_commons(struct git_reader *g)
{
	struct compiler *c = g->c;
	const char *xdg = NULL;

	for (char *const *v = c->facts->environ_in; v && *v; v++) {
		if (**v != 'X' && **v != 'G')
			continue;
		if (text_starts(*v, "XDG_CONFIG_HOME=/"))
			xdg = strchr(*v, '/');
		else if (text_starts(*v, "GIT_CONFIG_SYSTEM=/") ||
			 text_starts(*v, "GIT_CONFIG_GLOBAL=/"))
			read_common(g, strchr(*v, '/'));
	}
	read_common(g, "/etc/gitconfig");
	read_common(g, xdg ? path_join(c->a, xdg, "git/config")
			   : path_join(c->a, c->p->home, ".config/git/config"));
	read_common(g, path_join(c->a, c->p->home, ".gitconfig"));
}

/* The path that a file of git's says, after `head`; NULL when there is none. */
static const char *read_pointer(struct compiler *c, const char *file, const char *head,
				const char *base)
{
	const char *text = c->view->read(c->view, c->a, file);

	if (!text && c->view->kind(c->view, file) != FILE_ABSENT)
		refuse_unread(c, file);
	if (!text || !text_starts(text, head))
		return NULL;
	text += strlen(head);
	return path_absolute(c->a, base, arena_strndup(c->a, text, strcspn(text, "\n")));
}

/* All that git reads in the work tree `top`; NULL = in none. */
static void read_repository(struct compiler *c, const char *top)
{
	struct git_reader g = { .c = c, .top = top };
	const char *git_dir = top ? path_join(c->a, top, ".git") : NULL, *shared = NULL;

	read_commons(&g);
	if (git_dir && c->view->kind(c->view, git_dir) == FILE_REGULAR) {
		git_dir = read_pointer(c, git_dir, "gitdir: ", top);
		if (git_dir)
			shared =
				read_pointer(c, path_join(c->a, git_dir, "commondir"), "", git_dir);
	}
	if (!git_dir)
		return;
	read_config(&g, path_join(c->a, shared ? shared : git_dir, "config"));
	if (g.worktree_config)
		read_config(&g, path_join(c->a, git_dir, "config.worktree"));
}

/* Work trees, and directories that were looked at for one. */
struct search {
	const char **tops, **seen;
	size_t n_tops, n_seen;
};

static bool is_listed(const char *const *v, size_t n, const char *path)
{
	for (size_t i = 0; i < n; i++) {
		if (strcmp(v[i], path) == 0)
			return true;
	}
	return false;
}

/* The nearest directory with a .git, as git looks for it. */
static void find_top(struct compiler *c, const char *dir, struct search *s)
{
	for (;;) {
		if (is_listed(s->seen, s->n_seen, dir))
			return;
		*ARENA_PUSH(c->a, s->seen, s->n_seen) = dir;
		if (c->view->kind(c->view, path_join(c->a, dir, ".git")) != FILE_ABSENT) {
			*ARENA_PUSH(c->a, s->tops, s->n_tops) = dir;
			return;
		}
		if (strcmp(dir, "/") == 0)
			return;
		dir = path_absolute(c->a, dir, "..");
	}
}

void plan_hold_git(struct compiler *c)
{
	struct search s = { 0 };

	if (!name_for(c, LEAD_HOOKS) && !name_for(c, LEAD_CONFIG))
		return; /* nothing would be held */
	find_top(c, c->p->cwd, &s);
	for (size_t i = 0; i < c->p->fs.rules.n; i++) {
		const struct path_rule *r = &c->p->fs.rules.v[i];

		if (!r->glob && r->access == ACCESS_WRITE && r->verdict == VERDICT_ALLOW)
			find_top(c, r->real, &s);
	}
	for (size_t i = 0; i < s.n_tops; i++)
		read_repository(c, s.tops[i]);
	if (s.n_tops == 0)
		read_repository(c, NULL);
}
