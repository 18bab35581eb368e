/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "supervise/broker/broker.h"

/* The lock that brokers of this user share; held only around decisions on git directories. */
static int open_or_make(const struct policy *p)
{
	_cleanup_arena_ struct arena *a = arena_new();
	const char *runtime = arena_printf(a, "/run/user/%u", geteuid());
	struct stat st;
	char *dir;

	if (stat(runtime, &st) == 0 && st.st_uid == geteuid() && (st.st_mode & 022) == 0)
		return open(path_join(a, runtime, "ambit.lock"),
			    O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0200);
	dir = p->state_dir ? arena_strdup(a, p->state_dir)
			   : path_join(a, p->home, ".local/state/ambit");
	for (char *s = dir + 1; (s = strchr(s, '/')); *s++ = '/') {
		*s = '\0';
		(void)mkdir(dir, 0700);
	}
	(void)mkdir(dir, 0700);
	return open(path_join(a, dir, "lock"), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0200);
}

int broker_open_lock(const struct policy *p)
{
	int fd = open_or_make(p);

	/* nobody inside may open it, else one sandbox could make all the others wait */
	if (fd >= 0)
		(void)fchmod(fd, 0200);
	return fd;
}
