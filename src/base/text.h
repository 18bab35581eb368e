/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small string helpers without locale, and the one way text from outside
 * (file names, hosts, program output) reaches a terminal: escaped.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

bool text_starts(const char *s, const char *prefix);
bool text_ends(const char *s, const char *suffix);
static inline char ascii_lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

bool ascii_alpha(char c);
bool ascii_digit(char c);
int ascii_hex(char c); /* what the digit counts, or -1 */
bool ascii_alnum(char c);

/*
 * Decode one UTF-8 sequence of at most n bytes. Its length, or 0 when it is not
 * valid (overlong, surrogate, out of range, cut short).
 */
size_t utf8_decode(const unsigned char *s, size_t n, uint32_t *ret);

/*
 * Append s with control bytes, invalid UTF-8, and bidirectional/zero-width
 * characters written as \xNN, so that it can neither move a cursor nor forge a
 * line. Newline and tab are escaped too.
 */
void text_append_safe(struct buf *b, const char *s);
void text_append_safe_n(struct buf *b, const char *s, size_t n);
/* It is shown as it is: nothing in it has to be escaped. */
bool text_is_safe(const char *s);

/* Append s quoted for a POSIX shell: as it is when harmless, else in single quotes. */
void text_append_shell(struct buf *b, const char *s);

/* Optimal-string-alignment distance, capped: for "did you mean". */
unsigned text_distance(const char *a, const char *b);

/* The number at the start of s, 0 when there is none or it is too large. */
uint64_t text_leading_u64(const char *s);
/* The last c among the first n bytes of s; NULL = there is none. */
const char *text_find_last(const char *s, size_t n, char c);
/* Copy as much as fits; always terminated. */
void text_copy(char *ret, size_t size, const char *s);

/*
 * Parsers: the whole string must be used; on failure *ret is unchanged and
 * -EINVAL or -ERANGE comes back.
 */
int text_parse_u64(const char *s, uint64_t max, uint64_t *ret) NODISCARD;
int text_parse_size(const char *s, uint64_t *ret_bytes)
	NODISCARD; /* 512, 4k, 512m, 1.5g, 1t; KiB-based */
int text_parse_duration(const char *s, uint64_t *ret_ms)
	NODISCARD; /* 30, 1.5s, 500ms, 30m, 1h, 2d; plain = seconds */
int text_parse_double(const char *s, double max, double *ret) NODISCARD; /* non-negative decimal */
