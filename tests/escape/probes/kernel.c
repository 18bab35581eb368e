/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel's surface: calls that no command of a developer needs and that have been
 * the way out before, other doors to the same calls (32-bit entry, x32), keyrings,
 * System V memory, devices and the kernel's own files. Where a call would change
 * the machine its arguments are wrong on purpose (see probe.h).
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/keyctl.h>
#include <linux/perf_event.h>
#include <mqueue.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "probe.h"

#define PROBE(name) static int name(const struct context *c, char *detail, size_t size)
#define UNUSED_ARGS ((void)c, (void)detail, (void)size)

static int outcome(long rc)
{
	return rc < 0 ? -errno : 0;
}

/* --- single calls --- */

PROBE(sys_bpf)
{
	union bpf_attr attr = {
		.map_type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = 4, .max_entries = 1
	};

	UNUSED_ARGS;
	return outcome(syscall(SYS_bpf, BPF_MAP_CREATE, &attr, sizeof attr));
}

PROBE(sys_perf)
{
	struct perf_event_attr attr = { .type = PERF_TYPE_SOFTWARE,
					.size = sizeof attr,
					.config = PERF_COUNT_SW_TASK_CLOCK,
					.disabled = 1,
					.exclude_kernel = 1,
					.exclude_hv = 1 };

	UNUSED_ARGS;
	return outcome(syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0));
}

PROBE(sys_userfaultfd)
{
	UNUSED_ARGS;
	return outcome(syscall(SYS_userfaultfd, O_CLOEXEC | 1 /* user mode only */));
}

PROBE(sys_io_uring)
{
	char params[120] = { 0 };

	UNUSED_ARGS;
	return outcome(syscall(SYS_io_uring_setup, 1, params));
}

PROBE(sys_io_uring_register)
{
	UNUSED_ARGS;
	return reached(syscall(SYS_io_uring_register, -1, 0, NULL, 0));
}

PROBE(sys_kexec)
{
	UNUSED_ARGS;
	return reached(syscall(SYS_kexec_load, 0, 1UL << 20, NULL, 0xffff0000));
}

PROBE(sys_kexec_file)
{
	UNUSED_ARGS;
	return reached(syscall(SYS_kexec_file_load, -1, -1, 0, NULL, ~0UL));
}

PROBE(sys_init_module)
{
	UNUSED_ARGS;
	return reached(syscall(SYS_init_module, NULL, 0, NULL));
}

PROBE(sys_finit_module)
{
	UNUSED_ARGS;
	return reached(syscall(SYS_finit_module, -1, "", 0));
}

PROBE(sys_delete_module)
{
	UNUSED_ARGS;
	return reached(syscall(SYS_delete_module, "ambit_no_such_module", 0));
}

PROBE(sys_swapon)
{
	UNUSED_ARGS;
	return reached(syscall(SYS_swapon, "/no-such-file", 0));
}

PROBE(sys_swapoff)
{
	UNUSED_ARGS;
	return reached(syscall(SYS_swapoff, "/no-such-file"));
}

PROBE(sys_quotactl)
{
	UNUSED_ARGS;
	return reached(syscall(SYS_quotactl, 0x800003 << 8, "/no-such-device", 0, NULL));
}

PROBE(sys_fanotify)
{
	UNUSED_ARGS;
	return outcome(syscall(SYS_fanotify_init, 0x200 /* FAN_REPORT_FID */ | 1, O_RDONLY));
}

PROBE(sys_acct)
{
	UNUSED_ARGS;
	return reached(syscall(SYS_acct, "/no-such-file"));
}

PROBE(sys_reboot)
{
	UNUSED_ARGS;
	return reached(syscall(SYS_reboot, 0, 0, 0, NULL)); /* no magic number */
}

PROBE(sys_settime)
{
	UNUSED_ARGS;
	return outcome(syscall(SYS_settimeofday, NULL, NULL)); /* sets nothing */
}

PROBE(sys_sethostname)
{
	UNUSED_ARGS;
	return reached(syscall(SYS_sethostname, "x", 4096)); /* too long */
}

PROBE(sys_iopl)
{
	UNUSED_ARGS;
	return outcome(syscall(SYS_iopl, 3));
}

PROBE(sys_ioperm)
{
	UNUSED_ARGS;
	return outcome(syscall(SYS_ioperm, 0x80, 1, 1));
}

PROBE(sys_vhangup)
{
	UNUSED_ARGS;
	setsid(); /* no terminal to hang up */
	return outcome(syscall(SYS_vhangup));
}

PROBE(sys_syslog)
{
	return (void)c, outcome(syscall(SYS_syslog, 3, detail, size - 1)); /* read all */
}

