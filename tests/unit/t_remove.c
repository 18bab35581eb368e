/* SPDX-License-Identifier: Apache-2.0 */
/* Trees as hostile commands leave them: deep, closed, full of links. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "base/remove.h"

static char top[] = "/tmp/t_remove.XXXXXX";

static void empty_and_remove(const char *path)
{
	int dir = remove_open(AT_FDCWD, path);

	assert_true(dir >= 0);
	remove_contents(dir);
	assert_int_equal(rmdir(path), 0);
}

static int set_up(void **state)
{
	(void)state;
	(void)snprintf(top, sizeof(top), "/tmp/t_remove.XXXXXX");
	return mkdtemp(top) ? 0 : -1;
}

/* The first of `count` directories, one in the other; each with a file and a closed brother. */
static void nest(int dir, unsigned count)
{
	int at = fcntl(dir, F_DUPFD_CLOEXEC, 0);

	for (unsigned i = 0; i < count; i++) {
		int next;

		assert_int_equal(mkdirat(at, "d", 0700), 0);
		assert_int_equal(mknodat(at, "f", S_IFREG | 0000, 0), 0);
		assert_int_equal(mkdirat(at, "closed", 0000), 0);
		next = openat(at, "d", O_PATH | O_DIRECTORY | O_CLOEXEC);
		assert_true(next >= 0);
		fd_close(at);
		at = next;
	}
	fd_close(at);
}

/* Longer than any path can be, and deeper than descriptors may be open. */
static void test_deep(void **state)
{
	int dir = open(top, O_PATH | O_DIRECTORY | O_CLOEXEC);

	(void)state;
	nest(dir, 3000);
	fd_close(dir);
	empty_and_remove(top);
}

static void test_closed(void **state)
{
	int dir = open(top, O_PATH | O_DIRECTORY | O_CLOEXEC);

	(void)state;
	assert_int_equal(mkdirat(dir, "a", 0700), 0);
	assert_int_equal(mkdirat(dir, "a/b", 0700), 0);
	assert_int_equal(mknodat(dir, "a/b/f", S_IFIFO | 0600, 0), 0);
	assert_int_equal(fchmodat(dir, "a/b", 0000, 0), 0);
	assert_int_equal(fchmodat(dir, "a", 0000, 0), 0);
	fd_close(dir);
	assert_int_equal(chmod(top, 0000), 0);
	empty_and_remove(top);
}

/* A link goes away, what it leads to stays as it was. */
static void test_links(void **state)
{
	char kept[] = "/tmp/t_remove_kept.XXXXXX", file[64];
	int dir = open(top, O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct stat st;

	(void)state;
	assert_non_null(mkdtemp(kept));
	(void)snprintf(file, sizeof(file), "%s/file", kept);
	assert_int_equal(mknod(file, S_IFREG | 0640, 0), 0);
	assert_int_equal(chmod(kept, 0750), 0);
	assert_int_equal(symlinkat(kept, dir, "link"), 0);
	assert_int_equal(symlinkat(file, dir, "file"), 0);
	fd_close(dir);
	empty_and_remove(top);
	assert_int_equal(stat(file, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0640);
	assert_int_equal(stat(kept, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0750);

	/* and is no directory to be emptied itself */
	assert_int_equal(symlink(kept, top), 0);
	assert_int_equal(remove_open(AT_FDCWD, top), -ENOTDIR);
	assert_int_equal(unlink(top), 0);
	empty_and_remove(kept);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_deep, set_up),
		cmocka_unit_test_setup(test_closed, set_up),
		cmocka_unit_test_setup(test_links, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
