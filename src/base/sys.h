/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernel interfaces that the C library or the distribution's headers may not
 * know yet: thin wrappers that return a result or -errno, and the few constants
 * they need. Features are found by trying, never by version.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/macros.h"

/* members of struct stat; how a directory is held, nothing else */
#ifdef __APPLE__
#define SYS_ST_MTIM st_mtimespec
#define SYS_ST_CTIM st_ctimespec
#define SYS_O_PATH O_RDONLY
#else
#define SYS_ST_MTIM st_mtim
#define SYS_ST_CTIM st_ctim
#define SYS_O_PATH O_PATH
#endif

/* openat2(2) */
#define SYS_RESOLVE_NO_MAGICLINKS 0x02
#define SYS_RESOLVE_NO_SYMLINKS 0x04

/* mount API */
#define SYS_OPEN_TREE_CLONE 1
#define SYS_AT_RECURSIVE 0x8000
#define SYS_MOVE_F_EMPTY_PATH 0x04
#define SYS_MOVE_T_EMPTY_PATH 0x40
#define SYS_MOUNT_RDONLY 0x01
#define SYS_MOUNT_NOSUID 0x02
#define SYS_MOUNT_NODEV 0x04
#define SYS_MOUNT_NOEXEC 0x08

/* seccomp(2) */
#define SYS_SECCOMP_NEW_LISTENER (1u << 3)
#define SYS_SECCOMP_WAIT_KILLABLE_RECV (1u << 5) /* Linux 5.19 */

/* Landlock */
#define SYS_LANDLOCK_EXECUTE (1ULL << 0)
#define SYS_LANDLOCK_WRITE_FILE (1ULL << 1)
#define SYS_LANDLOCK_READ_FILE (1ULL << 2)
#define SYS_LANDLOCK_READ_DIR (1ULL << 3)
#define SYS_LANDLOCK_REMOVE_DIR (1ULL << 4)
#define SYS_LANDLOCK_REMOVE_FILE (1ULL << 5)
#define SYS_LANDLOCK_MAKE_CHAR (1ULL << 6)
#define SYS_LANDLOCK_MAKE_DIR (1ULL << 7)
#define SYS_LANDLOCK_MAKE_REG (1ULL << 8)
#define SYS_LANDLOCK_MAKE_SOCK (1ULL << 9)
#define SYS_LANDLOCK_MAKE_FIFO (1ULL << 10)
#define SYS_LANDLOCK_MAKE_BLOCK (1ULL << 11)
#define SYS_LANDLOCK_MAKE_SYM (1ULL << 12)
#define SYS_LANDLOCK_REFER (1ULL << 13) /* ABI 2 */
#define SYS_LANDLOCK_TRUNCATE (1ULL << 14) /* ABI 3 */
#define SYS_LANDLOCK_IOCTL_DEV (1ULL << 15) /* ABI 5 */
#define SYS_LANDLOCK_BIND_TCP 1ULL /* ABI 4 */
#define SYS_LANDLOCK_SCOPE_ABSTRACT 1ULL /* ABI 6 */
#define SYS_LANDLOCK_SCOPE_SIGNAL 2ULL /* ABI 6 */

struct sys_landlock_ruleset {
	uint64_t handled_fs, handled_net, scoped;
};

#define SYS_CLONE_INTO_CGROUP 0x200000000ULL

struct sys_clone_args {
	uint64_t flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls, set_tid,
		set_tid_size, cgroup;
};

int sys_openat2(int dirfd, const char *path, uint64_t flags, uint64_t mode, uint64_t resolve);
int sys_open_tree(int dirfd, const char *path, unsigned flags);
int sys_move_mount(int from_fd, int to_fd); /* both by fd, nothing by name */
/* propagation: MS_PRIVATE, or 0 for no change */
int sys_mount_setattr(int dirfd, const char *path, unsigned flags, uint64_t set, uint64_t clear,
		      uint64_t propagation);
/* A new, empty file system that is mounted nowhere yet. */
int sys_empty_directory(void);
pid_t sys_clone3(struct sys_clone_args *args);
int sys_pidfd_open(pid_t pid);
int sys_pidfd_send_signal(int pidfd, int sig);
int sys_close_range(unsigned first, unsigned last, unsigned flags);
/* Descriptors from `from` on, but those in `keep` (-1 = none). */
void sys_close_all_but(unsigned from, const int *keep, size_t n);
int sys_join_session_keyring(void);

/* Does the kernel know these flags of a filter? */
bool sys_seccomp_knows(unsigned flags);
/* Is there mount_setattr(2), without which no tree is made read-only as a whole? */
bool sys_can_seal(void);
int sys_landlock_abi(void); /* 0 = no Landlock */
bool sys_landlock_is_off(void); /* built in, but not enabled when the machine started */
int sys_landlock_create(const struct sys_landlock_ruleset *rules, size_t size);
int sys_landlock_add_path(int ruleset, int path_fd, uint64_t access);
int sys_landlock_restrict(int ruleset);

/*
 * The rest has a twin for macOS, in sys_darwin.c. 0 or -errno, but for what is said otherwise.
 */
/* CLOCK_MONOTONIC */
uint64_t sys_now_ms(void);
uint64_t sys_now_ns(void);
int sys_random(void *ret, size_t len) NODISCARD;
/*
 * A descriptor for the path when it is canonical: no symbolic link in it. Good for fstat() only.
 * Any error means: look at it the slow way.
 */
int sys_open_direct(const char *path);
/* Within a directory; -EEXIST when there is something of the new name. */
int sys_rename_new(int dir, const char *from, const char *to) NODISCARD;
/* This program's own file. */
int sys_program(char *ret, size_t size) NODISCARD;

/*
 * Make read-only what only the relocation of a static program had to write (-z relro), where
 * the C library leaves that undone (musl).
 */
void sys_seal_relocated(void);
/*
 * A descriptor that can be read from, without waiting, when files of the directory are made, moved
 * or written to; -ENOSYS where there is nothing of the kind.
 */
int sys_watch_directory(int dir);
/* Both ends close-on-exec. */
int sys_pipe(int ret[2]) NODISCARD;
/* Closes all descriptors from this one on. */
int sys_close_from(int first) NODISCARD;

/* All capability sets, the bounding set and the ambient set emptied. */
int sys_drop_capabilities(void);
