/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a fuzz target over the files (or directories of files) given: the corpus in ./test. */
#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "base/fd.h"
#include "base/path.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define INPUT_MAX ((size_t)16 << 20)

static int run_file(const char *path)
{
	_cleanup_free_ char *text = NULL;
	size_t len;
	int r = fd_read_file(AT_FDCWD, path, INPUT_MAX, &text, &len);

	if (r < 0) {
		(void)fprintf(stderr, "%s: %s\n", path, strerror(-r));
		return 1;
	}
	(void)LLVMFuzzerTestOneInput((const uint8_t *)text, len);
	return 0;
}

static int run_path(struct arena *a, const char *path)
{
	const char *const *names;
	int n = path_host_view.list(&path_host_view, a, path, &names), failed = 0;

	if (n < 0)
		return run_file(path);
	for (int i = 0; i < n; i++)
		failed |= run_path(a, path_join(a, path, names[i]));
	return failed;
}

int main(int argc, char **argv)
{
	_cleanup_arena_ struct arena *a = arena_new();
	int failed = argc < 2;

	for (int i = 1; i < argc; i++)
		failed |= run_path(a, argv[i]);
	return failed;
}
