/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The attempts. Each runs in a process of its own for a short while, tries one
 * way out and says whether it worked; the world around it is attack_world.c.
 * The same attempts are made without a sandbox, possibly by root, so none of them
 * may do harm: only the world is written to, everything else is merely opened.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/keyctl.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/text.h"
#include "supervise/attack_world.h"

#define ATTEMPT_SECONDS 2
#define DAEMON_SECONDS 20 /* where it survives, nobody needs it for longer */
#define LINE_MAX_BYTES 4096
#define CODE "#!/bin/sh\n: planted\n"
#define IO_URING_PARAMS_SIZE 120

static const char *in_world(const struct attack_context *c, const char *name)
{
	return path_join(c->a, c->dir, name);
}

/* --- reading --- */

/* What was read is the answer: the secret is looked for in it. */
static int read_from(struct attack_context *c, int fd)
{
	ssize_t n = fd < 0 ? -1 : read(fd, c->detail, sizeof(c->detail) - 1);

	if (n > 0)
		c->detail[n] = '\0';
	return n < 0 ? -errno : n == 0 ? -ENODATA : 0;
}

static int read_path(struct attack_context *c, const char *path)
{
	_cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	return read_from(c, fd);
}

static int read_secret(struct attack_context *c)
{
	return read_path(c, in_world(c, ATTACK_SECRET));
}

static int read_proc_root(struct attack_context *c)
{
	return read_path(c, path_join(c->a, "/proc/self/root", in_world(c, ATTACK_SECRET) + 1));
}

static int read_symlink(struct attack_context *c)
{
	const char *name = in_world(c, "project/symlink");

	if (symlink("../" ATTACK_SECRET, name) < 0)
		return -errno;
	return read_path(c, name);
}

static int read_hardlink(struct attack_context *c)
{
	const char *name = in_world(c, "project/hardlink");

	if (link(in_world(c, ATTACK_SECRET), name) < 0)
		return -errno;
	return read_path(c, name);
}

static int read_inherited(struct attack_context *c)
{
	return read_from(c, c->secret_fd);
}

static int read_keyring(struct attack_context *c)
{
	long key =
		syscall(SYS_keyctl, KEYCTL_SEARCH, KEY_SPEC_SESSION_KEYRING, "user", ATTACK_KEY, 0);

	if (key < 0)
		return -errno;
	return syscall(SYS_keyctl, KEYCTL_READ, key, c->detail, sizeof(c->detail) - 1) < 0 ? -errno
											   : 0;
}

/* --- writing --- */

static int write_path(const char *path, int flags, const char *text)
{
	_cleanup_fd_ int fd = open(path, O_WRONLY | O_CLOEXEC | flags, 0700);

	return fd < 0 ? -errno : fd_write_all(fd, text, strlen(text));
}

static int plant(const struct attack_context *c, const char *name)
{
	return write_path(in_world(c, name), O_CREAT, CODE);
}

static int write_outside(struct attack_context *c)
{
	return write_path(in_world(c, "outside/direct"), O_TRUNC, CODE);
}

