/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the broker remembers of its own doing: files that run later outside, for the
 * end of the run, and directories that went away.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/path.h"
#include "base/text.h"
#include "supervise/broker/internal.h"
#include "supervise/broker/later.h"

static void tell(const struct call *c, const char *path, const char *reason)
{
	struct violation v = { .kind = VIOLATION_LATER };

	text_copy(v.reason, sizeof(v.reason), reason);
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

void call_note_later(const struct call *c, const struct place *p, const struct guard_answer *how)
{
	struct broker *b = c->b;
	char path[PLACE_TEXT_MAX];
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
	guard_note_gone(c->b->guard, path);
}
