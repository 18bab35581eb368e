/* SPDX-License-Identifier: Apache-2.0 */
#include "supervise/egress.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/sys.h"
#include "base/text.h"

#define PROXY_CONTROL_FD 3
#define BATCH_MAX ((size_t)24 << 10) /* more than the proxy puts into one datagram */

struct egress_listener {
	int role, fd;
};

struct egress {
	struct egress_setup setup;
	int events; /* epoll: the listeners until the proxy runs, then `control` */
	int control; /* of the running proxy, SOCK_SEQPACKET; -1 = not running */
	pid_t pid;
	struct egress_user *users;
	uint32_t last_id;
};

static int send_config(const struct egress *x)
{
	_cleanup_buf_ struct buf b = BUF_INIT(EGRESS_CONFIG_MAX);
	_cleanup_fd_ int memory = (int)syscall(SYS_memfd_create, "config", 1u /* CLOEXEC */);
	int r;

	if (memory < 0)
		return -errno;
	r = egress_write_config(&b, x->setup.policy, x->setup.ask);
	if (r == 0)
		r = fd_write_all(memory, buf_str(&b), b.len);
	return r < 0 ? r : fd_send(x->control, "config", strlen("config"), memory);
}

/*
 * The proxy and its listeners.
 */

static int watch(const struct egress *x, int fd)
{
	struct epoll_event ev = { .events = EPOLLIN };

	return epoll_ctl(x->events, EPOLL_CTL_ADD, fd, &ev) < 0 ? -errno : 0;
}

static int send_listener(const struct egress *x, const struct egress_user *u,
			 const struct egress_listener *l)
{
	static const char *const words[] = {
		[EGRESS_HTTP] = "listener http",
		[EGRESS_SOCKS] = "listener socks",
		[EGRESS_TRANSPARENT] = "listener transparent",
		[EGRESS_DNS_UDP] = "listener dns-udp",
		[EGRESS_DNS_TCP] = "listener dns-tcp",
		[EGRESS_SEED] = "seed connect",
		[EGRESS_SEED_LISTENER] = "seed accept",
		[EGRESS_REDIRECTED] = "listener transparent",
		[EGRESS_INQUIRIES] = "inquiries",
	};
	const struct policy_network *net = &x->setup.policy->network;
	char text[96];

	_Static_assert(ARRAY_LEN(words) == EGRESS_ROLE_MAX_, "a word for each role");
	if (l->role == EGRESS_HTTP && net->http_proxy_port)
		(void)snprintf(text, sizeof(text), "forward 127.0.0.1:%u %u network.httpProxyPort",
			       net->http_proxy_port, u->id);
	else if (l->role == EGRESS_SOCKS && net->socks_proxy_port)
		(void)snprintf(text, sizeof(text), "forward 127.0.0.1:%u %u network.socksProxyPort",
			       net->socks_proxy_port, u->id);
	else if (l->role > EGRESS_FORWARD && l->role <= EGRESS_FORWARD + UINT16_MAX)
		(void)snprintf(text, sizeof(text), "forward 127.0.0.1:%d %u",
			       l->role - EGRESS_FORWARD, u->id);
	else if (l->role > EGRESS_PUBLISH && l->role <= EGRESS_PUBLISH + UINT16_MAX)
		(void)snprintf(text, sizeof(text), "publish %d %u", l->role - EGRESS_PUBLISH,
			       u->id);
	else if (l->role >= 0 && l->role < EGRESS_ROLE_MAX_)
		(void)snprintf(text, sizeof(text), "%s %u", words[l->role], u->id);
	else
		return -EINVAL;
	return fd_send(x->control, text, strlen(text), l->fd);
}

int egress_add_listener(struct egress_user *u, int role, int fd)
{
	struct egress *x = u->egress;
	struct egress_listener l = { .role = role, .fd = fd }, *more;

	if (x->control >= 0)
		return send_listener(x, u, &l);
	more = reallocarray(u->listeners, u->n_listeners + 1, sizeof(*more));
	if (!more)
		abort();
	u->listeners = more;
	l.fd = fcntl(fd, F_DUPFD_CLOEXEC, PROXY_CONTROL_FD);
	if (l.fd < 0)
		return -errno;
	u->listeners[u->n_listeners++] = l;
	/* a seed is no reason to start */
	return role == EGRESS_SEED || role == EGRESS_SEED_LISTENER ? 0 : watch(x, l.fd);
}

