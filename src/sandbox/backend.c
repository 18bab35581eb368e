/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/backend.h"

#include "policy/schema.h"

static const struct backend *const backends[] = { &backend_native };

static const struct backend *find(enum backend_choice choice)
{
	for (size_t i = 0; i < ARRAY_LEN(backends); i++) {
		if (backends[i]->choice == choice)
			return backends[i];
	}
	return NULL;
}

int backend_choose(const struct policy *p, const struct backend **ret, struct error *e)
{
	const struct backend *b = find(p->backend == BACKEND_AUTO ? BACKEND_NATIVE : p->backend);

	if (!b)
		return error_set(e, ENOTSUP, "backend %s is not available in this version",
				 settings_table[setting_find("backend")].values[p->backend]);
	*ret = b;
	return 0;
}
