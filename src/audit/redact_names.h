/* SPDX-License-Identifier: Apache-2.0 */
/* What secrets are called, and what they look like: the tables behind redact.c. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum redact_name {
	REDACT_NOT,
	REDACT_VALUE, /* the value under this name is a secret */
	REDACT_COUNT, /* unless it is a small number (max_tokens) */
	REDACT_KEY, /* unless it is a path or a small number (SSL_KEY=/etc/x) */
	REDACT_QUERY, /* or a plain word: ?key=name */
	REDACT_HEADER, /* the rest of the line is */
	REDACT_COOKIES, /* name=value; name=value */
};

/* What stands under this name ("PASSWORD", "--api-key", "Authorization")? */
enum redact_name redact_name(const char *s, size_t n);

/* The same for names that tell something only behind this character: ?key=, ;pwd= */
enum redact_name redact_name_behind(char before, const char *s, size_t n);

/* Bearer, Basic, ... */
bool redact_is_scheme(const char *s, size_t n);

/* Length of the token that s begins with, and of its telling prefix; 0 = none. */
size_t redact_known_token(const char *s, size_t n, size_t *ret_prefix);
