/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptors over a socket: which one arrives, and that no other is left open. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/error.h"
#include "base/fd.h"

static int lowest_free(void)
{
	int fd = fcntl(0, F_DUPFD_CLOEXEC, 0);

	fd_close(fd);
	return fd;
}

static void make_pair(int pair[2])
{
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
}

static void test_one_descriptor(void **state)
{
	int pair[2], got = -1, null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	struct stat sent, came;
	char text[8];

	(void)state;
	make_pair(pair);
	assert_int_equal(fd_send(pair[0], "hello", 5, null), 0);
	assert_int_equal(fd_receive(pair[1], text, sizeof(text), &got), 5);
	assert_memory_equal(text, "hello", 5);
	assert_true(got >= 0 && got != null);
	assert_int_equal(fcntl(got, F_GETFD), FD_CLOEXEC);
	assert_int_equal(fstat(null, &sent) | fstat(got, &came), 0);
	assert_true(sent.st_rdev == came.st_rdev && sent.st_ino == came.st_ino);
	fd_close(got);
	fd_close(null);
	fd_close(pair[0]);
	fd_close(pair[1]);
}

static void test_none_and_the_end(void **state)
{
	int pair[2], got = 77;
	char text[8];

	(void)state;
	make_pair(pair);
	assert_int_equal(fd_receive(pair[1], text, sizeof(text), &got), -EAGAIN);
	assert_int_equal(send(pair[0], "x", 1, 0), 1);
	assert_int_equal(fd_receive(pair[1], text, sizeof(text), &got), 1);
	assert_int_equal(got, -1);
	fd_close(pair[0]);
	got = 77;
	assert_int_equal(fd_receive(pair[1], text, sizeof(text), &got), 0);
	assert_int_equal(got, -1);
	assert_int_equal(fd_send(pair[1], "x", 1, 0), -EPIPE); /* and no SIGPIPE */
	fd_close(pair[1]);
}

/* Room for one has, with its padding, room for two: the second must not stay open. */
static void test_more_than_one(void **state)
{
	for (size_t n = 2; n <= 4; n++) {
		union {
			struct cmsghdr header;
			char space[CMSG_SPACE(4 * sizeof(int))];
		} control = { .space = { 0 } };
		struct iovec iov = { .iov_base = (char[]){ 'x' }, .iov_len = 1 };
		struct msghdr msg = { .msg_iov = &iov,
				      .msg_iovlen = 1,
				      .msg_control = control.space,
				      .msg_controllen = CMSG_SPACE(n * sizeof(int)) };
		struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
		int pair[2], fds[4] = { 0, 1, 2, 0 }, got = -1, free_before;
		char text[8];

		make_pair(pair);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(n * sizeof(int));
		memcpy(CMSG_DATA(c), fds, n * sizeof(int));
		assert_int_equal(sendmsg(pair[0], &msg, 0), 1);
		free_before = lowest_free();
		assert_int_equal(fd_receive(pair[1], text, sizeof(text), &got), 1);
		assert_int_equal(got, free_before);
		fd_close(got);
		assert_int_equal(fcntl(free_before + 1, F_GETFD), -1);
		fd_close(pair[0]);
		fd_close(pair[1]);
	}
	(void)state;
}

/* An errno of 0 is a failure all the same. */
static void test_error_is_negative(void **state)
{
	struct error e = { .code = 0 };

	(void)state;
	assert_int_equal(error_set(&e, 0, "odd"), -EIO);
	assert_int_equal(e.code, EIO);
	assert_int_equal(error_set(&e, ENOENT, "gone"), -ENOENT);
	errno = EACCES;
	assert_int_equal(error_set(&e, errno, "%d", errno = 0), -EACCES);
	assert_int_equal(e.code, EACCES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_descriptor),
		cmocka_unit_test(test_none_and_the_end),
		cmocka_unit_test(test_more_than_one),
		cmocka_unit_test(test_error_is_negative),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
