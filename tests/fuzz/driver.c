/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a fuzz target over files and directories of files, once each: the corpus
 * as an ordinary test, with any compiler.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/fd.h"
#include "base/path.h"

#define INPUT_MAX ((size_t)64 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static int run_file(const char *path)
{
	_cleanup_free_ char *text = NULL;
	_cleanup_free_ uint8_t *exact = NULL;
	size_t len;
	int r = fd_read_file(AT_FDCWD, path, INPUT_MAX, &text, &len);

	if (r < 0) {
		fprintf(stderr, "%s: %s\n", path, strerror(-r));
		return -1;
	}
	/* without the NUL behind it, so that a sanitizer sees reading too far */
	exact = malloc(len ? len : 1);
	if (!exact)
		return -1;
	memcpy(exact, text, len);
	(void)LLVMFuzzerTestOneInput(exact, len);
	return 0;
}

static int run_directory(struct arena *a, const char *path)
{
	const char *const *names = NULL;
	int n = path_host_view.list(&path_host_view, a, path, &names);

	if (n < 0) {
		fprintf(stderr, "%s: %s\n", path, strerror(-n));
		return -1;
	}
	for (int i = 0; i < n; i++) {
		if (run_file(path_join(a, path, names[i])) < 0)
			return -1;
	}
	return n;
}

int main(int argc, char **argv)
{
	_cleanup_arena_ struct arena *a = arena_new();
	int total = 0;

	for (int i = 1; i < argc; i++) {
		bool directory = path_host_view.kind(&path_host_view, argv[i]) == FILE_DIRECTORY;
		int n = directory ? run_directory(a, argv[i]) : run_file(argv[i]);

		if (n < 0)
			return EXIT_FAILURE;
		total += directory ? n : 1;
	}
	printf("%d inputs\n", total);
	/* an empty corpus is a mistake in the build, not a success */
	return total > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
