/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Directories that are to be writable and are not there yet. Their parent must be: a longer way
 * is more likely a mistake. But what programs share (~/.cache) is made on the way to their places,
 * as they do it themselves; and the caches of a profile are made with all that is missing below
 * the home directory (~/.cargo), or left out where that cannot be.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/path.h"
#include "policy/places.h"
#include "sandbox/plan_points.h"

bool plan_is_on_the_way(const struct policy *p, const struct path_rule *r, const char *dir)
{
	return place_is_shared(p->home, dir) ||
	       (r->spare && path_within(dir, p->home) && strcmp(dir, p->home) != 0);
}

/* The last slash before which something is there, or only what is made on the way is missing. */
static size_t existing_len(const struct policy *p, const struct path_rule *r)
{
	char above[PATH_MAX];
	size_t len = strlen(r->real);

	memcpy(above, r->real, len + 1);
	do {
		while (above[len] != '/')
			len--;
		above[len] = '\0';
	} while (len > 0 && plan_is_on_the_way(p, r, above) && access(above, F_OK) < 0);
	return len;
}

/* Could it be made? Asked for all before any is: a refused run leaves nothing behind. */
static int check_above(const struct policy *p, const struct path_rule *r)
{
	char above[PATH_MAX];
	size_t len;

	if (strlen(r->real) >= sizeof(above))
		return -ENAMETOOLONG;
	len = existing_len(p, r);
	memcpy(above, r->real, len);
	memcpy(above + len, len ? "" : "/", len ? 1 : 2);
	return faccessat(AT_FDCWD, above, W_OK | X_OK, AT_EACCESS) < 0 ? -errno : 0;
}

static bool wants_directory(const struct policy *p, const struct path_rule *r)
{
	return !r->glob && (!r->optional || r->spare) && r->access == ACCESS_WRITE &&
	       r->verdict == VERDICT_ALLOW && access(r->real, F_OK) < 0 &&
	       (!r->spare || check_above(p, r) == 0);
}

static int make(struct arena *a, const struct policy *p, struct plan_facts *facts,
		const struct path_rule *r)
{
	for (size_t len = existing_len(p, r); r->real[len];) {
		const char *dir;

		len += 1 + strcspn(r->real + len + 1, "/");
		dir = arena_strndup(a, r->real, len);
		if (mkdir(dir, 0777) < 0)
			return -errno;
		*ARENA_PUSH(a, facts->fresh, facts->n_fresh) = dir;
	}
	return 0;
}

bool plan_must_prepare(const struct policy *p)
{
	for (size_t i = 0; i < p->fs.rules.n; i++) {
		if (wants_directory(p, &p->fs.rules.v[i]))
			return true;
	}
	return false;
}

static int cannot(const struct path_rule *r, int err, struct error *e)
{
	return error_set(e, -err, "allowWrite %s: does not exist and cannot be created: %s",
			 r->text, strerror(-err));
}

int plan_check_prepare(const struct policy *p, struct error *e)
{
	for (size_t i = 0; i < p->fs.rules.n; i++) {
		const struct path_rule *r = &p->fs.rules.v[i];
		int err = wants_directory(p, r) ? check_above(p, r) : 0;

		if (err < 0)
			return cannot(r, err, e);
	}
	return 0;
}

int plan_prepare(struct arena *a, const struct policy *p, struct plan_facts *facts, struct error *e)
{
	int r = plan_check_prepare(p, e);

	for (size_t i = 0; i < p->fs.rules.n && r == 0; i++) {
		const struct path_rule *rule = &p->fs.rules.v[i];
		int err = wants_directory(p, rule) ? make(a, p, facts, rule) : 0;

		if (err < 0)
			r = cannot(rule, err, e);
	}
	return r;
}
