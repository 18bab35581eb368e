/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The second layer: a Landlock domain that refuses every write, creation,
 * removal and truncation outside the writable directories, and signals or
 * abstract sockets to anything outside. It repeats what the mounts say, in
 * another mechanism: a mistake in one is not yet a way out. Rights that the
 * running kernel does not know are left out, newest first.
 */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/sys.h"
#include "sandbox/native/native.h"

#define WRITE_ABI1                                                                                 \
	(SYS_LANDLOCK_WRITE_FILE | SYS_LANDLOCK_REMOVE_DIR | SYS_LANDLOCK_REMOVE_FILE |            \
	 SYS_LANDLOCK_MAKE_CHAR | SYS_LANDLOCK_MAKE_DIR | SYS_LANDLOCK_MAKE_REG |                  \
	 SYS_LANDLOCK_MAKE_SOCK | SYS_LANDLOCK_MAKE_FIFO | SYS_LANDLOCK_MAKE_BLOCK |               \
	 SYS_LANDLOCK_MAKE_SYM)
#define WRITE_FILE_ONLY (SYS_LANDLOCK_WRITE_FILE | SYS_LANDLOCK_TRUNCATE | SYS_LANDLOCK_IOCTL_DEV)

uint64_t native_write_rights(int abi)
{
	uint64_t rights = WRITE_ABI1;

	if (abi >= 2)
		rights |= SYS_LANDLOCK_REFER;
	if (abi >= 3)
		rights |= SYS_LANDLOCK_TRUNCATE;
	if (abi >= 5)
		rights |= SYS_LANDLOCK_IOCTL_DEV;
	return rights;
}

static int allow_below(int ruleset, const char *path, uint64_t rights, struct error *e)
{
	/* no link: another sandbox in the same directory may have put one here meanwhile */
	_cleanup_fd_ int fd = sys_open_direct(path);
	struct stat st;
	int r;

	if (fd < 0 || fstat(fd, &st) < 0)
		return error_set(e, fd < 0 ? -fd : errno, "cannot open %s: %s", path,
				 strerror(fd < 0 ? -fd : errno));
	if (S_ISLNK(st.st_mode))
		return error_set(e, ESTALE, "%s was replaced while the sandbox was being set up",
				 path);
	if (!S_ISDIR(st.st_mode))
		rights &= WRITE_FILE_ONLY;
	r = sys_landlock_add_path(ruleset, fd, rights);
	return r < 0 ? error_set(e, -r, "Landlock rule for %s: %s", path, strerror(-r)) : 0;
}

int native_landlock(const struct plan *plan, struct error *e)
{
	int abi = sys_landlock_abi(), r = 0;
	struct sys_landlock_ruleset rules = {
		.handled_fs = native_write_rights(abi),
		/* no port for anybody: the broker binds for those that ask for any */
		.handled_net = plan->no_listen ? SYS_LANDLOCK_BIND_TCP : 0,
		.scoped = abi >= 6 ? SYS_LANDLOCK_SCOPE_ABSTRACT | SYS_LANDLOCK_SCOPE_SIGNAL : 0,
	};
	size_t size = abi >= 6   ? sizeof(rules)
		      : abi >= 4 ? offsetof(struct sys_landlock_ruleset, scoped)
				 : sizeof(rules.handled_fs);
	_cleanup_fd_ int ruleset = -1;

	/* with the host's network namespace, abstract sockets are the host's too: the scope holds */
	ruleset = sys_landlock_create(&rules, size);
	if (ruleset < 0)
		return error_set(e, -ruleset, "cannot make a Landlock ruleset: %s",
				 strerror(-ruleset));
	for (size_t i = 0; i < plan->n_writable && r == 0; i++)
		r = allow_below(ruleset, plan->writable[i], rules.handled_fs, e);
	/* guarded: files may go; all else is done by the broker, who knows which directories went */
	for (size_t i = 0; i < plan->n_guarded && r == 0; i++)
		r = allow_below(ruleset, plan->guarded[i], SYS_LANDLOCK_REMOVE_FILE, e);
	for (size_t i = 0; i < plan->n_relayed && r == 0; i++)
		r = allow_below(ruleset, plan->relayed[i], SYS_LANDLOCK_REMOVE_FILE, e);
	if (r == 0) {
		r = sys_landlock_restrict(ruleset);
		if (r < 0)
			return error_set(e, -r, "cannot enter the Landlock domain: %s",
					 strerror(-r));
	}
	return r;
}
