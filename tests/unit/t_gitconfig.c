/* SPDX-License-Identifier: Apache-2.0 */
/* What may change in a git configuration, and that the text is read as git reads it. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/macros.h"
#include "supervise/broker/gitconfig.h"

static const struct gitconfig_place place = { .git_dir = "/ws/.git", .root = "/ws" };

static int check(const char *before, const char *after, const char *key)
{
	static struct gitconfig_finding f; /* large, and this is called in every line */
	int r = gitconfig_check(before, after, &place, &f);

	if (key)
		assert_string_equal(f.key, key);
	if (r < 0)
		assert_true(f.reason && *f.reason);
	return r;
}

#define ALLOW(after) assert_int_equal(check(NULL, after, NULL), 0)
#define DENY(after, key) assert_int_equal(check(NULL, after, key), -EACCES)
#define INVALID(after) assert_int_equal(check(NULL, after, NULL), -EINVAL)

static void test_keys(void **state)
{
	(void)state;
	ALLOW("");
	ALLOW("[core]\n\tbare = false\n\tfilemode = true\n[user]\n\tname = A B\n\temail = a@b\n");
	ALLOW("[branch \"a.b/c\"]\n\tremote = origin\n\tmerge = refs/heads/x\n");
	ALLOW("[remote \"origin\"]\n\turl = git@host:x/y.git\n\tfetch = +refs/heads/*:refs/x/*\n");
	DENY("[core]\n\tfsmonitor = x\n", "core.fsmonitor");
	DENY("[CORE]\n\tFSMonitor = x\n", "core.fsmonitor");
	DENY("[core]\n\tfsmonitor\n", "core.fsmonitor"); /* true: a daemon is started */
	DENY("[core \"x\"]\n\tbare = true\n", "core.x.bare"); /* not the key it looks like */
	DENY("[branch]\n\tremote = x\n", "branch.remote");
	DENY("[alias]\n\tst = !x\n", "alias.st");
	DENY("[hook \"new\"]\n\tcommand = x\n", "hook.new.command"); /* of a later git */
	DENY("[include]\n\tpath = x\n", "include.path");
	DENY("[includeIf \"gitdir:/\"]\n\tpath = x\n", "includeif.gitdir:/.path");
	DENY("[filter \"lfs\"]\n\tclean = x\n", "filter.lfs.clean");
	DENY("[remote \"o\"]\n\tuploadpack = x\n", "remote.o.uploadpack");
	DENY("[submodule \"s\"]\n\tupdate = !x\n", "submodule.s.update");
	ALLOW("[submodule \"a/b.c\"]\n\tpath = a/b.c\n\turl = ../x.git\n\tshallow = true\n");
	DENY("[submodule \"s\"]\n\tpath = ../s\n", "submodule.s.path");
	DENY("[submodule \"s\"]\n\tpath = a//s\n", "submodule.s.path");
	DENY("[submodule \"s\"]\n\tpath = a/.git/s\n", "submodule.s.path");
	DENY("[submodule \"s\"]\n\tpath = /s\n", "submodule.s.path");
	DENY("[submodule \"s\"]\n\tpath = -s\n", "submodule.s.path");
	DENY("[submodule \"s\"]\n\tpath = \"s\r\"\n", "submodule.s.path");
	DENY("[submodule \"s\"]\n\tpath\n", "submodule.s.path");
	DENY("[submodule \"../s\"]\n\tpath = s\n", "submodule.../s.path");
	DENY("[submodule \"\"]\n\tpath = s\n", "submodule..path");
	DENY("[extensions]\n\tnoop = 1\n", "extensions.noop");
	/* names are whole words of the list */
	DENY("[user]\n\tnam = x\n", "user.nam");
	DENY("[diff]\n\texternal = x\n", "diff.external");
}

#define RUNS "git may run programs because of this key"
#define LEADS "git may send data elsewhere, or trust others, because of this key"
#define UNKNOWN "it is not among the keys that are known to be harmless"

