/* SPDX-License-Identifier: Apache-2.0 */
/* Directories that are to be writable and are not there yet. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sandbox/plan.h"

static bool wants_directory(const struct path_rule *r)
{
	return !r->glob && !r->optional && r->access == ACCESS_WRITE &&
	       r->verdict == VERDICT_ALLOW && access(r->real, F_OK) < 0;
}

/* Could it be made? Asked for all before any is: a refused run leaves nothing behind. */
static int check_parent(const char *path)
{
	char parent[PATH_MAX];
	char *slash;

	if (strlen(path) >= sizeof(parent))
		return -ENAMETOOLONG;
	memcpy(parent, path, strlen(path) + 1);
	slash = strrchr(parent, '/');
	*(slash == parent ? slash + 1 : slash) = '\0';
	return faccessat(AT_FDCWD, parent, W_OK | X_OK, AT_EACCESS) < 0 ? -errno : 0;
}

bool plan_must_prepare(const struct policy *p)
{
	for (size_t i = 0; i < p->fs.rules.n; i++) {
		if (wants_directory(&p->fs.rules.v[i]))
			return true;
	}
	return false;
}

int plan_prepare(const struct policy *p, struct error *e)
{
	for (unsigned pass = 0; pass < 2; pass++) {
		for (size_t i = 0; i < p->fs.rules.n; i++) {
			const struct path_rule *r = &p->fs.rules.v[i];
			int err;

			if (!wants_directory(r))
				continue;
			err = pass == 0                  ? check_parent(r->real)
			      : mkdir(r->real, 0777) < 0 ? -errno
							 : 0;
			if (err < 0)
				return error_set(e, -err,
						 "allowWrite %s: does not exist and cannot be "
						 "created: %s",
						 r->text, strerror(-err));
		}
	}
	return 0;
}
