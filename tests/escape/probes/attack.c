/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every way to change what a name means: the file's bytes, its attributes, the name
 * itself, and the directory above it. Used on files that must stay as they are
 * although they lie in a writable directory. What an operation needs besides is made in
 * a scratch directory on the same file system.
 */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <linux/fs.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "attack.h"

#define EVIL "evil\n"

struct target {
	const char *path;
	char dir[4096]; /* the directory the file is in */
	char scratch[4096]; /* a free name in the scratch directory */
};

static int put(const char *path, int flags)
{
	int fd = open(path, flags | O_CLOEXEC, 0755);
	int rc = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, EVIL, strlen(EVIL)) < 0)
		rc = -errno;
	close(fd);
	return rc;
}

static int result(int rc)
{
	return rc < 0 ? -errno : 0;
}

static int op_write(const struct target *t)
{
	return put(t->path, O_WRONLY);
}

static int op_append(const struct target *t)
{
	return put(t->path, O_WRONLY | O_APPEND);
}

static int op_trunc_open(const struct target *t)
{
	return put(t->path, O_WRONLY | O_TRUNC | O_CREAT);
}

static int op_truncate(const struct target *t)
{
	return result(truncate(t->path, 0));
}

/* A descriptor opened for reading, opened again for writing through /proc. */
static int op_reopen(const struct target *t)
{
	char name[64];
	int fd = open(t->path, O_RDONLY | O_CLOEXEC), rc;

	if (fd < 0)
		return -errno;
	snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
	rc = put(name, O_WRONLY | O_TRUNC);
	close(fd);
	return rc;
}

