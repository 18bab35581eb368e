/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Both sides are taken apart at every '/', so that nothing but a whole "**"
 * can reach across one, not even a set or an escape; what is not well-formed
 * inside its component (pattern_check) matches nothing.
 *
 * Twice the same loop, over components with "**" and over bytes with "*": on a
 * mismatch only the last star takes one more. That is enough because whatever
 * an earlier star could take over, the later one can take as well; it keeps the
 * time at pattern times path, where full backtracking would let a pattern like
 * a*a*a*b stall the supervisor.
 */
#include "policy/match_path.h"

#include <errno.h>
#include <string.h>

enum extent { EXTENT_WHOLE, EXTENT_PREFIX };

/* A component starts after a slash; "" is the end. A trailing slash changes nothing. */
static const char *first_component(const char *s)
{
	return *s == '/' ? s + 1 : s;
}

static const char *next_component(const char *s)
{
	s += strcspn(s, "/");
	return *s == '/' ? s + 1 : s;
}

static bool is_globstar(const char *p)
{
	return p[0] == '*' && p[1] == '*' && (p[2] == '/' || p[2] == '\0');
}

/* Where we are inside a set; `end` is the end of the component. */
struct set {
	const char *p, *end;
	bool negated, first;
};

enum set_step { SET_MEMBER, SET_CLOSED, SET_BROKEN };

/* One byte, or the byte after a backslash. */
static bool set_byte(struct set *s, unsigned char *ret)
{
	if (s->p < s->end && *s->p == '\\')
		s->p++;
	if (s->p == s->end)
		return false;
	*ret = (unsigned char)*s->p++;
	return true;
}

/* The next member as a range; a single byte is a range of one. */
static enum set_step set_next(struct set *s, unsigned char *lo, unsigned char *hi)
{
	if (s->p < s->end && *s->p == ']' && !s->first) {
		s->p++;
		return SET_CLOSED;
	}
	s->first = false;
	if (!set_byte(s, lo))
		return SET_BROKEN;
	*hi = *lo;
	/* a '-' right before the closing bracket is a member */
	if (s->end - s->p < 2 || s->p[0] != '-' || s->p[1] == ']')
		return SET_MEMBER;
	s->p++;
	return set_byte(s, hi) ? SET_MEMBER : SET_BROKEN;
}

static struct set set_open(const char *p, const char *end)
{
	bool negated = end - p > 1 && (p[1] == '!' || p[1] == '^');

	return (struct set){ .p = p + 1 + negated, .end = end, .negated = negated, .first = true };
}

static const char *match_set(const char *p, const char *end, unsigned char c)
{
	struct set s = set_open(p, end);
	bool hit = false;
	unsigned char lo, hi;
	enum set_step step;

	while ((step = set_next(&s, &lo, &hi)) == SET_MEMBER)
		hit = hit || (c >= lo && c <= hi);
	return step == SET_CLOSED && hit != s.negated ? s.p : NULL;
}

/* Does what stands at p take the byte c? Where the pattern goes on, or NULL. */
static const char *match_byte(const char *p, const char *end, unsigned char c)
{
	if (p == end)
		return NULL;
	if (*p == '?')
		return p + 1;
	if (*p == '[')
		return match_set(p, end, c);
	if (*p == '\\' && ++p == end)
		return NULL;
	return (unsigned char)*p == c ? p + 1 : NULL;
}

static bool match_component(const char *p, const char *s)
{
	const char *p_end = p + strcspn(p, "/"), *s_end = s + strcspn(s, "/");
	const char *star = NULL, *taken = NULL, *next;

	while (s < s_end) {
		if (p < p_end && *p == '*') {
			star = ++p;
			taken = s;
		} else if ((next = match_byte(p, p_end, (unsigned char)*s))) {
			p = next;
			s++;
		} else if (star) {
			p = star;
			s = ++taken;
		} else {
			return false;
		}
	}
	while (p < p_end && *p == '*')
		p++;
	return p == p_end;
}

