/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names that run later outside the sandbox, and therefore must not be created or changed
 * by what runs inside, at any depth below a writable directory, whether they
 * exist or not (match_name.h says how they are compared).
 *
 * What belongs here: a program outside acts on the file without being asked
 * again. What does not: files that are source code to be reviewed like any other
 * (Makefile, package.json, CI); those are listed in the report at the end.
 */
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "base/text.h"
#include "policy/build.h"
#include "policy/match_name.h"

struct builtin_name {
	const char *pattern, *reason;
};

#define GIT_RUNS "git runs it"
#define GIT_REMOTES "says where git fetches from and pushes to"
#define SHELL_RUNS "a shell runs it"
#define EDITOR_RUNS "an editor runs tasks and tools from it"
#define AGENT_RUNS "gives an agent outside its permissions, hooks or tools"
#define LOGIN_RUNS "started at login"

static const struct builtin_name builtin_names[] = {
	/* git: hooks, and configuration that names programs (fsmonitor, pager, filters, aliases) */
	{ ".git/hooks", GIT_RUNS },
	{ ".git/config", "git runs programs named in it" },
	{ ".git/config.worktree", "git runs programs named in it" },
	{ ".git/commondir", "makes git read another configuration" },
	{ ".git/info/attributes", "chooses filters that git runs" },
	/* how remotes were written down before there was a configuration: git only reads them */
	{ ".git/remotes", GIT_REMOTES },
	{ ".git/branches", GIT_REMOTES },
	{ ".git/modules/*/hooks", GIT_RUNS },
	{ ".git/modules/*/config", "git runs programs named in it" },
	{ ".git/modules/*/config.worktree", "git runs programs named in it" },
	{ ".git/modules/*/commondir", "makes git read another configuration" },
	{ ".git/modules/*/remotes", GIT_REMOTES },
	{ ".git/modules/*/branches", GIT_REMOTES },
	{ ".git/worktrees/*/config.worktree", "git runs programs named in it" },
	{ ".git/worktrees/*/commondir", "makes git read another configuration" },
	{ ".git/worktrees/*/gitdir", "makes git work in another directory" },
	{ ".gitconfig", "git runs programs named in it" },
	{ ".config/git", "git runs programs named in it" },
	/* a changed URL is fetched by the next update outside; git itself changes it by rename, which
	 * the broker checks as it does a configuration, so `git submodule add` works */
	{ ".gitmodules", "chooses what git fetches" },
	/* Mercurial: hooks, aliases, extensions; its other files are its own to write */
	{ ".hg/hgrc", "hg runs programs named in it" },
	{ ".hgrc", "hg runs programs named in it" },

	/* shells and what they start with */
	{ ".bashrc", SHELL_RUNS },
	{ ".bash_profile", SHELL_RUNS },
	{ ".bash_login", SHELL_RUNS },
	{ ".bash_logout", SHELL_RUNS },
	{ ".bash_aliases", SHELL_RUNS },
	{ ".bash_completion", SHELL_RUNS },
	{ ".profile", SHELL_RUNS },
	{ ".zshrc", SHELL_RUNS },
	{ ".zshenv", SHELL_RUNS },
	{ ".zprofile", SHELL_RUNS },
	{ ".zlogin", SHELL_RUNS },
	{ ".zlogout", SHELL_RUNS },
	{ ".oh-my-zsh", SHELL_RUNS },
	{ ".login", SHELL_RUNS },
	{ ".logout", SHELL_RUNS },
	{ ".cshrc", SHELL_RUNS },
	{ ".tcshrc", SHELL_RUNS },
	{ ".kshrc", SHELL_RUNS },
	{ ".mkshrc", SHELL_RUNS },
	{ ".config/fish", SHELL_RUNS },
	{ ".config/nushell", SHELL_RUNS },
	{ ".inputrc", "binds keys of every shell to commands" },
	{ ".envrc", "direnv runs it on entering the directory" },
	{ ".direnvrc", "direnv runs it" },
	{ ".config/direnv", "direnv runs it" },
	{ ".tmux.conf", "tmux runs commands from it" },
	{ ".screenrc", "screen runs commands from it" },
	{ ".gdbinit", "gdb runs it" },
	{ ".gdbearlyinit", "gdb runs it" },
	{ ".lldbinit", "lldb runs it" },
	{ ".pythonrc", "python runs it" },
	{ ".pdbrc", "the debugger of python runs it" },
	{ ".irbrc", "irb runs it" },
	{ ".Rprofile", "R runs it" },
	{ ".ripgreprc", "rg runs a preprocessor named in it" },

	/* sessions */
	{ ".pam_environment", "sets variables of every login" },
	{ ".xinitrc", LOGIN_RUNS },
	{ ".xprofile", LOGIN_RUNS },
	{ ".xsession", LOGIN_RUNS },
	{ ".xsessionrc", LOGIN_RUNS },
	{ ".config/autostart", LOGIN_RUNS },
	{ ".config/systemd/user", LOGIN_RUNS },
	{ ".local/share/systemd/user", LOGIN_RUNS },
	{ ".config/environment.d", "sets variables of every login" },
	{ ".local/share/applications", "a desktop starts programs from it" },
	{ ".local/bin", "on the PATH of the user" },
	{ ".ssh", "keys, and commands that ssh runs" },
	{ ".gnupg", "keys, and programs that gpg runs" },

	/* secrets of the project, read by its tools */
	{ ".env", "holds secrets and sets variables of programs" },

	/* editors: .vscode and .idea are tracked by many repositories; lift them where they hurt */
	{ ".vscode", EDITOR_RUNS },
	{ ".idea", EDITOR_RUNS },
	{ ".zed", EDITOR_RUNS },
	{ ".fleet", EDITOR_RUNS },
	{ ".devcontainer", EDITOR_RUNS },
	{ ".devcontainer.json", EDITOR_RUNS },
	{ ".vimrc", EDITOR_RUNS },
	{ ".gvimrc", EDITOR_RUNS },
	/* at home plugins, in a project settings that name language servers (coc) */
	{ ".vim", EDITOR_RUNS },
	{ ".exrc", EDITOR_RUNS },
	{ ".nvimrc", EDITOR_RUNS },
	{ ".nvim.lua", EDITOR_RUNS },
	{ ".config/nvim", EDITOR_RUNS },
	{ ".emacs", EDITOR_RUNS },
	{ ".emacs.d", EDITOR_RUNS },
	{ ".dir-locals.el", EDITOR_RUNS },
	{ ".helix", EDITOR_RUNS },

	/* agents; of .claude only what runs, the rest is memory and notes */
	{ ".mcp.json", AGENT_RUNS },
	{ ".claude.json", AGENT_RUNS },
	{ ".claude/settings.json", AGENT_RUNS },
	{ ".claude/settings.local.json", AGENT_RUNS },
	{ ".claude/commands", AGENT_RUNS },
	{ ".claude/agents", AGENT_RUNS },
	{ ".claude/hooks", AGENT_RUNS },
	{ ".claude/skills", AGENT_RUNS },
	{ ".claude/plugins", AGENT_RUNS },
	{ ".codex", AGENT_RUNS },
	{ ".gemini", AGENT_RUNS },
	{ ".cursor", AGENT_RUNS },
	{ ".windsurf", AGENT_RUNS },
	{ ".continue", AGENT_RUNS },
	{ ".opencode", AGENT_RUNS },
	{ "opencode.json", AGENT_RUNS },
	{ "opencode.jsonc", AGENT_RUNS },
	{ ".aider.conf.yml", AGENT_RUNS },
	{ ".roo", AGENT_RUNS },
	{ ".kiro", AGENT_RUNS },
	{ ".agents", AGENT_RUNS },
	{ ".qwen", AGENT_RUNS },
	{ ".amp", AGENT_RUNS },
	{ "crush.json", AGENT_RUNS },
	{ ".crush.json", AGENT_RUNS },
	{ ".junie", AGENT_RUNS },
	{ ".factory", AGENT_RUNS },
	{ ".augment", AGENT_RUNS },
	{ ".trae", AGENT_RUNS },
	{ ".goose", AGENT_RUNS },

	/* sandboxes: nobody writes the policy of the next run from inside this one */
	{ ".ambit.json", "policy of the next run" },
	{ ".ambit.yaml", "policy of the next run" },
	{ ".ambit", "policy of the next run" },
	{ ".config/ambit", "policy of the next run" },
	{ ".local/state/ambit", "trust and audit log of ambit" },
	{ ".srt-settings.json", "policy of another sandbox" },
	{ "fence.json", "policy of another sandbox" },
	{ "fence.jsonc", "policy of another sandbox" },
	{ ".ai-jail", "policy of another sandbox" },
};