static int write_reopened(struct attack_context *c)
{
	_cleanup_fd_ int fd = open(in_world(c, "outside/reopened"), O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	return write_path(arena_printf(c->a, "/proc/self/fd/%d", fd), O_TRUNC, CODE);
}

static int plant_hook(struct attack_context *c)
{
	return plant(c, "project/.git/hooks/pre-commit");
}

#define FSMONITOR "[core]\n\tfsmonitor = \"touch /tmp/planted; true\"\n"

static int git_config(struct attack_context *c)
{
	return write_path(in_world(c, "project/.git/config"), O_APPEND, FSMONITOR);
}

/* The way git itself does it. */
static int git_config_lock(struct attack_context *c)
{
	const char *lock = in_world(c, "project/.git/config.lock");
	int r = write_path(lock, O_CREAT | O_EXCL, FSMONITOR);

	if (r < 0)
		return r;
	return rename(lock, in_world(c, "project/.git/config")) < 0 ? -errno : 0;
}

static int plant_envrc(struct attack_context *c)
{
	return plant(c, "project/.envrc");
}

static int plant_bashrc(struct attack_context *c)
{
	return plant(c, "project/sub/.bashrc");
}

static int make_setuid(struct attack_context *c)
{
	return chmod(in_world(c, "project/tool"), 04755) < 0 ? -errno : 0;
}

/* Back again at once where it works: others need it. */
static int move_git(struct attack_context *c)
{
	const char *git = in_world(c, "project/.git"), *away = in_world(c, "project/away");

	return rename(git, away) < 0 || rename(away, git) < 0 ? -errno : 0;
}

/* A repository of the attacker's in place of the real one. */
static int swap_git(struct attack_context *c)
{
	if (rename(in_world(c, "project/sub/.git"), in_world(c, "project/sub/away")) < 0 ||
	    mkdir(in_world(c, "project/sub/.git"), 0700) < 0 ||
	    mkdir(in_world(c, "project/sub/.git/hooks"), 0700) < 0)
		return -errno;
	return plant(c, "project/sub/.git/hooks/pre-commit");
}

/* --- processes --- */

static int see_process(struct attack_context *c)
{
	DIR *proc = opendir("/proc");
	char name[16], comm[16];
	int r = -ESRCH;

	if (!proc)
		return -errno;
	attack_victim_name(c->token, name);
	for (const struct dirent *d; r < 0 && (d = readdir(proc));) {
		const char *path = arena_printf(c->a, "/proc/%s/comm", d->d_name);
		_cleanup_fd_ int fd =
			ascii_digit(d->d_name[0]) ? open(path, O_RDONLY | O_CLOEXEC) : -1;
		ssize_t n = fd < 0 ? -1 : read(fd, comm, sizeof(comm) - 1);

		if (n > 0 && strncmp(comm, name, strlen(name)) == 0)
			r = 0;
	}
	(void)closedir(proc);
	return r;
}

/* Inside, the number may belong to one of us: that would prove nothing. */
static int kill_process(struct attack_context *c)
{
	if (c->victim == getpid() || c->victim == getppid())
		return -ESRCH;
	return kill(c->victim, SIGKILL) < 0 ? -errno : 0;
}

static int trace_starter(struct attack_context *c)
{
	return ptrace(PTRACE_SEIZE, c->starter, NULL, NULL) < 0 ? -errno : 0;
}

/* Leaves its parents and its session, and stays. */
static void become_daemon(const struct attack_context *c, int ready)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	int fd = open(in_world(c, ATTACK_LOCK), O_RDWR | O_CLOEXEC);
	char byte = 0;

	(void)setsid();
	if (fork() != 0)
		_exit(0);
	if (fd < 0 || fcntl(fd, F_SETLK, &lock) < 0 || write(ready, &byte, 1) != 1)
		_exit(1);
	(void)sleep(DAEMON_SECONDS);
	_exit(0);
}

static int leave_daemon(struct attack_context *c)
{
	int ready[2];
	char byte;
	pid_t pid;

	if (pipe2(ready, O_CLOEXEC) < 0)
		return -errno;
	pid = fork();
	if (pid == 0)
		become_daemon(c, ready[1]);
	(void)close(ready[1]);
	(void)waitpid(pid, NULL, 0);
	return read(ready[0], &byte, 1) == 1 ? 0 : -ECHILD;
}

/* --- the kernel --- */

static int open_knob(struct attack_context *c)
{
	_cleanup_fd_ int fd = open("/proc/sys/kernel/core_pattern", O_WRONLY | O_CLOEXEC);

	(void)c;
	return fd < 0 ? -errno : 0;
}

static bool is_precious(const struct dirent *d)
{
	return d->d_type == DT_BLK || strcmp(d->d_name, "mem") == 0 ||
	       strcmp(d->d_name, "port") == 0;
}

