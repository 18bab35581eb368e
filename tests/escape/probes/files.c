/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading what is hidden and writing what is not ours: by other names of the same
 * object, by inherited descriptors, by handles, through devices and kernel files.
 * Keys: secret (absolute path of a hidden file), host (pid of a process outside),
 * outside (a directory that may be read but not written; it has a file for each
 * attempt), handle and handle-type (what name_to_handle_at said), ws.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include "probe.h"

#define PATH_SIZE 8192

static int read_below(const struct context *c, const char *prefix, char *detail, size_t size)
{
	char path[PATH_SIZE];

	snprintf(path, sizeof path, "%s%s", prefix, context_get(c, "secret"));
	return attempt_read(path, detail, size);
}

static int read_direct(const struct context *c, char *detail, size_t size)
{
	return read_below(c, "", detail, size);
}

static int read_self_root(const struct context *c, char *detail, size_t size)
{
	return read_below(c, "/proc/self/root", detail, size);
}

static int read_thread_root(const struct context *c, char *detail, size_t size)
{
	return read_below(c, "/proc/thread-self/root", detail, size);
}

static int read_init_root(const struct context *c, char *detail, size_t size)
{
	return read_below(c, "/proc/1/root", detail, size);
}

static int read_host_root(const struct context *c, char *detail, size_t size)
{
	char prefix[64];

	snprintf(prefix, sizeof prefix, "/proc/%d/root", context_int(c, "host"));
	return read_below(c, prefix, detail, size);
}

static int read_cwd_climb(const struct context *c, char *detail, size_t size)
{
	return read_below(c, "/proc/self/cwd/../../../../../../../..", detail, size);
}

/* Climbing above "/" with a directory opened before: the chroot escape of old. */
static int read_dotdot(const struct context *c, char *detail, size_t size)
{
	int fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	char path[PATH_SIZE];

	if (fd < 0)
		return -errno;
	for (int i = 0; i < 32; i++) {
		int up = openat(fd, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);

		if (up < 0)
			return -errno;
		close(fd);
		fd = up;
	}
	snprintf(path, sizeof path, "/proc/self/fd/%d%s", fd, context_get(c, "secret"));
	return attempt_read(path, detail, size);
}

static int read_symlink(const struct context *c, char *detail, size_t size)
{
	char path[PATH_SIZE];
	int rc;

	snprintf(path, sizeof path, "%s/link-%d", context_get(c, "ws"), getpid());
	if (symlink(context_get(c, "secret"), path) < 0)
		return -errno;
	rc = attempt_read(path, detail, size);
	unlink(path);
	return rc;
}

static int read_hardlink(const struct context *c, char *detail, size_t size)
{
	char path[PATH_SIZE];
	int rc;

	snprintf(path, sizeof path, "%s/hard-%d", context_get(c, "ws"), getpid());
	if (link(context_get(c, "secret"), path) < 0)
		return -errno;
	rc = attempt_read(path, detail, size);
	unlink(path);
	return rc;
}

static int read_stat(const struct context *c, char *detail, size_t size)
{
	struct stat st;

	if (stat(context_get(c, "secret"), &st) < 0)
		return -errno;
	snprintf(detail, size, "size %lld", (long long)st.st_size);
	return st.st_size == context_int(c, "secret-size") ? 0 : -ENODATA;
}

