/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keeper of a container: calls the engine, waits for ambit-enter, tells it what to run, passes
 * orders in and events out, and stays until the engine has cleaned up.
 *
 * It holds the two sockets to ambit-enter; closing them ends the container. Should the container not
 * come up any more, because the listener is closed, ambit-enter ends by itself. An engine that
 * takes longer than END_MS for its part of the end is killed, and the container removed by name.
 *
 * Trust: what the engine prints is shown, escaped, when it failed. What comes from
 * ambit-enter has a fixed size and is passed on as it is.
 */
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
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/sys.h"
#include "base/text.h"
#include "sandbox/container/container.h"
#include "sandbox/container/request.h"
#include "sandbox/landlock/landlock.h"
#include "sandbox/native/native.h"

#define SAID_MAX 4096 /* of what the engine prints, the last */
#define SHOWN_MAX 600
#define ORDERS_MAX 16 /* before the command runs */
#define END_MS 10000
#define ASK_MS 10000
#define FEED_SIZE 16384

struct keeper {
	const struct plan *plan;
	const struct sandbox_command *cmd;
	int control, errors; /* to the supervisor */
	int listener, inner, inner_errors; /* of ambit-enter */
	int lock; /* of the directory with the socket */
	int engine, said; /* pidfd; its standard error */
	pid_t engine_pid;
	mode_t umask;
	bool connected; /* ambit-enter was told what to run */
	bool ending;
	uint64_t deadline_ms; /* of the engine, once it has to end; 0 = none */
	struct container_groups groups;
	struct init_order orders[ORDERS_MAX];
	size_t n_orders;
	char text[SAID_MAX + 1];
	size_t len;
};

/* --- the engine -------------------------------------------------------------------------- */

static _Noreturn void exec_engine(char *const *argv, char *const *env, int output)
{
	sigset_t none;
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	if (null < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0 ||
	    dup2(output < 0 ? null : output, 2) < 0 || sys_close_range(3, ~0u, 0) < 0)
		_exit(125);
	(void)execve(argv[0], argv, env);
	(void)!write(2, "cannot be executed", 18);
	_exit(125);
}

int container_ask(char *const *argv, char *const *env, int timeout_ms)
{
	struct pollfd ended = { .fd = -1, .events = POLLIN };
	int status = -1;
	pid_t pid = fork();

	if (pid < 0)
		return -errno;
	if (pid == 0)
		exec_engine(argv, env, -1);
	ended.fd = sys_pidfd_open(pid);
	if (ended.fd < 0 || poll(&ended, 1, timeout_ms) <= 0)
		(void)kill(pid, SIGKILL);
	fd_close(ended.fd);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return status;
}

/* With the words that say where the engine keeps its containers, as they were given to `run`. */
static void remove_container(const struct keeper *k)
{
	static const char *const storage[] = { "--root=", "--runroot=", "--storage-driver=" };
	const struct plan_engine *en = k->plan->engine;
	_cleanup_arena_ struct arena *a = arena_new();
	const char **argv = NULL;
	size_t n = 0;

	*ARENA_PUSH(a, argv, n) = en->argv[0];
	*ARENA_PUSH(a, argv, n) = "rm";
	*ARENA_PUSH(a, argv, n) = "-f";
	for (size_t i = 1; i < en->n_argv; i++) {
		for (size_t j = 0; j < ARRAY_LEN(storage); j++) {
			if (text_starts(en->argv[i], storage[j]))
				*ARENA_PUSH(a, argv, n) = en->argv[i];
		}
	}
	*ARENA_PUSH(a, argv, n) = en->container;
	*ARENA_PUSH(a, argv, n) = NULL;
	(void)container_ask((char *const *)(uintptr_t)argv, en->env, ASK_MS);
}

static int start_engine(struct keeper *k, struct error *e)
{
	const struct plan_engine *en = k->plan->engine;
	int said[2];

	if (pipe2(said, O_CLOEXEC | O_NONBLOCK) < 0)
		return error_set(e, errno, "cannot make a pipe: %s", strerror(errno));
	k->engine_pid = fork();
	if (k->engine_pid == 0)
		exec_engine((char *const *)(uintptr_t)en->argv, en->env, said[1]);
	fd_close(said[1]);
	k->said = said[0];
	if (k->engine_pid < 0)
		return error_set(e, errno, "cannot start %s: %s", en->name, strerror(errno));
	k->engine = sys_pidfd_open(k->engine_pid);
	return k->engine < 0 ? error_set(e, -k->engine, "cannot watch %s: %s", en->name,
					 strerror(-k->engine))
			     : 0;
}

