/* SPDX-License-Identifier: Apache-2.0 */
/* A home, a project and settings files in a directory of the test's own. */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "base/text.h"
#include "policy/policy.h"
#include "policy/trust.h"

#define SETTINGS_MAX 8

struct fixture {
	char dir[64];
	struct arena *a;
	const char *home, *proj;
	struct policy_inputs in;
	struct setting_text settings[SETTINGS_MAX];
	const struct policy *p;
	struct error e;
};

static int fixture_remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static int fixture_down(void **state)
{
	struct fixture *f = *state;

	(void)nftw(f->dir, fixture_remove_entry, 8, FTW_DEPTH | FTW_PHYS);
	arena_free(f->a);
	free(f);
	return 0;
}

static int fixture_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	if (!f)
		return -1;
	/* not below /tmp: that is private in a policy, which some tests would notice */
	(void)strcpy(f->dir, "/dev/shm/ambit-policy-XXXXXX");
	if (!mkdtemp(f->dir))
		return -1;
	f->a = arena_new();
	f->home = arena_printf(f->a, "%s/home", f->dir);
	f->proj = arena_printf(f->a, "%s/home/proj", f->dir);
	if (mkdir(f->home, 0755) < 0 || mkdir(f->proj, 0755) < 0)
		return -1;
	f->in = (struct policy_inputs){
		.cwd = f->proj,
		.home = f->home,
		.settings = f->settings,
		.view = &path_host_view,
	};
	*state = f;
	return 0;
}

/* rel is below the fixture's directory; directories must exist. Returns the path. */
static inline const char *fixture_write(struct fixture *f, const char *rel, const char *text)
{
	char *path = arena_printf(f->a, "%s/%s", f->dir, rel);
	FILE *out = fopen(path, "we");

	assert_non_null(out);
	assert_int_equal(fputs(text, out) < 0, 0);
	assert_int_equal(fclose(out), 0);
	return path;
}

static inline const char *fixture_mkdir(struct fixture *f, const char *rel)
{
	char *path = arena_printf(f->a, "%s/%s", f->dir, rel);

	assert_int_equal(mkdir(path, 0755), 0);
	return path;
}

static inline void fixture_user(struct fixture *f, const char *text)
{
	f->in.user_file = fixture_write(f, "user.yaml", text);
}

static inline void fixture_managed(struct fixture *f, const char *text)
{
	f->in.managed_file = fixture_write(f, "managed.yaml", text);
}

static inline void fixture_project(struct fixture *f, const char *text)
{
	f->in.project_file = fixture_write(f, "home/proj/.ambit.yaml", text);
}

/* Trust this file as it is; relative to the fixture's directory. */
static inline void fixture_trust(struct fixture *f, const char *rel)
{
	const char *file = arena_printf(f->a, "%s/%s", f->dir, rel), *line;
	_cleanup_free_ char *text = NULL;
	size_t len;

	assert_int_equal(fd_read_file(AT_FDCWD, file, 1 << 20, &text, &len), 0);
	line = trust_line(f->a, file, text, len);
	assert_non_null(line);
	f->in.trusted = arena_printf(f->a, "%s%s\n", f->in.trusted ? f->in.trusted : "", line);
}

static inline void fixture_only(struct fixture *f, const char *text)
{
	f->in.only_file = fixture_write(f, "only.json", text);
}

static inline void fixture_option(struct fixture *f, const char *key, const char *value)
{
	assert_true(f->in.n_settings < SETTINGS_MAX);
	f->settings[f->in.n_settings++] =
		(struct setting_text){ key, value, "--option", LAYER_OPTION };
}

static inline const struct policy *fixture_load(struct fixture *f)
{
	int r;

	memset(&f->e, 0, sizeof(f->e));
	r = policy_load(f->a, &f->in, &f->p, &f->e);
	if (r < 0)
		fail_msg("policy_load: %s", f->e.text);
	return f->p;
}

/* The load must fail with exactly this text; "@" stands for the fixture's directory. */
static inline void fixture_fails(struct fixture *f, const char *want)
{
	_cleanup_buf_ struct buf text = BUF_INIT(8192);

	memset(&f->e, 0, sizeof(f->e));
	assert_true(policy_load(f->a, &f->in, &f->p, &f->e) < 0);
	for (; *want; want++) {
		if (*want == '@')
			buf_puts(&text, f->dir);
		else
			buf_putc(&text, *want);
	}
	assert_string_equal(f->e.text, buf_str(&text));
	assert_int_not_equal(f->e.code, 0);
}

/* A settings text fails; the message goes without the file name. */
static inline void fixture_text_fails(struct fixture *f, const char *text, const char *want)
{
	fixture_only(f, text);
	fixture_fails(f, arena_printf(f->a, "@/only.json:%s", want));
}

static inline enum verdict fixture_decide(const struct fixture *f, enum access access,
					  const char *rel)
{
	struct decision d;

	policy_decide_path(f->p, access,
			   *rel == '/' ? rel : arena_printf(f->a, "%s/%s", f->dir, rel), &d);
	return d.verdict;
}

static inline void assert_readable(const struct fixture *f, const char *rel)
{
	if (fixture_decide(f, ACCESS_READ, rel) != VERDICT_ALLOW)
		fail_msg("%s should be readable", rel);
}

static inline void assert_hidden(const struct fixture *f, const char *rel)
{
	if (fixture_decide(f, ACCESS_READ, rel) != VERDICT_DENY)
		fail_msg("%s should be hidden", rel);
}

static inline void assert_writable(const struct fixture *f, const char *rel)
{
	if (fixture_decide(f, ACCESS_WRITE, rel) != VERDICT_ALLOW)
		fail_msg("%s should be writable", rel);
}

static inline void assert_unwritable(const struct fixture *f, const char *rel)
{
	if (fixture_decide(f, ACCESS_WRITE, rel) != VERDICT_DENY)
		fail_msg("%s should not be writable", rel);
}

/* Exactly one note, with these words in it. */
static inline void assert_one_note(const struct fixture *f, const char *words)
{
	assert_int_equal(f->p->notes.n, 1);
	if (!strstr(f->p->notes.v[0].text, words))
		fail_msg("\"%s\" not in \"%s\"", words, f->p->notes.v[0].text);
}

#define policy_test(name) cmocka_unit_test_setup_teardown(name, fixture_up, fixture_down)
