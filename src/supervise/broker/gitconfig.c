/* SPDX-License-Identifier: Apache-2.0 */
#include "supervise/broker/gitconfig.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/path.h"
#include "base/text.h"

struct entry {
	const char *key; /* section[.subsection].name, section and name in lower case */
	const char *value; /* NULL for a name without "=" */
	bool used; /* matched by an entry of the other file */
};

struct entries {
	struct entry *v;
	size_t n;
};

struct parser {
	struct arena *a;
	const char *p;
	const char *section; /* canonical, with the trailing dot; NULL before the first header */
	struct entries *out;
};

static bool is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

static void skip_space(struct parser *ps)
{
	while (is_space(*ps->p))
		ps->p++;
}

/* [section], [section "sub\"section"], [section.sub] */
static int parse_header(struct parser *ps)
{
	_cleanup_buf_ struct buf b = BUF_INIT(GITCONFIG_KEY_MAX);

	ps->p++;
	while (ascii_alnum(*ps->p) || *ps->p == '-' || *ps->p == '.')
		buf_putc(&b, ascii_lower(*ps->p++));
	if (b.len == 0)
		return -EINVAL;
	if (is_space(*ps->p)) {
		skip_space(ps);
		if (*ps->p++ != '"')
			return -EINVAL;
		buf_putc(&b, '.');
		while (*ps->p && *ps->p != '"' && *ps->p != '\n') {
			if (*ps->p == '\\' && ps->p[1] && ps->p[1] != '\n')
				ps->p++;
			buf_putc(&b, *ps->p++);
		}
		if (*ps->p++ != '"')
			return -EINVAL;
	}
	if (*ps->p++ != ']' || b.overflow)
		return -EINVAL;
	buf_putc(&b, '.');
	ps->section = arena_strdup(ps->a, buf_str(&b));
	return 0;
}

/* One escape; the result is irrelevant for the decision except that it is well formed. */
static int parse_escape(struct parser *ps, struct buf *b)
{
	switch (*ps->p++) {
	case '\r':
		if (*ps->p != '\n')
			return -EINVAL;
		ps->p++;
		return 0;
	case '\n':
		return 0;
	case 't':
		buf_putc(b, '\t');
		return 0;
	case 'b':
		buf_putc(b, '\b');
		return 0;
	case 'n':
		buf_putc(b, '\n');
		return 0;
	case '\\':
	case '"':
		buf_putc(b, ps->p[-1]);
		return 0;
	default:
		return -EINVAL;
	}
}

static int parse_value(struct parser *ps, const char **ret)
{
	_cleanup_buf_ struct buf b = BUF_INIT(GITCONFIG_MAX);
	size_t keep = 0; /* length without trailing blanks */
	bool quoted = false;

	skip_space(ps);
	for (;;) {
		char c = *ps->p;

		if (c == '\0' || c == '\n') {
			if (quoted)
				return -EINVAL;
			break;
		}
		ps->p++;
		if (!quoted && (c == '#' || c == ';')) {
			ps->p += strcspn(ps->p, "\n");
			break;
		}
		if (c == '"') {
			quoted = !quoted;
		} else if (c == '\\') {
			if (parse_escape(ps, &b) < 0)
				return -EINVAL;
			keep = b.len;
		} else {
			buf_putc(&b, c);
			if (quoted || !is_space(c))
				keep = b.len;
		}
	}
	*ret = arena_strndup(ps->a, buf_str(&b), keep);
	return 0;
}

static int parse_entry(struct parser *ps)
{
	_cleanup_buf_ struct buf b = BUF_INIT(GITCONFIG_KEY_MAX);
	struct entry *e;

	if (!ps->section || !ascii_alpha(*ps->p))
		return -EINVAL;
	buf_puts(&b, ps->section);
	while (ascii_alnum(*ps->p) || *ps->p == '-')
		buf_putc(&b, ascii_lower(*ps->p++));
	if (b.overflow)
		return -EINVAL;
	e = ARENA_PUSH(ps->a, ps->out->v, ps->out->n);
	e->key = arena_strdup(ps->a, buf_str(&b));
	skip_space(ps);
	if (*ps->p == '=') {
		ps->p++;
		return parse_value(ps, &e->value);
	}
	if (*ps->p == '#' || *ps->p == ';')
		ps->p += strcspn(ps->p, "\n");
	return *ps->p == '\n' || *ps->p == '\0' ? 0 : -EINVAL;
}

