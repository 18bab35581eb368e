/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls with the mark of ambit-direct.so, made by hand: marked WAY PATH
 * file, cut, dir; setuid (by open), setuid-unnamed (O_TMPFILE, then linkat)
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../../src/sandbox/native/direct.h"

static long open_marked(const char *path, int flags, mode_t mode)
{
	return syscall(SYS_openat, AT_FDCWD, path, flags, mode, 0, DIRECT_MARK);
}

/* A file without a name in the directory, then its name. */
static long unnamed(char *path)
{
	char link[64], *name = strrchr(path, '/');
	long fd;

	*name = '\0';
	fd = open_marked(path, O_TMPFILE | O_WRONLY, 04755);
	*name = '/';
	if (fd < 0)
		return fd;
	sprintf(link, "/proc/self/fd/%ld", fd);
	return linkat(AT_FDCWD, link, AT_FDCWD, path, AT_SYMLINK_FOLLOW);
}

int main(int argc, char **argv)
{
	const char *way = argc > 2 ? argv[1] : "";
	char *path = argv[2];
	long r = -1;

	umask(0);
	errno = EINVAL;
	if (strcmp(way, "file") == 0 && (r = open_marked(path, O_WRONLY | O_CREAT, 0644)) >= 0)
		r = write((int)r, "EVIL\n", 5);
	else if (strcmp(way, "cut") == 0)
		r = open_marked(path, O_RDONLY | O_TRUNC, 0);
	else if (strcmp(way, "dir") == 0)
		r = syscall(SYS_mkdirat, AT_FDCWD, path, 0755, 0, 0, DIRECT_MARK);
	else if (strcmp(way, "setuid") == 0)
		r = open_marked(path, O_WRONLY | O_CREAT, 06755);
	else if (strcmp(way, "setuid-unnamed") == 0)
		r = unnamed(path);
	puts(r < 0 ? strerror(errno) : "done");
	return 0;
}
