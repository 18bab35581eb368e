/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Start a command without namespaces: keeper, init, command (see landlock.h).
 *
 * Trust: keeper and init run as the same user as the command, which can see them. They are not
 * dumpable and outside its Landlock domain, which keeps it from tracing them (any ABI) and
 * from signalling them (ABI 6). They read nothing that the command writes but what the broker
 * reads.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/sys.h"
#include "base/text.h"
#include "sandbox/landlock/landlock.h"
#include "sandbox/native/native.h"

#define CHILDREN_TEXT_MAX ((size_t)4 << 20)
#define TREE_DEPTH_MAX 4096
#define PATIENCE 50 /* passes over the children */
#define KILL_PAUSE_US 200

/* SIGKILL to every child of ours. A child keeps its number until we wait for it. */
static int kill_children(void)
{
	_cleanup_free_ char *text = NULL;
	char path[64];
	int r;

	(void)snprintf(path, sizeof(path), "/proc/self/task/%d/children", getpid());
	r = fd_read_file(AT_FDCWD, path, CHILDREN_TEXT_MAX, &text, NULL);
	if (r < 0)
		return r;
	for (const char *s = text; *s; s += strcspn(s, " "), s += *s == ' ') {
		pid_t pid = (pid_t)text_leading_u64(s);

		if (pid > 1)
			(void)kill(pid, SIGKILL);
	}
	return 0;
}

/* The parent in "PID (name) S PARENT ..."; the name may hold anything. */
static pid_t parent_of(pid_t pid)
{
	_cleanup_free_ char *text = NULL;
	char path[64];
	const char *end;

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	if (fd_read_file(AT_FDCWD, path, 4096, &text, NULL) < 0)
		return -1;
	end = strrchr(text, ')');
	return end && strlen(end) > 4 ? (pid_t)text_leading_u64(end + 4) : -1;
}

static bool descends_from_us(pid_t pid)
{
	for (unsigned i = 0; i < TREE_DEPTH_MAX && pid > 1; i++) {
		pid = parent_of(pid);
		if (pid == getpid())
			return true;
	}
	return false;
}

/*
 * All that descends from us: where the kernel does not list children, and where they make others
 * faster than we come to them one generation at a time.
 */
static void kill_tree(void)
{
	DIR *proc = opendir("/proc");
	const struct dirent *entry;

	while (proc && (entry = readdir(proc))) {
		pid_t pid = (pid_t)text_leading_u64(entry->d_name);
		/* held before the look: the number may become another's */
		_cleanup_fd_ int fd = pid > 1 ? sys_pidfd_open(pid) : -1;

		if (fd >= 0 && descends_from_us(pid))
			(void)sys_pidfd_send_signal(fd, SIGKILL);
	}
	if (proc)
		(void)closedir(proc);
}

/*
 * The children of what is killed become ours, so this ends when we have none. Nobody else can
 * adopt them: init is the nearest reaper, and a reaper inside is one of them itself.
 */
static void kill_all(void)
{
	for (unsigned i = 0;; i++) {
		pid_t pid;

		if (kill_children() < 0 || i > PATIENCE)
			kill_tree();
		while ((pid = waitpid(-1, NULL, WNOHANG | __WALL)) > 0)
			;
		if (pid < 0 && errno == ECHILD)
			return;
		(void)usleep(KILL_PAUSE_US);
	}
}

void landlock_end_all(const struct plan *plan)
{
	kill_all();
	landlock_remove_private(plan);
}

static _Noreturn void fail(int errors, const struct error *e)
{
	(void)!send(errors, e, sizeof(*e), MSG_NOSIGNAL);
	_exit(125);
}

static _Noreturn void init_main(const struct plan *plan, const struct sandbox_command *cmd,
				const struct init_sockets *sockets, mode_t mask)
{
	struct error e = { 0 };

	int r = 0;

	if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
		r = error_set(&e, errno, "cannot become the reaper: %s", strerror(errno));
	if (r == 0)
		r = native_limits_enter(plan, cmd->limits, sockets->control, sockets->errors, &e);
	if (r == 0)
		(void)native_init(plan, cmd, sockets, mask, &e);
	landlock_end_all(plan);
	fail(sockets->errors, &e);
}

/* A version 2 cgroup; what else there is of limits, init enters by itself. */
static int enter_group(const struct sandbox_limits *l, struct error *e)
{
	_cleanup_fd_ int procs = -1;
	int r;

	if (!l || l->born_in < 0)
		return 0;
	procs = openat(l->born_in, "cgroup.procs", O_WRONLY | O_CLOEXEC);
	r = procs < 0 ? -errno : fd_write_all(procs, "0", 1);
	return r < 0 ? error_set(e, -r, "cannot enter the cgroup: %s", strerror(-r)) : 0;
}

static int set_up(const struct plan *plan, const struct sandbox_limits *limits, int *ret_lock,
		  struct error *e)
{
	int r;

	/* a stop key at the terminal is not for us */
	(void)setpgid(0, 0);
	(void)prctl(PR_SET_DUMPABLE, 1, 0, 0,
		    0); /* the supervisor may not be; /proc/self is needed */
	(void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); /* should init be killed */
	r = landlock_make_private(plan->private_tmp, ret_lock, e);
	if (r == 0)
		r = landlock_fill_private(plan, e);
	if (r < 0)
		return r;
	if (chdir(plan->cwd) < 0)
		return error_set(e, errno, "cannot enter %s: %s", plan->cwd, strerror(errno));
	r = native_limits_begin(limits, e);
	if (r == 0)
		r = enter_group(limits, e);
	if (r == 0)
		r = native_drop_privileges(plan, e);
	return r < 0 ? r : landlock_enter_keeper(plan, e);
}

