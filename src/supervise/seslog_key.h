/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Private keys in the session log: many lines, of which only the first says what they are. Pure.
 * The lines come without their end and without escape sequences.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct seslog_key {
	bool inside;
	size_t lines; /* that belong to it, after the first */
	size_t width; /* of the lines of base64; 0 = there were none yet */
	bool short_line; /* which is the last of them */
	bool loose; /* it began behind other text: what follows must look the more like a key */
};

/* Does a key begin at the end of this line? */
bool seslog_key_begins(struct seslog_key *k, const char *s, size_t n);
/* A line after that: true when it is one of the key's, false when the key is over before it. */
bool seslog_key_line(struct seslog_key *k, const char *s, size_t n);
/* May what has come of a line become one of the key's? */
bool seslog_key_may_go_on(const char *s, size_t n);
