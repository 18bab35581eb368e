/* SPDX-License-Identifier: Apache-2.0 */
#include "cases.h"

static void directories(void)
{
	int dir;

	group = "mkdir";
	T(mkdir("m", 0750));
	show("m");
	T(mkdir("m", 0750));
	T(mkdir("m/", 0750));
	T(mkdir("m/new/", 0711));
	show("m/new");
	T(mkdir("missing/x", 0750));
	T(mkdir("f/x", 0750));
	T(mkdir("f", 0750));
	T(mkdir(".", 0750));
	T(mkdir("..", 0750));
	T(mkdir("/", 0750));
	T(mkdir("", 0750));
	T(mkdir("m/.", 0750));
	T(mkdir((char *)8, 0750));
	T(mkdir("l", 0750));
	dir = open("m", O_RDONLY | O_DIRECTORY);
	T(mkdirat(dir, "at", 0777));
	T(mkdirat(dir, "../m/at2", 0777));
	T(mkdirat(98, "x", 0777));
	T(mkdirat(98, "/", 0777));
	show("m/at");
	close(dir);
}

static void nodes(void)
{
	group = "mknod";
	T(mknod("fifo", S_IFIFO | 0640, 0));
	show("fifo");
	T(mknod("fifo", S_IFIFO | 0640, 0));
	T(mknod("reg", S_IFREG | 0600, 0));
	T(mknod("reg0", 0604, 0));
	show("reg");
	show("reg0");
	T(mknod("sock", S_IFSOCK | 0600, 0));
	show("sock");
	T(mknod("dev", S_IFBLK | 0600, makedev(7, 0)));
	T(mknod("dir", S_IFDIR | 0600, 0));
	T(mknod("lnk", S_IFLNK | 0600, 0));
	T(mknod("fifo2/", S_IFIFO | 0640, 0));
	T(mknod("missing/x", S_IFIFO | 0640, 0));
	T(mknodat(AT_FDCWD, "m/fifo", S_IFIFO | 0666, 0));
	T(mknodat(97, "x", S_IFIFO | 0666, 0));
	O(open("fifo", O_WRONLY | O_NONBLOCK));
	O(open("fifo", O_RDWR));
	O(open("sock", O_WRONLY));
	O(open("sock", O_RDWR | O_NONBLOCK));
	T(truncate("fifo", 0));
	T(truncate("m", 0));
	T(truncate("missing", 0));
	T(truncate("f", -1));
	T(truncate("f", 10));
	T(truncate("f/", 10));
	T(truncate("", 0));
	T(truncate((char *)8, 0));
	show("f");
}

static void symlinks(void)
{
	char big[PATH_MAX + 2];

	group = "symlink";
	memset(big, 'a', sizeof(big));
	big[PATH_MAX + 1] = '\0';
	T(symlink("anything at all", "s1"));
	show("s1");
	T(symlink("x", "s1"));
	T(symlink("", "s2"));
	T(symlink("x", ""));
	T(symlink("x", "s3/"));
	T(symlink("x", "missing/s"));
	T(symlink("x", "."));
	T(symlink((char *)8, "s4"));
	T(symlink("x", (char *)8));
	T(symlink(big, "s5"));
	T(symlinkat("x", AT_FDCWD, "m/s6"));
	T(symlinkat("x", 96, "s7"));
	T(symlink("x", "m"));
}

static void hard_links(void)
{
	int fd;

	group = "link";
	put("h", "hard");
	symlink("h", "hl");
	T(link("h", "h2"));
	show("h");
	T(link("h", "h2"));
	T(link("missing", "h3"));
	T(link("m", "h3"));
	T(link("h/", "h3"));
	T(link("h", "h3/"));
	T(link("h", "missing/h3"));
	T(link("hl", "hl2"));
	show("hl2");
	T(linkat(AT_FDCWD, "hl", AT_FDCWD, "h4", AT_SYMLINK_FOLLOW));
	show("h4");
	T(linkat(AT_FDCWD, "dangling3", AT_FDCWD, "h5", AT_SYMLINK_FOLLOW));
	T(linkat(AT_FDCWD, "h", AT_FDCWD, "h6", 0x8000));
	T(linkat(95, "h", AT_FDCWD, "h6", 0));
	T(linkat(AT_FDCWD, "h", 95, "h6", 0));
	T(link("", "h7"));
	T(link((char *)8, "h7"));
	T(link("h", (char *)8));
	T(link("h", "."));
	fd = open("h", O_RDWR);
	T(linkat(AT_FDCWD, "/proc/self/fd/3", AT_FDCWD, "h8", AT_SYMLINK_FOLLOW));
	close(fd);
	show("h8");
	T(link("/dev/null", "h9"));
}

