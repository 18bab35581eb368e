/* SPDX-License-Identifier: Apache-2.0 */
#include "supervise/broker/gitconfig.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/gitconfig.h"
#include "base/path.h"
#include "base/text.h"
#include "policy/match_name.h"

enum check { CHECK_NONE, CHECK_URL, CHECK_WORKTREE, CHECK_MODULE };

/* "*" as the middle part stands for any subsection. */
static const struct harmless {
	const char *section, *names;
	enum check check;
} harmless[] = {
	{ "core",
	  " repositoryformatversion filemode bare logallrefupdates ignorecase precomposeunicode "
	  "autocrlf eol safecrlf quotepath abbrev compression loosecompression sparsecheckout "
	  "sparsecheckoutcone untrackedcache splitindex commitgraph multipackindex whitespace "
	  "bigfilethreshold preloadindex trustctime checkstat ",
	  CHECK_NONE },
	{ "core", " worktree ", CHECK_WORKTREE },
	{ "user", " name email ", CHECK_NONE },
	{ "author", " name email ", CHECK_NONE },
	{ "committer", " name email ", CHECK_NONE },
	{ "branch.*", " merge rebase description ", CHECK_NONE },
	{ "branch.*", " remote pushremote ", CHECK_URL }, /* the name of a remote, or a URL */
	{ "branch", " autosetupmerge autosetuprebase sort ", CHECK_NONE },
	{ "remote.*", " fetch push prune prunetags tagopt mirror promisor partialclonefilter ",
	  CHECK_NONE },
	{ "remote.*", " url pushurl ", CHECK_URL },
	{ "remote", " pushdefault ", CHECK_URL },
	{ "submodule.*", " active branch ignore fetchrecursesubmodules shallow ", CHECK_NONE },
	{ "submodule.*", " path ", CHECK_MODULE }, /* of .gitmodules */
	{ "submodule.*", " url ", CHECK_URL },
	{ "submodule", " active recurse fetchjobs ", CHECK_NONE },
	{ "extensions", " worktreeconfig objectformat partialclone refstorage relativeworktrees ",
	  CHECK_NONE },
	{ "pull", " rebase ff ", CHECK_NONE },
	{ "push", " default autosetupremote followtags ", CHECK_NONE },
	{ "fetch", " prune prunetags ", CHECK_NONE },
	{ "rebase", " autostash autosquash updaterefs ", CHECK_NONE },
	{ "merge", " ff conflictstyle renames renamelimit ", CHECK_NONE },
	{ "rerere", " enabled autoupdate ", CHECK_NONE },
	{ "commit", " verbose status gpgsign ", CHECK_NONE }, /* by the user's own gpg */
	{ "tag", " gpgsign sort ", CHECK_NONE },
	{ "init", " defaultbranch ", CHECK_NONE },
	{ "color", " ui diff status branch ", CHECK_NONE },
	{ "column", " ui ", CHECK_NONE },
	{ "diff", " algorithm renames renamelimit colormoved mnemonicprefix noprefix context ",
	  CHECK_NONE },
	{ "log", " date decorate abbrevcommit ", CHECK_NONE },
	{ "status", " short branch showuntrackedfiles ", CHECK_NONE },
	{ "gc", " auto autodetach ", CHECK_NONE },
	{ "index", " version threads sparse ", CHECK_NONE },
	{ "feature", " manyfiles ", CHECK_NONE },
	{ "advice", " detachedhead addignoredfile ", CHECK_NONE },
};

/*
 * host of scheme://[user@]host or of the scp form: a leading '-' would be an option to ssh, also
 * in brackets, which git takes off
 */
static bool authority_harmless(const char *s)
{
	const char *end, *at;

	s += strspn(s, "[");
	end = s + strcspn(s, "/:?#");
	at = memchr(s, '@', (size_t)(end - s));
	if (at)
		at += 1 + strspn(at + 1, "[");
	return *s != '-' && (!at || *at != '-');
}

