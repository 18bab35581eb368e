/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: whoever takes this process over has the user's own
 * network and nothing else. In stages, each of which needs the one before:
 *
 *   1. fds: all but the control socket and stderr are closed; standard input and
 *      output become /dev/null.
 *   2. root becomes nobody: what only root may read in /etc is nothing to resolve names by.
 *   3. limits: no core files, no files at all, not dumpable, no_new_privs; no capabilities.
 *   4. Landlock: reading below the directories that name resolution needs;
 *      no writing, making, executing anywhere; no TCP port may be bound; no
 *      signals or abstract sockets to processes outside.
 *   5. seccomp: confine_filter.c. Last, since the others need calls it forbids.
 *
 * What stays possible: reading /etc, outgoing connections. AF_UNIX sockets are
 * refused, so that resolver plug-ins which ask a local daemon do without it; DNS
 * over the network goes on working.
 */
#include "proxy/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <linux/seccomp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/macros.h"
#include "base/sys.h"
#include "proxy/proxy.h"

#define NOBODY 65534
#define LANDLOCK_EXECUTE (1ULL << 0)
#define LANDLOCK_READ_FILE (1ULL << 2)
#define LANDLOCK_READ_DIR (1ULL << 3)
#define LANDLOCK_BIND_TCP (1ULL << 0)
#define LANDLOCK_FS_ABI1 ((1ULL << 13) - 1)

/* The sanitizers need calls and files of their own, and say so by their macros. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define UNDER_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(memory_sanitizer) ||                         \
	__has_feature(thread_sanitizer)
#define UNDER_SANITIZER 1
#endif
#endif
#ifndef UNDER_SANITIZER
#define UNDER_SANITIZER 0
#endif

static int fail(struct error *e, const char *what)
{
	return error_set(e, errno, "cannot confine itself: %s: %s", what, strerror(errno));
}

int confine_inherited(struct error *e)
{
	_cleanup_fd_ int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0)
		return fail(e, "/dev/null");
	if (chdir("/") < 0)
		return fail(e, "chdir");
	/* before the null's own fd goes: nothing above it is ours yet */
	(void)sys_close_range(PROXY_CONTROL_FD + 1, ~0U, 0);
	(void)take_fd(&null);
	return 0;
}

/* Where that user does not exist (a namespace with one id), root stays what it is there. */
static void confine_root(void)
{
	int signal = 0;

	if (geteuid() != 0 || prctl(PR_GET_PDEATHSIG, &signal) < 0)
		return;
	if (setgroups(0, NULL) < 0 || setresgid(NOBODY, NOBODY, NOBODY) < 0 ||
	    setresuid(NOBODY, NOBODY, NOBODY) < 0)
		return;
	/* forgotten with the old user; who ended meanwhile has closed our control socket */
	(void)prctl(PR_SET_PDEATHSIG, signal, 0, 0, 0);
}

static int confine_limits(struct error *e)
{
	const struct rlimit none = { 0, 0 };

	if (setrlimit(RLIMIT_CORE, &none) < 0 || setrlimit(RLIMIT_FSIZE, &none) < 0)
		return fail(e, "limits");
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return fail(e, "prctl");
	return 0;
}

static void allow_reading(int ruleset, const char *path)
{
	_cleanup_fd_ int fd = open(path, O_PATH | O_CLOEXEC);
	struct stat st;

	/* a place that is not there needs no rule */
	if (fd >= 0 && fstat(fd, &st) == 0)
		(void)sys_landlock_add_path(ruleset, fd,
					    LANDLOCK_READ_FILE |
						    (S_ISDIR(st.st_mode) ? LANDLOCK_READ_DIR : 0));
}

static void allow_name_resolution(int ruleset)
{
	static const char *const directories[] = {
		"/etc",
		"/run/systemd/resolve",
		"/run/NetworkManager",
		"/run/resolvconf",
		"/lib",
		"/lib64",
		"/usr/lib",
		"/usr/lib64",
	};
	static const char *const links[] = { "/etc/resolv.conf", "/etc/hosts",
					     "/etc/nsswitch.conf" };

	for (size_t i = 0; i < ARRAY_LEN(directories); i++)
		allow_reading(ruleset, directories[i]);
	/* where these are links, to anywhere */
	for (size_t i = 0; i < ARRAY_LEN(links); i++) {
		_cleanup_free_ char *real = realpath(links[i], NULL);

		if (real)
			allow_reading(ruleset, real);
	}
}

/* 0 = done, -errno = this kernel has no Landlock. */
static int confine_files(void)
{
	int abi = sys_landlock_abi(), r;
	struct sys_landlock_ruleset rules = {
		.handled_fs = LANDLOCK_FS_ABI1,
		.handled_net = LANDLOCK_BIND_TCP,
		.scoped = SYS_LANDLOCK_SCOPE_ABSTRACT | SYS_LANDLOCK_SCOPE_SIGNAL,
	};
	size_t size = abi >= 6 ? sizeof(rules) : abi >= 4 ? 16 : 8;
	_cleanup_fd_ int ruleset = -1;

	if (abi < 1)
		return -ENOSYS;
	if (abi >= 2)
		rules.handled_fs |= SYS_LANDLOCK_REFER;
	if (abi >= 3)
		rules.handled_fs |= SYS_LANDLOCK_TRUNCATE;
	if (abi >= 5)
		rules.handled_fs |= SYS_LANDLOCK_IOCTL_DEV;
	ruleset = sys_landlock_create(&rules, size);
	if (ruleset < 0)
		return ruleset;
	allow_name_resolution(ruleset);
	r = sys_landlock_restrict(ruleset);
	return r;
}

static int confine_calls(void)
{
	struct sock_filter filter[CONFINE_FILTER_MAX];
	struct sock_fprog program = {
		.len = (unsigned short)confine_filter(filter),
		.filter = filter,
	};

	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0 ? -errno : 0;
}

int confine(struct confinement *ret, struct error *e)
{
	int r;

	*ret = (struct confinement){ .n_missing = 0 };
	if (!UNDER_SANITIZER)
		confine_root();
	r = confine_limits(e);
	if (r < 0)
		return r;
	if (UNDER_SANITIZER) {
		ret->missing[ret->n_missing++] = "the proxy is not confined: it was built with a "
						 "sanitizer";
		return 0;
	}
	if (sys_drop_capabilities() < 0)
		ret->missing[ret->n_missing++] = "the proxy could not drop its capabilities";
	if (confine_files() < 0)
		ret->missing[ret->n_missing++] = "the proxy is not confined by Landlock: "
						 "this kernel has none";
	if (confine_calls() < 0)
		ret->missing[ret->n_missing++] = "the proxy is not confined by seccomp: "
						 "it is not available here";
	return 0;
}
