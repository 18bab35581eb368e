/* SPDX-License-Identifier: Apache-2.0 */
/*
 * In the namespaces that bwrap made: look whether everything stands as the plan says, and do
 * what bwrap has no words for.
 *
 * bwrap is given paths, and whoever can write to the host's directories can change what a path
 * means between our judging it and bwrap's mounting it. So every place is looked at from inside:
 * reached without a symbolic link, it must be a mount of its own, of the object that was judged,
 * and read-only where that was meant. If not, nothing is started. Afterwards the places cannot
 * change any more: a mount stays what it is.
 */
#include "sandbox/bwrap/inside.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/statx.h"
#include "base/sys.h"
#include "sandbox/native/native.h"

#ifndef STATX_ATTR_MOUNT_ROOT
#define STATX_ATTR_MOUNT_ROOT 0x2000 /* Linux 5.8 */
#endif
#define NULL_MAJOR 1
#define NULL_MINOR 3

static int replaced(const char *path, struct error *e)
{
	return error_set(e, ESTALE, "%s was replaced while the sandbox was being set up", path);
}

static int unheld(const char *path, const char *what, struct error *e)
{
	return error_set(e, EPERM, "bwrap left %s %s: the sandbox is not started", path, what);
}

static bool is_mount(const struct statx *st)
{
	/* a kernel that cannot say it has to be believed that device and inode tell enough */
	return !(st->stx_attributes_mask & STATX_ATTR_MOUNT_ROOT) ||
	       st->stx_attributes & STATX_ATTR_MOUNT_ROOT;
}

static bool is_null(const struct statx *st)
{
	return S_ISCHR(st->stx_mode) && st->stx_rdev_major == NULL_MAJOR &&
	       st->stx_rdev_minor == NULL_MINOR;
}

/* What kind of mounts they are, by kind of step. */
static const struct {
	bool mount, read_only, nodev;
} looks[MOUNT_KIND_MAX_] = {
	[MOUNT_RW] = { .mount = true, .nodev = true },
	[MOUNT_RO] = { .mount = true, .read_only = true, .nodev = true },
	[MOUNT_PIN] = { .mount = true, .nodev = true },
	[MOUNT_HIDE_DIR] = { .mount = true, .read_only = true, .nodev = true },
	[MOUNT_HIDE_FILE] = { .mount = true, .read_only = true, .nodev = true },
	[MOUNT_PRIVATE] = { .mount = true, .nodev = true },
	[MOUNT_TEXT] = { .mount = true, .read_only = true, .nodev = true },
	[MOUNT_FOLDER] = { .mount = false },
	[MOUNT_DEV] = { .mount = true, .nodev = true },
	[MOUNT_PROC] = { .mount = true, .read_only = true },
};

static int check_step(const struct mount_step *m, struct error *e)
{
	_cleanup_fd_ int fd = sys_openat2(AT_FDCWD, m->path, O_PATH | O_CLOEXEC | O_NOFOLLOW, 0,
					  SYS_RESOLVE_NO_SYMLINKS | SYS_RESOLVE_NO_MAGICLINKS);
	struct statvfs fs;
	struct statx st;

	if (fd < 0)
		return fd == -ELOOP ? replaced(m->path, e)
				    : error_set(e, -fd, "cannot look at %s inside the sandbox: %s",
						m->path, strerror(-fd));
	if (statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &st) < 0 || fstatvfs(fd, &fs) < 0)
		return error_set(e, errno, "cannot look at %s inside the sandbox: %s", m->path,
				 strerror(errno));
	if (m->ino &&
	    (st.stx_ino != m->ino || makedev(st.stx_dev_major, st.stx_dev_minor) != (dev_t)m->dev))
		return replaced(m->path, e);
	if (looks[m->kind].mount && !is_mount(&st))
		return replaced(m->path, e);
	if (m->kind == MOUNT_HIDE_FILE && !is_null(&st))
		return unheld(m->path, "visible", e);
	if (looks[m->kind].read_only && !(fs.f_flag & ST_RDONLY))
		return unheld(m->path, "writable", e);
	if (looks[m->kind].nodev && !(fs.f_flag & ST_NODEV))
		return unheld(m->path, "with its devices", e);
	return 0;
}

