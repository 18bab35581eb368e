/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A command in its sandbox: `ambit run` as a child, with one socket between us. It writes what
 * happens there (supervise/events.h); the end of file on its side means that we are gone, and
 * ends it. The command itself never has the socket.
 *
 * A process of its own, not the supervisor's loop in the caller's: the caller may have
 * threads, handlers for SIGCHLD, gigabytes to copy on fork and secrets in its memory.
 *
 * Trust: the lines come from our own program, but names in them are the command's choice. Their
 * length is bounded, they are parsed as JSON and only handed on.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api/internal.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/json_read.h"
#include "base/path.h"
#include "base/sys.h"
#include "base/text.h"

#define EVENTS_FD 3
#define ENV_FD 4
#define LINE_MAX_BYTES ((size_t)16 << 20) /* the report of a run that was denied everything */
#define FIRST_FREE_FD 10 /* above every number that the child is given */

/* What the structures had in the first version with this soname: members are only added. */
#define END_OF(type, member) (offsetof(type, member) + sizeof(((type *)NULL)->member))
#define SPAWN_SIZE_FIRST END_OF(struct ambit_spawn, ctx)
#define RESULT_SIZE_FIRST END_OF(struct ambit_result, violations)
#define STRUCT_SIZE_MAX 4096 /* beyond, it is no size */

struct ambit_process {
	pid_t pid;
	int pidfd, events;
	void (*violation)(void *ctx, const struct ambit_violation *v);
	enum ambit_answer (*ask)(void *ctx, const char *host, unsigned port);
	enum ambit_answer (*ask_write)(void *ctx, const char *path, const char *reason);
	void *ctx;
	struct buf text; /* read, and not yet a whole line */
	bool ended;
	struct ambit_result result;
	struct ambit_error failure; /* when nothing was run */
};

/* --- starting ------------------------------------------------------------------ */

/* The descriptors of the child, each moved out of the way of its final number first. */
struct descriptors {
	int stdio[3], events, env;
};

static void close_descriptors(struct descriptors *d)
{
	for (size_t i = 0; i < ARRAY_LEN(d->stdio); i++)
		fd_close(d->stdio[i]);
	fd_close(d->events);
	fd_close(d->env);
}

static int write_environment(char *const *env, int *ret)
{
	_cleanup_fd_ int fd = (int)syscall(SYS_memfd_create, "environment", 1u /* CLOEXEC */);
	int r = fd < 0 ? -errno : 0;

	for (; r == 0 && *env; env++)
		r = fd_write_all(fd, *env, strlen(*env) + 1);
	if (r == 0 && lseek(fd, 0, SEEK_SET) < 0)
		r = -errno;
	if (r == 0)
		r = *ret = fcntl(fd, F_DUPFD_CLOEXEC, FIRST_FREE_FD);
	return r < 0 ? (errno ? -errno : r) : 0;
}

static int open_descriptors(const struct ambit_spawn *s, struct descriptors *d, int *ret_ours)
{
	const int given[] = { s->stdin_fd, s->stdout_fd, s->stderr_fd };
	int pair[2], r = 0;

	*d = (struct descriptors){ { -1, -1, -1 }, -1, -1 };
	for (size_t i = 0; i < ARRAY_LEN(given); i++) {
		if (given[i] < 0)
			continue;
		d->stdio[i] = fcntl(given[i], F_DUPFD_CLOEXEC, FIRST_FREE_FD);
		if (d->stdio[i] < 0)
			return -errno;
	}
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	*ret_ours = pair[0];
	d->events = fcntl(pair[1], F_DUPFD_CLOEXEC, FIRST_FREE_FD);
	if (d->events < 0)
		r = -errno;
	fd_close(pair[1]);
	if (r == 0 && s->env)
		r = write_environment(s->env, &d->env);
	return r;
}

static int add_actions(posix_spawn_file_actions_t *actions, const struct descriptors *d)
{
	int r = 0;

	for (int i = 0; i < 3 && r == 0; i++) {
		if (d->stdio[i] >= 0)
			r = posix_spawn_file_actions_adddup2(actions, d->stdio[i], i);
	}
	if (r == 0)
		r = posix_spawn_file_actions_adddup2(actions, d->events, EVENTS_FD);
	if (r == 0 && d->env >= 0)
		r = posix_spawn_file_actions_adddup2(actions, d->env, ENV_FD);
	return -r;
}

