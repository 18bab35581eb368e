/* SPDX-License-Identifier: Apache-2.0 */
/* A first look at a directory, on macOS: no more names are read than are told. */
#include <dirent.h>
#include <errno.h>
#include <string.h>

#include "base/path.h"

#define PEEK_NAMES 200

int path_host_peek(const struct view *v, struct arena *a, const char *path, const char *const **ret)
{
	DIR *dir = opendir(path);
	const char **names = NULL;
	const struct dirent *d;
	size_t n = 0;

	(void)v;
	if (!dir)
		return -errno;
	while (n <= PEEK_NAMES && (d = readdir(dir)))
		*ARENA_PUSH(a, names, n) = arena_strdup(a, d->d_name);
	(void)closedir(dir);
	if (n > PEEK_NAMES)
		return -E2BIG;
	*ret = names;
	return (int)n;
}
