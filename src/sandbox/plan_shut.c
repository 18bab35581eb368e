/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What cannot be looked at when a run starts is neither hidden nor held in it. Mostly that is no
 * loss, for the command is the same user and can look no further. But the owner of a directory may
 * change its mode: a command could close its own (chmod 000 ~/.cargo), and in the next run, for
 * which nothing in it was hidden, open it again. So where the command may write, what is shut and
 * the caller's own is an error. What belongs to others stays shut for both.
 */
#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "sandbox/plan_points.h"

bool plan_is_writable(const struct compiler *c, const char *path)
{
	struct decision d;

	policy_decide_path(c->p, ACCESS_READ, path, &d);
	if (d.verdict == VERDICT_DENY)
		return false; /* hidden itself, or another one inside */
	policy_decide_path(c->p, ACCESS_WRITE, path, &d);
	return d.verdict == VERDICT_ALLOW || d.protected;
}

/* Or anything above it: what was looked for may be hidden by the very rule. */
static bool is_in_writable(struct compiler *c, const char *path)
{
	for (; strcmp(path, "/") != 0; path = path_absolute(c->a, path, "..")) {
		if (plan_is_writable(c, path))
			return true;
	}
	return plan_is_writable(c, path);
}

/* "on the way to NAME, which would be hidden" */
static const char *about(struct compiler *c, const char *at, const char *name, const char *what)
{
	return strcmp(at, name) == 0 ? arena_printf(c->a, "which %s", what)
				     : arena_printf(c->a, "on the way to %s, which %s", name, what);
}

void plan_refuse_shut(struct compiler *c, const char *path, const char *name, const char *what)
{
	_cleanup_buf_ struct buf quoted = BUF_INIT(BUF_MAX_TEXT);
	bool changed, directory;
	const char *shut = c->refused ? NULL : c->view->shut(c->view, c->a, path, &changed);

	if (!shut || !(changed ? is_in_writable(c, shut) : plan_is_writable(c, shut)))
		return;
	c->refused = true;
	if (changed) { /* by another run, for which nothing in it may have been hidden */
		(void)error_set(c->e, EAGAIN,
				"%s was changed while it was looked at, %s: try again", shut,
				about(c, shut, name, what));
		return;
	}
	directory = c->view->kind(c->view, shut) == FILE_DIRECTORY;
	text_append_shell(&quoted, shut);
	(void)error_set(c->e, EACCES, "cannot %s %s, %s: %s (chmod %s %s)",
			directory ? "look into" : "read", shut, about(c, shut, name, what),
			strerror(EACCES), directory ? "u+rwx" : "u+rw", buf_str(&quoted));
}
