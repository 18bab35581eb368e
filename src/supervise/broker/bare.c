/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the broker does besides where there are no namespaces (sandbox/landlock): there no
 * read-only mount stands behind "continue", and Landlock does not know modes, owners, times,
 * attributes, connections and listening. So these calls are performed, here or in change.c,
 * on an open descriptor of what was judged, or refused; never left to the kernel.
 *
 * Removing names is performed too: a read-only mount does not protect what is protected.
 */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/sys.h"
#include "base/text.h"
#include "supervise/broker/connect.h"

/* The last of the plan's places that holds `path`: how it is to look. */
static const struct mount_step *cover_of(const struct plan *plan, const char *path)
{
	const struct mount_step *cover = NULL;

	for (size_t i = 0; i < plan->n_mounts; i++) {
		if (path_within(path, plan->mounts[i].path))
			cover = &plan->mounts[i];
	}
	return cover;
}

static bool is_writable(const struct broker *b, const char *path)
{
	const struct plan *plan = b->plan;
	const struct mount_step *m = cover_of(plan, path);
	bool relayed;

	for (size_t i = 0; i < plan->n_writable; i++) {
		if (path_within(path, plan->writable[i]))
			return true;
	}
	return guarded_root(b, path, &relayed) && m &&
	       (m->kind == MOUNT_RW || m->kind == MOUNT_PIN);
}

bool bare_is_read_only(const struct broker *b, const char *path)
{
	const struct mount_step *m = b->plan->bare ? cover_of(b->plan, path) : NULL;

	return m && m->kind == MOUNT_RO;
}

bool bare_is_apart(const struct broker *b, const char *one, const char *other)
{
	return b->plan->bare && cover_of(b->plan, one) != cover_of(b->plan, other);
}

bool bare_is_kept(const struct broker *b, const char *path)
{
	const struct plan *plan = b->plan;

	if (!plan->bare)
		return false; /* the mounts do it */
	for (size_t i = 0; i < plan->n_mounts; i++) {
		/* what holds something else would take it along */
		if (path_within(plan->mounts[i].path, path))
			return true;
	}
	return bare_is_read_only(b, path);
}

int bare_judge_change(const struct broker *b, const char *path)
{
	return is_writable(b, path) ? 0 : -EACCES;
}

/* Only a unix socket may listen: an internet one would be open to the network. */
static int call_listen(struct call *c)
{
	_cleanup_fd_ int sock = call_take_fd(c, (int)c->args[0]);
	int domain = 0;

	if (sock < 0)
		return sock;
	if (getsockopt(sock, SOL_SOCKET, SO_DOMAIN, &domain, &(socklen_t){ sizeof(domain) }) < 0)
		return -ENOTSOCK;
	if (domain != AF_UNIX)
		return -EACCES;
	return listen(sock, (int)c->args[1]) < 0 ? -errno : 0;
}

/*
 * The port a connection comes from. It will be one to ourselves: an address that is not the
 * loopback's would only make packets leave that answer it.
 */
static int bind_port(const struct call *c, int sock, const struct address *at)
{
	static const uint8_t any[16], loopback[16] = { [15] = 1 };
	struct inquiry where = { 0 };
	bool local;

	if (address_read(at, &where)) {
		local = where.v6 ? memcmp(where.address, any, 16) == 0 ||
					   memcmp(where.address, loopback, 16) == 0
				 : where.address[0] == 127 || memcmp(where.address, any, 4) == 0;
		if (c->b->plan->new_net && !local)
			return -EADDRNOTAVAIL;
	}
	return bind(sock, &at->u.any, at->len) < 0 ? -errno : 0;
}

/* Abstract names are the host's; files are made where the command may write. */
static int call_bind(struct call *c)
{
	_cleanup_place_ struct place p = PLACE_INIT;
	_cleanup_fd_ int sock = call_take_fd(c, (int)c->args[0]);
	char name[sizeof(((struct sockaddr_un *)0)->sun_path) + 1] = { 0 }, path[PLACE_TEXT_MAX];
	size_t head = offsetof(struct sockaddr_un, sun_path);
	struct address to;
	int r = sock < 0 ? sock : call_read_address(c, &to);

	if (r < 0)
		return r;
	if (to.u.any.sa_family != AF_UNIX || to.len <= head)
		return bind_port(c, sock, &to);
	if (to.len > sizeof(to.u.local))
		return -EINVAL;
	if (!to.u.local.sun_path[0])
		return c->b->plan->all_unix && bind(sock, &to.u.any, to.len) == 0 ? 0 : -EACCES;
	memcpy(name, to.u.local.sun_path, to.len - head);
	r = call_resolve(c, AT_FDCWD, name, 0, &p);
	if (r < 0)
		return r == ANSWER_CONTINUE ? -EACCES : r;
	place_text(&p, path);
	if (!p.root && is_writable(c->b, path)) {
		p.root = "/"; /* granted directly: nothing is protected there */
		p.relayed = true;
	}
	if (!p.root || p.slash)
		return -EACCES;
	return call_bind_at(c, &p, sock);
}

static int call_remove(struct call *c, int dirfd, uint64_t address)
{
	_cleanup_place_ struct place p = PLACE_INIT;
	char path[PATH_MAX], whole[PLACE_TEXT_MAX], name[NAME_MAX + 2];

	broker_watch(c);
	if (call_read_path(c, address, path) < 0 || call_resolve(c, dirfd, path, 0, &p) < 0 ||
	    !p.root)
		return ANSWER_CONTINUE; /* Landlock decides */
	place_text(&p, whole);
	if (bare_is_kept(c->b, whole)) {
		call_report_outside(c, VIOLATION_DELETE, &p);
		return -EACCES;
	}
	(void)snprintf(name, sizeof(name), "%s%s", p.name, p.slash ? "/" : "");
	return unlinkat(p.parent, name, 0) < 0 ? -errno : 0;
}

int bare_answer(struct call *c)
{
	const uint64_t *a = c->args;

	switch (c->n->data.nr) {
#ifdef SYS_unlink
	case SYS_unlink:
		return call_remove(c, AT_FDCWD, a[0]);
#endif
	case SYS_unlinkat:
		return a[2] & AT_REMOVEDIR ? ANSWER_OTHER : call_remove(c, (int)a[0], a[1]);
	case SYS_bind:
		return call_bind(c);
	case SYS_listen:
		return call_listen(c);
	default:
		return ANSWER_OTHER;
	}
}