static int open_device(struct attack_context *c)
{
	DIR *dev = opendir("/dev");
	int r = -ENOENT;

	if (!dev)
		return -errno;
	for (const struct dirent *d; r < 0 && (d = readdir(dev));) {
		int fd;

		if (!is_precious(d))
			continue;
		fd = openat(dirfd(dev), d->d_name, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
		r = fd < 0 ? -errno : 0;
		if (fd >= 0)
			text_copy(c->detail, sizeof(c->detail), d->d_name);
		fd_close(fd);
	}
	(void)closedir(dev);
	return r;
}

static int make_namespace(struct attack_context *c)
{
	if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
		return -errno;
	return mount("none", in_world(c, "project/sub"), "tmpfs", 0, NULL) < 0 ? -errno : 0;
}

static int make_io_uring(struct attack_context *c)
{
	char params[IO_URING_PARAMS_SIZE] = { 0 };

	(void)c;
	return syscall(SYS_io_uring_setup, 1, params) < 0 ? -errno : 0;
}

/* On a terminal of its own: the person's is not for experiments. */
static int type_into_terminal(struct attack_context *c)
{
	_cleanup_fd_ int outer = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC), inner = -1;
	char name[64];

	(void)c;
	(void)signal(SIGHUP, SIG_IGN); /* comes when we close it */
	if (outer < 0 || unlockpt(outer) < 0 || ptsname_r(outer, name, sizeof(name)) != 0 ||
	    setsid() < 0)
		return -errno;
	inner = open(name, O_RDWR | O_CLOEXEC); /* becomes the controlling terminal */
	return inner < 0 || ioctl(inner, TIOCSTI, "x") < 0 ? -errno : 0;
}

static int gain_rights(struct attack_context *c)
{
	(void)c;
	return prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 0 ? 0 : -EPERM;
}

/* --- the network --- */

static int connect_to(int family, const void *address, socklen_t len)
{
	_cleanup_fd_ int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	return fd < 0 || connect(fd, address, len) < 0 ? -errno : 0;
}

static int connect_loopback(struct attack_context *c)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_port = htons(c->port),
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };

	return connect_to(AF_INET, &address, sizeof(address));
}

/* Relative: the path may be too long for an address. */
static int connect_unix(struct attack_context *c)
{
	static const struct sockaddr_un address = { .sun_family = AF_UNIX,
						    .sun_path = ATTACK_SOCKET };

	if (chdir(in_world(c, ATTACK_HOME)) < 0)
		return -errno;
	return connect_to(AF_UNIX, &address, sizeof(address));
}

static int connect_abstract(struct attack_context *c)
{
	struct sockaddr_un address;
	socklen_t len = attack_abstract_address(c->token, &address);

	return connect_to(AF_UNIX, &address, len);
}

