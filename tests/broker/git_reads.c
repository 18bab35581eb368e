/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints git configurations as we read them, each as `git config --list -z` does, with a record
 * separator at its end; one that is refused as a NAK.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/fd.h"
#include "base/gitconfig.h"

#define NAK 0x15
#define RECORD_END 0x1e

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		_cleanup_arena_ struct arena *a = arena_new();
		struct gitconfig_entries all = { 0 };
		_cleanup_free_ char *text = NULL;

		if (fd_read_file(AT_FDCWD, argv[i], 1 << 20, &text, NULL) < 0)
			return 1;
		if (gitconfig_parse(a, text, NULL, &all) < 0) {
			(void)putchar(NAK);
			all.n = 0;
		}
		for (size_t n = 0; n < all.n; n++) {
			(void)fputs(all.v[n].key, stdout);
			if (all.v[n].value)
				(void)printf("\n%s", all.v[n].value);
			(void)putchar('\0');
		}
		(void)putchar(RECORD_END);
	}
	return 0;
}