static int read_handle(const struct context *c, char *detail, size_t size)
{
	const char *hex = context_get(c, "handle");
	struct {
		struct file_handle head;
		unsigned char bytes[MAX_HANDLE_SZ];
	} h = { .head = { .handle_type = context_int(c, "handle-type") } };
	int mount, fd;

	for (; hex[0] && hex[1]; hex += 2) {
		char two[3] = { hex[0], hex[1], 0 };

		h.head.f_handle[h.head.handle_bytes++] = (unsigned char)strtoul(two, NULL, 16);
	}
	mount = open(context_get(c, "ws"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (mount < 0)
		return -errno;
	fd = open_by_handle_at(mount, &h.head, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	return attempt_read_fd(fd, detail, size);
}

/* Descriptors of the caller: a secret on 9, a directory (the home) on 20. */
static int fd_file(const struct context *c, char *detail, size_t size)
{
	(void)c;
	return attempt_read_fd(9, detail, size);
}

static int fd_file_proc(const struct context *c, char *detail, size_t size)
{
	(void)c;
	return attempt_read("/proc/self/fd/9", detail, size);
}

static int fd_dir_at(int dir, const struct context *c, const char *climb, char *detail, size_t size)
{
	char path[PATH_SIZE];
	int fd;

	snprintf(path, sizeof path, "%s%s", climb, context_get(c, "secret-in-home"));
	fd = openat(dir, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	return attempt_read_fd(fd, detail, size);
}

static int fd_dir(const struct context *c, char *detail, size_t size)
{
	return fd_dir_at(20, c, "", detail, size);
}

static int fd_dir_climb(const struct context *c, char *detail, size_t size)
{
	char climb[PATH_SIZE];

	snprintf(climb, sizeof climb, "../%s/", context_get(c, "home-name"));
	return fd_dir_at(20, c, climb, detail, size);
}

static int fd_dir_write(const struct context *c, char *detail, size_t size)
{
	int fd = openat(20, "fd-dir-write", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

	(void)c, (void)detail, (void)size;
	return fd < 0 ? -errno : 0;
}

/* Standard input is a directory of the host: a way round every mount of the sandbox. */
static int stdin_dir(const struct context *c, char *detail, size_t size)
{
	return fd_dir_at(0, c, "", detail, size);
}

static int stdin_dir_write(const struct context *c, char *detail, size_t size)
{
	int fd = openat(0, "stdin-dir-write", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

	(void)c, (void)detail, (void)size;
	return fd < 0 ? -errno : 0;
}

static int stdin_dir_chdir(const struct context *c, char *detail, size_t size)
{
	if (fchdir(0) < 0)
		return -errno;
	return attempt_read(context_get(c, "secret-in-home"), detail, size);
}

/* Standard input is a file opened for reading: open it again for writing. */
static int stdin_reopen(const struct context *c, char *detail, size_t size)
{
	int fd = open("/proc/self/fd/0", O_WRONLY | O_CLOEXEC);

	(void)c, (void)detail, (void)size;
	if (fd < 0)
		return -errno;
	return write(fd, "EVIL", 4) == 4 ? 0 : -errno;
}

static int stdin_truncate(const struct context *c, char *detail, size_t size)
{
	(void)c, (void)detail, (void)size;
	return truncate("/proc/self/fd/0", 0) < 0 ? -errno : 0;
}

static int stdin_chmod(const struct context *c, char *detail, size_t size)
{
	(void)c, (void)detail, (void)size;
	return fchmod(0, 0777) < 0 ? -errno : 0;
}

static int stdin_chmod_path(const struct context *c, char *detail, size_t size)
{
	(void)c, (void)detail, (void)size;
	return chmod("/proc/self/fd/0", 0777) < 0 ? -errno : 0;
}

static int stdin_chmod_dev(const struct context *c, char *detail, size_t size)
{
	(void)c, (void)detail, (void)size;
	return chmod("/dev/stdin", 0777) < 0 ? -errno : 0;
}

static int stdin_chmod_empty(const struct context *c, char *detail, size_t size)
{
	(void)c, (void)detail, (void)size;
	return syscall(452 /* fchmodat2 */, 0, "", 0777, AT_EMPTY_PATH) < 0 ? -errno : 0;
}

static int stdin_xattr_path(const struct context *c, char *detail, size_t size)
{
	(void)c, (void)detail, (void)size;
	return setxattr("/proc/self/fd/0", "user.evil", "1", 1, 0) < 0 ? -errno : 0;
}

/* By the clock: on one processor the other thread may be long in coming. */
#define RACE_MS 1000

static int64_t now_ms(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static volatile char flipping[32] = "/proc/self/fd/0";
static volatile int flipping_ends;

static void *flip_path(void *arg)
{
	for (unsigned i = 0; !flipping_ends; i++) {
		flipping[14] = i % 2 ? '0' : '1'; /* 1 is a pipe */
		for (volatile int k = 0; k < 100; k++)
			;
	}
	return arg;
}

/* The path says another descriptor when it is looked at than when it is followed. */
static int stdin_chmod_race(const struct context *c, char *detail, size_t size)
{
	struct stat st;
	pthread_t thread;

	(void)c, (void)detail, (void)size;
	if (pthread_create(&thread, NULL, flip_path, NULL) != 0)
		return -EAGAIN;
	for (int64_t end = now_ms() + RACE_MS; now_ms() < end;) {
		(void)chmod((const char *)(uintptr_t)flipping, 0777);
		if (fstat(0, &st) == 0 && (st.st_mode & 0777) == 0777)
			break;
	}
	flipping_ends = 1;
	(void)pthread_join(thread, NULL);
	return fstat(0, &st) == 0 && (st.st_mode & 0777) == 0777 ? 0 : -EACCES;
}

/* An own file whose mode may be changed, in the working directory. */
static int open_own(void)
{
	int fd = open("own", O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	if (fd >= 0 && (fchmod(fd, 0640) < 0 || fchmod(fd, 0600) < 0)) {
		(void)close(fd);
		return -1;
	}
	return fd;
}

/* Whoever decided that own files may be changed decides about this one next. */
static int stdin_chmod_after(const struct context *c, char *detail, size_t size)
{
	int own = open_own(), copy = dup(0), r;

	(void)c, (void)detail, (void)size;
	if (own < 0 || copy < 0)
		return -errno;
	r = fchmod(copy, 0777) < 0 ? -errno : 0;
	if (r < 0 && dup2(0, own) == own)
		r = fchmod(own, 0777) < 0 ? -errno : 0;
	return r;
}

static struct {
	int own, number;
} swapped;

static void *swap_descriptor(void *arg)
{
	for (unsigned i = 0; !flipping_ends; i++) {
		(void)dup2(i % 2 ? 0 : swapped.own, swapped.number);
		for (volatile int k = 0; k < 100; k++)
			;
	}
	return arg;
}

/* The number means the own file when it is looked at, and this one when it is changed. */
static int stdin_chmod_swap(const struct context *c, char *detail, size_t size)
{
	struct stat st;
	pthread_t thread;

	(void)c, (void)detail, (void)size;
	swapped.own = open_own();
	swapped.number = dup(swapped.own);
	if (swapped.number < 0 || pthread_create(&thread, NULL, swap_descriptor, NULL) != 0)
		return -EAGAIN;
	for (int64_t end = now_ms() + RACE_MS; now_ms() < end;) {
		(void)fchmod(swapped.number, 0777);
		if (fstat(0, &st) == 0 && (st.st_mode & 0777) == 0777)
			break;
	}
	flipping_ends = 1;
	(void)pthread_join(thread, NULL);
	return fstat(0, &st) == 0 && (st.st_mode & 0777) == 0777 ? 0 : -EACCES;
}

static int fd_count(const struct context *c, char *detail, size_t size)
{
	DIR *d = opendir("/proc/self/fd");
	int more = 0;

	(void)c;
	if (!d)
		return -errno;
	for (struct dirent *e; (e = readdir(d));) {
		int fd = (int)strtol(e->d_name, NULL, 10);
		char link[64];

		/* our own: the directory and the pipe of main.c (close on exec) */
		if (e->d_name[0] == '.' || fd <= 2 || (fcntl(fd, F_GETFD) & FD_CLOEXEC))
			continue;
		snprintf(link, sizeof link, "%d ", fd);
		strncat(detail, link, size - strlen(detail) - 1);
		more++;
	}
	closedir(d);
	return more ? 0 : -EBADF;
}

/* The file of this attempt in a directory that may be read but not written. */
static const char *outside(const struct context *c, const char *name, char *path)
{
	snprintf(path, PATH_SIZE, "%s/%s", context_get(c, "outside"), name);
	return path;
}

static int write_evil(const char *path)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC), rc;

	if (fd < 0)
		return -errno;
	rc = write(fd, "EVIL", 4) == 4 ? 0 : -errno;
	close(fd);
	return rc;
}

static int write_outside(const struct context *c, char *detail, size_t size)
{
	char path[PATH_SIZE];

	(void)detail, (void)size;
	return write_evil(outside(c, "write-outside", path));
}

static int write_reopen(const struct context *c, char *detail, size_t size)
{
	char path[PATH_SIZE];
	int fd = open(outside(c, "write-reopen", path), O_RDONLY | O_CLOEXEC);

	(void)detail, (void)size;
	if (fd < 0)
		return -errno;
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	return write_evil(path);
}

static int write_truncate(const struct context *c, char *detail, size_t size)
{
	char path[PATH_SIZE];

	(void)detail, (void)size;
	return truncate(outside(c, "write-truncate", path), 0) < 0 ? -errno : 0;
}

static int write_chmod(const struct context *c, char *detail, size_t size)
{
	char path[PATH_SIZE];

	(void)detail, (void)size;
	return chmod(outside(c, "write-chmod", path), 0777) < 0 ? -errno : 0;
}

/* A descriptor opened for reading is enough for fchmod: only the mount can refuse. */
static int write_fchmod(const struct context *c, char *detail, size_t size)
{
	char path[PATH_SIZE];
	int fd = open(outside(c, "write-fchmod", path), O_RDONLY | O_CLOEXEC);

	(void)detail, (void)size;
	if (fd < 0)
		return -errno;
	return fchmod(fd, 0777) < 0 ? -errno : 0;
}

static int write_utimes(const struct context *c, char *detail, size_t size)
{
	const struct timespec times[2] = { { 1, 0 }, { 1, 0 } };
	char path[PATH_SIZE];

	(void)detail, (void)size;
	return utimensat(AT_FDCWD, outside(c, "write-utimes", path), times, 0) < 0 ? -errno : 0;
}

static int write_xattr(const struct context *c, char *detail, size_t size)
{
	char path[PATH_SIZE];

	(void)detail, (void)size;
	return setxattr(outside(c, "write-xattr", path), "user.evil", "1", 1, 0) < 0 ? -errno : 0;
}

static int write_unlink(const struct context *c, char *detail, size_t size)
{
	char path[PATH_SIZE];

	(void)detail, (void)size;
	return unlink(outside(c, "write-unlink", path)) < 0 ? -errno : 0;
}

static int write_create(const struct context *c, char *detail, size_t size)
{
	char path[PATH_SIZE];
	int fd = open(outside(c, "write-created", path), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

	(void)detail, (void)size;
	return fd < 0 ? -errno : 0;
}

/* A second name in the project for a file outside, then write through it. */
static int write_hardlink(const struct context *c, char *detail, size_t size)
{
	char path[PATH_SIZE], name[PATH_SIZE];

	(void)detail, (void)size;
	snprintf(name, sizeof name, "%s/hard-out-%d", context_get(c, "ws"), getpid());
	if (link(outside(c, "write-hardlink", path), name) < 0)
		return -errno;
	return write_evil(name);
}

static int write_symlink(const struct context *c, char *detail, size_t size)
{
	char path[PATH_SIZE], name[PATH_SIZE];

	(void)detail, (void)size;
	snprintf(name, sizeof name, "%s/soft-out-%d", context_get(c, "ws"), getpid());
	if (symlink(outside(c, "write-symlink", path), name) < 0)
		return -errno;
	return write_evil(name);
}

/* Set-user-ID bits on a file that stays on the host. */
static int suid_bit(const struct context *c, char *detail, size_t size, mode_t mode)
{
	char path[PATH_SIZE];
	struct stat st;
	int rc = 0;

	(void)detail, (void)size;
	snprintf(path, sizeof path, "%s/%s", context_get(c, "ws"),
		 mode & S_ISUID ? "suid-chmod" : "sgid-chmod");
	close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0755));
	if (chmod(path, mode) < 0)
		rc = -errno;
	else if (stat(path, &st) < 0 || !(st.st_mode & (S_ISUID | S_ISGID)))
		rc = -EPERM;
	return rc;
}

static int suid_chmod(const struct context *c, char *detail, size_t size)
{
	return suid_bit(c, detail, size, 04755);
}

static int sgid_chmod(const struct context *c, char *detail, size_t size)
{
	return suid_bit(c, detail, size, 02755);
}

static int suid_create(const struct context *c, char *detail, size_t size)
{
	char path[PATH_SIZE];
	struct stat st;
	int fd;

	(void)detail, (void)size;
	snprintf(path, sizeof path, "%s/suid-create", context_get(c, "ws"));
	umask(0);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 04755);
	if (fd < 0)
		return -errno;
	return !fstat(fd, &st) && (st.st_mode & S_ISUID) ? 0 : -EPERM;
}

static int suid_node(const struct context *c, char *detail, size_t size)
{
	char path[PATH_SIZE];
	struct stat st;

	(void)detail, (void)size;
	snprintf(path, sizeof path, "%s/suid-node", context_get(c, "ws"));
	umask(0);
	if (mknod(path, S_IFREG | 06755, 0) < 0)
		return -errno;
	return !stat(path, &st) && (st.st_mode & (S_ISUID | S_ISGID)) ? 0 : -EPERM;
}

static int make_node(const struct context *c, const char *name, mode_t type, dev_t dev)
{
	char path[PATH_SIZE];

	snprintf(path, sizeof path, "%s/%s", context_get(c, "ws"), name);
	return mknod(path, type | 0666, dev) < 0 ? -errno : 0;
}

static int node_char(const struct context *c, char *detail, size_t size)
{
	(void)detail, (void)size;
	return make_node(c, "node-char", S_IFCHR, makedev(1, 11));
}

static int node_block(const struct context *c, char *detail, size_t size)
{
	(void)detail, (void)size;
	return make_node(c, "node-block", S_IFBLK, makedev(7, 0));
}

/* A device node that stands in the project already: the mount must be nodev. */
static int node_open(const struct context *c, char *detail, size_t size)
{
	(void)detail, (void)size;
	int fd = open(context_get(c, "node"), O_RDONLY | O_NONBLOCK | O_CLOEXEC);

	return fd < 0 ? -errno : 0;
}

static const struct probe table[] = {
	{ "read-direct", read_direct },
	{ "read-self-root", read_self_root },
	{ "read-thread-root", read_thread_root },
	{ "read-init-root", read_init_root },
	{ "read-host-root", read_host_root },
	{ "read-cwd-climb", read_cwd_climb },
	{ "read-dotdot", read_dotdot },
	{ "read-symlink", read_symlink },
	{ "read-hardlink", read_hardlink },
	{ "read-stat", read_stat },
	{ "read-handle", read_handle },
	{ "fd-file", fd_file },
	{ "fd-file-proc", fd_file_proc },
	{ "fd-dir", fd_dir },
	{ "fd-dir-climb", fd_dir_climb },
	{ "fd-dir-write", fd_dir_write },
	{ "fd-count", fd_count },
	{ "stdin-dir", stdin_dir },
	{ "stdin-dir-write", stdin_dir_write },
	{ "stdin-dir-chdir", stdin_dir_chdir },
	{ "stdin-reopen", stdin_reopen },
	{ "stdin-truncate", stdin_truncate },
	{ "stdin-chmod", stdin_chmod },
	{ "stdin-chmod-path", stdin_chmod_path },
	{ "stdin-chmod-dev", stdin_chmod_dev },
	{ "stdin-chmod-empty", stdin_chmod_empty },
	{ "stdin-xattr-path", stdin_xattr_path },
	{ "stdin-chmod-race", stdin_chmod_race },
	{ "stdin-chmod-after", stdin_chmod_after },
	{ "stdin-chmod-swap", stdin_chmod_swap },
	{ "write-outside", write_outside },
	{ "write-reopen", write_reopen },
	{ "write-truncate", write_truncate },
	{ "write-chmod", write_chmod },
	{ "write-fchmod", write_fchmod },
	{ "write-utimes", write_utimes },
	{ "write-xattr", write_xattr },
	{ "write-unlink", write_unlink },
	{ "write-create", write_create },
	{ "write-hardlink", write_hardlink },
	{ "write-symlink", write_symlink },
	{ "suid-chmod", suid_chmod },
	{ "sgid-chmod", sgid_chmod },
	{ "suid-create", suid_create },
	{ "suid-node", suid_node },
	{ "node-char", node_char },
	{ "node-block", node_block },
	{ "node-open", node_open },
};

const struct probe_table file_probes = { table, sizeof table / sizeof table[0] };
