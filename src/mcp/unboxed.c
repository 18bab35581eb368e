/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is left without a sandbox: an environment by allow-list, no descriptors but three, a
 * session of its own that is ended as a whole. Whoever leaves that session gets away.
 */
#include "mcp/unboxed.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/remove.h"
#include "base/sys.h"
#include "base/text.h"

#define EXIT_CANNOT_RUN 126

int unboxed_stage(struct arena *a, struct unboxed *u, const char **ret, struct error *e)
{
	const char *tmp = secure_getenv("TMPDIR");
	char *dir = arena_printf(a, "%s/ambit-mcp.XXXXXX", tmp && tmp[0] == '/' ? tmp : "/tmp");

	if (!mkdtemp(dir))
		return error_set(e, errno, "%s: %s", dir, strerror(errno));
	u->stage = strdup(dir);
	*ret = dir;
	return u->stage ? 0 : error_set(e, ENOMEM, "out of memory");
}

static int write_file(const struct plan_file *f)
{
	_cleanup_fd_ int fd = open(f->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	return fd < 0 ? -errno : fd_write_all(fd, f->text, strlen(f->text));
}

/*
 * The environment by the rules, without what only a sandbox may claim. Temporary files go where they
 * are removed at the end.
 */
static char **environment(struct arena *a, const struct session_request *req, const char *stage)
{
	struct policy p = *req->policy;
	char **all, **env = NULL;
	size_t n = 0;

	p.network.mode = NETWORK_HOST;
	p.fs.tmp = TMP_SHARED;
	all = policy_environment(&p, a, req->environ_in, NULL);
	for (char **v = all; *v; v++) {
		if (!text_starts(*v, "AMBIT=") && !text_starts(*v, "SANDBOX_RUNTIME=") &&
		    !text_starts(*v, "TMPDIR="))
			*ARENA_PUSH(a, env, n) = *v;
	}
	if (stage)
		*ARENA_PUSH(a, env, n) = arena_printf(a, "TMPDIR=%s", stage);
	*ARENA_PUSH(a, env, n) = NULL;
	return env;
}

static void become(const struct session_request *req, char *const *env)
{
	(void)setsid();
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (int i = 0; i < 3; i++) {
		if (dup2(req->stdio[i], i) < 0)
			_exit(EXIT_CANNOT_RUN);
	}
	(void)sys_close_range(3, ~0U, 0);
	(void)signal(SIGPIPE, SIG_DFL);
	(void)sigprocmask(SIG_SETMASK, &req->mask, NULL);
	if (chdir(req->policy->cwd) < 0)
		dprintf(STDERR_FILENO, "%s: %s\n", req->policy->cwd, strerror(errno));
	else
		(void)execve(req->argv[0], req->argv, env);
	dprintf(STDERR_FILENO, "%s: %s\n", req->argv[0], strerror(errno));
	_exit(EXIT_CANNOT_RUN);
}

int unboxed_start(struct unboxed *u, const struct session_request *req, struct error *e)
{
	_cleanup_arena_ struct arena *a = arena_new();
	char **env = environment(a, req, u->stage);

	for (size_t i = 0; i < req->n_files; i++) {
		int r = write_file(&req->files[i]);

		if (r < 0)
			return error_set(e, -r, "%s: %s", req->files[i].path, strerror(-r));
	}
	u->started_ms = sys_now_ms();
	u->pid = fork();
	if (u->pid == 0)
		become(req, env);
	if (u->pid < 0)
		return error_set(e, errno, "cannot start a process: %s", strerror(errno));
	u->pidfd = (int)syscall(SYS_pidfd_open, u->pid, 0);
	if (u->pidfd < 0) {
		int err = errno;

		unboxed_signal(u, SIGKILL);
		(void)waitpid(u->pid, NULL, 0);
		return error_set(e, err, "cannot watch a process: %s", strerror(err));
	}
	return 0;
}

void unboxed_signal(const struct unboxed *u, int sig)
{
	/* not a session leader yet when the child has not come that far: then it alone */
	if (u->pid > 0 && kill(-u->pid, sig) < 0)
		(void)kill(u->pid, sig);
}

/* With all that was put there: it was the program's TMPDIR. */
static void remove_stage(struct unboxed *u)
{
	int dir = u->stage ? remove_open(AT_FDCWD, u->stage) : -1;

	if (dir >= 0)
		remove_contents(dir);
	if (u->stage)
		(void)rmdir(u->stage);
	free(TAKE_PTR(u->stage));
}

void unboxed_end(struct unboxed *u, struct run_result *ret)
{
	struct rusage usage = { 0 };
	int status = 0;

	if (u->pid > 0) {
		unboxed_signal(u, SIGKILL); /* what is left of its session */
		(void)wait4(u->pid, &status, 0, &usage);
	}
	*ret = (struct run_result){
		.wall_ms = sys_now_ms() - u->started_ms,
		.cpu_ms = (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000 +
			  (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1000,
		.max_rss = (uint64_t)usage.ru_maxrss * 1024,
		.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0,
	};
	ret->exit_code = ret->signal ? 128 + ret->signal : WEXITSTATUS(status);
	fd_close(TAKE_FD(u->pidfd));
	u->pid = -1;
	remove_stage(u);
}