/* What is said of a key is true: not every one that is refused makes git run something. */
static void test_reasons(void **state)
{
	static const struct {
		const char *text, *reason;
	} rows[] = {
		{ "[core]fsmonitor", RUNS },
		{ "[core]sshCommand=x", RUNS },
		{ "[core]hooksPath=x", RUNS },
		{ "[core]editor=x", RUNS },
		{ "[core]gitProxy=x", RUNS },
		{ "[pager]log=x", RUNS },
		{ "[alias]x=!x", RUNS },
		{ "[alias \"x\"]command=!x", RUNS },
		{ "[credential]helper=x", RUNS },
		{ "[credential \"https://h\"]helper=x", RUNS },
		{ "[diff \"x\"]textconv=x", RUNS },
		{ "[diff \"x\"]command=x", RUNS },
		{ "[diff]external=x", RUNS },
		{ "[filter \"x\"]smudge=x", RUNS },
		{ "[merge \"x\"]driver=x", RUNS },
		{ "[mergetool \"x\"]cmd=x", RUNS },
		{ "[difftool \"x\"]path=x", RUNS },
		{ "[gpg]program=x", RUNS },
		{ "[gpg \"ssh\"]defaultKeyCommand=x", RUNS },
		{ "[include]path=x", RUNS },
		{ "[includeIf \"x\"]path=x", RUNS },
		{ "[url \"ext::x\"]insteadOf=x", RUNS },
		{ "[protocol]allow=always", RUNS },
		{ "[protocol \"ext\"]allow=always", RUNS },
		{ "[remote \"o\"]uploadpack=x", RUNS },
		{ "[remote \"o\"]vcs=x", RUNS },
		{ "[sequence]editor=x", RUNS },
		{ "[uploadpack]packObjectsHook=x", RUNS },
		{ "[ssh]variant=simple", RUNS },
		{ "[submodule \"s\"]update=!x", RUNS },
		{ "[hook \"x\"]command=x", RUNS },
		{ "[http]proxy=x", LEADS },
		{ "[http \"https://h\"]sslVerify=false", LEADS },
		{ "[remote \"o\"]proxy=x", LEADS },
		{ "[help]autocorrect=immediate", UNKNOWN },
		{ "[receive]denyCurrentBranch=updateInstead", UNKNOWN },
		{ "[core]protectNTFS=false", UNKNOWN },
		{ "[core]new=x", UNKNOWN },
		{ "[credential]useHttpPath=true", UNKNOWN },
		{ "[new]key", UNKNOWN },
		{ "[filter \"x\"]new", UNKNOWN },
	};
	struct gitconfig_finding f;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		assert_int_equal(gitconfig_check(NULL, rows[i].text, &place, &f), -EACCES);
		if (strcmp(f.reason, rows[i].reason) != 0)
			fail_msg("%s: %s", rows[i].text, f.reason);
	}
}

/* Data only, by git's own documentation, and set by people in their repositories. */
static void test_harmless(void **state)
{
	static const char *const rows[] = {
		"[user]signingKey=0xABC",
		"[user]signingKey=~/.ssh/id_ed25519.pub",
		"[user]useConfigOnly=true",
		"[core]longpaths=true",
		"[core]symlinks=false",
		"[http]postBuffer=524288000",
		"[http \"https://h/\"]postBuffer=1",
		"[http]lowSpeedTime=60",
		"[pack]windowMemory=100m",
		"[pack]threads=1",
		"[maintenance]auto=false",
		"[maintenance]strategy=incremental",
		"[blame]ignoreRevsFile=.git-blame-ignore-revs",
		"[receive]denyNonFastForwards=true",
		"[receive]denyDeletes=true",
		"[advice]skippedCherryPicks=false",
		"[color \"status\"]added=green",
		"[lfs]repositoryFormatVersion=0",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		if (check(NULL, rows[i], NULL) != 0)
			fail_msg("%s was refused", rows[i]);
	}
	/* what stands beside them is not */
	DENY("[http]proxy=x", "http.proxy");
	DENY("[user]signingKey=x\n[gpg]format=ssh", "gpg.format");
	DENY("[pack]packSizeLimit=1\n[pack]writeHook=x", "pack.writehook");
	DENY("[maintenance]repo=/", "maintenance.repo");
}

