/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From places to Landlock rules. Landlock only allows, and what it allows for a directory
 * holds for everything below: a hidden place cannot be taken out of an allowed one. So every
 * directory on the way to a hidden place is left out, and what else lies in it is
 * allowed entry by entry:
 *
 *   /home/u/.ssh hidden:  not "/", but /bin /etc /usr ...; not "/home", but /home/v ...;
 *                         not "/home/u", but each of its entries except .ssh
 *
 * Two things follow, both on the safe side. What is made in such a directory later
 * is not readable. And its names cannot be listed when one of the hidden places is a
 * directory, because the right to list would reach down to it.
 *
 * What cannot be said this way is refused: a hidden place inside a writable directory, where
 * the command could not read back what it makes, and a directory with too many entries.
 */
#include "sandbox/landlock/landlock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "policy/match_path.h"
#include "sandbox/plan_points.h"

#define GRANTS_MAX 8192
#define TRUNCATE_ABI 3

struct granting {
	struct arena *a;
	struct plan *plan;
	const struct view *view;
	struct error *e;
};

static bool is_hidden_kind(const struct mount_step *m)
{
	return m->kind == MOUNT_HIDE_DIR || m->kind == MOUNT_HIDE_FILE ||
	       m->kind == MOUNT_PRIVATE || m->kind == MOUNT_DEV;
}

/* Nothing of the host is to be seen there. */
static bool is_gone(const struct mount_step *m)
{
	return !m->closed && is_hidden_kind(m);
}

static int grant(struct granting *g, const char *path, unsigned rights)
{
	struct grant *last;

	if (g->plan->n_grants >= GRANTS_MAX)
		return error_set(g->e, E2BIG,
				 "more than %d Landlock rules would be needed: directories on the "
				 "way to hidden places have too many entries (the last was %s)",
				 GRANTS_MAX, path);
	last = ARENA_PUSH(g->a, g->plan->grants, g->plan->n_grants);
	last->path = path;
	last->rights = rights;
	return 0;
}

/* The steps from `first` on that lie at `path` or below: *ret_end is the one after them. */
static void find_steps(const struct granting *g, const char *path, size_t first, size_t end,
		       size_t *ret_first, size_t *ret_end)
{
	const struct mount_step *v = g->plan->mounts;

	while (first < end && !path_within(v[first].path, path))
		first++;
	*ret_first = first;
	while (first < end && path_within(v[first].path, path))
		first++;
	*ret_end = first;
}

/* Steps from `first` to `end` lie below a directory that is seen, or not. */
struct below {
	size_t first, end;
	bool seen, writable;
};

static int grant_below(struct granting *g, const char *dir, struct below b);

/* One entry of a directory whose entries are granted one by one. */
static int grant_entry(struct granting *g, const char *path, struct below b)
{
	const struct mount_step *at;
	enum file_kind kind;

	find_steps(g, path, b.first, b.end, &b.first, &b.end);
	if (b.first == b.end) {
		kind = g->view->kind(g->view, path);
		/* a link is judged by where it leads */
		return kind == FILE_LINK || kind == FILE_ABSENT || kind == FILE_UNKNOWN
			       ? 0
			       : grant(g, path, GRANT_READ);
	}
	at = &g->plan->mounts[b.first];
	if (strcmp(at->path, path) == 0) {
		b.first++;
		b.seen = !is_gone(at);
		b.writable = at->kind == MOUNT_RW || (b.writable && at->kind == MOUNT_PIN);
	}
	return grant_below(g, path, b);
}

