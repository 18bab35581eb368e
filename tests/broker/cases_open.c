/* SPDX-License-Identifier: Apache-2.0 */
#include "cases.h"

static void flags(void)
{
	group = "flags";
	put("f", "hello");
	O(open("f", O_WRONLY));
	O(open("f", O_RDWR | O_CLOEXEC));
	O(open("f", O_WRONLY | O_APPEND));
	O(open("f", O_RDWR | O_NONBLOCK));
	O(open("f", O_WRONLY | O_SYNC));
	O(open("f", O_WRONLY | O_DSYNC));
	O(open("f", O_RDWR | O_NOATIME));
	O(open("f", O_WRONLY | O_NOFOLLOW));
	O(open("f", O_WRONLY | O_NOCTTY));
	O(open("f", O_WRONLY | O_DIRECTORY));
	O(open("f", O_WRONLY | O_CREAT | O_EXCL, 0600));
	O(open("f", O_WRONLY | O_CREAT, 0600));
	O(open("f", O_ACCMODE)); /* 3: ioctl only */
	O(open("f", O_RDWR | O_PATH));
	O(open("f", O_WRONLY | O_ASYNC));
	O(open("f", O_RDWR | 0x40000000)); /* a bit nobody knows: open() ignores it */
	O(open("f", O_RDONLY | O_TRUNC));
	show("f");
	put("f", "hello");
	O(open("f", O_RDONLY | O_CREAT | O_TRUNC, 0600));
	show("f");
	O(creat("c", 0751));
	O(creat("c", 0600));
	O(open("n1", O_WRONLY | O_CREAT, 04711));
	O(open("n2", O_WRONLY | O_CREAT | O_EXCL, 0));
	O(open("n2", O_WRONLY));
	O(open("n3", O_RDONLY | O_CREAT, 0444));
	O(open("n3", O_WRONLY));
	O(open("n3", O_RDONLY | O_TRUNC));
	O(open("n4", O_RDWR | O_CREAT | O_DIRECTORY, 0644));
	O(open("n5", O_WRONLY | O_CREAT, 0177644));
	O(syscall(SYS_open, "n6", O_WRONLY | O_CREAT, 0640));
}

static void paths(void)
{
	char longest[NAME_MAX + 2], deep[PATH_MAX + 10];

	group = "paths";
	mkdir("d", 0755);
	O(open("", O_WRONLY | O_CREAT, 0644));
	O(open(".", O_WRONLY));
	O(open("..", O_RDWR));
	O(open("d", O_WRONLY));
	O(open("d", O_WRONLY | O_CREAT, 0644));
	O(open("d/", O_WRONLY | O_CREAT, 0644));
	O(open("f/", O_WRONLY));
	O(open("f/", O_WRONLY | O_CREAT, 0644));
	O(open("new/", O_WRONLY | O_CREAT, 0644));
	O(open("new/", O_WRONLY));
	O(open("d/.", O_WRONLY | O_CREAT, 0644));
	O(open("d/..", O_RDWR));
	O(open("d//x", O_WRONLY | O_CREAT, 0644));
	O(open("d/../d/./x", O_WRONLY));
	O(open("f/x", O_WRONLY | O_CREAT, 0644));
	O(open("missing/x", O_WRONLY | O_CREAT, 0644));
	O(open("missing", O_WRONLY));
	O(open((char *)1, O_WRONLY | O_CREAT, 0644));
	memset(longest, 'n', sizeof(longest));
	longest[NAME_MAX + 1] = '\0';
	O(open(longest, O_WRONLY | O_CREAT, 0644));
	longest[NAME_MAX] = '\0';
	O(open(longest, O_WRONLY | O_CREAT, 0644));
	memset(deep, '/', sizeof(deep));
	strcpy(deep + PATH_MAX - 3, "x");
	memcpy(deep, "d", 1);
	O(open(deep, O_WRONLY));
	memset(deep + 1, '/', PATH_MAX);
	deep[PATH_MAX + 1] = '\0';
	O(open(deep, O_WRONLY));
}

