/* SPDX-License-Identifier: Apache-2.0 */
/* An impure neighbour of plan_compile(): facts of this process. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "base/sys.h"
#include "policy/inputs.h"
#include "sandbox/plan.h"

/* Inside a sandbox without namespaces, /tmp itself is hidden. */
static const char *temporary(char *const *environ_in)
{
	for (; environ_in && *environ_in; environ_in++) {
		struct stat st;

		if (strncmp(*environ_in, "TMPDIR=/", 8) == 0 && stat(*environ_in + 7, &st) == 0 &&
		    S_ISDIR(st.st_mode))
			return *environ_in + 7;
	}
	return "/tmp";
}

void plan_gather_facts(struct arena *a, char *const *environ_in, struct plan_facts *ret)
{
	char link[64];
	struct sysinfo machine;
	uint64_t random = 0;
	ssize_t n = -1;

	(void)!getrandom(&random, sizeof(random), 0); /* a name that is taken is refused */

	*ret = (struct plan_facts){
		.uid = geteuid(),
		.gid = getegid(),
		.environ_in = environ_in,
		.direct_library = inputs_helper(a, "ambit-direct.so"),
		.landlock_abi = sys_landlock_abi(),
		.wait_killable = sys_seccomp_knows(SYS_SECCOMP_NEW_LISTENER |
						   SYS_SECCOMP_WAIT_KILLABLE_RECV),
	};
	/* what has Landlock is new enough */
	ret->landlock_off = ret->landlock_abi == 0 && sys_landlock_is_off();
	ret->too_old = ret->landlock_abi == 0 && !sys_can_seal();
	if (sysinfo(&machine) == 0)
		ret->memory = (uint64_t)machine.totalram * machine.mem_unit;
	ret->private_tmp = arena_printf(a, "%s/ambit-%016" PRIx64, temporary(environ_in), random);
	for (int fd = 0; fd <= 2 && n < 0; fd++) {
		if (isatty(fd))
			n = readlink(arena_printf(a, "/proc/self/fd/%d", fd), link, sizeof(link));
	}
	/* only a pty or console of this name space can be shown again inside */
	if (n > 0 && (size_t)n < sizeof(link)) {
		char *path = arena_strndup(a, link, (size_t)n);
		struct stat st;

		if (strncmp(path, "/dev/", 5) == 0 && stat(path, &st) == 0 && S_ISCHR(st.st_mode))
			ret->tty = path;
	}
}
