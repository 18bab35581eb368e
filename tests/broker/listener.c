/* SPDX-License-Identifier: Apache-2.0 */
/* listener COMMAND...: run it where somebody watches system calls already, as some runtimes do. */
#include <err.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	struct sock_fprog program = { 1, &allow };

	int status = 0;
	pid_t pid;

	if (argc < 2)
		return 2;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER,
		    &program) < 0)
		err(1, "seccomp");
	/* the watcher lives as long as its descriptor, which is ours */
	pid = fork();
	if (pid == 0) {
		execvp(argv[1], argv + 1);
		err(1, "%s", argv[1]);
	}
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
