/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a git configuration. What is let through stays so when it is there already,
 * and adding a key that runs programs is found behind anything. Who asks for some sections gets
 * what it would have got among all.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "supervise/broker/gitconfig.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static bool is_core(const char *section)
{
	return strncmp(section, "core", 4) == 0;
}

static void compare_sections(const char *text)
{
	_cleanup_arena_ struct arena *a = arena_new();
	struct gitconfig_entries all = { 0 }, some = { 0 };
	size_t n = 0;

	if (gitconfig_parse(a, text, NULL, &all) < 0)
		return;
	if (gitconfig_parse(a, text, is_core, &some) < 0)
		abort();
	for (size_t i = 0; i < all.n; i++) {
		const char *x = all.v[i].value, *y;

		if (!is_core(all.v[i].key))
			continue;
		if (n == some.n || strcmp(all.v[i].key, some.v[n].key) != 0)
			abort();
		y = some.v[n++].value;
		if ((x || y) && (!x || !y || strcmp(x, y) != 0))
			abort();
	}
	if (n != some.n)
		abort();
}

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
	compare_sections(buf_str(&b));
	if (r == -EINVAL)
		return 0;
	if (gitconfig_check(buf_str(&b), buf_str(&b), &place, &f) != 0)
		abort();
	buf_puts(&b, "\n\n[core]\n\tfsmonitor = x\n");
	if (gitconfig_check(NULL, buf_str(&b), &place, &f) == 0)
		abort();
	return 0;
}
