/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What this machine can enforce. Every property is tried in a short-lived
 * child in namespaces of its own; the host is not changed. A refusal is
 * explained by the usual culprits: sysctls, AppArmor, a container's seccomp filter.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/sys.h"
#include "base/text.h"
#include "sandbox/backend.h"
#include "sandbox/native/egress.h"
#include "sandbox/native/native.h"
#include "sandbox/native/seccomp.h"

/* First number in a small file, or -1. */
static long knob(const char *path)
{
	_cleanup_free_ char *text = NULL;

	if (fd_read_file(AT_FDCWD, path, 256, &text, NULL) < 0 || !ascii_digit(text[0]))
		return -1;
	return (long)text_leading_u64(text);
}

struct diagnosis {
	const char *cause, *remedy;
};

static bool in_container(void)
{
	return access("/.dockerenv", F_OK) == 0 || access("/run/.containerenv", F_OK) == 0 ||
	       access("/var/run/secrets/kubernetes.io", F_OK) == 0;
}

#define CONTAINER_FLAGS                                                                            \
	"start the container with --security-opt seccomp=unconfined --security-opt "               \
	"apparmor=unconfined --security-opt systempaths=unconfined (docker, podman), or with "     \
	"securityContext: {seccompProfile: {type: Unconfined}, procMount: Unmasked} (kubernetes)"

static bool is_filtered(void)
{
	_cleanup_free_ char *status = NULL;

	return fd_read_file(AT_FDCWD, "/proc/self/status", 1 << 16, &status, NULL) == 0 &&
	       strstr(status, "\nSeccomp:\t2\n");
}

static bool is_restricted(uint32_t uid)
{
	return uid != 0 && knob("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == 1;
}

bool native_is_doubtful(void)
{
	return is_restricted(geteuid());
}

/* Why user namespaces are refused here; uid is the caller's, which it may not have any more. */
static struct diagnosis diagnose(int err, uint32_t uid, enum native_refusal what)
{
	if (getenv("AMBIT") && is_filtered())
		return (struct diagnosis){
			"this is already inside an ambit sandbox, which allows no "
			"namespaces of its own",
			"run the command directly: the outer sandbox still holds"
		};
	if (is_restricted(uid))
		return (struct diagnosis){
			"AppArmor restricts unprivileged user namespaces "
			"(kernel.apparmor_restrict_unprivileged_userns=1)",
			"sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0"
		};
	if (knob("/proc/sys/kernel/unprivileged_userns_clone") == 0 && uid != 0)
		return (struct diagnosis){ "unprivileged user namespaces are switched off "
					   "(kernel.unprivileged_userns_clone=0)",
					   "sudo sysctl kernel.unprivileged_userns_clone=1" };
	if (err == ENOSPC || knob("/proc/sys/user/max_user_namespaces") == 0)
		return (struct diagnosis){ "the limit on user namespaces is reached "
					   "(user.max_user_namespaces)",
					   "sudo sysctl user.max_user_namespaces=15000" };
	/* since Linux 5.12 only who could give files capabilities becomes root inside */
	if (err == EPERM && uid == 0 && what == NATIVE_NO_IDS)
		return (struct diagnosis){
			"root has no CAP_SETFCAP here, without which it cannot be "
			"root in a user namespace",
			"start the container with --cap-add=SETFCAP, or with "
			"another user (--user)"
		};
	if (in_container())
		return (struct diagnosis){ is_filtered() ? "the container's seccomp filter or "
							   "AppArmor profile refuses new "
							   "namespaces"
							 : "the container refuses new namespaces",
					   CONTAINER_FLAGS };
	if (err == ENOSYS || is_filtered())
		return (struct diagnosis){ "a seccomp filter around this process refuses new "
					   "namespaces",
					   CONTAINER_FLAGS };
	return (struct diagnosis){ "the kernel refuses new user namespaces here", NULL };
}

int native_refused(int err, uint32_t uid, enum native_refusal what, struct error *e)
{
	struct diagnosis d = diagnose(err, uid, what);

	return error_set(e, err, "cannot make the sandbox: %s: %s%s%s", strerror(err), d.cause,
			 d.remedy ? "; to mend it: " : "", d.remedy ? d.remedy : "");
}

static int map_self(unsigned uid, unsigned gid)
{
	char map[64];
	const char *const files[] = { "/proc/self/setgroups", "/proc/self/uid_map",
				      "/proc/self/gid_map" };

	/* as when it is done for real: the process that asks may be one that nobody may look into */
	(void)prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		_cleanup_fd_ int fd = open(files[i], O_WRONLY | O_CLOEXEC);
		unsigned id = i == 1 ? uid : gid;
		int r;

		(void)snprintf(map, sizeof(map), "%u %u 1\n", id, id);
		r = fd < 0 ? -errno : fd_write_all(fd, i ? map : "deny", strlen(i ? map : "deny"));
		if (r < 0)
			return r;
	}
	return 0;
}

