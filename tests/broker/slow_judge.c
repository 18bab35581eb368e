/* SPDX-License-Identifier: Apache-2.0 */
/* A broker whose judgement of git's configuration takes until AMBIT_TEST_GO is there. */
#include <stdlib.h>
#include <unistd.h>

#include "supervise/broker/gitconfig.h"

#define PATIENCE 10000 /* milliseconds */

int __wrap_gitconfig_check(const char *before, const char *after,
			   const struct gitconfig_place *place, struct gitconfig_finding *ret);
int __real_gitconfig_check(const char *before, const char *after,
			   const struct gitconfig_place *place, struct gitconfig_finding *ret);

int __wrap_gitconfig_check(const char *before, const char *after,
			   const struct gitconfig_place *place, struct gitconfig_finding *ret)
{
	const char *go = getenv("AMBIT_TEST_GO");

	for (int i = 0; go && i < PATIENCE && access(go, F_OK) < 0; i++)
		(void)usleep(1000);
	return __real_gitconfig_check(before, after, place, ret);
}