static int op_mmap(const struct target *t)
{
	int fd = open(t->path, O_RDWR | O_CLOEXEC);
	void *p;

	if (fd < 0)
		return -errno;
	p = mmap(NULL, 1, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (p == MAP_FAILED)
		return -errno;
	*(char *)p = 'E';
	return result(msync(p, 1, MS_SYNC));
}

static int op_chmod(const struct target *t)
{
	return result(chmod(t->path, 0777));
}

static int op_chown(const struct target *t)
{
	/* to ourselves: allowed to every owner, so only the read-only mount is in the way */
	return result(chown(t->path, getuid(), getgid()));
}

static int op_utimes(const struct target *t)
{
	const struct timespec times[2] = { { 1, 0 }, { 1, 0 } };

	return result(utimensat(AT_FDCWD, t->path, times, 0));
}

static int op_setxattr(const struct target *t)
{
	return result(setxattr(t->path, "user.evil", "1", 1, 0));
}

static int op_chattr(const struct target *t)
{
	int fd = open(t->path, O_RDONLY | O_CLOEXEC), flags = 0, rc = 0;

	if (fd < 0)
		return -errno;
	if (ioctl(fd, FS_IOC_GETFLAGS, &flags) < 0)
		rc = -errno;
	flags |= FS_NODUMP_FL;
	if (rc == 0 && ioctl(fd, FS_IOC_SETFLAGS, &flags) < 0)
		rc = -errno;
	close(fd);
	return rc;
}

static int op_unlink(const struct target *t)
{
	return result(unlink(t->path));
}

/* Away with it, and a new one by the same name: the guard is on the name, not on the file. */
static int op_recreate(const struct target *t)
{
	if (unlink(t->path) < 0 && errno != ENOENT)
		return -errno;
	return put(t->path, O_WRONLY | O_CREAT);
}

static int op_rename_away(const struct target *t)
{
	return result(rename(t->path, t->scratch));
}

static int op_rename_over(const struct target *t)
{
	int rc = put(t->scratch, O_WRONLY | O_CREAT);

	if (rc < 0)
		return rc;
	return result(rename(t->scratch, t->path));
}

static int op_exchange(const struct target *t)
{
	int rc = put(t->scratch, O_WRONLY | O_CREAT);

	if (rc < 0)
		return rc;
	return result(renameat2(AT_FDCWD, t->scratch, AT_FDCWD, t->path, RENAME_EXCHANGE));
}

/* A second name in a writable place, then write through it. */
static int op_link(const struct target *t)
{
	if (link(t->path, t->scratch) < 0)
		return -errno;
	return put(t->scratch, O_WRONLY | O_TRUNC);
}

/* Unnamed file made beside, then linked in place of the target. */
static int op_tmpfile(const struct target *t)
{
	char name[64];
	int fd = open(t->dir, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0755);

	if (fd < 0)
		return -errno;
	if (write(fd, EVIL, strlen(EVIL)) < 0)
		return -errno;
	snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
	if (unlink(t->path) < 0)
		return -errno;
	return result(linkat(AT_FDCWD, name, AT_FDCWD, t->path, AT_SYMLINK_FOLLOW));
}

static int op_symlink(const struct target *t)
{
	int rc = put(t->scratch, O_WRONLY | O_CREAT);
	char link_name[4200];

	if (rc < 0)
		return rc;
	snprintf(link_name, sizeof link_name, "%s.link", t->scratch);
	unlink(link_name);
	if (symlink(t->scratch, link_name) < 0)
		return -errno;
	return result(rename(link_name, t->path));
}

static int remake(const char *dir, const char *path, const char *away)
{
	if (rename(dir, away) < 0)
		return -errno;
	if (mkdir(dir, 0755) < 0)
		return -errno;
	return put(path, O_WRONLY | O_CREAT);
}

/* The directory it is in is moved away and made anew with another content. */
static int op_parent(const struct target *t)
{
	return remake(t->dir, t->path, t->scratch);
}

/* The same with an exchange of directories, which needs no moment without the name. */
static int op_parent_exchange(const struct target *t)
{
	char inside[8300], copy[4096];

	if (mkdir(t->scratch, 0755) < 0 && errno != EEXIST)
		return -errno;
	snprintf(copy, sizeof copy, "%s", t->path);
	snprintf(inside, sizeof inside, "%s/%s", t->scratch, basename(copy));
	if (put(inside, O_WRONLY | O_CREAT) < 0)
		return -errno;
	return result(renameat2(AT_FDCWD, t->scratch, AT_FDCWD, t->dir, RENAME_EXCHANGE));
}

static int op_parent_symlink(const struct target *t)
{
	char other[4200], inside[8400], copy[4096];

	snprintf(other, sizeof other, "%s.d", t->scratch);
	if (mkdir(other, 0755) < 0 && errno != EEXIST)
		return -errno;
	snprintf(copy, sizeof copy, "%s", t->path);
	snprintf(inside, sizeof inside, "%s/%s", other, basename(copy));
	if (put(inside, O_WRONLY | O_CREAT) < 0)
		return -errno;
	if (rename(t->dir, t->scratch) < 0)
		return -errno;
	return result(symlink(other, t->dir));
}

static const struct {
	const char *name;
	int (*run)(const struct target *t);
} operations[] = {
	{ "write", op_write },
	{ "append", op_append },
	{ "trunc-open", op_trunc_open },
	{ "truncate", op_truncate },
	{ "reopen", op_reopen },
	{ "mmap", op_mmap },
	{ "chmod", op_chmod },
	{ "chown", op_chown },
	{ "utimes", op_utimes },
	{ "setxattr", op_setxattr },
	{ "chattr", op_chattr },
	{ "link", op_link },
	{ "exchange", op_exchange },
	{ "rename-over", op_rename_over },
	{ "rename-away", op_rename_away },
	{ "tmpfile", op_tmpfile },
	{ "symlink", op_symlink },
	{ "unlink", op_unlink },
	{ "recreate", op_recreate },
	{ "parent", op_parent },
	{ "parent-exchange", op_parent_exchange },
	{ "parent-symlink", op_parent_symlink },
};

int attack_path(const char *scratch, const char *path, char *const *ops)
{
	struct target t = { .path = path };
	char copy[4096];

	snprintf(copy, sizeof copy, "%s", path);
	snprintf(t.dir, sizeof t.dir, "%s", dirname(copy));
	for (; *ops; ops++) {
		for (size_t i = 0; i < sizeof operations / sizeof operations[0]; i++) {
			int rc;

			if (strcmp(*ops, "all") && strcmp(*ops, operations[i].name))
				continue;
			snprintf(t.scratch, sizeof t.scratch, "%s/scratch-%d-%zu", scratch,
				 getpid(), i);
			rc = operations[i].run(&t);
			printf("%s\t%s\t%s\n", operations[i].name, rc < 0 ? "denied" : "open",
			       rc < 0 ? strerrorname_np(-rc) : "");
			fflush(stdout);
		}
	}
	return 0;
}
