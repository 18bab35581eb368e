/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptors over sockets. Linux: they arrive close-on-exec, at once. */
#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

#include "base/fd.h"

union control {
	struct cmsghdr header; /* for the alignment */
	char space[CMSG_SPACE(FD_SEND_MAX * sizeof(int))];
};

int fd_send_many(int sock, const void *data, size_t len, const int *fds, size_t n)
{
	union control control = { .space = { 0 } };
	struct iovec iov = { .iov_base = (void *)(uintptr_t)data, .iov_len = len };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control.space,
			      .msg_controllen = CMSG_SPACE(n * sizeof(int)) };
	struct cmsghdr *c = &control.header;

	if (n == 0 || n > FD_SEND_MAX)
		return -EINVAL;
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(n * sizeof(int));
	memcpy(CMSG_DATA(c), fds, n * sizeof(int));
	return sendmsg(sock, &msg, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

int fd_send(int sock, const void *data, size_t len, int fd)
{
	return fd_send_many(sock, data, len, &fd, 1);
}

/* Whatever came beyond `max` is closed. */
static void take_descriptors(struct msghdr *msg, int *fds, size_t max)
{
	size_t taken = 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i < n; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(fd), sizeof(fd));
			if (taken < max)
				fds[taken++] = fd;
			else
				fd_close(fd);
		}
	}
}

ssize_t fd_receive_many(int sock, void *data, size_t len, int *fds, size_t max)
{
	union control control;
	struct iovec iov = { .iov_base = data, .iov_len = len };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control.space,
			      .msg_controllen = sizeof(control.space) };
	ssize_t n = recvmsg(sock, &msg, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);

	if (n < 0)
		return -errno;
	for (size_t i = 0; i < max; i++)
		fds[i] = -1;
	take_descriptors(&msg, fds, max);
	return n;
}

ssize_t fd_receive(int sock, void *data, size_t len, int *ret_fd)
{
	return fd_receive_many(sock, data, len, ret_fd, 1);
}