static void renames(void)
{
	group = "rename";
	put("r1", "one");
	put("r2", "two");
	T(rename("r1", "r3"));
	T(rename("r1", "r3"));
	T(rename("r3", "r2"));
	show("r2");
	T(rename("r2", "r2"));
	put("r1", "one");
	T(sys_rename("r1", "r2", RENAME_NOREPLACE));
	T(sys_rename("r1", "rn", RENAME_NOREPLACE));
	T(sys_rename("rn", "r2", RENAME_EXCHANGE));
	show("rn");
	show("r2");
	T(sys_rename("rn", "missing", RENAME_EXCHANGE));
	T(sys_rename("rn", "r2", RENAME_EXCHANGE | RENAME_NOREPLACE));
	T(sys_rename("rn", "r2", 64));
	T(sys_rename("rn", "rw", RENAME_WHITEOUT));
	mkdir("e1", 0755);
	mkdir("e2", 0755);
	mkdir("full", 0755);
	put("full/x", "x");
	T(rename("full", "e1"));
	show("e1/x");
	T(rename("e1", "m"));
	T(rename("e2", "e1"));
	T(rename("e2", "f"));
	T(rename("f", "e2"));
	T(rename("e2/", "e3/"));
	T(rename("f/", "g"));
	T(rename("f", "g/"));
	T(rename("e3", "e3/in"));
	T(rename("e3", "missing/e3"));
	T(rename(".", "e4"));
	T(rename("e3", "."));
	T(rename("..", "e4"));
	T(rename("", "e4"));
	T(rename("f", ""));
	T(rename((char *)8, "e4"));
	T(rename("f", (char *)8));
	T(rename("hl", "hl3"));
	show("hl3");
	T(sys_rename("e3", "hl3", RENAME_EXCHANGE));
	show("hl3");
	T(sys_rename("hl3", "e3", RENAME_EXCHANGE));
	T(renameat(AT_FDCWD, "f", AT_FDCWD, "f1"));
	T(renameat(94, "f", AT_FDCWD, "f1"));
	T(rename("f1", "f"));
	put("h-a", "same");
	link("h-a", "h-b");
	T(rename("h-a", "h-b"));
	show("h-a");
}

static int try_bind(const char *path, size_t len)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0), r;

	strncpy(a.sun_path, path, sizeof(a.sun_path) - 1);
	r = bind(fd, (struct sockaddr *)&a, (socklen_t)len);
	if (r == 0 && listen(fd, 1) == 0) {
		int peer = socket(AF_UNIX, SOCK_STREAM, 0);

		r = connect(peer, (struct sockaddr *)&a, (socklen_t)len);
		close(peer);
	}
	close(fd);
	return r;
}

static void sockets(void)
{
	const size_t all = sizeof(struct sockaddr_un),
		     head = offsetof(struct sockaddr_un, sun_path);
	struct sockaddr_un a = { .sun_family = AF_UNIX }, b = { 0 };
	socklen_t len = sizeof(b);
	char absolute[PATH_MAX];
	int fd;

	group = "bind";
	T(try_bind("b1", all));
	show("b1");
	T(try_bind("b1", all));
	T(try_bind("b2", head + 3));
	T(try_bind("m/b3", all));
	T(try_bind("missing/b", all));
	T(try_bind("m", all));
	T(try_bind("", all));
	T(try_bind("b4/", all));
	if (!getcwd(absolute, sizeof(absolute)))
		abort();
	strcat(absolute, "/b5");
	T(try_bind(absolute, all));
	umask(077);
	T(try_bind("b6", all));
	show("b6");
	umask(022);
	strcpy(a.sun_path, "b7");
	T(bind(93, (struct sockaddr *)&a, sizeof(a)));
	T(bind(0, (struct sockaddr *)&a, sizeof(a)));
	fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
	T(bind(fd, (struct sockaddr *)8, sizeof(a)));
	T(bind(fd, (struct sockaddr *)&a, sizeof(a)));
	getsockname(fd, (struct sockaddr *)&b, &len);
	line("getsockname %s", b.sun_path);
	T(bind(fd, (struct sockaddr *)&a, sizeof(a)));
	close(fd);
}

