// SPDX-License-Identifier: Apache-2.0
/*
 * What the command may ask of the kernel: an allow-list, as container runtimes have it, wide
 * enough for compilers, interpreters, debuggers, version control and their test suites.
 *
 * The filter is the second wall. What a call may reach is decided by namespaces, mounts, the
 * dropped capabilities and Landlock; here the kernel's own attack surface is made smaller, and
 * the few things refused which none of those stop: input into the terminal, new namespaces
 * (which would give back capabilities inside), calls whose arguments a filter cannot see.
 *
 * Every syscall in syscalls.def has a row, so that what is left out is left out knowingly: its
 * group says why. EPERM is for what programs try and can do without; ENOSYS for what they
 * replace by an older call when the kernel does not know it.
 *
 * Trust boundary: everything in struct seccomp_data comes from the command. Memory behind its
 * pointers is never looked at; another thread could change it after the look.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <sys/ioctl.h>
#include <sys/personality.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "sandbox/native/direct.h"
#include "sandbox/native/seccomp_rows.h"

/* What makes an open one that the broker performs; O_TMPFILE without its O_DIRECTORY. */
#define WRITE_INTENT (O_ACCMODE | O_CREAT | O_TRUNC | (O_TMPFILE & ~O_DIRECTORY))

/* clone() has no bit for CLONE_NEWTIME: its place belongs to the exit signal. */
#define CLONE_NAMESPACES                                                                           \
	(CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER |             \
	 CLONE_NEWPID | CLONE_NEWNET)

/* A list of what is known to be no namespace, since new bits get their meaning here first. */
#define UNSHARE_PLAIN                                                                              \
	(CLONE_FS | CLONE_FILES | CLONE_SYSVSEM | CLONE_THREAD | CLONE_SIGHAND | CLONE_VM)

#define PERSONALITY_QUERY 0xffffffff

#define PROTO_DCCP 33
#define PROTO_L2TP 115
#define PROTO_SCTP 132
#define PROTO_SMC 256

/* Types 1 to 3: SOCK_STREAM, SOCK_DGRAM, SOCK_RAW (which the kernel refuses without rights). */
#define SOCK_TYPES_ABOVE_RAW 0xc

/* A file with these bits would run outside with the rights of its owner or group. */
#define NO_SETUID(name, n)                                                                         \
	DENY(name, EPERM, INT_HAS_ALL(n, S_ISUID)), DENY(name, EPERM, INT_HAS_ALL(n, S_ISGID))
/* The same for a file that is made by opening it: the broker makes it without them, or refuses. */
#define SPECIAL(name, ...) ROW(name, SECCOMP_SPECIAL, __VA_ARGS__)
#define SPECIAL_IF(name, flags, bit, mode)                                                         \
	SPECIAL(name, INT_HAS_ALL(flags, bit), INT_HAS_ALL(mode, S_ISUID)),                        \
		SPECIAL(name, INT_HAS_ALL(flags, bit), INT_HAS_ALL(mode, S_ISGID))
#define SPECIAL_OPEN(name, flags, mode)                                                            \
	SPECIAL_IF(name, flags, O_CREAT, mode),                                                    \
		SPECIAL_IF(name, flags, O_TMPFILE & ~O_DIRECTORY, mode)