/*
 * Does the broker find it by what a directory holds? Only those of the table: others that the
 * settings name in .git are compared as they are written, or nobody would guard them.
 */
static bool is_by_content(const char *pattern)
{
	if (!text_starts(pattern, ".git/") || strcmp(pattern, ".git/info/attributes") == 0)
		return false;
	for (size_t i = 0; i < ARRAY_LEN(builtin_names); i++) {
		if (strcmp(builtin_names[i].pattern, pattern) == 0)
			return true;
	}
	return false;
}

static void add_name(struct builder *b, const struct protected_name *name)
{
	struct policy_filesystem *fs = &b->p->fs;
	struct protected_name *added = ARENA_PUSH(b->a, fs->protected, fs->n_protected);

	*added = *name;
	added->by_content = is_by_content(name->pattern);
	name_index_add(fs->protected_index, name->pattern);
}

void protect_add_defaults(struct builder *b)
{
	b->p->fs.protected_index = name_index_new(b->a);
	for (size_t i = 0; i < ARRAY_LEN(builtin_names); i++)
		add_name(b, &(struct protected_name){
				    .pattern = builtin_names[i].pattern,
				    .reason = builtin_names[i].reason,
				    .origin = { .layer = LAYER_DEFAULT, .name = "default" },
			    });
}

