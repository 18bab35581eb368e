/* SPDX-License-Identifier: Apache-2.0 */
/*
 * filter COMMAND...: the command under a system call filter of one instruction, which allows
 * everything. What that costs, no sandbox with a filter can do without.
 */
#include <err.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	struct sock_fprog program = { .len = 1, .filter = &allow };

	if (argc < 2)
		errx(2, "usage: filter COMMAND...");
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0)
		err(1, "filter");
	(void)execvp(argv[1], argv + 1);
	err(127, "%s", argv[1]);
}