/* The last of what it prints is kept. True when there may be more. */
static bool hear_engine(struct keeper *k)
{
	char more[1024];
	ssize_t n = read(k->said, more, sizeof(more));
	size_t drop;

	if (n <= 0) {
		if (n == 0)
			fd_close(TAKE_FD(k->said));
		return false;
	}
	drop = k->len + (size_t)n > SAID_MAX ? k->len + (size_t)n - SAID_MAX : 0;
	memmove(k->text, k->text + drop, k->len - drop);
	k->len -= drop;
	memcpy(k->text + k->len, more, (size_t)n);
	k->len += (size_t)n;
	k->text[k->len] = '\0';
	return true;
}

/* In the words of podman, and of docker. */
static bool lacks_image(const char *said)
{
	return strstr(said, "image not known") || strstr(said, "No such image") ||
	       strstr(said, "no such image") || strstr(said, "Unable to find image");
}

/* It has ended without ambit-enter ever having been heard of. */
static void explain_failure(struct keeper *k, struct error *e)
{
	const struct plan_engine *en = k->plan->engine;
	_cleanup_buf_ struct buf b = BUF_INIT(BUF_MAX_TEXT);
	size_t from = k->len > SHOWN_MAX ? k->len - SHOWN_MAX : 0;

	while (k->len > from && k->text[k->len - 1] == '\n')
		k->text[--k->len] = '\0';
	text_append_safe_n(&b, k->text + from, k->len - from);
	if (lacks_image(k->text))
		(void)error_set(e, ENOENT,
				"the image %s is not on this machine, and ambit fetches none: %s "
				"pull %s (%s said: %s)",
				en->image, en->name, en->image, en->name, buf_str(&b));
	else
		(void)error_set(e, EIO, "%s could not start the container: %s", en->name,
				b.len ? buf_str(&b) : "it said nothing");
}

/* --- ambit-enter ------------------------------------------------------------------------- */

static int listen_for_enter(struct keeper *k, struct error *e)
{
	const struct plan_engine *en = k->plan->engine;
	struct sockaddr_un addr = { .sun_family = AF_UNIX };

	if (strlen(en->socket) >= sizeof(addr.sun_path))
		return error_set(e, ENAMETOOLONG,
				 "%s is too long for a socket: set TMPDIR to a "
				 "shorter directory",
				 en->socket);
	memcpy(addr.sun_path, en->socket, strlen(en->socket) + 1);
	if (landlock_make_private(en->directory, &k->lock, e) < 0)
		return -e->code;
	k->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (k->listener < 0 ||
	    bind(k->listener, (const struct sockaddr *)&addr, sizeof(addr)) < 0 ||
	    listen(k->listener, 2) < 0)
		return error_set(e, errno, "cannot listen on %s: %s", en->socket, strerror(errno));
	return 0;
}

static void stop_listening(struct keeper *k)
{
	if (k->listener < 0)
		return;
	fd_close(TAKE_FD(k->listener));
	(void)unlink(k->plan->engine->socket);
	(void)rmdir(k->plan->engine->directory);
	fd_close(TAKE_FD(k->lock));
}

static _Noreturn void feed(int file, int pipe, pid_t keeper)
{
	char block[FEED_SIZE];
	ssize_t n;

	(void)signal(SIGPIPE, SIG_DFL);
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	if (getppid() != keeper || dup2(file, 0) < 0 || dup2(pipe, 1) < 0 ||
	    sys_close_range(2, ~0u, 0) < 0)
		_exit(1);
	while ((n = read(0, block, sizeof(block))) > 0 && fd_write_all(1, block, (size_t)n) == 0)
		;
	_exit(0);
}

/*
 * Standard input that is a file outside comes through a pipe: nobody watches the calls inside, and
 * with the file itself its mode and attributes could be changed.
 */
static int pipe_from(int file)
{
	pid_t keeper = getpid(), pid;
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	pid = fork();
	if (pid == 0)
		feed(file, ends[1], keeper);
	fd_close(ends[1]);
	if (pid < 0)
		fd_close(ends[0]);
	return pid < 0 ? -EAGAIN : ends[0];
}

static bool is_file(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
}

