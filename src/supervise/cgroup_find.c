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

	if (strcmp(slash + 1, CGROUP_LEAF) == 0 && may_write(f, above))
		return above;
	if (!may_write(f, dir) ||
	    !may_write(f, arena_printf(f->a, "%s/cgroup.subtree_control", dir)))
		return NULL;
	/* systemd owns the top; below it only a group that nobody else is in can be divided */
	if (top)
		return cgroup_scope_available(f->root) ? NULL : arena_strdup(f->a, dir);
	return is_alone(f, dir) ? arena_strdup(f->a, dir) : NULL;
}

static bool offers(const struct finder *f, const char *dir, const char *controller)
{
	const char *list = read_text(f, arena_printf(f->a, "%s/cgroup.controllers", dir));

	return list && has_word(list, strlen(list), controller, " \n");
}

static void find_v2(const struct finder *f, struct cgroup_places *ret)
{
	static const char *const mounts[] = { "/sys/fs/cgroup", "/sys/fs/cgroup/unified" };
	const char *mount = NULL, *base = NULL;
	char *list, *path;

	if (!find_line(f, NULL, &list, &path))
		return;
	for (size_t i = 0; i < ARRAY_LEN(mounts) && !mount; i++) {
		if (is_type(f, mounts[i], CGROUP2_SUPER_MAGIC) &&
		    read_text(f, arena_printf(f->a, "%s/cgroup.controllers", mounts[i])))
			mount = mounts[i];
	}
	if (!mount)
		return;
	base = find_base(f,
			 strcmp(path, "/") == 0 ? mount : arena_printf(f->a, "%s%s", mount, path));
	for (size_t c = 0; c < ARRAY_LEN(controllers); c++) {
		struct cgroup_place *p = &ret->by[c];

		if (p->kind != CGROUP_NONE || !offers(f, mount, controllers[c]))
			continue;
		p->missing = p->remedy = NULL;
		if (base && offers(f, base, controllers[c])) {
			p->kind = CGROUP_V2;
			p->parent = arena_printf(f->a, "%s%s", f->root, base);
		} else if (cgroup_scope_available(f->root)) {
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

void cgroup_find(struct arena *a, const char *root, struct cgroup_places *ret)
{
	struct finder f = { .a = a, .root = root };

	*ret = (struct cgroup_places){ 0 };
	f.self = read_text(&f, "/proc/self/cgroup");
	for (size_t c = 0; c < ARRAY_LEN(controllers); c++) {
		char *list, *path;

		ret->by[c].missing =
			arena_printf(a, "the kernel offers no %s cgroups here", controllers[c]);
		if (find_line(&f, controllers[c], &list, &path))
			find_v1(&f, (enum cgroup_controller)c, list, path, &ret->by[c]);
	}
	for (size_t c = 0; c < ARRAY_LEN(controllers); c++) {
		if (ret->by[c].kind == CGROUP_NONE) {
			find_v2(&f, ret);
			break;
		}
	}
}
