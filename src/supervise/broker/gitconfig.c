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

/* "*" as the middle part stands for any subsection, no names for any name. */
static const struct harmless {
	const char *section, *names;
	enum check check;
} harmless[] = {
	{ "core",
	  " repositoryformatversion filemode bare logallrefupdates ignorecase precomposeunicode "
	  "autocrlf eol safecrlf quotepath abbrev compression loosecompression sparsecheckout "
	  "sparsecheckoutcone untrackedcache splitindex commitgraph multipackindex whitespace "
	  "bigfilethreshold preloadindex trustctime checkstat symlinks longpaths hidedotfiles "
	  "fscache packedgitlimit packedgitwindowsize deltabasecachelimit ",
	  CHECK_NONE },
	{ "core", " worktree ", CHECK_WORKTREE },
	/* a key's name, its text or its file, as an argument of the user's own gpg or ssh-keygen */
	{ "user", " name email signingkey useconfigonly ", CHECK_NONE },
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
	{ "push", " default autosetupremote followtags useforceifincludes ", CHECK_NONE },
	{ "fetch", " prune prunetags parallel writecommitgraph showforcedupdates ", CHECK_NONE },
	{ "rebase", " autostash autosquash updaterefs stat backend missingcommitscheck ",
	  CHECK_NONE },
	{ "merge", " ff conflictstyle renames renamelimit stat log autostash directoryrenames ",
	  CHECK_NONE },
	{ "rerere", " enabled autoupdate ", CHECK_NONE },
	/* signed by the user's own gpg */
	{ "commit", " verbose status gpgsign cleanup ", CHECK_NONE },
	{ "tag", " gpgsign sort ", CHECK_NONE },
	{ "init", " defaultbranch ", CHECK_NONE },
	{ "color",
	  " ui advice branch diff grep interactive pager push remote showbranch status transport ",
	  CHECK_NONE },
	{ "color.*", NULL, CHECK_NONE }, /* names of colours */
	{ "column", " ui branch clean status tag ", CHECK_NONE },
	{ "diff",
	  " algorithm renames renamelimit colormoved colormovedws mnemonicprefix noprefix context "
	  "interhunkcontext indentheuristic submodule ignoresubmodules relative ",
	  CHECK_NONE },
	{ "log", " date decorate abbrevcommit follow mailmap showroot ", CHECK_NONE },
	{ "status", " short branch showuntrackedfiles relativepaths renames showstash aheadbehind ",
	  CHECK_NONE },
	{ "blame", " ignorerevsfile showemail showroot date coloring blankboundary ", CHECK_NONE },
	{ "grep", " linenumber column extendedregexp patterntype fullname threads ", CHECK_NONE },
	{ "stash", " showpatch showstat showincludeuntracked ", CHECK_NONE },
	{ "checkout", " guess workers thresholdforparallelism ", CHECK_NONE },
	{ "worktree", " guessremote userelativepaths ", CHECK_NONE },
	{ "gc", " auto autodetach autopacklimit bigpackthreshold writecommitgraph packrefs ",
	  CHECK_NONE },
	{ "maintenance", " auto autodetach strategy ", CHECK_NONE },
	{ "pack",
	  " window depth windowmemory threads compression packsizelimit deltacachesize "
	  "deltacachelimit indexversion usebitmaps usesparse writereverseindex ",
	  CHECK_NONE },
	{ "index", " version threads sparse ", CHECK_NONE },
	{ "feature", " manyfiles ", CHECK_NONE },
	{ "receive", " denynonfastforwards denydeletes ", CHECK_NONE },
	/* how the data is sent, not where to */
	{ "http", " postbuffer lowspeedlimit lowspeedtime maxrequests minsessions version ",
	  CHECK_NONE },
	{ "http.*", " postbuffer lowspeedlimit lowspeedtime maxrequests minsessions version ",
	  CHECK_NONE },
	{ "lfs", " repositoryformatversion ", CHECK_NONE }, /* git-lfs writes it by itself */
	{ "advice", NULL, CHECK_NONE }, /* what git says, or does not */
};

#define RUNS "git may run programs because of this key"
#define LEADS "git may send data elsewhere, or trust others, because of this key"
#define UNKNOWN "it is not among the keys that are known to be harmless"

