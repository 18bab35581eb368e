/* SPDX-License-Identifier: Apache-2.0 */
/*
 * connect(2). A read-only mount does not stop a connection to a unix socket that is a file,
 * and the filter cannot see the path, so the broker decides and connects: to sockets that
 * were made inside, that lie in the sandbox's private directories, or that the
 * policy names (network.allowUnixSockets); every other file is refused.
 *
 * Whatever the address says, "continue" is never the answer: the memory it is in, and the
 * number of the descriptor, can mean something else a moment later. The connection is
 * made here, from copies of both. For a file the decision is about an open descriptor of it, and
 * the same descriptor is connected to: the path is looked up once. Datagram sockets
 * could send without connecting; the filter refuses to make them.
 *
 * A connection may have to wait, for a full backlog or a far host: a thread does so, as long as the
 * caller waits too, for a command can kill as many callers as it likes.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/sys.h"
#include "base/text.h"
#include "supervise/broker/connect.h"

#define PORT_DNS 53
#define SHORT_WAIT_US 1000 /* rounded up to a tick; a local connection needs none of it */
#define DIAL_WAIT_US 50000 /* at a time: then we look whether the caller is still there */
#define DIALS_MAX 256 /* at once; each has a thread and two descriptors */

uint16_t address_describe(const struct address *a, char *ret)
{
	bool six = a->u.any.sa_family == AF_INET6;
	char host[INET6_ADDRSTRLEN] = "";
	struct sockaddr_in6 v6;
	struct sockaddr_in v4;
	uint16_t port;

	memcpy(&v4, &a->u, sizeof(v4));
	memcpy(&v6, &a->u, sizeof(v6));
	port = ntohs(six ? v6.sin6_port : v4.sin_port);
	if (six)
		(void)inet_ntop(AF_INET6, &v6.sin6_addr, host, sizeof(host));
	else
		(void)inet_ntop(AF_INET, &v4.sin_addr, host, sizeof(host));
	(void)snprintf(ret, ADDRESS_TEXT_MAX, six ? "[%s]:%u" : "%s:%u", host, port);
	return port;
}

static bool is_blocking(int sock)
{
	int flags = fcntl(sock, F_GETFL);

	return flags >= 0 && !(flags & O_NONBLOCK);
}

/*
 * A blocking socket is let wait for so long only: -EINPROGRESS, somebody has to try again. The
 * time limit is the socket's own and put back at once.
 */
static int connect_within(int sock, const struct address *to, int us)
{
	const struct timeval limit = { .tv_usec = us };
	struct timeval own;
	int r;

	if (!is_blocking(sock))
		return connect(sock, &to->u.any, to->len) < 0 ? -errno : 0;
	if (getsockopt(sock, SOL_SOCKET, SO_SNDTIMEO, &own, &(socklen_t){ sizeof(own) }) < 0 ||
	    setsockopt(sock, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)) < 0)
		return -EINPROGRESS;
	r = connect(sock, &to->u.any, to->len) < 0 ? -errno : 0;
	(void)setsockopt(sock, SOL_SOCKET, SO_SNDTIMEO, &own, sizeof(own));
	/* a unix socket says it so; and what was begun before */
	return r == -EAGAIN || r == -EALREADY ? -EINPROGRESS : r;
}

int connect_shortly(int sock, const struct address *to)
{
	return connect_within(sock, to, SHORT_WAIT_US);
}

/* A connection in the making. */
struct dial {
	struct broker *b;
	uint64_t id;
	int sock, target; /* target: the file of a unix socket, -1 = `address` */
	struct address address;
};

/* The address of the target, and our way to it. */
static int dial_prepare(struct dial *d)
{
	struct sockaddr_un *to = &d->address.u.local;

	if (d->target < 0)
		return 0;
	/* our own working directory: the outer /proc, where "self" is this process */
	*to = (struct sockaddr_un){ .sun_family = AF_UNIX };
	(void)snprintf(to->sun_path, sizeof(to->sun_path), "self/fd/%d", d->target);
	d->address.len = sizeof(*to);
	return unshare(CLONE_FS) < 0 || fchdir(d->b->proc) < 0 ? -errno : 0;
}

/* How long the command itself lets connect(2) wait on this socket; UINT64_MAX = as long as it takes. */
static uint64_t own_limit_us(int sock)
{
	struct timeval own = { 0 };

	(void)getsockopt(sock, SOL_SOCKET, SO_SNDTIMEO, &own, &(socklen_t){ sizeof(own) });
	return own.tv_sec || own.tv_usec ? (uint64_t)own.tv_sec * 1000000 + (uint64_t)own.tv_usec
					 : UINT64_MAX;
}

