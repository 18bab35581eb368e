/* SPDX-License-Identifier: Apache-2.0 */
/* What may change in a git configuration, and that the text is read as git reads it. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

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
	/* a file that cannot be read vouches for nothing */
	assert_int_equal(check("[core]\npager=less\n[", "[core]\npager=less\n", NULL), -EACCES);
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
		cmocka_unit_test(test_long_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
