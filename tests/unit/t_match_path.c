/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "policy/match_path.h"
#include "reference_path.h"

struct pair {
	const char *pattern, *path;
};

static const struct pair matching[] = {
	{ "/", "/" },
	{ "/a", "/a" },
	{ "/a/b.c", "/a/b.c" },
	/* one component, also hidden ones: a deny on * must not miss .env */
	{ "/*", "/a" },
	{ "/*", "/.env" },
	{ "/a/*", "/a/b" },
	{ "/a/*.c", "/a/.c" },
	{ "/a/*.c", "/a/x.c.c" },
	{ "/a*b*c", "/aXbYbZc" },
	{ "/*a*", "/a" },
	{ "/?", "/x" },
	{ "/??", "/\xc3\xa9" }, /* bytes, not characters */
	/* components */
	{ "/**", "/" },
	{ "/**", "/a/b/c" },
	{ "/a/**", "/a" },
	{ "/a/**", "/a/b/c" },
	{ "/**/a", "/a" },
	{ "/**/a", "/b/a/c/a" },
	{ "/a/**/b", "/a/b" },
	{ "/a/**/b", "/a/x/y/b" },
	{ "/**/**/a", "/a" },
	{ "/**/x/**/x/**", "/x/x" },
	{ "/**/x/**/x/**", "/a/x/b/c/x/d" },
	{ "/**/a/*/c", "/a/b/a/a/c" },
	{ "/**/*.pem", "/home/u/.k.pem" },
	/* sets */
	{ "/[abc]", "/b" },
	{ "/[a-cx-z]", "/y" },
	{ "/[!a]", "/b" },
	{ "/[^a]", "/b" },
	{ "/[a^]", "/^" },
	{ "/[a!]", "/!" },
	{ "/[]]", "/]" },
	{ "/[]a]", "/a" },
	{ "/[!]]", "/a" },
	{ "/[-a]", "/-" },
	{ "/[a-]", "/-" },
	{ "/[--0]", "/." },
	{ "/[a\\-c]", "/-" },
	{ "/[\\]]", "/]" },
	{ "/[a-\\z]", "/q" },
	{ "/[[]x]", "/[x]" },
	{ "/[*?]", "/*" },
	{ "/[\\\\]", "/\\" },
	{ "/[\x80-\xff]", "/\xe9" },
	{ "/*[0-9]", "/v10" },
	/* a lone closing bracket is itself */
	{ "/a]", "/a]" },
	/* escapes */
	{ "/\\*", "/*" },
	{ "/\\[slug\\]", "/[slug]" },
	{ "/\\a\\\\", "/a\\" },
	{ "/\\**", "/*x" },
	/* relative against relative */
	{ ".git/*", ".git/hooks" },
};

static const struct pair different[] = {
	{ "/", "/a" },
	{ "/a", "/" },
	{ "/a", "/a/b" },
	{ "/a/b", "/a" },
	{ "/a", "/A" },
	{ "/a", "/ab" },
	{ "/*", "/" },
	{ "/*", "/a/b" },
	{ "/a/*", "/a" },
	{ "/a*b", "/a/b" },
	{ "/?", "/" },
	{ "/?", "/\xc3\xa9" },
	{ "/a?b", "/a/b" },
	{ "/a/**/b", "/a/x/c" },
	{ "/a/**", "/ab" },
	{ "/**/a", "/a/b" },
	{ "/**/x/**/x/**", "/a/x/b" },
	{ "/[a-c]", "/d" },
	{ "/[!a-c]", "/b" },
	{ "/[!a]", "/bb" },
	{ "/a[!b]c", "/a/c" },
	{ "/a[.-0]c", "/a/c" }, /* the range holds '/', a path's slash is still none */
	{ "/[[]x]", "/x]" },
	{ "/\\*", "/a" },
	{ "/\\?", "/a" },
	{ "/\\[ab]", "/a" },
	/* malformed patterns match nothing, not even their own text */
	{ "/[a", "/[a" },
	{ "/[a", "/a" },
	{ "/*[", "/x[" },
	{ "/a\\", "/a\\" },
	{ "/[a/]", "/[a/]" },
	{ "/[z-a]", "/m" },
	/* absolute and relative never meet */
	{ "a", "/a" },
	{ "/a", "a" },
	{ "**", "/a" },
};

