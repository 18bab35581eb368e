/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ambit on an older kernel: of the rights that Landlock has here, those of AMBIT_TEST_ABI are
 * used, with AMBIT_TEST_SIGNALS notified calls are interrupted by signals, and with
 * AMBIT_TEST_NO_SEAL there is no mount_setattr(2). The rest is the running kernel's, which then
 * does what the old one does.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/sys.h"
#include "base/text.h"

int __wrap_sys_landlock_abi(void);
int __real_sys_landlock_abi(void);

int __wrap_sys_landlock_abi(void)
{
	const char *abi = getenv("AMBIT_TEST_ABI");

	return abi && *abi ? (int)text_leading_u64(abi) : __real_sys_landlock_abi();
}

bool __wrap_sys_seccomp_knows(unsigned flags);
bool __real_sys_seccomp_knows(unsigned flags);

bool __wrap_sys_seccomp_knows(unsigned flags)
{
	return !getenv("AMBIT_TEST_SIGNALS") && __real_sys_seccomp_knows(flags);
}

bool __wrap_sys_can_seal(void);
bool __real_sys_can_seal(void);

bool __wrap_sys_can_seal(void)
{
	return !getenv("AMBIT_TEST_NO_SEAL") && __real_sys_can_seal();
}

int __wrap_sys_mount_setattr(int dirfd, const char *path, unsigned flags, uint64_t set,
			     uint64_t clear, uint64_t propagation);
int __real_sys_mount_setattr(int dirfd, const char *path, unsigned flags, uint64_t set,
			     uint64_t clear, uint64_t propagation);

int __wrap_sys_mount_setattr(int dirfd, const char *path, unsigned flags, uint64_t set,
			     uint64_t clear, uint64_t propagation)
{
	return getenv("AMBIT_TEST_NO_SEAL")
		       ? -ENOSYS
		       : __real_sys_mount_setattr(dirfd, path, flags, set, clear, propagation);
}