PROBE(sys_personality)
{
	UNUSED_ARGS;
	return outcome(personality(ADDR_NO_RANDOMIZE));
}

PROBE(sys_open_by_handle)
{
	UNUSED_ARGS;
	return reached(syscall(SYS_open_by_handle_at, -1, NULL, 0));
}

/* --- other doors --- */

#ifdef __x86_64__
/* The 32-bit entry: numbers mean other calls there, and filters for 64 bit do not fit. */
static long int80(long nr, long a, long b, long c)
{
	long rc;

	__asm__ volatile("int $0x80"
			 : "=a"(rc)
			 : "a"(nr), "b"(a), "c"(b), "d"(c)
			 : "memory", "r8", "r9", "r10", "r11");
	return rc;
}

static int ia32(long nr, long a, long b, long c)
{
	long rc = int80(nr, a, b, c);

	return rc < 0 ? (int)rc : 0;
}

PROBE(ia32_getpid)
{
	UNUSED_ARGS;
	return ia32(20, 0, 0, 0);
}

PROBE(ia32_socket)
{
	UNUSED_ARGS;
	return ia32(359, 1 /* AF_UNIX */, 1, 0);
}

PROBE(ia32_unshare)
{
	UNUSED_ARGS;
	return ia32(310, 0x10000000 /* CLONE_NEWUSER */, 0, 0);
}

PROBE(x32_getpid)
{
	UNUSED_ARGS;
	return outcome(syscall(0x40000000 | SYS_getpid));
}
#endif

/* --- keys --- */

PROBE(key_session)
{
	long key = syscall(SYS_keyctl, KEYCTL_SEARCH, KEY_SPEC_SESSION_KEYRING, "user",
			   "ambit-canary", 0);

	(void)c;
	if (key < 0)
		return -errno;
	return outcome(syscall(SYS_keyctl, KEYCTL_READ, key, detail, size - 1));
}

PROBE(key_request)
{
	long key = syscall(SYS_request_key, "user", "ambit-canary", NULL, 0);

	(void)c;
	if (key < 0)
		return -errno;
	return outcome(syscall(SYS_keyctl, KEYCTL_READ, key, detail, size - 1));
}

PROBE(key_user)
{
	UNUSED_ARGS;
	return outcome(syscall(SYS_keyctl, KEYCTL_DESCRIBE, KEY_SPEC_USER_KEYRING, NULL, 0));
}

PROBE(key_add)
{
	UNUSED_ARGS;
	return outcome(
		syscall(SYS_add_key, "user", "ambit-probe", "x", 1, KEY_SPEC_PROCESS_KEYRING));
}

PROBE(key_to_parent)
{
	UNUSED_ARGS;
	syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL);
	return outcome(syscall(SYS_keyctl, KEYCTL_SESSION_TO_PARENT));
}

/* --- System V memory and POSIX queues of the host --- */

PROBE(ipc_shm)
{
	int id = shmget(context_int(c, "shm-key"), 0, 0);
	char *p;

	if (id < 0)
		return -errno;
	p = shmat(id, NULL, SHM_RDONLY);
	if (p == (void *)-1)
		return -errno;
	snprintf(detail, size, "%.100s", p);
	return 0;
}

PROBE(ipc_shm_remove)
{
	int id = shmget(context_int(c, "shm-key"), 0, 0);

	(void)detail, (void)size;
	return id < 0 ? -errno : outcome(shmctl(id, IPC_RMID, NULL));
}

PROBE(ipc_posix_shm)
{
	int fd = shm_open(context_get(c, "posix-shm"), O_RDONLY, 0);

	return fd < 0 ? -errno : attempt_read_fd(fd, detail, size);
}

PROBE(ipc_mqueue)
{
	mqd_t q = mq_open(context_get(c, "mqueue"), O_RDONLY | O_NONBLOCK);

	(void)detail, (void)size;
	return q == (mqd_t)-1 ? -errno : 0;
}

/* --- devices and kernel files --- */

static int first_open(const char *const *paths, char *detail, size_t size, int flags)
{
	int present = 0, error = ENOENT;

	for (; *paths; paths++) {
		struct stat st;
		int fd;

		if (stat(*paths, &st) < 0) {
			error = errno;
			continue;
		}
		present++;
		fd = open(*paths, flags | O_NONBLOCK | O_CLOEXEC);
		if (fd >= 0) {
			snprintf(detail, size, "%s", *paths);
			close(fd);
			return 0;
		}
		error = errno;
	}
	snprintf(detail, size, "%d there", present);
	return -error;
}

PROBE(dev_kernel)
{
	static const char *const paths[] = { "/dev/kmsg", "/dev/mem", "/dev/port", "/dev/kmem",
					     NULL };

	return (void)c, first_open(paths, detail, size, O_RDONLY);
}

