/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Start bwrap with a plan's arguments and wait until ambit-init inside says that bwrap's part is
 * done. What bwrap says when it fails is read from its standard error and becomes our error; from
 * ambit-init's word on, errors come as from the native backend.
 *
 * The descriptors stand where enum bwrap_fd says, and no others are open: bwrap passes on
 * whatever it finds.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/sys.h"
#include "base/text.h"
#include "policy/inputs.h"
#include "sandbox/bwrap/bwrap.h"
#include "sandbox/bwrap/inner.h"
#include "sandbox/native/native.h"

#define START_PATIENCE_MS 30000
#define SAID_MAX 512 /* of what bwrap says; the rest is lost */
#define ASIDE_FD 256 /* above all that are given a place */

_Static_assert(BWRAP_FD_TEXT + BWRAP_TEXTS_MAX < ASIDE_FD, "room for all");

/* ---- in the child, before it is bwrap ---- */

static _Noreturn void say(const char *what)
{
	(void)dprintf(STDERR_FILENO, "%s: %s", what, strerror(errno));
	_exit(125);
}

/* First out of the way, then to their places; whatever else is open is closed. */
static void place_descriptors(const struct bwrap_launch *l)
{
	int aside[ARRAY_LEN(l->fds)], null = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (size_t i = STDERR_FILENO + 1; i < ARRAY_LEN(l->fds); i++) {
		aside[i] = l->fds[i] < 0 ? -1 : fcntl(l->fds[i], F_DUPFD_CLOEXEC, ASIDE_FD);
		if (l->fds[i] >= 0 && aside[i] < 0)
			say("cannot pass on a descriptor");
	}
	if (dup2(l->said, STDERR_FILENO) < 0 || dup2(null, STDIN_FILENO) < 0 ||
	    dup2(null, STDOUT_FILENO) < 0)
		say("/dev/null");
	for (size_t i = STDERR_FILENO + 1; i < ARRAY_LEN(l->fds); i++) {
		if (aside[i] < 0)
			fd_close((int)i);
		else if (dup2(aside[i], (int)i) < 0)
			say("cannot pass on a descriptor");
	}
	if (sys_close_range(ARRAY_LEN(l->fds), ~0u, 0) < 0)
		say("cannot close inherited files");
}

static _Noreturn void become_bwrap(const struct bwrap_launch *l,
				   const struct sandbox_limits *limits)
{
	char number[16];
	const char *argv[] = { "bwrap", "--args", number, "--", BWRAP_COMMAND, l->mode, NULL };
	char *const no_environment[] = { NULL };
	struct error e = { 0 };

	(void)snprintf(number, sizeof(number), "%d", BWRAP_FD_ARGUMENTS);
	/* keys at the terminal are for the command */
	(void)setpgid(0, 0);
	(void)prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
	place_descriptors(l);
	if (native_limits_begin(limits, &e) < 0) {
		(void)dprintf(STDERR_FILENO, "%s", e.text);
		_exit(125);
	}
	(void)execve(l->program, (char *const *)(uintptr_t)argv, no_environment);
	say(l->program);
}

/* ---- around it ---- */