static int try_filter(unsigned flags)
{
	struct sock_filter filter[SECCOMP_FILTER_MAX];
	struct seccomp_options options = SECCOMP_OPTIONS_DEFAULT;
	int n = seccomp_build(seccomp_native_arch(), &options, filter, SECCOMP_FILTER_MAX, NULL);

	if (n < 0)
		return n;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -errno;
	return seccomp_load(filter, (size_t)n, flags);
}

void native_try(int results[NATIVE_STEP_MAX_])
{
	results[NATIVE_STEP_USER] = 0;
	results[NATIVE_STEP_MOUNT] =
		-sys_mount_setattr(AT_FDCWD, "/", SYS_AT_RECURSIVE,
				   SYS_MOUNT_RDONLY | SYS_MOUNT_NOSUID, 0, MS_PRIVATE);
	results[NATIVE_STEP_PROC] =
		mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0 ? errno
											   : 0;
	results[NATIVE_STEP_DEV] =
		mount("ambit", "/dev", "tmpfs", MS_NOSUID, "mode=0755") < 0 ? errno : 0;
	results[NATIVE_STEP_NET] = 0;
	results[NATIVE_STEP_CAPTURE] = -native_capture();
	results[NATIVE_STEP_OTHER] = 0;
	results[NATIVE_STEP_NOTIFY] = -try_filter(SECCOMP_FILTER_FLAG_NEW_LISTENER);
	if (results[NATIVE_STEP_NOTIFY] < 0)
		results[NATIVE_STEP_NOTIFY] = 0; /* the listener's descriptor */
	results[NATIVE_STEP_SECCOMP] = -try_filter(0);
}

static int probe_steps(int *results)
{
	int pipes[2];
	struct sys_clone_args args = {
		.flags = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS |
			 CLONE_NEWCGROUP | CLONE_NEWNET,
		.exit_signal = SIGCHLD,
	};
	unsigned uid = geteuid(), gid = getegid();
	ssize_t n;
	pid_t pid;

	if (pipe2(pipes, O_CLOEXEC) < 0)
		return -errno;
	pid = sys_clone3(&args);
	if (pid == 0) {
		int r = map_self(uid, gid);

		native_try(results);
		results[NATIVE_STEP_USER] = -r;
		(void)!fd_write_all(pipes[1], results, NATIVE_STEP_MAX_ * sizeof(*results));
		_exit(0);
	}
	fd_close(pipes[1]);
	n = pid < 0 ? 0 : fd_read_full(pipes[0], results, NATIVE_STEP_MAX_ * sizeof(*results));
	fd_close(pipes[0]);
	if (pid < 0)
		return pid;
	(void)waitpid(pid, NULL, 0);
	return n == (ssize_t)(NATIVE_STEP_MAX_ * sizeof(*results)) ? 0 : -EIO;
}

/* The properties in their order, with what holds them and which step of the probe shows it. */
static const struct row {
	const char *name, *mechanism;
	int step; /* NATIVE_STEP_MAX_: by the kernel's Landlock alone */
	int abi;
	const char *missing, *remedy; /* where the usual diagnosis does not explain it */
} rows[] = {
	{ "user-namespaces", "user namespace, no capabilities", NATIVE_STEP_USER, 0, NULL, NULL },
	{ "files", "mount namespace, read-only tree", NATIVE_STEP_MOUNT, 0, NULL, NULL },
	{ "attributes", "mount namespace, read-only tree", NATIVE_STEP_MOUNT, 0, NULL, NULL },
	{ "hidden", "mount namespace, covered places", NATIVE_STEP_MOUNT, 0, NULL, NULL },
	{ "processes", "pid namespace, own /proc", NATIVE_STEP_PROC, 0,
	  "parts of /proc are masked here, as in a container",
	  "start the container with --security-opt systempaths=unconfined, or set "
	  "enableWeakerNestedSandbox" },
	{ "devices", "private /dev", NATIVE_STEP_DEV, 0, NULL, NULL },
	{ "network", "network namespace", NATIVE_STEP_NET, 0, NULL, NULL },
	{ "egress", NULL, NATIVE_STEP_NOTIFY, 0, "another sandbox watches the calls already",
	  NULL },
	{ "ipc", "ipc, uts and cgroup namespaces", NATIVE_STEP_OTHER, 0, NULL, NULL },
	{ "landlock", "Landlock", NATIVE_STEP_MAX_, 1,
	  "the kernel has no Landlock (or it is not enabled)",
	  "add landlock to the kernel's lsm= parameter" },
	{ "signal-scope", "Landlock scopes", NATIVE_STEP_MAX_, 6,
	  "needs Landlock ABI 6 (kernel 6.12); the pid namespace still hides other processes",
	  NULL },
	{ "seccomp", "system call filter", NATIVE_STEP_SECCOMP, 0, NULL, NULL },
	{ "names", "broker: Landlock and system call notification", NATIVE_STEP_NOTIFY, 1,
	  "the kernel has no Landlock: only names that exist at the top of writable directories "
	  "could be held (--fallback warn)",
	  "add landlock to the kernel's lsm= parameter" },
};

