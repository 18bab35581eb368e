/* SPDX-License-Identifier: Apache-2.0 */
/* SOCKS messages: once a prefix is a whole message, more bytes do not change it. */
#include <stdlib.h>
#include <string.h>

#include "proxy/socks.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int whole, int part, size_t len)
{
	/* a prefix is unfinished, or says what the whole says */
	if (part != 0 && part != whole)
		abort();
	if (part > 0 && (size_t)part > len)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct socks_request q = { .port = 0 }, first = { .port = 0 };
	enum socks_method m = SOCKS_NO_METHOD;
	int greeting = socks_parse_greeting(data, size, &m);
	int password = socks_parse_password(data, size);
	int request = socks_parse_request(data, size, &q, NULL);

	if (request > 0 && q.problem == SOCKS_OK && (!q.host.name[0] || q.port == 0))
		abort();
	for (size_t n = 0; n < size && n < SOCKS_MESSAGE_MAX; n++) {
		check(greeting, socks_parse_greeting(data, n, &m), n);
		check(password, socks_parse_password(data, n), n);
		check(request, socks_parse_request(data, n, &first, NULL), n);
	}
	return 0;
}
