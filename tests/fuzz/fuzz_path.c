/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Input: "pattern\npath". Besides the sanitizers: the matcher agrees with the
 * obvious one on small inputs, and the other functions with the matcher.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "policy/match_path.h"

#include "../unit/reference_path.h"

#define TEXT_MAX 512
/* The reference tries every length of every star. */
#define REFERENCE_MAX 24
#define REFERENCE_STARS 5

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
	if (!holds)
		abort();
}

/* The parent of a clean path in place; false at "/". */
static bool go_up(char *path)
{
	char *slash = strrchr(path, '/');

	if (strcmp(path, "/") == 0)
		return false;
	slash[slash == path] = '\0';
	return true;
}

static size_t count(const char *s, char c)
{
	size_t n = 0;

	for (; *s; s++)
		n += *s == c;
	return n;
}

static void check_ancestors(struct arena *a, const char *pattern, const char *path)
{
	char *dir = arena_strdup(a, path);
	bool matches = pattern_matches(pattern, path), covers = matches;

	while (go_up(dir)) {
		require(!matches || pattern_may_match_below(pattern, dir));
		covers = covers || pattern_matches(pattern, dir);
	}
	require(pattern_covers(pattern, path) == covers);
}

static void check_fixed_part(struct arena *a, const char *pattern, const char *path)
{
	size_t len = pattern_fixed_len(pattern);
	const char *fixed = arena_strndup(a, pattern, len);

	require(len >= 1 && len <= strlen(pattern));
	require(!pattern_is_glob(fixed) && (len == 1 || fixed[len - 1] != '/'));
	require(!pattern_matches(pattern, path) || path_within(path, fixed));
}

/* A text without pattern characters matches what it spells, and only that. */
static void check_literal(struct arena *a, const char *pattern, const char *path)
{
	const char *literal = pattern_unescape(a, pattern);
	char *escaped = arena_alloc(a, 2 * strlen(path) + 1);
	size_t n = 0;

	if (!pattern_is_glob(pattern) && pattern_check(pattern, NULL) == 0) {
		require(pattern_matches(pattern, literal));
		require(pattern_matches(pattern, path) == (strcmp(literal, path) == 0));
	}
	for (const char *s = path; *s; s++) {
		if (*s != '/')
			escaped[n++] = '\\';
		escaped[n++] = *s;
	}
	require(pattern_check(escaped, NULL) == 0 && !pattern_is_glob(escaped));
	require(pattern_matches(escaped, path));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_arena_ struct arena *a = NULL;
	const char *raw_pattern, *raw_path, *pattern, *path, *newline;
	struct error e = { 0 };

	if (size > TEXT_MAX || !(newline = memchr(data, '\n', size)))
		return 0;
	a = arena_new();
	raw_pattern = arena_strndup(a, (const char *)data, (size_t)(newline - (const char *)data));
	raw_path = arena_strndup(a, newline + 1, size - (size_t)(newline + 1 - (const char *)data));

	/* as they come: only memory and time are looked at */
	(void)pattern_covers(raw_pattern, raw_path);
	(void)pattern_may_match_below(raw_pattern, raw_path);
	(void)pattern_fixed_len(raw_pattern);
	require((pattern_check(raw_pattern, &e) < 0) == (e.text[0] != '\0'));

	pattern = path_absolute(a, "/", raw_pattern);
	path = path_absolute(a, "/", raw_path);
	check_ancestors(a, pattern, path);
	check_fixed_part(a, pattern, path);
	check_literal(a, pattern, path);
	if (strlen(pattern) <= REFERENCE_MAX && strlen(path) <= REFERENCE_MAX &&
	    count(pattern, '*') <= REFERENCE_STARS)
		require(pattern_matches(pattern, path) == reference_matches(pattern, path));
	return 0;
}