/* No signal blocked or ignored by the caller (Python ignores SIGPIPE) reaches the command. */
static int set_signals(posix_spawnattr_t *attr)
{
	sigset_t none, all;
	int r;

	(void)sigemptyset(&none);
	(void)sigfillset(&all);
	r = posix_spawnattr_setsigmask(attr, &none);
	if (r == 0)
		r = posix_spawnattr_setsigdefault(attr, &all);
	if (r == 0)
		r = posix_spawnattr_setflags(attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	return -r;
}

static int start(const char *program, char *const *argv, const struct descriptors *d, pid_t *ret)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	int r = -posix_spawn_file_actions_init(&actions);

	if (r < 0)
		return r;
	r = -posix_spawnattr_init(&attr);
	if (r < 0) {
		(void)posix_spawn_file_actions_destroy(&actions);
		return r;
	}
	r = add_actions(&actions, d);
	if (r == 0)
		r = set_signals(&attr);
	if (r == 0)
		r = -posix_spawn(ret, program, &actions, &attr, argv, environ);
	(void)posix_spawnattr_destroy(&attr);
	(void)posix_spawn_file_actions_destroy(&actions);
	return r;
}

struct words {
	struct arena *a;
	char **v;
	size_t n;
};

static void push(struct words *w, const char *word)
{
	*ARENA_PUSH(w->a, w->v, w->n) = word ? arena_strdup(w->a, word) : NULL;
}

static char *const *make_argv(const struct ambit_config *c, const struct ambit_spawn *s,
			      struct arena *a, const struct policy *p)
{
	struct words w = { .a = a };

	push(&w, "ambit");
	push(&w, "run");
	push(&w, "--events-fd");
	push(&w, arena_printf(a, "%d", EVENTS_FD));
	if (s->ask || s->ask_write)
		push(&w, "--ask");
	if (s->env) {
		push(&w, "--env-fd");
		push(&w, arena_printf(a, "%d", ENV_FD));
	}
	push(&w, "--chdir");
	push(&w, p->cwd);
	if (c->file) {
		push(&w, "-s");
		push(&w, c->file);
	}
	for (size_t i = 0; i < c->n_settings; i++) {
		push(&w, "--set");
		push(&w, arena_printf(a, "%s=%s", c->settings[i].key, c->settings[i].value));
	}
	push(&w, s->shell ? "-c" : "--");
	if (s->shell)
		push(&w, s->shell);
	for (char *const *v = s->argv; v && *v; v++)
		push(&w, *v);
	push(&w, NULL);
	return w.v;
}

static struct ambit_process *new_process(const struct ambit_spawn *s, pid_t pid, int pidfd,
					 int events)
{
	struct ambit_process *p = malloc(sizeof(*p));

	if (p)
		*p = (struct ambit_process){ .pid = pid,
					     .pidfd = pidfd,
					     .events = events,
					     .violation = s->violation,
					     .ask = s->ask,
					     .ask_write = s->ask_write,
					     .ctx = s->ctx,
					     .text = BUF_INIT(LINE_MAX_BYTES) };
	return p;
}

/*
 * By descriptor where there is one: somebody else in this process may have waited for it, and then
 * the number may be another's.
 */
static void end_at_once(pid_t pid, int pidfd)
{
	if (pidfd < 0 || sys_pidfd_send_signal(pidfd, SIGKILL) == -ENOSYS)
		(void)kill(pid, SIGKILL);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}

static int spawn(const struct ambit_config *c, const struct ambit_spawn *s,
		 struct ambit_process **ret, struct error *e)
{
	_cleanup_arena_ struct arena *a = arena_new();
	_cleanup_fd_ int ours = -1, pidfd = -1;
	const struct policy *policy = NULL;
	struct descriptors d;
	const char *program = NULL;
	pid_t pid = -1;
	int r = api_policy(c, a, s->directory, &policy, e);

	if (r == 0)
		r = api_program(c, a, &program, e);
	if (r < 0 || !policy || !program)
		return r;
	r = open_descriptors(s, &d, &ours);
	if (r == 0)
		r = start(program, make_argv(c, s, a, policy), &d, &pid);
	close_descriptors(&d);
	if (r < 0)
		return error_set(e, -r, "cannot start %s: %s", program, strerror(-r));
	pidfd = (int)syscall(SYS_pidfd_open, pid, 0u);
	*ret = pidfd < 0 ? NULL : new_process(s, pid, pidfd, ours);
	if (!*ret) {
		end_at_once(pid, pidfd);
		return error_set(e, ENOMEM, "cannot watch %s", program);
	}
	(void)TAKE_FD(ours);
	(void)TAKE_FD(pidfd);
	return 0;
}