/* clang-format off */
static const struct seccomp_rule rules[] = {
#define IN GROUP_IO
	ALLOW(read), ALLOW(write), ALLOW(readv), ALLOW(writev), ALLOW(pread64), ALLOW(pwrite64),
	ALLOW(preadv), ALLOW(pwritev), ALLOW(preadv2), ALLOW(pwritev2), ALLOW(close),
	ALLOW(close_range), ALLOW(lseek), ALLOW(dup), ALLOW(dup2), ALLOW(dup3), ALLOW(pipe),
	ALLOW(pipe2), ALLOW(fcntl), ALLOW(flock), ALLOW(fsync), ALLOW(fdatasync), ALLOW(sync),
	ALLOW(syncfs), ALLOW(sync_file_range), RESERVE(fallocate), ALLOW(ftruncate), ALLOW(fadvise64),
	ALLOW(readahead), ALLOW(sendfile), ALLOW(splice), ALLOW(tee), ALLOW(vmsplice),
	ALLOW(copy_file_range), ALLOW(getdents), ALLOW(getdents64), ALLOW(io_setup),
	ALLOW(io_destroy), ALLOW(io_submit), ALLOW(io_cancel), ALLOW(io_getevents),
	ALLOW(io_pgetevents), MEMFD(memfd_create), ALLOW(cachestat),
#undef IN

	/*
	 * The tty layer. The controlling terminal is kept, so what a process can do to it beyond
	 * reading and writing is stopped here: typing into the shell that comes after it, pasting
	 * on a console, loading a line discipline.
	 */
#define IN GROUP_TERMINAL
	DENY(ioctl, EPERM, INT_IS(1, TIOCSTI)),
	DENY(ioctl, EPERM, INT_IS(1, TIOCLINUX)),
	DENY(ioctl, EPERM, INT_IS(1, TIOCSETD)),
#undef IN
	/*
	 * File systems have commands of their own by which names are made (subvolumes, snapshots)
	 * and attributes changed, for which a descriptor to read is enough, and which neither mounts
	 * nor Landlock are asked about.
	 */
#define IN GROUP_IO
	PLAIN_IOCTLS,
#undef IN
#define IN GROUP_ATTRIBUTES
	DENY(ioctl, ENOTTY, INT_MASKED_IS(1, IOCTL_LETTER, LETTER_BTRFS)),
	DENY(ioctl, ENOTTY, INT_MASKED_IS(1, IOCTL_LETTER, LETTER_BCACHEFS)),
	DENY(ioctl, ENOTTY, INT_MASKED_IS(1, IOCTL_LETTER, LETTER_EXT4)),
	DENY(ioctl, ENOTTY, INT_MASKED_IS(1, IOCTL_LETTER, LETTER_XFS)),
	DENY(ioctl, ENOTTY, INT_MASKED_IS(1, IOCTL_LETTER, LETTER_F2FS)),
#undef IN
#define IN GROUP_IO
	ALLOW(ioctl),
#undef IN

#define IN GROUP_PATHS
	ALLOW(stat), ALLOW(lstat), ALLOW(fstat), ALLOW(newfstatat), ALLOW(statx), ALLOW(statfs),
	ALLOW(fstatfs), ALLOW(access), ALLOW(faccessat), ALLOW(faccessat2), ALLOW(readlink),
	ALLOW(readlinkat), ALLOW(getcwd), ALLOW(chdir), ALLOW(fchdir), NOTIFY(fchown),
	ALLOW(futimesat), ALLOW(getxattr), ALLOW(lgetxattr), ALLOW(fgetxattr),
	ALLOW(getxattrat), NOTIFY(fsetxattr),
	ALLOW(listxattr), ALLOW(llistxattr), ALLOW(flistxattr), ALLOW(listxattrat),
	NOTIFY(fremovexattr),
	ALLOW(file_getattr), ALLOW(name_to_handle_at), ALLOW(statmount),
	ALLOW(listmount),
	/* The broker's part: what creates or changes a name, and opens that may write. */
	WATCH(open, INT_HAS_NONE(1, WRITE_INTENT)), SPECIAL_OPEN(open, 1, 2), NOTIFY(open),
	WATCH(openat, INT_HAS_NONE(2, WRITE_INTENT)), SPECIAL_OPEN(openat, 2, 3),
	DIRECT(openat), NOTIFY(openat),
	ROW(openat2, SECCOMP_OPENAT2), /* its flags are behind a pointer */
	SPECIAL(creat, INT_HAS_ALL(1, S_ISUID)), SPECIAL(creat, INT_HAS_ALL(1, S_ISGID)), NOTIFY(creat),
	DIRECT(mkdir), NOTIFY(mkdir), DIRECT(mkdirat), NOTIFY(mkdirat),
	NOTIFY(symlink), NOTIFY(symlinkat), NOTIFY(link), NOTIFY(linkat), NOTIFY(rename),
	NOTIFY(renameat), NOTIFY(renameat2), NOTIFY(truncate),
	/* Performed too: by a descriptor they reach files outside. */
	NOTIFY(chown), NOTIFY(lchown), NOTIFY(fchownat), NOTIFY(setxattr), NOTIFY(lsetxattr),
	NOTIFY(removexattr), NOTIFY(lremovexattr),
	/* Decided by the kernel alone; the broker tells what was refused. */
	NOTIFY(rmdir), NOTIFY(unlink), NOTIFY(unlinkat), NOTIFY(utime), NOTIFY(utimes),
	ALLOW(utimensat, LONG_HAS_ONLY(1, 0)), NOTIFY(utimensat), /* without a path: by descriptor */
	/* Not its to decide, but it must know of them to do the others right. */
	NOTIFY(umask), NOTIFY(chroot),
#undef IN

#define IN GROUP_HARDENING
	NO_SETUID(chmod, 1),
#undef IN
#define IN GROUP_PATHS
	NOTIFY(chmod),
#undef IN
#define IN GROUP_HARDENING
	NO_SETUID(fchmod, 1),
#undef IN
#define IN GROUP_PATHS
	NOTIFY(fchmod),
#undef IN
#define IN GROUP_HARDENING
	NO_SETUID(fchmodat, 2),
#undef IN
#define IN GROUP_PATHS
	NOTIFY(fchmodat),
#undef IN
#define IN GROUP_HARDENING
	NO_SETUID(fchmodat2, 2),
#undef IN
#define IN GROUP_PATHS
	NOTIFY(fchmodat2),
#undef IN
#define IN GROUP_HARDENING
	NO_SETUID(mknod, 1),
#undef IN
#define IN GROUP_PATHS
	NOTIFY(mknod),
#undef IN
#define IN GROUP_HARDENING
	NO_SETUID(mknodat, 2),
#undef IN
#define IN GROUP_PATHS
	NOTIFY(mknodat),
#undef IN

#define IN GROUP_MEMORY
	ALLOW(mmap), ALLOW(munmap), ALLOW(mprotect), ALLOW(mremap), ALLOW(msync), ALLOW(mincore),
	ALLOW(madvise), ALLOW(process_madvise), ALLOW(brk), ALLOW(mlock), ALLOW(mlock2),
	ALLOW(munlock), ALLOW(mlockall), ALLOW(munlockall), ALLOW(remap_file_pages), ALLOW(mbind),
	ALLOW(set_mempolicy), ALLOW(get_mempolicy), ALLOW(set_mempolicy_home_node),
	ALLOW(pkey_mprotect), ALLOW(pkey_alloc), ALLOW(pkey_free), MEMFD(memfd_secret),
	ALLOW(map_shadow_stack), ALLOW(mseal),
#undef IN

#define IN GROUP_PROCESS
	ALLOW(fork), ALLOW(vfork), WATCH(execve), WATCH(execveat), ALLOW(exit), ALLOW(exit_group),
	ALLOW(wait4), ALLOW(waitid), ALLOW(gettid), ALLOW(getpid), ALLOW(getppid),
	ALLOW(set_tid_address), ALLOW(futex), ALLOW(futex_waitv), ALLOW(futex_wake),
	ALLOW(futex_wait), ALLOW(futex_requeue), ALLOW(set_robust_list), ALLOW(get_robust_list),
	ALLOW(rseq), ALLOW(membarrier), ALLOW(arch_prctl), ALLOW(modify_ldt), ALLOW(pidfd_open),
	ALLOW(process_mrelease), ALLOW(uretprobe), ALLOW(uprobe),
	ALLOW(clone, INT_HAS_NONE(0, CLONE_NAMESPACES)),
#undef IN
#define IN GROUP_NAMESPACES
	DENY(clone, EPERM),
#undef IN
#define IN GROUP_PROCESS
	ALLOW(unshare, LONG_HAS_ONLY(0, UNSHARE_PLAIN)),
#undef IN
#define IN GROUP_NAMESPACES
	DENY(unshare, EPERM),
	DENY(setns, EPERM),
#undef IN

#define IN GROUP_PROCESS
	ALLOW(personality, INT_IS(0, PER_LINUX)),
	ALLOW(personality, INT_IS(0, PER_LINUX32)),
	ALLOW(personality, INT_IS(0, UNAME26)),
	ALLOW(personality, INT_IS(0, PER_LINUX32 | UNAME26)),
	ALLOW(personality, INT_IS(0, PERSONALITY_QUERY)),
#undef IN
#define IN GROUP_HARDENING
	DENY(personality, EPERM),
#undef IN

#define IN GROUP_IDENTITY
	ALLOW(getuid), ALLOW(geteuid), ALLOW(getgid), ALLOW(getegid), ALLOW(getresuid),
	ALLOW(getresgid), ALLOW(getgroups), ALLOW(setuid), ALLOW(setgid), ALLOW(setreuid),
	ALLOW(setregid), ALLOW(setresuid), ALLOW(setresgid), ALLOW(setgroups), ALLOW(setfsuid),
	ALLOW(setfsgid), ALLOW(capget), ALLOW(capset), ALLOW(getpgid), ALLOW(setpgid),
	ALLOW(getpgrp), ALLOW(getsid), ALLOW(setsid), ALLOW(getrlimit), ALLOW(setrlimit),
	ALLOW(prlimit64), ALLOW(getrusage),
#undef IN

#define IN GROUP_SIGNALS
	ALLOW(kill), ALLOW(tkill), ALLOW(tgkill), ALLOW(rt_sigaction), ALLOW(rt_sigprocmask),
	ALLOW(rt_sigreturn), ALLOW(rt_sigpending), ALLOW(rt_sigtimedwait), ALLOW(rt_sigqueueinfo),
	ALLOW(rt_tgsigqueueinfo), ALLOW(rt_sigsuspend), ALLOW(sigaltstack), ALLOW(signalfd),
	ALLOW(signalfd4), ALLOW(pause), ALLOW(restart_syscall), ALLOW(pidfd_send_signal),
#undef IN

#define IN GROUP_TIME
	ALLOW(nanosleep), ALLOW(clock_nanosleep), ALLOW(clock_gettime), ALLOW(clock_getres),
	ALLOW(gettimeofday), ALLOW(time), ALLOW(times), ALLOW(alarm), ALLOW(getitimer),
	ALLOW(setitimer), ALLOW(timer_create), ALLOW(timer_settime), ALLOW(timer_gettime),
	ALLOW(timer_getoverrun), ALLOW(timer_delete), ALLOW(timerfd_create), ALLOW(timerfd_settime),
	ALLOW(timerfd_gettime),
#undef IN

#define IN GROUP_SCHEDULING
	ALLOW(sched_yield), ALLOW(getpriority), ALLOW(setpriority), ALLOW(ioprio_get),
	ALLOW(ioprio_set), ALLOW(getcpu), ALLOW(sched_getaffinity), PINNED(sched_setaffinity),
	ALLOW(sched_getparam), ALLOW(sched_setparam), ALLOW(sched_getscheduler),
	ALLOW(sched_setscheduler), ALLOW(sched_getattr), ALLOW(sched_setattr),
	ALLOW(sched_get_priority_max), ALLOW(sched_get_priority_min), ALLOW(sched_rr_get_interval),
#undef IN

#define IN GROUP_NETWORK
	NOTIFY(connect), /* a unix socket that is a file: the path decides */
	LISTEN(listen), ALLOW(accept), ALLOW(accept4), ALLOW(shutdown),
	ALLOW(sendto), ALLOW(recvfrom), ALLOW(sendmsg), ALLOW(recvmsg), ALLOW(sendmmsg),
	ALLOW(recvmmsg), ALLOW(getsockname), ALLOW(getpeername), ALLOW(getsockopt),
	ALLOW(setsockopt),
	NOTIFY(bind), /* an AF_UNIX address makes a file, and it is behind a pointer */
	/* these could send to a path without connecting */
	NO_DATAGRAMS(socketpair, INT_IS(0, AF_UNIX), INT_TYPE_IS(1, SOCK_DGRAM)),
	NO_DATAGRAMS(socketpair, INT_IS(0, AF_UNIX), INT_TYPE_IS(1, SOCK_RAW)),
	ALLOW(socketpair, INT_IS(0, AF_UNIX)),
#undef IN
#define IN GROUP_FAMILIES
	DENY(socketpair, EAFNOSUPPORT),
#undef IN
#define IN GROUP_NETWORK
	NO_DATAGRAMS(socket, INT_IS(0, AF_UNIX), INT_TYPE_IS(1, SOCK_DGRAM)),
	NO_DATAGRAMS(socket, INT_IS(0, AF_UNIX), INT_TYPE_IS(1, SOCK_RAW)),
	UNIX(socket, INT_IS(0, AF_UNIX)),
	ALLOW(socket, INT_IS(0, AF_NETLINK), INT_IS(2, 0)), /* NETLINK_ROUTE: getifaddrs() */
#undef IN
	/* Within AF_INET too: protocols that any user's socket() would load as a module. */
#define IN GROUP_FAMILIES
	DENY(socket, EPROTONOSUPPORT, INT_IS(2, PROTO_DCCP)),
	DENY(socket, EPROTONOSUPPORT, INT_IS(2, PROTO_L2TP)),
	DENY(socket, EPROTONOSUPPORT, INT_IS(2, PROTO_SCTP)),
	DENY(socket, EPROTONOSUPPORT, INT_IS(2, PROTO_SMC)),
#undef IN
#define IN GROUP_NETWORK
	ALLOW(socket, INT_IS(0, AF_INET), INT_HAS_NONE(1, SOCK_TYPES_ABOVE_RAW)),
	ALLOW(socket, INT_IS(0, AF_INET6), INT_HAS_NONE(1, SOCK_TYPES_ABOVE_RAW)),
#undef IN
#define IN GROUP_FAMILIES
	DENY(socket, EAFNOSUPPORT),
#undef IN

	/* In an IPC namespace of its own. */
#define IN GROUP_IPC
	ALLOW(shmget), ALLOW(shmat), ALLOW(shmdt), ALLOW(shmctl), ALLOW(semget), ALLOW(semop),
	ALLOW(semtimedop), ALLOW(semctl), ALLOW(msgget), ALLOW(msgsnd), ALLOW(msgrcv),
	ALLOW(msgctl), ALLOW(mq_open), ALLOW(mq_unlink), ALLOW(mq_timedsend),
	ALLOW(mq_timedreceive), ALLOW(mq_notify), ALLOW(mq_getsetattr),
#undef IN

#define IN GROUP_EVENTS
	ALLOW(poll), ALLOW(ppoll), ALLOW(select), ALLOW(pselect6), ALLOW(epoll_create),
	ALLOW(epoll_create1), ALLOW(epoll_ctl), ALLOW(epoll_wait), ALLOW(epoll_pwait),
	ALLOW(epoll_pwait2), ALLOW(eventfd), ALLOW(eventfd2), ALLOW(inotify_init),
	ALLOW(inotify_init1), ALLOW(inotify_add_watch), ALLOW(inotify_rm_watch),
#undef IN

	/* Filters and rulesets only add to ours. A second listener: the kernel says EBUSY. */
#define IN GROUP_CONFINE
	ALLOW(prctl), ALLOW(seccomp), ALLOW(landlock_create_ruleset), ALLOW(landlock_add_rule),
	NOTIFY(landlock_restrict_self), /* the broker follows into the domain */
#undef IN

#define IN GROUP_SYSTEM
	ALLOW(uname), ALLOW(sysinfo), ALLOW(getrandom), ALLOW(lsm_get_self_attr),
	ALLOW(lsm_list_modules),
#undef IN

	/* The pid namespace and Landlock keep it inside; PTRACE_O_SUSPEND_SECCOMP needs rights. */
#define IN GROUP_TRACE
	ALLOW(ptrace), ALLOW(process_vm_readv), ALLOW(process_vm_writev), ALLOW(pidfd_getfd),
#undef IN

	/* --- knowingly excluded, reasons below ------------------------------------------------ */

#define IN GROUP_MOUNTS
	DENY(mount, EPERM), DENY(umount2, EPERM), DENY(pivot_root, EPERM), DENY(open_tree, EPERM),
	DENY(open_tree_attr, EPERM), DENY(move_mount, EPERM), DENY(fsopen, EPERM),
	DENY(fsconfig, EPERM), DENY(fsmount, EPERM), DENY(fspick, EPERM),
	DENY(mount_setattr, EPERM),
#undef IN

	/* What they change is changed by the broker; newer than the programs that would need them. */
#define IN GROUP_OPAQUE
	DENY(setxattrat, ENOSYS), DENY(removexattrat, ENOSYS), DENY(file_setattr, ENOSYS),
#undef IN

	/* C libraries fall back to clone(), whose flags are in a register; libuv to threads. */
#define IN GROUP_OPAQUE
	DENY(clone3, ENOSYS), DENY(io_uring_setup, ENOSYS), DENY(io_uring_enter, ENOSYS),
	DENY(io_uring_register, ENOSYS),
#undef IN

	/* name_to_handle_at() is allowed above: it tells no more than an inode number does. */
#define IN GROUP_HANDLES
	DENY(open_by_handle_at, EPERM),
#undef IN

#define IN GROUP_KERNEL
	DENY(bpf, EPERM), DENY(init_module, EPERM), DENY(finit_module, EPERM),
	DENY(delete_module, EPERM), DENY(kexec_load, EPERM), DENY(kexec_file_load, EPERM),
	DENY(iopl, EPERM), DENY(ioperm, EPERM), DENY(userfaultfd, EPERM),
#undef IN

#define IN GROUP_OBSERVE
	DENY(perf_event_open, EPERM), DENY(syslog, EPERM), DENY(fanotify_init, EPERM),
	DENY(fanotify_mark, EPERM), DENY(kcmp, EPERM), DENY(lookup_dcookie, EPERM),
	DENY(move_pages, EPERM), DENY(migrate_pages, EPERM),
#undef IN

#define IN GROUP_KEYS
	DENY(add_key, EPERM), DENY(request_key, EPERM), DENY(keyctl, EPERM),
#undef IN

#define IN GROUP_CLOCK
	DENY(settimeofday, EPERM), DENY(clock_settime, EPERM), DENY(clock_adjtime, EPERM),
	DENY(adjtimex, EPERM),
#undef IN

#define IN GROUP_HOST
	DENY(reboot, EPERM), DENY(swapon, EPERM), DENY(swapoff, EPERM), DENY(acct, EPERM),
	DENY(quotactl, EPERM), DENY(quotactl_fd, EPERM), DENY(sethostname, EPERM),
	DENY(setdomainname, EPERM), DENY(vhangup, EPERM), DENY(nfsservctl, EPERM),
	DENY(lsm_set_self_attr, EPERM),
#undef IN

#define IN GROUP_OBSOLETE
	DENY(_sysctl, ENOSYS), DENY(uselib, ENOSYS), DENY(ustat, ENOSYS), DENY(sysfs, ENOSYS),
	DENY(create_module, ENOSYS), DENY(get_kernel_syms, ENOSYS), DENY(query_module, ENOSYS),
	DENY(getpmsg, ENOSYS), DENY(putpmsg, ENOSYS), DENY(afs_syscall, ENOSYS),
	DENY(tuxcall, ENOSYS), DENY(security, ENOSYS), DENY(vserver, ENOSYS),
	DENY(set_thread_area, ENOSYS), DENY(get_thread_area, ENOSYS), DENY(epoll_ctl_old, ENOSYS),
	DENY(epoll_wait_old, ENOSYS),
#undef IN
};
/* clang-format on */