static void forget_listeners(struct egress_user *u)
{
	while (u->n_listeners > 0) {
		int fd = u->listeners[--u->n_listeners].fd;

		/* closing is not enough: the proxy has it open too */
		(void)epoll_ctl(u->egress->events, EPOLL_CTL_DEL, fd, NULL);
		fd_close(fd);
	}
	free(u->listeners);
	u->listeners = NULL;
}

/* In the child. A clean environment: nothing of the caller's steers the proxy. */
static _Noreturn void become_proxy(const char *program, int control)
{
	char path[] = "PATH=/usr/bin:/bin";
	char *env[] = { path, NULL }, *argv[] = { NULL, NULL };
	_cleanup_free_ char *name = strdup(program);
	sigset_t none;

	argv[0] = name;
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	(void)setpgid(0, 0); /* the terminal's signals are for the command */
	if ((control == PROXY_CONTROL_FD ? fcntl(control, F_SETFD, 0)
					 : dup2(control, PROXY_CONTROL_FD)) < 0 ||
	    sys_close_range(PROXY_CONTROL_FD + 1, ~0u, 0) < 0)
		_exit(125);
	(void)execve(program, argv, env);
	_exit(127);
}

/* Tell every user. */
static void tell_all(struct egress *x, const struct egress_record *r)
{
	for (struct egress_user *u = x->users, *next; u; u = next) {
		next = u->next;
		if (!u->gone)
			u->record(u->ctx, r);
	}
}