static bool match_path(const char *pattern, const char *path, enum extent extent)
{
	const char *p = first_component(pattern), *s = first_component(path);
	const char *star = NULL, *taken = NULL;

	if ((*pattern == '/') != (*path == '/'))
		return false;
	while (*s) {
		if (*p == '\0' && extent == EXTENT_PREFIX)
			return true;
		if (is_globstar(p)) {
			star = p = next_component(p);
			taken = s;
		} else if (*p && match_component(p, s)) {
			p = next_component(p);
			s = next_component(s);
		} else if (star) {
			p = star;
			s = taken = next_component(taken);
		} else {
			return false;
		}
	}
	while (is_globstar(p))
		p = next_component(p);
	return *p == '\0';
}

bool pattern_matches(const char *pattern, const char *path)
{
	return match_path(pattern, path, EXTENT_WHOLE);
}

bool pattern_covers(const char *pattern, const char *path)
{
	return match_path(pattern, path, EXTENT_PREFIX);
}

bool pattern_may_match_below(const char *pattern, const char *dir)
{
	const char *p = first_component(pattern), *s = first_component(dir);

	if ((*pattern == '/') != (*dir == '/'))
		return false;
	for (; *s; s = next_component(s)) {
		/* from here on it reaches everything; what follows it can always be found deeper */
		if (is_globstar(p))
			return true;
		if (*p == '\0' || !match_component(p, s))
			return false;
		p = next_component(p);
	}
	return *p != '\0';
}

/* The first unescaped pattern character, or the end. */
static const char *find_special(const char *p)
{
	for (; *p; p++) {
		if (*p == '\\' && p[1] != '\0')
			p++;
		else if (*p == '*' || *p == '?' || *p == '[')
			break;
	}
	return p;
}

bool pattern_is_glob(const char *text)
{
	return *find_special(text) != '\0';
}

char *pattern_unescape(struct arena *a, const char *text)
{
	char *out = arena_alloc(a, strlen(text) + 1);
	size_t n = 0;

	for (; *text; text++) {
		if (*text == '\\' && text[1] != '\0')
			text++;
		out[n++] = *text;
	}
	return out;
}

const char *pattern_escape(struct arena *a, const char *path)
{
	char *out;
	size_t n = 0;

	if (!path[strcspn(path, "*?[\\")])
		return path;
	out = arena_alloc(a, 2 * strlen(path) + 1);
	for (; *path; path++) {
		if (strchr("*?[\\", *path))
			out[n++] = '\\';
		out[n++] = *path;
	}
	return out;
}

size_t pattern_fixed_len(const char *pattern)
{
	/* An escape is as good as a pattern character: its text is not the path's text. */
	size_t n = strcspn(pattern, "*?[\\");

	if (pattern[n] == '\0')
		return n;
	while (n > 0 && pattern[n] != '/')
		n--;
	return n == 0 && pattern[0] == '/' ? 1 : n;
}

/* [:alpha:] and its like would silently be the set of these characters. */
static bool is_class(const char *p)
{
	return p[0] == '[' && (p[1] == ':' || p[1] == '.' || p[1] == '=');
}

static int check_set(const char **p, const char *end, struct error *e)
{
	struct set s = set_open(*p, end);
	bool empty = s.p < end && *s.p == ']';

	for (;;) {
		bool class = is_class(s.p);
		unsigned char lo, hi;

		switch (set_next(&s, &lo, &hi)) {
		case SET_CLOSED:
			*p = s.p;
			return 0;
		case SET_BROKEN:
			return error_set(e, EINVAL,
					 empty ? "empty [set]"
					       : "'[' without ']' (write \\[ for the character)");
		case SET_MEMBER:
			break;
		}
		if (class)
			return error_set(e, EINVAL, "classes like [:alpha:] are not known here");
		if (lo > hi)
			return error_set(e, EINVAL, "a range in a [set] runs backwards");
	}
}

static int check_component(const char *p, struct error *e)
{
	const char *end = p + strcspn(p, "/");

	if (is_globstar(p))
		return 0;
	while (p < end) {
		if (p[0] == '*' && p[1] == '*')
			return error_set(e, EINVAL, "\"**\" must be a whole component");
		if (*p == '[') {
			int r = check_set(&p, end, e);

			if (r < 0)
				return r;
			continue;
		}
		if (*p == '\\' && ++p == end)
			return error_set(e, EINVAL, "a backslash at the end of a component");
		p++;
	}
	return 0;
}

int pattern_check(const char *pattern, struct error *e)
{
	for (const char *p = first_component(pattern); *p; p = next_component(p)) {
		int r = check_component(p, e);

		if (r < 0)
			return r;
	}
	return 0;
}