/* Wait for the notification descriptor, or for init's end. -1: there will be none. */
static int receive_listener(int sock, int init)
{
	struct pollfd fds[] = { { .fd = sock, .events = POLLIN },
				{ .fd = init, .events = POLLIN } };
	int listener = -1;
	char which;

	do {
		if (poll(fds, ARRAY_LEN(fds), -1) < 0 && errno != EINTR)
			return -1;
		if (fds[0].revents && fd_receive(sock, &which, 1, &listener) != -EAGAIN)
			return listener;
	} while (!fds[1].revents);
	return -1;
}

/* Answer the command's calls until init has ended; then so do we, with its usage in ours. */
static _Noreturn void keep(const struct plan *plan, const struct sandbox_command *cmd, pid_t init,
			   int init_fd, int calls)
{
	int listener = receive_listener(calls, init_fd);

	fd_close(calls);
	if (listener >= 0 && cmd->serve)
		cmd->serve(cmd->ctx, listener, init_fd);
	else
		(void)sys_close_range(STDERR_FILENO + 1, ~0u, 0);
	while (waitpid(init, NULL, 0) < 0 && errno == EINTR)
		;
	landlock_end_all(plan); /* nothing is left to do, unless init was killed */
	_exit(0);
}

static int start_init(const struct plan *plan, const struct sandbox_command *cmd,
		      const struct init_sockets *with)
{
	mode_t mask = umask(0);
	pid_t keeper = getpid(), pid;

	(void)umask(mask);
	pid = fork();

	if (pid == 0) {
		struct init_sockets sockets = *with;

		sockets.keeper = sys_pidfd_open(keeper);
		if (getppid() != keeper) { /* killed with the supervisor, before we came to it */
			landlock_end_all(plan);
			_exit(125);
		}
		init_main(plan, cmd, &sockets, mask);
	}
	return pid < 0 ? -errno : pid;
}

static _Noreturn void keeper_main(const struct plan *plan, const struct sandbox_command *cmd,
				  int control, int errors, int pid_out)
{
	int calls[2] = { -1, -1 }, init_fd = -1, lock = -1;
	struct error e = { 0 };
	pid_t init;

	if (set_up(plan, cmd->limits, &lock, &e) < 0) {
		if (lock >= 0)
			landlock_remove_private(plan);
		fail(errors, &e);
	}
	init = socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, calls) < 0
		       ? -errno
		       : start_init(plan, cmd,
				    &(struct init_sockets){ .control = control,
							    .errors = errors,
							    .listener = calls[1],
							    .lock = lock });
	if (init > 0)
		init_fd = sys_pidfd_open(init);
	if (init < 0 || init_fd < 0) {
		(void)error_set(&e, init < 0 ? -init : -init_fd, "cannot start init: %s",
				strerror(init < 0 ? -init : -init_fd));
		if (init < 0 && lock >= 0)
			landlock_remove_private(plan);
		fail(errors, &e);
	}
	/* from here on init cleans up, whoever dies; `control` tells it of the supervisor's end */
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	(void)!write(pid_out, &init, sizeof(init));
	(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	/* end of file on these must mean what it says: only init has them */
	fd_close(pid_out);
	fd_close(control);
	fd_close(errors);
	fd_close(calls[1]);
	keep(plan, cmd, init, init_fd, calls[0]);
}

struct pairs {
	int control[2], errors[2], pid[2];
};

static int make_pairs(struct pairs *p)
{
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, p->control) < 0 ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, p->errors) < 0 ||
	    pipe2(p->pid, O_CLOEXEC) < 0)
		return -errno;
	return 0;
}

static void close_pairs(struct pairs *p)
{
	for (size_t i = 0; i < 2; i++) {
		fd_close(p->control[i]);
		fd_close(p->errors[i]);
		fd_close(p->pid[i]);
	}
}

static int landlock_start(const struct plan *plan, const struct sandbox_command *cmd,
			  struct sandbox_child *ret, struct error *e)
{
	struct pairs p = { { -1, -1 }, { -1, -1 }, { -1, -1 } };
	struct sandbox_child child = SANDBOX_CHILD_INIT;
	int r;

	r = make_pairs(&p);

	/* not clone3(): inside another sandbox of ours it does not exist */
	child.pid = r < 0 ? r : fork();
	if (child.pid == 0) {
		fd_close(p.control[0]);
		fd_close(p.errors[0]);
		fd_close(p.pid[0]);
		keeper_main(plan, cmd, p.control[1], p.errors[1], p.pid[1]);
	}
	if (child.pid < 0)
		r = error_set(e, r < 0 ? -r : errno, "cannot start the sandbox: %s",
			      strerror(r < 0 ? -r : errno));
	if (r == 0) {
		child.pidfd = sys_pidfd_open(child.pid);
		child.control = TAKE_FD(p.control[0]);
		child.errors = TAKE_FD(p.errors[0]);
		fd_close(TAKE_FD(p.pid[1]));
		/* end of file: it failed, and `errors` says why */
		if (fd_read_full(p.pid[0], &child.init, sizeof(child.init)) < 0)
			child.init = -1;
		*ret = child;
	}
	close_pairs(&p);
	return r;
}

static int landlock_plan(struct arena *a, const struct policy *p, const struct plan_facts *facts,
			 const struct view *view, const struct plan **ret, struct error *e)
{
	struct plan_facts bare = *facts;

	bare.backend = BACKEND_LANDLOCK;
	return plan_compile(a, p, &bare, view, ret, e);
}

const struct backend backend_landlock = {
	.name = "landlock",
	.choice = BACKEND_LANDLOCK,
	.hold = landlock_properties,
	.probe = landlock_probe,
	.compile = landlock_plan,
	.start = landlock_start,
};
