/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the broker remembers of its own doing: files that run later outside, for the
 * end of the run, and directories that went away.
 */
#include <dirent.h>
#include <errno.h>
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
#include "supervise/broker/tree.h"

#define MOVED_MAX 4096 /* directories; what others held is told by the path that it has */

/* A directory from before the run that has another path now, or had one in between. */
struct moved {
	char *path, *origin;
};

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

/* Where it was before the run; ret has PLACE_TEXT_MAX bytes. */
static void find_origin(const struct broker *b, const char *path, char *ret)
{
	const struct moved *nearest = NULL;

	for (size_t i = 0; i < b->n_moved; i++) {
		const struct moved *m = &b->moved[i];

		if (path_within(path, m->path) &&
		    (!nearest || strlen(m->path) > strlen(nearest->path)))
			nearest = m;
	}
	if (!nearest || snprintf(ret, PLACE_TEXT_MAX, "%s%s", nearest->origin,
				 path + strlen(nearest->path)) >= PLACE_TEXT_MAX)
		text_copy(ret, PLACE_TEXT_MAX, path);
}

/* By the path that it had when the run began: of others nobody misses it. */
static void tell_removed(const struct call *c, const char *path, const char *reason)
{
	struct violation v = { .kind = VIOLATION_REMOVED };
	char origin[PLACE_TEXT_MAX] _unfilled_;

	find_origin(c->b, path, origin);
	text_copy(v.reason, sizeof(v.reason), reason);
	call_send(c, &v, origin);
}

static bool is_made(const struct broker *b, const char *path)
{
	for (size_t i = 0; i < b->n_made; i++) {
		if (strcmp(b->made[i], path) == 0)
			return true;
	}
	return false;
}

void call_note_made(const struct call *c, const struct place *p)
{
	struct broker *b = c->b;
	char path[PLACE_TEXT_MAX] _unfilled_;
	struct stat st;

	place_text(p, path);
	if (fstatat(p->parent, p->name, &st, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT ||
	    b->n_made >= MADE_MAX || is_made(b, path))
		return;
	b->made[b->n_made++] = arena_strdup(b->a, path);
}

bool call_is_of_this_run(const struct call *c, const struct place *p)
{
	char path[PLACE_TEXT_MAX] _unfilled_;

	place_text(p, path);
	return guard_made_here(c->b->guard, p->parent, "") || is_made(c->b, path);
}

/* Was it protected before this run? `directory`: of git only files matter. */
static void note_removal(const struct call *c, const struct place *p, bool directory)
{
	char path[PLACE_TEXT_MAX] _unfilled_;
	struct guard_answer why;

	if (!p->root || p->relayed ||
	    call_judge(c, p, GUARD_WRITE, false, VIOLATION_WRITE, &why) == 0 || why.rule ||
	    call_is_of_this_run(c, p) || (directory && !why.protected))
		return;
	place_text(p, path);
	tell_removed(c, path, why.reason);
}

void call_note_removal(const struct call *c, const struct place *p)
{
	struct stat st;

	if (fstatat(p->parent, p->name, &st, AT_SYMLINK_NOFOLLOW) == 0)
		note_removal(c, p, S_ISDIR(st.st_mode));
}

/* `root`: the writable directory that it lies in. Where it was: NULL, or before. */
static void note_later(const struct call *c, const char *path, const char *root, const char *reason,
		       const char *origin)
{
	struct broker *b = c->b;
	struct later *l;

	if (is_told(b, path))
		return;
	if (b->n_later >= LATER_MAX) {
		if (!b->later_full)
			tell(c, root, "and more files than can be listed");
		b->later_full = true;
		return;
	}
	l = &b->later[b->n_later];
	l->reason = reason;
	l->origin = origin ? strdup(origin) : NULL; /* it may go back, any number of times */
	l->path = strdup(path);
	if (!l->path || (origin && !l->origin)) {
		free(l->path);
		free(l->origin);
		return;
	}
	b->n_later++;
	tell(c, l->path, reason);
}

void call_note_later(const struct call *c, const struct place *p, const struct guard_answer *how)
{
	char path[PLACE_TEXT_MAX] _unfilled_;
	const char *reason;

	if (p->relayed)
		return;
	place_text(p, path);
	reason = how && how->new_territory ? how->new_territory->reason : later_reason(path);
	if (reason)
		note_later(c, path, p->root, reason, NULL);
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
		if (l->origin && strcmp(l->path, l->origin) == 0) {
			free(l->path); /* back again */
			free(l->origin);
			*l = b->later[--b->n_later];
			i--;
			continue;
		}
		tell(c, l->path, l->reason);
	}
}

bool call_is_old_directory(const struct call *c, const struct place *p)
{
	struct stat st;

	return fstatat(p->parent, p->name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode) &&
	       !guard_made_here(c->b->guard, p->parent, p->name);
}