/*
 * A program may have been compiled with an older header, whose structure is shorter, or with a
 * newer one: what this library does not know of must not be asked for then.
 */
static bool take_request(const struct ambit_spawn *s, struct ambit_spawn *ret)
{
	*ret = (struct ambit_spawn){ AMBIT_SPAWN_INIT };
	if (!s || s->size < SPAWN_SIZE_FIRST || s->size > STRUCT_SIZE_MAX)
		return false;
	for (size_t i = sizeof(*ret); i < s->size; i++) {
		if (((const char *)s)[i])
			return false;
	}
	memcpy(ret, s, s->size < sizeof(*ret) ? s->size : sizeof(*ret));
	return !ret->argv == !!ret->shell && (!ret->argv || ret->argv[0]);
}

int ambit_spawn(const struct ambit_config *c, const struct ambit_spawn *s,
		struct ambit_process **ret, struct ambit_error *e)
{
	struct ambit_spawn request;
	struct error err = { 0 };
	int r;

	if (!c || !ret || !take_request(s, &request))
		r = error_set(&err, EINVAL,
			      "struct ambit_spawn needs AMBIT_SPAWN_INIT, and either "
			      "argv or shell");
	else
		r = spawn(c, &request, ret, &err);
	return r < 0 ? api_fail(e, &err) : 0;
}

/* --- watching ------------------------------------------------------------------ */

static const char *member(struct arena *a, const struct json_span *object, const char *name)
{
	_cleanup_buf_ struct buf b = BUF_INIT(LINE_MAX_BYTES);
	struct json_span value;

	if (!json_find(object, name, &value) || value.kind == JSON_NULL)
		return "";
	json_unquote(&value, &b);
	return arena_strdup(a, buf_str(&b));
}

static uint64_t number(const struct json_span *object, const char *name)
{
	struct json_span value;
	uint64_t n;

	return json_find(object, name, &value) && json_to_u64(&value, INT64_MAX, &n) == 0 ? n : 0;
}

static void take_denied(struct ambit_process *p, const struct json_span *o)
{
	_cleanup_arena_ struct arena *a = arena_new();
	struct ambit_violation v = {
		.kind = member(a, o, "kind"),
		.target = member(a, o, "target"),
		.rule = member(a, o, "rule"),
		.source = member(a, o, "source"),
		.reason = member(a, o, "reason"),
		.process = member(a, o, "process"),
		.hint = member(a, o, "hint"),
		.pid = (int64_t)number(o, "pid"),
		.time_ms = (int64_t)number(o, "time"),
	};

	p->result.violations++;
	if (p->violation)
		p->violation(p->ctx, &v);
}

static void take_question(struct ambit_process *p, const struct json_span *o)
{
	static const char *const words[] = {
		[AMBIT_DENY] = "no",
		[AMBIT_ALLOW_ONCE] = "once",
		[AMBIT_ALLOW_RUN] = "run",
	};
	_cleanup_arena_ struct arena *a = arena_new();
	enum ambit_answer answer = AMBIT_DENY;
	struct json_span path;
	char line[64];
	int n;

	if (json_find(o, "path", &path)) {
		if (p->ask_write)
			answer = p->ask_write(p->ctx, member(a, o, "path"), member(a, o, "reason"));
	} else if (p->ask) {
		answer = p->ask(p->ctx, member(a, o, "host"), (unsigned)number(o, "port"));
	}
	if ((size_t)answer >= ARRAY_LEN(words))
		answer = AMBIT_DENY;
	n = snprintf(line, sizeof(line), "%llu %s\n", (unsigned long long)number(o, "id"),
		     words[answer]);
	(void)!send(p->events, line, (size_t)n, MSG_NOSIGNAL);
}

static void take_end(struct ambit_process *p, const struct json_span *o)
{
	struct json_span flag;

	p->result.started = true;
	p->result.exit_code = (int)number(o, "exitCode");
	p->result.signal = (int)number(o, "signal");
	p->result.timed_out =
		json_find(o, "timedOut", &flag) && flag.kind == JSON_BOOL && flag.text[0] == 't';
	p->result.wall_ms = number(o, "wallMs");
	p->result.cpu_ms = number(o, "cpuMs");
	p->result.max_rss = number(o, "maxRss");
}

