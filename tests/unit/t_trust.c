/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/trust.h"
#include "policy_fixture.h"

static const char *line_of(struct fixture *f, const char *file)
{
	_cleanup_free_ char *text = NULL;
	const char *line;
	size_t len;

	assert_int_equal(fd_read_file(AT_FDCWD, file, 4096, &text, &len), 0);
	line = trust_line(f->a, file, text, len);
	assert_non_null(line);
	return line;
}

static bool trusted(struct fixture *f, const char *store, const char *file)
{
	const char *list;

	if (trust_read(f->a, store, &list, &f->e) < 0)
		fail_msg("trust_read: %s", f->e.text);
	return trust_holds(list, line_of(f, file));
}

static int add(struct fixture *f, const char *store, const char *file)
{
	return trust_add(store, (const char *[]){ line_of(f, file) }, 1, &f->e);
}

static void test_trust(void **state)
{
	struct fixture *f = *state;
	const char *store = arena_printf(f->a, "%s/state/ambit/trust", f->dir);
	const char *a = fixture_write(f, "home/a.json", "{}");
	const char *b = fixture_write(f, "home/b.json", "{}");
	struct stat st;

	assert_false(trusted(f, store, a));
	assert_int_equal(add(f, store, a), 0);
	assert_true(trusted(f, store, a));
	/* the same content elsewhere is another file */
	assert_false(trusted(f, store, b));
	assert_int_equal(add(f, store, b), 0);
	assert_true(trusted(f, store, a));
	assert_true(trusted(f, store, b));
	assert_int_equal(stat(store, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(stat(arena_printf(f->a, "%s/state", f->dir), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
}

static void test_changed_file(void **state)
{
	struct fixture *f = *state;
	const char *store = arena_printf(f->a, "%s/trust", f->dir);
	const char *file = fixture_write(f, "home/a.json", "{}");
	_cleanup_free_ char *text = NULL;

	assert_int_equal(add(f, store, file), 0);
	fixture_write(f, "home/a.json", "{ }");
	assert_false(trusted(f, store, file));
	assert_int_equal(add(f, store, file), 0);
	assert_true(trusted(f, store, file));
	/* and the content of before is not trusted any more */
	fixture_write(f, "home/a.json", "{}");
	assert_false(trusted(f, store, file));
	assert_int_equal(fd_read_file(-1, store, 4096, &text, NULL), 0);
	assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
}

/* Through a link it is the file behind it that is trusted. */
static void test_canonical(void **state)
{
	struct fixture *f = *state;
	const char *store = arena_printf(f->a, "%s/trust", f->dir);
	const char *file = fixture_write(f, "home/a.json", "{}");
	const char *link = arena_printf(f->a, "%s/link.json", f->dir);

	assert_int_equal(symlink("home/a.json", link), 0);
	assert_int_equal(add(f, store, link), 0);
	assert_true(trusted(f, store, file));
}

static void test_store_of_others(void **state)
{
	struct fixture *f = *state;
	const char *store = arena_printf(f->a, "%s/trust", f->dir);
	const char *file = fixture_write(f, "home/a.json", "{}");
	const char *list;

	assert_int_equal(add(f, store, file), 0);
	assert_int_equal(chmod(store, 0666), 0);
	assert_int_equal(trust_read(f->a, store, &list, &f->e), -EPERM);
	assert_int_equal(add(f, store, file), -EPERM);
	assert_int_equal(unlink(store), 0);
	assert_int_equal(symlink("elsewhere", store), 0);
	assert_int_equal(trust_read(f->a, store, &list, &f->e), -EPERM);
}

static void test_odd_store(void **state)
{
	struct fixture *f = *state;
	const char *file = fixture_write(f, "home/a.json", "{}");
	const char *cut =
		arena_printf(f->a,
			     "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a "
			     "%s/home/a.jso",
			     f->dir);
	const char *store = fixture_write(f, "trust", cut);

	/* a line cut short, garbage, an empty line: nothing is trusted by them */
	assert_int_equal(chmod(store, 0600), 0);
	assert_false(trusted(f, store, file));
	fixture_write(f, "trust", arena_printf(f->a, "\n\nx\n%sn", cut));
	assert_false(trusted(f, store, file));
	assert_int_equal(add(f, store, file), 0);
	assert_true(trusted(f, store, file));
	assert_null(trust_line(f->a, "/nonexistent/x", "", 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		policy_test(test_trust),     policy_test(test_changed_file),
		policy_test(test_canonical), policy_test(test_store_of_others),
		policy_test(test_odd_store),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
