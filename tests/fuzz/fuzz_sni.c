/* SPDX-License-Identifier: Apache-2.0 */
/* ClientHellos: a verdict on a prefix is the verdict on the whole. */
#include <stdlib.h>
#include <string.h>

#include "proxy/sni.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

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
	return 0;
}
