/* SPDX-License-Identifier: Apache-2.0 */
/* What of sys.h there is on macOS. (The condition is for tools that read every file.) */
#ifdef __APPLE__
#include "base/sys.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <mach-o/dyld.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/text.h"

uint64_t sys_now_ns(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

uint64_t sys_now_ms(void)
{
	return sys_now_ns() / 1000000;
}

int sys_random(void *ret, size_t len)
{
	arc4random_buf(ret, len);
	return 0;
}

/* realpath() is asked in any case: it also knows a name in the case that the disk has. */
int sys_open_direct(const char *path)
{
	(void)path;
	return -ENOSYS;
}

int sys_rename_new(int dir, const char *from, const char *to)
{
	return renameatx_np(dir, from, dir, to, RENAME_EXCL) < 0 ? -errno : 0;
}

int sys_program(char *ret, size_t size)
{
	char path[PATH_MAX], real[PATH_MAX];
	uint32_t len = sizeof(path);

	if (_NSGetExecutablePath(path, &len) < 0)
		return -ENAMETOOLONG;
	if (!realpath(path, real))
		return -errno;
	if (strlen(real) >= size)
		return -ENAMETOOLONG;
	text_copy(ret, size, real);
	return 0;
}

/* Who wants to know looks now and then. */
int sys_watch_directory(int dir)
{
	(void)dir;
	return -ENOSYS;
}

int sys_pipe(int ret[2])
{
	if (pipe(ret) < 0)
		return -errno;
	(void)fcntl(ret[0], F_SETFD, FD_CLOEXEC);
	(void)fcntl(ret[1], F_SETFD, FD_CLOEXEC);
	return 0;
}

/* Those that are open now; nobody opens more meanwhile. */
int sys_close_from(int first)
{
	DIR *open_now = opendir("/dev/fd");
	const struct dirent *d;

	if (!open_now)
		return -errno;
	while ((d = readdir(open_now))) {
		uint64_t fd;

		if (text_parse_u64(d->d_name, INT_MAX, &fd) == 0 && (int)fd >= first &&
		    (int)fd != dirfd(open_now))
			(void)close((int)fd);
	}
	(void)closedir(open_now);
	return 0;
}

#endif

void sys_seal_relocated(void)
{
}