/* A file of these bytes, to be read from its beginning, that nobody can change any more. */
static int make_file(const void *data, size_t len)
{
	_cleanup_fd_ int fd = memfd_create("ambit", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int r = fd < 0 ? -errno : fd_write_all(fd, data, len);

	if (r == 0 && (lseek(fd, 0, SEEK_SET) < 0 ||
		       fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0))
		r = -errno;
	return r < 0 ? r : TAKE_FD(fd);
}

static int make_arguments(const struct bwrap_launch *l)
{
	_cleanup_buf_ struct buf b = BUF_INIT(BUF_MAX_TEXT);

	for (size_t i = 0; i < l->n_words; i++)
		buf_append(&b, l->words[i], strlen(l->words[i]) + 1);
	return make_file(buf_str(&b), b.len);
}

static int open_program(struct error *e)
{
	_cleanup_arena_ struct arena *a = arena_new();
	const char *path = inputs_helper(a, "ambit-init");
	int fd = path ? open(path, O_PATH | O_CLOEXEC) : -1;

	return fd < 0 ? error_set(e, ENOENT,
				  "cannot open ambit-init at %s: it belongs to ambit, which is not "
				  "completely installed",
				  path ? path : "(unknown)")
		      : fd;
}

/* What bwrap said, in one line; its end is awaited. */
static int explain(int said, struct error *e)
{
	char text[SAID_MAX + 1];
	ssize_t n = fd_read_full(said, text, SAID_MAX);
	size_t len = n > 0 ? (size_t)n : 0;
	const char *from = text;

	while (len && (text[len - 1] == '\n' || text[len - 1] == ' '))
		len--;
	text[len] = '\0';
	for (char *s = text; (s = strchr(s, '\n')); s++)
		*s = ' ';
	if (strncmp(from, "bwrap: ", 7) == 0)
		from += 7;
	return error_set(e, EPERM, "cannot make the sandbox with bwrap: %s%s",
			 *from ? from : "it ended without a word",
			 strstr(from, "nknown option") ? " (bubblewrap 0.8.0 or later is needed)"
						       : "");
}

static int await_ready(int ready, int said, void *answer, size_t len, int *ret_fd, struct error *e)
{
	struct pollfd p = { .fd = ready, .events = POLLIN };
	ssize_t n;
	int r;

	do {
		r = poll(&p, 1, START_PATIENCE_MS);
	} while (r < 0 && errno == EINTR);
	if (r <= 0)
		return error_set(e, ETIMEDOUT, "bwrap does not come to an end with the mounts");
	n = fd_receive(ready, answer, len, ret_fd);
	if (n == (ssize_t)len)
		return 0;
	return n > 0 ? error_set(e, EBADMSG, "ambit-init is not of the same build as ambit")
		     : explain(said, e);
}

int bwrap_run(struct bwrap_launch *l, const struct sandbox_limits *limits, void *answer, size_t len,
	      pid_t *ret_pid, int *ret_fd, struct error *e)
{
	_cleanup_fd_ int program = open_program(e), arguments = -1;
	int ready[2] = { -1, -1 }, said[2] = { -1, -1 }, r;
	pid_t pid = -1;

	if (program < 0)
		return program;
	arguments = make_arguments(l);
	if (arguments < 0 || pipe2(said, O_CLOEXEC) < 0 ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ready) < 0) {
		r = error_set(e, errno, "cannot start bwrap: %s", strerror(errno));
	} else {
		l->fds[BWRAP_FD_PROGRAM] = program;
		l->fds[BWRAP_FD_ARGUMENTS] = arguments;
		l->fds[BWRAP_FD_READY] = ready[1];
		l->said = said[1];
		pid = fork();
		if (pid == 0)
			become_bwrap(l, limits);
		r = pid < 0 ? error_set(e, errno, "cannot start bwrap: %s", strerror(errno)) : 0;
	}
	/* nobody but bwrap and ambit-init has them: their end is an answer too */
	fd_close(ready[1]);
	fd_close(said[1]);
	if (r == 0)
		r = await_ready(ready[0], said[0], answer, len, ret_fd, e);
	fd_close(said[0]);
	if (r < 0)
		fd_close(TAKE_FD(ready[0]));
	l->ready = ready[0];
	if (r < 0 && pid > 0) {
		(void)kill(pid, SIGKILL);
		(void)waitpid(pid, NULL, 0);
	}
	if (r == 0)
		*ret_pid = pid;
	return r;
}

/* ---- a command ---- */

static int add_texts(const struct plan *plan, struct bwrap_launch *l)
{
	size_t n = 0;

	for (size_t i = 0; i < plan->n_mounts; i++) {
		const struct mount_step *m = &plan->mounts[i];
		int fd;

		if (m->kind != MOUNT_TEXT)
			continue;
		fd = make_file(m->text, strlen(m->text));
		if (fd < 0)
			return fd;
		l->fds[BWRAP_FD_TEXT + n++] = fd;
	}
	return 0;
}

static int add_orders(const struct plan *plan, const struct sandbox_command *cmd,
		      struct bwrap_launch *l, struct error *e)
{
	_cleanup_buf_ struct buf orders = BUF_INIT(INNER_MAX);
	int r;

	inner_pack(plan, cmd, &orders);
	if (orders.overflow)
		return error_set(e, E2BIG,
				 "the arguments, the environment and the rules are too "
				 "long for ambit-init");
	r = make_file(orders.data, orders.len);
	if (r < 0)
		return error_set(e, -r, "cannot make a file in memory: %s", strerror(-r));
	l->fds[BWRAP_FD_ORDERS] = r;
	r = add_texts(plan, l);
	return r < 0 ? error_set(e, -r, "cannot make a file in memory: %s", strerror(-r)) : 0;
}

