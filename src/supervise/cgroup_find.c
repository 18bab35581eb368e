/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where groups can be made. Looks at /proc/self/cgroup and at the usual mount points, and
 * believes only what the kernel says about them: the type of the file system, the
 * controllers listed, whether we may write.
 */
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/path.h"
#include "base/text.h"
#include "supervise/cgroup_internal.h"

static const char *const controllers[] = {
	[CGROUP_MEMORY] = "memory",
	[CGROUP_PIDS] = "pids",
	[CGROUP_CPU] = "cpu",
};
_Static_assert(ARRAY_LEN(controllers) == CGROUP_CONTROLLER_MAX_, "a name for each controller");

struct finder {
	struct arena *a;
	const char *root;
	char *self; /* /proc/self/cgroup */
};

/* One word of a list, separated by any of `between`. */
static bool has_word(const char *list, size_t n, const char *word, const char *between)
{
	size_t len = strlen(word);

	for (size_t i = 0; i < n;) {
		size_t end = i;

		while (end < n && !strchr(between, list[end]))
			end++;
		if (end - i == len && memcmp(list + i, word, len) == 0)
			return true;
		i = end + 1;
	}
	return false;
}

static char *read_text(const struct finder *f, const char *path)
{
	_cleanup_free_ char *text = NULL;

	if (fd_read_file(AT_FDCWD, arena_printf(f->a, "%s%s", f->root, path), CGROUP_FILE_MAX,
			 &text, NULL) < 0)
		return NULL;
	return arena_strdup(f->a, text);
}

/* The line of /proc/self/cgroup for a controller (NULL: version 2), as its list and its path. */
static bool find_line(const struct finder *f, const char *controller, char **ret_list,
		      char **ret_path)
{
	const char *line = f->self;

	while (line && *line) {
		const char *end = strchr(line, '\n'), *list = strchr(line, ':'), *path;

		if (!end)
			end = line + strlen(line);
		path = list ? strchr(list + 1, ':') : NULL;
		if (path && path < end) {
			size_t n = (size_t)(path - list - 1);

			if (controller ? has_word(list + 1, n, controller, ",") : n == 0) {
				*ret_list = arena_strndup(f->a, list + 1, n);
				*ret_path = arena_strndup(f->a, path + 1, (size_t)(end - path - 1));
				return true;
			}
		}
		line = *end ? end + 1 : NULL;
	}
	return false;
}

static bool is_type(const struct finder *f, const char *dir, unsigned long magic)
{
	struct statfs st;
	const char *path = arena_printf(f->a, "%s%s", f->root, dir);

	/* a tree made by a test is of no special type */
	return statfs(path, &st) == 0 && (*f->root || (unsigned long)st.f_type == magic);
}

static bool may_write(const struct finder *f, const char *path)
{
	return faccessat(AT_FDCWD, arena_printf(f->a, "%s%s", f->root, path), W_OK, AT_EACCESS) ==
	       0;
}

/* Version 1: the directory is named like the list, or like the controller alone. */
static void find_v1(const struct finder *f, enum cgroup_controller c, const char *list,
		    const char *path, struct cgroup_place *ret)
{
	const char *const names[] = { list, controllers[c] };

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		char *mount = arena_printf(f->a, "/sys/fs/cgroup/%s", names[i]);
		char *dir =
			strcmp(path, "/") == 0 ? mount : arena_printf(f->a, "%s%s", mount, path);

		if (!is_type(f, dir, CGROUP_SUPER_MAGIC))
			continue;
		if (!may_write(f, dir)) {
			ret->missing = arena_printf(f->a, "only root may make groups in %s", dir);
			ret->remedy = "run ambit as root, or boot with "
				      "systemd.unified_cgroup_hierarchy=1";
			return;
		}
		ret->kind = CGROUP_V1;
		ret->parent = arena_printf(f->a, "%s%s", f->root, dir);
		return;
	}
	ret->missing = arena_printf(f->a, "the %s controller is not mounted", controllers[c]);
}

/* Are we the only member of the group? */
static bool is_alone(const struct finder *f, const char *dir)
{
	const char *text = read_text(f, arena_printf(f->a, "%s/cgroup.procs", dir));
	const char *end;

	if (!text)
		return false;
	end = strchr(text, '\n');
	return end && end[1] == '\0' && text_leading_u64(text) == (uint64_t)getpid();
}

