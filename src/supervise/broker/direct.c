/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls that are left to the kernel, found out quickly. Whoever fills a directory that is granted
 * directly (/tmp, a bulk directory) makes one file after the other in it, and each call comes
 * by here: a filter sees no paths. So when the text of the path leads to the directory of the call
 * before, and that was granted, the answer is the same.
 *
 * To be wrong here is no danger: the kernel resolves the path again, and Landlock refuses what lies in
 * a guarded directory. It would be a refusal of what is allowed, so the directory counts
 * for RECENT_MS only, and not at all after a call that can put a link or another directory on
 * the way; and a link as the last component is followed as ever.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/sys.h"
#include "supervise/broker/internal.h"

/* A call that makes or opens one file, or makes a directory. */
struct making {
	int dirfd;
	uint64_t address;
	bool follows; /* a link that is the last component */
};

static bool read_flags(uint64_t flags, struct making *ret)
{
	ret->follows = (flags & (O_CREAT | O_EXCL)) != (O_CREAT | O_EXCL) && !(flags & O_NOFOLLOW);
	return (flags & OPEN_WRITE_INTENT) && !(flags & O_PATH) && (flags & O_TMPFILE) != O_TMPFILE;
}

static bool read_call(const struct call *c, struct making *ret)
{
	const uint64_t *a = c->args;

	*ret = (struct making){ .dirfd = AT_FDCWD, .address = a[0] };
	switch (c->n->data.nr) {
#ifdef SYS_open
	case SYS_open:
		return read_flags(a[1], ret);
	case SYS_creat:
		return read_flags(O_CREAT | O_WRONLY | O_TRUNC, ret);
	case SYS_mkdir:
		return true;
#endif
	case SYS_openat:
		*ret = (struct making){ .dirfd = (int)a[0], .address = a[1] };
		return read_flags(a[2], ret);
	case SYS_mkdirat:
		*ret = (struct making){ .dirfd = (int)a[0], .address = a[1] };
		return true;
	default:
		return false;
	}
}

/* It may change where the text of a path leads. */
static bool changes_ways(const struct call *c)
{
	switch (c->n->data.nr) {
#ifdef SYS_open
	case SYS_rename:
	case SYS_link:
	case SYS_symlink:
	case SYS_rmdir:
#endif
#ifdef SYS_renameat
	case SYS_renameat:
#endif
	case SYS_renameat2:
	case SYS_linkat:
	case SYS_symlinkat:
		return true;
	case SYS_unlinkat:
		return (c->args[2] & AT_REMOVEDIR) != 0;
	default:
		return false;
	}
}

/* Who learns is told of every write; a kernel that knows no truncation is deceived by paths. */
static bool may_be_direct(const struct broker *b)
{
	return !b->learns && !b->plan->cut_unguarded && !b->plan->bare;
}

bool call_is_direct(const struct call *c)
{
	struct recent *last = &c->b->recent;
	struct path_read *read = &c->b->read;
	char path[PATH_MAX] _unfilled_, *name, first;
	struct making m;

	if (changes_ways(c))
		last->direct = false;
	if (!may_be_direct(c->b) || !read_call(c, &m) ||
	    call_read_path(c, m.address, read->text) < 0)
		return false;
	read->id = c->n->id; /* whoever reads it again gets this copy */
	read->address = m.address;
	if (strcmp(read->text, "/dev/null") == 0)
		return true; /* of all that is ever opened for writing, the most common */
	if (!last->direct)
		return false;
	memcpy(path, read->text, strlen(read->text) + 1);
	name = strrchr(path, '/');
	name = name ? name + 1 : path;
	if (!*name || strcmp(name, ".") == 0 || strcmp(name, "..") == 0 ||
	    (m.follows && readlinkat(last->parent, name, &first, 1) >= 0))
		return false;
	*name = '\0';
	return recent_leads(c, m.dirfd, path);
}

void call_note_direct(const struct call *c, const struct place *p)
{
	const struct plan *plan = c->b->plan;

	if (!p->lent || p->root || !may_be_direct(c->b))
		return;
	for (size_t i = 0; i < plan->n_writable; i++)
		c->b->recent.direct |= path_within(p->path, plan->writable[i]);
}