static void take_error(struct ambit_process *p, const struct json_span *o)
{
	_cleanup_arena_ struct arena *a = arena_new();

	p->result.started = false;
	p->result.exit_code = (int)number(o, "exitCode");
	p->failure = (struct ambit_error){ .code = EIO, .exit_code = p->result.exit_code };
	text_copy(p->failure.text, sizeof(p->failure.text), member(a, o, "text"));
}

static void take_line(struct ambit_process *p, const char *line, size_t len)
{
	struct json_span o, event;

	if (json_parse(line, len, &o) < 0 || !json_find(&o, "event", &event))
		return;
	if (json_equals(&event, "denied"))
		take_denied(p, &o);
	else if (json_equals(&event, "ask"))
		take_question(p, &o);
	else if (json_equals(&event, "end"))
		take_end(p, &o);
	else if (json_equals(&event, "error"))
		take_error(p, &o);
}

static void take_lines(struct ambit_process *p)
{
	const char *text = buf_str(&p->text), *end;
	size_t at = 0;

	while ((end = memchr(text + at, '\n', p->text.len - at))) {
		take_line(p, text + at, (size_t)(end - text) - at);
		at = (size_t)(end - text) + 1;
	}
	if (at > 0) {
		memmove(p->text.data, p->text.data + at, p->text.len - at);
		p->text.len -= at;
	}
}

/* True while there is more to come. */
static bool read_events(struct ambit_process *p)
{
	char chunk[16384];
	ssize_t n;

	while ((n = recv(p->events, chunk, sizeof(chunk), MSG_DONTWAIT)) > 0) {
		buf_append(&p->text, chunk, (size_t)n);
		take_lines(p);
	}
	return n < 0 && (errno == EAGAIN || errno == EINTR);
}

/* The socket is closed: the supervisor is gone, or is the unsandboxed command by now. */
static void reap(struct ambit_process *p)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(p->pid, &status, 0)) < 0 && errno == EINTR)
		;
	p->ended = true;
	if (p->result.started || p->failure.code)
		return;
	/* no word from it: killed, or the command ran outside by its own exec */
	p->result.started = true;
	if (pid != p->pid) /* somebody else in this process waited for it */
		p->result.exit_code = 125;
	else if (WIFSIGNALED(status))
		p->result.exit_code = 128 + (p->result.signal = WTERMSIG(status));
	else
		p->result.exit_code = WEXITSTATUS(status);
}

int ambit_process_fd(const struct ambit_process *p)
{
	return p->events;
}

int ambit_process_dispatch(struct ambit_process *p)
{
	if (!p->ended && !read_events(p))
		reap(p);
	return p->ended;
}

/* As much of it as the caller's structure has room for. */
static int give_result(struct ambit_process *p, struct ambit_result *ret)
{
	size_t size = ret->size;

	if (size < RESULT_SIZE_FIRST || size > STRUCT_SIZE_MAX)
		return -EINVAL;
	p->result.size = size;
	memset(ret, 0, size);
	memcpy(ret, &p->result, size < sizeof(p->result) ? size : sizeof(p->result));
	return 0;
}

int ambit_process_wait(struct ambit_process *p, int timeout_ms, struct ambit_result *ret,
		       struct ambit_error *e)
{
	struct pollfd ready = { .fd = p->events, .events = POLLIN };
	int64_t end = (int64_t)sys_now_ms() + timeout_ms;

	while (!ambit_process_dispatch(p)) {
		int64_t left = timeout_ms < 0 ? INT_MAX : end - (int64_t)sys_now_ms();

		if (left <= 0)
			return -ETIMEDOUT;
		(void)poll(&ready, 1, timeout_ms < 0 ? -1 : (int)left);
	}
	if (e)
		*e = p->failure;
	return ret ? give_result(p, ret) : 0;
}

int ambit_process_kill(struct ambit_process *p, int sig)
{
	return p->ended ? -ESRCH : sys_pidfd_send_signal(p->pidfd, sig);
}

pid_t ambit_process_pid(const struct ambit_process *p)
{
	return p->pid;
}

void ambit_process_free(struct ambit_process *p)
{
	if (!p)
		return;
	if (!p->ended)
		end_at_once(p->pid, p->pidfd);
	fd_close(p->events);
	fd_close(p->pidfd);
	buf_done(&p->text);
	free(p);
}