static int add_command(const struct sandbox_command *cmd, struct bwrap_launch *l, struct error *e)
{
	for (int i = 0; i <= 2; i++) {
		int fd = cmd->stdio[i] >= 0 ? cmd->stdio[i] : i;

		l->fds[BWRAP_FD_STDIN + i] = fcntl(fd, F_GETFD) < 0 ? -1 : fd;
	}
	l->fds[BWRAP_FD_TTY] = cmd->tty;
	if (!cmd->limits || cmd->limits->born_in < 0)
		return 0;
	l->fds[BWRAP_FD_GROUP] = openat(cmd->limits->born_in, "cgroup.procs", O_WRONLY | O_CLOEXEC);
	return l->fds[BWRAP_FD_GROUP] < 0
		       ? error_set(e, errno, "cannot enter the cgroup: %s", strerror(errno))
		       : 0;
}

/* The process as we see it, which is not as it sees itself. */
static pid_t pid_of(int pidfd)
{
	_cleanup_free_ char *text = NULL;
	char path[64];
	const char *line;

	(void)snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", pidfd);
	if (fd_read_file(AT_FDCWD, path, 4096, &text, NULL) < 0)
		return -1;
	line = strstr(text, "\nPid:\t");
	return line ? (pid_t)text_leading_u64(line + 6) : -1;
}

/* Ours; the others belong to whoever gave them. */
static void close_files(struct bwrap_launch *l)
{
	fd_close(l->fds[BWRAP_FD_ORDERS]);
	fd_close(l->fds[BWRAP_FD_GROUP]);
	for (size_t i = BWRAP_FD_TEXT; i < ARRAY_LEN(l->fds); i++)
		fd_close(l->fds[i]);
}

static int launch(const struct plan *plan, const struct sandbox_command *cmd,
		  struct bwrap_launch *l, struct sandbox_child *child, struct error *e)
{
	char word = BWRAP_ABLE;
	int r = add_orders(plan, cmd, l, e);

	if (r == 0)
		r = add_command(cmd, l, e);
	if (r == 0)
		r = bwrap_run(l, cmd->limits, &word, sizeof(word), &child->pid, &child->pidfd, e);
	if (r < 0)
		return r;
	if (word == BWRAP_POWERLESS)
		r = bwrap_help(plan, child->pidfd, l->ready, l->fds[BWRAP_FD_ERRORS], e);
	fd_close(l->ready); /* without help ambit-init sees the end of it, and says so */
	child->init = pid_of(child->pidfd); /* -1: it has ended already */
	if (r < 0) {
		(void)kill(child->pid, SIGKILL);
		(void)waitpid(child->pid, NULL, 0);
		fd_close(child->pidfd);
	}
	return r;
}

static int bwrap_start(const struct plan *plan, const struct sandbox_command *cmd,
		       struct sandbox_child *ret, struct error *e)
{
	_cleanup_arena_ struct arena *a = arena_new();
	int control[2] = { -1, -1 }, errors[2] = { -1, -1 };
	struct sandbox_child child = SANDBOX_CHILD_INIT;
	struct bwrap_launch l = { .words = plan->bwrap, .n_words = plan->n_bwrap };
	int r = bwrap_find(a, &l.program, e);

	if (r < 0)
		return r;
	for (size_t i = 0; i < ARRAY_LEN(l.fds); i++)
		l.fds[i] = -1;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, control) < 0 ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, errors) < 0) {
		r = error_set(e, errno, "cannot make a socket: %s", strerror(errno));
	} else {
		l.fds[BWRAP_FD_CONTROL] = control[1];
		l.fds[BWRAP_FD_ERRORS] = errors[1];
		r = launch(plan, cmd, &l, &child, e);
		close_files(&l);
	}
	fd_close(control[1]);
	fd_close(errors[1]);
	if (r < 0) {
		fd_close(control[0]);
		fd_close(errors[0]);
		return r;
	}
	child.control = control[0];
	child.errors = errors[0];
	*ret = child;
	return 0;
}

static int bwrap_plan(struct arena *a, const struct policy *p, const struct plan_facts *facts,
		      const struct view *view, const struct plan **ret, struct error *e)
{
	struct plan_facts own = *facts;

	own.backend = BACKEND_BWRAP;
	return plan_compile(a, p, &own, view, ret, e);
}

const struct backend backend_bwrap = {
	.name = "bwrap",
	.choice = BACKEND_BWRAP,
	.hold = native_properties,
	.probe = bwrap_probe,
	.compile = bwrap_plan,
	.start = bwrap_start,
};
