/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON writer. Keeps track of commas and, when indent > 0, of layout; the
 * caller keeps the calls balanced. Strings are escaped; bytes that are not
 * UTF-8 are written as U+FFFD so that the output is always valid JSON.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

struct json {
	struct buf *out;
	unsigned indent; /* spaces per level, 0 = one line */
	unsigned depth;
	bool first; /* no element yet in the present container */
	bool after_key;
};

void json_begin_object(struct json *j);
void json_end_object(struct json *j);
void json_begin_array(struct json *j);
void json_end_array(struct json *j);
void json_key(struct json *j, const char *key);
void json_string(struct json *j, const char *s); /* NULL writes null */
void json_string_n(struct json *j, const char *s, size_t len); /* may hold NUL bytes */
/* Text that is JSON already. */
void json_raw(struct json *j, const char *text, size_t len);
void json_int(struct json *j, int64_t v);
void json_double(struct json *j, double v);
void json_bool(struct json *j, bool v);
void json_null(struct json *j);

/* key and value in one call */
void json_kstring(struct json *j, const char *key, const char *s);
void json_kint(struct json *j, const char *key, int64_t v);
void json_kbool(struct json *j, const char *key, bool v);
