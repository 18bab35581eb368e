/* SPDX-License-Identifier: Apache-2.0 */
/* Containers: words that the engine may be given, and the block that ambit-enter is told by. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "policy/container.h"
#include "sandbox/container/request.h"

static void test_arguments(void **state)
{
	static const char *const good[] = { "--runtime=runc", "--ulimit=nofile=1:1",
					    "--security-opt=label=disable", "--root=/x" };
	static const char *const bad[] = { "--privileged",
					   "--runtime",
					   "--runtimes=x",
					   "-v=/:/x",
					   "--volume=/:/x",
					   "--network=host",
					   "--security-opt=seccomp=unconfined",
					   "--security-opt=label=disable ",
					   "runtime=runc",
					   "=",
					   "" };
	struct error e;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(good); i++)
		assert_int_equal(container_check_argument(good[i], &e), 0);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_int_equal(container_check_argument(bad[i], &e), -EINVAL);
}

static void test_images(void **state)
{
	static const char *const good[] = { "debian", "debian:12", "localhost/a/b:c",
					    "x@sha256:0123" };
	static const char *const bad[] = { "", "-v", "--privileged", "a b", "a\nb", "/x", "a,b" };
	struct error e;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(good); i++)
		assert_int_equal(container_check_image(good[i], &e), 0);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_int_equal(container_check_image(bad[i], &e), -EINVAL);
}

static char *const argv[] = { (char[]){ "sh" }, (char[]){ "" }, (char[]){ "a\nb" }, NULL };
static char *const env[] = { (char[]){ "A=1" }, NULL };

static struct mount_step steps[] = {
	{ .kind = MOUNT_RW, .path = "/w", .dev = 1, .ino = 2 },
	{ .kind = MOUNT_RO, .path = "/w/r", .dev = 3, .ino = 4 },
	{ .kind = MOUNT_HIDE_DIR, .path = "/w/h" },
	{ .kind = MOUNT_HIDE_FILE, .path = "/w/f" },
	{ .kind = MOUNT_PRIVATE, .path = "/tmp" },
};

/* The block of a small plan, as it lies in the memory file. */
static size_t make_block(struct arena *a, char **ret)
{
	const struct plan_engine engine = { .landlock = ENGINE_TRY_LANDLOCK };
	const struct plan plan = { .env = (char **)(uintptr_t)env,
				   .cwd = "/w",
				   .engine = &engine,
				   .mounts = steps,
				   .n_mounts = ARRAY_LEN(steps) };
	const struct sandbox_command cmd = { .argv = argv, .own_terminal = true };
	struct request q;
	_cleanup_fd_ int fd = -1;
	off_t len;

	request_make(a, &plan, &cmd, &q);
	q.umask = 027;
	fd = request_write(&q);
	assert_true(fd >= 0);
	len = lseek(fd, 0, SEEK_END);
	assert_true(len > 0);
	*ret = arena_alloc(a, (size_t)len);
	assert_int_equal(pread(fd, *ret, (size_t)len, 0), len);
	return (size_t)len;
}

static void test_request(void **state)
{
	_cleanup_arena_ struct arena *a = arena_new();
	struct request q;
	struct error e;
	char *block;
	size_t len = make_block(a, &block);

	(void)state;
	assert_int_equal(request_parse(a, block, len, &q, &e), 0);
	for (size_t i = 0; i < ARRAY_LEN(argv) - 1; i++)
		assert_string_equal(q.argv[i], argv[i]);
	assert_null(q.argv[ARRAY_LEN(argv) - 1]);
	assert_string_equal(q.env[0], "A=1");
	assert_null(q.env[1]);
	assert_string_equal(q.cwd, "/w");
	assert_true(q.own_terminal);
	assert_int_equal(q.umask, 027);
	assert_int_equal(q.n_places, 4);
	assert_int_equal(q.places[0].kind, PLACE_SAME);
	assert_int_equal(q.places[1].kind, PLACE_SAME_RO);
	assert_int_equal(q.places[1].ino, 4);
	assert_string_equal(q.places[2].path, "/w/h");
	assert_int_equal(q.places[2].kind, PLACE_EMPTY);
	assert_int_equal(q.places[3].kind, PLACE_NULL);
}

/* Whatever is cut off or changed: refused, or parsed without leaving the block (ASan watches). */
static void test_broken_request(void **state)
{
	_cleanup_arena_ struct arena *a = arena_new();
	struct request q;
	struct error e;
	char *block, *copy;
	size_t len = make_block(a, &block);

	(void)state;
	for (size_t n = 0; n < len; n++) {
		copy = malloc(n ? n : 1);
		assert_non_null(copy);
		memcpy(copy, block, n);
		assert_int_equal(request_parse(a, copy, n, &q, &e), -EPROTO);
		free(copy);
	}
	for (size_t n = 0; n < len; n++) {
		copy = malloc(len);
		assert_non_null(copy);
		memcpy(copy, block, len);
		copy[n] = (char)~copy[n];
		(void)!request_parse(a, copy, len, &q, &e);
		free(copy);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_arguments),
		cmocka_unit_test(test_images),
		cmocka_unit_test(test_request),
		cmocka_unit_test(test_broken_request),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
