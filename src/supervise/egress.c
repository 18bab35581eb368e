/* SPDX-License-Identifier: Apache-2.0 */
#include "supervise/egress.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
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
#define RECORD_MAX 8192
#define FINISH_MS 1500 /* more than the proxy allows itself */

static void write_hosts(struct buf *b, const char *verb, const struct host_rules *rules)
{
	for (size_t i = 0; i < rules->n; i++)
		buf_printf(b, "%s %s\n", verb, rules->v[i].text);
}

static void write_config(struct buf *b, const struct policy *p)
{
	const struct policy_network *n = &p->network;

	write_hosts(b, "allow", &n->allowed);
	write_hosts(b, "deny", &n->denied);
	buf_printf(b, "private %d\n", n->allow_private_addresses);
	for (size_t i = 0; i < n->denied_resolved.n; i++)
		buf_printf(b, "denyAddress %s\n", n->denied_resolved.v[i].text);
	if (n->parent_http)
		buf_printf(b, "parentHttp %s\n", n->parent_http);
	if (n->parent_https)
		buf_printf(b, "parentHttps %s\n", n->parent_https);
	if (n->parent_no_proxy)
		buf_printf(b, "noProxy %s\n", n->parent_no_proxy);
}

static int send_config(int control, const struct policy *p)
{
	_cleanup_buf_ struct buf b = BUF_INIT(BUF_MAX_TEXT);
	_cleanup_fd_ int memory = (int)syscall(SYS_memfd_create, "config", 1u /* CLOEXEC */);
	int r;

	if (memory < 0)
		return -errno;
	write_config(&b, p);
	r = b.overflow ? -EFBIG : fd_write_all(memory, buf_str(&b), b.len);
	if (r == 0 && lseek(memory, 0, SEEK_SET) < 0)
		r = -errno;
	return r < 0 ? r : fd_send(control, "config", strlen("config"), memory);
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

int egress_start(struct egress *x, const char *program, const struct policy *p, struct error *e)
{
	/* what can be known to fail, fails before the command runs */
	if (access(program, X_OK) < 0)
		return error_set(e, errno, "the egress proxy %s: %s", program, strerror(errno));
	x->program = program;
	x->policy = p;
	x->events = epoll_create1(EPOLL_CLOEXEC);
	return x->events < 0
		       ? error_set(e, errno, "cannot make an epoll descriptor: %s", strerror(errno))
		       : 0;
}

static int watch(const struct egress *x, int fd)
{
	struct epoll_event ev = { .events = EPOLLIN };

	return epoll_ctl(x->events, EPOLL_CTL_ADD, fd, &ev) < 0 ? -errno : 0;
}

static int send_listener(const struct egress *x, const struct egress_listener *l)
{
	static const char *const words[] = {
		[EGRESS_HTTP] = "listener http",
		[EGRESS_SOCKS] = "listener socks",
		[EGRESS_TRANSPARENT] = "listener transparent",
		[EGRESS_DNS_UDP] = "listener dns-udp",
		[EGRESS_DNS_TCP] = "listener dns-tcp",
		[EGRESS_SEED] = "seed connect",
		[EGRESS_SEED_LISTENER] = "seed accept",
	};
	char text[64];

	_Static_assert(ARRAY_LEN(words) == EGRESS_ROLE_MAX_, "a word for each role");
	if (l->role > EGRESS_FORWARD && l->role <= EGRESS_FORWARD + UINT16_MAX)
		(void)snprintf(text, sizeof(text), "forward 127.0.0.1:%d",
			       l->role - EGRESS_FORWARD);
	else if (l->role > EGRESS_PUBLISH && l->role <= EGRESS_PUBLISH + UINT16_MAX)
		(void)snprintf(text, sizeof(text), "publish %d", l->role - EGRESS_PUBLISH);
	else if (l->role >= 0 && l->role < EGRESS_ROLE_MAX_)
		text_copy(text, sizeof(text), words[l->role]);
	else
		return -EINVAL;
	return fd_send(x->control, text, strlen(text), l->fd);
}

int egress_add_listener(struct egress *x, int role, int fd)
{
	struct egress_listener l = { .role = role, .fd = fd }, *more;

	if (x->control >= 0)
		return send_listener(x, &l);
	more = reallocarray(x->listeners, x->n_listeners + 1, sizeof(*more));
	if (!more)
		abort();
	x->listeners = more;
	l.fd = fcntl(fd, F_DUPFD_CLOEXEC, PROXY_CONTROL_FD);
	if (l.fd < 0)
		return -errno;
	x->listeners[x->n_listeners++] = l;
	/* a seed is no reason to start */
	return role == EGRESS_SEED || role == EGRESS_SEED_LISTENER ? 0 : watch(x, l.fd);
}

static void forget_listeners(struct egress *x)
{
	while (x->n_listeners > 0) {
		int fd = x->listeners[--x->n_listeners].fd;

		/* closing is not enough: the proxy has it open too */
		(void)epoll_ctl(x->events, EPOLL_CTL_DEL, fd, NULL);
		fd_close(fd);
	}
	free(x->listeners);
	x->listeners = NULL;
}

static int start_proxy(struct egress *x)
{
	int pair[2], r;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	x->pid = fork();
	if (x->pid == 0)
		become_proxy(x->program, pair[1]);
	r = x->pid < 0 ? -errno : 0;
	fd_close(pair[1]);
	x->control = pair[0];
	if (r == 0)
		r = watch(x, x->control);
	if (r == 0)
		r = send_config(x->control, x->policy);
	for (size_t i = 0; i < x->n_listeners && r == 0; i++)
		r = send_listener(x, &x->listeners[i]);
	forget_listeners(x);
	return r;
}

/* The string value of a key in the proxy's one-line records; "" when missing. */
static void field(const char *record, const char *key, char *ret, size_t size)
{
	char pattern[64];
	const char *s;
	size_t n = 0;

	(void)snprintf(pattern, sizeof(pattern), "\"%s\":\"", key);
	s = strstr(record, pattern);
	for (s = s ? s + strlen(pattern) : ""; *s && *s != '"' && n + 1 < size; s++) {
		if (*s == '\\' && s[1])
			s++;
		ret[n++] = *s;
	}
	ret[n] = '\0';
}

static void fill_denial(const char *record, struct violation *v)
{
	const char *port = strstr(record, "\"port\":");
	uint64_t number = port ? text_leading_u64(port + strlen("\"port\":")) : 0;
	char host[300];

	*v = (struct violation){ .kind = VIOLATION_CONNECT };
	field(record, "host", host, sizeof(host));
	field(record, "rule", v->rule, sizeof(v->rule));
	field(record, "reason", v->reason, sizeof(v->reason));
	text_copy(v->source, sizeof(v->source), "network");
	if (number)
		(void)snprintf(v->path, sizeof(v->path), "%s:%u", host, (unsigned)number);
	else
		text_copy(v->path, sizeof(v->path), host);
}

static void fill_failure(const char *reason, struct violation *v)
{
	*v = (struct violation){ .kind = VIOLATION_CONNECT };
	text_copy(v->path, sizeof(v->path), "anything");
	text_copy(v->rule, sizeof(v->rule), "network.proxy");
	text_copy(v->source, sizeof(v->source), "network");
	text_copy(v->reason, sizeof(v->reason), reason);
}

/* With the proxy go all its listeners: from here on connections are refused at once. */
static void end_proxy(struct egress *x)
{
	forget_listeners(x);
	fd_close(x->control);
	x->control = -1;
	if (x->pid > 0) {
		(void)kill(x->pid, SIGKILL);
		while (waitpid(x->pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	x->pid = -1;
}

int egress_change(struct egress *x, const struct policy *p)
{
	int r = 0;

	x->policy = p;
	if (x->control >= 0)
		r = send_config(x->control, p);
	if (r < 0)
		end_proxy(x);
	return r;
}

static bool is_wanted(const struct egress *x)
{
	struct epoll_event ev;

	return x->control < 0 && x->n_listeners > 0 && epoll_wait(x->events, &ev, 1, 0) > 0;
}

bool egress_next_denial(struct egress *x, struct violation *ret)
{
	char record[RECORD_MAX];
	ssize_t n;
	int r;

	if (is_wanted(x)) {
		r = start_proxy(x);
		if (r < 0) {
			end_proxy(x);
			fill_failure("the egress proxy could not be started", ret);
			return true;
		}
	}
	if (x->control < 0)
		return false;
	while ((n = recv(x->control, record, sizeof(record) - 1, MSG_DONTWAIT)) > 0) {
		record[n] = '\0';
		if (!strstr(record, "\"verdict\":\"deny\""))
			continue;
		fill_denial(record, ret);
		return true;
	}
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	end_proxy(x);
	if (!x->ending)
		fill_failure("the egress proxy has ended", ret);
	return !x->ending;
}

void egress_finish(struct egress *x)
{
	struct pollfd end = { .fd = -1 };

	if (is_wanted(x) && start_proxy(x) < 0)
		end_proxy(x);
	end.fd = x->control;
	x->ending = true;
	if (x->control >= 0 && send(x->control, "quit", 4, MSG_NOSIGNAL) == 4)
		(void)poll(&end, 1, FINISH_MS); /* until it hangs up */
}

void egress_stop(struct egress *x)
{
	end_proxy(x);
	fd_close(x->events);
	x->events = -1;
}