/* What the broker needs, and what is less than it wants. */
static void explain_names(struct arena *a, const struct plan_facts *facts, int err,
			  struct property *p)
{
	if (p->enforced && (facts->landlock_abi < 3 || !facts->wait_killable))
		p->missing = arena_printf(
			a, "%s%s%s",
			facts->landlock_abi < 3
				? "openat2(2) does not exist inside (Landlock before ABI 3)"
				: "",
			facts->landlock_abi < 3 && !facts->wait_killable ? "; " : "",
			facts->wait_killable
				? ""
				: "signals may interrupt brokered calls (before Linux 5.19)");
	if (p->enforced || facts->landlock_abi == 0)
		return;
	p->remedy = NULL;
	p->missing = err == EBUSY
			     ? "another sandbox or container runtime around this one watches the "
			       "system calls already, and the kernel allows one"
			     : "the kernel cannot send system calls to a broker (before Linux 5.5)";
}

/* Why a property is missing, where no refusal of namespaces explains it. */
static void explain(struct arena *a, const struct plan_facts *facts, const struct row *r, int err,
		    struct property *p)
{
	p->missing = r->step == NATIVE_STEP_MOUNT && err == ENOSYS
			     ? "the kernel cannot make a tree read-only as a whole "
			       "(mount_setattr(2), since Linux 5.12)"
		     : r->missing ? r->missing
				  : arena_strdup(a, strerror(err));
	/* no parameter brings a Landlock that was not built in */
	p->remedy = r->abi && !facts->landlock_off ? NULL : r->remedy;
	if (strcmp(r->name, "names") == 0)
		explain_names(a, facts, err, p);
}

/* By which of the ways, best first; the kernel need not have all of it. */
static const char *egress_means(struct arena *a, int capture)
{
	return capture ? arena_printf(a,
				      "supervised connect alone (nftables tproxy: %s), so that "
				      "only programs that call connect(2) get through",
				      strerror(capture))
		       : "all addresses local, nftables tproxy, supervised connect";
}

void native_judge(struct arena *a, const struct plan_facts *facts, const int *results,
		  const char *cause, const char *remedy, struct properties *ret)
{
	*ret = (struct properties){ 0 };
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct row *r = &rows[i];
		struct property *p = ARENA_PUSH(a, ret->v, ret->n);
		int err = r->step == NATIVE_STEP_MAX_ ? 0 : results[r->step];

		if (facts->landlock_abi < r->abi)
			err = ENOSYS;
		p->name = r->name;
		p->mechanism = strcmp(r->name, "landlock") == 0
				       ? arena_printf(a, "Landlock ABI %d", facts->landlock_abi)
			       : strcmp(r->name, "egress") == 0
				       ? egress_means(a, results[NATIVE_STEP_CAPTURE])
				       : r->mechanism;
		if (strcmp(r->name, "egress") == 0 && results[NATIVE_STEP_NET])
			err = results[NATIVE_STEP_NET];
		p->enforced = err == 0;
		if (err == 0 && strcmp(r->name, "names") == 0)
			explain_names(a, facts, 0, p);
		if (err == 0)
			continue;
		/* that there are no namespaces explains everything that needs them */
		if (cause && (r->step <= NATIVE_STEP_OTHER || results[NATIVE_STEP_NET])) {
			p->missing = cause;
			p->remedy = remedy;
		} else {
			explain(a, facts, r, err, p);
		}
	}
}

void native_properties(struct arena *a, const struct plan_facts *facts, struct properties *ret)
{
	const int results[NATIVE_STEP_MAX_] = { [NATIVE_STEP_PROC] =
							facts->weaker_proc ? EPERM : 0 };

	native_judge(a, facts, results, NULL, NULL, ret);
}

int native_probe(struct arena *a, struct properties *ret, struct error *e)
{
	int results[NATIVE_STEP_MAX_] = { 0 };
	int r = probe_steps(results);
	struct plan_facts facts;
	struct diagnosis d = { NULL, NULL };

	(void)e;
	plan_gather_facts(a, NULL, &facts);
	if (r < 0 || results[NATIVE_STEP_USER]) {
		int err = r < 0 ? -r : results[NATIVE_STEP_USER];

		d = diagnose(err, geteuid(), r < 0 ? NATIVE_NO_NAMESPACE : NATIVE_NO_IDS);
		for (size_t i = 0; i <= NATIVE_STEP_OTHER; i++)
			results[i] = err;
		results[NATIVE_STEP_SECCOMP] = results[NATIVE_STEP_NOTIFY] = 0;
	}
	native_judge(a, &facts, results, d.cause, d.remedy, ret);
	return 0;
}
