/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Other processes: the init of the sandbox (pid 1; in the control run pid 1 of a
 * pid namespace made for it), processes of the host by number, one's own rights, and
 * other ways to start a program. Keys: host and victim (pids), mark1 and mark2 (halves
 * of a word in the command line of a host process), secret, ws.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "probe.h"

#define PROBE(name) static int name(const struct context *c, char *detail, size_t size)
#define UNUSED_ARGS ((void)c, (void)detail, (void)size)
#define PTRACE_O_SUSPEND_SECCOMP_BIT (1 << 21)

/* --- files of other processes --- */

static int read_proc(int pid, const char *file, char *detail, size_t size)
{
	char path[64];
	int rc;

	snprintf(path, sizeof path, "/proc/%d/%s", pid, file);
	rc = attempt_read(path, detail, size);
	return rc == -ENODATA || rc == -EIO ? 0 : rc; /* opened: that is enough */
}

PROBE(init_environ)
{
	return (void)c, read_proc(1, "environ", detail, size);
}

PROBE(init_mem)
{
	return (void)c, read_proc(1, "mem", detail, size);
}

PROBE(init_maps)
{
	return (void)c, read_proc(1, "maps", detail, size);
}

PROBE(init_stack)
{
	return (void)c, read_proc(1, "auxv", detail, size);
}

PROBE(init_fd)
{
	char path[64];
	DIR *d = opendir("/proc/1/fd");
	int opened = 0, error = EACCES;

	(void)c, (void)detail, (void)size;
	if (!d)
		return -errno;
	for (struct dirent *e; (e = readdir(d));) {
		int fd;

		if (e->d_name[0] == '.')
			continue;
		snprintf(path, sizeof path, "/proc/1/fd/%.20s", e->d_name);
		fd = open(path, O_PATH | O_CLOEXEC);
		if (fd >= 0)
			opened++;
		else
			error = errno;
	}
	closedir(d);
	return opened ? 0 : -error;
}

PROBE(init_exe)
{
	int fd = open("/proc/1/exe", O_PATH | O_CLOEXEC);

	UNUSED_ARGS;
	return fd < 0 ? -errno : 0;
}

/* Holding the program open until it no longer runs, then writing into it. */
PROBE(init_exe_write)
{
	UNUSED_ARGS;
	int rc = attempt_open_write("/proc/1/exe");

	return rc == -ETXTBSY ? 0 : rc;
}

PROBE(host_environ)
{
	return read_proc(context_int(c, "host"), "environ", detail, size);
}

PROBE(host_cmdline)
{
	return read_proc(context_int(c, "host"), "cmdline", detail, size);
}

PROBE(host_listed)
{
	char want[256], path[300], line[4096];
	DIR *d = opendir("/proc");
	int rc = -ESRCH;

	if (!d)
		return -errno;
	snprintf(want, sizeof want, "%s%s", context_get(c, "mark1"), context_get(c, "mark2"));
	for (struct dirent *e; (e = readdir(d));) {
		if (e->d_name[0] < '0' || e->d_name[0] > '9')
			continue;
		snprintf(path, sizeof path, "/proc/%s/cmdline", e->d_name);
		int fd = open(path, O_RDONLY | O_CLOEXEC);
		ssize_t n = fd < 0 ? -1 : read(fd, line, sizeof line - 1);

		if (fd >= 0)
			close(fd);
		if (n > 0 && memmem(line, (size_t)n, want, strlen(want))) {
			snprintf(detail, size, "pid %s", e->d_name);
			rc = 0;
		}
	}
	closedir(d);
	return rc;
}

/* --- reaching into other processes --- */

static int attach(long request, int pid, long options)
{
	if (ptrace(request, pid, NULL, options) < 0)
		return -errno;
	if (request == PTRACE_ATTACH)
		waitpid(pid, NULL, __WALL);
	ptrace(PTRACE_DETACH, pid, NULL, NULL);
	return 0;
}

PROBE(init_ptrace)
{
	UNUSED_ARGS;
	return attach(PTRACE_SEIZE, 1, 0);
}

PROBE(init_vm_read)
{
	char byte;
	struct iovec here = { &byte, 1 }, there = { (void *)16, 1 };

	UNUSED_ARGS;
	return reached(process_vm_readv(1, &here, 1, &there, 1, 0));
}

PROBE(init_vm_write)
{
	char byte = 0;
	struct iovec here = { &byte, 1 }, there = { (void *)16, 1 };

	UNUSED_ARGS;
	return reached(process_vm_writev(1, &here, 1, &there, 1, 0));
}

PROBE(init_getfd)
{
	int pidfd = (int)syscall(SYS_pidfd_open, 1, 0), fd;

	UNUSED_ARGS;
	if (pidfd < 0)
		return -errno;
	fd = (int)syscall(SYS_pidfd_getfd, pidfd, 0, 0);
	return fd < 0 && errno != EBADF ? -errno : 0;
}