PROBE(dev_disk)
{
	static const char *const paths[] = { "/dev/vda",     "/dev/vda1", "/dev/sda", "/dev/loop0",
					     "/dev/nvme0n1", "/dev/dm-0", NULL };

	return (void)c, first_open(paths, detail, size, O_RDONLY);
}

PROBE(dev_control)
{
	static const char *const paths[] = { "/dev/kvm",           "/dev/fuse",
					     "/dev/loop-control",  "/dev/mapper/control",
					     "/dev/vsock",         "/dev/vhost-vsock",
					     "/dev/net/tun",       "/dev/uinput",
					     "/dev/btrfs-control", NULL };

	return (void)c, first_open(paths, detail, size, O_RDWR);
}

PROBE(dev_console)
{
	static const char *const paths[] = { "/dev/tty1",  "/dev/tty0",         "/dev/vcs1",
					     "/dev/ttyS0", "/dev/input/event0", NULL };

	return (void)c, first_open(paths, detail, size, O_RDONLY | O_NOCTTY);
}

PROBE(kernel_kallsyms)
{
	char line[256];
	FILE *f = fopen("/proc/kallsyms", "re");

	(void)c, (void)detail, (void)size;
	if (!f)
		return -errno;
	if (!fgets(line, sizeof line, f))
		return -ENODATA;
	while (fgets(line, sizeof line, f))
		if (strtoull(line, NULL, 16))
			return 0;
	return -EPERM; /* all zero */
}

PROBE(kernel_memory)
{
	static const char *const paths[] = { "/proc/kcore",
					     "/proc/kpagecount",
					     "/proc/kpageflags",
					     "/proc/timer_list",
					     "/proc/vmallocinfo",
					     "/proc/slabinfo",
					     NULL };

	return (void)c, first_open(paths, detail, size, O_RDONLY);
}

PROBE(kernel_interfaces)
{
	static const char *const paths[] = { "/sys/kernel/debug/.",
					     "/sys/kernel/tracing/.",
					     "/sys/kernel/security/.",
					     "/sys/firmware/.",
					     "/sys/fs/bpf/.",
					     "/sys/fs/selinux/.",
					     NULL };
	int found = 0;

	(void)c;
	for (const char *const *p = paths; *p; p++) {
		DIR *d = opendir(*p);

		for (struct dirent *e; d && (e = readdir(d));) {
			if (e->d_name[0] == '.')
				continue;
			snprintf(detail, size, "%.40s%.200s", *p, e->d_name);
			found++;
		}
		if (d)
			closedir(d);
	}
	return found ? 0 : -ENOENT;
}

/* Opened for writing, never written. */
static int knob(const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return -errno;
	return attempt_open_write(path);
}

#define KNOB(name, path)                                                                           \
	PROBE(name)                                                                                \
	{                                                                                          \
		UNUSED_ARGS;                                                                       \
		return knob(path);                                                                 \
	}

KNOB(knob_core_pattern, "/proc/sys/kernel/core_pattern")
KNOB(knob_modprobe, "/proc/sys/kernel/modprobe")
KNOB(knob_hotplug, "/sys/kernel/uevent_helper")
KNOB(knob_sysrq, "/proc/sysrq-trigger")
KNOB(knob_sysrq_sys, "/proc/sys/kernel/sysrq")
KNOB(knob_hostname, "/proc/sys/kernel/hostname")
KNOB(knob_binfmt, "/proc/sys/fs/binfmt_misc/register")
KNOB(knob_overcommit, "/proc/sys/vm/overcommit_memory")
KNOB(knob_drop_caches, "/proc/sys/vm/drop_caches")
KNOB(knob_irq, "/proc/irq/default_smp_affinity")
KNOB(knob_power, "/sys/power/state")
KNOB(knob_release_agent, "/sys/fs/cgroup/cpu/release_agent")
KNOB(knob_cgroup_procs, "/sys/fs/cgroup/unified/cgroup.procs")
KNOB(knob_mm, "/sys/kernel/mm/transparent_hugepage/enabled")
KNOB(knob_module, "/sys/module/kernel/parameters/panic")

static bool is_closed_device(const char *path)
{
	struct stat st;
	int fd;

	if (lstat(path, &st) || !S_ISCHR(st.st_mode))
		return false;
	fd = open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd >= 0)
		close(fd);
	return fd < 0;
}

/*
 * Everything below a directory that could be written, by asking only (access). Files of
 * processes are left out: they are the sandbox's own. Of a device access() says nothing about
 * its mount, which may let no device be opened.
 */