/* The kernel's own files, in a tree that is writable as a whole. */
static int check_kernels(const struct plan *plan, struct error *e)
{
	struct statvfs fs;

	for (size_t i = 0; i < plan->n_mounts; i++) {
		if (plan->mounts[i].kind == MOUNT_RW && strcmp(plan->mounts[i].path, "/sys") == 0)
			return 0; /* asked for */
	}
	return statvfs("/sys", &fs) == 0 && !(fs.f_flag & ST_RDONLY) ? unheld("/sys", "writable", e)
								     : 0;
}

static int check_root(const struct plan *plan, struct error *e)
{
	struct statvfs fs;

	if (statvfs("/", &fs) < 0)
		return error_set(e, errno, "/: %s", strerror(errno));
	if (plan->root_writable && check_kernels(plan, e) < 0)
		return -e->code;
	if (!plan->root_writable && !(fs.f_flag & ST_RDONLY))
		return unheld("/", "writable", e);
	return fs.f_flag & ST_NOSUID && fs.f_flag & ST_NODEV
		       ? 0
		       : unheld("/", "with its devices or setuid programs", e);
}

static int check_proc(const struct plan *plan, struct error *e)
{
	const char *secret;

	for (size_t i = 0; !plan->outer_proc && (secret = native_proc_secret(plan, i)); i++) {
		struct statx st;

		if (statx(AT_FDCWD, secret, AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS, &st) == 0 &&
		    !is_null(&st))
			return unheld(secret, "visible", e);
	}
	return 0;
}

int bwrap_check_mounts(const struct plan *plan, struct error *e)
{
	int r = check_root(plan, e);

	for (size_t i = 0; i < plan->n_mounts && r == 0; i++) {
		if (plan->mounts[i].kind != MOUNT_PROC || !plan->outer_proc)
			r = check_step(&plan->mounts[i], e);
	}
	return r == 0 ? check_proc(plan, e) : r;
}

/* What the host mounts from now on does not appear inside, past the rules. */
static int part_mounts(void)
{
	return sys_mount_setattr(AT_FDCWD, "/", SYS_AT_RECURSIVE, 0, 0, MS_PRIVATE);
}

bool bwrap_is_powerless(void)
{
	int r = part_mounts();

	return r == -EPERM || r == -EACCES;
}

static int seal_device(const char *path, struct error *e)
{
	int r = sys_mount_setattr(AT_FDCWD, path, 0, SYS_MOUNT_RDONLY, 0, 0);

	return r < 0 && r != -ENOENT
		       ? error_set(e, -r, "cannot make read-only: %s: %s", path, strerror(-r))
		       : 0;
}

/* The command writes to devices; their modes and owners are the host's. The terminal is one. */
static int seal_devices(struct error *e)
{
	int r = seal_device("/dev/console", e);

	for (size_t i = 0; i < NATIVE_DEVICES && r == 0; i++)
		r = seal_device(native_devices[i], e);
	return r;
}

int bwrap_finish(const struct plan *plan, int errors, struct error *e)
{
	int r = part_mounts();

	if (r < 0)
		return error_set(e, -r, "cannot separate the mounts from the host's: %s",
				 strerror(-r));
	r = seal_devices(e);
	if (r < 0)
		return r;
	if (mount("devpts", "/dev/pts", "devpts", MS_NOSUID | MS_NOEXEC,
		  "newinstance,ptmxmode=0666,mode=620") < 0)
		return error_set(e, errno, "cannot mount /dev/pts: %s", strerror(errno));
	/* bwrap has brought it up */
	if (plan->new_net && !plan->loopback) {
		r = native_lower_loopback(e);
		if (r < 0)
			return r;
	}
	return native_network(plan, errors, e);
}