/* For the reason alone: what is not above is refused, be it here or not. */
static const struct {
	const char *section, *names, *reason;
} refused[] = {
	{ "core",
	  " fsmonitor sshcommand hookspath editor pager askpass gitproxy alternaterefscommand ",
	  RUNS },
	{ "pager", NULL, RUNS },
	{ "alias", NULL, RUNS },
	{ "alias.*", NULL, RUNS },
	{ "hook", NULL, RUNS },
	{ "hook.*", NULL, RUNS },
	{ "include", NULL, RUNS }, /* of another file, unseen */
	{ "includeif.*", NULL, RUNS },
	{ "credential", " helper ", RUNS },
	{ "credential.*", " helper ", RUNS },
	{ "diff", " external tool guitool ", RUNS },
	{ "diff.*", " textconv command ", RUNS },
	{ "filter.*", " clean smudge process ", RUNS },
	{ "merge", " tool guitool ", RUNS },
	{ "merge.*", " driver ", RUNS },
	{ "mergetool.*", " cmd path ", RUNS },
	{ "difftool.*", " cmd path ", RUNS },
	{ "guitool.*", " cmd ", RUNS },
	{ "browser.*", " cmd path ", RUNS },
	{ "man.*", " cmd path ", RUNS },
	{ "man", " viewer ", RUNS },
	{ "help", " browser ", RUNS },
	{ "web", " browser ", RUNS },
	{ "instaweb", " httpd browser modulepath ", RUNS },
	{ "gpg", " program ", RUNS },
	{ "gpg.*", " program defaultkeycommand ", RUNS },
	{ "url.*", NULL, RUNS }, /* what was judged as a URL would be another */
	{ "protocol", " allow ", RUNS },
	{ "protocol.*", " allow ", RUNS },
	{ "remote.*", " uploadpack receivepack vcs ", RUNS },
	{ "branch.*", " mergeoptions ", RUNS }, /* strategies are programs */
	{ "pull", " twohead octopus ", RUNS },
	{ "submodule", " update ", RUNS },
	{ "submodule.*", " update ", RUNS },
	{ "sequence", " editor ", RUNS },
	{ "interactive", " difffilter ", RUNS },
	{ "uploadpack", " packobjectshook ", RUNS },
	{ "init", " templatedir ", RUNS }, /* hooks come from there */
	{ "trailer.*", " command cmd ", RUNS },
	{ "tar.*", " command ", RUNS },
	{ "imap", " tunnel ", RUNS },
	{ "sendemail", " smtpserver sendmailcmd tocmd cccmd headercmd ", RUNS },
	{ "sendemail.*", " smtpserver sendmailcmd tocmd cccmd headercmd ", RUNS },
	{ "lfs.*", " path clean smudge ", RUNS },
	{ "ssh", " variant ", RUNS }, /* what ssh takes for options */
	{ "remote.*", " proxy proxyauthmethod ", LEADS },
	{ "http", NULL, LEADS },
	{ "http.*", NULL, LEADS },
	{ "lfs", " url pushurl ", LEADS },
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

static const char *reason_of(const char *key)
{
	for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
		if (gitconfig_key_is(key, refused[i].section, refused[i].names))
			return refused[i].reason;
	}
	return UNKNOWN;
}

static const char *judge(struct arena *a, const struct harmless *row,
			 const struct gitconfig_entry *e, const struct gitconfig_place *place,
			 char worktree[PATH_MAX])
{
	if (!row)
		return reason_of(e->key);
	if (row->check == CHECK_URL && (!e->value || !gitconfig_url_harmless(e->value)))
		return "this URL makes git run a program";
	if (row->check == CHECK_WORKTREE && !worktree_harmless(a, e->value, place, worktree))
		return "makes git work in another directory";
	if (row->check == CHECK_MODULE && !module_harmless(e))
		return "a submodule outside the project, or in a hidden directory";
	return NULL;
}

/* NULL, a name without "=", is before all values. */
static int compare_values(const char *a, const char *b)
{
	if (a && b)
		return strcmp(a, b);
	return (a != NULL) - (b != NULL);
}

static int compare_entries(const void *a, const void *b)
{
	const struct gitconfig_entry *x = a, *y = b;
	int r = strcmp(x->key, y->key);

	return r ? r : compare_values(x->value, y->value);
}

/*
 * The first entry that is not before e, of n entries in order. The text is of hostile origin and others
 * may wait: nothing here looks at each pair of entries.
 */
static size_t find_first(const struct gitconfig_entries *in_order, const struct gitconfig_entry *e)
{
	size_t low = 0, high = in_order->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (compare_entries(&in_order->v[middle], e) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/*
 * Does git then fetch from elsewhere, or push to it? Not where a branch that said nothing of a
 * remote gets the one that git takes anyway, as with every `git push -u origin`.
 */
static bool redirects(const struct gitconfig_entries *before, const struct gitconfig_entry *e)
{
	const struct gitconfig_entry any = { .key = e->key };
	size_t i;

	if (text_ends(e->key, "url") ||
	    (strcmp(e->value, "origin") != 0 && strcmp(e->value, ".") != 0))
		return true;
	i = find_first(before, &any);
	return i < before->n && strcmp(before->v[i].key, e->key) == 0; /* it was another */
}

/* Each entry vouches for one: the first of its equals counts how many of them have. */
static bool take_known(struct gitconfig_entries *before, const struct gitconfig_entry *e)
{
	size_t first = find_first(before, e), next;

	if (first == before->n)
		return false;
	next = first + before->v[first].taken;
	if (next >= before->n || compare_entries(&before->v[next], e) != 0)
		return false;
	before->v[first].taken++;
	return true;
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
	if (old.n)
		qsort(old.v, old.n, sizeof(*old.v), compare_entries);
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