static void end_of_page(void)
{
	char *map = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	group = "memory";
	if (map == MAP_FAILED || munmap(map + 4096, 4096) < 0)
		abort();
	strcpy(map + 4096 - 2, "f");
	O(open(map + 4096 - 2, O_WRONLY));
	map[4095] = 'f'; /* no end before the hole */
	O(open(map + 4096 - 2, O_WRONLY));
	munmap(map, 4096);
}

static void links(void)
{
	group = "links";
	put("t", "target");
	symlink("t", "l");
	symlink("nowhere", "dangling");
	symlink("d/deep", "dangling2");
	symlink("loop2", "loop1");
	symlink("loop1", "loop2");
	symlink("d", "ld");
	symlink("missing/x", "lm");
	symlink(".", "dot");
	symlink("ld", "lld");
	O(open("l", O_WRONLY));
	O(open("l", O_WRONLY | O_NOFOLLOW));
	O(open("l", O_WRONLY | O_CREAT | O_EXCL, 0644));
	O(open("l", O_WRONLY | O_CREAT | O_TRUNC, 0644));
	O(open("dangling", O_WRONLY));
	O(open("dangling", O_WRONLY | O_CREAT | O_EXCL, 0644));
	O(open("dangling", O_WRONLY | O_CREAT, 0600));
	O(open("dangling2", O_WRONLY | O_CREAT, 0600));
	show("nowhere");
	show("d/deep");
	O(open("loop1", O_WRONLY | O_CREAT, 0600));
	O(open("loop1/x", O_WRONLY | O_CREAT, 0600));
	O(open("ld/via", O_WRONLY | O_CREAT, 0600));
	O(open("ld", O_WRONLY));
	O(open("ld/", O_WRONLY));
	O(open("lm", O_WRONLY | O_CREAT, 0600));
	O(open("dot", O_WRONLY | O_CREAT, 0600));
	O(open("dot/dot/dot/t", O_WRONLY));
	O(open("lld/via", O_WRONLY));
	T(mkdir("dangling2", 0755));
	T(mkdir("lm", 0755));
	T(truncate("l", 3));
	show("t");
}

static void rights(void)
{
	group = "rights";
	put("ro", "read only");
	chmod("ro", 0444);
	mkdir("rod", 0755);
	put("rod/in", "x");
	chmod("rod", 0555);
	mkdir("nox", 0755);
	put("nox/in", "x");
	chmod("nox", 0600);
	O(open("ro", O_WRONLY));
	O(open("ro", O_RDONLY | O_TRUNC));
	O(open("ro", O_WRONLY | O_CREAT, 0644));
	T(truncate("ro", 0));
	O(open("rod/new", O_WRONLY | O_CREAT, 0644));
	O(open("rod/in", O_WRONLY));
	T(mkdir("rod/d", 0755));
	T(symlink("x", "rod/l"));
	T(rename("rod/in", "out"));
	T(rename("f", "rod/f"));
	T(link("f", "rod/f"));
	O(open("nox/in", O_WRONLY));
	O(open("nox/new", O_WRONLY | O_CREAT, 0644));
	O(open("/etc/passwd", O_RDONLY));
	mkdir("sg", 0755);
	chmod("sg", 02775);
	O(open("sg/f", O_WRONLY | O_CREAT, 0664));
	T(mkdir("sg/d", 0755));
	show("sg/d");
	mkdir("st", 0755);
	chmod("st", 01777);
	O(open("st/f", O_WRONLY | O_CREAT, 0664));
	T(rename("st/f", "st/g"));
	T(mkdir("sbits", 07777));
	show("sbits");
	chmod("rod", 0755);
	chmod("nox", 0755);
}