static void test_matches(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(matching); i++) {
		if (!pattern_matches(matching[i].pattern, matching[i].path))
			fail_msg("%s should match %s", matching[i].pattern, matching[i].path);
	}
	for (size_t i = 0; i < ARRAY_LEN(different); i++) {
		if (pattern_matches(different[i].pattern, different[i].path))
			fail_msg("%s should not match %s", different[i].pattern, different[i].path);
	}
}

static void test_covers(void **state)
{
	(void)state;
	assert_true(pattern_covers("/", "/"));
	assert_true(pattern_covers("/", "/a/b"));
	assert_true(pattern_covers("/a", "/a"));
	assert_true(pattern_covers("/a", "/a/b/c"));
	assert_true(pattern_covers("/a/*", "/a/b/c"));
	assert_true(pattern_covers("/**/node_modules", "/p/node_modules/x/y"));
	assert_true(pattern_covers("/**/a/b", "/a/a/b/c"));
	assert_true(pattern_covers("/**", "/"));
	assert_false(pattern_covers("/a", "/ab"));
	assert_false(pattern_covers("/a/b", "/a"));
	assert_false(pattern_covers("/a/*", "/a"));
	assert_false(pattern_covers("/**/a/b", "/a/c/b"));
	assert_false(pattern_covers("a", "/a"));
}

static void test_may_match_below(void **state)
{
	(void)state;
	assert_true(pattern_may_match_below("/a", "/"));
	assert_true(pattern_may_match_below("/a/*/c", "/a"));
	assert_true(pattern_may_match_below("/a/*/c", "/a/b"));
	assert_true(pattern_may_match_below("/**", "/x/y"));
	assert_true(pattern_may_match_below("/**/z", "/x/y"));
	assert_true(pattern_may_match_below("/a/**", "/a"));
	assert_true(pattern_may_match_below("/a/**/z", "/a/z"));
	assert_false(pattern_may_match_below("/", "/"));
	assert_false(pattern_may_match_below("/a", "/a"));
	assert_false(pattern_may_match_below("/a/*/c", "/a/b/c"));
	assert_false(pattern_may_match_below("/a/*/c", "/b"));
	assert_false(pattern_may_match_below("/a/**", "/b"));
	assert_false(pattern_may_match_below("/a[!b]/**", "/ab"));
}

static void test_check(void **state)
{
	static const struct {
		const char *pattern, *reason;
	} bad[] = {
		{ "/[a", "without ']'" },      { "/a[", "without ']'" },
		{ "/[a/b]", "without ']'" },   { "/[a\\]", "without ']'" },
		{ "/[a-", "without ']'" },     { "/[a-\\", "without ']'" },
		{ "/[!", "without ']'" },      { "/[]", "empty" },
		{ "/[!]", "empty" },           { "/[^]/x", "empty" },
		{ "/[z-a]", "backwards" },     { "/x/[a-cz-y]", "backwards" },
		{ "/[[:alpha:]]", "classes" }, { "/[a[=x=]]", "classes" },
		{ "/a**", "whole component" }, { "/**b", "whole component" },
		{ "/***", "whole component" }, { "/x/a**b/y", "whole component" },
		{ "/a\\", "backslash" },       { "/a\\/b", "backslash" },
	};
	static const char *const good[] = {
		"/",      "/a",     "/**",     "/a/**/b", "/[]]",    "/[!]a-c]", "/[a-a]", "/\\**",
		"/*\\**", "/a\\\\", "/[\\[:]", "/[a-]",   "/[--]x]", "/]",       "*.c",    "**/x",
	};
	struct error e;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		e = (struct error){ 0 };
		assert_int_equal(pattern_check(bad[i].pattern, &e), -EINVAL);
		if (!strstr(e.text, bad[i].reason))
			fail_msg("%s: \"%s\" does not say \"%s\"", bad[i].pattern, e.text,
				 bad[i].reason);
	}
	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		if (pattern_check(good[i], &e) != 0)
			fail_msg("%s: %s", good[i], e.text);
	}
	assert_int_equal(pattern_check("/[", NULL), -EINVAL);
}

