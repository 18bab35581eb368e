/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program behind an excluded command. A command inside the sandbox may write to the
 * project, perhaps to ~/.local/bin: a `docker` that it leaves there must not be what runs
 * outside. So every name on the way from / to the file, through every symbolic link, is
 * asked about: could it be changed from inside?
 */
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "policy/build.h"
#include "policy/excluded.h"

#define PATH_DEFAULT "/usr/local/bin:/usr/bin:/bin"
#define LINKS_MAX 40 /* as the kernel's */

/* What is private to the sandbox is not the host's file of that name. */
static bool can_be_changed(const struct policy *p, const char *path)
{
	struct ruling r;

	decide_by_rules(p, p->fs.rules.n, ACCESS_WRITE, path, &r);
	return r.verdict == VERDICT_ALLOW && !protect_match(p, r.depth, path);
}

/*
 * Goes from name to name, each in its canonical directory. Directories in a writable place
 * need no question of their own: what lies in them is writable by the same rule, unless a
 * rule protects exactly that, and then the broker keeps those above in their place.
 */
static const char *changeable_part(const struct policy *p, struct arena *a, const char *path)
{
	const char *done = "/", *rest = path;
	unsigned links = 0;

	while (*(rest += strspn(rest, "/"))) {
		size_t n = strcspn(rest, "/");
		const char *here = path_absolute(a, done, arena_strndup(a, rest, n));
		char target[PATH_MAX];
		ssize_t len = readlink(here, target, sizeof(target) - 1);

		rest += n;
		if (len < 0) {
			done = here;
			continue;
		}
		if (can_be_changed(p, here) || ++links > LINKS_MAX)
			return here;
		target[len] = '\0';
		rest = path_join(a, target, rest);
		if (target[0] == '/')
			done = "/";
	}
	return can_be_changed(p, done) ? done : NULL;
}

static bool is_program(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

/* A relative directory in PATH would be another one in every project. */
static const char *search_path(struct arena *a, const char *name, const char *path)
{
	while (*path) {
		size_t n = strcspn(path, ":");
		const char *file = arena_printf(a, "%.*s/%s", (int)n, path, name);

		if (path[0] == '/' && is_program(file))
			return file;
		path += n + (path[n] == ':');
	}
	return NULL;
}

const char *excluded_program(const struct policy *p, struct arena *a, const char *name,
			     const char *path, const char **ret_reason)
{
	const char *file, *changeable;

	if (name[0] == '/')
		file = name;
	else if (strchr(name, '/'))
		file = path_join(a, p->cwd, name);
	else
		file = search_path(a, name, path ? path : PATH_DEFAULT);
	if (!file || !is_program(file)) {
		*ret_reason = arena_printf(a, "no program %s is found", name);
		return NULL;
	}
	changeable = changeable_part(p, a, file);
	if (changeable) {
		*ret_reason = arena_printf(
			a, "an excluded command, but %s could be changed from inside the sandbox",
			changeable);
		return NULL;
	}
	*ret_reason = "an excluded command";
	return file;
}
