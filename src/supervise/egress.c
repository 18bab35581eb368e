/* SPDX-License-Identifier: Apache-2.0 */
#include "supervise/egress.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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
	int pair[2], r;

	if (access(program, X_OK) < 0)
		return error_set(e, errno, "the egress proxy %s: %s", program, strerror(errno));
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return error_set(e, errno, "cannot make a socket: %s", strerror(errno));
	x->pid = fork();
	if (x->pid == 0)
		become_proxy(program, pair[1]);
	fd_close(pair[1]);
	x->control = pair[0];
	if (x->pid < 0) {
		egress_stop(x);
		return error_set(e, errno, "cannot start the egress proxy: %s", strerror(errno));
	}
	r = send_config(x->control, p);
	if (r < 0) {
		egress_stop(x);
		return error_set(e, -r, "cannot configure the egress proxy: %s", strerror(-r));
	}
	return 0;
}

int egress_add_listener(const struct egress *x, int role, int fd)
{
	static const char *const words[] = {
		[EGRESS_HTTP] = "listener http",
		[EGRESS_SOCKS] = "listener socks",
		[EGRESS_TRANSPARENT] = "listener transparent",
		[EGRESS_DNS_UDP] = "listener dns-udp",
		[EGRESS_DNS_TCP] = "listener dns-tcp",
	};

	_Static_assert(ARRAY_LEN(words) == EGRESS_ROLE_MAX_, "a word for each role");
	if (role > EGRESS_FORWARD && role <= EGRESS_FORWARD + UINT16_MAX) {
		char text[64];

		(void)snprintf(text, sizeof(text), "forward 127.0.0.1:%d", role - EGRESS_FORWARD);
		return fd_send(x->control, text, strlen(text), fd);
	}
	if (role < 0 || role >= EGRESS_ROLE_MAX_)
		return -EINVAL;
	return fd_send(x->control, words[role], strlen(words[role]), fd);
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

bool egress_next_denial(const struct egress *x, struct violation *ret)
{
	char record[RECORD_MAX];
	ssize_t n;

	while ((n = recv(x->control, record, sizeof(record) - 1, MSG_DONTWAIT)) > 0) {
		record[n] = '\0';
		if (!strstr(record, "\"verdict\":\"deny\""))
			continue;
		fill_denial(record, ret);
		return true;
	}
	return false;
}

void egress_stop(struct egress *x)
{
	fd_close(x->control);
	x->control = -1;
	if (x->pid > 0) {
		(void)kill(x->pid, SIGKILL); /* it has nothing to save */
		while (waitpid(x->pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	x->pid = -1;
}
