/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The directory of one run: the command's temporary files, its private home, the profile when
 * it is long. It has no namespace to go with: seatbelt_run() removes it at the end, its guard
 * when that was killed.
 *
 * Trust: what lies in it is the command's, and processes that left its group may still be at
 * work in it (base/remove.h).
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/remove.h"
#include "sandbox/seatbelt/seatbelt.h"

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

void scratch_remove(const struct seatbelt_scratch *s)
{
	for (unsigned i = 0; s->dir && i < REMOVE_TRIES; i++) {
		int dir = remove_open(AT_FDCWD, s->dir);

		if (dir >= 0)
			remove_contents(dir);
		if (rmdir(s->dir) == 0)
			return;
	}
}