bool protected_by_content(const struct protected_name *name)
{
	return name->by_content;
}

const struct protected_name *protected_find(const struct policy *p, const char *pattern)
{
	const struct protected_name *found = NULL;

	for (size_t i = 0; i < p->fs.n_protected; i++) {
		const struct protected_name *name = &p->fs.protected[i];

		if ((!found || found->lifted) && strcmp(name->pattern, pattern) == 0)
			found = name;
	}
	return found;
}

const struct protected_name *protected_lifter(const struct policy *p,
					      const struct protected_name *name)
{
	static const char *const kinds[][2] = {
		{ "/hooks", ".git/hooks" },     { "/commondir", ".git/commondir" },
		{ "/config", ".git/config" },   { "/config.worktree", ".git/config" },
		{ "/remotes", ".git/remotes" }, { "/branches", ".git/branches" },
	};

	for (size_t i = 0; protected_by_content(name) && i < ARRAY_LEN(kinds); i++) {
		if (text_ends(name->pattern, kinds[i][0]))
			return protected_find(p, kinds[i][1]);
	}
	return name;
}

const struct protected_name *protect_match(const struct policy *p, unsigned root_depth,
					   const char *path)
{
	const struct protected_name *best = NULL;
	int best_before = INT_MAX;

	/* of several the one that begins first: the rest lies in it */
	for (int i = -1; (i = name_index_next(p->fs.protected_index, path, i + 1)) >= 0;) {
		const struct protected_name *name = &p->fs.protected[i];
		int before;

		if (name->lifted)
			continue;
		before = name_pattern_covers(name->pattern, path, name->locked ? 0 : root_depth);
		if (before >= 0 && before < best_before) {
			best = name;
			best_before = before;
		}
	}
	return best;
}

bool protected_may_name(const struct path_rule *rule)
{
	return rule->access == ACCESS_WRITE && rule->verdict == VERDICT_ALLOW && !rule->glob &&
	       !rule->origin.untrusted && rule->origin.layer >= LAYER_MANAGED;
}

bool protected_is_named(const struct policy *p, unsigned root_depth, const char *path)
{
	if (p->fs.keep_named || !protect_match(p, root_depth, path) ||
	    name_pattern_covers(".git", path, 0) >= 0)
		return false;
	if (protect_match(p, path_depth(path), path))
		return false; /* locked */
	for (size_t i = 0; i < p->fs.rules.n; i++) {
		if (protected_may_name(&p->fs.rules.v[i]) &&
		    strcmp(p->fs.rules.v[i].real, path) == 0)
			return true;
	}
	return false;
}

