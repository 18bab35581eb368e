/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Search in outputs: the few places where the words of a question stand, best first. No index,
 * one pass; what is rare in the text weighs more than what is everywhere.
 */
#pragma once

#include <stddef.h>

#include "base/arena.h"

#define FIND_BYTES_MAX ((size_t)16 << 20) /* of all texts together; the rest is not searched */

struct find_text {
	const char *label;
	const char *text;
	size_t len;
};

struct find_match {
	size_t which; /* index of the text */
	size_t line; /* number of the first line shown, from 1 */
	const char *text; /* some lines around the hits, without the last newline */
	size_t len;
	unsigned score;
};

struct find_matches {
	struct find_match *v;
	size_t n;
};

/* At most `most` places, best first; the spans point into the texts. */
void find_places(struct arena *a, const struct find_text *texts, size_t n, const char *query,
		 size_t most, struct find_matches *ret);