static int send_command(struct keeper *k, struct error *e)
{
	_cleanup_arena_ struct arena *a = arena_new();
	_cleanup_fd_ int block = -1, null = -1, input = -1;
	struct request q;
	int what[2], stdio[3], r;

	request_make(a, k->plan, k->cmd, &q);
	q.umask = k->umask;
	block = request_write(&q);
	if (block < 0)
		return error_set(e, -block, "cannot tell the container what to run: %s",
				 strerror(-block));
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	for (int fd = 0; fd <= 2; fd++) {
		stdio[fd] = k->cmd->stdio[fd] >= 0 ? k->cmd->stdio[fd] : fd;
		if (fcntl(stdio[fd], F_GETFD) < 0)
			stdio[fd] = null;
	}
	if (is_file(stdio[0])) {
		stdio[0] = input = pipe_from(stdio[0]);
		if (input < 0)
			return error_set(e, -input, "cannot pass standard input on: %s",
					 strerror(-input));
	}
	what[0] = block;
	what[1] = k->cmd->tty;
	r = fd_send_many(k->inner, "", 1, what, q.own_terminal && what[1] >= 0 ? 2 : 1);
	if (r == 0)
		r = fd_send_many(k->inner, "", 1, stdio, ARRAY_LEN(stdio));
	return r < 0 ? error_set(e, -r, "cannot reach the container: %s", strerror(-r)) : 0;
}