PROBE(init_kcmp)
{
	UNUSED_ARGS;
	return syscall(SYS_kcmp, 1, getpid(), 0, 0, 0) < 0 ? -errno : 0;
}

PROBE(host_ptrace)
{
	UNUSED_ARGS;
	return attach(PTRACE_SEIZE, context_int(c, "host"), 0);
}

PROBE(host_vm_write)
{
	char byte = 0;
	struct iovec here = { &byte, 1 }, there = { (void *)16, 1 };

	UNUSED_ARGS;
	return reached(process_vm_writev(context_int(c, "host"), &here, 1, &there, 1, 0));
}

PROBE(host_pidfd)
{
	UNUSED_ARGS;
	return syscall(SYS_pidfd_open, context_int(c, "host"), 0) < 0 ? -errno : 0;
}

PROBE(host_kill)
{
	UNUSED_ARGS;
	return kill(context_int(c, "victim"), SIGKILL) < 0 ? -errno : 0;
}

PROBE(host_renice)
{
	UNUSED_ARGS;
	return setpriority(PRIO_PROCESS, (id_t)context_int(c, "host"), 19) < 0 ? -errno : 0;
}

/* A tracer that asks for its tracee's filter to be suspended. */
PROBE(ptrace_suspend_seccomp)
{
	pid_t pid = fork();
	int rc;

	UNUSED_ARGS;
	if (pid == 0) {
		pause();
		_exit(0);
	}
	rc = attach(PTRACE_SEIZE, pid, PTRACE_O_SUSPEND_SECCOMP_BIT);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return rc;
}

/* --- signals at large; the test looks who is still alive --- */

/* These two would hit the whole machine: the test must say that it has a wall around them. */
PROBE(kill_all)
{
	UNUSED_ARGS;
	context_get(c, "confined");
	return kill(-1, SIGKILL) < 0 ? -errno : 0;
}

PROBE(kill_group)
{
	UNUSED_ARGS;
	context_get(c, "confined");
	return kill(0, SIGKILL) < 0 ? -errno : 0;
}

PROBE(kill_init)
{
	static const int signals[] = { SIGKILL, SIGSTOP, SIGSEGV, SIGSYS, SIGABRT, SIGALRM };

	UNUSED_ARGS;
	for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++)
		if (kill(1, signals[i]) < 0)
			return -errno;
	usleep(100000);
	return 0;
}

/* --- our own rights --- */

static int status_field(const char *field, char *detail, size_t size)
{
	char line[256];
	size_t len = strlen(field);
	FILE *f = fopen("/proc/self/status", "re");

	if (!f)
		return -errno;
	while (fgets(line, sizeof line, f)) {
		if (strncmp(line, field, len) || line[len] != ':')
			continue;
		snprintf(detail, size, "%s", line);
		fclose(f);
		return (int)(strtoull(line + len + 1, NULL, 16) != 0);
	}
	fclose(f);
	return -ENOENT;
}

static int has_caps(const char *field, char *detail, size_t size)
{
	int rc = status_field(field, detail, size);

	return rc < 0 ? rc : rc ? 0 : -EPERM;
}

PROBE(cap_effective)
{
	return (void)c, has_caps("CapEff", detail, size);
}

PROBE(cap_permitted)
{
	return (void)c, has_caps("CapPrm", detail, size);
}

PROBE(cap_bounding)
{
	return (void)c, has_caps("CapBnd", detail, size);
}

PROBE(no_new_privs)
{
	int rc = status_field("NoNewPrivs", detail, size);

	(void)c;
	return rc < 0 ? rc : rc ? -EPERM : 0;
}

PROBE(no_seccomp)
{
	int rc = status_field("Seccomp", detail, size);

	(void)c;
	return rc < 0 ? rc : rc ? -EPERM : 0;
}

PROBE(core_limit)
{
	struct rlimit r;

	(void)c;
	if (getrlimit(RLIMIT_CORE, &r) < 0)
		return -errno;
	snprintf(detail, size, "hard limit %llu", (unsigned long long)r.rlim_max);
	return r.rlim_max == 0 ? -EPERM : 0;
}

/* Started from a set-user-ID copy of this program. */
PROBE(suid_effective)
{
	(void)c;
	snprintf(detail, size, "euid %d egid %d", geteuid(), getegid());
	return geteuid() == getuid() && getegid() == getgid() ? -EPERM : 0;
}

PROBE(become_root)
{
	UNUSED_ARGS;
	if (getuid() == 0) /* root is to become somebody else: needs CAP_SETUID too */
		return setresuid(1, 1, 1) < 0 ? -errno : 0;
	return setresuid(0, 0, 0) < 0 ? -errno : 0;
}

