/* SPDX-License-Identifier: Apache-2.0 */
/* First line: the question; the rest: two texts, cut in the middle. Places lie in their texts. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "mcp/excerpt.h"
#include "mcp/find.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_arena_ struct arena *a = arena_new();
	const char *text = (const char *)data;
	const char *end = size ? memchr(text, '\n', size) : NULL;
	struct find_text texts[2];
	struct find_matches m;
	size_t rest;

	if (!end)
		return 0;
	rest = size - (size_t)(end + 1 - text);
	texts[0] = (struct find_text){ "one", end + 1, rest / 2 };
	texts[1] = (struct find_text){ "two", end + 1 + rest / 2, rest - rest / 2 };
	find_places(a, texts, 2, arena_strndup(a, text, (size_t)(end - text)), 5, &m);
	if (m.n > 5)
		abort();
	for (size_t i = 0; i < m.n; i++) {
		const struct find_text *t = &texts[m.v[i].which];

		if (m.v[i].text < t->text || m.v[i].text + m.v[i].len > t->text + t->len ||
		    m.v[i].line == 0 || excerpt_whole(m.v[i].text, m.v[i].len) > m.v[i].len)
			abort();
		if (i && m.v[i].score > m.v[i - 1].score)
			abort();
	}
	return 0;
}
