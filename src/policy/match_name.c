/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hostile input: the names on a path. Nothing here depends on a locale; bytes that are no
 * UTF-8 are compared as they are.
 */
#include "policy/match_name.h"

#include <limits.h>
#include <string.h>

#include "base/macros.h"
#include "base/text.h"

/* Characters that folding file systems leave out (Default_Ignorable_Code_Point of Unicode). */
static const struct {
	uint32_t first, last;
} invisible[] = {
	{ 0xad, 0xad },       { 0x34f, 0x34f },   { 0x61c, 0x61c },     { 0x115f, 0x1160 },
	{ 0x17b4, 0x17b5 },   { 0x180b, 0x180f }, { 0x200b, 0x200f },   { 0x202a, 0x202e },
	{ 0x2060, 0x206f },   { 0x3164, 0x3164 }, { 0xfe00, 0xfe0f },   { 0xfeff, 0xfeff },
	{ 0xffa0, 0xffa0 },   { 0xfff0, 0xfff8 }, { 0x1bca0, 0x1bca3 }, { 0x1d173, 0x1d17a },
	{ 0xe0000, 0xe0fff },
};

/* The only characters that fold to plain letters. */
static const struct {
	uint32_t code;
	const char *letters;
} folds[] = {
	{ 0xdf, "ss" },    { 0x17f, "s" },   { 0x1e9e, "ss" }, { 0x212a, "k" },
	{ 0xfb00, "ff" },  { 0xfb01, "fi" }, { 0xfb02, "fl" }, { 0xfb03, "ffi" },
	{ 0xfb04, "ffl" }, { 0xfb05, "st" }, { 0xfb06, "st" },
};

/* One character of UTF-8: its length, or 1 with *ret 0 for what is none. */
static size_t decode(const char *s, size_t len, uint32_t *ret)
{
	unsigned char first = (unsigned char)s[0];
	size_t n = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
	uint32_t code = first & (0xffu >> (n + 1));

	*ret = 0;
	if (first < 0xc2 || first > 0xf4 || n > len)
		return 1;
	for (size_t i = 1; i < n; i++) {
		if (((unsigned char)s[i] & 0xc0) != 0x80)
			return 1;
		code = code << 6 | ((unsigned char)s[i] & 0x3f);
	}
	*ret = code;
	return n;
}

static bool is_invisible(uint32_t code)
{
	for (size_t i = 0; i < ARRAY_LEN(invisible); i++) {
		if (code >= invisible[i].first && code <= invisible[i].last)
			return true;
	}
	return false;
}

static const char *plain_letters(uint32_t code)
{
	for (size_t i = 0; i < ARRAY_LEN(folds); i++) {
		if (folds[i].code == code)
			return folds[i].letters;
	}
	return NULL;
}

/* The folded name; never longer than it was. */
static size_t fold(const char *s, size_t len, char *ret)
{
	size_t out = 0;

	for (size_t i = 0; i < len;) {
		const char *letters;
		uint32_t code;
		size_t n;

		if (!((unsigned char)s[i] & 0x80)) {
			ret[out++] = ascii_lower(s[i++]);
			continue;
		}
		n = decode(s + i, len - i, &code);
		letters = plain_letters(code);
		if (letters) {
			memcpy(ret + out, letters, strlen(letters));
			out += strlen(letters);
		} else if (!is_invisible(code)) {
			memcpy(ret + out, s + i, n);
			out += n;
		}
		i += n;
	}
	return out;
}

/* Apart, since the buffers take longer to make than most names to compare. */
static __attribute__((noinline)) bool is_folded(const char *name, size_t len, const char *wanted,
						size_t wanted_len)
{
	char a[NAME_MAX + 1], b[NAME_MAX + 1];

	if (len > NAME_MAX || wanted_len > NAME_MAX)
		return false; /* no file system has such names */
	len = fold(name, len, a);
	wanted_len = fold(wanted, wanted_len, b);
	return len == wanted_len && memcmp(a, b, len) == 0;
}

bool name_is_n(const char *name, size_t len, const char *wanted, size_t wanted_len)
{
	const char *rest;
	size_t i = 0;

	for (; i < len && i < wanted_len; i++) {
		if ((unsigned char)(name[i] | wanted[i]) & 0x80)
			return is_folded(name, len, wanted, wanted_len);
		if (ascii_lower(name[i]) != ascii_lower(wanted[i]))
			return false; /* nearly all do at once */
	}
	if (len == wanted_len)
		return true;
	rest = len > i ? name + i : wanted + i;
	/* it may be of characters that do not count */
	return (unsigned char)*rest & 0x80 && is_folded(name, len, wanted, wanted_len);
}

bool name_is(const char *name, const char *wanted)
{
	if (!((unsigned char)(*name | *wanted) & 0x80) &&
	    ascii_lower(*name) != ascii_lower(*wanted))
		return false;
	return name_is_n(name, strlen(name), wanted, strlen(wanted));
}

