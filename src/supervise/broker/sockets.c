/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unix sockets that the policy names (network.allowUnixSockets). A name is a place, and connect(2)
 * is decided by where a socket lies at that moment. So no link or rename of the command brings
 * another socket of the host's there, alone or in a directory: what comes to lie at such a place,
 * or below one, is looked at first. Sockets that were made inside may come (a server makes its
 * socket by another name and renames it), and so may everything that is no socket; a symbolic link
 * leads to a place of its own.
 *
 * All of this is about places where the broker performs the moves: the plan grants none directly
 * that holds one of these, or lies in one.
 */
#include "supervise/broker/calls.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/sys.h"
#include "policy/match_name.h"
#include "supervise/broker/tree.h"

static const struct text_rules *named_places(const struct call *c)
{
	static const struct text_rules none;
	const struct policy_network *net = &c->b->policy->network;

	return net->allow_all_unix_sockets ? &none : &net->unix_sockets;
}

bool socket_is_named(const struct policy *p, const char *path)
{
	for (size_t i = 0; i < p->network.unix_sockets.n; i++) {
		if (path_within(path, p->network.unix_sockets.v[i].text))
			return true;
	}
	return false;
}

static enum tree_next visit(void *ctx, const struct tree_entry *e)
{
	const struct guard *g = ctx;

	return e->type == DT_SOCK && !guard_made_here(g, e->dirfd, e->name) ? TREE_STOP
									    : TREE_GO_ON;
}

/* Is it a socket of the host's, or does it hold one: 0, -EACCES, or -EXDEV when nobody can tell. */
static int judge(const struct call *c, int file)
{
	struct stat st;
	int r;

	if (fstat(file, &st) < 0)
		return -EXDEV;
	if (S_ISSOCK(st.st_mode))
		return guard_made_here(c->b->guard, file, "") ? 0 : -EACCES;
	if (!S_ISDIR(st.st_mode))
		return 0;
	r = tree_walk(file, ".", "", visit, c->b->guard);
	return r > 0 ? -EACCES : r < 0 ? -EXDEV : 0;
}

/* What comes to lie at `named`, or below it, when `from` comes to lie at `to`, by its path. */
static int judge_arrival(const struct call *c, const struct place *from, const char *to,
			 const char *named)
{
	_cleanup_fd_ int file = -1, dir = -1;

	/* whether the file system folds case is not asked: see match_name.h */
	if (!name_path_within(to, named) && !name_path_within(named, to))
		return 0;
	if (!from->root)
		return -EXDEV; /* there the command changes names without us, at any moment */
	file = place_open(from);
	if (file < 0)
		return errno == ENOENT ? 0 : -EXDEV;
	if (name_path_within(to, named))
		return judge(c, file);
	for (unsigned i = path_depth(to); i > 0; i--)
		named += 1 + strcspn(named + 1, "/");
	dir = TAKE_FD(file);
	file = sys_openat2(dir, named + 1, O_PATH | O_NOFOLLOW | O_CLOEXEC, 0,
			   SYS_RESOLVE_NO_SYMLINKS);
	if (file < 0) /* nothing there, or through a link: that leads elsewhere */
		return file == -ENOENT || file == -ENOTDIR || file == -ELOOP ? 0 : -EXDEV;
	return judge(c, file);
}

int call_refuse_socket(const struct call *c, const struct place *from, const struct place *to,
		       enum violation_kind kind)
{
	const struct text_rules *named = named_places(c);
	char old[PLACE_TEXT_MAX] _unfilled_, new[PLACE_TEXT_MAX] _unfilled_;
	int r = 0;

	if (!named->n)
		return 0;
	place_text(from, old);
	place_text(to, new);
	if (from->root && socket_is_named(c->b->policy, old))
		return 0; /* it may be connected to where it is */
	for (size_t i = 0; i < named->n && r == 0; i++) {
		r = judge_arrival(c, from, new, named->v[i].text);
		if (r == -EACCES)
			call_report_socket(c, kind, new, &named->v[i]);
	}
	return r;
}

int call_refuse_open_socket(const struct call *c, int file, const struct place *to)
{
	const struct text_rules *named = named_places(c);
	char path[PLACE_TEXT_MAX] _unfilled_;
	int r;

	if (!named->n)
		return 0;
	place_text(to, path);
	for (size_t i = 0; i < named->n; i++) {
		if (!name_path_within(path, named->v[i].text))
			continue;
		r = judge(c, file);
		if (r == -EACCES)
			call_report_socket(c, VIOLATION_CREATE, path, &named->v[i]);
		return r;
	}
	return 0;
}