/* Git itself decodes %2d in a host, except for what it leaves to curl. */
static bool authority_decoded(const char *url, const char *authority)
{
	return !text_starts(url, "http") && memchr(authority, '%', strcspn(authority, "/?#"));
}

bool gitconfig_url_harmless(const char *url)
{
	static const char *const schemes[] = { "http", "https",   "ssh",    "git",
					       "file", "git+ssh", "ssh+git" };
	const char *colon = strchr(url, ':'), *slash = strchr(url, '/');

	for (const char *c = url; *c; c++) {
		if ((unsigned char)*c < 0x20 || *c == 0x7f)
			return false;
	}
	/* a remote helper: git runs git-remote-<name> */
	if (*url == '-' || strstr(url, "::"))
		return false;
	if (!colon || (slash && slash < colon))
		return true; /* a path */
	if (strncmp(colon, "://", 3) != 0)
		return authority_harmless(url); /* host:path */
	for (size_t i = 0; i < ARRAY_LEN(schemes); i++) {
		size_t n = strlen(schemes[i]);

		if ((size_t)(colon - url) == n && strncmp(url, schemes[i], n) == 0)
			return authority_harmless(colon + 3) && !authority_decoded(url, colon + 3);
	}
	return false;
}

/* A component that no module may have: there it would not be found again (modules.c). */
static bool is_hidden_in(const char *path)
{
	static const char *const parts[] = { "objects", "refs", "logs", "lfs" };

	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		if (name_pattern_covers(parts[i], path, 0) >= 0)
			return true;
	}
	return false;
}

/*
 * <top>/.git/modules/<name>, also that of a worktree: .git/worktrees/<id>/modules/<name>. *ret_top
 * is the length of <top>, in which the checkout lies; of a worktree it may be elsewhere: 0.
 */
static bool is_module(const char *git_dir, size_t *ret_top)
{
	const char *git = strstr(git_dir, "/.git/"), *rest = git ? git + strlen("/.git/") : NULL;

	if (!git || is_hidden_in(git))
		return false;
	*ret_top = text_starts(rest, "modules/") ? (size_t)(git - git_dir) : 0;
	if (*ret_top == 0 && text_starts(rest, "worktrees/"))
		rest += strlen("worktrees/") + strcspn(rest + strlen("worktrees/"), "/") + 1;
	else if (*ret_top == 0)
		return false;
	return text_starts(rest, "modules/");
}

bool gitconfig_worktree_is_plain(const char *value)
{
	bool down = false;

	for (const char *s = value; *s; s++) {
		if ((unsigned char)*s < 0x20 || *s == 0x7f)
			return false;
	}
	while (*value) {
		size_t n = strcspn(value, "/");
		bool up = n == 2 && value[0] == '.' && value[1] == '.';

		if (up && down)
			return false;
		down |= n > 0 && !up && !(n == 1 && *value == '.');
		value += n;
		value += strspn(value, "/");
	}
	return true;
}

/*
 * For a submodule, relative, and inside the writable directory. Not in a hidden
 * directory: a checkout outside would write .vscode or .git there.
 */
static bool worktree_harmless(struct arena *a, const char *value,
			      const struct gitconfig_place *place, char ret[PATH_MAX])
{
	const char *path;
	size_t top;

	if (!value || *value == '/' || *value == '~' || !gitconfig_worktree_is_plain(value) ||
	    !place || !is_module(place->git_dir, &top))
		return false;
	path = path_absolute(a, place->git_dir, value);
	if (top && !path_within(path, arena_strndup(a, place->git_dir, top)))
		return false;
	text_copy(ret, PATH_MAX, path);
	return strlen(path) < PATH_MAX && path_within(path, place->root) &&
	       strcmp(path, place->root) != 0 && !strstr(path + strlen(place->root), "/.");
}

/*
 * A submodule's path, or its name, which is a path below .git/modules: inside, and not in a hidden
 * directory. Control characters and options in them have made git run programs before.
 */
