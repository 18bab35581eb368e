/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What match_path.c must compute, written the slow and obvious way: every star
 * tries every length. Exponential: only for small inputs. Used by t_match_path
 * and fuzz_path.
 */
#pragma once

#include <stdbool.h>
#include <string.h>

#include "base/macros.h"

/* The bytes that one pattern element takes; returns its length, 0 when it is broken. */
static inline size_t reference_element(const char *p, size_t n, bool takes[256])
{
	bool negated = n > 1 && (p[1] == '!' || p[1] == '^');
	size_t i = negated ? 2 : 1, start = i;

	memset(takes, p[0] == '?' || negated, 256);
	if (p[0] == '?')
		return 1;
	if (p[0] == '\\' && n < 2)
		return 0;
	if (p[0] != '[') {
		memset(takes, 0, 256);
		takes[(unsigned char)p[p[0] == '\\']] = true;
		return p[0] == '\\' ? 2 : 1;
	}
	while (i < n && (p[i] != ']' || i == start)) {
		unsigned lo, hi;

		i += p[i] == '\\';
		if (i >= n)
			return 0;
		lo = hi = (unsigned char)p[i++];
		if (i + 1 < n && p[i] == '-' && p[i + 1] != ']') {
			i += p[i + 1] == '\\' ? 2 : 1;
			if (i >= n)
				return 0;
			hi = (unsigned char)p[i++];
		}
		for (unsigned c = lo; c <= hi; c++)
			takes[c] = !negated;
	}
	return i < n ? i + 1 : 0;
}

static inline bool reference_component(const char *p, size_t pn, const char *s, size_t sn)
{
	bool takes[256];
	size_t len;

	if (pn == 0)
		return sn == 0;
	if (*p == '*') {
		for (size_t skip = 0; skip <= sn; skip++) {
			if (reference_component(p + 1, pn - 1, s + skip, sn - skip))
				return true;
		}
		return false;
	}
	len = reference_element(p, pn, takes);
	return len > 0 && sn > 0 && takes[(unsigned char)*s] &&
	       reference_component(p + len, pn - len, s + 1, sn - 1);
}

/* p and s: "/a/b" or, at the end, "". */
static inline bool reference_tail(const char *p, const char *s)
{
	size_t pn, sn;

	if (*p == '\0')
		return *s == '\0';
	pn = strcspn(p + 1, "/");
	if (pn == 2 && p[1] == '*' && p[2] == '*') {
		for (;; s += 1 + strcspn(s + 1, "/")) {
			if (reference_tail(p + 1 + pn, s))
				return true;
			if (*s == '\0')
				return false;
		}
	}
	if (*s == '\0')
		return false;
	sn = strcspn(s + 1, "/");
	return reference_component(p + 1, pn, s + 1, sn) && reference_tail(p + 1 + pn, s + 1 + sn);
}

/* Both absolute and clean. */
static inline bool reference_matches(const char *pattern, const char *path)
{
	return reference_tail(strcmp(pattern, "/") == 0 ? "" : pattern,
			      strcmp(path, "/") == 0 ? "" : path);
}
