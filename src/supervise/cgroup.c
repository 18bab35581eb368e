/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The groups of one run. See cgroup.h for their lives.
 *
 * Start is what costs: a version 1 group would be entered after a grace period of the kernel, were
 * the process moved from outside, so it moves itself (by `tasks`); and the guard is started, and
 * directories and limits are made, while the child sets itself up, which takes it longer.
 */
#include "supervise/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/text.h"
#include "sandbox/backend.h"
#include "supervise/cgroup_internal.h"

#define CPU_PERIOD_US 100000
#define REMOVE_TRIES 200
#define REMOVE_PAUSE_NS 1000000

enum { WATCH_MEMORY, WATCH_PIDS, WATCH_MAX_ };
enum { COUNTER_KILLS, COUNTER_REFUSALS, COUNTER_MEMORY, COUNTER_PIDS, COUNTER_MAX_ };

struct cgroup {
	const char *root; /* "", but in tests */
	bool fake; /* a tree made by a test */
	struct cgroup_limits limits;
	struct cgroup_dir dirs[CGROUP_CONTROLLER_MAX_];
	size_t n_dirs;
	bool scope;
	int events;
	int watched[WATCH_MAX_];
	int counters[COUNTER_MAX_]; /* open from the start: at the end somebody waits */
	pid_t guard;
	int guard_fd;
};

int cgroup_write(int dir, const char *name, const char *value, bool fake)
{
	_cleanup_fd_ int fd = openat(dir, name, O_WRONLY | O_CLOEXEC | (fake ? O_CREAT : 0), 0644);
	ssize_t n = fd < 0 ? -1 : write(fd, value, strlen(value));

	return n < 0 ? -errno : 0;
}

/* The number after `key` ("" = the file is just a number); 0 when there is none. */
static uint64_t read_number(int fd, const char *key)
{
	char text[512]; /* those that we read have a few short lines */
	ssize_t len = fd < 0 ? -1 : pread(fd, text, sizeof(text) - 1, 0);
	size_t n = strlen(key);
	const char *line;

	if (len < 0)
		return 0;
	text[len] = '\0';
	for (line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (n == 0 || (strncmp(line, key, n) == 0 && line[n] == ' '))
			return text_leading_u64(line + n + (n > 0));
	}
	return 0;
}

static const struct cgroup_dir *dir_of(const struct cgroup *g, enum cgroup_controller c)
{
	for (size_t i = 0; i < g->n_dirs; i++) {
		if (g->dirs[i].holds[c])
			return &g->dirs[i];
	}
	return NULL;
}

static int fail(struct error *e, int r, const char *what, const struct cgroup_dir *d)
{
	return error_set(e, -r, "limits: cannot %s the cgroup %s: %s", what, d->name, strerror(-r));
}