/* Both connections are there: the limits are looked at, then the command may start. */
static int greet(struct keeper *k, struct error *e)
{
	struct ucred peer = { 0 };
	socklen_t len = sizeof(peer);
	int r;

	stop_listening(k);
	if (getsockopt(k->inner, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
		return error_set(e, errno, "cannot look at the container: %s", strerror(errno));
	r = container_groups_check(k->plan->engine, peer.pid, &k->groups, e);
	if (r == 0)
		r = send_command(k, e);
	if (r < 0)
		return r;
	k->connected = true;
	for (size_t i = 0; i < k->n_orders; i++)
		(void)!send(k->inner, &k->orders[i], sizeof(k->orders[i]), MSG_NOSIGNAL);
	return 0;
}

static void end(struct keeper *k)
{
	stop_listening(k);
	fd_close(TAKE_FD(k->inner));
	fd_close(TAKE_FD(k->inner_errors));
	k->ending = true;
	if (!k->deadline_ms)
		k->deadline_ms = sys_now_ms() + END_MS;
}

static void tell(const struct keeper *k, enum init_event_type type, int value)
{
	const struct init_event event = { .type = (int32_t)type, .value = value };

	(void)!send(k->control, &event, sizeof(event), MSG_NOSIGNAL);
}

static void fail(struct keeper *k, const struct error *e)
{
	(void)!send(k->errors, e, sizeof(*e), MSG_NOSIGNAL);
	end(k);
}

static void on_connection(struct keeper *k)
{
	struct error e = { 0 };
	int fd = accept4(k->listener, NULL, NULL, SOCK_CLOEXEC);

	if (fd < 0)
		return;
	if (k->inner < 0) {
		k->inner = fd;
		return;
	}
	k->inner_errors = fd;
	if (greet(k, &e) < 0)
		fail(k, &e);
}

/* --- in between -------------------------------------------------------------------------- */

static void on_order(struct keeper *k)
{
	struct init_order order;
	ssize_t n = recv(k->control, &order, sizeof(order), MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n != sizeof(order) || (order.signal == SIGKILL && order.target == INIT_ALL)) {
		if (n == 0)
			fd_close(TAKE_FD(k->control));
		end(k);
	} else if (k->connected) {
		(void)!send(k->inner, &order, sizeof(order), MSG_NOSIGNAL);
	} else if (k->n_orders < ORDERS_MAX) {
		k->orders[k->n_orders++] = order;
	}
}

/* ambit-enter waits after the last word until we have looked at the groups. */
static void on_event(struct keeper *k)
{
	struct init_event event;
	ssize_t n = recv(k->inner, &event, sizeof(event), MSG_DONTWAIT);
	bool over = n != sizeof(event) || event.type == INIT_EXITED;

	/* ECONNRESET: it left with an order unread; what it said comes next */
	if (n < 0 && (errno == EAGAIN || errno == EINTR || errno == ECONNRESET))
		return;
	if (over && container_groups_out_of_memory(&k->groups))
		tell(k, INIT_OUT_OF_MEMORY, 0);
	else if (over && container_groups_out_of_pids(&k->groups))
		tell(k, INIT_OUT_OF_PIDS, 0);
	if (n == sizeof(event))
		tell(k, (enum init_event_type)event.type, event.value);
	if (over)
		end(k);
}

/* A failure inside; or the end: the command was executed. */
static void on_error(struct keeper *k)
{
	struct error e;
	ssize_t n = recv(k->inner_errors, &e, sizeof(e), MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n == sizeof(e)) {
		e.text[sizeof(e.text) - 1] = '\0';
		(void)!send(k->errors, &e, sizeof(e), MSG_NOSIGNAL);
	}
	fd_close(TAKE_FD(k->inner_errors));
	if (k->connected)
		fd_close(TAKE_FD(k->errors));
}

/* The engine does not come to an end: it is ended, and what it has made is removed. */
static void force_end(struct keeper *k)
{
	(void)kill(k->engine_pid, SIGKILL);
	remove_container(k);
	k->deadline_ms = 0;
}

static void on_engine_end(struct keeper *k)
{
	struct error e = { 0 };

	(void)waitpid(k->engine_pid, NULL, 0);
	while (k->said >= 0 && hear_engine(k))
		;
	if (!k->connected && !k->ending) {
		explain_failure(k, &e);
		fail(k, &e);
	}
}

enum { ON_CONTROL, ON_LISTENER, ON_INNER, ON_ERRORS, ON_ENGINE, ON_SAID, ON_MAX_ };

static void keep(struct keeper *k)
{
	for (;;) {
		struct pollfd fds[ON_MAX_] = {
			[ON_CONTROL] = { .fd = k->control, .events = POLLIN },
			[ON_LISTENER] = { .fd = k->listener, .events = POLLIN },
			[ON_INNER] = { .fd = k->connected ? k->inner : -1, .events = POLLIN },
			[ON_ERRORS] = { .fd = k->inner_errors, .events = POLLIN },
			[ON_ENGINE] = { .fd = k->engine, .events = POLLIN },
			[ON_SAID] = { .fd = k->said, .events = POLLIN },
		};
		uint64_t now = sys_now_ms();
		int wait = !k->deadline_ms         ? -1
			   : now >= k->deadline_ms ? 0
						   : (int)(k->deadline_ms - now);

		if (poll(fds, ARRAY_LEN(fds), wait) < 0)
			continue; /* EINTR */
		if (k->deadline_ms && sys_now_ms() >= k->deadline_ms)
			force_end(k);
		if (fds[ON_SAID].revents)
			(void)hear_engine(k);
		if (fds[ON_CONTROL].revents)
			on_order(k);
		if (fds[ON_LISTENER].revents && k->listener >= 0)
			on_connection(k);
		if (fds[ON_ERRORS].revents && k->inner_errors >= 0)
			on_error(k);
		if (fds[ON_INNER].revents && k->inner >= 0)
			on_event(k);
		if (fds[ON_ENGINE].revents) {
			on_engine_end(k);
			return;
		}
	}
}

static _Noreturn void keeper_main(const struct plan *plan, const struct sandbox_command *cmd,
				  int control, int errors)
{
	struct keeper k = { .plan = plan,
			    .cmd = cmd,
			    .control = control,
			    .errors = errors,
			    .listener = -1,
			    .lock = -1,
			    .inner = -1,
			    .inner_errors = -1,
			    .engine = -1,
			    .said = -1,
			    .groups = CONTAINER_GROUPS_INIT };
	struct error e = { 0 };
	int r;

	k.umask = umask(0);
	(void)umask(k.umask);
	(void)setpgid(0, 0); /* keys at the terminal are not for us, nor for the engine */
	(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	r = listen_for_enter(&k, &e);
	if (r == 0)
		r = start_engine(&k, &e);
	if (r == 0)
		keep(&k);
	else
		fail(&k, &e);
	stop_listening(&k);
	container_groups_close(&k.groups);
	_exit(0);
}

int container_start(const struct plan *plan, const struct sandbox_command *cmd,
		    struct sandbox_child *ret, struct error *e)
{
	int control[2] = { -1, -1 }, errors[2] = { -1, -1 };
	struct sandbox_child child = SANDBOX_CHILD_INIT;
	int r = 0;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, control) < 0 ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, errors) < 0)
		r = error_set(e, errno, "cannot make a socket: %s", strerror(errno));
	if (r == 0) {
		child.pid = fork();
		if (child.pid < 0)
			r = error_set(e, errno, "cannot start the keeper: %s", strerror(errno));
	}
	if (r == 0 && child.pid == 0) {
		fd_close(control[0]);
		fd_close(errors[0]);
		keeper_main(plan, cmd, control[1], errors[1]);
	}
	if (r == 0) {
		child.init = child.pid;
		child.pidfd = sys_pidfd_open(child.pid);
		child.control = TAKE_FD(control[0]);
		child.errors = TAKE_FD(errors[0]);
		*ret = child;
	}
	for (size_t i = 0; i < 2; i++) {
		fd_close(control[i]);
		fd_close(errors[i]);
	}
	return r;
}
