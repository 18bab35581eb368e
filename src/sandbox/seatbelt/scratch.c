/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The directory of one run: the command's temporary files, its private home, the profile when
 * it is long. It has no namespace to go with: seatbelt_run() removes it at the end, its guard
 * when that was killed.
 *
 * Trust: what lies in it is the command's, and processes that left its group may still be at
 * work in it. So nothing is reached by a path that they could change: each step goes from an open
 * directory to one name in it, and no symbolic link is followed.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "sandbox/seatbelt/seatbelt.h"

#define TREE_DEPTH_MAX 128 /* what lies deeper is left behind */
#define REMOVE_TRIES 3 /* somebody may put more into it meanwhile */

int scratch_make(struct arena *a, const char *base, const struct policy *p,
		 struct seatbelt_scratch *ret, struct error *e)
{
	struct seatbelt_scratch s = { 0 };
	char real[PATH_MAX], *dir;

	/* /tmp and /var are links on macOS, and rules hold for canonical paths only */
	if (!realpath(base, real))
		return error_set(e, errno, "the directory for temporary files, %s: %s", base,
				 strerror(errno));
	dir = path_join(a, real, "ambit-XXXXXX");
	if (!mkdtemp(dir))
		return error_set(e, errno, "cannot make a directory in %s: %s", real,
				 strerror(errno));
	s.dir = dir;
	s.tmp = path_join(a, dir, "tmp");
	s.profile = path_join(a, dir, "profile.sb");
	if (p->fs.home == HOME_PRIVATE)
		s.home = path_join(a, dir, "home");
	if (mkdir(s.tmp, 0700) < 0 || (s.home && mkdir(s.home, 0700) < 0)) {
		int r = error_set(e, errno, "cannot make a directory in %s: %s", dir,
				  strerror(errno));

		scratch_remove(&s);
		return r;
	}
	*ret = s;
	return 0;
}

/* To list it, whatever its mode; -errno. It may be anything by now, but is no link. */
static int open_below(int dir, const char *name)
{
	const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK;
	int fd = openat(dir, name, flags);

	/* the command took its own rights away; a link in its place is not followed */
	if (fd < 0 && errno == EACCES && fchmodat(dir, name, 0700, AT_SYMLINK_NOFOLLOW) == 0)
		fd = openat(dir, name, flags);
	return fd < 0 ? -errno : fd;
}

/* Takes the descriptor over. */
static void empty_directory(int dir, unsigned depth)
{
	DIR *d = depth < TREE_DEPTH_MAX ? fdopendir(dir) : NULL;
	const struct dirent *entry;

	if (!d) {
		fd_close(dir);
		return;
	}
	(void)fchmod(dirfd(d), 0700);
	while ((entry = readdir(d))) {
		int below;

		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
		    unlinkat(dirfd(d), entry->d_name, 0) == 0)
			continue;
		below = open_below(dirfd(d), entry->d_name);
		if (below >= 0)
			empty_directory(below, depth + 1);
		(void)unlinkat(dirfd(d), entry->d_name, AT_REMOVEDIR);
	}
	(void)closedir(d);
}

void scratch_remove(const struct seatbelt_scratch *s)
{
	for (unsigned i = 0; s->dir && i < REMOVE_TRIES; i++) {
		int dir = open_below(AT_FDCWD, s->dir);

		if (dir >= 0)
			empty_directory(dir, 0);
		if (rmdir(s->dir) == 0)
			return;
	}
}
