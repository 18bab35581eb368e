/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the broker remembers of its own doing: files that run later outside, for the
 * end of the run, and directories that went away.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/path.h"
#include "base/text.h"
#include "policy/match_name.h"
#include "supervise/broker/internal.h"
#include "supervise/broker/later.h"

static struct before *find_before(const struct broker *b, const char *path)
{
	for (size_t i = 0; i < b->n_before; i++) {
		if (strcmp(b->before[i].path, path) == 0)
			return &b->before[i];
	}
	return NULL;
}

static void tell(const struct call *c, const char *path, const char *reason)
{
	const struct before *before = find_before(c->b, path);
	struct violation v = { .kind = VIOLATION_LATER };

	text_copy(v.reason, sizeof(v.reason), reason);
	if (before)
		text_copy(v.source, sizeof(v.source), before->hosts);
	call_send(c, &v, path);
}

static bool is_told(const struct broker *b, const char *path)
{
	for (size_t i = 0; i < b->n_later; i++) {
		if (strcmp(b->later[i].path, path) == 0)
			return true;
	}
	return false;
}

void call_note_before(const struct call *c, const struct place *p)
{
	struct broker *b = c->b;
	char path[PLACE_TEXT_MAX] _unfilled_;
	struct before *new;

	if (p->relayed || !lockfile_is_one(p->name) || b->n_before >= BEFORE_MAX)
		return;
	place_text(p, path);
	if (!later_reason(path) || find_before(b, path))
		return;
	new = &b->before[b->n_before];
	new->path = strdup(path);
	if (!new->path)
		return;
	b->n_before++;
	lockfile_read_hosts(p->parent, p->name, new->hosts);
}

/* The part of the path that a protected name ends at: of .vscode/a/b that is .vscode. */
static void cut_after(const struct protected_name *name, unsigned top, char *path)
{
	int end = name_pattern_covers(name->pattern, path, name->locked ? 0 : top) + 1;
	char *s = path;

	for (const char *n = strchr(name->pattern, '/'); n; n = strchr(n + 1, '/'))
		end++;
	while (s && end-- > 0)
		s = strchr(s + 1, '/');
	if (s)
		*s = '\0';
}

void call_note_removal(const struct call *c, const struct place *p)
{
	struct violation v _unfilled_;
	char path[PLACE_TEXT_MAX] _unfilled_;
	struct guard_answer why;
	struct stat st;

	if (!p->root || p->relayed ||
	    call_judge(c, p, GUARD_WRITE, false, VIOLATION_WRITE, &why) == 0 || why.rule ||
	    guard_made_here(c->b->guard, p->parent) ||
	    fstatat(p->parent, p->name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
	    (S_ISDIR(st.st_mode) && !why.protected)) /* of git only files matter */
		return;
	v = (struct violation){ .kind = VIOLATION_REMOVED };
	place_text(p, path);
	if (why.protected)
		cut_after(why.protected, path_depth(p->root), path);
	text_copy(v.reason, sizeof(v.reason), why.reason);
	call_send(c, &v, path);
}

void call_note_later(const struct call *c, const struct place *p, const struct guard_answer *how)
{
	struct broker *b = c->b;
	char path[PLACE_TEXT_MAX] _unfilled_;
	const char *reason;
	struct later *l;

	if (p->relayed)
		return;
	place_text(p, path);
	reason = how && how->new_territory ? how->new_territory->reason : later_reason(path);
	if (!reason || b->n_later >= LATER_MAX || is_told(b, path))
		return;
	l = &b->later[b->n_later];
	l->reason = reason;
	l->territory = how && how->new_territory;
	l->path = strdup(path);
	if (!l->path)
		return;
	b->n_later++;
	tell(c, l->path, reason);
}

void call_tell_later(const struct call *c, const struct place *p, const char *reason)
{
	char path[PLACE_TEXT_MAX];

	place_text(p, path);
	tell(c, path, reason);
}

void call_move_later(const struct call *c, const struct place *from, const struct place *to)
{
	char old[PLACE_TEXT_MAX], new[PLACE_TEXT_MAX];
	struct broker *b = c->b;

	place_text(from, old);
	place_text(to, new);
	for (size_t i = 0; i < b->n_later; i++) {
		struct later *l = &b->later[i];
		_cleanup_free_ char *before = NULL;

		if (!path_within(l->path, old))
			continue;
		before = l->path;
		if (asprintf(&l->path, "%s%s", new, before + strlen(old)) < 0) {
			l->path = TAKE_PTR(before);
			return;
		}
		tell(c, l->path, l->reason);
	}
}

bool call_is_tainted(const struct call *c, const struct place *p)
{
	char path[PLACE_TEXT_MAX];

	place_text(p, path);
	for (size_t i = 0; i < c->b->n_later; i++) {
		if (c->b->later[i].territory && path_within(c->b->later[i].path, path))
			return true;
	}
	return false;
}

bool call_is_new(const struct call *c, const struct place *p)
{
	_cleanup_fd_ int fd = place_open(p);

	return fd >= 0 && guard_made_here(c->b->guard, fd);
}

void call_note_gone(const struct call *c, const struct place *p)
{
	char path[PLACE_TEXT_MAX];

	place_text(p, path);
	/* a package that is installed anew may bring what a new package may */
	if (!later_is_installed(path))
		guard_note_gone(c->b->guard, path);
}
