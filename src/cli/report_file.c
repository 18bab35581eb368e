/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file of --report. It is written with all rights of the user, and its directory is often the
 * project: the command, or one of an earlier run, may have put there what it likes. So a link is
 * not followed at the last step, and what is there in the end is our report and nothing else.
 * Opened before the run, so that a report which cannot be written stops it; the directory is held,
 * since its path may lead elsewhere afterwards.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/sys.h"
#include "base/text.h"
#include "cli/cli.h"

#define WAYS (O_WRONLY | O_CREAT | O_TRUNC | O_NOCTTY)

static int fail(const struct report_file *f, int err, struct error *e)
{
	return error_set(e, err, "--report %s: %s", f->path,
			 err == ELOOP ? "is a symbolic link" : strerror(err));
}

/* Descriptors of our own have links for names: /dev/stdout, /dev/fd/3. */
static bool is_descriptor(const char *path)
{
	return text_starts(path, "/dev/") || text_starts(path, "/proc/self/fd/");
}

static int open_directory(struct report_file *f)
{
	const char *slash = strrchr(f->path, '/');
	size_t n = slash ? (size_t)(slash + 1 - f->path) : 0;
	char dir[PATH_MAX] = ".";

	if (n >= sizeof(dir))
		return -ENAMETOOLONG;
	if (n)
		text_copy(dir, n + 1, f->path);
	f->name = f->path + n;
	f->dir = open(dir, SYS_O_PATH | O_DIRECTORY | O_CLOEXEC);
	return f->dir < 0 ? -errno : 0;
}

int report_file_open(struct report_file *f, const char *path, struct error *e)
{
	int r = 0;

	*f = (struct report_file){ .path = path, .dir = -1, .fd = -1 };
	if (!path)
		return 0;
	if (strcmp(path, "-") == 0) {
		f->fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
	} else if (is_descriptor(path)) {
		f->fd = open(path, WAYS | O_CLOEXEC, 0644);
	} else {
		r = open_directory(f);
		f->fd = r < 0 ? -1 : openat(f->dir, f->name, WAYS | O_NOFOLLOW | O_CLOEXEC, 0644);
	}
	return f->fd < 0 ? fail(f, r < 0 ? -r : errno, e) : 0;
}

/* What was written into our file meanwhile goes; what took its place does, too. */
static int renew(struct report_file *f, struct error *e)
{
	struct stat own, now;

	if (f->dir < 0 || fstat(f->fd, &own) < 0 || !S_ISREG(own.st_mode))
		return 0;
	if (fstatat(f->dir, f->name, &now, AT_SYMLINK_NOFOLLOW) == 0 && now.st_dev == own.st_dev &&
	    now.st_ino == own.st_ino)
		return ftruncate(f->fd, 0) < 0 ? fail(f, errno, e) : 0;
	fd_close(f->fd);
	(void)unlinkat(f->dir, f->name, 0);
	f->fd = openat(f->dir, f->name, WAYS | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
	return f->fd < 0 ? fail(f, errno, e) : 0;
}

int report_file_write(struct report_file *f, const struct buf *text, struct error *e)
{
	int r = f->fd < 0 ? 0 : renew(f, e);

	if (f->fd < 0)
		return r;
	r = text->overflow ? -EFBIG : fd_write_all(f->fd, buf_str(text), text->len);
	return r < 0 ? error_set(e, -r, "cannot write the report: %s", strerror(-r)) : 0;
}

void report_file_close(struct report_file *f)
{
	fd_close(f->fd);
	fd_close(f->dir);
}