PROBE(drop_groups)
{
	UNUSED_ARGS;
	return syscall(SYS_setgroups, 0, NULL) < 0 ? -errno : 0;
}

/* --- other ways to start a program: the confinement must come along --- */

/* The output of `argv`, started by `fd` (fexecve) or by name; open when the secret shows. */
static int run_and_look(int fd, char *const argv[], char *detail, size_t size)
{
	int out[2], status;
	size_t got = 0;
	pid_t pid;

	if (pipe2(out, O_CLOEXEC) < 0)
		return -errno;
	pid = fork();
	if (pid == 0) {
		dup2(out[1], 1);
		dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), 2);
		if (fd >= 0)
			syscall(SYS_execveat, fd, "", argv, environ, AT_EMPTY_PATH);
		else
			execv(argv[0], argv);
		_exit(126);
	}
	close(out[1]);
	for (ssize_t n; got < size - 1 && (n = read(out[0], detail + got, size - 1 - got)) > 0;)
		got += (size_t)n;
	detail[got] = '\0';
	close(out[0]);
	waitpid(pid, &status, 0);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 126)
		return -ENOEXEC;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0 && got > 0 ? 0 : -EACCES;
}

static int copy_to(int to, const char *from)
{
	char block[65536];
	int fd = open(from, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	for (ssize_t n; (n = read(fd, block, sizeof block)) > 0;)
		if (write(to, block, (size_t)n) != n)
			return -errno;
	close(fd);
	return 0;
}

PROBE(exec_memfd)
{
	char *argv[] = { (char *)"cat", (char *)context_get(c, "secret"), NULL };
	int fd = memfd_create("x", MFD_CLOEXEC), rc;

	if (fd < 0)
		return -errno;
	rc = copy_to(fd, "/bin/cat");
	return rc < 0 ? rc : run_and_look(fd, argv, detail, size);
}

PROBE(exec_copy)
{
	char path[4096];
	char *argv[] = { path, (char *)context_get(c, "secret"), NULL };
	int fd, rc;

	snprintf(path, sizeof path, "%s/cat-copy-%d", context_get(c, "ws"), getpid());
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
	if (fd < 0)
		return -errno;
	rc = copy_to(fd, "/bin/cat");
	close(fd);
	rc = rc < 0 ? rc : run_and_look(-1, argv, detail, size);
	unlink(path);
	return rc;
}

PROBE(exec_loader)
{
	char *argv[] = { (char *)"/lib64/ld-linux-x86-64.so.2", (char *)"/bin/cat",
			 (char *)context_get(c, "secret"), NULL };

	if (access(argv[0], F_OK) < 0)
		return ABSENT;
	return run_and_look(-1, argv, detail, size);
}

PROBE(exec_proc_root)
{
	char *argv[] = { (char *)"/proc/self/root/bin/cat", (char *)context_get(c, "secret"),
			 NULL };

	return run_and_look(-1, argv, detail, size);
}

static const struct probe table[] = {
	{ "init-environ", init_environ },
	{ "init-mem", init_mem },
	{ "init-maps", init_maps },
	{ "init-auxv", init_stack },
	{ "init-fd", init_fd },
	{ "init-exe", init_exe },
	{ "init-exe-write", init_exe_write },
	{ "init-ptrace", init_ptrace },
	{ "init-vm-read", init_vm_read },
	{ "init-vm-write", init_vm_write },
	{ "init-getfd", init_getfd },
	{ "init-kcmp", init_kcmp },
	{ "host-environ", host_environ },
	{ "host-cmdline", host_cmdline },
	{ "host-listed", host_listed },
	{ "host-ptrace", host_ptrace },
	{ "host-vm-write", host_vm_write },
	{ "host-pidfd", host_pidfd },
	{ "host-renice", host_renice },
	{ "host-kill", host_kill },
	{ "ptrace-suspend-seccomp", ptrace_suspend_seccomp },
	{ "kill-all", kill_all },
	{ "kill-group", kill_group },
	{ "kill-init", kill_init },
	{ "cap-effective", cap_effective },
	{ "cap-permitted", cap_permitted },
	{ "cap-bounding", cap_bounding },
	{ "no-new-privs", no_new_privs },
	{ "no-seccomp", no_seccomp },
	{ "core-limit", core_limit },
	{ "suid-effective", suid_effective },
	{ "become-other", become_root },
	{ "drop-groups", drop_groups },
	{ "exec-memfd", exec_memfd },
	{ "exec-copy", exec_copy },
	{ "exec-loader", exec_loader },
	{ "exec-proc-root", exec_proc_root },
};

const struct probe_table process_probes = { table, sizeof table / sizeof table[0] };