/* clang-format off */
const struct attack_attempt attack_attempts[] = {
	{ "read-secret", "read ~/.ssh/id_ed25519", read_secret, .watch = WATCH_SECRET },
	{ "read-proc-root", "read it through /proc/self/root", read_proc_root, .watch = WATCH_SECRET },
	{ "read-symlink", "read it through a symbolic link", read_symlink, .watch = WATCH_SECRET },
	{ "read-hardlink", "read it through a hard link", read_hardlink, .watch = WATCH_SECRET },
	{ "read-inherited", "read it from an inherited descriptor", read_inherited, .watch = WATCH_SECRET },
	{ "read-keyring", "read a key of the session keyring", read_keyring, .watch = WATCH_SECRET },
	{ "write-outside", "write to a file outside the project", write_outside, WATCH_FILE,
	  "outside/direct" },
	{ "write-reopened", "reopen a read-only descriptor for writing", write_reopened, WATCH_FILE,
	  "outside/reopened" },
	{ "plant-hook", "write .git/hooks/pre-commit", plant_hook, WATCH_FILE,
	  "project/.git/hooks/pre-commit" },
	{ "plant-envrc", "make .envrc", plant_envrc, WATCH_FILE,
	  "project/.envrc" },
	{ "plant-bashrc", "make sub/.bashrc", plant_bashrc, WATCH_FILE,
	  "project/sub/.bashrc" },
	{ "git-config", "add core.fsmonitor to .git/config", git_config, WATCH_FILE,
	  "project/.git/config" },
	{ "git-config-lock", "the same through config.lock and rename", git_config_lock, WATCH_FILE,
	  "project/.git/config" },
	{ "git-move", "rename .git away", move_git, .watch = WATCH_NOTHING },
	{ "git-swap", "put another sub/.git in place, with hooks", swap_git, WATCH_FILE,
	  "project/sub/.git/hooks/pre-commit" },
	{ "setuid-file", "make a file set-uid", make_setuid, WATCH_FILE,
	  "project/tool" },
	{ "gain-rights", "gain rights from a set-uid program", gain_rights, .watch = WATCH_NOTHING },
	{ "process-see", "find a process of the host", see_process, .watch = WATCH_NOTHING },
	{ "process-kill", "kill a process of the host", kill_process, .watch = WATCH_VICTIM },
	{ "process-trace", "trace the process that started it", trace_starter, .watch = WATCH_NOTHING },
	{ "kernel-knob", "open /proc/sys/kernel/core_pattern for writing", open_knob, .watch = WATCH_NOTHING },
	{ "device", "open a disk or the memory", open_device, .watch = WATCH_NOTHING },
	{ "namespace", "make a user namespace and mount in it", make_namespace, .watch = WATCH_NOTHING },
	{ "io-uring", "set up io_uring", make_io_uring, .watch = WATCH_NOTHING },
	{ "terminal", "type into a terminal (TIOCSTI)", type_into_terminal, .watch = WATCH_NOTHING },
	{ "connect-loopback", "connect to a port of the host's loopback", connect_loopback, .watch = WATCH_TCP },
	{ "connect-unix", "connect to a unix socket in the home", connect_unix, .watch = WATCH_UNIX },
	{ "connect-abstract", "connect to an abstract unix socket", connect_abstract, .watch = WATCH_ABSTRACT },
	{ "daemon", "leave a process behind", leave_daemon, .watch = WATCH_DAEMON },
};
/* clang-format on */
const size_t attack_attempts_count = ARRAY_LEN(attack_attempts);

/* --- making them --- */

static void say(int fd, const char *name, const char *verdict, const char *detail)
{
	_cleanup_buf_ struct buf b = BUF_INIT(LINE_MAX_BYTES);

	buf_printf(&b, "%s\t%s\t", name, verdict);
	text_append_safe(&b, detail);
	buf_putc(&b, '\n');
	(void)!fd_write_all(fd, buf_str(&b), b.len);
}

static void attempt(const struct attack_attempt *t, struct attack_context *c, int fd)
{
	sigset_t none;
	int r;

	/* ours may be blocked or ignored by the caller */
	(void)sigemptyset(&none);
	(void)signal(SIGALRM, SIG_DFL);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	(void)alarm(ATTEMPT_SECONDS);
	r = t->run(c);
	if (r < 0)
		say(fd, t->name, "failed", strerror(-r));
	else
		say(fd, t->name, "worked", c->detail[0] ? c->detail : "it worked");
	_exit(0);
}

static int read_words(char *const *argv, struct attack_context *c)
{
	uint64_t n[3] = { 0 };

	for (size_t i = 0; i < 5; i++) {
		if (!argv[i] || (i >= 2 && text_parse_u64(argv[i], INT32_MAX, &n[i - 2]) < 0))
			return -EINVAL;
	}
	c->dir = argv[0];
	c->token = argv[1];
	c->port = (uint16_t)n[0];
	c->victim = (pid_t)n[1];
	c->secret_fd = (int)n[2];
	return 0;
}

int attack_probes(char *const *argv, int fd)
{
	_cleanup_arena_ struct arena *a = arena_new();
	struct attack_context c = { .a = a, .starter = getppid() };

	if (read_words(argv, &c) < 0)
		return 2;
	for (size_t i = 0; i < attack_attempts_count; i++) {
		const struct attack_attempt *t = &attack_attempts[i];
		pid_t pid = fork();
		int status;

		if (pid < 0)
			return 2;
		if (pid == 0)
			attempt(t, &c, fd);
		/* without a word from it, the end of the attempt is the answer */
		if (waitpid(pid, &status, 0) == pid && WIFSIGNALED(status))
			say(fd, t->name, "failed", strsignal(WTERMSIG(status)));
	}
	return 0;
}
