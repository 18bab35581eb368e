/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes a world to attack and looks at its canaries. Everything is watched from
 * the side of the host and without threads: connections wait in the backlog of
 * their listener, a daemon is known by the lock it holds, files by their text.
 */
#include "supervise/attack_world.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/path.h"
#include "base/text.h"

#define FILE_MAX ((size_t)1 << 16)

/* clang-format off */
static const char *const directories[] = {
	"", "home", "home/.ssh", "outside", "project",
	"project/.git", "project/.git/hooks", "project/.git/objects", "project/.git/refs",
	"project/sub", "project/sub/.git", "project/sub/.git/hooks", "project/sub/.git/objects",
	"project/sub/.git/refs",
};
/* clang-format on */

/* NULL: the token */
static const struct {
	const char *path, *text;
} files[] = {
	{ ATTACK_SECRET, NULL },
	{ "outside/direct", "as it was\n" },
	{ "outside/reopened", "as it was\n" },
	{ "project/.git/HEAD", "ref: refs/heads/main\n" },
	{ "project/.git/config", "[core]\n\tbare = false\n" },
	{ "project/sub/.git/HEAD", "ref: refs/heads/main\n" },
	{ "project/sub/.git/config", "[core]\n\tbare = false\n" },
	{ "project/tool", "#!/bin/sh\n" },
	{ ATTACK_LOCK, "" },
};

void attack_victim_name(const char *token, char ret[16])
{
	(void)snprintf(ret, 16, "canary-%.8s", token);
}

socklen_t attack_abstract_address(const char *token, struct sockaddr_un *ret)
{
	*ret = (struct sockaddr_un){ .sun_family = AF_UNIX };
	(void)snprintf(ret->sun_path + 1, sizeof(ret->sun_path) - 1, "ambit-attack-%s", token);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(ret->sun_path + 1));
}

static int draw_token(char ret[ATTACK_TOKEN_LEN + 1])
{
	uint64_t bits;

	if (getrandom(&bits, sizeof(bits), 0) != sizeof(bits))
		return -EIO;
	(void)snprintf(ret, ATTACK_TOKEN_LEN + 1, "%016llx", (unsigned long long)bits);
	return 0;
}

static int make_file(const char *path, const char *text)
{
	_cleanup_fd_ int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	return fd < 0 ? -errno : fd_write_all(fd, text, strlen(text));
}

static int copy_program(const char *from, const char *to)
{
	_cleanup_fd_ int in = open(from, O_RDONLY | O_CLOEXEC);
	_cleanup_fd_ int out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0700);
	ssize_t n;

	if (in < 0 || out < 0)
		return -errno;
	while ((n = sendfile(out, in, NULL, (size_t)1 << 30)) > 0)
		;
	return n < 0 ? -errno : 0;
}

static int make_files(struct arena *a, const struct attack_world *w, const char *program)
{
	int r = 0;

	for (size_t i = 0; i < ARRAY_LEN(directories); i++) {
		if (mkdir(path_join(a, w->dir, directories[i]), 0700) < 0)
			return -errno;
	}
	for (size_t i = 0; i < ARRAY_LEN(files) && r == 0; i++)
		r = make_file(path_join(a, w->dir, files[i].path),
			      files[i].text ? files[i].text : w->token);
	return r < 0 ? r : copy_program(program, path_join(a, w->dir, ATTACK_PROGRAM));
}

static int listen_at(int family, const void *address, socklen_t len, int *ret)
{
	_cleanup_fd_ int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0 || bind(fd, address, len) < 0 || listen(fd, 8) < 0)
		return -errno;
	*ret = TAKE_FD(fd);
	return 0;
}

/* By way of a descriptor: the path itself may be too long for an address. */
static int listen_in_home(struct arena *a, struct attack_world *w)
{
	_cleanup_fd_ int home = open(path_join(a, w->dir, ATTACK_HOME), O_PATH | O_CLOEXEC);
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	if (home < 0)
		return -errno;
	(void)snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/%s", home,
		       ATTACK_SOCKET);
	return listen_at(AF_UNIX, &address, sizeof(address), &w->unix_socket);
}

static int make_listeners(struct arena *a, struct attack_world *w)
{
	struct sockaddr_in inet = { .sin_family = AF_INET,
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct sockaddr_un abstract;
	socklen_t len = attack_abstract_address(w->token, &abstract);
	int r = listen_at(AF_UNIX, &abstract, len, &w->abstract);

	if (r == 0)
		r = listen_in_home(a, w);
	if (r == 0)
		r = listen_at(AF_INET, &inet, sizeof(inet), &w->tcp);
	if (r < 0)
		return r;
	len = sizeof(inet);
	if (getsockname(w->tcp, (struct sockaddr *)&inet, &len) < 0)
		return -errno;
	w->port = ntohs(inet.sin_port);
	return 0;
}

/* Answers each byte with one; a process that has been killed never does. */
_Noreturn static void be_victim(int talk, const char *name)
{
	char byte = 0;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)prctl(PR_SET_NAME, name);
	do {
		(void)send(talk, &byte, 1, MSG_NOSIGNAL);
	} while (recv(talk, &byte, 1, 0) == 1);
	_exit(0);
}

