/* SPDX-License-Identifier: Apache-2.0 */
/* Where settings are looked for, and what the environment contributes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/fd.h"
#include "policy/inputs.h"

#define ENVIRON(f, ...) environment((f)->a, (const char *[]){ __VA_ARGS__, NULL })

struct fixture {
	struct arena *a;
	char *top; /* an empty directory, the working directory */
	struct error e;
};

static int setup(void **state)
{
	static struct fixture f;
	char dir[] = "/tmp/t_inputs.XXXXXX";

	f = (struct fixture){ .a = arena_new() };
	if (!mkdtemp(dir) || chdir(dir) < 0)
		return -1;
	f.top = arena_strdup(f.a, dir);
	*state = &f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	int r = chdir("/") < 0 || system(arena_printf(f->a, "rm -rf %s", f->top)) != 0;

	arena_free(f->a);
	return r;
}

static char **environment(struct arena *a, const char *const *lines)
{
	char **env = NULL;
	size_t n = 0;

	for (; *lines; lines++)
		*ARENA_PUSH(a, env, n) = arena_strdup(a, *lines);
	*ARENA_PUSH(a, env, n) = NULL;
	return env;
}

/* A file with its parent directories; "name/" is a directory. */
static void make(const char *path)
{
	_cleanup_fd_ int fd = -1;

	for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
		_cleanup_free_ char *part = strndup(path, (size_t)(slash - path));

		assert_non_null(part);
		(void)mkdir(part, 0700);
	}
	if (path[strlen(path) - 1] == '/')
		return;
	fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
}

static const char *below_top(const struct fixture *f, const char *path)
{
	if (!path)
		return "";
	assert_true(path_within(path, f->top));
	return path + strlen(f->top) + 1;
}

/* The project file of dir, relative to the top; "" = none. Behind it those that may only narrow. */
static const char *project(struct fixture *f, const char *dir, const char *home)
{
	const char *at = path_join(f->a, f->top, dir), *ret = NULL, **outer, *all;
	struct project_span span = inputs_project_span(f->a, at, path_join(f->a, f->top, home));
	size_t n;

	assert_true(path_within(at, span.own) && path_within(span.own, span.top));
	assert_int_equal(inputs_project_files(f->a, at, span, &ret, &outer, &n, &f->e), 0);
	all = below_top(f, ret);
	for (size_t i = 0; i < n; i++)
		all = arena_printf(f->a, "%s < %s", all, below_top(f, outer[i]));
	return all;
}

static void test_project_nearest_below_home(void **state)
{
	struct fixture *f = *state;

	make("home/p/.ambit.json");
	make("home/p/a/b/");
	make("home/q/");
	make("home/.ambit.json");
	assert_string_equal(project(f, "home/p/a/b", "home"), "home/p/.ambit.json");
	make("home/p/a/.ambit.yaml");
	assert_string_equal(project(f, "home/p/a/b", "home"),
			    "home/p/a/.ambit.yaml < home/p/.ambit.json");
	/* a file in the home directory is not every project's */
	assert_string_equal(project(f, "home/q", "home"), "");
	assert_string_equal(project(f, "home", "home"), "home/.ambit.json");
}

/* Others can write to parents like /tmp: outside home only a git work tree reaches upwards. */
static void test_project_outside_home(void **state)
{
	struct fixture *f = *state;

	make("srv/.ambit.json");
	make("srv/p/a/");
	assert_string_equal(project(f, "srv/p/a", "home"), "");
	assert_string_equal(project(f, "srv", "home"), "srv/.ambit.json");
	make("srv/.git/");
	assert_string_equal(project(f, "srv/p/a", "home"), "srv/.ambit.json");
	/* a nested work tree (.git as a file: worktree, submodule) is a project of its own */
	make("srv/p/.git");
	assert_string_equal(project(f, "srv/p/a", "home"), " < srv/.ambit.json");
	/* nor does an outer one without a work tree count */
	assert_int_equal(rmdir("srv/.git"), 0);
	assert_string_equal(project(f, "srv/p/a", "home"), "");
}

static void test_project_git_root_bounds_home(void **state)
{
	struct fixture *f = *state;

	make("home/.ambit.json");
	make("home/w/.ambit.json");
	make("home/w/repo/.git/");
	make("home/w/repo/src/");
	assert_string_equal(project(f, "home/w/repo/src", "home"), " < home/w/.ambit.json");
	/* a command can make both in the project: what lies above still narrows */
	make("home/w/.git/");
	make("home/w/repo/src/.git/");
	make("home/w/repo/.ambit.json");
	make("home/w/repo/src/.ambit.json");
	assert_string_equal(project(f, "home/w/repo/src", "home"),
			    "home/w/repo/src/.ambit.json < home/w/.ambit.json < "
			    "home/w/repo/.ambit.json");
	/* "home2" is not below "home" */
	make("home2/.ambit.json");
	make("home2/x/");
	assert_string_equal(project(f, "home2/x", "home"), "");
}

