/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changing the mounts, to uncover what a mount hides or to make writable what one
 * makes read-only: the old call, the new calls, new namespaces, other namespaces.
 * The control run happens in a mount namespace of its own. Keys: ws, mask.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "probe.h"

#ifndef SYS_mount_setattr
#define SYS_mount_setattr 442
#endif
#define OLD_MS_RDONLY 1
#define OLD_MS_REMOUNT 32
#define OLD_MS_BIND 4096
#define OLD_MNT_DETACH 2

static long old_mount(const char *source, const char *target, const char *type, unsigned long flags,
		      const char *data)
{
	return syscall(SYS_mount, source, target, type, flags, data);
}

static int outcome(long rc)
{
	return rc < 0 ? -errno : 0;
}

#define MOUNT_PROBE(name) static int name(const struct context *c, char *detail, size_t size)
#define UNUSED_ARGS ((void)c, (void)detail, (void)size)

MOUNT_PROBE(mount_bind)
{
	const char *ws = context_get(c, "ws");

	UNUSED_ARGS;
	return outcome(old_mount(ws, ws, NULL, OLD_MS_BIND, NULL));
}

MOUNT_PROBE(mount_tmpfs)
{
	UNUSED_ARGS;
	return outcome(old_mount("t", context_get(c, "ws"), "tmpfs", 0, NULL));
}

MOUNT_PROBE(mount_type)
{
	UNUSED_ARGS;
	return reached(old_mount("nodev", context_get(c, "ws"), "no-such-type", 0, NULL));
}

MOUNT_PROBE(mount_overlay)
{
	char data[8192];

	UNUSED_ARGS;
	snprintf(data, sizeof data, "lowerdir=/etc:/usr");
	return outcome(old_mount("o", context_get(c, "ws"), "overlay", OLD_MS_RDONLY, data));
}

MOUNT_PROBE(mount_remount)
{
	UNUSED_ARGS;
	return reached(old_mount(NULL, "/", NULL, OLD_MS_REMOUNT | OLD_MS_BIND, NULL));
}

MOUNT_PROBE(mount_umount)
{
	UNUSED_ARGS;
	/* EINVAL: it is no mount point, or locked; the call itself was let through */
	return reached(syscall(SYS_umount2, context_get(c, "mask"), OLD_MNT_DETACH));
}

MOUNT_PROBE(mount_fsopen)
{
	UNUSED_ARGS;
	return outcome(syscall(SYS_fsopen, "tmpfs", FSOPEN_CLOEXEC));
}

MOUNT_PROBE(mount_fspick)
{
	UNUSED_ARGS;
	return reached(syscall(SYS_fspick, AT_FDCWD, "/", FSPICK_CLOEXEC));
}

MOUNT_PROBE(mount_fsconfig)
{
	UNUSED_ARGS;
	return reached(syscall(SYS_fsconfig, -1, FSCONFIG_CMD_CREATE, NULL, NULL, 0));
}

MOUNT_PROBE(mount_fsmount)
{
	UNUSED_ARGS;
	return reached(syscall(SYS_fsmount, -1, 0, 0));
}

MOUNT_PROBE(mount_open_tree)
{
	UNUSED_ARGS;
	return outcome(syscall(SYS_open_tree, AT_FDCWD, context_get(c, "ws"),
			       OPEN_TREE_CLONE | O_CLOEXEC));
}

MOUNT_PROBE(mount_move)
{
	UNUSED_ARGS;
	return reached(syscall(SYS_move_mount, -1, "", -1, "", MOVE_MOUNT_F_EMPTY_PATH));
}

MOUNT_PROBE(mount_setattr)
{
	struct mount_attr attr = { .attr_clr = MOUNT_ATTR_RDONLY };

	UNUSED_ARGS;
	return reached(syscall(SYS_mount_setattr, AT_FDCWD, "/", 0, &attr, sizeof attr));
}

MOUNT_PROBE(mount_pivot)
{
	UNUSED_ARGS;
	return reached(syscall(SYS_pivot_root, "/no-such", "/no-such"));
}

MOUNT_PROBE(mount_chroot)
{
	UNUSED_ARGS;
	return outcome(chroot(context_get(c, "ws")));
}

static int try_unshare(int flags)
{
	return unshare(flags) < 0 ? -errno : 0;
}

MOUNT_PROBE(ns_unshare_user)
{
	UNUSED_ARGS;
	return try_unshare(CLONE_NEWUSER);
}