/* Each of these is what git makes of it; a parser that saw it otherwise would let it through. */
static void test_reading(void **state)
{
	(void)state;
	DENY("[user] name = x\n[core] fsmonitor = y\n",
	     "core.fsmonitor"); /* on the header's line */
	DENY("[user]\nname = a # b \\\nfsmonitor = x\n",
	     "user.fsmonitor"); /* comments do not go on */
	ALLOW("[user]\nname = a \\\nfsmonitor = x\n"); /* but values do */
	DENY("[user]\nname = \"a\\\\\"\n[core]\npager=x\n", "core.pager");
	DENY("[user]\nname = a\r\n[core]\r\npager = x\r\n", "core.pager");
	ALLOW("[user]\nname = \"# ; [core] pager\"\n");
	DENY("[user]\nname = \"x\" ; c\n[core]pager=x", "core.pager"); /* no newline at the end */
	DENY("\xef\xbb\xbf[core]pager=x\n", "core.pager");
	DENY("[a \"\\\"]\\\\\"]\nx=1\n[core]\npager=x\n", "a.\"]\\.x");
	DENY("[core.sub]\nbare=true\n", "core.sub.bare");
	INVALID("[core\npager=x\n");
	INVALID("pager=x\n");
	INVALID("[core]\n1x=y\n");
	INVALID("[core]\nbare = \"x\n");
	INVALID("[core]\nbare = \\q\n");
	INVALID("[core]\nbare = \\");
	INVALID("[core] bare x\n");
	INVALID("[]\nx=y\n");
	INVALID("[core \"x\ny\"]\n");
}

/*
 * A value, and what `git config --list -z` (2.39) says it is. With another reading of blanks a
 * harmless value could be what is judged, and one that is not what git uses.
 */
static void test_values(void **state)
{
	static const struct {
		const char *text, *value;
	} rows[] = {
		{ "a", "a" },
		{ " a ", "a" },
		{ "\ta\t", "a" },
		{ "a  b", "a  b" },
		{ "a \\\n", "a " },
		{ "a\\\n b", "a b" },
		{ "\\\n a", "a" },
		{ " \\\n  \\\n a", "a" },
		{ "\\\r\n a", "a" },
		{ "\"\" a", "a" },
		{ "\"\"\"\" \"\" -a", "-a" },
		{ "\" \" a", "  a" },
		{ "\" a\"", " a" },
		{ "\"a \"", "a " },
		{ "a \"\"", "a " },
		{ "a \"\" ; c", "a " },
		{ "a \\\n# c", "a " },
		{ "\"\" # c", "" },
		{ "a#b", "a" },
		{ "a\\\\ #b", "a\\" },
		{ "\"a#b\"", "a#b" },
		{ "a\" b \"c", "a b c" },
		{ "a\r", "a" },
		{ "a \r\n", "a" },
		{ "\"a\\\n b\"", "a b" },
		{ "\"\\\n b\"", " b" },
		{ "\\t a", "\t a" },
		{ "\\n", "\n" },
		{ " \\\\ ", "\\" },
		{ "\\\"a", "\"a" },
		{ "\"a\" \"b\"", "a b" },
		{ "\\b", "\b" },
		{ "", "" },
		{ "\"\"", "" },
		{ " \\\n", "" },
		{ "a\"\"b", "ab" },
		{ "\\\n\"\" a", "a" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		_cleanup_arena_ struct arena *a = arena_new();
		struct gitconfig_entries all = { 0 };
		const char *text = arena_printf(a, "[x]\nk =%s\n[y]\nk = z\n", rows[i].text);

		assert_int_equal(gitconfig_parse(a, text, NULL, &all), 0);
		assert_int_equal(all.n, 2);
		if (strcmp(all.v[0].value, rows[i].value) != 0)
			fail_msg("%s is '%s', not '%s'", text, all.v[0].value, rows[i].value);
	}
}

static void test_changes(void **state)
{
	static const char old[] = "[core]\n\tpager = less\n[alias]\n\tst = status\n";

	(void)state;
	assert_int_equal(check(old, old, NULL), 0);
	/* what the user has is kept or removed, moved, and new harmless keys added */
	assert_int_equal(check(old, "[alias]\nst=status\n[core]\npager=less\nbare=true\n", NULL),
			 0);
	assert_int_equal(check(old, "[core]\n", NULL), 0);
	assert_int_equal(check(old, "[core]\npager = evil\n", "core.pager"), -EACCES);
	/* once is not twice: git runs what comes last */
	assert_int_equal(check(old, "[core]\npager=less\npager=less\n", "core.pager"), -EACCES);
	assert_int_equal(check("[core]\nfsmonitor\n", "[core]\nfsmonitor=\n", NULL), -EACCES);
	assert_int_equal(check("[core]\nfsmonitor=\n", "[core]\nfsmonitor\n", NULL), -EACCES);
	assert_int_equal(check("[core]\npager=b\npager=a\npager\npager=a\n",
			       "[core]\npager=a\npager\npager=a\npager=b\n", NULL),
			 0);
	assert_int_equal(check("[core]\npager=b\npager=a\npager=a\n",
			       "[core]\npager=a\npager=a\npager=a\n", "core.pager"),
			 -EACCES);
	/* a file that cannot be read vouches for nothing */
	assert_int_equal(check("[core]\npager=less\n[", "[core]\npager=less\n", NULL), -EACCES);
}

#define MANY 40000
#define MANY_SECONDS 3 /* all pairs of them took five times as long, without a sanitizer */

static const char *repeat(struct arena *a, const char *head, const char *line)
{
	size_t n = strlen(head), each = strlen(line);
	char *text = arena_alloc(a, n + MANY * each + 1);

	memcpy(text, head, n);
	for (size_t i = 0; i < MANY; i++)
		memcpy(text + n + i * each, line, each);
	return text;
}

/* Other sandboxes may wait meanwhile: no work for each pair of entries. */
static void test_many(void **state)
{
	_cleanup_arena_ struct arena *a = arena_new();
	const char *old = repeat(a, "[pull]\n", "ff\n"), *new = repeat(a, "[pull]\n", "ff=1\n");
	const char *urls = repeat(a, "[branch \"m\"]\n", "remote=.\n"),
		   *others = repeat(a, "[branch \"m\"]\n", "remote=origin\n");
	struct timespec start, end;

	(void)state;
	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &start);
	assert_int_equal(check(old, new, NULL), 0);
	assert_int_equal(check(new, new, NULL), 0);
	assert_int_equal(check(urls, others, NULL), 0);
	assert_int_equal(check(old, others, NULL), 0);
	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
	assert_in_range(end.tv_sec - start.tv_sec, 0, MANY_SECONDS);
}

