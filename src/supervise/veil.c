/* SPDX-License-Identifier: Apache-2.0 */
#include "supervise/veil.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/sys.h"
#include "base/text.h"
#include "policy/match_path.h"
#include "sandbox/native/native.h"

#define SLACK_NS 20000000 /* directories have their times from a clock that is this much behind */
#define EVENTS_BYTES 4096

struct watched {
	const char *path;
	int wd;
	bool listed; /* a pattern is about names in it */
};

struct veil {
	struct arena *a;
	const struct policy *policy;
	const struct plan *plan;
	int changes; /* inotify */
	const char **places; /* that are hidden, or will be */
	size_t n_places;
	struct watched *dirs; /* all that lead to one of them */
	size_t n_dirs;
	const char **told;
	size_t n_told;
	bool all; /* each place is to be looked at */
};

/* Paths that may have to be hidden. */
struct candidates {
	struct arena *a;
	const char **v;
	size_t n;
};

static void add_place(struct veil *v, const char *path)
{
	/* the kernel's own files are not replaced by anybody */
	if (!path_within(path, "/sys") && !path_within(path, "/proc"))
		*ARENA_PUSH(v->a, v->places, v->n_places) = path;
}

/* Is what will stand there the host's, and not the command's to write? */
static bool is_hosts(const struct plan *plan, const char *path)
{
	bool hosts = !plan->root_writable;

	for (size_t i = 0; i < plan->n_mounts; i++) { /* the innermost is the last */
		if (path_within(path, plan->mounts[i].path))
			hosts = plan->mounts[i].kind == MOUNT_RO;
	}
	return hosts;
}

/* Files that are not there yet: not in writable places, where the command makes its own. */
static bool will_be_hidden(const struct veil *v, const char *path)
{
	struct decision d;

	if (!is_hosts(v->plan, path))
		return false;
	policy_decide_path(v->policy, ACCESS_READ, path, &d);
	return d.verdict == VERDICT_DENY;
}

static struct watched *find_dir(const struct veil *v, const char *path)
{
	for (size_t i = 0; i < v->n_dirs; i++) {
		if (strcmp(v->dirs[i].path, path) == 0)
			return &v->dirs[i];
	}
	return NULL;
}

static void add_dirs_of(struct veil *v, const char *place)
{
	for (size_t len = strlen(place); len > 1;) {
		const char *dir;

		while (len > 1 && place[len - 1] != '/')
			len--;
		len -= len > 1;
		dir = len ? arena_strndup(v->a, place, len) : "/";
		if (find_dir(v, dir))
			return; /* and those around it */
		*ARENA_PUSH(v->a, v->dirs, v->n_dirs) = (struct watched){ .path = dir, .wd = -1 };
	}
}

/* Patterns for names in one directory; in whole trees there is too much to watch. */
static void add_pattern(struct veil *v, const char *pattern)
{
	size_t len = pattern_fixed_len(pattern);
	const char *rest = pattern + len + (pattern[len] == '/');
	char *dir = arena_strndup(v->a, pattern, len);
	struct watched *w;

	if (len < 2 || strchr(rest, '/') || strstr(rest, "**") || !is_hosts(v->plan, dir))
		return;
	add_dirs_of(v, path_join(v->a, dir, "name"));
	w = find_dir(v, dir);
	if (w)
		w->listed = true;
}

static void find_places(struct veil *v)
{
	const struct path_rules *rules = &v->policy->fs.rules;

	for (size_t i = 0; i < v->plan->n_mounts; i++) {
		const struct mount_step *m = &v->plan->mounts[i];

		if ((m->kind == MOUNT_HIDE_DIR || m->kind == MOUNT_HIDE_FILE) && !m->make_point)
			add_place(v, m->path);
	}
	for (size_t i = 0; i < rules->n; i++) {
		const struct path_rule *r = &rules->v[i];

		if (r->access != ACCESS_READ || r->verdict != VERDICT_DENY)
			continue;
		if (r->glob)
			add_pattern(v, r->real);
		else if (r->absent && will_be_hidden(v, r->real))
			add_place(v, r->real);
	}
	for (size_t i = 0; i < v->n_places; i++)
		add_dirs_of(v, v->places[i]);
}

