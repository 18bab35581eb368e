/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Paths of the command, resolved to places: the directory that holds the last component
 * as a descriptor, and where it lies. What follows acts on that descriptor.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/sys.h"
#include "base/text.h"
#include "supervise/broker/internal.h"

#define RECENT_MS 20

int call_magic_fd(const struct call *c, const char *path)
{
	static const struct {
		const char *path;
		int fd;
	} known[] = { { "/dev/stdin", 0 }, { "/dev/stdout", 1 }, { "/dev/stderr", 2 } };
	static const char *const prefixes[] = { "/dev/fd/", "/proc/self/fd/",
						"/proc/thread-self/fd/" };
	uint64_t fd;

	(void)c;
	for (size_t i = 0; i < ARRAY_LEN(known); i++) {
		if (strcmp(path, known[i].path) == 0)
			return known[i].fd;
	}
	for (size_t i = 0; i < ARRAY_LEN(prefixes); i++) {
		if (text_starts(path, prefixes[i]) &&
		    text_parse_u64(path + strlen(prefixes[i]), INT_MAX, &fd) == 0)
			return (int)fd;
	}
	return -1;
}

int fd_path(const struct broker *b, int fd, char *ret)
{
	char link[32];
	ssize_t n;

	(void)snprintf(link, sizeof(link), "self/fd/%d", fd);
	n = readlinkat(b->proc, link, ret, PATH_MAX);
	if (n < 0 || n >= PATH_MAX)
		return n < 0 ? -errno : -ENAMETOOLONG;
	ret[n] = '\0';
	return ret[0] == '/' ? 0 : -EXDEV; /* pipes, sockets, what lies outside the root */
}

/* The longest of the directories that path lies in; `best` if none is longer. */
static const char *longest(const char *const *v, size_t n, const char *path, const char *best)
{
	for (size_t i = 0; i < n; i++) {
		if (path_within(path, v[i]) && (!best || strlen(v[i]) > strlen(best)))
			best = v[i];
	}
	return best;
}

/* The kernel's grant is for the directory that stood there at the start, no other. */
static bool bulk_is_there(const struct broker *b, size_t i)
{
	struct stat then, now;

	return fstat(b->bulk[i], &then) == 0 &&
	       fstatat(b->root, b->plan->bulk[i], &now, AT_SYMLINK_NOFOLLOW) == 0 &&
	       then.st_dev == now.st_dev && then.st_ino == now.st_ino;
}

/* In a bulk directory that was removed and made again: nothing is granted there any more. */
static bool in_new_bulk(const struct broker *b, const char *path)
{
	for (size_t i = 0; i < b->plan->n_bulk; i++) {
		if (path_within(path, b->plan->bulk[i]) && !bulk_is_there(b, i))
			return true;
	}
	return false;
}

const char *guarded_root(const struct broker *b, const char *path, bool *ret_relayed)
{
	const struct plan *plan = b->plan;
	const char *root = longest(plan->guarded, plan->n_guarded, path, NULL);
	const char *relayed = longest(plan->relayed, plan->n_relayed, path, root);
	const char *direct = longest(plan->writable, plan->n_writable, path, relayed);

	*ret_relayed = relayed != root;
	return direct != relayed && !in_new_bulk(b, path) ? NULL : relayed;
}

void place_done(struct place *p)
{
	if (!p->lent)
		fd_close(p->parent);
	p->parent = -1;
	p->lent = false;
}

