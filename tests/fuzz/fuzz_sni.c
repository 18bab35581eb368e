/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ClientHellos: a verdict on a prefix is the verdict on the whole; a flow of them is read the same
 * in any pieces, and its first hello as the gate reads it.
 */
#include <stdlib.h>
#include <string.h>

#include "proxy/hellos.h"
#include "proxy/sni.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_flow(const uint8_t *data, size_t size, enum sni_result r, const struct sni *sni)
{
	struct hellos whole = HELLOS_INIT, parts = HELLOS_INIT;
	size_t piece = size ? data[size - 1] % 31u + 1 : 1;

	(void)hellos_feed(&whole, (const char *)data, size);
	for (size_t at = 0; at < size; at += piece)
		(void)hellos_feed(&parts, (const char *)data + at,
				  size - at < piece ? size - at : piece);
	if (whole.found != parts.found || whole.result != parts.result || whole.message.overflow ||
	    parts.message.overflow)
		abort();
	if ((r == SNI_NAME || r == SNI_NONE) && (!whole.is_second || whole.first_result != r))
		abort();
	if (r == SNI_NAME && strcmp(whole.first.host.name, sni->host.name) != 0)
		abort();
	buf_done(&whole.message);
	buf_done(&parts.message);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sni whole = { .ech = false }, part = { .ech = false };
	enum sni_result r = sni_parse(data, size, &whole);
	size_t step = size / 64 + 1;

	if (r == SNI_NAME && !whole.host.name[0])
		abort();
	for (size_t n = 0; n < size; n += step) {
		enum sni_result p = sni_parse(data, n, &part);

		if (p != SNI_MORE && p != r)
			abort();
		if (p == SNI_NAME && strcmp(part.host.name, whole.host.name) != 0)
			abort();
	}
	check_flow(data, size, r, &whole);
	return 0;
}