static void test_is_glob(void **state)
{
	static const char *const globs[] = { "/*", "/a?", "/[", "/\\\\*", "/**", "\\a*" };
	static const char *const plain[] = { "",    "/",     "/a",   "/\\*", "/\\[a]",
					     "/a]", "/\\\\", "/a\\", "/!^-" };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(globs); i++)
		assert_true(pattern_is_glob(globs[i]));
	for (size_t i = 0; i < ARRAY_LEN(plain); i++)
		assert_false(pattern_is_glob(plain[i]));
}

static void test_fixed_len(void **state)
{
	static const struct {
		const char *pattern;
		size_t len;
	} cases[] = {
		{ "/", 1 },       { "/a", 2 },       { "/a/b", 4 },     { "/a/b/*.c", 4 },
		{ "/a/b*/c", 2 }, { "/*", 1 },       { "/x*", 1 },      { "/**", 1 },
		{ "/a/**", 2 },   { "/a/[b]/c", 2 }, { "/a/x?", 2 },    { "*.c", 0 },
		{ "a/*", 1 },     { "", 0 },         { "/a/\\*/b", 2 }, /* text is not the path */
		{ "/a/b\\c", 2 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		if (pattern_fixed_len(cases[i].pattern) != cases[i].len)
			fail_msg("%s: %zu", cases[i].pattern, pattern_fixed_len(cases[i].pattern));
	}
}

static void test_unescape(void **state)
{
	_cleanup_arena_ struct arena *a = arena_new();

	(void)state;
	assert_string_equal(pattern_unescape(a, "/\\[slug\\]/\\*"), "/[slug]/*");
	assert_string_equal(pattern_unescape(a, "/a\\\\b"), "/a\\b");
	assert_string_equal(pattern_unescape(a, "/a\\"), "/a\\");
	assert_string_equal(pattern_unescape(a, ""), "");
}

/* All texts "/x", "/x/y", ... of up to `depth` components out of `names`, and "/". */
struct universe {
	char (*v)[16];
	size_t n;
};

static void universe_make(struct universe *u, const char *const *names, size_t n_names,
			  unsigned depth)
{
	size_t total = 1, level = 1, from = 0;

	for (unsigned d = 0; d < depth; d++)
		total += level *= n_names;
	u->v = calloc(total, sizeof(*u->v));
	assert_non_null(u->v);
	strcpy(u->v[0], "/");
	u->n = 1;
	for (unsigned d = 0; d < depth; d++) {
		size_t to = u->n;

		for (size_t i = from; i < to; i++) {
			for (size_t j = 0; j < n_names; j++)
				(void)snprintf(u->v[u->n++], sizeof(*u->v), "%s/%s",
					       i == 0 ? "" : u->v[i], names[j]);
		}
		from = to;
	}
	assert_int_equal(u->n, total);
}

static bool is_below(const char *path, const char *dir)
{
	size_t n = strcmp(dir, "/") == 0 ? 0 : strlen(dir);

	return strncmp(path, dir, n) == 0 && path[n] == '/' && path[n + 1] != '\0';
}

static void check_pattern(const char *pattern, const struct universe *paths)
{
	for (size_t i = 0; i < paths->n; i++) {
		const char *path = paths->v[i];
		bool matches = pattern_matches(pattern, path), below = false, covers = false;

		if (matches != reference_matches(pattern, path))
			fail_msg("%s %s %s", pattern, matches ? "matches" : "misses", path);
		for (size_t j = 0; j < paths->n; j++) {
			const char *other = paths->v[j];

			if (is_below(other, path))
				below = below || reference_matches(pattern, other);
			if (i == j || is_below(path, other))
				covers = covers || reference_matches(pattern, other);
		}
		if (below && !pattern_may_match_below(pattern, path))
			fail_msg("%s has matches below %s", pattern, path);
		if (covers != pattern_covers(pattern, path))
			fail_msg("%s %s %s", pattern, covers ? "covers" : "does not cover", path);
	}
}

/* Every pattern over every path of a small world, against the obvious implementation. */
static void test_small_universe(void **state)
{
	static const char *const names[] = { "a", "b", "ab" };
	static const char *const parts[] = { "a", "*", "**", "?b", "[!a]", "a*b", "*b*" };
	struct universe paths, patterns;

	(void)state;
	universe_make(&paths, names, ARRAY_LEN(names), 3);
	universe_make(&patterns, parts, ARRAY_LEN(parts), 3);
	for (size_t i = 0; i < patterns.n; i++)
		check_pattern(patterns.v[i], &paths);
	free(paths.v);
	free(patterns.v);
}

/* The other direction of may_match_below: it also prunes. */
static void test_below_is_exact_for_plain_components(void **state)
{
	static const char *const names[] = { "a", "b", "ab" };
	static const char *const parts[] = { "a", "*", "**", "?b" };
	struct universe paths, dirs, patterns;

	(void)state;
	universe_make(&dirs, names, ARRAY_LEN(names), 2);
	universe_make(&paths, names, ARRAY_LEN(names), 5);
	universe_make(&patterns, parts, ARRAY_LEN(parts), 3);
	for (size_t i = 0; i < patterns.n; i++) {
		for (size_t d = 0; d < dirs.n; d++) {
			bool below = false;

			for (size_t j = 0; j < paths.n && !below; j++)
				below = is_below(paths.v[j], dirs.v[d]) &&
					pattern_matches(patterns.v[i], paths.v[j]);
			if (below != pattern_may_match_below(patterns.v[i], dirs.v[d]))
				fail_msg("%s below %s", patterns.v[i], dirs.v[d]);
		}
	}
	free(paths.v);
	free(dirs.v);
	free(patterns.v);
}

static double seconds_to_match(const char *pattern, const char *path, bool expected)
{
	struct timespec from, to;

	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from);
	assert_int_equal(pattern_matches(pattern, path), expected);
	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &to);
	return (double)(to.tv_sec - from.tv_sec) + (double)(to.tv_nsec - from.tv_nsec) / 1e9;
}

