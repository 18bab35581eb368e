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
 */
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
#include "supervise/broker/internal.h"

/* An address of any family, as the command gave it. */
struct address {
	union {
		struct sockaddr any;
		struct sockaddr_un local;
		struct sockaddr_storage room;
	} u;
	socklen_t len;
};

/* A connection in the making: it may have to wait, for a full backlog or a far host. */
struct dial {
	struct broker *b;
	uint64_t id;
	int sock, target; /* target: the file of a unix socket, -1 = `address` */
	struct address address;
};

static int dial_target(const struct dial *d)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };

	/* our own working directory: the outer /proc, where "self" is this process */
	(void)snprintf(addr.sun_path, sizeof(addr.sun_path), "self/fd/%d", d->target);
	if (unshare(CLONE_FS) < 0 || fchdir(d->b->proc) < 0)
		return -1;
	return connect(d->sock, (const struct sockaddr *)&addr, sizeof(addr));
}

static void *dial_main(void *arg)
{
	struct dial *d = arg;
	struct seccomp_notif_resp resp = { .id = d->id };

	if ((d->target >= 0 ? dial_target(d)
			    : connect(d->sock, &d->address.u.any, d->address.len)) < 0)
		resp.error = -errno;
	(void)ioctl(d->b->listener, SECCOMP_IOCTL_NOTIF_SEND, &resp);
	fd_close(d->sock);
	fd_close(d->target);
	free(d);
	return NULL;
}

/* Takes the descriptors of `with` when it starts. */
static int dial(const struct call *c, const struct dial *with)
{
	struct dial *d = malloc(sizeof(*d));
	pthread_t thread;

	if (!d)
		return -ENOMEM;
	*d = *with;
	d->b = c->b;
	d->id = c->n->id;
	if (pthread_create(&thread, NULL, dial_main, d) != 0) {
		free(d);
		return -EAGAIN;
	}
	(void)pthread_detach(thread);
	return ANSWER_SENT;
}

static bool is_named(const struct policy *p, const char *path)
{
	for (size_t i = 0; i < p->network.unix_sockets.n; i++) {
		if (path_within(path, p->network.unix_sockets.v[i].text))
			return true;
	}
	return false;
}

/* Nothing of the host is there but what was put there on purpose. */
static bool is_private(const struct plan *plan, const char *path)
{
	const struct mount_step *cover = NULL;

	for (size_t i = 0; i < plan->n_mounts; i++) {
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
	       is_named(b->policy, path) || guard_made_here(b->guard, target);
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
	if (target < 0)
		return target == -ELOOP ? -EACCES : target;
	r = fd_path(c->b, target, path);
	if (r < 0)
		return -EACCES;
	if (!may_connect(c, target, path)) {
		call_report_unix(c, path);
		return -EACCES;
	}
	r = dial(c, &(struct dial){ .sock = *sock, .target = target });
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

	if (c->b->plan->new_net || c->b->policy->network.allow_all_unix_sockets)
		return 0;
	memcpy(name, to->u.local.sun_path, len);
	name[0] = '@';
	call_report_unix(c, name);
	return -EACCES;
}

static int connect_address(const struct call *c, int *sock, const struct address *to)
{
	int flags = fcntl(*sock, F_GETFL), r;

	if (flags >= 0 && (flags & O_NONBLOCK))
		return connect(*sock, &to->u.any, to->len) < 0 ? -errno : 0;
	r = dial(c, &(struct dial){ .sock = *sock, .target = -1, .address = *to });
	if (r == ANSWER_SENT)
		*sock = -1;
	return r;
}

int broker_connect(struct call *c)
{
	_cleanup_fd_ int sock = call_take_fd(c, (int)c->args[0]);
	struct address to = { 0 };
	int domain = 0, r;
	bool named;

	if (sock < 0)
		return sock;
	if (getsockopt(sock, SOL_SOCKET, SO_DOMAIN, &domain, &(socklen_t){ sizeof(domain) }) < 0)
		return -ENOTSOCK;
	if ((uint32_t)c->args[2] > sizeof(to.u))
		return -EINVAL;
	to.len = (socklen_t)c->args[2];
	r = call_read(c, c->args[1], &to.u, to.len);
	if (r < 0)
		return r == -EFAULT ? r : -EACCES; /* a program that only may be executed */
	named = domain == AF_UNIX && to.u.any.sa_family == AF_UNIX &&
		to.len > offsetof(struct sockaddr_un, sun_path);
	if (named && to.len > sizeof(to.u.local))
		return -EINVAL;
	if (named && to.u.local.sun_path[0])
		return connect_file(c, &sock, &to);
	r = named ? check_abstract(c, &to) : 0;
	return r < 0 ? r : connect_address(c, &sock, &to);
}
