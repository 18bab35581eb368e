/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the broker does must look as if the kernel had done it. This program does some
 * hundred and eighty small things in a directory and tells each outcome; it is run
 * with and without the sandbox and the two lists are compared (test_semantics.py).
 *
 *   semantics DIRECTORY [EXEC-ONLY-PROGRAM]
 */
#include "cases.h"

const char *group = "";
static int number;

void line(const char *format, ...)
{
	va_list args;

	printf("%03d %s: ", ++number, group);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	putchar('\n');
	fflush(stdout);
}

void result(const char *text, long r)
{
	int e = errno;

	if (r < 0)
		line("%s = %s", text, strerrorname_np(e));
	else
		line("%s = %ld", text, r);
}

void opened(const char *text, int fd)
{
	int e = errno;
	char more[128] = "";

	if (fd >= 0) {
		struct stat st;

		if (fstat(fd, &st) < 0)
			abort();
		snprintf(more, sizeof(more), " fl=%o fd=%d mode=%o size=%ld", fcntl(fd, F_GETFL),
			 fcntl(fd, F_GETFD), st.st_mode, (long)st.st_size);
		line("%s = %d%s", text, fd, more);
		close(fd);
	} else {
		line("%s = %s", text, strerrorname_np(e));
	}
}

void show(const char *path)
{
	struct stat st;
	char text[256] = "";
	int fd;

	if (lstat(path, &st) < 0) {
		line("%s: %s", path, strerrorname_np(errno));
		return;
	}
	if (S_ISLNK(st.st_mode)) {
		if (readlink(path, text, sizeof(text) - 1) < 0)
			abort();
	} else if (S_ISREG(st.st_mode)) {
		fd = open(path, O_RDONLY);
		if (fd < 0 || read(fd, text, sizeof(text) - 1) < 0)
			snprintf(text, sizeof(text), "(%s)", strerrorname_np(errno));
		close(fd);
	}
	line("%s: mode=%o links=%lu size=%ld own=%d text=%s", path, st.st_mode,
	     S_ISDIR(st.st_mode) ? 0ul : (unsigned long)st.st_nlink,
	     S_ISDIR(st.st_mode) ? 0l : (long)st.st_size, st.st_uid == geteuid(), text);
}

void put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);

	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text)) {
		printf("cannot write %s: %s\n", path, strerrorname_np(errno));
		exit(2);
	}
	close(fd);
}

int sys_rename(const char *from, const char *to, unsigned flags)
{
	return (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, flags);
}

long sys_open2(int dirfd, const char *path, uint64_t flags, uint64_t mode, uint64_t resolve)
{
	struct open_how how = { .flags = flags, .mode = mode, .resolve = resolve };

	return syscall(SYS_openat2, dirfd, path, &how, sizeof(how));
}

/* Root outside has rights that root inside has not: compare without them. */
static void drop_capabilities(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[2] = { 0 };

	if (syscall(SYS_capset, &header, none) < 0)
		abort();
}

static void run_exec_only(const char *program)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		execl(program, program, "written-by-exec-only", (char *)NULL);
		_exit(99);
	}
	waitpid(pid, &status, 0);
	line("status %d", WEXITSTATUS(status));
	show("written-by-exec-only");
}

int main(int argc, char **argv)
{
	if (argc > 1 && strstr(argv[0], "exec-only")) {
		/* the second role: a program its user may run but not read */
		int fd = open(argv[1], O_WRONLY | O_CREAT | O_EXCL, 0640);

		return fd >= 0 && write(fd, "x\n", 2) == 2 ? 0 : errno;
	}
	if (argc < 2 || chdir(argv[1]) < 0)
		return 2;
	alarm(60);
	umask(022);
	drop_capabilities();
	cases_open();
	cases_names();
	cases_state();
	cases_change();
	if (argc > 2) {
		group = "exec-only";
		run_exec_only(argv[2]);
	}
	return 0;
}