static void unnamed(void)
{
	char path[64];
	int fd;

	group = "tmpfile";
	O(open(".", O_RDWR | O_TMPFILE, 0640));
	O(open("d", O_WRONLY | O_TMPFILE | O_CLOEXEC, 0600));
	O(open("f", O_WRONLY | O_TMPFILE, 0600));
	O(open("missing", O_WRONLY | O_TMPFILE, 0600));
	O(open(".", O_RDONLY | O_TMPFILE, 0600));
	fd = open(".", O_RDWR | O_TMPFILE, 0640);
	line("write %zd", write(fd, "unnamed", 7));
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	T(linkat(AT_FDCWD, path, AT_FDCWD, "f", AT_SYMLINK_FOLLOW));
	T(linkat(AT_FDCWD, path, AT_FDCWD, "named", AT_SYMLINK_FOLLOW));
	T(linkat(AT_FDCWD, path, AT_FDCWD, "named2", AT_SYMLINK_FOLLOW));
	show("named");
	close(fd);
	fd = open(".", O_RDWR | O_TMPFILE, 0640);
	T(linkat(fd, "", AT_FDCWD, "named3", AT_EMPTY_PATH));
	show("named3");
	T(linkat(fd, "", AT_FDCWD, "named4", 0));
	close(fd);
	fd = open(".", O_RDWR | O_TMPFILE | O_EXCL, 0640);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	T(linkat(AT_FDCWD, path, AT_FDCWD, "named5", AT_SYMLINK_FOLLOW));
	close(fd);
	T(linkat(99, "", AT_FDCWD, "named6", AT_EMPTY_PATH));
}

static void magic(void)
{
	int out = dup(1), fd, dir;
	char path[64];

	group = "magic";
	fflush(stdout);
	fd = open("stdout-file", O_RDWR | O_CREAT | O_TRUNC, 0644);
	dup2(fd, 1);
	fd = open("/dev/stdout", O_WRONLY | O_APPEND);
	if (fd >= 0)
		(void)!write(fd, "by /dev/stdout", 14);
	dup2(out, 1);
	line("/dev/stdout = %d", fd);
	close(fd);
	show("stdout-file");
	fd = open("t", O_RDONLY);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	O(open(path, O_WRONLY));
	O(open(path, O_RDWR | O_TRUNC));
	O(open(path, O_WRONLY | O_NOFOLLOW));
	O(open(path, O_WRONLY | O_CREAT | O_EXCL, 0600));
	O(open(path, O_WRONLY | O_CREAT, 0600));
	symlink(path, "to-magic");
	O(open("to-magic", O_WRONLY));
	snprintf(path, sizeof(path), "/dev/fd/%d", fd);
	O(open(path, O_WRONLY));
	unlink("t");
	O(open(path, O_WRONLY));
	close(fd);
	O(open("/proc/self/fd/77", O_WRONLY));
	O(open("/proc/self/cwd/viacwd", O_WRONLY | O_CREAT, 0600));
	O(open("/proc/thread-self/cwd/viacwd", O_WRONLY));
	dir = open("d", O_PATH | O_DIRECTORY);
	snprintf(path, sizeof(path), "/proc/self/fd/%d/viafd", dir);
	O(open(path, O_WRONLY | O_CREAT, 0600));
	show("d/viafd");
	O(openat(dir, "at", O_WRONLY | O_CREAT, 0600));
	O(openat(dir, "../f", O_WRONLY));
	O(openat(99, "x", O_WRONLY | O_CREAT, 0600));
	O(openat(99, "/dev/null", O_WRONLY));
	fd = open("f", O_RDONLY);
	O(openat(fd, "x", O_WRONLY | O_CREAT, 0600));
	close(fd);
	close(dir);
	close(out);
}

