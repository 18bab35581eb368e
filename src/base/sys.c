/* SPDX-License-Identifier: Apache-2.0 */
#include "base/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <linux/capability.h>
#include <linux/keyctl.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"

#ifndef SYS_open_tree
#define SYS_open_tree 428
#define SYS_move_mount 429
#endif
#ifndef SYS_clone3
#define SYS_clone3 435
#endif
#ifndef SYS_close_range
#define SYS_close_range 436
#endif
#ifndef SYS_fsopen
#define SYS_fsopen 430
#define SYS_fsconfig 431
#define SYS_fsmount 432
#endif
#define MOUNT_API_CLOEXEC 1
#define FS_SET_STRING 1
#define FS_CREATE 6
#ifndef SYS_openat2
#define SYS_openat2 437
#endif
#ifndef SYS_mount_setattr
#define SYS_mount_setattr 442
#endif
#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#define SYS_landlock_add_rule 445
#define SYS_landlock_restrict_self 446
#endif

#define LANDLOCK_VERSION_FLAG 1u
#define LANDLOCK_PATH_BENEATH 1

static int result(long r)
{
	return r < 0 ? -errno : (int)r;
}

int sys_openat2(int dirfd, const char *path, uint64_t flags, uint64_t mode, uint64_t resolve)
{
	struct {
		uint64_t flags, mode, resolve;
	} how = { flags, mode, resolve };

	return result(syscall(SYS_openat2, dirfd, path, &how, sizeof(how)));
}

int sys_open_tree(int dirfd, const char *path, unsigned flags)
{
	return result(syscall(SYS_open_tree, dirfd, path, flags | O_CLOEXEC));
}

int sys_move_mount(int from_fd, int to_fd)
{
	return result(syscall(SYS_move_mount, from_fd, "", to_fd, "",
			      SYS_MOVE_F_EMPTY_PATH | SYS_MOVE_T_EMPTY_PATH));
}

int sys_mount_setattr(int dirfd, const char *path, unsigned flags, uint64_t set, uint64_t clear,
		      uint64_t propagation)
{
	struct {
		uint64_t set, clear, propagation, userns_fd;
	} attr = { set, clear, propagation, 0 };

	return result(syscall(SYS_mount_setattr, dirfd, path, flags, &attr, sizeof(attr)));
}

int sys_empty_directory(void)
{
	int fs = result(syscall(SYS_fsopen, "tmpfs", MOUNT_API_CLOEXEC)), tree;

	if (fs < 0)
		return fs;
	tree = result(syscall(SYS_fsconfig, fs, FS_SET_STRING, "mode", "0555", 0));
	if (tree == 0)
		tree = result(syscall(SYS_fsconfig, fs, FS_CREATE, NULL, NULL, 0));
	if (tree == 0)
		tree = result(syscall(SYS_fsmount, fs, MOUNT_API_CLOEXEC, 0));
	(void)close(fs);
	return tree;
}

pid_t sys_clone3(struct sys_clone_args *args)
{
	return result(syscall(SYS_clone3, args, sizeof(*args)));
}

int sys_pidfd_open(pid_t pid)
{
	return result(syscall(SYS_pidfd_open, pid, 0));
}

int sys_pidfd_send_signal(int pidfd, int sig)
{
	return result(syscall(SYS_pidfd_send_signal, pidfd, sig, NULL, 0));
}

int sys_close_range(unsigned first, unsigned last, unsigned flags)
{
	return result(syscall(SYS_close_range, first, last, flags));
}

void sys_close_all_but(unsigned from, const int *keep, size_t n)
{
	for (;;) {
		unsigned next = ~0u;

		for (size_t i = 0; i < n; i++) {
			if (keep[i] >= 0 && (unsigned)keep[i] >= from && (unsigned)keep[i] < next)
				next = (unsigned)keep[i];
		}
		if (next > from)
			(void)sys_close_range(from, next == ~0u ? next : next - 1, 0);
		if (next == ~0u)
			return;
		from = next + 1;
	}
}

int sys_join_session_keyring(void)
{
	return result(syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL));
}

bool sys_seccomp_knows(unsigned flags)
{
	/* flags are looked at before the filter, and there is none */
	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, NULL) < 0 && errno == EFAULT;
}

bool sys_can_seal(void)
{
	/* nothing is to be changed: whoever knows the call is done, or says that we may not */
	return sys_mount_setattr(-1, "", 0, 0, 0, 0) != -ENOSYS;
}

static int landlock_version(void)
{
	return result(syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_VERSION_FLAG));
}

int sys_landlock_abi(void)
{
	int r = landlock_version();

	return r < 0 ? 0 : r;
}

