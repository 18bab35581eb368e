/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON reader without a tree: a value is a span of the text it stands in, so that nothing
 * is lost or reformatted on the way (numbers of any length, order of keys). The text
 * is checked once, as a whole, by json_parse(); what follows walks over checked text.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/macros.h"

#define JSON_DEPTH_MAX 64

enum json_kind { JSON_NULL, JSON_BOOL, JSON_NUMBER, JSON_STRING, JSON_ARRAY, JSON_OBJECT };

struct json_span {
	enum json_kind kind;
	const char *text; /* with its quotes or brackets; not terminated */
	size_t len;
};

/* The one value that the text holds. -EINVAL when it is no JSON or nested too deeply. */
int json_parse(const char *text, size_t len, struct json_span *ret) NODISCARD;

/*
 * One member after the other of an array or object:
 *   struct json_walk w = json_walk(&value);
 *   while (json_next_member(&w, &key, &member)) ...
 * For an array, key is not touched and may be NULL.
 */
struct json_walk {
	const char *next, *end;
	bool object;
};

struct json_walk json_walk(const struct json_span *value);
bool json_next_member(struct json_walk *w, struct json_span *ret_key, struct json_span *ret);

/* The member of this name (the first); false when there is none or it is no object. */
bool json_find(const struct json_span *object, const char *name, struct json_span *ret);

/* Append the text of a string; other kinds are appended as they stand. "\u0000" becomes U+FFFD. */
void json_unquote(const struct json_span *value, struct buf *out);
/* The string reads so. */
bool json_equals(const struct json_span *value, const char *text);
/* A whole number from 0 to max; -EINVAL or -ERANGE. */
int json_to_u64(const struct json_span *value, uint64_t max, uint64_t *ret) NODISCARD;