static int parse(struct arena *a, const char *text, struct entries *ret)
{
	struct parser ps = { .a = a, .p = text, .out = ret };
	int r = 0;

	if (strncmp(text, "\xef\xbb\xbf", 3) == 0)
		ps.p += 3;
	while (r == 0 && *ps.p) {
		if (is_space(*ps.p) || *ps.p == '\n')
			ps.p++;
		else if (*ps.p == '#' || *ps.p == ';')
			ps.p += strcspn(ps.p, "\n");
		else
			r = *ps.p == '[' ? parse_header(&ps) : parse_entry(&ps);
	}
	return r;
}

enum check { CHECK_NONE, CHECK_URL, CHECK_WORKTREE, CHECK_MODULE };

/* "*" as the middle part stands for any subsection. */
static const struct {
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

/* host of scheme://[user@]host or of the scp form: a leading '-' would be an option to ssh */
static bool authority_harmless(const char *s)
{
	const char *end = s + strcspn(s, "/:?#");
	const char *at = memchr(s, '@', (size_t)(end - s));

	return *s != '-' && (!at || at[1] != '-');
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
			return authority_harmless(colon + 3);
	}
	return false;
}

/*
 * Relative, and inside the writable directory: what submodules need. Not in a hidden
 * directory: a checkout outside would write .vscode or .git there.
 */
static bool worktree_harmless(struct arena *a, const char *value,
			      const struct gitconfig_place *place)
{
	const char *path;

	if (!value || *value == '/' || *value == '~' || !place)
		return false;
	path = path_absolute(a, place->git_dir, value);
	return path_within(path, place->root) && strcmp(path, place->root) != 0 &&
	       !strstr(path + strlen(place->root), "/.");
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

static bool module_harmless(const struct entry *e)
{
	const char *name = strchr(e->key, '.') + 1;

	return e->value && module_path_harmless(e->value, strlen(e->value)) &&
	       module_path_harmless(name, (size_t)(strrchr(e->key, '.') - name));
}

/* The name part is after the last dot, the section before the first; between: subsection. */
static bool key_is(const char *key, const char *section, const char *names)
{
	const char *last = strrchr(key, '.'), *first = strchr(key, '.');
	bool any = text_ends(section, ".*");
	size_t n = strlen(section) - (any ? 2 : 0);
	char word[GITCONFIG_KEY_MAX + 2];
	size_t len = strlen(last + 1);

	if ((size_t)(first - key) != n || strncmp(key, section, n) != 0 || any != (first != last))
		return false;
	if (len + 3 > sizeof(word))
		return false;
	word[0] = ' ';
	memcpy(word + 1, last + 1, len);
	word[len + 1] = ' ';
	word[len + 2] = '\0';
	return strstr(names, word) != NULL;
}

static const char *judge(struct arena *a, const struct entry *e,
			 const struct gitconfig_place *place)
{
	for (size_t i = 0; i < ARRAY_LEN(harmless); i++) {
		if (!key_is(e->key, harmless[i].section, harmless[i].names))
			continue;
		if (harmless[i].check == CHECK_URL &&
		    (!e->value || !gitconfig_url_harmless(e->value)))
			return "this URL makes git run a program";
		if (harmless[i].check == CHECK_WORKTREE && !worktree_harmless(a, e->value, place))
			return "makes git work in another directory";
		if (harmless[i].check == CHECK_MODULE && !module_harmless(e))
			return "a submodule outside the project, or in a hidden directory";
		return NULL;
	}
	return "git may run programs because of this key";
}

static bool same_value(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

static bool take_known(struct entries *before, const struct entry *e)
{
	for (size_t i = 0; i < before->n; i++) {
		struct entry *old = &before->v[i];

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
	struct entries old = { 0 }, new = { 0 };

	*ret = (struct gitconfig_finding){ .reason = "not a valid git configuration" };
	if (before && parse(a, before, &old) < 0)
		old = (struct entries){ 0 }; /* what cannot be read vouches for nothing */
	if (parse(a, after, &new) < 0)
		return -EINVAL;
	for (size_t i = 0; i < new.n; i++) {
		const char *reason;

		if (take_known(&old, &new.v[i]))
			continue;
		reason = judge(a, &new.v[i], place);
		ret->url |= text_ends(new.v[i].key, "url");
		if (!reason)
			continue;
		ret->reason = reason;
		text_copy(ret->key, sizeof(ret->key), new.v[i].key);
		return -EACCES;
	}
	return 0;
}