/* What others can make in a place that is everybody's is nobody's project. */
static void test_project_not_everybodys(void **state)
{
	struct fixture *f = *state;

	make("tmp/.git/");
	make("tmp/.ambit.json");
	make("tmp/p/a/.git/");
	assert_string_equal(project(f, "tmp/p", "home"), "tmp/.ambit.json");
	assert_int_equal(chmod("tmp", 01777), 0);
	assert_string_equal(project(f, "tmp/p", "home"), "");
	assert_string_equal(project(f, "tmp/p/a", "home"), "");
	/* whoever works there itself is told */
	assert_string_equal(project(f, "tmp", "home"), "tmp/.ambit.json");
	if (geteuid() != 0)
		return;
	/* nor past the own work tree a directory of somebody else's, or a file */
	assert_int_equal(chmod("tmp", 0755), 0);
	assert_string_equal(project(f, "tmp/p/a", "home"), " < tmp/.ambit.json");
	assert_int_equal(chown("tmp/.ambit.json", 7, 7), 0);
	assert_string_equal(project(f, "tmp/p/a", "home"), "");
	assert_int_equal(chown("tmp/.ambit.json", 0, 0), 0);
	assert_int_equal(chown("tmp", 7, 7), 0);
	assert_string_equal(project(f, "tmp/p/a", "home"), "");
}

static void test_two_files_are_an_error(void **state)
{
	struct fixture *f = *state;
	struct project_span span = { f->top, f->top };
	const char *ret, **outer;
	size_t n;

	make("p/.ambit.json");
	make("p/.ambit.yaml");
	assert_int_equal(inputs_project_files(f->a, path_join(f->a, f->top, "p"), span, &ret,
					      &outer, &n, &f->e),
			 -EEXIST);
	assert_non_null(strstr(f->e.text, "only one"));
}

static void test_home(void **state)
{
	static const char passwd[] = "root:x:0:0:root:/root:/bin/sh\n"
				     "broken:x:7\n"
				     "short:x:\n"
				     "seven:x:7:7:a b:/home/seven/:/bin/sh\n"
				     "relative:x:8:8::home:/bin/sh\n"
				     "eight:x:8:8::/home/eight";
	struct fixture *f = *state;

	assert_string_equal(inputs_home(f->a, "/h//x/", passwd, 7), "/h/x");
	assert_string_equal(inputs_home(f->a, NULL, passwd, 7), "/home/seven");
	assert_string_equal(inputs_home(f->a, "relative", passwd, 0), "/root");
	assert_string_equal(inputs_home(f->a, NULL, passwd, 8), "/home/eight");
	assert_null(inputs_home(f->a, NULL, passwd, 70));
	assert_null(inputs_home(f->a, NULL, NULL, 0));
}

static void test_variable(void **state)
{
	struct fixture *f = *state;
	char *const *env = ENVIRON(f, "AMBITX=1", "AMBIT=", "PWD=/x", "NOEQUAL");

	assert_null(inputs_variable(env, "AMBIT"));
	assert_null(inputs_variable(env, "NOEQUAL"));
	assert_string_equal(inputs_variable(env, "PWD"), "/x");
}

static const char *working_directory(struct fixture *f, const char *pwd)
{
	const char *line = arena_printf(f->a, "PWD=%s", pwd);
	const char *ret = NULL;

	assert_int_equal(inputs_working_directory(f->a, ENVIRON(f, line), &ret, &f->e), 0);
	return ret;
}

static void test_pwd_counts_only_when_true(void **state)
{
	struct fixture *f = *state;
	const char *link = path_join(f->a, f->top, "link");

	make("dir/");
	assert_int_equal(symlink("dir", "link"), 0);
	assert_int_equal(chdir("dir"), 0);
	assert_string_equal(working_directory(f, link), link);
	assert_string_equal(working_directory(f, "/"), path_join(f->a, f->top, "dir"));
	assert_string_equal(working_directory(f, "."), path_join(f->a, f->top, "dir"));
	assert_string_equal(working_directory(f, ""), path_join(f->a, f->top, "dir"));
	/* true for the kernel, another place when read as text */
	assert_int_equal(chdir(f->top), 0);
	assert_int_equal(symlink("/usr/lib", "up"), 0);
	assert_int_equal(chdir("/usr"), 0);
	assert_string_equal(working_directory(f, path_join(f->a, f->top, "up/..")), "/usr");
}

static void test_removed_directory(void **state)
{
	struct fixture *f = *state;
	const char *ret = NULL;

	make("gone/");
	assert_int_equal(chdir("gone"), 0);
	assert_int_equal(rmdir("../gone"), 0);
	assert_true(inputs_working_directory(f->a, ENVIRON(f, "PWD=/gone"), &ret, &f->e) < 0);
	assert_true(inputs_caller_path(f->a, "x", &ret, &f->e) < 0);
	assert_int_equal(inputs_caller_path(f->a, "/x/../y", &ret, &f->e), 0);
	assert_string_equal(ret, "/x/../y");
}

static void test_find_program(void **state)
{
	struct fixture *f = *state;
	const char *path =
		arena_printf(f->a, "PATH=rel::%s/none:%s/dir:%s/bin", f->top, f->top, f->top);

	make("rel/tool");
	make("dir/tool/");
	make("bin/tool");
	assert_null(inputs_find_program(f->a, ENVIRON(f, path), "tool"));
	assert_int_equal(chmod("bin/tool", 0700), 0);
	assert_int_equal(chmod("rel/tool", 0700), 0);
	assert_string_equal(inputs_find_program(f->a, ENVIRON(f, path), "tool"),
			    path_join(f->a, f->top, "bin/tool"));
	assert_null(inputs_find_program(f->a, ENVIRON(f, path), ""));
	assert_null(inputs_find_program(f->a, ENVIRON(f, path), "../bin/tool"));
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_project_nearest_below_home),
		TEST(test_project_outside_home),
		TEST(test_project_git_root_bounds_home),
		TEST(test_project_not_everybodys),
		TEST(test_two_files_are_an_error),
		TEST(test_home),
		TEST(test_variable),
		TEST(test_pwd_counts_only_when_true),
		TEST(test_removed_directory),
		TEST(test_find_program),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
