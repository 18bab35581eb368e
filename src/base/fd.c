/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/sys.h"

#define SMALL_WRITE 4096

#ifndef MSG_NOSIGNAL
#define MSG_NOSIGNAL 0 /* macOS, where the signal is ignored for the socket or not at all */
#endif

void fd_close(int fd)
{
	int saved = errno;

	if (fd >= 0)
		(void)close(fd);
	errno = saved;
}

int fd_write_all(int fd, const void *data, size_t len)
{
	const char *p = data;

	while (len > 0) {
		ssize_t n = write(fd, p, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		p += n;
		len -= (size_t)n;
	}
	return 0;
}

/* The same pipe or terminal, as a file of our own that never waits; -1 when it is another's. */
static int open_unwaiting(int fd)
{
	char path[32];

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

/* A pipe takes so much once poll() has called it writable, unless others write to it as well. */
static ssize_t write_small(int fd, const void *data, size_t len)
{
	struct pollfd ready = { .fd = fd, .events = POLLOUT };

	if (poll(&ready, 1, 0) == 1)
		return write(fd, data, len < SMALL_WRITE ? len : SMALL_WRITE);
	errno = EAGAIN;
	return -1;
}

static ssize_t write_now(int fd, int own, bool is_socket, const void *data, size_t len)
{
	ssize_t n;

	do
		n = is_socket  ? send(fd, data, len, MSG_DONTWAIT | MSG_NOSIGNAL)
		    : own >= 0 ? write(own, data, len)
			       : write_small(fd, data, len);
	while (n < 0 && errno == EINTR);
	return n;
}

ssize_t fd_write_within(int fd, const void *data, size_t len, int ms)
{
	struct pollfd ready = { .fd = fd, .events = POLLOUT };
	uint64_t end = sys_now_ms() + (uint64_t)ms, now;
	_cleanup_fd_ int own = -1;
	struct stat st;
	size_t done = 0;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (S_ISREG(st.st_mode)) { /* does not wait; and opened again it would begin anew */
		int r = fd_write_all(fd, data, len);

		return r < 0 ? r : (ssize_t)len;
	}
	if (!S_ISSOCK(st.st_mode))
		own = open_unwaiting(fd);
	while (done < len) {
		ssize_t n = write_now(fd, own, S_ISSOCK(st.st_mode), (const char *)data + done,
				      len - done);

		if (n < 0 && errno != EAGAIN)
			return -errno;
		if (n >= 0) {
			done += (size_t)n;
			continue;
		}
		now = sys_now_ms();
		if (now >= end || poll(&ready, 1, (int)(end - now)) == 0)
			break;
	}
	return (ssize_t)done;
}

ssize_t fd_read_full(int fd, void *data, size_t len)
{
	size_t done = 0;

	while (done < len) {
		ssize_t n = read(fd, (char *)data + done, len - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		done += (size_t)n;
	}
	return (ssize_t)done;
}

int fd_read_file(int dirfd, const char *path, size_t max, char **ret, size_t *ret_len)
{
	_cleanup_fd_ int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	_cleanup_buf_ struct buf b = BUF_INIT(max);
	char chunk[4096] _unfilled_;

	if (fd < 0)
		return -errno;
	for (;;) {
		ssize_t n = read(fd, chunk, sizeof(chunk));

		if (n < 0 && errno == EAGAIN) {
			/* a pipe whose writer is slow, as from <(...) */
			struct pollfd ready = { .fd = fd, .events = POLLIN };

			(void)poll(&ready, 1, -1);
			continue;
		}
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		buf_append(&b, chunk, (size_t)n);
		if (b.overflow)
			return -EFBIG;
		if (n == 0)
			break;
	}
	if (ret_len)
		*ret_len = b.len;
	*ret = TAKE_PTR(b.data);
	return 0;
}

int fd_replace_file(const char *path, const void *data, size_t len, mode_t mode)
{
	_cleanup_free_ char *temporary = NULL;
	_cleanup_fd_ int fd = -1;
	int r;

	if (asprintf(&temporary, "%s.XXXXXX", path) < 0)
		return -ENOMEM;
	fd = mkostemp(temporary, O_CLOEXEC); /* 0600 */
	if (fd < 0)
		return -errno;
	r = fd_write_all(fd, data, len);
	if (r == 0 && (fchmod(fd, mode) < 0 || fsync(fd) < 0 || rename(temporary, path) < 0))
		r = -errno;
	if (r < 0)
		(void)unlink(temporary);
	return r;
}
