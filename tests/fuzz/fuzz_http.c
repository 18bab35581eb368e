/* SPDX-License-Identifier: Apache-2.0 */
/* Heads: what is accepted must look the same to a reader that starts afresh on every prefix. */
#include <stdlib.h>
#include <string.h>

#include "proxy/http.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool ok)
{
	if (!ok)
		abort();
}

static bool inside(struct span s, const char *data, size_t len)
{
	return !s.ptr || (s.ptr >= data && s.ptr + s.len <= data + len);
}

static void check_head(const struct http_head *h, const char *data, size_t len)
{
	struct span rest = h->fields;
	struct http_field f;
	unsigned n = 0;

	check(inside(h->method, data, len) && inside(h->target, data, len));
	check(inside(h->fields, data, len) && inside(h->host, data, len));
	while (http_next_field(&rest, &f)) {
		check(inside(f.name, data, len) && inside(f.value, data, len));
		check(!memchr(f.value.ptr, '\n', f.value.len));
		(void)http_is_hop_by_hop(h, f.name);
		n++;
	}
	check(rest.len == 0 && n <= HTTP_FIELDS_MAX);
}

static void check_target(struct span target)
{
	struct span authority, path;
	struct host host;
	uint16_t port;

	if (http_parse_authority(target, 0, &host, &port, NULL) == 0)
		check(port != 0 && host.name[0]);
	if (http_split_absolute(target, &authority, &path, NULL) == 0) {
		check(inside(authority, target.ptr, target.len));
		check(inside(path, target.ptr, target.len));
		if (http_parse_authority(authority, 80, &host, &port, NULL) == 0)
			check(port != 0);
	}
}

/* In any pieces the same, and what parses as a request is seen to be one. */
static void check_sniff(const char *text, size_t size, bool request)
{
	struct http_sniff whole = { .is = HTTP_SNIFF_NOTHING }, parts = whole;
	enum http_sniffed is = http_sniff_feed(&whole, text, size);

	for (size_t i = 0; i < size; i++)
		(void)http_sniff_feed(&parts, text + i, 1);
	check(parts.is == is && (!request || is == HTTP_SNIFF_YES));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	size_t scanned = 0, step = 0;
	struct http_head head;
	int n = http_head_end(text, size, &scanned, NULL), again = 0;

	/* byte by byte it is the same */
	for (size_t len = 0; len <= size && again == 0; len++)
		again = http_head_end(text, len, &step, NULL);
	check(n == again);
	check_sniff(text, size, n > 0 && http_parse_request(text, (size_t)n, &head, NULL) == 0);
	if (n <= 0)
		return 0;
	if (http_parse_request(text, (size_t)n, &head, NULL) == 0) {
		check_head(&head, text, (size_t)n);
		check_target(head.target);
		check(head.body != HTTP_BODY_TO_EOF);
	}
	if (http_parse_response(text, (size_t)n, size % 2, &head, NULL) == 0)
		check_head(&head, text, (size_t)n);
	return 0;
}