MOUNT_PROBE(ns_unshare_user_mount)
{
	UNUSED_ARGS;
	return try_unshare(CLONE_NEWUSER | CLONE_NEWNS);
}

MOUNT_PROBE(ns_unshare_mount)
{
	UNUSED_ARGS;
	return try_unshare(CLONE_NEWNS);
}

MOUNT_PROBE(ns_unshare_net)
{
	UNUSED_ARGS;
	return try_unshare(CLONE_NEWNET);
}

MOUNT_PROBE(ns_unshare_pid)
{
	UNUSED_ARGS;
	return try_unshare(CLONE_NEWPID);
}

MOUNT_PROBE(ns_unshare_cgroup)
{
	UNUSED_ARGS;
	return try_unshare(CLONE_NEWCGROUP);
}

static int child_of(long pid)
{
	if (pid < 0)
		return -errno;
	if (pid == 0)
		_exit(0);
	waitpid((pid_t)pid, NULL, 0);
	return 0;
}

MOUNT_PROBE(ns_clone_user)
{
	UNUSED_ARGS;
	return child_of(syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, NULL, NULL, NULL, 0));
}

/* Flags in the upper half of the word: the kernel looks at 32 bits only. */
MOUNT_PROBE(ns_clone_user_high)
{
	UNUSED_ARGS;
	return child_of(
		syscall(SYS_clone, (1ULL << 40) | CLONE_NEWUSER | SIGCHLD, NULL, NULL, NULL, 0));
}

MOUNT_PROBE(ns_clone3_user)
{
	struct clone_args a = { .flags = CLONE_NEWUSER, .exit_signal = SIGCHLD };

	UNUSED_ARGS;
	return child_of(syscall(SYS_clone3, &a, sizeof a));
}

MOUNT_PROBE(ns_clone3_plain)
{
	struct clone_args a = { .exit_signal = SIGCHLD };

	UNUSED_ARGS;
	return child_of(syscall(SYS_clone3, &a, sizeof a));
}

static int enter(const char *path, int type)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	return reached(setns(fd, type));
}

MOUNT_PROBE(ns_setns_self)
{
	UNUSED_ARGS;
	return enter("/proc/self/ns/mnt", CLONE_NEWNS);
}

MOUNT_PROBE(ns_setns_init)
{
	UNUSED_ARGS;
	return enter("/proc/1/ns/mnt", CLONE_NEWNS);
}

MOUNT_PROBE(ns_setns_pidfd)
{
	int fd = (int)syscall(SYS_pidfd_open, 1, 0);

	UNUSED_ARGS;
	if (fd < 0)
		return -errno;
	return reached(setns(fd, CLONE_NEWNS));
}

static const struct probe table[] = {
	{ "mount-bind", mount_bind },
	{ "mount-tmpfs", mount_tmpfs },
	{ "mount-type", mount_type },
	{ "mount-overlay", mount_overlay },
	{ "mount-remount", mount_remount },
	{ "mount-umount", mount_umount },
	{ "mount-fsopen", mount_fsopen },
	{ "mount-fspick", mount_fspick },
	{ "mount-fsconfig", mount_fsconfig },
	{ "mount-fsmount", mount_fsmount },
	{ "mount-open_tree", mount_open_tree },
	{ "mount-move_mount", mount_move },
	{ "mount-setattr", mount_setattr },
	{ "mount-pivot_root", mount_pivot },
	{ "mount-chroot", mount_chroot },
	{ "ns-unshare-user", ns_unshare_user },
	{ "ns-unshare-user-mount", ns_unshare_user_mount },
	{ "ns-unshare-mount", ns_unshare_mount },
	{ "ns-unshare-net", ns_unshare_net },
	{ "ns-unshare-pid", ns_unshare_pid },
	{ "ns-unshare-cgroup", ns_unshare_cgroup },
	{ "ns-clone-user", ns_clone_user },
	{ "ns-clone-user-high", ns_clone_user_high },
	{ "ns-clone3-user", ns_clone3_user },
	{ "ns-clone3-plain", ns_clone3_plain },
	{ "ns-setns-self", ns_setns_self },
	{ "ns-setns-init", ns_setns_init },
	{ "ns-setns-pidfd", ns_setns_pidfd },
};

const struct probe_table mount_probes = { table, sizeof table / sizeof table[0] };
