/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A broker with the classical mistake: it looks at the path, finds it harmless, and lets the
 * kernel go on with it, in directories that the kernel does not close. Between the two looks the
 * command changes the path in its memory.
 */
#include "base/sys.h"
#include "supervise/broker/internal.h"

int __wrap_call_hand_over(const struct call *c, int fd, bool cloexec);
int __wrap_sys_landlock_add_path(int ruleset, int path_fd, uint64_t access);
int __real_sys_landlock_add_path(int ruleset, int path_fd, uint64_t access);

#define GUARDED SYS_LANDLOCK_REMOVE_FILE
#define DIRECT (GUARDED | SYS_LANDLOCK_WRITE_FILE | SYS_LANDLOCK_MAKE_REG)

int __wrap_call_hand_over(const struct call *c, int fd, bool cloexec)
{
	(void)c;
	(void)fd;
	(void)cloexec;
	return ANSWER_CONTINUE;
}

int __wrap_sys_landlock_add_path(int ruleset, int path_fd, uint64_t access)
{
	return __real_sys_landlock_add_path(ruleset, path_fd, access == GUARDED ? DIRECT : access);
}