/* With the proxy go all its listeners: from here on connections are refused at once. */
static void end_proxy(struct egress *x)
{
	for (struct egress_user *u = x->users; u; u = u->next)
		forget_listeners(u);
	fd_close(x->control);
	x->control = -1;
	if (x->pid > 0) {
		(void)kill(x->pid, SIGKILL);
		while (waitpid(x->pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	x->pid = -1;
}

static void fail(struct egress *x, const char *reason)
{
	struct egress_record r = { .kind = EGRESS_FAILED };

	text_copy(r.reason, sizeof(r.reason), reason);
	end_proxy(x);
	tell_all(x, &r);
	for (struct egress_user *u = x->users; u; u = u->next)
		u->gone = true;
}

static int start_proxy(struct egress *x)
{
	int pair[2], r;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	x->pid = fork();
	if (x->pid == 0)
		become_proxy(x->setup.program, pair[1]);
	r = x->pid < 0 ? -errno : 0;
	fd_close(pair[1]);
	x->control = pair[0];
	if (r == 0)
		r = watch(x, x->control);
	if (r == 0)
		r = send_config(x);
	for (struct egress_user *u = x->users; u; u = u->next) {
		for (size_t i = 0; i < u->n_listeners && r == 0; i++)
			r = send_listener(x, u, &u->listeners[i]);
		forget_listeners(u);
	}
	return r;
}

/* Something waits at a listener. */
static void start_when_wanted(struct egress *x)
{
	struct epoll_event ev;

	if (x->control < 0 && epoll_wait(x->events, &ev, 1, 0) > 0 && start_proxy(x) < 0)
		fail(x, "the egress proxy could not be started");
}

/*
 * What it tells.
 */

static void dispatch(struct egress *x, const struct egress_record *r)
{
	struct egress_user *u = x->users;

	if (r->kind == EGRESS_NOTICE || r->kind == EGRESS_LOST) {
		tell_all(x, r);
		return;
	}
	while (u && u->id != r->owner)
		u = u->next;
	if (!u || u->gone)
		return;
	if (r->kind == EGRESS_GONE)
		u->gone = true;
	else if (r->kind != EGRESS_READY)
		u->record(u->ctx, r);
}

static void take_batch(struct egress *x, const char *text, size_t len)
{
	while (len > 0) {
		const char *end = memchr(text, '\n', len);
		size_t n = end ? (size_t)(end - text) : len;
		struct egress_record r;

		if (egress_record_parse(text, n, &r) == 0)
			dispatch(x, &r);
		text += n + (end != NULL);
		len -= n + (end != NULL);
	}
}

void egress_step(struct egress *x)
{
	char batch[BATCH_MAX];
	ssize_t n = -1;

	start_when_wanted(x);
	errno = EAGAIN;
	while (x->control >= 0 && (n = recv(x->control, batch, sizeof(batch), MSG_DONTWAIT)) > 0)
		take_batch(x, batch, (size_t)n);
	if (x->control >= 0 && (n == 0 || (errno != EAGAIN && errno != EINTR)))
		fail(x, "the egress proxy has ended");
}

/* A word to the proxy; one that cannot be told anything is of no use. */
static void order(struct egress *x, const char *text)
{
	if (x->control >= 0 &&
	    send(x->control, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		fail(x, "the egress proxy does not answer");
}

/*
 * Users.
 */

void egress_attach(struct egress *x, struct egress_user *u)
{
	*u = (struct egress_user){
		.record = u->record,
		.ctx = u->ctx,
		.egress = x,
		.next = x->users,
		.id = ++x->last_id,
	};
	x->users = u;
}

void egress_leave(struct egress_user *u)
{
	struct egress *x = u->egress;
	char text[32];

	if (!x || u->gone)
		return;
	start_when_wanted(x);
	if (x->control < 0) {
		forget_listeners(u);
		u->gone = true;
		return;
	}
	(void)snprintf(text, sizeof(text), "drop %u", u->id);
	order(x, text);
}

bool egress_is_gone(const struct egress_user *u)
{
	return !u->egress || u->gone;
}

void egress_detach(struct egress_user *u)
{
	struct egress *x = u->egress;
	struct egress_user **at;
	char text[32];

	if (!x)
		return;
	if (!u->gone) {
		u->gone = true; /* it wants to hear nothing more */
		(void)snprintf(text, sizeof(text), "drop %u", u->id);
		order(x, text);
	}
	forget_listeners(u);
	for (at = &x->users; *at != u; at = &(*at)->next)
		;
	*at = u->next;
	u->egress = NULL;
}

/*
 * The whole.
 */

int egress_new(const struct egress_setup *setup, struct egress **ret, struct error *e)
{
	_cleanup_buf_ struct buf b = BUF_INIT(EGRESS_CONFIG_MAX);
	struct egress *x;
	int events;

	if (access(setup->program, X_OK) < 0)
		return error_set(e, errno, "the egress proxy %s: %s", setup->program,
				 strerror(errno));
	if (egress_write_config(&b, setup->policy, setup->ask) < 0)
		return error_set(e, EFBIG, "the network lists are longer than %zu MiB",
				 EGRESS_CONFIG_MAX >> 20);
	events = epoll_create1(EPOLL_CLOEXEC);
	if (events < 0)
		return error_set(e, errno, "cannot make an epoll descriptor: %s", strerror(errno));
	x = malloc(sizeof(*x));
	if (!x)
		abort();
	*x = (struct egress){ .setup = *setup, .events = events, .control = -1, .pid = -1 };
	*ret = x;
	return 0;
}

void egress_free(struct egress *x)
{
	if (!x)
		return;
	while (x->users)
		egress_detach(x->users);
	end_proxy(x);
	fd_close(x->events);
	free(x);
}

pid_t egress_pid(const struct egress *x)
{
	return x->pid;
}

int egress_fd(const struct egress *x)
{
	return x->events;
}

int egress_change(struct egress *x, const struct policy *p)
{
	int r = 0;

	x->setup.policy = p;
	if (x->control >= 0)
		r = send_config(x);
	if (r < 0)
		fail(x, "the egress proxy could not be told the new lists");
	return r;
}

void egress_answer(struct egress *x, uint32_t id, enum egress_answer answer)
{
	static const char *const words[] = {
		[EGRESS_DENY] = "deny",
		[EGRESS_DENY_RUN] = "deny-run",
		[EGRESS_ALLOW_ONCE] = "allow-once",
		[EGRESS_ALLOW_RUN] = "allow-run",
	};
	char text[64];

	(void)snprintf(text, sizeof(text), "answer %u %s", id, words[answer]);
	order(x, text);
}
