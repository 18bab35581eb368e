/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Input: "text\npath". Quoting: whatever the text is, reading the string literal back gives it
 * again, and nothing of it lies outside the quotes. Patterns: the regular expression is one, and
 * covers exactly what the pattern does.
 */
#include <errno.h>
#include <regex.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "policy/match_path.h"
#include "sandbox/seatbelt/seatbelt.h"

#define TEXT_MAX 256

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
	if (!holds)
		abort();
}

static bool has_control(const char *s)
{
	for (; *s; s++) {
		if ((unsigned char)*s < 0x20 || *s == 0x7f)
			return true;
	}
	return false;
}

/* As a reader of the profile language does it: to the first quote that no backslash precedes. */
static void check_quote(const char *text)
{
	_cleanup_buf_ struct buf b = BUF_INIT(BUF_MAX_TEXT);
	const char *s, *want = text;
	int r = seatbelt_quote(text, &b);

	require(r == (has_control(text) ? -EINVAL : 0));
	if (r < 0) {
		require(b.len == 0);
		return;
	}
	s = buf_str(&b);
	require(*s++ == '"');
	for (; *s && *s != '"'; s++) {
		if (*s == '\\')
			s++;
		require(*s == *want++);
	}
	require(*s == '"' && s[1] == '\0' && *want == '\0');
}

/* The C library's matcher counts characters, ours bytes. */
static bool is_plain(const char *s)
{
	for (; *s; s++) {
		if ((unsigned char)*s >= 0x80)
			return false;
	}
	return true;
}

static void check_regex(const char *pattern, const char *path)
{
	_cleanup_buf_ struct buf b = BUF_INIT(BUF_MAX_TEXT);
	regex_t re;

	if (seatbelt_regex(pattern, SIZE_MAX, &b) < 0)
		return;
	require(regcomp(&re, buf_str(&b), REG_EXTENDED | REG_NOSUB) == 0);
	require((regexec(&re, path, 0, NULL, 0) == 0) == pattern_covers(pattern, path));
	regfree(&re);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char text[TEXT_MAX + 1];
	struct arena *a;
	char *path, *pattern;

	if (size > TEXT_MAX)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	path = strchr(text, '\n');
	check_quote(text);
	if (!path)
		return 0;
	*path++ = '\0';
	check_quote(text);
	check_quote(path);
	a = arena_new();
	pattern = path_absolute(a, "/", text);
	path = path_absolute(a, "/", path);
	/* "/" alone is no pattern, and rules on it are no regular expressions */
	if (pattern[1] && is_plain(pattern) && is_plain(path) && pattern_check(pattern, NULL) == 0)
		check_regex(pattern, path);
	arena_free(a);
	return 0;
}
