/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a git configuration. What is let through stays so when it is there already,
 * and adding a key that runs programs is found behind anything.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "supervise/broker/gitconfig.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	const struct gitconfig_place place = { .git_dir = "/ws/.git", .root = "/ws" };
	_cleanup_buf_ struct buf b = BUF_INIT(BUF_MAX_TEXT);
	struct gitconfig_finding f;
	int r;

	if (len > 1 << 16 || memchr(data, '\0', len))
		return 0;
	buf_append(&b, data, len);
	r = gitconfig_check(NULL, buf_str(&b), &place, &f);
	if (r != 0 && r != -EACCES && r != -EINVAL)
		abort();
	if (r < 0 && (!f.reason || (r == -EACCES && !f.key[0])))
		abort();
	(void)gitconfig_url_harmless(buf_str(&b));
	if (r == -EINVAL)
		return 0;
	if (gitconfig_check(buf_str(&b), buf_str(&b), &place, &f) != 0)
		abort();
	buf_puts(&b, "\n\n[core]\n\tfsmonitor = x\n");
	if (gitconfig_check(NULL, buf_str(&b), &place, &f) == 0)
		abort();
	return 0;
}
