/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For ambit learn: what the command did that a default policy would not let it do, and which
 * sockets and ports of the host it asked for in vain. Nothing here allows or denies
 * anything. Told once: deep in a tree each directory, near the home directory each name.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/path.h"
#include "base/text.h"
#include "supervise/broker/connect.h"

#define SEEN_SLOTS ((size_t)1 << 16) /* open addressing; when it is full, things are told twice */
#define SHALLOW 2 /* so far below the home directory names are told one by one */

static uint64_t hash_text(const char *s, uint64_t seed)
{
	uint64_t h = 0xcbf29ce484222325ull ^ seed;

	for (; *s; s++)
		h = (h ^ (unsigned char)*s) * 0x100000001b3ull;
	return h ? h : 1;
}

/* True the first time. */
static bool is_first(struct broker *b, uint64_t h)
{
	if (!b->seen)
		b->seen = calloc(SEEN_SLOTS, sizeof(*b->seen));
	if (!b->seen)
		return true;
	for (size_t i = h % SEEN_SLOTS, n = 0; n < SEEN_SLOTS; i = (i + 1) % SEEN_SLOTS, n++) {
		if (b->seen[i] == h)
			return false;
		if (!b->seen[i]) {
			b->seen[i] = h;
			return true;
		}
	}
	return true;
}

void call_note_used(const struct call *c, const struct place *p)
{
	struct violation v = { .kind = VIOLATION_USED };
	const struct policy *policy = c->b->policy;
	char path[PLACE_TEXT_MAX] _unfilled_;
	struct stat st;
	bool shallow, made;

	if (!c->b->learns || p->relayed || !p->root || path_within(p->path, policy->cwd))
		return;
	place_text(p, path);
	shallow = path_depth(p->path) <= path_depth(policy->home) + SHALLOW;
	made = fstatat(p->parent, p->name, &st, AT_SYMLINK_NOFOLLOW) < 0;
	/* `mkdir -p` of what is there; what is made beside it must still be told */
	if (!made && S_ISDIR(st.st_mode))
		return;
	/* the name itself and what lies in it are two things */
	if (!is_first(c->b, hash_text(shallow ? path : p->path, shallow ? 1u : 2u)))
		return;
	/* told before it is done: what is not there yet is made */
	if (made)
		v.kind = VIOLATION_MADE;
	call_send(c, &v, path);
}

void call_note_wanted_socket(const struct call *c, int base, const char *name)
{
	struct violation v = { .kind = VIOLATION_WANTED_UNIX };
	char dir[PATH_MAX];
	_cleanup_arena_ struct arena *a = NULL;
	const char *path;

	if (!c->b->learns || (*name != '/' && fd_path(c->b, base, dir) < 0))
		return;
	a = arena_new();
	path = path_absolute(a, *name == '/' ? "/" : dir, name);
	if (is_first(c->b, hash_text(path, VIOLATION_WANTED_UNIX)))
		call_send(c, &v, path);
}

static bool is_loopback(const struct address *to)
{
	struct sockaddr_in6 v6;
	struct sockaddr_in v4;

	memcpy(&v4, &to->u, sizeof(v4));
	memcpy(&v6, &to->u, sizeof(v6));
	if (to->u.any.sa_family == AF_INET)
		return ntohl(v4.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
	return to->u.any.sa_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr);
}

void call_note_wanted_port(const struct call *c, const struct address *to)
{
	struct violation v = { .kind = VIOLATION_WANTED_PORT };
	char text[ADDRESS_TEXT_MAX], port[8];

	if (!c->b->learns || !is_loopback(to))
		return;
	(void)snprintf(port, sizeof(port), "%u", address_describe(to, text));
	if (is_first(c->b, hash_text(port, VIOLATION_WANTED_PORT)))
		call_send(c, &v, port);
}