/* Where git fetches from or pushes to: told when it is another than before. */
static void test_redirects(void **state)
{
	static const char head[] = "[branch \"m\"]\n";
	static const struct {
		const char *before, *after;
		bool told;
	} rows[] = {
		{ "", "remote=origin\n", false },
		{ "", "remote=other\n", true },
		{ "remote=origin\n", "remote=origin\n", false },
		{ "remote=other\n", "remote=origin\n", true },
		/* the last one counts */
		{ "remote=other\n", "remote=other\nremote=origin\n", true },
		{ "merge=a\n", "merge=b\nremote=origin\n", false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		_cleanup_arena_ struct arena *a = arena_new();
		struct gitconfig_finding f;

		assert_int_equal(gitconfig_check(arena_printf(a, "%s%s", head, rows[i].before),
						 arena_printf(a, "%s%s", head, rows[i].after),
						 &place, &f),
				 0);
		if (f.url != rows[i].told)
			fail_msg("%s to %s", rows[i].before, rows[i].after);
	}
}

static void test_urls(void **state)
{
	static const char *const fine[] = {
		"https://example.org/x.git",
		"http://u@h:8080/x",
		"https://me%40example.org:a%2fb@h/x",
		"ssh://git@[2001:db8:0:0:0:0:0:1]:22/x%20y",
		"[git@host:22]:x",
		"ssh://git@host:22/x",
		"git://h/x",
		"file:///srv/x",
		"git@github.com:a/b.git",
		"host:path",
		"../x",
		"/srv/x",
		"./a:b",
		"origin",
		".",
		"ssh+git://h/x",
		"",
	};
	static const char *const bad[] = {
		"ext::sh -c x",
		"foo::bar",
		"a::b",
		"-oProxyCommand=x",
		"ssh://-oProxyCommand=x/y",
		"ssh://u@-oProxyCommand=x/y",
		"-x:y",
		"u@-x:y",
		"[-oProxyCommand=x]:y",
		"[u@-oProxyCommand=x]:y",
		"u@[-oProxyCommand=x]:y",
		"ssh://[-oProxyCommand=x]/y",
		"ssh://u@[-oProxyCommand=x]/y",
		"ssh://%2doProxyCommand=x/y",
		"git+ssh://u@%5b-oProxyCommand=x]/y",
		"javascript://x",
		"ext://x",
		"HTTP+x://y",
		"https://h\n/x",
		"ssh://u@-h:22/x",
		"--upload-pack=x",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(fine); i++) {
		if (!gitconfig_url_harmless(fine[i]))
			fail_msg("%s was refused", fine[i]);
	}
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		if (gitconfig_url_harmless(bad[i]))
			fail_msg("%s passed", bad[i]);
	}
	DENY("[remote \"o\"]\nurl = ext::sh -c x\n", "remote.o.url");
	DENY("[remote \"o\"]\nurl\n", "remote.o.url");
	DENY("[remote \"o\"]\nurl = \"\" -oProxyCommand=x\n", "remote.o.url");
	DENY("[remote \"o\"]\nurl = \\\n -oProxyCommand=x\n", "remote.o.url");
	/* a branch's remote may be a URL as well */
	DENY("[branch \"m\"]\nremote = ext::sh -c x\n", "branch.m.remote");
	DENY("[branch \"m\"]\npushRemote = a::b\n", "branch.m.pushremote");
	DENY("[remote]\npushDefault = a::b\n", "remote.pushdefault");
	ALLOW("[branch \"m\"]\nremote = .\n");
}