/* A process of the host, with a name to be found by. */
static int start_victim(struct attack_world *w)
{
	char name[16], byte;
	int talk[2];

	attack_victim_name(w->token, name);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, talk) < 0)
		return -errno;
	w->victim = fork();
	if (w->victim == 0) {
		fd_close(talk[0]);
		be_victim(talk[1], name);
	}
	fd_close(talk[1]);
	w->victim_talk = talk[0];
	if (w->victim < 0)
		return -EAGAIN;
	return recv(talk[0], &byte, 1, 0) == 1 ? 0 : -ESRCH;
}

int attack_world_make(struct arena *a, const char *dir, const char *program,
		      struct attack_world *ret, struct error *e)
{
	int r;

	*ret = (struct attack_world)ATTACK_WORLD_INIT;
	ret->dir = dir;
	r = draw_token(ret->token);
	if (r == 0)
		r = make_files(a, ret, program);
	if (r == 0)
		r = make_listeners(a, ret);
	if (r == 0)
		r = start_victim(ret);
	return r < 0 ? error_set(e, -r, "%s: cannot make a world to attack: %s", dir, strerror(-r))
		     : 0;
}

static bool file_changed(struct arena *a, const struct attack_world *w, const char *file)
{
	const char *path = path_join(a, w->dir, file), *before = NULL;
	_cleanup_free_ char *text = NULL;
	struct stat st;

	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		if (strcmp(files[i].path, file) == 0)
			before = files[i].text ? files[i].text : w->token;
	}
	if (lstat(path, &st) < 0)
		return before != NULL;
	if (!before || !S_ISREG(st.st_mode) || (st.st_mode & (S_ISUID | S_ISGID)))
		return true;
	return fd_read_file(AT_FDCWD, path, FILE_MAX, &text, NULL) < 0 || strcmp(text, before) != 0;
}

static bool was_reached(int listener)
{
	struct pollfd fd = { .fd = listener, .events = POLLIN };

	return poll(&fd, 1, 0) > 0;
}

/* A signal that was sent before the byte ends it first, however late it is seen to be dead. */
static bool victim_died(const struct attack_world *w)
{
	char byte = 0;

	return send(w->victim_talk, &byte, 1, MSG_NOSIGNAL) != 1 ||
	       recv(w->victim_talk, &byte, 1, 0) != 1;
}

/* Whoever holds the lock has outlived the run; it is ended here. */
static bool end_daemon(struct arena *a, const struct attack_world *w)
{
	_cleanup_fd_ int fd = open(path_join(a, w->dir, ATTACK_LOCK), O_RDWR | O_CLOEXEC);
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

	if (fd < 0 || fcntl(fd, F_GETLK, &lock) < 0 || lock.l_type == F_UNLCK)
		return false;
	if (lock.l_pid > 0 && kill(lock.l_pid, SIGKILL) == 0)
		(void)waitpid(lock.l_pid, NULL, 0);
	return true;
}

static bool touched(struct arena *a, struct attack_world *w, const struct attack_attempt *t,
		    const char *detail)
{
	switch (t->watch) {
	case WATCH_NOTHING:
		break;
	case WATCH_SECRET:
		return detail && strstr(detail, w->token);
	case WATCH_FILE:
		return file_changed(a, w, t->file);
	case WATCH_TCP:
		return was_reached(w->tcp);
	case WATCH_UNIX:
		return was_reached(w->unix_socket);
	case WATCH_ABSTRACT:
		return was_reached(w->abstract);
	case WATCH_VICTIM:
		return victim_died(w);
	case WATCH_DAEMON:
		return end_daemon(a, w);
	}
	return false;
}

enum attack_canary attack_world_look(struct arena *a, struct attack_world *w,
				     const struct attack_attempt *t, const char *detail)
{
	if (t->watch == WATCH_NOTHING)
		return ATTACK_NO_CANARY;
	return touched(a, w, t, detail) ? ATTACK_TOUCHED : ATTACK_UNTOUCHED;
}

void attack_world_end(struct attack_world *w)
{
	if (w->victim > 0) {
		(void)kill(w->victim, SIGKILL);
		(void)waitpid(w->victim, NULL, 0);
	}
	fd_close(w->victim_talk);
	fd_close(w->tcp);
	fd_close(w->unix_socket);
	fd_close(w->abstract);
	*w = (struct attack_world)ATTACK_WORLD_INIT;
}
