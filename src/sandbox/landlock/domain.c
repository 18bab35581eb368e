/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The two Landlock domains of a bare plan. Rights that the running kernel does not know are left
 * out, newest first; what is lost with them was told when the backend was chosen.
 *
 * Rules are made on open files. A place that became a symbolic link since the plan was made is
 * an error; one that is gone needs no rule.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/sys.h"
#include "base/text.h"
#include "sandbox/landlock/landlock.h"
#include "sandbox/native/native.h"

#define READ_RIGHTS (SYS_LANDLOCK_EXECUTE | SYS_LANDLOCK_READ_FILE | SYS_LANDLOCK_READ_DIR)
#define FILE_RIGHTS                                                                                \
	(SYS_LANDLOCK_EXECUTE | SYS_LANDLOCK_READ_FILE | SYS_LANDLOCK_WRITE_FILE |                 \
	 SYS_LANDLOCK_TRUNCATE | SYS_LANDLOCK_IOCTL_DEV)

static uint64_t rights_of(const struct plan *plan, unsigned granted)
{
	uint64_t known = READ_RIGHTS | native_write_rights(plan->landlock_abi), rights = 0;

	if (granted & (GRANT_READ | GRANT_WRITE))
		rights |= READ_RIGHTS;
	if (granted & GRANT_LIST)
		rights |= SYS_LANDLOCK_READ_DIR;
	if (granted & GRANT_WRITE)
		rights |= native_write_rights(plan->landlock_abi);
	if (granted & GRANT_DEVICE)
		rights |= SYS_LANDLOCK_READ_FILE | SYS_LANDLOCK_WRITE_FILE | SYS_LANDLOCK_TRUNCATE |
			  SYS_LANDLOCK_IOCTL_DEV;
	return rights & known;
}

static int allow(int ruleset, const char *path, uint64_t rights, struct error *e)
{
	_cleanup_fd_ int fd = sys_open_direct(path);
	struct stat st;
	int r;

	if (fd == -ENOENT || fd == -EACCES || fd == -ENOTDIR)
		return 0;
	if (fd < 0 || fstat(fd, &st) < 0)
		return error_set(e, fd < 0 ? -fd : errno, "cannot open %s: %s", path,
				 strerror(fd < 0 ? -fd : errno));
	if (S_ISLNK(st.st_mode))
		return 0;
	if (!S_ISDIR(st.st_mode))
		rights &= FILE_RIGHTS;
	r = sys_landlock_add_path(ruleset, fd, rights);
	return r < 0 ? error_set(e, -r, "Landlock rule for %s: %s", path, strerror(-r)) : 0;
}

static int make_ruleset(const struct plan *plan, uint64_t handled, uint64_t scoped, struct error *e)
{
	const struct sys_landlock_ruleset rules = { .handled_fs = handled, .scoped = scoped };
	int fd = sys_landlock_create(&rules, plan->landlock_abi >= 6 ? sizeof(rules)
								     : sizeof(rules.handled_fs));

	return fd < 0 ? error_set(e, -fd, "cannot make a Landlock ruleset: %s", strerror(-fd)) : fd;
}

static int enter(int ruleset, struct error *e)
{
	int r = sys_landlock_restrict(ruleset);

	return r < 0 ? error_set(e, -r, "cannot enter the Landlock domain: %s", strerror(-r)) : 0;
}

static int allow_all(int ruleset, const char *const *paths, size_t n, uint64_t rights,
		     struct error *e)
{
	int r = 0;

	for (size_t i = 0; i < n && r == 0; i++)
		r = allow(ruleset, paths[i], rights, e);
	return r;
}

static int allow_parent(int ruleset, const char *path, struct error *e)
{
	char parent[PATH_MAX];
	char *slash;

	text_copy(parent, sizeof(parent), path);
	slash = strrchr(parent, '/');
	*(slash == parent ? slash + 1 : slash) = '\0';
	return allow(ruleset, parent, SYS_LANDLOCK_REMOVE_DIR, e);
}

int landlock_enter_keeper(const struct plan *plan, struct error *e)
{
	uint64_t write = native_write_rights(plan->landlock_abi);
	_cleanup_fd_ int ruleset = make_ruleset(plan, write, 0, e);
	int r;

	if (ruleset < 0)
		return ruleset;
	r = allow_all(ruleset, plan->writable, plan->n_writable, write, e);
	if (r == 0)
		r = allow_all(ruleset, plan->guarded, plan->n_guarded, write, e);
	if (r == 0)
		r = allow_all(ruleset, plan->relayed, plan->n_relayed, write, e);
	if (r == 0) /* terminals and /dev/null, for the command's domain within this one */
		r = allow(ruleset, "/dev", rights_of(plan, GRANT_DEVICE) & write, e);
	if (r == 0 && plan->private_tmp) /* init removes it */
		r = allow_parent(ruleset, plan->private_tmp, e);
	return r < 0 ? r : enter(ruleset, e);
}

int landlock_enter_command(const struct plan *plan, struct error *e)
{
	uint64_t scoped = plan->landlock_abi >= 6
				  ? SYS_LANDLOCK_SCOPE_ABSTRACT | SYS_LANDLOCK_SCOPE_SIGNAL
				  : 0;
	_cleanup_fd_ int ruleset = make_ruleset(
		plan, READ_RIGHTS | native_write_rights(plan->landlock_abi), scoped, e);
	int r = 0;

	if (ruleset < 0)
		return ruleset;
	for (size_t i = 0; i < plan->n_grants && r == 0; i++)
		r = allow(ruleset, plan->grants[i].path, rights_of(plan, plan->grants[i].rights),
			  e);
	return r < 0 ? r : enter(ruleset, e);
}
