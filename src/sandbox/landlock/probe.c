/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the landlock backend can hold here: one row per property, with what it needs. The same
 * rows answer `check`, `require` and the choice of a backend.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/sys.h"
#include "base/text.h"
#include "sandbox/landlock/landlock.h"
#include "sandbox/native/seccomp.h"

#define YAMA_SCOPE "/proc/sys/kernel/yama/ptrace_scope"
#define YAMA_ADMIN_ONLY 2

enum need {
	NEED_NOTHING,
	NEED_NEVER, /* what is not in the nature of this backend */
	NEED_USER, /* holds for others than root */
	NEED_BROKER,
};

struct row {
	const char *name;
	enum need need;
	int abi; /* of Landlock, at least */
	const char *mechanism;
	const char *lost; /* without it: what is not held */
};

static const struct row rows[] = {
	{ "user-namespaces", NEED_NEVER, 0, NULL, "the user's own ids are used" },
	{ "files", NEED_NOTHING, 1, "Landlock", "reading and writing files" },
	{ "attributes", NEED_BROKER, 1, "broker",
	  "modes, owners, times and attributes of files outside the writable directories" },
	{ "hidden", NEED_NEVER, 0, NULL,
	  "hidden files cannot be opened, but their names, sizes and times can be seen" },
	{ "processes", NEED_NEVER, 0, NULL,
	  "/proc is the host's: other processes can be seen, with their arguments" },
	{ "devices", NEED_USER, 1, "Landlock, a few devices",
	  "device files outside /dev can be opened by root" },
	{ "network", NEED_BROKER, 0, "system call filter and broker",
	  "unix sockets of the host can be connected to" },
	{ "ipc", NEED_NOTHING, 0, "system call filter", NULL },
	{ "landlock", NEED_NOTHING, 1, "Landlock", "everything" },
	{ "signal-scope", NEED_NOTHING, 6, "Landlock scopes",
	  "signals can be sent to the user's other processes" },
	{ "seccomp", NEED_NOTHING, 0, "system call filter", NULL },
	{ "names", NEED_BROKER, 1, "broker: Landlock and system call notification",
	  "protected names in writable directories can be made and changed" },
};

static bool holds(const struct row *r, const struct plan_facts *f)
{
	if (f->landlock_abi < r->abi)
		return false;
	switch (r->need) {
	case NEED_NOTHING:
		return true;
	case NEED_NEVER:
		return false;
	case NEED_USER:
		return f->uid != 0;
	case NEED_BROKER:
		return !f->no_listener;
	}
	return false;
}

void landlock_properties(struct arena *a, const struct plan_facts *f, struct properties *ret)
{
	*ret = (struct properties){ 0 };
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct row *r = &rows[i];
		struct property *p = ARENA_PUSH(a, ret->v, ret->n);

		p->name = r->name;
		p->enforced = holds(r, f);
		p->inherent = r->need == NEED_NEVER || r->need == NEED_USER;
		p->mechanism = strcmp(r->name, "landlock") == 0
				       ? arena_printf(a, "Landlock ABI %d", f->landlock_abi)
				       : r->mechanism;
		if (p->enforced)
			continue;
		p->missing = f->landlock_abi < r->abi
				     ? arena_printf(a, "%s (needs Landlock ABI %d, here it is %d)",
						    r->lost, r->abi, f->landlock_abi)
			     : r->need == NEED_BROKER
				     ? arena_printf(a, "%s (%s)", r->lost, f->no_listener)
				     : r->lost;
	}
}

/* In a child: can somebody be asked about calls? 0, or the errno. */
static int try_listener(void)
{
	static const struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	int status = 0, r;
	pid_t pid = fork();

	if (pid < 0)
		return errno;
	if (pid == 0) {
		(void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
		r = seccomp_load(&allow, 1, SECCOMP_FILTER_FLAG_NEW_LISTENER);
		_exit(r < 0 ? -r & 0xff : 0);
	}
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return WIFEXITED(status) ? WEXITSTATUS(status) : EIO;
}

void landlock_gather(struct plan_facts *facts)
{
	_cleanup_free_ char *scope = NULL;
	int err;

	if (fd_read_file(AT_FDCWD, YAMA_SCOPE, 64, &scope, NULL) == 0 &&
	    text_leading_u64(scope) >= YAMA_ADMIN_ONLY) {
		facts->no_listener = "kernel.yama.ptrace_scope lets nobody read the arguments of "
				     "calls";
		return;
	}
	err = try_listener();
	facts->nested = err == EBUSY;
	if (err == EBUSY)
		facts->no_listener = "another sandbox watches the calls already";
	else if (err)
		facts->no_listener = "the kernel has no system call notification, or it is refused";
}

int landlock_probe(struct arena *a, struct properties *ret, struct error *e)
{
	struct plan_facts facts;

	(void)e;
	plan_gather_facts(a, NULL, &facts);
	landlock_gather(&facts);
	landlock_properties(a, &facts, ret);
	return 0;
}