/* Again when one may be another directory than before: the kernel knows those it watches already. */
static int watch_dirs(struct veil *v)
{
	for (size_t i = 0; i < v->n_dirs; i++) {
		int wd = inotify_add_watch(v->changes, v->dirs[i].path,
					   IN_CREATE | IN_MOVED_TO | IN_ONLYDIR);

		if (wd < 0 && errno == ENOSPC)
			return -errno;
		v->dirs[i].wd = wd; /* -1: there is none, or none that we can look into */
	}
	return 0;
}

/* Was anything made in one of the directories since? */
static bool were_changed(const struct veil *v, uint64_t started_ms)
{
	struct timespec now;
	int64_t since;

	(void)clock_gettime(CLOCK_REALTIME, &now);
	since = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec -
		(int64_t)(sys_now_ms() - started_ms) * 1000000 - SLACK_NS;
	for (size_t i = 0; i < v->n_dirs; i++) {
		struct stat st;

		if (stat(v->dirs[i].path, &st) == 0 &&
		    (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec >= since)
			return true;
	}
	return false;
}

int veil_new(struct arena *a, const struct policy *p, const struct plan *plan, uint64_t started_ms,
	     struct veil **ret)
{
	struct veil *v = arena_array(a, 1, sizeof(*v));
	int r;

	*ret = NULL;
	*v = (struct veil){ .a = a, .policy = p, .plan = plan, .changes = -1 };
	find_places(v);
	if (!v->n_dirs)
		return 0;
	v->changes = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	r = v->changes < 0 ? -errno : watch_dirs(v);
	if (r < 0) {
		fd_close(v->changes);
		return r;
	}
	v->all = were_changed(v, started_ms);
	*ret = v;
	return 0;
}

void veil_free(struct veil *v)
{
	if (v)
		fd_close(v->changes);
}

int veil_fd(const struct veil *v)
{
	return v->changes;
}

/* --- what appeared -------------------------------------------------------------------------- */

static void add_candidate(struct candidates *c, const char *path)
{
	*ARENA_PUSH(c->a, c->v, c->n) = path;
}

static void take_event(struct veil *v, const struct inotify_event *ev, struct candidates *c)
{
	if (ev->mask & IN_Q_OVERFLOW)
		v->all = true;
	for (size_t i = 0; i < v->n_dirs && ev->len > 0; i++) {
		const char *path;

		if (v->dirs[i].wd != ev->wd)
			continue;
		path = path_join(c->a, v->dirs[i].path, ev->name);
		for (size_t k = 0; k < v->n_places; k++) {
			if (path_within(v->places[k], path))
				add_candidate(c, v->places[k]);
		}
		if (will_be_hidden(v, path)) /* by a pattern */
			add_candidate(c, path);
	}
}

/* All that might have been missed. */
static void take_all(const struct veil *v, struct candidates *c)
{
	for (size_t i = 0; i < v->n_places; i++)
		add_candidate(c, v->places[i]);
	for (size_t i = 0; i < v->n_dirs; i++) {
		DIR *dir = v->dirs[i].listed ? opendir(v->dirs[i].path) : NULL;
		const struct dirent *entry;

		while (dir && (entry = readdir(dir))) {
			const char *path = path_join(c->a, v->dirs[i].path, entry->d_name);

			if (will_be_hidden(v, path))
				add_candidate(c, path);
		}
		if (dir)
			(void)closedir(dir);
	}
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Each path once. */
static void sort(struct candidates *c)
{
	size_t kept = 0;

	if (c->n)
		qsort(c->v, c->n, sizeof(*c->v), by_text);
	for (size_t i = 0; i < c->n; i++) {
		if (!kept || strcmp(c->v[kept - 1], c->v[i]) != 0)
			c->v[kept++] = c->v[i];
	}
	c->n = kept;
}

static void take_events(struct veil *v, struct candidates *c)
{
	_Alignas(struct inotify_event) char events[EVENTS_BYTES];
	ssize_t n;

	while ((n = read(v->changes, events, sizeof(events))) > 0) {
		for (const char *at = events; at < events + n;) {
			const struct inotify_event *ev = (const void *)at;

			take_event(v, ev, c);
			at += sizeof(*ev) + ev->len;
		}
	}
	if (v->all)
		take_all(v, c);
	v->all = false;
	sort(c);
}

/* --- hiding it ------------------------------------------------------------------------------- */

static _Noreturn void hide_main(const struct candidates *c, int user_ns, int mount_ns, int out)
{
	bool *hidden = arena_array(c->a, c->n, sizeof(*hidden));
	struct error e = { 0 };

	if (native_mask(user_ns, mount_ns, c->v, c->n, hidden, &e) < 0 && !e.code)
		e.code = EIO;
	_exit(fd_write_all(out, &e, sizeof(e)) < 0 || fd_write_all(out, hidden, c->n) < 0 ? 1 : 0);
}

static bool read_whole(int fd, void *ret, size_t len)
{
	for (size_t got = 0; got < len;) {
		ssize_t n = read(fd, (char *)ret + got, len - got);

		if (n <= 0 && !(n < 0 && errno == EINTR))
			return false;
		got += n > 0 ? (size_t)n : 0;
	}
	return true;
}

/* In a process of its own, which has to enter the sandbox's namespaces. */
static int hide(const struct candidates *c, int user_ns, int mount_ns, bool *ret_hidden,
		struct error *e)
{
	int ends[2];
	pid_t pid;
	bool heard;

	if (sys_pipe(ends) < 0)
		return error_set(e, errno, "cannot make a pipe: %s", strerror(errno));
	pid = fork();
	if (pid == 0)
		hide_main(c, user_ns, mount_ns, ends[1]);
	fd_close(ends[1]);
	heard = pid > 0 && read_whole(ends[0], e, sizeof(*e)) &&
		read_whole(ends[0], ret_hidden, c->n);
	fd_close(ends[0]);
	if (pid > 0)
		(void)waitpid(pid, NULL, 0);
	return !heard ? error_set(e, ECHILD,
				  "what appeared outside, where nothing may be read, cannot be "
				  "hidden: %s",
				  pid < 0 ? "no process can be started"
					  : "who was to do it is gone")
		      : -e->code;
}

static bool is_news(struct veil *v, const char *path)
{
	for (size_t i = 0; i < v->n_told; i++) {
		if (strcmp(v->told[i], path) == 0)
			return false;
	}
	*ARENA_PUSH(v->a, v->told, v->n_told) = arena_strdup(v->a, path);
	return true;
}

int veil_step(struct veil *v, int user_ns, int mount_ns, void (*told)(void *ctx, const char *path),
	      void *ctx, struct error *e)
{
	_cleanup_arena_ struct arena *scratch = arena_new();
	struct candidates c = { .a = scratch };
	bool *hidden;
	int r;

	take_events(v, &c);
	if (!c.n)
		return 0;
	hidden = arena_array(scratch, c.n, sizeof(*hidden));
	r = watch_dirs(v); /* before looking: what comes later is an event */
	r = r < 0 ? error_set(e, -r, "cannot watch what is hidden: %s", strerror(-r))
		  : hide(&c, user_ns, mount_ns, hidden, e);
	if (r < 0)
		return r;
	for (size_t i = 0; i < c.n; i++) {
		if (hidden[i] && is_news(v, c.v[i]))
			told(ctx, c.v[i]);
	}
	return 0;
}
