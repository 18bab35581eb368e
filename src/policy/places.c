/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/places.h"

#include <string.h>

#include "base/path.h"

/* One more component says whose; a deeper place stands before the one it lies in. */
const char *const shared_places[] = {
	".cache",     ".config",        ".local/share", ".local/state", ".local/lib", ".local/bin",
	".local/opt", ".local",         ".cargo",       ".gradle",      ".m2",        ".rustup",
	"go/pkg",     "Library/Caches", "snap",         NULL,
};

bool place_is_shared(const char *home, const char *dir)
{
	const char *rest;

	if (!path_within(dir, home) || strcmp(dir, home) == 0)
		return false;
	rest = dir + (strcmp(home, "/") == 0 ? 1 : strlen(home) + 1);
	for (const char *const *p = shared_places; *p; p++) {
		size_t n = strlen(rest);

		if (strncmp(*p, rest, n) == 0 && (!(*p)[n] || (*p)[n] == '/'))
			return true;
	}
	return false;
}