static void test_worktree(void **state)
{
	const struct gitconfig_place module = { .git_dir = "/ws/.git/modules/s", .root = "/ws" };
	struct gitconfig_finding f;

	(void)state;
	assert_int_equal(gitconfig_check(NULL, "[core]\nworktree=../../../s\n", &module, &f), 0);
	assert_int_equal(gitconfig_check(NULL, "[core]\nworktree=../../../a/s\n", &module, &f), 0);
	/* outside, the whole project, hidden directories, absolute */
	assert_int_equal(gitconfig_check(NULL, "[core]\nworktree=../../../../x\n", &module, &f),
			 -EACCES);
	assert_int_equal(gitconfig_check(NULL, "[core]\nworktree=../../..\n", &module, &f),
			 -EACCES);
	assert_int_equal(gitconfig_check(NULL, "[core]\nworktree=../../../.vscode\n", &module, &f),
			 -EACCES);
	assert_int_equal(gitconfig_check(NULL, "[core]\nworktree=../x\n", &module, &f), -EACCES);
	assert_int_equal(gitconfig_check(NULL, "[core]\nworktree=/ws/s\n", &module, &f), -EACCES);
	/* git drops the blank: one level more than a directory called " .." would be */
	assert_int_equal(
		gitconfig_check(NULL, "[core]\nworktree=\\\n ../../../../s\n", &module, &f),
		-EACCES);
	/* s may become a link, which the way back then starts from */
	assert_int_equal(gitconfig_check(NULL, "[core]\nworktree=../../../s/../t\n", &module, &f),
			 -EACCES);
	assert_int_equal(gitconfig_check(NULL, "[core]\nworktree=./.././/../../s\n", &module, &f),
			 0);
	/* git before 2.45 makes a space of it */
	assert_int_equal(gitconfig_check(NULL, "[core]\nworktree=../../../s\tt\n", &module, &f),
			 -EACCES);
	assert_int_equal(gitconfig_check(NULL, "[core]\nworktree\n", &module, &f), -EACCES);
}

static void test_long_names(void **state)
{
	char text[2 * GITCONFIG_KEY_MAX + 32];
	size_t n = 0;

	(void)state;
	/* longer than is kept: refused, not cut to something harmless */
	n += (size_t)sprintf(text, "[branch \"");
	memset(text + n, 'x', GITCONFIG_KEY_MAX);
	(void)strcpy(text + n + GITCONFIG_KEY_MAX, "\"]\nremote=o\n");
	INVALID(text);
	(void)strcpy(text, "[user]\n");
	memset(text + 7, 'n', GITCONFIG_KEY_MAX);
	(void)strcpy(text + 7 + GITCONFIG_KEY_MAX, "=x\n");
	INVALID(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_keys),       cmocka_unit_test(test_reading),
		cmocka_unit_test(test_values),     cmocka_unit_test(test_changes),
		cmocka_unit_test(test_urls),       cmocka_unit_test(test_worktree),
		cmocka_unit_test(test_long_names), cmocka_unit_test(test_many),
		cmocka_unit_test(test_redirects),  cmocka_unit_test(test_reasons),
		cmocka_unit_test(test_harmless),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
