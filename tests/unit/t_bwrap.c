/* SPDX-License-Identifier: Apache-2.0 */
/* Orders for ambit-init: what is written is what is read; anything else is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "sandbox/bwrap/inner.h"

static const char *writable[] = { "/tmp", "/dev" };
static const char *guarded[] = { "/home/dev/project" };
static uint16_t ports[] = { 5432, 65535 };
static char *env[] = { (char[]){ "HOME=/home/dev" }, (char[]){ "EMPTY=" }, (char[]){ "" }, NULL };
static char *words[] = { (char[]){ "/bin/sh" }, (char[]){ "-c" }, (char[]){ "a\nb 'c'" }, NULL };

static struct mount_step steps[] = {
	{ .kind = MOUNT_RW,
	  .path = "/home/dev/project",
	  .directory = true,
	  .dev = 0x801,
	  .ino = UINT64_MAX },
	{ .kind = MOUNT_HIDE_FILE, .path = "/home/dev/project/line\nfeed" },
};

static const struct plan plan = {
	.backend = BACKEND_BWRAP,
	.uid = 1000,
	.gid = 100,
	.new_net = true,
	.egress = true,
	.landlock = true,
	.broker = true,
	.cwd = "/home/dev/project",
	.env = env,
	.host_ports = ports,
	.n_host_ports = 2,
	.n_publish = 3,
	.writable = writable,
	.n_writable = 2,
	.guarded = guarded,
	.n_guarded = 1,
	.mounts = steps,
	.n_mounts = 2,
};

static struct sandbox_limits limits = {
	.groups = true, .born_in = 9, .processes = 20, .file_size = 1 << 20, .no_memfd = true
};

static struct sandbox_command command(void)
{
	struct sandbox_command cmd = { .argv = words, .stdio = { 5, 6, 7 }, .tty = 8 };

	cmd.limits = &limits;
	(void)sigaddset(&cmd.mask, SIGUSR1);
	CPU_SET(1, &limits.cpus);
	return cmd;
}

static void check_words(char *const *got, char *const *wanted)
{
	for (; *wanted; got++, wanted++)
		assert_string_equal(*got, *wanted);
	assert_null(*got);
}

static void test_what_is_written_is_read(void **state)
{
	_cleanup_arena_ struct arena *a = arena_new();
	_cleanup_buf_ struct buf b = BUF_INIT(INNER_MAX);
	struct sandbox_command cmd = command();
	struct error e = { 0 };
	struct inner *in;

	(void)state;
	inner_pack(&plan, &cmd, &b);
	assert_int_equal(inner_unpack(a, b.data, b.len, &in, &e), 0);
	assert_true(in->plan.new_net && in->plan.egress && in->plan.landlock && in->plan.broker);
	assert_false(in->plan.bare || in->plan.watch || in->plan.root_writable ||
		     in->plan.no_listen || in->plan.all_unix || in->cmd.own_terminal);
	assert_int_equal(in->plan.uid, 1000);
	assert_int_equal(in->plan.gid, 100);
	assert_int_equal(in->plan.n_publish, 3);
	assert_string_equal(in->plan.cwd, plan.cwd);
	check_words(in->plan.env, env);
	check_words(in->cmd.argv, words);
	assert_int_equal(in->plan.n_host_ports, 2);
	assert_memory_equal(in->plan.host_ports, ports, sizeof(ports));
	assert_int_equal(in->plan.n_writable, 2);
	assert_string_equal(in->plan.writable[1], "/dev");
	assert_int_equal(in->plan.n_guarded, 1);
	assert_int_equal(in->plan.n_relayed, 0);
	assert_int_equal(in->plan.n_mounts, 2);
	assert_int_equal(in->plan.mounts[0].kind, MOUNT_RW);
	assert_true(in->plan.mounts[0].directory);
	assert_true(in->plan.mounts[0].ino == UINT64_MAX && in->plan.mounts[0].dev == 0x801);
	assert_string_equal(in->plan.mounts[1].path, steps[1].path);
	assert_true(sigismember(&in->cmd.mask, SIGUSR1) == 1);
	assert_true(in->cmd.limits == &in->limits && in->limits.groups && in->limits.no_memfd);
	assert_true(in->limits.processes == 20 && CPU_ISSET(1, &in->limits.cpus));
	/* descriptors do not travel as numbers */
	assert_true(in->has_tty && in->has_group && in->cmd.tty == -1 && in->limits.born_in == -1);
	assert_int_equal(in->cmd.stdio[0], -1);
}

static void test_no_limits(void **state)
{
	_cleanup_arena_ struct arena *a = arena_new();
	_cleanup_buf_ struct buf b = BUF_INIT(INNER_MAX);
	struct sandbox_command cmd = command();
	struct inner *in;

	(void)state;
	cmd.limits = NULL;
	cmd.tty = -1;
	inner_pack(&plan, &cmd, &b);
	assert_int_equal(inner_unpack(a, b.data, b.len, &in, NULL), 0);
	assert_null(in->cmd.limits);
	assert_false(in->has_tty || in->has_group);
}

static void test_every_part_is_needed(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(INNER_MAX);
	struct sandbox_command cmd = command();

	(void)state;
	inner_pack(&plan, &cmd, &b);
	for (size_t len = 0; len < b.len; len++) {
		_cleanup_arena_ struct arena *a = arena_new();
		_cleanup_free_ char *part = malloc(len + 1);
		struct inner *in = NULL;

		assert_non_null(part);
		memcpy(part, b.data, len);
		assert_int_equal(inner_unpack(a, part, len, &in, NULL), -EBADMSG);
		assert_null(in);
	}
	buf_putc(&b, 0);
	{
		_cleanup_arena_ struct arena *a = arena_new();
		struct inner *in = NULL;

		assert_int_equal(inner_unpack(a, b.data, b.len, &in, NULL), -EBADMSG);
	}
}

static void test_nothing_is_guessed(void **state)
{
	_cleanup_arena_ struct arena *a = arena_new();
	_cleanup_buf_ struct buf b = BUF_INIT(INNER_MAX);
	struct sandbox_command cmd = command();
	const size_t magic = strlen("ambit-init 1\n");
	struct error e = { 0 };
	struct inner *in = NULL;

	(void)state;
	inner_pack(&plan, &cmd, &b);
	b.data[magic] = 2; /* a flag */
	assert_int_equal(inner_unpack(a, b.data, b.len, &in, &e), -EBADMSG);
	b.data[magic] = 1;
	assert_int_equal(inner_unpack(a, b.data, b.len, &in, &e), 0);
	b.data[magic - 2] = '0'; /* the version */
	assert_int_equal(inner_unpack(a, b.data, b.len, &in, &e), -EBADMSG);
	assert_non_null(strstr(e.text, "another version"));
}

static void test_a_command_is_needed(void **state)
{
	_cleanup_arena_ struct arena *a = arena_new();
	_cleanup_buf_ struct buf b = BUF_INIT(INNER_MAX);
	struct sandbox_command cmd = command();
	char *none[] = { NULL };
	struct inner *in = NULL;

	(void)state;
	cmd.argv = none;
	inner_pack(&plan, &cmd, &b);
	assert_int_equal(inner_unpack(a, b.data, b.len, &in, NULL), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_written_is_read),
		cmocka_unit_test(test_no_limits),
		cmocka_unit_test(test_every_part_is_needed),
		cmocka_unit_test(test_nothing_is_guessed),
		cmocka_unit_test(test_a_command_is_needed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
