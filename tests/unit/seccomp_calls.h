/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls and what the filter says to them, on every architecture. Written by hand, from what the
 * sandbox promises and not from the rules. Included by t_seccomp.c.
 */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "sandbox/native/seccomp.h"

#define ERR(code) (SECCOMP_RET_ERRNO | (uint32_t)(code))
#define OK SECCOMP_RET_ALLOW
#define ASK SECCOMP_RET_USER_NOTIF
#define KILL SECCOMP_RET_KILL_PROCESS
#define HIGH (1ULL << 32)

static const struct {
	uint32_t expected;
	uint32_t with_broker; /* 0: the same */
	enum seccomp_call call;
	uint64_t args[3];
} calls[] = {
	{ OK, 0, CALL_read, { 0 } },
	{ OK, 0, CALL_write, { ~0ULL, ~0ULL, ~0ULL } },
	{ OK, 0, CALL_memfd_create, { 0 } },
	{ OK, 0, CALL_execveat, { 0 } },
	{ OK, 0, CALL_ptrace, { 0 } },
	{ OK, 0, CALL_seccomp, { 0 } },
	{ OK, ASK, CALL_landlock_restrict_self, { 0 } },
	{ OK, 0, CALL_rseq, { 0 } },
	{ OK, 0, CALL_mseal, { 0 } },
	{ OK, 0, CALL_name_to_handle_at, { 0 } },
	{ OK, 0, CALL_file_getattr, { 0 } },
	{ ERR(ENOSYS), 0, CALL_file_setattr, { 0 } },
	{ ERR(ENOSYS), 0, CALL_setxattrat, { 0 } },
	{ ERR(EPERM), 0, CALL_mount, { 0 } },
	{ ERR(EPERM), 0, CALL_umount2, { 0 } },
	{ ERR(EPERM), 0, CALL_pivot_root, { 0 } },
	{ ERR(EPERM), 0, CALL_setns, { 0 } },
	{ ERR(EPERM), 0, CALL_open_tree, { 0 } },
	{ ERR(EPERM), 0, CALL_open_tree_attr, { 0 } },
	{ ERR(EPERM), 0, CALL_mount_setattr, { 0 } },
	{ ERR(EPERM), 0, CALL_bpf, { 0 } },
	{ ERR(EPERM), 0, CALL_perf_event_open, { 0 } },
	{ ERR(EPERM), 0, CALL_userfaultfd, { 0 } },
	{ ERR(EPERM), 0, CALL_kexec_load, { 0 } },
	{ ERR(EPERM), 0, CALL_finit_module, { 0 } },
	{ ERR(EPERM), 0, CALL_swapon, { 0 } },
	{ ERR(EPERM), 0, CALL_quotactl, { 0 } },
	{ ERR(EPERM), 0, CALL_fanotify_init, { 0 } },
	{ ERR(EPERM), 0, CALL_keyctl, { 0 } },
	{ ERR(EPERM), 0, CALL_add_key, { 0 } },
	{ ERR(EPERM), 0, CALL_request_key, { 0 } },
	{ ERR(EPERM), 0, CALL_open_by_handle_at, { 0 } },
	{ ERR(EPERM), 0, CALL_kcmp, { 0 } },
	{ ERR(EPERM), 0, CALL_syslog, { 0 } },
	{ ERR(EPERM), 0, CALL_reboot, { 0 } },
	{ ERR(EPERM), 0, CALL_sethostname, { 0 } },
	{ ERR(ENOSYS), 0, CALL_clone3, { 0 } },
	{ ERR(ENOSYS), 0, CALL_io_uring_setup, { 0 } },
	{ ERR(ENOSYS), 0, CALL_io_uring_enter, { 0 } },
	{ ERR(ENOSYS), 0, CALL_io_uring_register, { 0 } },

	/* ioctl: the kernel sees 32 bits of the request, whatever the register holds. */
	{ OK, 0, CALL_ioctl, { 0, TIOCGWINSZ } },
	{ OK, 0, CALL_ioctl, { TIOCSTI, 0, TIOCSTI } },
	{ ERR(EPERM), 0, CALL_ioctl, { 0, TIOCSTI } },
	{ ERR(EPERM), 0, CALL_ioctl, { 0, TIOCSTI | HIGH } },
	{ ERR(EPERM), 0, CALL_ioctl, { ~0ULL, TIOCSTI | 0xffffffff00000000 } },
	{ ERR(EPERM), 0, CALL_ioctl, { 0, TIOCLINUX } },
	{ ERR(EPERM), 0, CALL_ioctl, { 0, TIOCLINUX | HIGH } },
	{ ERR(EPERM), 0, CALL_ioctl, { 0, TIOCSETD | HIGH << 7 } },
	{ OK, 0, CALL_ioctl, { 0, TIOCSTI | 0x10000 } },

	/* clone: 32 bits of flags as well; threads and fork must work. */
	{ OK, 0, CALL_clone, { SIGCHLD } },
	{ OK, 0, CALL_clone, { 0x3d0f00 } },
	{ OK, 0, CALL_clone, { CLONE_VFORK | CLONE_VM | CLONE_PIDFD | SIGCHLD } },
	{ OK, 0, CALL_clone, { 0x80000000 | HIGH } },
	{ ERR(EPERM), 0, CALL_clone, { CLONE_NEWUSER | SIGCHLD } },
	{ ERR(EPERM), 0, CALL_clone, { CLONE_NEWUSER | HIGH } },

	/* unshare: a long, and only what is known to be no namespace. */
	{ OK, 0, CALL_unshare, { 0 } },
	{ OK, 0, CALL_unshare, { CLONE_FS | CLONE_FILES | CLONE_SYSVSEM } },
	{ ERR(EPERM), 0, CALL_unshare, { CLONE_FS | CLONE_NEWNS } },
	{ ERR(EPERM), 0, CALL_unshare, { CLONE_NEWTIME } },
	{ ERR(EPERM), 0, CALL_unshare, { CLONE_FS | HIGH } },
	{ ERR(EPERM), 0, CALL_unshare, { 0x100000 } }, /* UNSHARE_EMPTY_MNTNS */

	{ OK, 0, CALL_personality, { 0 } },
	{ OK, 0, CALL_personality, { 0x8 } },
	{ OK, 0, CALL_personality, { 0x20000 } },
	{ OK, 0, CALL_personality, { 0x20008 } },
	{ OK, 0, CALL_personality, { 0xffffffff } },
	{ OK, 0, CALL_personality, { ~0ULL } },
	{ ERR(EPERM), 0, CALL_personality, { 0x0040000 } }, /* ADDR_NO_RANDOMIZE */
	{ ERR(EPERM), 0, CALL_personality, { 0x0400000 } }, /* READ_IMPLIES_EXEC */
	{ ERR(EPERM), 0, CALL_personality, { 0x0040000 | HIGH } },

	{ OK, 0, CALL_socket, { AF_UNIX, SOCK_SEQPACKET } },
	{ OK, 0, CALL_socket, { AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 6 } },
	{ OK, 0, CALL_socket, { AF_INET6 | HIGH, SOCK_DGRAM, 17 } },
	{ OK, 0, CALL_socket, { AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, 0 } },
	{ OK, 0, CALL_socket, { AF_NETLINK, SOCK_RAW, HIGH } },
	{ ERR(EAFNOSUPPORT), 0, CALL_socket, { AF_NETLINK, SOCK_RAW, 15 } },
	{ ERR(EAFNOSUPPORT), 0, CALL_socket, { AF_NETLINK, SOCK_RAW, 15 | HIGH } },
	{ ERR(EAFNOSUPPORT), 0, CALL_socket, { AF_VSOCK | HIGH, SOCK_STREAM } },
	{ ERR(EAFNOSUPPORT), 0, CALL_socket, { AF_INET, SOCK_SEQPACKET } },
	{ ERR(EAFNOSUPPORT), 0, CALL_socket, { AF_INET6, SOCK_DCCP | SOCK_CLOEXEC } },
	{ ERR(EPROTONOSUPPORT), 0, CALL_socket, { AF_INET, SOCK_STREAM, 132 } },
	{ ERR(EPROTONOSUPPORT), 0, CALL_socket, { AF_INET6, SOCK_DGRAM, 115 | HIGH } },
	{ OK, ERR(EPROTONOSUPPORT), CALL_socketpair, { AF_UNIX, SOCK_DGRAM } },
	{ ERR(EAFNOSUPPORT), 0, CALL_socketpair, { AF_TIPC, SOCK_DGRAM } },

	/* What the broker gets. Reading stays free of it. */
	{ OK, OK, CALL_openat, { 0, 0, O_RDONLY | O_CLOEXEC | O_DIRECTORY | O_NOFOLLOW } },
	{ OK, OK, CALL_openat, { 0, 0, O_RDONLY | HIGH | HIGH << 9 } },
	{ OK, OK, CALL_openat, { O_RDWR, O_CREAT, O_PATH } },
	{ OK, ASK, CALL_openat, { 0, 0, O_WRONLY } },
	{ OK, ASK, CALL_openat, { 0, 0, O_RDWR | HIGH } },
	{ OK, ASK, CALL_openat, { 0, 0, O_ACCMODE } },
	{ OK, ASK, CALL_openat, { 0, 0, O_CREAT } },
	{ OK, ASK, CALL_openat, { 0, 0, O_TRUNC | O_CLOEXEC } },
	{ OK, ASK, CALL_openat, { 0, 0, 020000000 } },
	{ OK, ASK, CALL_openat, { 0, 0, O_TMPFILE | O_RDWR } },
	{ OK, ASK, CALL_openat2, { 0 } },
	{ OK, ASK, CALL_mkdirat, { 0 } },
	{ OK, ASK, CALL_mknodat, { 0 } },
	{ OK, ASK, CALL_symlinkat, { 0 } },
	{ OK, ASK, CALL_linkat, { 0 } },
	{ OK, ASK, CALL_renameat, { 0 } },
	{ OK, ASK, CALL_renameat2, { 0 } },
	{ OK, ASK, CALL_truncate, { 0 } },
	{ OK, ASK, CALL_bind, { 0 } },
	{ OK, ASK, CALL_umask, { 0 } },
	{ OK, ASK, CALL_chroot, { 0 } },
	{ OK, ASK, CALL_unlinkat, { 0 } },
	{ OK, ASK, CALL_fchmodat, { 0 } },
	{ OK, ASK, CALL_fchownat, { 0 } },
	{ OK, 0, CALL_utimensat, { 0 } },
	{ OK, ASK, CALL_utimensat, { 0, 1 } },
	{ OK, ASK, CALL_setxattr, { 0 } },
	{ OK, 0, CALL_execve, { 0 } },
	{ OK, OK, CALL_ftruncate, { 0 } },
	{ OK, ASK, CALL_connect, { 0 } },
};
