/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/match_name.h"

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/macros.h"

static void test_same_names(void **state)
{
	static const char *const same[][2] = {
		{ ".envrc", ".envrc" },       { ".ENVRC", ".envrc" },
		{ ".EnvRc", ".envrc" },       { "HEAD", "head" },
		{ ".git\u200c", ".git" }, /* zero width non-joiner */
		{ "\u200d.git", ".git" },     { ".g\ufeffi\u00adt", ".git" },
		{ ".g\U000e0020it", ".git" }, /* a tag */
		{ ".proﬁle", ".profile" }, /* one letter for two */
		{ ".PROﬁLE", ".profile" },    { ".vſcode", ".vscode" }, /* long s */
		{ "\u212aonfig", "konfig" }, /* the sign for kelvin */
		{ ".baßrc", ".bassrc" },      { "straße", "STRASSE" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(same); i++)
		assert_true(name_is(same[i][0], same[i][1]));
}

static void test_other_names(void **state)
{
	static const char *const other[][2] = {
		{ "", ".env" },
		{ ".env", "" },
		{ ".env", ".envrc" },
		{ ".envrc", ".env" },
		{ ".gi\xc3", ".git" }, /* no UTF-8 */
		{ ".git\x80", ".git" },
		{ ".git\xe2\x80", ".git" }, /* the first two bytes of an invisible character */
		{ ".gít", ".git" },
		{ "\xff.git", ".git" },
		{ ".g\xe2\x80\x8bit.", ".git" },
	};
	char longer[2 * NAME_MAX];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(other); i++)
		assert_false(name_is(other[i][0], other[i][1]));
	memset(longer, 0xad, sizeof(longer));
	assert_false(name_is_n(longer, sizeof(longer), ".git", 4));
	memset(longer, 'a', sizeof(longer));
	assert_false(name_is_n(longer, sizeof(longer), ".git", 4));
}

static void test_path_within(void **state)
{
	(void)state;
	assert_true(name_path_within("/w/a", "/w/a"));
	assert_true(name_path_within("/W/A/b", "/w/a"));
	assert_true(name_path_within("/w", "/"));
	assert_true(name_path_within("/w/a/.", "/w/a"));
	assert_false(name_path_within("/w/a", "/w/a/."));
	assert_false(name_path_within("/w/ab", "/w/a"));
	assert_false(name_path_within("/w", "/w/a"));
	assert_false(name_path_within("/", "/w"));
}

static void test_covers(void **state)
{
	(void)state;
	assert_int_equal(name_pattern_covers(".envrc", "/w/a/.envrc", 1), 2);
	assert_int_equal(name_pattern_covers(".ENVRC", "/w/a/.envrc", 1), 2);
	assert_int_equal(name_pattern_covers(".vscode", "/w/.vscode/x/y", 1), 1);
	assert_int_equal(name_pattern_covers(".vscode", "/w/.vscode/x/y", 2), -1);
	assert_int_equal(name_pattern_covers(".vscode", "/.vscode/a/.VSCODE", 1), 2);
	assert_int_equal(
		name_pattern_covers(".git/modules/*/hooks", "/w/.git/modules/m/hooks/x", 1), 1);
	assert_int_equal(name_pattern_covers(".git/modules/*/hooks", "/w/.git/modules/hooks", 1),
			 -1);
	assert_int_equal(name_pattern_covers(".claude/settings.json", "/w/.claude", 0), -1);
	assert_int_equal(name_pattern_covers("a/b", "/a/a/b", 0), 1);
	assert_int_equal(name_pattern_covers("a", "/", 0), -1);
	assert_int_equal(name_pattern_covers("a", "", 0), -1);
}

static void test_begun(void **state)
{
	(void)state;
	assert_int_equal(name_pattern_begun(".config/systemd/user", "/w/.config"), 1);
	assert_int_equal(name_pattern_begun(".config/systemd/user", "/w/.Config/SYSTEMD"), 1);
	assert_int_equal(name_pattern_begun(".config/systemd/user", "/w/.config/systemd/user"), -1);
	assert_int_equal(name_pattern_begun(".config/systemd/user", "/w/.config/x"), -1);
	assert_int_equal(name_pattern_begun(".envrc", "/w/.envrc"), -1);
	assert_int_equal(name_pattern_begun("a/a/b", "/a/a/a"), 1);
}

/* The numbers that an index gives for a path, as text. */
static const char *hits(const struct name_index *index, const char *path)
{
	static char text[64];
	size_t n = 0;

	text[0] = '\0';
	for (int i = -1; (i = name_index_next(index, path, i + 1)) >= 0;)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%d ", i);
	return text;
}

static void test_index(void **state)
{
	static const char *const patterns[] = { ".envrc",    ".vscode", "*/hooks", ".claude/a",
						".claude/b", "\u00e9x", ".env",    "x" };
	_cleanup_arena_ struct arena *a = arena_new();
	struct name_index *index = name_index_new(a);

	(void)state;
	assert_int_equal(name_index_next(index, "/w/x", 0), -1);
	for (size_t i = 0; i < ARRAY_LEN(patterns); i++)
		name_index_add(index, patterns[i]);
	assert_string_equal(hits(index, "/w/y"), "2 ");
	assert_string_equal(hits(index, "/"), "");
	assert_string_equal(hits(index, ""), "");
	assert_string_equal(hits(index, "/w/.EnvRc/f"), "0 2 ");
	assert_string_equal(hits(index, "/.claude/.vscode/x"), "1 2 7 ");
	assert_string_equal(hits(index, "/w/.\u200cenv"), "2 6 ");
	assert_string_equal(hits(index, "/w/\u200c.vscode"), "1 2 ");
	assert_string_equal(hits(index, "/w/\u00e9x"), "2 5 ");
	assert_int_equal(name_index_next(index, "/w/.envrc", 1), 2);
	assert_int_equal(name_index_next(index, "/w/.envrc", 3), -1);
}

/* What the index finds is what each pattern by itself would say, of every path of these names. */
static void test_index_is_exact(void **state)
{
	static const char *const patterns[] = { ".git/hooks", ".git/modules/*/hooks",
						"hooks/.git", ".GIT",
						"*/x",        ".git/x/.git",
						"\u00e9",     "x" };
	static const char *const names[] = { "w",     ".git",    ".G\u200bIT", "hooks",
					     "HOOKS", "modules", "x",          "\u00e9" };
	_cleanup_arena_ struct arena *a = arena_new();
	struct name_index *index = name_index_new(a);
	unsigned found = 0;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(patterns); i++)
		name_index_add(index, patterns[i]);
	for (unsigned n = 0; n < 1u << 15; n++) { /* five names each */
		char path[128] = "";

		for (unsigned k = 0; k < 5; k++) {
			strcat(path, "/");
			strcat(path, names[n >> 3 * k & 7]);
		}
		for (int i = 0; i < (int)ARRAY_LEN(patterns); i++) {
			bool lies = name_pattern_covers(patterns[i], path, 0) >= 0 ||
				    name_pattern_begun(patterns[i], path) >= 0;

			assert_int_equal(name_index_next(index, path, i) == i, lies);
			found += lies;
		}
	}
	assert_true(found > 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_same_names),     cmocka_unit_test(test_other_names),
		cmocka_unit_test(test_path_within),    cmocka_unit_test(test_covers),
		cmocka_unit_test(test_begun),          cmocka_unit_test(test_index),
		cmocka_unit_test(test_index_is_exact),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