/* Until it stands, fails, takes longer than it may, or nobody waits for it any more. */
static int dial_wait(const struct dial *d)
{
	const struct seccomp_notif n = { .id = d->id };
	const struct call c = { .b = d->b, .n = &n };
	uint64_t left = own_limit_us(d->sock);
	int r;

	do {
		uint64_t now = left < DIAL_WAIT_US ? left : DIAL_WAIT_US;

		r = connect_within(d->sock, &d->address, (int)now);
		left -= left == UINT64_MAX ? 0 : now;
	} while (r == -EINPROGRESS && left > 0 && is_blocking(d->sock) && call_is_valid(&c));
	return r == -EINPROGRESS && d->address.u.any.sa_family == AF_UNIX ? -EAGAIN : r;
}

static void *dial_main(void *arg)
{
	struct dial *d = arg;
	struct broker *b = d->b;
	struct seccomp_notif_resp resp = { .id = d->id, .error = dial_prepare(d) };

	if (!resp.error)
		resp.error = dial_wait(d);
	/* ENOENT: the caller was killed meanwhile */
	(void)ioctl(b->listener, SECCOMP_IOCTL_NOTIF_SEND, &resp);
	fd_close(d->sock);
	fd_close(d->target);
	free(d);
	(void)__atomic_sub_fetch(&b->dials, 1, __ATOMIC_RELAXED);
	return NULL;
}

static int dial_start(struct dial *d)
{
	pthread_t thread;
	int r = -EAGAIN;

	if (__atomic_add_fetch(&d->b->dials, 1, __ATOMIC_RELAXED) <= DIALS_MAX)
		r = -pthread_create(&thread, NULL, dial_main, d);
	if (r < 0) {
		(void)__atomic_sub_fetch(&d->b->dials, 1, __ATOMIC_RELAXED);
		return -EAGAIN;
	}
	(void)pthread_detach(thread);
	return ANSWER_SENT;
}

/* Takes the descriptors of `with` when it starts. */
static int dial(struct broker *b, uint64_t id, const struct dial *with)
{
	struct dial *d = malloc(sizeof(*d));
	int r;

	if (!d)
		return -ENOMEM;
	*d = *with;
	d->b = b;
	d->id = id;
	r = dial_start(d);
	if (r != ANSWER_SENT)
		free(d);
	return r;
}

static bool is_named_exactly(const struct policy *p, const char *name)
{
	for (size_t i = 0; i < p->network.unix_sockets.n; i++) {
		if (strcmp(name, p->network.unix_sockets.v[i].text) == 0)
			return true;
	}
	return false;
}

/*
 * Nothing of the host is there but what was put there on purpose. Without mounts it is still the
 * host's (/dev/shm), and private places are known by what was made there.
 */
static bool is_private(const struct plan *plan, const char *path)
{
	const struct mount_step *cover = NULL;

	for (size_t i = 0; !plan->bare && i < plan->n_mounts; i++) {
		if (path_within(path, plan->mounts[i].path))
			cover = &plan->mounts[i]; /* the deepest comes last */
	}
	return cover && (cover->kind == MOUNT_PRIVATE || cover->kind == MOUNT_FOLDER ||
			 cover->kind == MOUNT_DEV);
}

static bool may_connect(const struct call *c, int target, const char *path)
{
	const struct broker *b = c->b;

	return b->policy->network.allow_all_unix_sockets || is_private(b->plan, path) ||
	       socket_is_named(b->policy, path) || guard_made_here(b->guard, target, "");
}

static int connect_file(const struct call *c, int *sock, const struct address *to)
{
	char name[sizeof(to->u.local.sun_path) + 1] = { 0 }, path[PATH_MAX];
	_cleanup_fd_ int base = -1, target = -1;
	int r;

	memcpy(name, to->u.local.sun_path, to->len - offsetof(struct sockaddr_un, sun_path));
	base = call_open_base(c, AT_FDCWD, name);
	if (base < 0)
		return base;
	target = sys_openat2(base, name, O_PATH | O_CLOEXEC, 0, SYS_RESOLVE_NO_MAGICLINKS);
	if (target == -ENOENT)
		call_note_wanted_socket(c, base, name);
	if (target < 0)
		return target == -ELOOP ? -EACCES : target;
	r = fd_path(c->b, target, path);
	if (r < 0)
		return -EACCES;
	if (!may_connect(c, target, path)) {
		call_report_unix(c, path);
		return -EACCES;
	}
	r = dial(c->b, c->n->id, &(struct dial){ .sock = *sock, .target = target });
	if (r == ANSWER_SENT)
		*sock = target = -1; /* the thread has them now */
	return r;
}