/* The same directory again and again, and then it is another one. */
static void same_directory(void)
{
	const int make = O_CREAT | O_EXCL | O_WRONLY;
	int dir, other, top = open(".", O_RDONLY | O_DIRECTORY);

	group = "again";
	T(mkdir("ag", 0755));
	T(mkdir("ag/a", 0755));
	O(open("ag/a/1", make, 0600));
	T(rename("ag/a", "ag/b"));
	T(mkdir("ag/a", 0755));
	O(open("ag/a/2", make, 0600));
	show("ag/a/2");
	show("ag/b/2");
	T(rename("ag/a", "ag/c"));
	T(symlink("b", "ag/a"));
	O(open("ag/a/3", make, 0600));
	show("ag/b/3");
	show("ag/c/3");
	T(mkdir("ag/x", 0755));
	T(mkdir("ag/x/y", 0755));
	O(open("ag/x/y/4", make, 0600));
	T(rename("ag/x", "ag/z"));
	O(open("ag/x/y/5", make, 0600));
	T(mkdir("ag/x", 0755));
	T(mkdir("ag/x/y", 0755));
	O(open("ag/x/y/6", make, 0600));
	T(sys_rename("ag/x", "ag/z", RENAME_EXCHANGE));
	O(open("ag/x/y/7", make, 0600));
	show("ag/x/y/7");
	show("ag/z/y/7");
	T(mkdir("ag/r", 0755));
	O(open("ag/r/1", make, 0600));
	T(unlink("ag/r/1"));
	T(rmdir("ag/r"));
	O(open("ag/r/2", make, 0600));
	T(chdir("ag/b"));
	O(open("8", make, 0600));
	T(chdir("../c"));
	O(open("8", make, 0600));
	O(open("../b/9", make, 0600));
	O(open("./9", make, 0600));
	O(open("..//c/10", make, 0600));
	T(fchdir(top));
	show("ag/b/9");
	show("ag/c/9");
	show("ag/c/10");
	dir = open("ag/b", O_RDONLY | O_DIRECTORY);
	other = open("ag/c", O_RDONLY | O_DIRECTORY);
	O(openat(dir, "11", make, 0600));
	T(dup2(other, dir) == dir);
	O(openat(dir, "11", make, 0600));
	show("ag/c/11");
	T(renameat(dir, "11", dir, "12"));
	T(renameat(other, "12", AT_FDCWD, "ag/b/12"));
	(void)close(dir);
	(void)close(other);
	/* the kernel calls the working directory so when it is gone */
	T(mkdir("ag/g", 0755));
	T(mkdir("ag/g (deleted)", 0755));
	T(chdir("ag/g"));
	T(rmdir("../g"));
	T(mkdirat(top, "ag/g (deleted)/1", 0755));
	O(open("2", make, 0600));
	T(fchdir(top));
	show("ag/g (deleted)/2");
	(void)close(top);
}

/* ... and then the way there is closed. */
static void closed_directory(void)
{
	const int make = O_CREAT | O_EXCL | O_WRONLY;
	int dir;

	group = "closed";
	T(mkdir("cl", 0755));
	T(mkdir("cl/n", 0755));
	dir = open("cl", O_RDONLY | O_DIRECTORY);
	O(open("cl/n/1", make, 0600));
	T(chmod("cl", 0));
	O(open("cl/n/2", make, 0600));
	T(fchmod(dir, 0700));
	O(open("cl/n/3", make, 0600));
	T(fchmod(dir, 0600));
	O(open("cl/n/4", make, 0600));
	T(fchmod(dir, 0700));
	O(open("cl/n/5", make, 0600));
	T(chmod("cl/n", 0600));
	O(open("cl/n/6", make, 0600));
	T(chmod("cl/n", 0700));
	(void)close(dir);
}

void cases_names(void)
{
	directories();
	nodes();
	symlinks();
	hard_links();
	renames();
	sockets();
	same_directory();
	closed_directory();
}