static bool module_path_harmless(const char *path, size_t len)
{
	const char *start = path;

	if (len == 0 || *path == '/' || *path == '-')
		return false;
	for (const char *s = path; s <= path + len; s++) {
		if (s < path + len && *s != '/') {
			if ((unsigned char)*s < 0x20 || *s == 0x7f || *s == '\\')
				return false;
			continue;
		}
		if (s == start || *start == '.')
			return false; /* empty, ".", "..", ".git" */
		start = s + 1;
	}
	return true;
}

static bool module_harmless(const struct gitconfig_entry *e)
{
	const char *name = strchr(e->key, '.') + 1;

	return e->value && module_path_harmless(e->value, strlen(e->value)) &&
	       module_path_harmless(name, (size_t)(strrchr(e->key, '.') - name));
}

static const struct harmless *find_row(const char *key)
{
	for (size_t i = 0; i < ARRAY_LEN(harmless); i++) {
		if (gitconfig_key_is(key, harmless[i].section, harmless[i].names))
			return &harmless[i];
	}
	return NULL;
}

static const char *judge(struct arena *a, const struct harmless *row,
			 const struct gitconfig_entry *e, const struct gitconfig_place *place,
			 char worktree[PATH_MAX])
{
	if (!row)
		return "git may run programs because of this key";
	if (row->check == CHECK_URL && (!e->value || !gitconfig_url_harmless(e->value)))
		return "this URL makes git run a program";
	if (row->check == CHECK_WORKTREE && !worktree_harmless(a, e->value, place, worktree))
		return "makes git work in another directory";
	if (row->check == CHECK_MODULE && !module_harmless(e))
		return "a submodule outside the project, or in a hidden directory";
	return NULL;
}

/*
 * Does git then fetch from elsewhere, or push to it? Not where a branch that said nothing of a
 * remote gets the one that git takes anyway, as with every `git push -u origin`.
 */
static bool redirects(const struct gitconfig_entries *before, const struct gitconfig_entry *e)
{
	if (text_ends(e->key, "url") ||
	    (strcmp(e->value, "origin") != 0 && strcmp(e->value, ".") != 0))
		return true;
	for (size_t i = 0; i < before->n; i++) {
		if (!before->v[i].used && strcmp(before->v[i].key, e->key) == 0)
			return true; /* it was another */
	}
	return false;
}

static bool same_value(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

static bool take_known(struct gitconfig_entries *before, const struct gitconfig_entry *e)
{
	for (size_t i = 0; i < before->n; i++) {
		struct gitconfig_entry *old = &before->v[i];

		if (!old->used && strcmp(old->key, e->key) == 0 &&
		    same_value(old->value, e->value)) {
			old->used = true;
			return true;
		}
	}
	return false;
}

int gitconfig_check(const char *before, const char *after, const struct gitconfig_place *place,
		    struct gitconfig_finding *ret)
{
	_cleanup_arena_ struct arena *a = arena_new();
	struct gitconfig_entries old = { 0 }, new = { 0 };

	*ret = (struct gitconfig_finding){ .reason = "not a valid git configuration" };
	if (before && gitconfig_parse(a, before, NULL, &old) < 0)
		old = (struct gitconfig_entries){ 0 }; /* what cannot be read vouches for nothing */
	if (gitconfig_parse(a, after, NULL, &new) < 0)
		return -EINVAL;
	for (size_t i = 0; i < new.n; i++) {
		const struct harmless *row;
		const char *reason;

		if (take_known(&old, &new.v[i]))
			continue;
		row = find_row(new.v[i].key);
		reason = judge(a, row, &new.v[i], place, ret->worktree);
		if (!reason) {
			ret->url |= row->check == CHECK_URL && redirects(&old, &new.v[i]);
			continue;
		}
		ret->reason = reason;
		text_copy(ret->key, sizeof(ret->key), new.v[i].key);
		return -EACCES;
	}
	return 0;
}
