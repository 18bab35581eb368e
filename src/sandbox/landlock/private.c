/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The private temporary directory of a bare plan (and the one that the socket of a container is
 * in, which is found and removed in the same way). It has no namespace to go with, so whoever is
 * left removes it: init when the run ends, whichever way; the keeper when init was killed; the
 * supervisor when both were; and when all of them were killed at once, the next run. So that
 * this one can tell, init holds a lock on the directory for as long as it lives.
 *
 * Trust: what lies in it is the command's, and with a shared /tmp a command can make directories
 * that look like ours (base/remove.h).
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/remove.h"
#include "base/text.h"
#include "sandbox/landlock/landlock.h"

#define MAKE_TRIES 8 /* another run may take it for a forgotten one */
#define REMOVE_TRIES 50
#define REMOVE_PAUSE_US 1000

/* The broker may still be about to make a file for somebody who was killed. */
void landlock_remove_private(const struct plan *plan)
{
	for (unsigned i = 0; plan->private_tmp && i < REMOVE_TRIES; i++) {
		int dir = remove_open(AT_FDCWD, plan->private_tmp);

		if (dir >= 0)
			remove_contents(dir);
		if (rmdir(plan->private_tmp) == 0 || errno != ENOTEMPTY)
			return;
		(void)usleep(REMOVE_PAUSE_US);
	}
}

/* The same name as ours but for the number: "ambit-" and 16 digits. */
static bool is_alike(const char *name, const char *own)
{
	size_t n = strlen(own), head = strcspn(own, "-") + 1;

	return strlen(name) == n && strncmp(name, own, head) == 0 &&
	       strspn(name + head, "0123456789abcdef") == n - head;
}

static void remove_forgotten(int parent, const char *name)
{
	_cleanup_fd_ int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;
	int copy;

	if (fd < 0 || fstat(fd, &st) < 0 || st.st_uid != geteuid() ||
	    flock(fd, LOCK_EX | LOCK_NB) < 0)
		return;
	copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (copy >= 0)
		remove_contents(copy);
	(void)unlinkat(parent, name, AT_REMOVEDIR);
}

/* Directories of runs that nobody is left of. */
static void sweep(const char *own)
{
	char parent[PATH_MAX];
	const struct dirent *entry;
	char *slash;
	DIR *d;

	text_copy(parent, sizeof(parent), own);
	slash = strrchr(parent, '/');
	*(slash == parent ? slash + 1 : slash) = '\0';
	d = opendir(parent);
	while (d && (entry = readdir(d))) {
		if (is_alike(entry->d_name, strrchr(own, '/') + 1))
			remove_forgotten(dirfd(d), entry->d_name);
	}
	if (d)
		(void)closedir(d);
}

/* Is it still what has this name? */
static bool is_there(int fd, const char *path)
{
	struct stat own, named;

	return fstat(fd, &own) == 0 && lstat(path, &named) == 0 && own.st_dev == named.st_dev &&
	       own.st_ino == named.st_ino;
}

int landlock_make_private(const char *path, int *ret_lock, struct error *e)
{
	if (!path)
		return 0;
	sweep(path);
	for (unsigned i = 0; i < MAKE_TRIES; i++) {
		_cleanup_fd_ int fd = -1;

		if (mkdir(path, 0700) < 0)
			break;
		fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (fd >= 0 && flock(fd, LOCK_SH) == 0 && is_there(fd, path)) {
			*ret_lock = TAKE_FD(fd);
			return 0;
		}
	}
	return error_set(e, errno, "cannot make %s: %s", path, strerror(errno));
}

/* The directories of a path below the private one. */
static int make_parents(const struct plan *plan, const char *path)
{
	char dir[PATH_MAX];

	text_copy(dir, sizeof(dir), path);
	for (char *s = dir + strlen(plan->private_tmp) + 1; (s = strchr(s, '/')); *s++ = '/') {
		*s = '\0';
		if (mkdir(dir, 0700) < 0 && errno != EEXIST)
			return -errno;
	}
	return 0;
}

static int write_file(const struct plan *plan, const struct plan_file *f)
{
	_cleanup_fd_ int fd = -1;
	int r = make_parents(plan, f->path);

	if (r < 0)
		return r;
	fd = open(f->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0400);
	return fd < 0 ? -errno : fd_write_all(fd, f->text, strlen(f->text));
}

int landlock_fill_private(const struct plan *plan, struct error *e)
{
	if (plan->private_home && mkdir(plan->private_home, 0700) < 0)
		return error_set(e, errno, "cannot make %s: %s", plan->private_home,
				 strerror(errno));
	for (size_t i = 0; i < plan->n_files; i++) {
		int r = write_file(plan, &plan->files[i]);

		if (r < 0)
			return error_set(e, -r, "cannot make %s: %s", plan->files[i].path,
					 strerror(-r));
	}
	return 0;
}