/*
 * A name without a file belongs to the network namespace. In the host's, the kernel's own scope
 * would not see who asks: it is us.
 */
static int check_abstract(const struct call *c, const struct address *to)
{
	size_t len = to->len - offsetof(struct sockaddr_un, sun_path);
	char name[sizeof(to->u.local.sun_path) + 1] = { 0 };

	if ((c->b->plan->new_net && !c->b->plan->bare) ||
	    c->b->policy->network.allow_all_unix_sockets)
		return 0;
	memcpy(name, to->u.local.sun_path, len);
	name[0] = '@';
	/* a name may hold any byte; one with a NUL is no text, and nobody named it */
	if (strlen(name) == len && is_named_exactly(c->b->policy, name))
		return 0;
	call_report_unix(c, name);
	return -EACCES;
}

/* Without a network namespace of its own, it is up to us that there is no network. */
static bool is_no_network(const struct call *c, int domain, const struct address *to)
{
	return c->b->plan->bare && c->b->plan->new_net && domain != AF_UNIX &&
	       to->u.any.sa_family != AF_UNSPEC;
}

/*
 * Most connections are to something on this machine and stand when the call returns, or fail. A
 * result, or ANSWER_SENT: then a thread has the socket and will answer.
 */
static int connect_address(struct broker *b, uint64_t id, int *sock, const struct address *to)
{
	/* in the host's network the other end may be far away */
	int r = b->plan->new_net || !is_blocking(*sock) ? connect_shortly(*sock, to) : -EINPROGRESS;

	if (r != -EINPROGRESS || !is_blocking(*sock))
		return r;
	r = dial(b, id, &(struct dial){ .sock = *sock, .target = -1, .address = *to });
	if (r == ANSWER_SENT)
		*sock = -1;
	return r;
}

void connect_and_answer(struct broker *b, uint64_t id, int sock, const struct address *to)
{
	_cleanup_fd_ int own = sock;
	struct seccomp_notif_resp resp = { .id = id };
	int r = connect_address(b, id, &own, to);

	if (r == ANSWER_SENT)
		return;
	resp.error = r;
	(void)ioctl(b->listener, SECCOMP_IOCTL_NOTIF_SEND, &resp);
}

/*
 * Without a network the kernel refuses by itself, and the program says so in its own words, or
 * that a name is unknown: tell why. Of datagrams only questions for names.
 */
static void tell_unreachable(const struct call *c, int sock, const struct address *to)
{
	struct violation v = { .kind = VIOLATION_CONNECT };
	char text[ADDRESS_TEXT_MAX];
	int family = to->u.any.sa_family, type = 0;
	uint16_t port;

	if (c->b->plan->egress || !c->b->plan->new_net ||
	    (family != AF_INET && family != AF_INET6) ||
	    getsockopt(sock, SOL_SOCKET, SO_TYPE, &type, &(socklen_t){ sizeof(type) }) < 0)
		return;
	port = address_describe(to, text);
	if (type != SOCK_STREAM && port != PORT_DNS)
		return;
	text_copy(v.rule, sizeof(v.rule), "network.mode");
	call_set_source(&v, "network.mode", c->b->policy);
	text_copy(v.reason, sizeof(v.reason),
		  port == PORT_DNS ? "names cannot be looked up, there is no network (--network "
				     "allowlist tells which "
				     "are asked for)"
				   : "there is no network");
	call_send(c, &v, text);
}

int broker_connect(struct call *c)
{
	_cleanup_fd_ int sock = call_take_fd(c, (int)c->args[0]);
	struct address to;
	int domain = 0, r;
	bool named;

	if (sock < 0)
		return sock;
	if (getsockopt(sock, SOL_SOCKET, SO_DOMAIN, &domain, &(socklen_t){ sizeof(domain) }) < 0)
		return -ENOTSOCK;
	r = call_read_address(c, &to);
	if (r < 0)
		return r;
	named = domain == AF_UNIX && to.u.any.sa_family == AF_UNIX &&
		to.len > offsetof(struct sockaddr_un, sun_path);
	if (named && to.len > sizeof(to.u.local))
		return -EINVAL;
	if (named && to.u.local.sun_path[0])
		return connect_file(c, &sock, &to);
	r = named ? check_abstract(c, &to) : inquire(c, &sock, &to);
	if (named ? r < 0 : r != ANSWER_CONTINUE)
		return r;
	r = is_no_network(c, domain, &to) ? -ENETUNREACH
					  : connect_address(c->b, c->n->id, &sock, &to);
	if (r == -ENETUNREACH)
		tell_unreachable(c, sock, &to);
	if (r == -ECONNREFUSED && !named)
		call_note_wanted_port(c, &to);
	return r;
}
