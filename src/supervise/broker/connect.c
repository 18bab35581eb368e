/* SPDX-License-Identifier: Apache-2.0 */
/*
 * connect(2) to a unix socket that is a file. A read-only mount does not stop it and the
 * filter cannot see the path, so the broker decides and connects: to sockets that
 * were made inside, that lie in the sandbox's private directories, or that the
 * policy names (network.allowUnixSockets); everything else is refused.
 *
 * The decision is about an open descriptor of the socket file, and the same
 * descriptor is connected to: the path is looked up once. Datagram sockets could
 * send without connecting; the filter refuses to make them.
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

/* A connection in the making: it may have to wait for a full backlog, so in a thread. */
struct dial {
	struct broker *b;
	uint64_t id;
	int sock, target;
};

static void *dial_main(void *arg)
{
	struct dial *d = arg;
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	struct seccomp_notif_resp resp = { .id = d->id };

	/* our own working directory: the outer /proc, where "self" is this process */
	(void)snprintf(addr.sun_path, sizeof(addr.sun_path), "self/fd/%d", d->target);
	if (unshare(CLONE_FS) < 0 || fchdir(d->b->proc) < 0 ||
	    connect(d->sock, (const struct sockaddr *)&addr, sizeof(addr)) < 0)
		resp.error = -errno;
	(void)ioctl(d->b->listener, SECCOMP_IOCTL_NOTIF_SEND, &resp);
	fd_close(d->sock);
	fd_close(d->target);
	free(d);
	return NULL;
}

static int dial(const struct call *c, int sock, int target)
{
	struct dial *d = malloc(sizeof(*d));
	pthread_t thread;

	if (!d)
		return -ENOMEM;
	*d = (struct dial){ .b = c->b, .id = c->n->id, .sock = sock, .target = target };
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

int broker_connect(struct call *c)
{
	struct sockaddr_un addr = { 0 };
	char name[sizeof(addr.sun_path) + 1] = { 0 }, path[PATH_MAX];
	size_t len = c->args[2] < sizeof(addr) ? (size_t)c->args[2] : sizeof(addr);
	_cleanup_fd_ int base = -1, target = -1, sock = -1;
	int r;

	if (len <= offsetof(struct sockaddr_un, sun_path) ||
	    call_read(c, c->args[1], &addr, len) < 0 || addr.sun_family != AF_UNIX ||
	    !addr.sun_path[0])
		return ANSWER_CONTINUE; /* not a file: the namespaces decide */
	memcpy(name, addr.sun_path, len - offsetof(struct sockaddr_un, sun_path));
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
	sock = call_take_fd(c, (int)c->args[0]);
	if (sock < 0)
		return sock;
	r = dial(c, sock, target);
	if (r == ANSWER_SENT)
		sock = target = -1; /* the thread has them now */
	return r;
}