static const char *const reasons[GROUP_COUNT] = {
	[GROUP_TERMINAL] = "would type into the terminal, or change how the kernel drives it",
	[GROUP_HARDENING] = "would turn off protections such as address randomisation",
	[GROUP_FAMILIES] = "only unix, IPv4, IPv6 and netlink route sockets exist in the sandbox",
	[GROUP_ATTRIBUTES] = "would change attributes of files, wherever they lie",
	[GROUP_SHARED_IPC] = "without an ipc namespace it is shared with processes outside",
	[GROUP_OTHERS] = "without a pid namespace it reaches processes outside",
	[GROUP_MOUNTS] = "would change the mount tree that the policy is made of",
	[GROUP_NAMESPACES] = "a namespace of its own would give the command capabilities in it",
	[GROUP_OPAQUE] = "its arguments are in memory, where no filter can check them",
	[GROUP_HANDLES] = "opens files past the directories that lead to them",
	[GROUP_KERNEL] = "runs code in the kernel, halts it midway, or reaches the hardware",
	[GROUP_OBSERVE] = "watches or moves what belongs to other processes and the kernel",
	[GROUP_KEYS] = "kernel keyrings are shared with processes outside",
	[GROUP_CLOCK] = "the clock belongs to the whole machine",
	[GROUP_HOST] = "administers the machine",
	[GROUP_OBSOLETE] = "no kernel in use has it",
};

struct seccomp_rules seccomp_builtin_rules(void)
{
	return (struct seccomp_rules){ rules, ARRAY_LEN(rules) };
}

const char *seccomp_group_reason(enum seccomp_group group)
{
	return reasons[group];
}