static void how(void)
{
	struct open_how odd = { .flags = O_WRONLY };
	int d = open("d", O_PATH | O_DIRECTORY | O_CLOEXEC);

	group = "openat2";
	symlink("d", "how-link");
	O(sys_open2(AT_FDCWD, "f", O_WRONLY, 0, 0));
	O(sys_open2(AT_FDCWD, "h1", O_WRONLY | O_CREAT, 0640, 0));
	O(sys_open2(AT_FDCWD, "f", O_WRONLY, 0600, 0));
	O(sys_open2(AT_FDCWD, "f", O_WRONLY | (1ull << 40), 0, 0));
	O(sys_open2(AT_FDCWD, "f", O_WRONLY, 0, 1ull << 20));
	O(sys_open2(AT_FDCWD, "how-link/x", O_WRONLY, 0, RESOLVE_NO_SYMLINKS));
	O(sys_open2(AT_FDCWD, "how-link/x", O_WRONLY, 0, RESOLVE_BENEATH));
	O(sys_open2(AT_FDCWD, "d/h2", O_WRONLY | O_CREAT, 0600, RESOLVE_BENEATH));
	O(sys_open2(AT_FDCWD, "../outside", O_WRONLY | O_CREAT, 0600, RESOLVE_BENEATH));
	O(sys_open2(AT_FDCWD, "l", O_WRONLY | O_CREAT, 0600, RESOLVE_NO_SYMLINKS));
	O(sys_open2(AT_FDCWD, "d/h3", O_WRONLY | O_CREAT, 0600, RESOLVE_NO_XDEV));
	O(sys_open2(AT_FDCWD, "d/h4", O_WRONLY | O_CREAT, 0600, RESOLVE_IN_ROOT));
	O(sys_open2(AT_FDCWD, "d/h4", O_WRONLY, 0, RESOLVE_NO_MAGICLINKS));
	/* the directory is the root: neither a slash nor ".." leads out of it; seen by the size */
	put("d/h5", "five!");
	put("d/h6", "sixsix");
	put("h6", "another");
	O(sys_open2(d, "/h5", O_WRONLY, 0, RESOLVE_IN_ROOT));
	O(sys_open2(d, "//../h6", O_WRONLY, 0, RESOLVE_IN_ROOT));
	O(sys_open2(d, "/new", O_WRONLY | O_CREAT, 0600, RESOLVE_IN_ROOT));
	O(sys_open2(d, "/", O_WRONLY | O_CREAT, 0600, RESOLVE_IN_ROOT));
	O(sys_open2(d, "/", O_WRONLY | O_TMPFILE, 0600, RESOLVE_IN_ROOT));
	O(sys_open2(d, "/h7", O_WRONLY | O_CREAT, 0600, RESOLVE_BENEATH));
	close(d);
	O(syscall(SYS_openat2, AT_FDCWD, "f", &odd, 8));
	O(syscall(SYS_openat2, AT_FDCWD, "f", (void *)1, sizeof(odd)));
	O(sys_open2(AT_FDCWD, "f", O_RDONLY, 0, RESOLVE_BENEATH));
}

/* What needs no look at where it lies: the answers are the kernel's all the same. */
static void nothing(void)
{
	group = "null";
	O(open("/dev/null", O_WRONLY | O_CREAT | O_TRUNC, 0666));
	O(open("/dev/null", O_RDWR | O_CLOEXEC));
	O(open("/dev/null", O_WRONLY | O_APPEND | O_NONBLOCK));
	O(open("/dev/null", O_WRONLY | O_CREAT | O_EXCL, 0644));
	O(open("/dev/null", O_WRONLY | O_DIRECTORY));
	O(open("/dev/null/", O_WRONLY));
	O(open("/dev/null/x", O_WRONLY | O_CREAT, 0644));
	O(open("/dev//null", O_WRONLY));
	O(open("/dev/nul", O_WRONLY));
	O(openat(99, "/dev/null", O_RDWR));
	T(mkdir("/dev/null", 0755));
}

void cases_open(void)
{
	flags();
	nothing();
	paths();
	end_of_page();
	links();
	rights();
	unnamed();
	how();
	magic();
}
