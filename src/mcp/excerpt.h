/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What of an output is shown: all of it, or its head and its tail with a line between them that
 * says what was left out. Cut between lines where there are some, never inside a character.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "mcp/spool.h"

struct excerpt {
	bool truncated;
	uint64_t omitted; /* bytes */
};

/* At most about `max` bytes of the spool; `where`: how the rest can be read, for the line between. */
struct excerpt excerpt_append(const struct spool *s, size_t max, const char *where,
			      struct buf *out);

/* Is it text: valid UTF-8, no NUL? */
bool excerpt_is_text(const char *data, size_t len);
/* How many bytes of data are whole characters: len, less a character cut off at the end. */
size_t excerpt_whole(const char *data, size_t len);
/* Append as base64. */
void excerpt_base64(struct buf *out, const char *data, size_t len);