static int make_dir(struct cgroup_dir *d, struct error *e)
{
	if (mkdirat(d->parent, d->name, 0755) < 0)
		return fail(e, -errno, "make", d);
	d->fd = openat(d->parent, d->name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	/* the lock says that somebody lives: see cgroup_guard.c */
	if (d->fd < 0 || flock(d->fd, LOCK_EX | LOCK_NB) < 0)
		return fail(e, -errno, "hold", d);
	return 0;
}

static struct cgroup_dir *add_dir(struct cgroup *g, const struct cgroup_place *place)
{
	struct cgroup_dir *d = &g->dirs[g->n_dirs++];
	uint32_t random = 0;

	(void)!getrandom(&random, sizeof(random), 0);
	*d = (struct cgroup_dir){ .kind = place->kind, .parent = -1, .fd = -1 };
	(void)snprintf(d->name, sizeof(d->name), CGROUP_NAME_PREFIX "%d-%08x", getpid(), random);
	return d;
}

/* The directories that the limits need: controllers of one hierarchy share one. */
static int choose_dirs(struct cgroup *g, const struct cgroup_places *places, struct error *e)
{
	const bool wanted[] = { [CGROUP_MEMORY] = g->limits.memory > 0,
				[CGROUP_PIDS] = g->limits.pids > 0,
				[CGROUP_CPU] = g->limits.cpu > 0 };
	const struct cgroup_place *of[CGROUP_CONTROLLER_MAX_] = { 0 };

	for (size_t c = 0; c < CGROUP_CONTROLLER_MAX_; c++) {
		const struct cgroup_place *p = &places->by[c];
		size_t i = 0;

		if (!wanted[c])
			continue;
		while (i < g->n_dirs &&
		       (!of[i] || of[i]->kind != p->kind ||
			(p->parent && (!of[i]->parent || strcmp(of[i]->parent, p->parent) != 0))))
			i++;
		if (i == g->n_dirs) {
			struct cgroup_dir *d = add_dir(g, p);

			of[i] = p;
			g->scope |= p->kind == CGROUP_SCOPE;
			if (p->parent)
				d->parent = open(p->parent, O_PATH | O_DIRECTORY | O_CLOEXEC);
			if (p->parent && d->parent < 0)
				return fail(e, -errno, "find a place for", d);
		}
		g->dirs[i].holds[c] = true;
	}
	return 0;
}

/* A group with members cannot be divided: we leave it for a group of our own below it. */
static int make_room(const struct cgroup *g, const struct cgroup_dir *d, const char *enable,
		     struct error *e)
{
	_cleanup_fd_ int leaf = -1;
	int r;

	if (mkdirat(d->parent, CGROUP_LEAF, 0755) < 0 && errno != EEXIST)
		return fail(e, -errno, "make room for", d);
	leaf = openat(d->parent, CGROUP_LEAF, O_PATH | O_DIRECTORY | O_CLOEXEC);
	r = leaf < 0 ? -errno : cgroup_write(leaf, "cgroup.procs", "0", g->fake);
	if (r == 0)
		r = cgroup_write(d->parent, "cgroup.subtree_control", enable, g->fake);
	return r < 0 ? fail(e, r, "make room for", d) : 0;
}

/* Version 2: the controllers must be on for the children of the parent. */
static int enable_controllers(const struct cgroup *g, const struct cgroup_dir *d, struct error *e)
{
	static const char *const words[] = {
		[CGROUP_MEMORY] = "+memory ", [CGROUP_PIDS] = "+pids ", [CGROUP_CPU] = "+cpu "
	};
	_cleanup_buf_ struct buf enable = BUF_INIT(CGROUP_FILE_MAX);
	int r;

	for (size_t c = 0; c < ARRAY_LEN(words); c++) {
		if (d->holds[c])
			buf_puts(&enable, words[c]);
	}
	r = cgroup_write(d->parent, "cgroup.subtree_control", buf_str(&enable), g->fake);
	if (r == -EBUSY)
		return make_room(g, d, buf_str(&enable), e);
	return r < 0 ? fail(e, r, "turn on controllers for", d) : 0;
}

/* One file of a group and its value. */
static int set(const struct cgroup *g, const struct cgroup_dir *d, const char *name,
	       const char *value, struct error *e)
{
	int r = cgroup_write(d->fd, name, value, g->fake);

	return r < 0 ? error_set(e, -r, "limits: cannot set %s of the cgroup %s to %s: %s", name,
				 d->name, value, strerror(-r))
		     : 0;
}

static int set_memory(const struct cgroup *g, const struct cgroup_dir *d, struct error *e)
{
	char bytes[32];
	int r;

	(void)snprintf(bytes, sizeof(bytes), "%llu", (unsigned long long)g->limits.memory);
	if (d->kind == CGROUP_V1) {
		r = set(g, d, "memory.limit_in_bytes", bytes, e);
		/* swap is counted only where the kernel was told to: else nothing of this is swapped */
		if (r == 0 &&
		    cgroup_write(d->fd, "memory.memsw.limit_in_bytes", bytes, g->fake) < 0)
			(void)!cgroup_write(d->fd, "memory.swappiness", "0", g->fake);
		return r;
	}
	r = set(g, d, "memory.max", bytes, e);
	if (r == 0)
		(void)!cgroup_write(d->fd, "memory.swap.max", "0", g->fake);
	/* all or nobody: a command without some of its processes is of no use */
	return r < 0 ? r : set(g, d, "memory.oom.group", "1", e);
}

static int set_pids(const struct cgroup *g, const struct cgroup_dir *d, struct error *e)
{
	char count[32];

	(void)snprintf(count, sizeof(count), "%llu", (unsigned long long)g->limits.pids + 1);
	return set(g, d, "pids.max", count, e);
}

static int set_cpu(const struct cgroup *g, const struct cgroup_dir *d, struct error *e)
{
	long long quota = (long long)(g->limits.cpu * CPU_PERIOD_US);
	char text[64];

	if (quota < 1000)
		quota = 1000; /* the least that the kernel takes */
	(void)snprintf(text, sizeof(text), d->kind == CGROUP_V1 ? "%lld" : "%lld %d", quota,
		       CPU_PERIOD_US);
	return set(g, d, d->kind == CGROUP_V1 ? "cpu.cfs_quota_us" : "cpu.max", text, e);
}

static int set_limits(const struct cgroup *g, const struct cgroup_dir *d, struct error *e)
{
	int r = d->holds[CGROUP_MEMORY] ? set_memory(g, d, e) : 0;

	if (r == 0 && d->holds[CGROUP_PIDS])
		r = set_pids(g, d, e);
	if (r == 0 && d->holds[CGROUP_CPU])
		r = set_cpu(g, d, e);
	return r;
}

static void watch(struct cgroup *g, size_t which, int fd)
{
	struct epoll_event ev = { .events = EPOLLPRI, .data.u64 = which };
	char text[256];

	g->watched[which] = fd;
	if (fd < 0 || g->events < 0)
		return;
	(void)!pread(fd, text, sizeof(text), 0); /* what is new from here on */
	(void)epoll_ctl(g->events, EPOLL_CTL_ADD, fd, &ev);
}

/* Version 2 wakes who polls; version 1 wakes nobody, or too early. */
static void start_watching(struct cgroup *g)
{
	static const struct {
		enum cgroup_controller controller;
		const char *file;
	} files[WATCH_MAX_] = { [WATCH_MEMORY] = { CGROUP_MEMORY, "memory.events" },
				[WATCH_PIDS] = { CGROUP_PIDS, "pids.events" } };

	for (size_t i = 0; i < WATCH_MAX_; i++) {
		const struct cgroup_dir *d = dir_of(g, files[i].controller);

		if (!d || d->kind == CGROUP_V1)
			continue;
		if (g->events < 0)
			g->events = epoll_create1(EPOLL_CLOEXEC);
		watch(g, i, openat(d->fd, files[i].file, O_RDONLY | O_CLOEXEC));
	}
}

/* Not every kernel has all of them. */
static void open_counters(struct cgroup *g)
{
	static const struct {
		enum cgroup_controller controller;
		const char *v1, *v2;
	} files[COUNTER_MAX_] = {
		[COUNTER_KILLS] = { CGROUP_MEMORY, "memory.oom_control", "memory.events" },
		[COUNTER_REFUSALS] = { CGROUP_PIDS, "pids.events", "pids.events" },
		[COUNTER_MEMORY] = { CGROUP_MEMORY, "memory.max_usage_in_bytes", "memory.peak" },
		[COUNTER_PIDS] = { CGROUP_PIDS, "pids.peak", "pids.peak" },
	};

	for (size_t i = 0; i < COUNTER_MAX_; i++) {
		const struct cgroup_dir *d = dir_of(g, files[i].controller);

		if (d)
			g->counters[i] =
				openat(d->fd, d->kind == CGROUP_V1 ? files[i].v1 : files[i].v2,
				       O_RDONLY | O_CLOEXEC);
	}
}

/* systemd makes the group, and removes it; we only look at it. */
static int start_scope(struct cgroup *g, struct cgroup_dir *d, pid_t child, struct error *e)
{
	struct cgroup_limits limits = { .memory = d->holds[CGROUP_MEMORY] ? g->limits.memory : 0,
					.pids = d->holds[CGROUP_PIDS] ? g->limits.pids + 1 : 0,
					.cpu = d->holds[CGROUP_CPU] ? g->limits.cpu : 0 };

	/* without memory.oom.group: it would go before we could ask it why */
	d->fd = cgroup_scope_start(g->root, d->name, child, &limits, e);
	return d->fd < 0 ? d->fd : 0;
}

/* While the child sets itself up; `tasks` are what it is to enter. */
static int make_groups(struct cgroup *g, int tasks[SANDBOX_GROUPS_MAX], size_t *n, struct error *e)
{
	int r = 0;

	for (size_t i = 0; i < g->n_dirs && r == 0; i++) {
		struct cgroup_dir *d = &g->dirs[i];

		if (d->kind == CGROUP_V1)
			r = make_dir(d, e);
		if (r == 0 && d->kind != CGROUP_SCOPE)
			r = set_limits(g, d, e);
		if (r < 0 || d->kind != CGROUP_V1)
			continue;
		tasks[*n] = openat(d->fd, "tasks", O_WRONLY | O_CLOEXEC | (g->fake ? O_CREAT : 0),
				   0644);
		if (tasks[*n] < 0)
			r = fail(e, -errno, "hand out", d);
		else
			++*n;
	}
	return r;
}

static int start_guard(struct cgroup *g, struct error *e)
{
	return g->guard > 0 ? 0
			    : cgroup_guard_start(g->dirs, g->n_dirs, &g->guard, &g->guard_fd, e);
}

int cgroup_new(const char *root, const struct cgroup_places *places,
	       const struct cgroup_limits *limits, struct cgroup **ret, struct error *e)
{
	struct cgroup *g = calloc(1, sizeof(*g));
	int r;

	if (!g)
		abort();
	*g = (struct cgroup){
		.root = root, .fake = *root, .limits = *limits, .events = -1, .guard_fd = -1
	};
	for (size_t i = 0; i < WATCH_MAX_; i++)
		g->watched[i] = -1;
	for (size_t i = 0; i < COUNTER_MAX_; i++)
		g->counters[i] = -1;
	r = choose_dirs(g, places, e);
	for (size_t i = 0; i < g->n_dirs && r == 0; i++) {
		if (g->dirs[i].kind != CGROUP_V2)
			continue;
		r = enable_controllers(g, &g->dirs[i], e);
		if (r == 0)
			r = start_guard(g, e);
		if (r == 0)
			r = make_dir(&g->dirs[i], e);
	}
	if (r < 0)
		(void)cgroup_free(g);
	else
		*ret = g;
	return r;
}

int cgroup_born_in(const struct cgroup *g)
{
	for (size_t i = 0; i < g->n_dirs; i++) {
		if (g->dirs[i].kind == CGROUP_V2)
			return g->dirs[i].fd;
	}
	return -1;
}

/* The child may go on; with it goes what it is to enter by itself. One that is gone has told why. */
static void tell_child(int control, const int *tasks, size_t n)
{
	if (n > 0)
		(void)!fd_send_many(control, "", 1, tasks, n);
	else
		(void)!send(control, "", 1, MSG_NOSIGNAL);
}

int cgroup_start(struct cgroup *g, const struct sandbox_child *child, struct error *e)
{
	int tasks[SANDBOX_GROUPS_MAX], r = 0;
	size_t n = 0;

	for (size_t i = 0; i < g->n_dirs && r == 0; i++) {
		if (g->dirs[i].kind == CGROUP_SCOPE)
			r = start_scope(g, &g->dirs[i], child->init, e);
	}
	if (r == 0 && (!g->scope || g->n_dirs > 1))
		r = start_guard(g, e);
	if (r == 0) {
		cgroup_guard_watch(g->guard_fd, child->pidfd);
		r = make_groups(g, tasks, &n, e);
	}
	if (r == 0) {
		tell_child(child->control, tasks, n);
		start_watching(g);
		open_counters(g);
	}
	while (n > 0)
		fd_close(tasks[--n]);
	return r;
}

int cgroup_fd(const struct cgroup *g)
{
	return g->events;
}

/* Reading it by the watched descriptor makes it quiet until the next event. */
static void settle(const struct cgroup *g, size_t which)
{
	char text[256];

	if (g->watched[which] >= 0)
		(void)!pread(g->watched[which], text, sizeof(text), 0);
}

uint64_t cgroup_memory_kills(const struct cgroup *g)
{
	settle(g, WATCH_MEMORY);
	return read_number(g->counters[COUNTER_KILLS], "oom_kill");
}

uint64_t cgroup_fork_refusals(const struct cgroup *g)
{
	settle(g, WATCH_PIDS);
	return read_number(g->counters[COUNTER_REFUSALS], "max");
}

uint64_t cgroup_memory_peak(const struct cgroup *g)
{
	return read_number(g->counters[COUNTER_MEMORY], "");
}

uint64_t cgroup_pids_peak(const struct cgroup *g)
{
	uint64_t peak = read_number(g->counters[COUNTER_PIDS], "");

	return peak > 0 ? peak - 1 : 0; /* without init */
}

/* The last process has just left: the kernel may need a moment to see it. */
static void remove_dir(const struct cgroup_dir *d)
{
	const struct timespec pause = { .tv_nsec = REMOVE_PAUSE_NS };

	for (unsigned i = 0; i < REMOVE_TRIES; i++) {
		if (unlinkat(d->parent, d->name, AT_REMOVEDIR) == 0 || errno != EBUSY)
			return;
		(void)nanosleep(&pause, NULL);
	}
}

pid_t cgroup_free(struct cgroup *g)
{
	pid_t guard;

	if (!g)
		return 0;
	for (size_t i = 0; i < WATCH_MAX_; i++)
		fd_close(g->watched[i]);
	for (size_t i = 0; i < COUNTER_MAX_; i++)
		fd_close(g->counters[i]);
	fd_close(g->events);
	/* it was never started, or somebody has killed it */
	if (g->guard > 0 && waitpid(g->guard, NULL, WNOHANG) != 0)
		g->guard = 0;
	guard = g->guard;
	fd_close(g->guard_fd); /* wakes it */
	for (size_t i = 0; i < g->n_dirs; i++) {
		struct cgroup_dir *d = &g->dirs[i];

		if (d->fd >= 0 && d->kind != CGROUP_SCOPE && !guard)
			remove_dir(d);
		fd_close(d->fd);
		fd_close(d->parent);
	}
	free(g);
	return guard;
}
