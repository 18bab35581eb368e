/* SPDX-License-Identifier: Apache-2.0 */
#include <sys/xattr.h>

#include "cases.h"

#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452
#endif

static long fchmodat2(int dirfd, const char *path, unsigned mode, int flags)
{
	return syscall(SYS_fchmodat2, dirfd, path, mode, flags);
}

static void modes(void)
{
	char link[64], *tall = malloc(PATH_MAX + 10);
	int fd, path_only, dir;

	group = "chmod";
	T(mkdir("chg", 0755));
	put("chg/f", "text");
	T(symlink("f", "chg/l"));
	T(symlink("nowhere", "chg/dangling"));
	T(symlink("loop", "chg/loop"));
	T(chmod("chg/f", 0640));
	show("chg/f");
	T(chmod("chg/l", 0604));
	show("chg/f");
	T(chmod("chg/dangling", 0600));
	T(chmod("chg/loop", 0600));
	T(chmod("chg/f/", 0600));
	T(chmod("chg/f/x", 0600));
	T(chmod("chg/", 0711));
	T(chmod("chg/.", 0755));
	T(chmod("", 0600));
	T(chmod("chg/missing", 0600));
	T(chmod((char *)8, 0600));
	memset(tall, 'a', PATH_MAX + 9);
	tall[PATH_MAX + 9] = '\0';
	T(chmod(tall, 0600));
	free(tall);
	T(chmod("chg/f", 01777));
	show("chg/f");
	T(chmod("chg/f", 0170000 | 0600));
	show("chg/f");
	fd = open("chg/f", O_RDONLY);
	dir = open("chg", O_RDONLY | O_DIRECTORY);
	path_only = open("chg/f", O_PATH);
	T(fchmod(fd, 0644));
	T(fchmod(path_only, 0600));
	T(fchmod(96, 0600));
	T(fchmodat(dir, "f", 0642, 0));
	T(fchmodat(96, "f", 0600, 0));
	T(fchmodat(96, "", 0600, 0));
	T(fchmodat2(dir, "f", 0646, 0));
	T(fchmodat2(dir, "l", 0600, AT_SYMLINK_NOFOLLOW));
	T(fchmodat2(dir, "f", 0600, AT_SYMLINK_NOFOLLOW));
	T(fchmodat2(fd, "", 0622, AT_EMPTY_PATH));
	show("chg/f");
	T(fchmodat2(path_only, "", 0602, AT_EMPTY_PATH));
	T(fchmodat2(AT_FDCWD, "", 0755, AT_EMPTY_PATH));
	T(fchmodat2(fd, "", 0622, 0));
	T(fchmodat2(dir, "f", 0600, 1 << 20));
	show("chg/f");
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	errno = 0;
	result("chmod of /proc/self/fd", chmod(link, 0666));
	snprintf(link, sizeof(link), "/dev/fd/%d", path_only);
	errno = 0;
	result("chmod of /dev/fd", chmod(link, 0664));
	show("chg/f");
	unlink("chg/f");
	T(fchmod(fd, 0600));
	close(fd);
	close(dir);
	close(path_only);
}

static void owners(void)
{
	uid_t me = geteuid();
	gid_t us = getegid();
	int fd;

	group = "chown";
	put("chg/o", "text");
	T(symlink("o", "chg/ol"));
	fd = open("chg/o", O_RDONLY);
	T(chown("chg/o", me, us));
	T(chown("chg/o", (uid_t)-1, (gid_t)-1));
	T(chown("chg/ol", me, us));
	T(lchown("chg/ol", me, us));
	T(lchown("chg/missing", me, us));
	T(fchown(fd, me, us));
	T(fchownat(fd, "", me, us, AT_EMPTY_PATH));
	T(fchownat(AT_FDCWD, "chg/ol", me, us, AT_SYMLINK_NOFOLLOW));
	T(fchownat(AT_FDCWD, "chg/o", me, us, 1 << 20));
	T(chown((char *)8, me, us));
	show("chg/o");
	close(fd);
}

static void attributes(void)
{
	char value[64] = "", *big = calloc(1, 70000), name[300];
	char *volatile bad = (char *)8; /* the compiler need not know */
	int fd;

	group = "xattr";
	put("chg/x", "text");
	T(symlink("x", "chg/xl"));
	fd = open("chg/x", O_RDONLY);
	T(setxattr("chg/x", "user.one", "1", 1, 0));
	T(setxattr("chg/x", "user.one", "22", 2, XATTR_CREATE));
	T(setxattr("chg/x", "user.two", "2", 1, XATTR_REPLACE));
	T(setxattr("chg/xl", "user.one", "333", 3, XATTR_REPLACE));
	T(getxattr("chg/x", "user.one", value, sizeof(value)));
	line("value %s", value);
	T(lsetxattr("chg/xl", "user.one", "1", 1, 0));
	T(setxattr("chg/x", "user.none", "", 0, 0));
	T(setxattr("chg/x", "nonsense", "1", 1, 0));
	T(setxattr("chg/x", "", "1", 1, 0));
	T(setxattr("chg/x", "user.one", "1", 1, 99));
	T(setxattr("chg/x", "user.one", bad, 5, 0));
	T(setxattr("chg/x", (char *)8, "1", 1, 0));
	T(setxattr("chg/missing", "user.one", "1", 1, 0));
	T(setxattr("chg/x", "user.big", big, 70000, 0));
	memset(name, 'a', sizeof(name));
	memcpy(name, "user.", 5);
	name[299] = '\0';
	T(setxattr("chg/x", name, "1", 1, 0));
	T(fsetxattr(fd, "user.three", "3", 1, 0));
	T(fsetxattr(96, "user.three", "3", 1, 0));
	T(getxattr("chg/x", "user.three", value, sizeof(value)));
	T(removexattr("chg/x", "user.one"));
	T(removexattr("chg/x", "user.one"));
	T(lremovexattr("chg/xl", "user.one"));
	T(fremovexattr(fd, "user.three"));
	T(fremovexattr(fd, "user.three"));
	T(setxattr("chg/x", "trusted.x", "1", 1, 0));
	free(big);
	close(fd);
}

void cases_change(void)
{
	modes();
	owners();
	attributes();
}