void call_note_gone(const struct call *c, const struct place *p)
{
	char path[PLACE_TEXT_MAX];

	note_removal(c, p, true);
	place_text(p, path);
	guard_note_gone(c->b->guard, path, false);
}

struct move {
	const struct call *c;
	const struct place *to;
	const char *root;
	size_t old_len; /* of the path that it had */
	char new[PLACE_TEXT_MAX]; /* what stands for that now */
};

/*
 * What was protected from before is not new, but it counts in another place now. If it came to
 * where it was earlier in this run, it is listed, and its entry moves along.
 */
static void note_became(const struct move *m, const char *old)
{
	const char *rest = old + m->old_len;
	const struct protected_name *name;
	char path[PLACE_TEXT_MAX] _unfilled_;

	if (!m->to->root || m->to->relayed || is_told(m->c->b, old) ||
	    strlen(m->new) + strlen(rest) >= sizeof(path))
		return;
	text_copy(path, sizeof(path), m->new);
	text_copy(path + strlen(m->new), sizeof(path) - strlen(m->new), rest);
	name = guard_name_of(m->c->b->guard, path, m->to->root);
	if (name && !later_is_installed(path))
		note_later(m->c, path, m->to->root, name->reason, old);
}

/* The path is the one that it had. */
static enum tree_next visit_moved(void *ctx, const struct tree_entry *e)
{
	const struct move *m = ctx;
	struct guard *g = m->c->b->guard;
	const struct protected_name *name = guard_name_of(g, e->path, m->root);

	if (later_is_installed(e->path) || guard_made_here(g, e->dirfd, e->name))
		return TREE_SKIP;
	if (name && !guard_made_here(g, e->dirfd, "")) {
		tell_removed(m->c, e->path, name->reason);
		note_became(m, e->path);
	}
	if (e->type == DT_DIR || e->type == DT_UNKNOWN)
		guard_note_gone(g, e->path, false);
	return name ? TREE_SKIP : TREE_GO_ON;
}

void call_note_moved(const struct call *c, const struct place *from, const struct place *to)
{
	struct move m = { .c = c, .to = to, .root = from->root };
	char path[PLACE_TEXT_MAX];
	int r;

	note_removal(c, from, true);
	place_text(from, path);
	place_text(to, m.new);
	m.old_len = strlen(path);
	r = tree_walk(to->parent, to->name, path, visit_moved, &m);
	guard_note_gone(c->b->guard, path, r != 0);
}

static void forget_moved(struct broker *b, size_t i)
{
	free(b->moved[i].path);
	free(b->moved[i].origin);
	b->moved[i] = b->moved[--b->n_moved];
}

/* What lay in `from` lies in `to`; false when there is no memory for its name. */
static bool move_along(struct moved *m, const char *from, const char *to)
{
	char *path;

	if (asprintf(&path, "%s%s", to, m->path + strlen(from)) < 0)
		return false;
	free(m->path);
	m->path = path;
	return true;
}

static void remember_moved(struct broker *b, const char *path, const char *origin)
{
	struct moved *more, m;

	for (size_t i = 0; i < b->n_moved; i++) {
		if (strcmp(b->moved[i].path, path) == 0)
			return; /* it has moved along */
	}
	more = b->n_moved < MOVED_MAX ? reallocarray(b->moved, b->n_moved + 1, sizeof(*more))
				      : NULL;
	if (!more)
		return;
	b->moved = more;
	m = (struct moved){ strdup(path), strdup(origin) };
	if (m.path && m.origin) {
		more[b->n_moved++] = m;
	} else {
		free(m.path);
		free(m.origin);
	}
}

void call_note_origin(const struct call *c, const struct place *from, const struct place *to,
		      enum move_way way)
{
	struct broker *b = c->b;
	char old[PLACE_TEXT_MAX] _unfilled_, new[PLACE_TEXT_MAX] _unfilled_;
	char origins[2][PLACE_TEXT_MAX] _unfilled_;

	place_text(from, old);
	place_text(to, new);
	find_origin(b, old, origins[0]);
	find_origin(b, new, origins[1]);
	for (size_t i = b->n_moved; i-- > 0;) {
		struct moved *m = &b->moved[i];
		bool kept = true;

		if (path_within(m->path, old))
			kept = move_along(m, old, new);
		else if (path_within(m->path, new))
			kept = way == MOVE_EXCHANGE && move_along(m, new, old);
		if (!kept)
			forget_moved(b, i);
	}
	if (call_is_old_directory(c, to))
		remember_moved(b, new, origins[0]);
	if (way == MOVE_EXCHANGE && call_is_old_directory(c, from))
		remember_moved(b, old, origins[1]);
}
