/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hide something in a sandbox that stands already. Only what is the same object inside as outside
 * is covered: that is, what can be seen there. What hides a file is a device node that does not
 * open (nodev), since the files that hide others from the start cannot be reached any more.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/sys.h"
#include "sandbox/native/native.h"

#define ATTR_MASK (SYS_MOUNT_RDONLY | SYS_MOUNT_NOSUID | SYS_MOUNT_NODEV | SYS_MOUNT_NOEXEC)

struct shown {
	char *real; /* canonical, as the host has it; NULL = there is none */
	struct stat st;
};

static int open_node(void)
{
	_cleanup_fd_ int fd = native_open_exact("/dev/null");
	struct stat st;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0 || !S_ISCHR(st.st_mode))
		return -ENODEV;
	return sys_open_tree(fd, "", SYS_OPEN_TREE_CLONE | AT_EMPTY_PATH);
}

/* 1 = hidden now, 0 = nothing to hide. */
static int cover(const struct shown *host, struct error *e)
{
	_cleanup_fd_ int at = native_open_exact(host->real), tree = -1;
	struct stat st;
	int r;

	if (at < 0 || fstat(at, &st) < 0 || st.st_ino != host->st.st_ino ||
	    st.st_dev != host->st.st_dev)
		return 0;
	tree = S_ISDIR(st.st_mode) ? sys_empty_directory() : open_node();
	r = tree < 0 ? tree : sys_mount_setattr(tree, "", AT_EMPTY_PATH, ATTR_MASK, 0, MS_PRIVATE);
	if (r == 0)
		r = sys_move_mount(tree, at);
	if (r == -ENOENT)
		return 0; /* it was replaced again: there will be news of that */
	return r < 0 ? error_set(e, -r,
				 "%s appeared outside, where nothing may be read, and cannot be "
				 "hidden: %s",
				 host->real, strerror(-r))
		     : 1;
}

/* What the caller cannot read, the command cannot: as in plans, nothing needs to hide it. */
static bool is_out_of_reach(const char *path)
{
	return faccessat(AT_FDCWD, path, R_OK, AT_EACCESS) < 0 &&
	       faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) < 0;
}

static void look(const char *path, struct shown *ret)
{
	ret->real = realpath(path, NULL);
	if (ret->real && (lstat(ret->real, &ret->st) < 0 || is_out_of_reach(ret->real))) {
		free(ret->real);
		ret->real = NULL;
	}
}

int native_mask(int user_ns, int mount_ns, const char *const *paths, size_t n, bool *ret_hidden,
		struct error *e)
{
	struct shown *shown = calloc(n + 1, sizeof(*shown));
	int r = shown ? 0 : error_set(e, ENOMEM, "out of memory");

	for (size_t i = 0; i < n && r == 0; i++)
		look(paths[i], &shown[i]);
	if (r == 0 && (setns(user_ns, CLONE_NEWUSER) < 0 || setns(mount_ns, CLONE_NEWNS) < 0))
		r = error_set(e, errno, "cannot enter the sandbox: %s", strerror(errno));
	for (size_t i = 0; i < n && r == 0; i++) {
		int hidden = shown[i].real ? cover(&shown[i], e) : 0;

		ret_hidden[i] = hidden > 0;
		r = hidden < 0 ? hidden : 0;
	}
	for (size_t i = 0; i < n && shown; i++)
		free(shown[i].real);
	free(shown);
	return r;
}