static size_t component_length(const char *s)
{
	return strcspn(s, "/");
}

static bool component_matches(const char *pattern, size_t len, const char *s, size_t s_len)
{
	return (len == 1 && *pattern == '*') || name_is_n(s, s_len, pattern, len);
}

static const char *after(const char *s, size_t len)
{
	return s + len + (s[len] == '/');
}

bool name_path_within(const char *path, const char *dir)
{
	while (*dir && dir[1]) { /* "/" holds everything */
		size_t len, dir_len;

		path += *path == '/';
		dir += *dir == '/';
		len = component_length(path);
		dir_len = component_length(dir);
		if (!name_is_n(path, len, dir, dir_len))
			return false;
		path += len;
		dir += dir_len;
	}
	return true;
}

/*
 * Both from their beginnings, until one of them ends: how many components are alike, 0 when
 * one is not. *ret_rest gets what is left of the pattern, or "".
 */
static unsigned match_at(const char *pattern, const char *s, const char **ret_rest)
{
	unsigned alike = 0;

	for (; *pattern && *s; alike++) {
		size_t len = component_length(pattern), s_len = component_length(s);

		if (!component_matches(pattern, len, s, s_len))
			return 0;
		pattern = after(pattern, len);
		s = after(s, s_len);
	}
	*ret_rest = pattern;
	return alike;
}

int name_pattern_covers(const char *pattern, const char *path, unsigned top)
{
	int before = 0;

	for (const char *s = path + (*path == '/'); *s;
	     s = after(s, component_length(s)), before++) {
		const char *rest;
		unsigned alike = match_at(pattern, s, &rest);

		if (alike && !*rest && (unsigned)before + alike > top)
			return before;
	}
	return -1;
}

int name_pattern_begun(const char *pattern, const char *path)
{
	int before = 0;

	for (const char *s = path + (*path == '/'); *s;
	     s = after(s, component_length(s)), before++) {
		const char *rest;

		/* the path came to its end first */
		if (match_at(pattern, s, &rest) && *rest)
			return before;
	}
	return -1;
}

#define BUCKETS 256u /* a power of two */
#define ANY_BUCKET BUCKETS /* patterns that begin with "*" or a letter that is not plain */

struct pattern {
	const char *text;
	int next; /* in its bucket, in falling order; -1 = none */
};

struct name_index {
	struct arena *a;
	struct pattern *v;
	size_t n;
	int buckets[BUCKETS + 1]; /* the last one added, -1 = none */
};

/* Of the first two bytes of a component; ANY_BUCKET when they may fold to something else. */
static unsigned bucket_of(const char *s, size_t len)
{
	unsigned char first = len > 0 ? (unsigned char)s[0] : 0;
	unsigned char second = len > 1 ? (unsigned char)s[1] : 0;

	if ((first | second) & 0x80)
		return ANY_BUCKET;
	return ((unsigned char)ascii_lower((char)first) * 31u +
		(unsigned char)ascii_lower((char)second)) &
	       (BUCKETS - 1);
}

struct name_index *name_index_new(struct arena *a)
{
	struct name_index *index = arena_alloc(a, sizeof(*index));

	index->a = a;
	for (size_t i = 0; i < ARRAY_LEN(index->buckets); i++)
		index->buckets[i] = -1;
	return index;
}

void name_index_add(struct name_index *index, const char *pattern)
{
	size_t len = component_length(pattern);
	unsigned bucket = *pattern == '*' ? ANY_BUCKET : bucket_of(pattern, len);
	struct pattern *new = ARENA_PUSH(index->a, index->v, index->n);

	*new = (struct pattern){ pattern, index->buckets[bucket] };
	index->buckets[bucket] = (int)index->n - 1;
}

/*
 * The lowest number from `from` on in the bucket whose pattern is what the path goes on with, as far
 * as both reach; or `best`.
 */
static int lowest_in(const struct name_index *index, unsigned bucket, const char *s, int from,
		     int best)
{
	for (int i = index->buckets[bucket]; i >= from; i = index->v[i].next) {
		const char *rest;

		if ((best < 0 || i < best) && match_at(index->v[i].text, s, &rest))
			best = i;
	}
	return best;
}

int name_index_next(const struct name_index *index, const char *path, int from)
{
	int best = -1;

	for (const char *s = path + (*path == '/'); *s;) {
		size_t len = component_length(s);
		unsigned bucket = bucket_of(s, len);

		if (bucket != ANY_BUCKET) {
			best = lowest_in(index, bucket, s, from, best);
			best = lowest_in(index, ANY_BUCKET, s, from, best);
		} else { /* it may fold to anything */
			for (unsigned i = 0; i <= ANY_BUCKET; i++)
				best = lowest_in(index, i, s, from, best);
		}
		s = after(s, len);
	}
	return best;
}