/* Out of a hidden place comes only what has a step of its own. */
static int grant_reopened(struct granting *g, struct below b)
{
	int r = 0;

	while (b.first < b.end && r == 0) {
		const struct mount_step *at = &g->plan->mounts[b.first];
		struct below inner = { .seen = !is_gone(at), .writable = at->kind == MOUNT_RW };

		find_steps(g, at->path, b.first, b.end, &inner.first, &inner.end);
		b.first = inner.end;
		inner.first++;
		r = grant_below(g, at->path, inner);
	}
	return r;
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int grant_entries(struct granting *g, const char *dir, struct below b, bool listable)
{
	/* in a sandbox of this kind the root cannot be listed; what is not there gets no rule */
	static const char *const usual[] = { "bin",   "boot",  "etc", "home", "lib", "lib32",
					     "lib64", "media", "mnt", "nix",  "opt", "proc",
					     "root",  "sbin",  "srv", "sys",  "usr", "var" };
	const char *const *names = NULL;
	const char **sorted;
	int n = g->view->list(g->view, g->a, dir, &names), r = 0;

	if (n < 0 && strcmp(dir, "/") == 0) {
		names = usual;
		n = (int)ARRAY_LEN(usual);
	}
	if (n < 0) /* not for the caller to list: what has a rule of its own is granted */
		return grant_reopened(g, b);
	if (listable)
		r = grant(g, dir, GRANT_LIST);
	sorted = arena_array(g->a, (size_t)n + 1, sizeof(*sorted));
	for (int i = 0; i < n; i++)
		sorted[i] = names[i];
	qsort(sorted, (size_t)n, sizeof(*sorted), compare_names);
	for (int i = 0; i < n && r == 0; i++)
		r = grant_entry(g, path_join(g->a, dir, sorted[i]), b);
	return r;
}

static int refuse_inside(struct granting *g, const char *dir, const struct mount_step *hidden)
{
	return error_set(g->e, ENOTSUP,
			 "%s is hidden (%s) and lies in the writable directory %s: without "
			 "namespaces it cannot be hidden there; make a directory besides it "
			 "writable instead",
			 hidden->path, hidden->why, dir);
}

/* The recursion goes down one component each time, and only where a step lies below. */
static int grant_below(struct granting *g, const char *dir, struct below b)
{
	const struct mount_step *hidden = NULL;
	bool listable = true;

	if (!b.seen)
		return grant_reopened(g, b);
	for (size_t i = b.first; i < b.end; i++) {
		const struct mount_step *m = &g->plan->mounts[i];

		if (!is_gone(m))
			continue;
		hidden = hidden ? hidden : m;
		listable &= !m->directory;
	}
	if (!hidden)
		return grant(g, dir, GRANT_READ);
	if (b.writable)
		return refuse_inside(g, dir, hidden);
	return grant_entries(g, dir, b, listable);
}

/* What programs cannot do without; others' terminals, disks and shared memory are not in it. */
static int grant_devices(struct granting *g)
{
	const char *const nodes[] = { "/dev/null",    "/dev/zero", "/dev/full", "/dev/random",
				      "/dev/urandom", "/dev/tty",  "/dev/ptmx", g->plan->tty };

	for (size_t i = 0; i < ARRAY_LEN(nodes); i++) {
		struct view_entry at;
		int r;

		if (!nodes[i])
			continue;
		g->view->look(g->view, g->a, nodes[i], &at);
		if (at.kind != FILE_OTHER)
			continue;
		r = grant(g, at.real, GRANT_DEVICE);
		if (r < 0)
			return r;
	}
	return 0;
}

/* What no rule here can express is an error. */
static int refuse_unknown(const struct compiler *c)
{
	const struct policy *p = c->p;

	if (p->network.publish.n && p->network.mode != NETWORK_HOST)
		return error_set(c->e, ENOTSUP,
				 "network.publish needs a network namespace, which the landlock "
				 "backend does not make");
	if (c->plan->egress && !c->plan->broker)
		return error_set(c->e, ENOTSUP,
				 "network %s: the landlock backend makes every connection in place "
				 "of the command, which is not possible here: %s",
				 p->network.mode == NETWORK_ALLOWLIST ? "allowlist"
								      : "allowHostPorts",
				 c->facts->no_listener);
	return 0;
}

/* Without a broker nobody can take a name out of a writable directory. */
static int refuse_denials(const struct compiler *c)
{
	for (size_t i = 0; i < c->p->fs.rules.n; i++) {
		const struct path_rule *r = &c->p->fs.rules.v[i];

		if (r->access != ACCESS_WRITE || r->verdict != VERDICT_DENY ||
		    r->origin.layer == LAYER_DEFAULT)
			continue;
		for (size_t k = 0; k < c->plan->n_writable; k++) {
			const char *dir = c->plan->writable[k];

			if (r->glob ? pattern_may_match_below(r->real, dir)
				    : path_within(r->real, dir))
				return error_set(
					c->e, ENOTSUP,
					"denyWrite %s (%s) lies in the writable directory %s and "
					"cannot be held there: %s",
					r->text, origin_text(c->a, &r->origin), dir,
					c->facts->no_listener);
		}
	}
	return 0;
}

/*
 * Before ABI 3 Landlock does not know truncation. Then nothing is granted directly:
 * the broker performs, and refuses what lies elsewhere.
 */
static void relay_everything(struct compiler *c)
{
	struct plan *plan = c->plan;

	for (size_t i = 0; i < plan->n_writable; i++)
		*ARENA_PUSH(c->a, plan->relayed, plan->n_relayed) = plan->writable[i];
	plan->n_writable = 0;
}

/*
 * In a sandbox of this kind, directories that hold hidden ones cannot be listed, so their
 * entries could not be granted one by one. What is closed to us is closed to the command
 * whatever the rules say, and need not be taken out again.
 */
static void skip_closed(struct compiler *c)
{
	for (size_t i = 0; i < c->plan->n_mounts; i++) {
		struct mount_step *m = &c->plan->mounts[i];
		bool holds = i + 1 < c->plan->n_mounts && path_within(m[1].path, m->path);
		const char *const *names;

		m->closed = m->directory && !holds && is_hidden_kind(m) &&
			    c->view->list(c->view, c->a, m->path, &names) == -EACCES;
	}
}

int landlock_compile(struct compiler *c)
{
	struct plan *plan = c->plan;
	struct granting g = { .a = c->a, .plan = plan, .view = c->view, .e = c->e };
	struct below all = { .end = plan->n_mounts, .seen = true, .writable = plan->root_writable };
	int r = refuse_unknown(c);

	if (r == 0 && !plan->broker)
		r = refuse_denials(c);
	if (c->facts->nested)
		skip_closed(c);
	if (r == 0)
		r = grant_below(&g, "/", all);
	if (r == 0)
		r = grant_devices(&g);
	if (plan->broker && plan->landlock_abi < TRUNCATE_ABI)
		relay_everything(c);
	for (size_t i = 0; i < plan->n_writable && r == 0; i++)
		r = grant(&g, plan->writable[i], GRANT_WRITE);
	return r;
}