/* The directory of version 2 in which groups can be made, or NULL. */
static char *find_base(const struct finder *f, const char *dir)
{
	char *slash = strrchr(dir, '/');
	char *above = arena_strndup(f->a, dir, slash ? (size_t)(slash - dir) : 0);
	bool top = !read_text(f, arena_printf(f->a, "%s/cgroup.type", dir));

	if (slash && strcmp(slash + 1, CGROUP_LEAF) == 0 && may_write(f, above))
		return above;
	if (!may_write(f, dir) ||
	    !may_write(f, arena_printf(f->a, "%s/cgroup.subtree_control", dir)))
		return NULL;
	/* systemd owns the top; below it only a group that nobody else is in can be divided */
	if (top)
		return cgroup_scope_available(f->root) ? NULL : arena_strdup(f->a, dir);
	return is_alone(f, dir) ? arena_strdup(f->a, dir) : NULL;
}

static bool has_controller(const char *list, const char *controller)
{
	return list && has_word(list, strlen(list), controller, " \n");
}

static char *read_controllers(const struct finder *f, const char *dir)
{
	return read_text(f, arena_printf(f->a, "%s/cgroup.controllers", dir));
}

/* Of the wanted controllers, those that are still to be found and that `list` has. */
static bool is_needed(const struct cgroup_places *places, const bool wanted[CGROUP_CONTROLLER_MAX_],
		      size_t c, const char *list)
{
	return wanted[c] && places->by[c].kind == CGROUP_NONE &&
	       has_controller(list, controllers[c]);
}

static const char *find_mount(const struct finder *f, char **ret_list)
{
	static const char *const mounts[] = { "/sys/fs/cgroup", "/sys/fs/cgroup/unified" };

	for (size_t i = 0; i < ARRAY_LEN(mounts); i++) {
		*ret_list = read_controllers(f, mounts[i]);
		if (*ret_list && is_type(f, mounts[i], CGROUP2_SUPER_MAGIC))
			return mounts[i];
	}
	return NULL;
}

static void find_v2(const struct finder *f, const bool wanted[CGROUP_CONTROLLER_MAX_],
		    struct cgroup_places *ret)
{
	const char *mount, *base, *offered;
	char *list, *path;
	bool scope, needed = false;

	mount = find_mount(f, &list);
	for (size_t c = 0; mount && c < ARRAY_LEN(controllers); c++)
		needed |= is_needed(ret, wanted, c, list);
	if (!needed || !find_line(f, NULL, &(char *){ NULL }, &path))
		return;
	base = find_base(f,
			 strcmp(path, "/") == 0 ? mount : arena_printf(f->a, "%s%s", mount, path));
	offered = base ? read_controllers(f, base) : NULL;
	scope = cgroup_scope_available(f->root);
	for (size_t c = 0; c < ARRAY_LEN(controllers); c++) {
		struct cgroup_place *p = &ret->by[c];

		if (!is_needed(ret, wanted, c, list))
			continue;
		p->missing = p->remedy = NULL;
		if (has_controller(offered, controllers[c])) {
			p->kind = CGROUP_V2;
			p->parent = arena_printf(f->a, "%s%s", f->root, base);
		} else if (scope) {
			p->kind = CGROUP_SCOPE;
		} else {
			p->missing = arena_printf(f->a,
						  "the cgroup %s of this process is not its own, "
						  "and there is no systemd to ask",
						  path);
			p->remedy = "give the container or service a writable cgroup "
				    "(systemd: Delegate=yes)";
		}
	}
}

void cgroup_find(struct arena *a, const char *root, const bool wanted[CGROUP_CONTROLLER_MAX_],
		 struct cgroup_places *ret)
{
	struct finder f = { .a = a, .root = root };
	bool missing = false;

	*ret = (struct cgroup_places){ 0 };
	f.self = read_text(&f, "/proc/self/cgroup");
	for (size_t c = 0; c < ARRAY_LEN(controllers); c++) {
		char *list, *path;

		if (!wanted[c])
			continue;
		if (find_line(&f, controllers[c], &list, &path))
			find_v1(&f, (enum cgroup_controller)c, list, path, &ret->by[c]);
		else
			ret->by[c].missing = "the kernel offers no such cgroups here";
		missing |= ret->by[c].kind == CGROUP_NONE;
	}
	if (missing)
		find_v2(&f, wanted, ret);
}