/* Relative, of whole components, and not "*" alone, which would protect everything. */
static int check_name(const char *name, struct error *e)
{
	bool wild_only = true;

	if (*name == '/' || *name == '~')
		return error_set(e, EINVAL, "\"%s\" must be a name, not a path (see denyWrite)",
				 name);
	for (const char *s = name; *s;) {
		size_t len = strcspn(s, "/");
		bool wild = len == 1 && *s == '*';

		if (len == 0 || (*s == '.' && (len == 1 || (len == 2 && s[1] == '.'))))
			return error_set(e, EINVAL, "\"%s\" has an empty, \".\" or \"..\" part",
					 name);
		if (!wild && strcspn(s, "*?[") < len)
			return error_set(e, EINVAL, "\"%s\": * must be a whole part", name);
		wild_only = wild_only && wild;
		s += len + (s[len] == '/');
	}
	return wild_only ? error_set(e, EINVAL, "\"%s\" would protect everything", name) : 0;
}

static int read_name(struct builder *b, const struct source *s, const char *key,
		     const struct node *n, const char **ret, struct error *e)
{
	const char *text;
	int r = node_string(s, key, n, &text, e);

	if (r < 0)
		return r;
	r = check_name(text, e);
	if (r < 0) {
		(void)source_wrap(s, n, key, e);
		return r;
	}
	*ret = text_ends(text, "/") ? arena_strndup(b->a, text, strlen(text) - 1) : text;
	return 0;
}

int protect_add(struct builder *b, const struct source *s, size_t row, const struct node *n,
		struct error *e)
{
	const char *pattern;
	int r = read_name(b, s, settings_table[row].key, n, &pattern, e);

	if (r >= 0)
		r = merge_admit(b, s, row, n, true, e);
	if (r <= 0)
		return r;
	add_name(b, &(struct protected_name){
			    .pattern = pattern,
			    .reason = "protected by the settings",
			    .origin = source_origin(s, n),
			    .locked = layer_is_managed(s->layer),
		    });
	return 1;
}

static const char *nearest_name(const struct policy *p, const char *text)
{
	const char *best = NULL;
	unsigned best_distance = 3;

	for (size_t i = 0; i < p->fs.n_protected; i++) {
		unsigned d = text_distance(p->fs.protected[i].pattern, text);

		if (d < best_distance) {
			best_distance = d;
			best = p->fs.protected[i].pattern;
		}
	}
	return best;
}

/* "name" lifts itself and what is protected below it (".claude" for ".claude/hooks"). */
static bool lifts(const char *text, const char *pattern)
{
	size_t n = strlen(text);

	return strncmp(pattern, text, n) == 0 && (pattern[n] == '\0' || pattern[n] == '/');
}

/* The managed file can take back what its profiles ask for. */
static bool may_lift(const struct source *s, const struct protected_name *name)
{
	return !name->locked || (!merge_is_bound(s) && name->origin.layer == LAYER_MANAGED_PROFILE);
}

int protect_lift(struct builder *b, const struct source *s, size_t row, const struct node *n,
		 struct error *e)
{
	const char *key = settings_table[row].key, *text, *near;
	struct policy *p = b->p;
	bool known = false;
	int r = read_name(b, s, key, n, &text, e);

	if (r >= 0)
		r = merge_admit(b, s, row, n, false, e);
	if (r <= 0)
		return r;
	for (size_t i = 0; i < p->fs.n_protected; i++) {
		struct protected_name *name = &p->fs.protected[i];

		if (!lifts(text, name->pattern))
			continue;
		known = true;
		if (!may_lift(s, name)) {
			r = merge_violation(b, s, key, n, &name->origin, e);
			if (r < 0)
				return r;
			continue;
		}
		name->lifted = true;
		name->lifted_by = source_origin(s, n);
	}
	if (known)
		return 1;
	near = nearest_name(p, text);
	if (near)
		return source_fail(s, n, key, e, "\"%s\" is not protected (did you mean \"%s\"?)",
				   text, near);
	return source_fail(s, n, key, e, "\"%s\" is not protected", text);
}

static bool is_git_config(const struct protected_name *name)
{
	return strcmp(name->pattern, ".git/config") == 0;
}