/* text repeated n times between head and tail */
static char *repeat(const char *head, const char *text, size_t n, const char *tail)
{
	size_t len = strlen(text);
	char *s = malloc(strlen(head) + n * len + strlen(tail) + 1), *p = s;

	assert_non_null(s);
	p = stpcpy(p, head);
	while (n-- > 0)
		p = stpcpy(p, text);
	(void)stpcpy(p, tail);
	return s;
}

/* Full backtracking would need longer than the universe for any of these. */
static void test_no_blowup(void **state)
{
	static const struct {
		const char *p_text, *p_tail, *s_text, *s_tail;
		size_t p_n, s_n;
		bool expected;
	} cases[] = {
		{ "a*", "b", "a", "", 1000, 4000, false },
		{ "*a", "b", "a", "", 1000, 4000, false },
		{ "a*", "", "a", "", 1000, 4000, true },
		{ "*[a-z]?", "!", "a", "", 1000, 4000, false },
		{ "**/x/", "y", "x/", "z", 1000, 2000, false },
		{ "**/x/", "**", "x/", "x", 1000, 2000, true },
		{ "**/", "y", "x/", "z", 2000, 2000, false },
		{ "**/a*a*b/", "y", "aaaaaaaaab/", "z", 100, 400, false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char *pattern = repeat("/", cases[i].p_text, cases[i].p_n, cases[i].p_tail);
		char *path = repeat("/", cases[i].s_text, cases[i].s_n, cases[i].s_tail);

		if (seconds_to_match(pattern, path, cases[i].expected) > 5)
			fail_msg("case %zu is too slow", i);
		(void)pattern_covers(pattern, path);
		(void)pattern_may_match_below(pattern, path);
		free(pattern);
		free(path);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_matches),
		cmocka_unit_test(test_covers),
		cmocka_unit_test(test_may_match_below),
		cmocka_unit_test(test_check),
		cmocka_unit_test(test_is_glob),
		cmocka_unit_test(test_fixed_len),
		cmocka_unit_test(test_unescape),
		cmocka_unit_test(test_small_universe),
		cmocka_unit_test(test_below_is_exact_for_plain_components),
		cmocka_unit_test(test_no_blowup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
