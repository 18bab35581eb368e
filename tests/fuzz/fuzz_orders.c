/* SPDX-License-Identifier: Apache-2.0 */
/* Orders for ambit-init: what is understood is written as the same bytes again. */
#include <stdlib.h>
#include <string.h>

#include "sandbox/bwrap/inner.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_arena_ struct arena *a = arena_new();
	_cleanup_buf_ struct buf again = BUF_INIT(INNER_MAX);
	struct inner *in;

	if (inner_unpack(a, data, size, &in, NULL) < 0 || !in->limited)
		return 0;
	in->cmd.tty = in->has_tty ? 0 : -1;
	in->limits.born_in = in->has_group ? 0 : -1;
	inner_pack(&in->plan, &in->cmd, &again);
	if (again.len != size || memcmp(again.data, data, size) != 0)
		abort();
	return 0;
}
