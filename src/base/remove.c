/* SPDX-License-Identifier: Apache-2.0 */
#include "base/remove.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/macros.h"

/*
 * Each level holds a descriptor and some stack. A directory at this depth is moved up to the
 * top instead of being entered, and is emptied from there in the next pass.
 */
#define DEPTH_MAX 64
#define PASSES_MAX 4096 /* somebody may put more into it meanwhile */

struct removal {
	int top;
	unsigned lifted; /* in this pass */
	unsigned names; /* given to what was moved up, in all passes */
};

int remove_open(int dir, const char *name)
{
	const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK;
	int fd = openat(dir, name, flags);

	if (fd < 0 && errno == EACCES && fchmodat(dir, name, 0700, AT_SYMLINK_NOFOLLOW) == 0)
		fd = openat(dir, name, flags);
	if (fd < 0)
		return -errno;
	(void)fchmod(fd, 0700);
	return fd;
}

static void lift(struct removal *r, int dir, const char *name)
{
	char fresh[32];

	(void)snprintf(fresh, sizeof(fresh), "ambit-%u", r->names++);
	if (renameat(dir, name, r->top, fresh) == 0)
		r->lifted++;
}

static void empty(struct removal *r, int dir, unsigned depth)
{
	DIR *d = fdopendir(dir);
	const struct dirent *entry;

	if (!d) {
		fd_close(dir);
		return;
	}
	while ((entry = readdir(d))) {
		int below;

		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
		    unlinkat(dirfd(d), entry->d_name, 0) == 0)
			continue;
		below = remove_open(dirfd(d), entry->d_name);
		if (below >= 0 && depth < DEPTH_MAX) {
			empty(r, TAKE_FD(below), depth + 1);
		} else if (below >= 0) {
			fd_close(below);
			lift(r, dirfd(d), entry->d_name);
		}
		(void)unlinkat(dirfd(d), entry->d_name, AT_REMOVEDIR);
	}
	(void)closedir(d);
}

void remove_contents(int dir)
{
	struct removal r = { .top = dir };

	for (unsigned pass = 0; pass < PASSES_MAX; pass++) {
		int again = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		r.lifted = 0;
		if (again >= 0)
			empty(&r, again, 0);
		if (!r.lifted)
			break;
	}
	fd_close(dir);
}