int place_open(const struct place *p)
{
	return openat(p->parent, p->name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
}

bool place_exists(const struct place *p)
{
	return faccessat(p->parent, p->name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

void place_text(const struct place *p, char *ret)
{
	path_put(ret, p->path, p->name);
}

/* A new place; its buffers are large, and nearly all of them never read. */
static void place_start(struct place *p, int parent, bool lent)
{
	p->parent = parent;
	p->lent = lent;
	p->path[0] = p->name[0] = '\0';
	p->root = NULL;
	p->relayed = p->slash = false;
}

static void place_copy(struct place *to, const struct place *from)
{
	place_start(to, from->parent, from->lent);
	memcpy(to->path, from->path, strlen(from->path) + 1);
	memcpy(to->name, from->name, strlen(from->name) + 1);
	to->root = from->root;
	to->relayed = from->relayed;
	to->slash = from->slash;
}

bool place_holds_bulk(const struct broker *b, const struct place *p)
{
	char path[PLACE_TEXT_MAX];

	place_text(p, path);
	for (size_t i = 0; i < b->plan->n_bulk; i++) {
		if (path_within(b->plan->bulk[i], path) && bulk_is_there(b, i))
			return true;
	}
	return false;
}

/* Split off the last component: *dir gets the rest ("" = the base itself). */
static int split(const char *path, char *dir, struct place *ret)
{
	size_t len = strlen(path), start;

	if (len == 0)
		return -ENOENT;
	ret->slash = path[len - 1] == '/';
	while (len > 0 && path[len - 1] == '/')
		len--;
	for (start = len; start > 0 && path[start - 1] != '/';)
		start--;
	if (len == 0 || (len - start == 1 && path[start] == '.') ||
	    (len - start == 2 && path[start] == '.' && path[start + 1] == '.'))
		return ANSWER_CONTINUE; /* names no entry: the kernel says what is wrong */
	if (len - start > NAME_MAX)
		return -ENAMETOOLONG;
	memcpy(ret->name, path + start, len - start);
	ret->name[len - start] = '\0';
	memcpy(dir, path, start);
	dir[start] = '\0';
	return 0;
}

/* The parent is open: find out where it lies. */
static int place_settle(const struct broker *b, struct place *p, struct place *ret)
{
	if (place_refresh(b, p) < 0) {
		place_done(p);
		return ANSWER_CONTINUE;
	}
	place_done(ret);
	place_copy(ret, p);
	return 0;
}

int place_resolve(const struct broker *b, int base, const char *path, uint64_t how,
		  struct place *ret)
{
	struct place p _unfilled_;
	char dir[PATH_MAX] _unfilled_;
	int r;

	place_start(&p, -1, false);
	r = split(path, dir, &p);
	if (r < 0)
		return r;
	if (dir[0] == '/')
		base = b->root;
	/* relative to an O_PATH base; "." when the path is a single name */
	p.parent = sys_openat2(base, dir[0] ? dir : ".", O_PATH | O_DIRECTORY | O_CLOEXEC, 0,
			       how | SYS_RESOLVE_NO_MAGICLINKS);
	if (p.parent == -ELOOP)
		return ANSWER_CONTINUE; /* through /proc: the kernel's own rules hold there */
	if (p.parent < 0)
		return p.parent;
	return place_settle(b, &p, ret);
}

/*
 * The path of an open directory, by going there, which takes a third of the time that /proc
 * takes. Nothing in the broker starts from its working directory.
 */
static int directory_path(const struct broker *b, int dir, char *ret)
{
	if (fchdir(dir) < 0)
		return errno == ENOTDIR ? -ENOTDIR : fd_path(b, dir, ret);
	if (syscall(SYS_getcwd, ret, PATH_MAX) < 0)
		return -errno; /* removed */
	return ret[0] == '/' ? 0 : -EXDEV;
}

int place_refresh(const struct broker *b, struct place *p)
{
	int r = directory_path(b, p->parent, p->path);

	p->root = r < 0 ? NULL : guarded_root(b, p->path, &p->relayed);
	return r;
}

/*
 * /proc/self/{cwd,root,fd/N}/...: our own view of /proc has no "self" that is the
 * caller. The way from there, and where it starts.
 */
static const char *after_self(const char *path, int *dirfd)
{
	static const char *const selves[] = { "/proc/self/", "/proc/thread-self/" };
	const char *rest = NULL;
	char number[12] = { 0 };
	uint64_t fd;

	for (size_t i = 0; i < ARRAY_LEN(selves); i++) {
		if (text_starts(path, selves[i]))
			rest = path + strlen(selves[i]);
	}
	if (!rest)
		return path;
	if (text_starts(rest, "root/"))
		return rest + 4;
	if (text_starts(rest, "cwd/")) {
		*dirfd = AT_FDCWD;
		rest += 4;
	} else if (text_starts(rest, "fd/")) {
		size_t n = strcspn(rest + 3, "/");

		if (n == 0 || n >= sizeof(number) || rest[3 + n] != '/')
			return path;
		memcpy(number, rest + 3, n);
		if (text_parse_u64(number, INT_MAX, &fd) < 0)
			return path;
		*dirfd = (int)fd;
		rest += 3 + n;
	} else {
		return path;
	}
	rest += strspn(rest, "/");
	return *rest ? rest : path;
}

/* ---- the last directory again ---- */

void recent_forget(struct broker *b)
{
	b->recent.since_ms = 0;
}

/*
 * Does the way `dir`, the directory part of a path, lead to the canonical path `to` by its text
 * alone? For a relative one the place where it starts is asked for, which is cheaper than
 * opening it.
 */
static bool leads_to(const struct call *c, int dirfd, const char *dir, const char *to)
{
	size_t len = strlen(dir), to_len = strlen(to), from_len;
	char from[PATH_MAX] _unfilled_;

	for (size_t i = 1; i < len; i++) {
		if (dir[i] == '/' && (dir[i - 1] == '/' || dir[i - 1] == '.'))
			return false; /* "..", or not as the kernel writes it */
	}
	len -= len > 0; /* the slash at its end */
	if (*dir == '/')
		return len > 0 && len == to_len && memcmp(dir, to, len) == 0 && call_is_valid(c);
	from_len = len > 0 ? to_len - len - 1 : to_len;
	if (len + 1 >= to_len ||
	    (len > 0 && (to[from_len] != '/' || memcmp(to + from_len + 1, dir, len) != 0)))
		return false;
	call_base_text(c, dirfd, from);
	/* of a removed directory the kernel adds this to what it was called */
	return strlen(from) == from_len && memcmp(from, to, from_len) == 0 &&
	       !text_ends(from, " (deleted)");
}

static bool recent_counts(const struct recent *last)
{
	return last->parent >= 0 && sys_now_ms() - last->since_ms <= RECENT_MS;
}

bool recent_leads(const struct call *c, int dirfd, const char *dir)
{
	return recent_counts(&c->b->recent) && leads_to(c, dirfd, dir, c->b->recent.path);
}

/*
 * The last directory is used again when the text of the path leads there, and it still lies
 * where that text says: then no link is on the way, and a walk would find it. What is skipped
 * are the rights on the way, so the way is walked again now and then: where somebody
 * outside takes them away, that holds a moment later.
 */
static bool resolve_again(const struct call *c, int dirfd, const char *path, struct place *ret)
{
	struct recent *last = &c->b->recent;
	struct place p _unfilled_;
	char dir[PATH_MAX] _unfilled_;

	place_start(&p, last->parent, true);
	if (!recent_counts(last) || split(path, dir, &p) < 0 ||
	    !leads_to(c, dirfd, dir, last->path) || place_refresh(c->b, &p) < 0 ||
	    strcmp(p.path, last->path) != 0)
		return false;
	last->lent_to = c->n->id;
	place_done(ret);
	place_copy(ret, &p);
	return true;
}

/* Keep the directory of a place for the calls to come. */
static void keep(const struct call *c, struct place *p)
{
	struct recent *last = &c->b->recent;

	if (last->lent_to == c->n->id || p->lent)
		return; /* in use by the other path of this call */
	fd_close(last->parent);
	last->direct = false;
	last->parent = p->parent;
	memcpy(last->path, p->path, strlen(p->path) + 1);
	last->lent_to = c->n->id;
	last->since_ms = sys_now_ms();
	p->lent = true;
}

static int resolve_from(const struct call *c, int dirfd, const char *path, uint64_t how,
			struct place *ret)
{
	_cleanup_fd_ int base = -1;
	struct place p _unfilled_;
	char dir[PATH_MAX] _unfilled_;
	int r;

	if (*path == '/')
		return call_is_valid(c) ? place_resolve(c->b, c->b->root, path, how, ret)
					: ANSWER_CONTINUE;
	base = call_open_base(c, dirfd, path);
	if (base < 0)
		return ANSWER_CONTINUE; /* a bad descriptor, a gone process */
	if (strchr(path, '/'))
		return place_resolve(c->b, base, path, how, ret);
	place_start(&p, -1, false);
	r = split(path, dir, &p); /* a single name: the base is its parent */
	if (r < 0)
		return r;
	p.parent = TAKE_FD(base);
	return place_settle(c->b, &p, ret);
}

int call_resolve(const struct call *c, int dirfd, const char *path, uint64_t how, struct place *ret)
{
	int r;

	if (how)
		return resolve_from(c, dirfd, path, how, ret);
	path = after_self(path, &dirfd);
	if (resolve_again(c, dirfd, path, ret))
		return 0;
	r = resolve_from(c, dirfd, path, how, ret);
	if (r == 0)
		keep(c, ret);
	return r;
}

/* Both paths name something in the same directory, by their text. */
static bool are_siblings(const char *a, const char *b)
{
	const char *end_a = strrchr(a, '/'), *end_b = strrchr(b, '/');
	size_t n = end_a ? (size_t)(end_a - a) : 0;

	if (!end_a || !end_b)
		return !end_a && !end_b;
	/* a slash at the end is another case */
	return end_a[1] && end_b[1] && n == (size_t)(end_b - b) && memcmp(a, b, n) == 0;
}

int call_resolve_second(const struct call *c, int dirfd, const char *path,
			const struct place *first, int first_dirfd, const char *first_path,
			struct place *ret)
{
	struct place p _unfilled_;
	char dir[PATH_MAX] _unfilled_;
	int r;

	if (dirfd != first_dirfd || !first->lent || !are_siblings(path, first_path))
		return call_resolve(c, dirfd, path, 0, ret);
	place_copy(&p, first);
	r = split(path, dir, &p);
	if (r < 0)
		return r;
	place_done(ret);
	place_copy(ret, &p);
	return 0;
}

int call_unresolved(int r, const char *path)
{
	/* there, "self" is us: only the kernel knows what is missing */
	if (r != -ENOENT || text_starts(path, "/proc/") || text_starts(path, "/dev/"))
		return ANSWER_CONTINUE;
	return -ENOENT;
}

int place_read_link(const struct place *p, char *ret)
{
	ssize_t n = readlinkat(p->parent, p->name, ret, PATH_MAX - 1);

	if (n < 0)
		return -errno;
	ret[n] = '\0';
	return 0;
}