bool sys_landlock_is_off(void)
{
	return landlock_version() == -EOPNOTSUPP;
}

int sys_landlock_create(const struct sys_landlock_ruleset *rules, size_t size)
{
	return result(syscall(SYS_landlock_create_ruleset, rules, size, 0));
}

int sys_landlock_add_path(int ruleset, int path_fd, uint64_t access)
{
	struct __attribute__((packed)) {
		uint64_t access;
		int32_t fd;
	} beneath = { access, path_fd };

	return result(syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_PATH_BENEATH, &beneath, 0));
}

int sys_landlock_restrict(int ruleset)
{
	return result(syscall(SYS_landlock_restrict_self, ruleset, 0));
}

int sys_drop_capabilities(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[2] = { { 0 } };

	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0 && errno != EINVAL)
		return -errno;
	for (unsigned long cap = 0; cap < 64; cap++) {
		if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0) {
			if (errno == EINVAL)
				break; /* past the last one */
			if (errno == EPERM)
				break; /* not ours to lower: no_new_privs makes it moot */
			return -errno;
		}
	}
	return result(syscall(SYS_capset, &header, none));
}

uint64_t sys_now_ns(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

uint64_t sys_now_ms(void)
{
	return sys_now_ns() / 1000000;
}

int sys_random(void *ret, size_t len)
{
	ssize_t n = getrandom(ret, len, 0);

	if (n < 0)
		return -errno;
	return (size_t)n == len ? 0 : -EIO;
}

/* Where a filter hides openat2(), as in a sandbox without a broker: name by name. */
static int walk_direct(const char *path)
{
	int dir = open(*path == '/' ? "/" : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	int r = dir < 0 ? -errno : 0;

	for (path += strspn(path, "/"); r == 0 && *path;) {
		size_t n = strcspn(path, "/");
		char name[NAME_MAX + 1];
		int next;

		if (n > NAME_MAX) {
			r = -ENAMETOOLONG;
			break;
		}
		memcpy(name, path, n);
		name[n] = '\0';
		next = openat(dir, name,
			      O_PATH | O_NOFOLLOW | O_CLOEXEC | (path[n] ? O_DIRECTORY : 0));
		r = next < 0 ? -errno : 0;
		(void)close(dir);
		dir = next;
		path += n + strspn(path + n, "/");
	}
	if (r < 0 && dir >= 0)
		(void)close(dir);
	return r < 0 ? r : dir;
}

int sys_open_direct(const char *path)
{
	int fd = sys_openat2(AT_FDCWD, path, O_PATH | O_CLOEXEC | O_NOFOLLOW, 0,
			     SYS_RESOLVE_NO_SYMLINKS);

	return fd == -ENOSYS ? walk_direct(path) : fd;
}

int sys_rename_new(int dir, const char *from, const char *to)
{
	return result(syscall(SYS_renameat2, dir, from, dir, to, 1 /* RENAME_NOREPLACE */));
}

int sys_program(char *ret, size_t size)
{
	ssize_t n = readlink("/proc/self/exe", ret, size - 1);

	if (n < 0)
		return -errno;
	ret[n] = '\0';
	return 0;
}

int sys_watch_directory(int dir)
{
	int fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	char link[32];
	int r;

	if (fd < 0)
		return -errno;
	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", dir);
	r = result(inotify_add_watch(fd, link, IN_MODIFY | IN_CREATE | IN_MOVED_FROM));
	if (r >= 0)
		return fd;
	(void)close(fd);
	return r;
}

int sys_pipe(int ret[2])
{
	return result(pipe2(ret, O_CLOEXEC));
}

int sys_close_from(int first)
{
	return sys_close_range((unsigned)first, ~0u, 0);
}

#if defined(__linux__) && !defined(__GLIBC__)
extern const ElfW(Ehdr) __ehdr_start __attribute__((visibility("hidden")));

void sys_seal_relocated(void)
{
	const char *base = (const char *)&__ehdr_start;
	const ElfW(Phdr) *ph = (const void *)(base + __ehdr_start.e_phoff);
	uintptr_t page = (uintptr_t)getpagesize();

	for (size_t i = 0; i < __ehdr_start.e_phnum; i++) {
		uintptr_t from = (uintptr_t)base + ph[i].p_vaddr, to = from + ph[i].p_memsz;

		if (ph[i].p_type != PT_GNU_RELRO)
			continue;
		from &= ~(page - 1);
		to &= ~(page - 1);
		(void)mprotect((void *)from, to - from, PROT_READ);
	}
}
#else
void sys_seal_relocated(void)
{
}
#endif
