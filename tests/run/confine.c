/* SPDX-License-Identifier: Apache-2.0 */
/* confine DIR PROGRAM...: run PROGRAM so that it may write below DIR only, by Landlock. */
#include <fcntl.h>
#include <linux/landlock.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define WRITES 0x3ff2ull /* every right to change files of ABI 2 */

int main(int argc, char **argv)
{
	struct landlock_ruleset_attr rules = { .handled_access_fs = WRITES };
	struct landlock_path_beneath_attr below = { .allowed_access = WRITES };
	int ruleset = (int)syscall(SYS_landlock_create_ruleset, &rules, sizeof(rules), 0);

	below.parent_fd = argc > 2 ? open(argv[1], O_PATH | O_CLOEXEC) : -1;
	if (ruleset < 0 || below.parent_fd < 0 ||
	    syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &below, 0) < 0 ||
	    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    syscall(SYS_landlock_restrict_self, ruleset, 0) < 0) {
		perror("confine");
		return 2;
	}
	execvp(argv[2], argv + 2);
	perror(argv[2]);
	return 2;
}
