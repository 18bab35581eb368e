/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limits of a container: the engine was told them, the kernel says whether they hold. Engines
 * leave out with a warning what they cannot set (rootless podman with version 1 cgroups does);
 * we look at the groups of the process itself, and refuse.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/text.h"
#include "sandbox/container/container.h"

#define CGROUP_ROOT "/sys/fs/cgroup"
#define FILE_MAX 65536
#define CPU_TOLERANCE 1.01

/* Directory of a controller for a process: version 1 by its own hierarchy, else version 2. */
struct group {
	struct arena *a;
	const char *path;
	bool v2;
};

/* A line is ID:CONTROLLERS:PATH. */
static bool line_names(const char *line, const char *controller)
{
	const char *list = strchr(line, ':'), *end = list ? strchr(list + 1, ':') : NULL;
	size_t n = strlen(controller);

	for (const char *s = list; s && s < end; s = strpbrk(s + 1, ",:")) {
		if (strncmp(s + 1, controller, n) == 0 && (s[n + 1] == ',' || s[n + 1] == ':'))
			return true;
	}
	return false;
}

static bool find_group(const char *text, const char *controller, struct group *ret)
{
	const char *unified = NULL, *own = NULL, *path;

	for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
		if (text_starts(line, "0::"))
			unified = line;
		else if (line_names(line, controller))
			own = line;
	}
	if (!own && !unified)
		return false;
	ret->v2 = !own;
	path = strchr(strchr(own ? own : unified, ':') + 1, ':') + 1;
	ret->path = arena_printf(ret->a, CGROUP_ROOT "%s%s%.*s", own ? "/" : "",
				 own ? controller : "", (int)strcspn(path, "\n"), path);
	return true;
}

static int open_in(const struct group *g, const char *name)
{
	return open(path_join(g->a, g->path, name), O_RDONLY | O_CLOEXEC);
}

/* The number in a file of the group; 0 where there is none, or "max". */
static uint64_t number_in(const struct group *g, const char *name)
{
	_cleanup_fd_ int fd = open_in(g, name);
	char text[64] = "";
	ssize_t n = fd < 0 ? -1 : fd_read_full(fd, text, sizeof(text) - 1);

	return n <= 0 ? 0 : text_leading_u64(text);
}

static double cpu_in(const struct group *g)
{
	_cleanup_fd_ int fd = g->v2 ? open_in(g, "cpu.max") : -1;
	char text[64] = "";
	const char *space;
	uint64_t quota, period;

	if (!g->v2) {
		quota = number_in(g, "cpu.cfs_quota_us");
		period = number_in(g, "cpu.cfs_period_us");
	} else {
		if (fd < 0 || fd_read_full(fd, text, sizeof(text) - 1) <= 0)
			return 0;
		space = strchr(text, ' ');
		quota = text_leading_u64(text);
		period = space ? text_leading_u64(space + 1) : 0;
	}
	return period ? (double)quota / (double)period : 0;
}

static int refuse(const struct plan_engine *engine, const char *key, struct error *e)
{
	return error_set(e, ENOTSUP,
			 "limits.%s: %s was told, but does not hold it on this machine (rootless "
			 "engines need version 2 cgroups that are delegated to the user)",
			 key, engine->name);
}

int container_groups_check(const struct plan_engine *engine, pid_t pid,
			   struct container_groups *ret, struct error *e)
{
	_cleanup_arena_ struct arena *a = arena_new();
	_cleanup_free_ char *text = NULL;
	struct group g = { .a = a };
	char path[64];
	uint64_t value;
	double cpus;

	*ret = (struct container_groups)CONTAINER_GROUPS_INIT;
	if (!engine->memory && !engine->pids && !(engine->cpu > 0))
		return 0;
	(void)snprintf(path, sizeof(path), "/proc/%d/cgroup", pid);
	if (fd_read_file(AT_FDCWD, path, FILE_MAX, &text, NULL) < 0)
		return error_set(e, EIO, "cannot read %s", path);
	if (engine->memory) {
		value = find_group(text, "memory", &g)
				? number_in(&g, g.v2 ? "memory.max" : "memory.limit_in_bytes")
				: 0;
		if (!value || value > engine->memory)
			return refuse(engine, "memory", e);
		ret->memory_events = open_in(&g, g.v2 ? "memory.events" : "memory.oom_control");
	}
	if (engine->pids) {
		value = find_group(text, "pids", &g) ? number_in(&g, "pids.max") : 0;
		if (!value || value > engine->pids + 1)
			return refuse(engine, "pids", e);
		ret->pids_events = open_in(&g, "pids.events");
	}
	if (engine->cpu > 0) {
		cpus = find_group(text, "cpu", &g) ? cpu_in(&g) : 0;
		if (!(cpus > 0) || cpus > engine->cpu * CPU_TOLERANCE)
			return refuse(engine, "cpu", e);
	}
	return 0;
}

/* "NAME NUMBER" in a file that stays open. */
static bool has_counted(int fd, const char *name)
{
	char text[512] = "";
	size_t n = strlen(name);

	if (fd < 0 || pread(fd, text, sizeof(text) - 1, 0) <= 0)
		return false;
	for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
		if (strncmp(line, name, n) == 0 && line[n] == ' ')
			return text_leading_u64(line + n + 1) > 0;
	}
	return false;
}

bool container_groups_out_of_memory(const struct container_groups *g)
{
	return has_counted(g->memory_events, "oom_kill");
}

bool container_groups_out_of_pids(const struct container_groups *g)
{
	return has_counted(g->pids_events, "max");
}

void container_groups_close(struct container_groups *g)
{
	fd_close(TAKE_FD(g->memory_events));
	fd_close(TAKE_FD(g->pids_events));
}