/* Who keeps the name from being lifted, or NULL. */
static const struct origin *git_config_kept_by(const struct builder *b)
{
	const struct policy_filesystem *fs = &b->p->fs;
	const struct row_state *unprotect = &b->rows[setting_find("filesystem.unprotect")];

	for (size_t i = 0; i < fs->n_protected; i++) {
		const struct protected_name *name = &fs->protected[i];

		if (is_git_config(name) && name->locked)
			return unprotect->locked ? &unprotect->locked_origin : &name->origin;
	}
	return NULL;
}

/* What lies behind is known only at the end: an option is refused, a file's value left out. */
static int refuse_kept(struct builder *b, const struct origin *asked, const char *key,
		       const struct origin *kept, struct error *e)
{
	const char *where = origin_text(b->a, kept);

	if (asked->layer >= LAYER_ENVIRONMENT)
		return error_set(e, EPERM, "%s: %s: refused: fixed by the managed settings, %s",
				 origin_text(b->a, asked), key, where);
	builder_note(b, asked, "ignored: %s is fixed by the managed settings, %s", key, where);
	return 0;
}

/* allowGitConfig lifts a name, too: not one that the managed file keeps, unless it says both. */
static int lift_git_config(struct builder *b, struct error *e)
{
	struct policy_filesystem *fs = &b->p->fs;
	struct row_state *row = &b->rows[setting_find("filesystem.allowGitConfig")];
	const struct origin *kept = git_config_kept_by(b);
	int r;

	if (kept && !layer_is_managed(row->origin.layer)) {
		r = refuse_kept(b, &row->origin, "filesystem.allowGitConfig", kept, e);
		fs->allow_git_config = false;
		row->origin = *kept;
		return r;
	}
	for (size_t i = 0; i < fs->n_protected; i++) {
		if (is_git_config(&fs->protected[i])) {
			fs->protected[i].lifted = true;
			fs->protected[i].lifted_by = row->origin;
		}
	}
	return 0;
}

/* Who keeps a name, of those that are kept; NULL = nobody keeps any. */
static const struct origin *names_kept_by(const struct builder *b)
{
	const struct policy_filesystem *fs = &b->p->fs;
	const struct row_state *unprotect = &b->rows[setting_find("filesystem.unprotect")];

	if (unprotect->locked)
		return &unprotect->locked_origin;
	for (size_t i = 0; i < fs->n_protected; i++) {
		if (fs->protected[i].locked && !fs->protected[i].lifted)
			return &fs->protected[i].origin;
	}
	return NULL;
}

/*
 * Nobody guards names in bulk directories, nor deep below with `protect: anchors`. Where the managed
 * file keeps names, only itself may leave places unguarded.
 */
static int keep_guarded(struct builder *b, const struct origin *kept, struct error *e)
{
	struct policy_filesystem *fs = &b->p->fs;
	struct row_state *row = &b->rows[setting_find("filesystem.protect")];
	size_t n = 0;
	int r = 0;

	if (fs->protect == PROTECT_ANCHORS && !layer_is_managed(row->origin.layer) &&
	    !(row->managed && row->managed_value.u == PROTECT_ANCHORS)) {
		r = refuse_kept(b, &row->origin, "filesystem.protect", kept, e);
		fs->protect = PROTECT_EVERYWHERE;
		row->origin = *kept;
	}
	for (size_t i = 0; i < fs->bulk.n && r == 0; i++) {
		const struct origin *o = &fs->bulk.v[i].origin;

		if (layer_is_managed(o->layer))
			fs->bulk.v[n++] = fs->bulk.v[i];
		else
			r = refuse_kept(b, o, "filesystem.bulk", kept, e);
	}
	fs->bulk.n = n;
	return r;
}

int protect_finish(struct builder *b, struct error *e)
{
	struct policy_filesystem *fs = &b->p->fs;
	bool locked = b->rows[setting_find("filesystem.unprotect")].locked;
	const struct origin *kept;
	int r;

	for (size_t i = 0; locked && i < fs->n_protected; i++)
		fs->protected[i].locked = !fs->protected[i].lifted;
	kept = names_kept_by(b);
	r = kept ? keep_guarded(b, kept, e) : 0;
	return r == 0 && fs->allow_git_config ? lift_git_config(b, e) : r;
}
