/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The last steps of the command's own process: terminal, Landlock, seccomp,
 * exec. From the filter on, nothing but exec is called; where the command is told later, it is
 * waited for in between.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/sys.h"
#include "sandbox/landlock/landlock.h"
#include "sandbox/native/native.h"
#include "sandbox/native/seccomp.h"
#include "sandbox/search.h"

/* The command leads its own process group; on a terminal, the foreground one. */
static void take_terminal(int tty)
{
	sigset_t ttou, old;

	(void)setpgid(0, 0);
	if (tty < 0)
		return;
	(void)sigemptyset(&ttou);
	(void)sigaddset(&ttou, SIGTTOU);
	(void)sigprocmask(SIG_BLOCK, &ttou, &old);
	(void)tcsetpgrp(tty, getpid());
	(void)sigprocmask(SIG_SETMASK, &old, NULL);
}

static void take_stdio(const int *stdio)
{
	for (int fd = 0; fd <= 2; fd++) {
		if (stdio[fd] >= 0 && dup2(stdio[fd], fd) < 0)
			_exit(125);
	}
}

/*
 * A directory on 0, 1 or 2 would be a door to the host's own tree, past all mounts; an O_PATH
 * descriptor likewise. Nobody reads from or writes to one.
 */
static void close_doors(void)
{
	for (int fd = 0; fd <= 2; fd++) {
		struct stat st;
		int flags = fcntl(fd, F_GETFL), null;

		if (flags < 0 || fstat(fd, &st) < 0 || (!S_ISDIR(st.st_mode) && !(flags & O_PATH)))
			continue;
		null = open("/dev/null", O_RDWR | O_CLOEXEC);
		if (null < 0 || dup2(null, fd) < 0)
			_exit(125);
		fd_close(null);
	}
}

/* The two sockets that are still needed become 3 and 4. */
static void keep_two(int *errors, int *listener)
{
	int a = fcntl(*errors, F_DUPFD_CLOEXEC, 5), b = fcntl(*listener, F_DUPFD_CLOEXEC, 5);

	if (a < 0 || b < 0 || dup3(a, 3, O_CLOEXEC) < 0 || dup3(b, 4, O_CLOEXEC) < 0)
		_exit(125);
	*errors = 3;
	*listener = 4;
}

/* What the broker needs. Opened before the filter, which might ask the broker. */
static int open_namespaces(const struct plan *plan, bool later, int *fds, struct error *e)
{
	static const struct {
		const char *path;
		int flags;
	} files[NATIVE_DESCRIPTOR_MAX_] = {
		[NATIVE_USER_NS] = { "/proc/self/ns/user", O_RDONLY },
		[NATIVE_MOUNT_NS] = { "/proc/self/ns/mnt", O_RDONLY },
		[NATIVE_ROOT] = { "/", O_PATH | O_DIRECTORY },
	};

	for (size_t i = 0; i < NATIVE_DESCRIPTOR_MAX_; i++) {
		const char *path = files[i].path;
		bool needed = path && !plan->bare && (i != NATIVE_ROOT || later);

		fds[i] = needed ? open(path, files[i].flags | O_CLOEXEC) : -1;
		if (needed && fds[i] < 0)
			return error_set(e, errno, "cannot open %s: %s", path, strerror(errno));
	}
	return 0;
}

static int hand_over(int sock, const int *fds, struct error *e)
{
	const char word = 0;
	size_t n = 0;
	int r;

	while (n < NATIVE_DESCRIPTOR_MAX_ && fds[n] >= 0)
		n++;
	r = fd_send_many(sock, &word, 1, fds, n);

	for (size_t i = 0; i < NATIVE_DESCRIPTOR_MAX_; i++)
		fd_close(fds[i]);
	return r < 0 ? error_set(e, -r, "cannot reach the supervisor: %s", strerror(-r)) : 0;
}

static int load_filter(const struct plan *plan, const struct sandbox_command *cmd, int sock,
		       struct error *e)
{
	bool notify = plan->broker;
	struct sock_filter filter[SECCOMP_FILTER_MAX];
	struct seccomp_options options = SECCOMP_OPTIONS_DEFAULT;
	int fds[NATIVE_DESCRIPTOR_MAX_];
	int n, r;

	options.notify = notify;
	options.watch = plan->watch;
	options.all_unix = plan->all_unix;
	options.no_openat2 = plan->cut_unguarded;
	options.direct = plan->direct;
	options.no_listen = plan->no_listen;
	options.no_memfd = cmd->limits && cmd->limits->no_memfd;
	options.no_fallocate = cmd->limits && cmd->limits->no_fallocate;
	options.pinned = cmd->limits && cmd->limits->pinned;
	options.bare = plan->bare;
	options.alone = !notify;
	options.no_network = plan->bare && plan->new_net;
	n = seccomp_build(seccomp_native_arch(), &options, filter, SECCOMP_FILTER_MAX, e);
	if (n < 0)
		return n;
	r = notify ? open_namespaces(plan, cmd->later, fds, e) : 0;
	if (r < 0)
		return r;
	/* WAIT_KILLABLE_RECV: a signal must not restart a call that was performed */
	r = seccomp_load(filter, (size_t)n,
			 !notify ? 0
			 : plan->wait_killable
				 ? SYS_SECCOMP_NEW_LISTENER | SYS_SECCOMP_WAIT_KILLABLE_RECV
				 : SYS_SECCOMP_NEW_LISTENER);
	if (r < 0 && notify)
		return error_set(e, -r, "cannot watch the system calls of the command: %s%s",
				 strerror(-r),
				 r == -EBUSY ? " (another sandbox around this one does)" : "");
	if (r < 0)
		return error_set(e, -r, "cannot load the system call filter: %s", strerror(-r));
	if (!notify)
		return 0;
	fds[NATIVE_LISTENER] = r;
	return hand_over(sock, fds, e);
}

/* The command is told now. */
static void exec_later(int errors, struct error *e)
{
	char **argv, **env;

	if (native_take_command(errors, &argv, &env, e) == 0) {
		close_doors();
		(void)sandbox_exec(argv[0], argv, env, e);
	}
}

_Noreturn void native_exec(const struct plan *plan, const struct sandbox_command *cmd, int errors,
			   int listener, mode_t mask)
{
	struct error e = { 0 };
	int r;

	(void)umask(mask);
	take_terminal(cmd->tty);
	take_stdio(cmd->stdio);
	close_doors();
	/* nothing of the caller's but 0-2 reaches the command, not even across a failed exec */
	keep_two(&errors, &listener);
	r = sys_close_range(5, ~0u, 0);
	if (r < 0)
		(void)error_set(&e, -r, "cannot close inherited files: %s", strerror(-r));
	(void)sigprocmask(SIG_SETMASK, &cmd->mask, NULL);
	if (r == 0 && plan->landlock)
		r = plan->bare ? landlock_enter_command(plan, &e) : native_landlock(plan, &e);
	if (r == 0)
		r = load_filter(plan, cmd, listener, &e);
	if (r == 0 && cmd->later)
		exec_later(errors, &e);
	else if (r == 0)
		(void)sandbox_exec(cmd->argv[0], cmd->argv, plan->env, &e);
	(void)!send(errors, &e, sizeof(e), MSG_NOSIGNAL);
	_exit(e.exit_code ? e.exit_code : 125);
}