static int count_writable(const char *dir, int depth, char *detail, size_t size)
{
	DIR *d = depth > 0 ? opendir(dir) : NULL;
	int found = 0;

	for (struct dirent *e; d && (e = readdir(d));) {
		char path[4096];

		if (e->d_name[0] == '.' || e->d_type == DT_LNK)
			continue;
		if (!strcmp(dir, "/proc") && e->d_name[0] >= '0' && e->d_name[0] <= '9')
			continue;
		if ((size_t)snprintf(path, sizeof path, "%s/%s", dir, e->d_name) >= sizeof path)
			continue;
		if (!access(path, W_OK) && !is_closed_device(path)) {
			if (!found++)
				snprintf(detail, size, "%.400s", path);
		}
		if (e->d_type == DT_DIR)
			found += count_writable(path, depth - 1, detail, size);
	}
	if (d)
		closedir(d);
	return found;
}

static int sweep(const char *dir, char *detail, size_t size)
{
	char first[DT_WHT + 500] = "";
	int found = count_writable(dir, 12, first, sizeof first);

	snprintf(detail, size, "%d writable, e.g. %.400s", found, first);
	return found ? 0 : -EROFS;
}

PROBE(knob_sweep_proc)
{
	return (void)c, sweep("/proc", detail, size);
}

PROBE(knob_sweep_sys)
{
	return (void)c, sweep("/sys", detail, size);
}

static const struct probe table[] = {
	{ "sys-bpf", sys_bpf },
	{ "sys-perf_event_open", sys_perf },
	{ "sys-userfaultfd", sys_userfaultfd },
	{ "sys-io_uring_setup", sys_io_uring },
	{ "sys-io_uring_register", sys_io_uring_register },
	{ "sys-kexec_load", sys_kexec },
	{ "sys-kexec_file_load", sys_kexec_file },
	{ "sys-init_module", sys_init_module },
	{ "sys-finit_module", sys_finit_module },
	{ "sys-delete_module", sys_delete_module },
	{ "sys-swapon", sys_swapon },
	{ "sys-swapoff", sys_swapoff },
	{ "sys-quotactl", sys_quotactl },
	{ "sys-fanotify_init", sys_fanotify },
	{ "sys-acct", sys_acct },
	{ "sys-reboot", sys_reboot },
	{ "sys-settimeofday", sys_settime },
	{ "sys-sethostname", sys_sethostname },
	{ "sys-iopl", sys_iopl },
	{ "sys-ioperm", sys_ioperm },
	{ "sys-vhangup", sys_vhangup },
	{ "sys-syslog", sys_syslog },
	{ "sys-personality", sys_personality },
	{ "sys-open_by_handle_at", sys_open_by_handle },
#ifdef __x86_64__
	{ "ia32-getpid", ia32_getpid },
	{ "ia32-socket", ia32_socket },
	{ "ia32-unshare", ia32_unshare },
	{ "x32-getpid", x32_getpid },
#endif
	{ "key-session", key_session },
	{ "key-request", key_request },
	{ "key-user", key_user },
	{ "key-add", key_add },
	{ "key-to-parent", key_to_parent },
	{ "ipc-shm", ipc_shm },
	{ "ipc-posix-shm", ipc_posix_shm },
	{ "ipc-mqueue", ipc_mqueue },
	{ "ipc-shm-remove", ipc_shm_remove },
	{ "dev-kernel", dev_kernel },
	{ "dev-disk", dev_disk },
	{ "dev-control", dev_control },
	{ "dev-console", dev_console },
	{ "kernel-kallsyms", kernel_kallsyms },
	{ "kernel-memory", kernel_memory },
	{ "kernel-interfaces", kernel_interfaces },
	{ "knob-core_pattern", knob_core_pattern },
	{ "knob-modprobe", knob_modprobe },
	{ "knob-uevent_helper", knob_hotplug },
	{ "knob-sysrq-trigger", knob_sysrq },
	{ "knob-sysrq", knob_sysrq_sys },
	{ "knob-hostname", knob_hostname },
	{ "knob-binfmt_misc", knob_binfmt },
	{ "knob-overcommit", knob_overcommit },
	{ "knob-drop_caches", knob_drop_caches },
	{ "knob-irq", knob_irq },
	{ "knob-power", knob_power },
	{ "knob-release_agent", knob_release_agent },
	{ "knob-cgroup.procs", knob_cgroup_procs },
	{ "knob-hugepage", knob_mm },
	{ "knob-module-parameter", knob_module },
	{ "knob-sweep-proc", knob_sweep_proc },
	{ "knob-sweep-sys", knob_sweep_sys },
};

const struct probe_table kernel_probes = { table, sizeof table / sizeof table[0] };
