/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls that the kernel decides alone and the broker only watches, to tell what
 * was refused and why: removing files, changing times; and on request reading and
 * executing. The answer is always
 * "continue": nothing here allows or denies anything.
 *
 * Most such calls are made where they are allowed, so that is found out first and
 * cheaply, by the text of the path.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/sys.h"
#include "policy/match_name.h"
#include "supervise/broker/internal.h"

#define TEXT_MAX (2 * PATH_MAX + 2)

static bool within_any(const char *const *v, size_t n, const char *path)
{
	for (size_t i = 0; i < n; i++) {
		if (path_within(path, v[i]))
			return true;
	}
	return false;
}

static bool is_place(const struct plan *plan, const char *path)
{
	return within_any(plan->writable, plan->n_writable, path) ||
	       within_any(plan->guarded, plan->n_guarded, path) ||
	       within_any(plan->relayed, plan->n_relayed, path);
}

static bool holds_any(const char *dir, const char *const *v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (path_within(v[i], dir))
			return true;
	}
	return false;
}

static bool holds_place(const struct plan *plan, const char *dir)
{
	return holds_any(dir, plan->writable, plan->n_writable) ||
	       holds_any(dir, plan->guarded, plan->n_guarded) ||
	       holds_any(dir, plan->relayed, plan->n_relayed);
}

void watch_prepare(struct broker *b)
{
	for (size_t i = 0; i < b->plan->n_mounts; i++) {
		const struct mount_step *m = &b->plan->mounts[i];

		if (is_place(b->plan, m->path) || holds_place(b->plan, m->path))
			*ARENA_PUSH(b->a, b->covers, b->n_covers) = m;
	}
}

/* In a writable place: a protected name that is mounted read-only, or something below. */
static bool is_held(const struct broker *b, const char *path)
{
	const struct mount_step *cover = NULL;

	for (size_t i = 0; i < b->n_covers; i++) {
		if (path_within(path, b->covers[i]->path))
			cover = b->covers[i]; /* the deepest comes last */
	}
	return cover && cover->kind == MOUNT_RO;
}

static bool is_writable_place(const struct broker *b, const char *path)
{
	return is_place(b->plan, path) && !is_held(b, path);
}

/*
 * Where a path leads by its text, TEXT_MAX bytes; "" when ".." or an unknown base keeps one from
 * saying so. Links on the way are not looked at.
 */
static void full_text(const struct call *c, int dirfd, const char *path, char *ret)
{
	ret[0] = '\0';
	if (strstr(path, ".."))
		return;
	if (*path != '/') {
		call_base_text(c, dirfd, ret);
		if (!*ret)
			return;
		ret += strlen(ret);
		*ret++ = '/';
	}
	memcpy(ret, path, strlen(path) + 1);
}

/* What goes: a .git file must not come back as another one, a protected name is told. */
static void note_removal(struct call *c, int dirfd, const char *path, const char *text)
{
	_cleanup_place_ struct place p = PLACE_INIT;
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	bool git = name_is(name, ".git"), lock = lockfile_is_one(name);

	if (!git && !lock && *text && !guard_may_protect(c->b->guard, text))
		return;
	if (call_resolve(c, dirfd, path, 0, &p) < 0 || !p.root)
		return;
	if (git)
		call_note_gone(c, &p);
	if (lock)
		call_note_before(c, &p);
	call_note_removal(c, &p);
}

static void watch_change(struct call *c, int dirfd, uint64_t address, enum violation_kind kind)
{
	_cleanup_place_ struct place p = PLACE_INIT;
	struct stat st;
	char path[PATH_MAX] _unfilled_, text[TEXT_MAX] _unfilled_;

	if (call_read_path(c, address, path) < 0 || !*path)
		return;
	full_text(c, dirfd, path, text);
	if (kind == VIOLATION_DELETE)
		note_removal(c, dirfd, path, text);
	if (*text && !c->b->learns && is_writable_place(c->b, text))
		return;
	if (call_resolve(c, dirfd, path, 0, &p) < 0)
		return;
	if (fstatat(p.parent, p.name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return; /* not there: the kernel says so */
	place_text(&p, text);
	if (!p.root || is_held(c->b, text))
		call_report_outside(c, kind, &p);
	else
		call_note_used(c, &p);
}

static void watch_read(struct call *c, int dirfd, uint64_t address)
{
	char path[PATH_MAX] _unfilled_, base[PATH_MAX] _unfilled_, *full;
	struct arena *a = c->b->scratch;
	struct decision d;

	if (call_read_path(c, address, path) < 0 || !*path)
		return;
	base[0] = '\0';
	if (*path != '/')
		call_base_text(c, dirfd, base);
	if (*path != '/' && !*base)
		return;
	arena_reset(a);
	full = path_absolute(a, *base ? base : "/", path);
	policy_decide_path(c->b->policy, ACCESS_READ, full, &d);
	if (d.verdict == VERDICT_DENY && d.rule)
		call_report_read(c, full, d.rule, d.reason);
}

static void watch_exec(struct call *c, int dirfd, uint64_t address)
{
	_cleanup_place_ struct place p = PLACE_INIT;
	char path[PATH_MAX];
	struct stat st;

	if (call_read_path(c, address, path) < 0 || call_resolve(c, dirfd, path, 0, &p) < 0)
		return;
	if (fstatat(p.parent, p.name, &st, 0) < 0 || !S_ISREG(st.st_mode) ||
	    !(st.st_mode & (S_ISUID | S_ISGID)) || !(st.st_mode & S_IXOTH))
		return;
	call_report_exec(c, &p);
}

void broker_watch(struct call *c)
{
	const uint64_t *a = c->args;

	switch (c->n->data.nr) {
#ifdef SYS_unlink
	case SYS_unlink:
		watch_change(c, AT_FDCWD, a[0], VIOLATION_DELETE);
		break;
	case SYS_utime:
	case SYS_utimes:
		watch_change(c, AT_FDCWD, a[0], VIOLATION_MODE);
		break;
	case SYS_open:
		watch_read(c, AT_FDCWD, a[0]);
		break;
#endif
	case SYS_unlinkat:
		watch_change(c, (int)a[0], a[1], VIOLATION_DELETE);
		break;
	case SYS_utimensat:
		if (a[1])
			watch_change(c, (int)a[0], a[1], VIOLATION_MODE);
		break;
	case SYS_openat:
		watch_read(c, (int)a[0], a[1]);
		break;
	case SYS_execve:
		watch_exec(c, AT_FDCWD, a[0]);
		break;
	case SYS_execveat:
		watch_exec(c, (int)a[0], a[1]);
		break;
	default:
		break;
	}
}
