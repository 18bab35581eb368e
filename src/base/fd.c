/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"

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
	char chunk[4096];

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
