/* SPDX-License-Identifier: Apache-2.0 */
/*
 * New territory: which directories were made in this run, known by what they are; and at which
 * paths one was before, known by a hash. Where too many came or went to remember them, nothing is
 * new any more.
 */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/statx.h"
#include "base/text.h"
#include "policy/match_name.h"
#include "supervise/broker/guard_internal.h"
#include "supervise/broker/later.h"
#include "supervise/broker/tree.h"

#define PATTERN_DEPTH_MAX 4 /* directories that a protected name begins with */
#define GONE_SLOTS 131072 /* paths of directories that went away */
#define TERRITORY_MAX 65536 /* directories remembered; past that none are new */

static bool identify(int dirfd, const char *name, struct territory *ret)
{
	struct statx st;

	if (statx(dirfd, name, AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH, STATX_INO | STATX_BTIME, &st) <
	    0)
		return false;
	*ret = (struct territory){
		.dev = (uint64_t)st.stx_dev_major << 32 | st.stx_dev_minor,
		.ino = st.stx_ino,
		.born_sec = st.stx_btime.tv_sec,
		.born_nsec = st.stx_btime.tv_nsec,
	};
	return true;
}

static size_t slot_of(const struct guard *g, const struct territory *t)
{
	size_t i = (size_t)(t->ino * 0x9e3779b97f4a7c15ull) & (g->cap - 1);

	while (g->v[i].ino && (g->v[i].ino != t->ino || g->v[i].dev != t->dev))
		i = (i + 1) & (g->cap - 1);
	return i;
}

static bool grow(struct guard *g)
{
	struct guard bigger = *g;

	bigger.cap = g->cap ? g->cap * 2 : 256;

	if (g->n * 2 < g->cap)
		return true;
	if (bigger.cap / 2 > TERRITORY_MAX)
		return false;
	bigger.v = arena_array(g->a, bigger.cap, sizeof(*bigger.v));
	for (size_t i = 0; i < g->cap; i++) {
		if (g->v[i].ino)
			bigger.v[slot_of(&bigger, &g->v[i])] = g->v[i];
	}
	*g = bigger;
	return true;
}

void guard_note_directory(struct guard *g, int dirfd, const char *name)
{
	struct territory t;
	size_t i;

	if (!identify(dirfd, name, &t) || !grow(g))
		return;
	i = slot_of(g, &t);
	g->n += g->v[i].ino == 0;
	g->v[i] = t;
}

bool guard_made_here(const struct guard *g, int dirfd, const char *name)
{
	struct territory t;
	const struct territory *known;

	if (!g->n || !identify(dirfd, name, &t))
		return false;
	known = &g->v[slot_of(g, &t)];
	return known->ino && known->born_sec == t.born_sec && known->born_nsec == t.born_nsec;
}

/* The first `len` bytes; in capitals or not, which some file systems take for the same. */
static uint64_t hash_path(const char *path, size_t len)
{
	uint64_t h = 0xcbf29ce484222325ull;

	for (size_t i = 0; i < len; i++)
		h = (h ^ (unsigned char)ascii_lower(path[i])) * 0x100000001b3ull;
	return h ? h : 1;
}

static void remember(struct guard *g, uint64_t h)
{
	if (!g->gone)
		g->gone = arena_array(g->a, GONE_SLOTS, sizeof(*g->gone));
	for (size_t i = h % GONE_SLOTS, n = 0; n < GONE_SLOTS; i = (i + 1) % GONE_SLOTS, n++) {
		if (g->gone[i] == h)
			return;
		if (!g->gone[i]) {
			g->gone[i] = h;
			g->n_gone++;
			return;
		}
	}
}

static bool remembers(const struct guard *g, uint64_t h)
{
	for (size_t i = h % GONE_SLOTS, n = 0; g->gone[i] && n < GONE_SLOTS;
	     i = (i + 1) % GONE_SLOTS, n++) {
		if (g->gone[i] == h)
			return true;
	}
	return false;
}

void guard_note_gone(struct guard *g, const char *path, bool all)
{
	size_t n = strlen(path);
	char whole[PATH_MAX + NAME_MAX + 2];

	/* a package that is installed anew may bring what a new package may */
	if (later_is_installed(path))
		return;
	remember(g, hash_path(path, n));
	if (!all || n + 2 > sizeof(whole))
		return;
	memcpy(whole, path, n);
	whole[n] = '/'; /* how "all below" is written */
	remember(g, hash_path(whole, n + 1));
}

bool guard_surely_was_there(const struct guard *g, const char *path)
{
	if (!g->n_gone || later_is_installed(path))
		return false;
	for (const char *s = strchr(path, '/'); s; s = strchr(s + 1, '/')) {
		if (remembers(g, hash_path(path, (size_t)(s - path) + 1)))
			return true;
	}
	return remembers(g, hash_path(path, strlen(path)));
}

bool guard_was_there(const struct guard *g, const char *path)
{
	/* too many to remember: nothing is new any more */
	return (g->n_gone > GONE_SLOTS * 3 / 4 && !later_is_installed(path)) ||
	       guard_surely_was_there(g, path);
}

bool guard_is_new(const struct guard *g, int dirfd, const char *path)
{
	return guard_made_here(g, dirfd, "") && !guard_was_there(g, path);
}

struct arrival {
	const struct guard *g;
	const char *root;
	bool meets_old; /* an old directory is there still, with who knows what in it */
};

/* A part of the way to the entry was made in this run: its directory, or one above. */
static bool came_in_this_run(const struct guard *g, const struct tree_entry *e)
{
	for (unsigned up = 0; up <= PATTERN_DEPTH_MAX; up++) {
		_cleanup_fd_ int above = guard_open_above(e->dirfd, up);

		if (above < 0 || guard_made_here(g, above, ""))
			return true;
	}
	return guard_made_here(g, e->dirfd, e->name);
}

/*
 * Protected names that were not there before; links, which may stand for a directory that holds
 * such; and files that say which repository git uses.
 */
static enum tree_next visit_arrival(void *ctx, const struct tree_entry *e)
{
	const struct arrival *a = ctx;
	bool link = e->type == DT_LNK || e->type == DT_UNKNOWN;
	bool counts = guard_name_of(a->g, e->path, a->root) ||
		      (name_is(e->name, ".git") && e->type != DT_DIR);

	if (link && (a->meets_old || guard_was_there(a->g, e->path)))
		return TREE_STOP;
	return counts && came_in_this_run(a->g, e) ? TREE_STOP : TREE_GO_ON;
}

bool guard_is_tainted(const struct guard *g, int parent, const char *name, const char *path,
		      const char *root, bool meets_old)
{
	struct arrival a = { g, root, meets_old };

	return tree_walk(parent, name, path, visit_arrival, &a) != 0;
}
