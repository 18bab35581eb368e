/* SPDX-License-Identifier: Apache-2.0 */
/* Readers that redact.c asks: of quotes, of private keys. Pure, and each walks forwards only. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Two ways to read quotes. Nobody says which language a text is in, and they differ. */
enum quoting_rules {
	QUOTING_SHELL, /* in '...' a backslash is a character like any other */
	QUOTING_CODE, /* it escapes everywhere, and "don't" opens nothing */
	QUOTING_MAX_,
};

/* Which quotes are open. A string may itself hold a script, with strings of its own. */
struct quoting {
	char outer, inner, escaped;
	bool is_comment; /* from # to the end of the line */
	bool is_escaped; /* the next character, by a backslash */
};

/* Walk over s[i] of n. */
void quoting_pass(struct quoting *q, enum quoting_rules rules, const char *s, size_t n, size_t i);

/* Length of the block of a private key that s begins with, with something of the key; 0 = none. */
size_t redact_private_key(const char *s, size_t n);
