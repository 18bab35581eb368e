/* SPDX-License-Identifier: Apache-2.0 */
#include "mcp/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"

static int make_file(const char *dir)
{
	int fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	/* not every file system can; memory is the other place without a name */
	return fd >= 0 ? fd : memfd_create("ambit-output", MFD_CLOEXEC);
}

static int spill(struct spool *s, const char *dir)
{
	_cleanup_fd_ int fd = make_file(dir);
	int r = fd < 0 ? -errno : fd_write_all(fd, buf_str(&s->memory), s->memory.len);

	if (r < 0)
		return r;
	s->file = TAKE_FD(fd);
	buf_done(&s->memory);
	return 0;
}

int spool_append(struct spool *s, const char *dir, const char *data, size_t len)
{
	int r = 0;

	if (s->file < 0 && s->size + len > SPOOL_MEMORY)
		r = spill(s, dir);
	if (r == 0 && s->file >= 0)
		r = fd_write_all(s->file, data, len);
	else if (r == 0)
		buf_append(&s->memory, data, len);
	if (r == 0)
		s->size += len;
	return r;
}

size_t spool_read(const struct spool *s, uint64_t offset, char *ret, size_t len)
{
	size_t got = 0;

	if (offset >= s->size)
		return 0;
	if (len > s->size - offset)
		len = (size_t)(s->size - offset);
	if (s->file < 0) {
		memcpy(ret, s->memory.data + offset, len);
		return len;
	}
	while (got < len) {
		ssize_t n = pread(s->file, ret + got, len - got, (off_t)(offset + got));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		got += (size_t)n;
	}
	return got;
}

void spool_done(struct spool *s)
{
	buf_done(&s->memory);
	fd_close(TAKE_FD(s->file));
	s->size = 0;
}
