/* SPDX-License-Identifier: Apache-2.0 */
/* A static program that makes a file in one of several ways: tool WAY PATH... */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static int make(int dirfd, const char *path)
{
	int fd = openat(dirfd, path, O_WRONLY | O_CREAT | O_TRUNC, 0644);

	return fd >= 0 && write(fd, "x\n", 2) == 2 ? 0 : 1;
}

static void *in_thread(void *path)
{
	return make(AT_FDCWD, path) == 0 ? path : NULL;
}

int main(int argc, char **argv)
{
	const char *way = argc > 1 ? argv[1] : "";
	pthread_t t;
	void *made = NULL;
	char link[64];

	if (argc < 3)
		return 2;
	if (strcmp(way, "plain") == 0)
		return make(AT_FDCWD, argv[2]);
	if (strcmp(way, "thread") == 0)
		return pthread_create(&t, NULL, in_thread, argv[2]) || pthread_join(t, &made) ||
		       !made;
	if (strcmp(way, "at") == 0) /* DIRECTORY NAME */
		return make(open(argv[2], O_PATH | O_DIRECTORY), argv[3]);
	if (strcmp(way, "cwd") ==
	    0) /* DIRECTORY NEW-NAME NAME: the directory is renamed around us */
		return chdir(argv[2]) < 0 || rename(argv[3], argv[4]) < 0 ||
		       make(AT_FDCWD, argv[5]);
	if (strcmp(way, "unnamed") == 0) {
		int fd = open(".", O_RDWR | O_TMPFILE, 0644);

		snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
		return linkat(AT_FDCWD, link, AT_FDCWD, argv[2], AT_SYMLINK_FOLLOW) < 0;
	}
	if (strcmp(way, "again") == 0) {
		int fd = open(argv[2], O_RDONLY);

		snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
		return open(link, O_WRONLY) < 0;
	}
	if (strcmp(way, "truncate") == 0)
		return truncate(argv[2], 0) < 0;
	if (strcmp(way, "exchange") == 0)
		return syscall(SYS_renameat2, AT_FDCWD, argv[2], AT_FDCWD, argv[3], 2) < 0;
	if (strcmp(way, "mknod") == 0)
		return mknod(argv[2], S_IFREG | 0644, 0) < 0;
	return 2;
}
