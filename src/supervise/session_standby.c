/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sandbox that was set up before its command is known. What it is made from may change while it
 * waits: files that are hidden appear or are replaced (and a replaced file takes the mount that hid
 * it away with it), directories are moved, something is mounted. So before it is used, it must be
 * what would be made now:
 *
 *   the rules lead to the same paths, and the plan made from them is the same
 *   nothing was mounted or unmounted on the host
 *   at each path of the plan there is still, inside, the mount that was put there
 *   directories that are granted by themselves are still the same ones
 *
 * Otherwise it is thrown away. What changes later than that changes under a running command,
 * as it could before. No process of the sandbox has run anything but our own code until then.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/statx.h"
#include "base/sys.h"
#include "sandbox/native/native.h"
#include "supervise/session_internal.h"

#define READY_MS 50 /* longer than setting up takes: whoever waits longer starts another */

/* What stands at a path inside. */
struct seen {
	uint64_t mount, dev, ino;
};

struct standby {
	int root; /* "/" inside; -1 = it is still being set up */
	/* Tell when mounts of the host change, once each: one for us, one for the owner's loop. */
	int mounts, watched;
	bool lost;
	struct seen *steps, *bulk; /* as many as the plan has */
};

/* --- what is inside ------------------------------------------------------------------------ */

static bool look(int root, const char *path, bool mounted, struct seen *ret)
{
	struct statx st;

	if (path[0] != '/' || !path[1] ||
	    statx(root, path + 1, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, STATX_INO | STATX_MNT_ID,
		  &st) < 0 ||
	    !(st.stx_mask & STATX_MNT_ID) ||
	    (mounted && !(st.stx_attributes & STATX_ATTR_MOUNT_ROOT)))
		return false;
	*ret = (struct seen){ .mount = st.stx_mnt_id,
			      .dev = (uint64_t)st.stx_dev_major << 32 | st.stx_dev_minor,
			      .ino = st.stx_ino };
	return true;
}

/* Each mount of the plan, then each directory that is granted by itself. */
static bool look_at_all(const struct session *s, int root, struct seen *steps, struct seen *bulk)
{
	const struct plan *plan = s->plan;

	for (size_t i = 0; i < plan->n_mounts; i++) {
		if (plan->mounts[i].kind != MOUNT_FOLDER &&
		    !(plan->mounts[i].kind == MOUNT_PROC && plan->outer_proc) &&
		    !look(root, plan->mounts[i].path, true, &steps[i]))
			return false;
	}
	for (size_t i = 0; i < plan->n_bulk; i++) {
		if (!look(root, plan->bulk[i], false, &bulk[i]))
			return false;
	}
	return true;
}

static bool is_unchanged(struct session *s)
{
	const struct standby *sb = s->standby;
	const struct plan *plan = s->plan;
	struct seen *steps = arena_array(s->a, plan->n_mounts, sizeof(*steps));
	struct seen *bulk = arena_array(s->a, plan->n_bulk, sizeof(*bulk));

	/* both were zeroed before they were filled */
	return look_at_all(s, sb->root, steps, bulk) &&
	       memcmp(steps, sb->steps, plan->n_mounts * sizeof(*steps)) == 0 &&
	       memcmp(bulk, sb->bulk, plan->n_bulk * sizeof(*bulk)) == 0;
}

/* --- setting up ---------------------------------------------------------------------------- */

int standby_begin(struct session *s, struct error *e)
{
	struct standby *sb = s->standby;

	if (s->chosen.backend != &backend_native || !s->plan->broker || s->plan->n_publish ||
	    s->req.policy->limits.disk || plan_must_prepare(s->req.policy))
		return error_set(e, ENOTSUP, "no sandbox of this kind can stand by");
	/* before the mounts are copied: whatever changes from here on is noticed */
	sb->mounts = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
	sb->watched = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
	if (sb->mounts < 0 || sb->watched < 0)
		return error_set(e, errno, "/proc/self/mountinfo: %s", strerror(errno));
	return 0;
}

void standby_take_root(struct session *s, int fd)
{
	struct standby *sb = s->standby;

	sb->steps = arena_array(s->a, s->plan->n_mounts, sizeof(*sb->steps));
	sb->bulk = arena_array(s->a, s->plan->n_bulk, sizeof(*sb->bulk));
	sb->root = fd;
	sb->lost = fd < 0 || !look_at_all(s, fd, sb->steps, sb->bulk);
}

