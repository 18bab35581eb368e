/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is done inside the new namespaces besides the mounts, whoever made them: by the native
 * backend's child, or by ambit-init where another program did (bwrap).
 */
#include <errno.h>
#include <net/if.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/sys.h"
#include "sandbox/native/egress.h"
#include "sandbox/native/native.h"

const char *native_proc_secret(const struct plan *plan, size_t i)
{
	/* names of keys that are shared with the host; for root, pages of the whole machine */
	static const char *const secrets[] = { "/proc/keys",        "/proc/timer_list",
					       "/proc/vmallocinfo", "/proc/slabinfo",
					       "/proc/kpagecount",  "/proc/kpageflags",
					       "/proc/kpagecgroup", NULL };

	return plan->uid == 0 || i == 0 ? secrets[i] : NULL;
}

static int set_loopback(short flags, const char *how, struct error *e)
{
	_cleanup_fd_ int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq req = { .ifr_name = "lo", .ifr_flags = flags };

	if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &req) < 0)
		return error_set(e, errno, "cannot bring the loopback interface %s: %s", how,
				 strerror(errno));
	return 0;
}

int native_lower_loopback(struct error *e)
{
	return set_loopback(0, "down", e);
}

int native_network(const struct plan *plan, int errors, struct error *e)
{
	int r = plan->loopback ? set_loopback(IFF_UP | IFF_RUNNING, "up", e) : 0;

	if (r == 0 && plan->egress)
		r = native_egress(errors, plan->host_ports, plan->n_host_ports, e);
	if (r == 0 && plan->n_publish)
		r = native_seeds(errors, e);
	return r;
}

/* What the command and init have in common: no way back to any privilege. */
int native_drop_privileges(const struct plan *plan, struct error *e)
{
	static const struct rlimit no_core = { 0, 0 };
	int r;

	r = sys_join_session_keyring();
	/* in a sandbox whose filter refuses it, keys cannot be used at all */
	if (r < 0 && r != -ENOSYS && r != -EDQUOT &&
	    !((plan->bare || plan->contained) && r == -EPERM))
		return error_set(e, -r, "cannot make a session keyring: %s", strerror(-r));
	if (setrlimit(RLIMIT_CORE, &no_core) < 0)
		return error_set(e, errno, "cannot forbid core dumps: %s", strerror(errno));
	r = sys_drop_capabilities();
	if (r < 0)
		return error_set(e, -r, "cannot drop capabilities: %s", strerror(-r));
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return error_set(e, errno, "cannot set no_new_privs: %s", strerror(errno));
	return 0;
}

int native_settle(const struct plan *plan, const struct sandbox_limits *limits, int control,
		  int errors, struct error *e)
{
	int r;

	if (chdir(plan->cwd) < 0)
		return error_set(e, errno, "cannot enter %s inside the sandbox: %s", plan->cwd,
				 strerror(errno));
	r = native_limits_enter(plan, limits, control, errors, e);
	return r == 0 ? native_drop_privileges(plan, e) : r;
}
