/* SPDX-License-Identifier: Apache-2.0 */
/* Chunked framing: whole, or in pieces whose size the first byte says, it ends at the same place. */
#include <stdlib.h>

#include "proxy/http.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static ssize_t feed(const char *text, size_t len, size_t piece)
{
	struct http_chunked c = { 0 };
	size_t at = 0;

	while (at < len && c.state != CHUNK_DONE) {
		size_t n = len - at < piece ? len - at : piece;
		ssize_t r = http_chunked_feed(&c, text + at, n);

		if (r < 0)
			return -1;
		if ((size_t)r > n || ((size_t)r < n && c.state != CHUNK_DONE))
			abort();
		at += (size_t)r;
	}
	return (ssize_t)at;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 1)
		return 0;
	if (feed((const char *)data + 1, size - 1, size) !=
	    feed((const char *)data + 1, size - 1, (size_t)(data[0] % 16) + 1))
		abort();
	return 0;
}