void standby_end(struct session *s)
{
	if (!s->standby)
		return;
	fd_close(s->standby->root);
	fd_close(s->standby->mounts);
	fd_close(s->standby->watched);
	free(s->standby);
	s->standby = NULL;
}

int session_stand_by(const struct session_request *req, struct session **ret, struct error *e)
{
	struct session *s = session_new(req);
	int r;

	s->standby = malloc(sizeof(*s->standby));
	if (!s->standby)
		abort();
	*s->standby = (struct standby){ .root = -1, .mounts = -1, .watched = -1 };
	r = session_launch(s, e);
	if (r == 0)
		*ret = s;
	else
		session_free(s, NULL);
	return r;
}

bool session_is_lost(const struct session *s)
{
	return s->failed || (s->standby && s->standby->lost) ||
	       (s->plan->egress && egress_is_gone(&s->user));
}

int session_watched(const struct session *s)
{
	return s->standby->watched;
}

/* --- its command ---------------------------------------------------------------------------- */

static bool same_rules(const struct policy *a, const struct policy *b)
{
	if (a->fs.rules.n != b->fs.rules.n)
		return false;
	for (size_t i = 0; i < a->fs.rules.n; i++) {
		const struct path_rule *x = &a->fs.rules.v[i], *y = &b->fs.rules.v[i];

		if (x->access != y->access || x->verdict != y->verdict || x->absent != y->absent ||
		    strcmp(x->real, y->real) != 0)
			return false;
	}
	return a->network.mode == b->network.mode && a->fs.tmp == b->fs.tmp;
}

static bool host_mounts_changed(const struct standby *sb)
{
	struct pollfd changed = { .fd = sb->mounts, .events = POLLPRI };

	return poll(&changed, 1, 0) != 0;
}

/* It was started a moment ago, most likely: that is still sooner than another one. */
static bool wait_until_ready(struct session *s)
{
	uint64_t end = sys_now_ms() + READY_MS, now;

	(void)session_step(s); /* what has come meanwhile: perhaps its end */
	while (!session_is_lost(s) && s->standby->root < 0 && (now = sys_now_ms()) < end) {
		struct pollfd event = { .fd = s->events, .events = POLLIN };

		if (poll(&event, 1, (int)(end - now)) > 0)
			(void)session_step(s);
	}
	return s->standby->root >= 0 && !session_is_lost(s);
}

/* The plan that would be made now; NULL when it is another one. */
static const struct plan *compile_again(struct session *s, const struct session_request *req)
{
	const struct session_request old = s->req;
	const struct plan *plan = s->plan, *again;
	struct error e = { 0 };
	int r = -ESTALE;

	if (!same_rules(old.policy, req->policy) || plan_must_prepare(req->policy))
		return NULL;
	s->req = *req;
	r = session_prepare(s, NULL, &e);
	again = s->plan;
	s->plan = plan;
	s->req = old;
	return r == 0 && s->chosen.backend == &backend_native && plan_same_sandbox(plan, again)
		       ? again
		       : NULL;
}

int session_take(struct session *s, const struct session_request *req)
{
	struct native_command command = {
		.argv = req->argv, .stdio = { req->stdio[0], req->stdio[1], req->stdio[2] }
	};
	const struct plan *now;
	int r;

	if (req->n_files || req->report_reads != s->req.report_reads ||
	    req->egress != s->req.egress)
		return -ESTALE;
	if (!wait_until_ready(s))
		return session_is_lost(s) ? -ESTALE : -EAGAIN;
	now = compile_again(s, req);
	if (!now || host_mounts_changed(s->standby) || session_is_lost(s) || !is_unchanged(s))
		return -ESTALE;
	command.cwd = now->cwd;
	command.env = now->env;
	r = native_send_command(s->child.errors, &command);
	if (r < 0)
		return r;
	s->req = *req;
	s->started_ms = sys_now_ms();
	standby_end(s);
	session_begin_veil(s);
	if (s->limits)
		limits_restart(s->limits);
	session_note_lost(s);
	session_name_command(s);
	session_tell_start(s);
	return 0;
}
