/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a settings file. It loads or is refused with a message; what was
 * loaded can be printed, and what was printed loads again.
 */
#include <stdint.h>
#include <stdlib.h>

#include "policy/policy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* No file system: every path is absent and is its own canonical form. */
static void look(const struct view *v, struct arena *a, const char *path, struct view_entry *ret)
{
	(void)v;
	(void)a;
	*ret = (struct view_entry){ .kind = FILE_ABSENT, .real = path };
}

static enum file_kind kind(const struct view *v, const char *path)
{
	(void)v;
	(void)path;
	return FILE_ABSENT;
}

static int list(const struct view *v, struct arena *a, const char *path, const char *const **ret)
{
	(void)v;
	(void)a;
	(void)path;
	*ret = NULL;
	return 0;
}

static const struct view empty_view = { .look = look, .kind = kind, .list = list };

static void check_printed(struct arena *a, const struct policy_inputs *in, const struct policy *p)
{
	_cleanup_buf_ struct buf text = BUF_INIT(BUF_MAX_TEXT);
	_cleanup_buf_ struct buf json = BUF_INIT(BUF_MAX_TEXT);
	struct policy_inputs again = *in;
	struct error e = { 0 };

	policy_print(p, &text);
	policy_print_json(p, &json);
	again.only_text = json.data;
	again.only_len = json.len;
	if (policy_load(a, &again, &p, &e) < 0)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	_cleanup_arena_ struct arena *a = arena_new();
	const struct policy_inputs in = {
		.cwd = "/home/u/proj",
		.home = "/home/u",
		.only_file = "fuzz",
		.only_text = (const char *)data,
		.only_len = len,
		.view = &empty_view,
	};
	const struct policy *p = NULL;
	struct error e = { 0 };
	struct decision d;

	if (policy_load(a, &in, &p, &e) < 0) {
		if (e.code == 0 || e.text[0] == '\0')
			abort();
		return 0;
	}
	policy_decide_path(p, ACCESS_WRITE, "/home/u/proj/.git/hooks/x", &d);
	check_printed(a, &in, p);
	return 0;
}
