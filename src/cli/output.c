/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/text.h"
#include "cli/cli.h"

int output_write(const struct buf *b, struct error *e)
{
	int r = b->overflow ? -EFBIG : fd_write_all(STDOUT_FILENO, buf_str(b), b->len);

	if (r < 0)
		return error_set(e, -r, "standard output: %s", strerror(-r));
	return 0;
}

const char *output_safe(struct arena *a, const char *s)
{
	_cleanup_buf_ struct buf b = BUF_INIT(BUF_MAX_TEXT);

	text_append_safe(&b, s);
	return arena_strdup(a, buf_str(&b));
}
