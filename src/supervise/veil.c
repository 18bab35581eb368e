/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each place that may have to be hidden is walked to as the kernel does, through the links as they
 * are now: every directory in which a name is looked up is watched before it is looked at, so that
 * whatever changes later is an event. An event about one of those names means that the place may
 * be another object than before; then all is walked anew.
 *
 * How much a user may watch is limited, and the command is the same user: where nothing is left,
 * the directories are looked at now and then instead, for a change since the last look.
 */
#include "supervise/veil.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
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
#define CLOSE_PAUSE_NS 1000000 /* until ours is closed */
#define EVENTS_BYTES 4096
#define LINKS_MAX 40 /* as the kernel follows */
#define TABLE_MIN 256
/* IN_ATTRIB: what could not be read, and so is not hidden, may be readable now */
#define CHANGES (IN_CREATE | IN_MOVED_TO | IN_ATTRIB | IN_ONLYDIR)

/* What may have to be hidden: what this path leads to, or names in that directory. */
struct place {
	const char *path;
	const char *pattern; /* of the names; NULL = the place itself */
	bool later; /* not hidden from the start: what the command makes is its own */
};

/* A name on the way to places, by its canonical path. */
struct node {
	const char *path;
	size_t hash;
	enum { NODE_UNSEEN, NODE_ABSENT, NODE_PLAIN, NODE_LINK } kind;
	const char *target; /* of a link */
	enum { HOSTS_UNKNOWN, HOSTS_NOT, HOSTS_OWN } hosts;
	bool watched; /* as a directory, or that was tried */
	int wd;
	size_t *places; /* that it leads to */
	size_t n_places;
	size_t *lists; /* places with a pattern, whose directory it is */
	size_t n_lists;
};

struct veil {
	struct arena *a;
	const struct policy *policy;
	const struct plan *plan;
	int changes; /* inotify; -1 = look now and then */
	int64_t looked_ns; /* when they were looked at last */
	struct place *places;
	size_t n_places;
	struct arena *walk; /* what follows, until all is walked anew */
	struct node **nodes;
	size_t n_nodes;
	struct node **table; /* the same by hash; a power of two, at most half full */
	size_t table_size;
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

/* --- which places ---------------------------------------------------------------------------- */

static int compare_path(const void *path, const void *step)
{
	return path_compare(path, ((const struct mount_step *)step)->path);
}

/* The mounts are in path order, each path once. */
static const struct mount_step *mount_at(const struct plan *plan, const char *path)
{
	return plan->n_mounts ? bsearch(path, plan->mounts, plan->n_mounts, sizeof(*plan->mounts),
					compare_path)
			      : NULL;
}

/* Is what will stand there the host's, and not the command's to write? */
static bool is_hosts(const struct plan *plan, const char *path)
{
	char part[PATH_MAX];

	if (strlen(path) >= sizeof(part))
		return false;
	text_copy(part, sizeof(part), path);
	for (char *slash; (slash = strrchr(part, '/')) != NULL; *slash = '\0') {
		const struct mount_step *m = mount_at(plan, part); /* the innermost decides */

		if (m)
			return m->kind == MOUNT_RO;
	}
	return !plan->root_writable;
}

static bool is_denied(const struct veil *v, const char *path)
{
	struct decision d;

	policy_decide_path(v->policy, ACCESS_READ, path, &d);
	return d.verdict == VERDICT_DENY;
}

/* Files that are not there yet: not in writable places, where the command makes its own. */
static bool will_be_hidden(const struct veil *v, const char *path)
{
	return is_hosts(v->plan, path) && is_denied(v, path);
}

static bool is_hidden_now(const struct plan *plan, const char *path)
{
	const struct mount_step *m = mount_at(plan, path);

	return m && (m->kind == MOUNT_HIDE_DIR || m->kind == MOUNT_HIDE_FILE);
}

/* The kernel's own files are not replaced by anybody. */
static bool is_kernels(const char *path)
{
	return path_within(path, "/sys") || path_within(path, "/proc");
}

static void add_place(struct veil *v, struct place place)
{
	if (!is_kernels(place.path))
		*ARENA_PUSH(v->a, v->places, v->n_places) = place;
}

/* Patterns for names in one directory; in whole trees there is too much to watch. */
static void add_pattern(struct veil *v, const char *pattern)
{
	size_t len = pattern_fixed_len(pattern);
	const char *rest = pattern + len + (pattern[len] == '/');
	char *dir = arena_strndup(v->a, pattern, len);

	if (len >= 2 && !strchr(rest, '/') && !strstr(rest, "**") && is_hosts(v->plan, dir))
		add_place(v, (struct place){ dir, pattern, true });
}

/* Is the deepest directory that both have the same one? Then what will be at one is at the other. */
static bool will_be_same(struct arena *a, const char *path, const char *other)
{
	struct stat st, st_other;

	while (stat(path, &st) < 0) {
		if (errno != ENOENT || strcmp(path, "/") == 0 || strcmp(other, "/") == 0)
			return false;
		path = path_absolute(a, path, "..");
		other = path_absolute(a, other, "..");
	}
	return stat(other, &st_other) == 0 && st.st_dev == st_other.st_dev &&
	       st.st_ino == st_other.st_ino;
}

/* A rule that names this very place means it; what the managed file hides, only the managed file's. */
static bool is_opened(const struct veil *v, const struct path_rule *hidden, const char *path)
{
	struct decision d;

	policy_decide_path(v->policy, ACCESS_READ, path, &d);
	return d.rule && d.verdict == VERDICT_ALLOW && strcmp(d.rule->real, path) == 0 &&
	       (!hidden->locked || layer_is_managed(d.rule->origin.layer));
}

/* What is not there yet will be seen through the other mounts of its file system too. */
static void add_elsewhere(struct veil *v, const struct path_rule *r,
			  const struct view_mount *mounts, size_t n)
{
	const char *const *others = NULL;
	size_t n_others = plan_seen_elsewhere(v->a, mounts, n, r->real, &others);

	for (size_t i = 0; i < n_others; i++) {
		if (is_hosts(v->plan, others[i]) && !is_opened(v, r, others[i]) &&
		    will_be_same(v->a, r->real, others[i]))
			add_place(v, (struct place){ others[i], NULL, true });
	}
}

static void add_rule(struct veil *v, const struct path_rule *r, const struct view_mount *mounts,
		     size_t n)
{
	bool linked = strcmp(r->path, r->real) != 0, hidden;

	if (r->glob) {
		add_pattern(v, r->real);
		if (linked)
			add_pattern(v, r->path);
		return;
	}
	hidden = is_hidden_now(v->plan, r->real);
	if (!hidden && will_be_hidden(v, r->real)) { /* absent, or not to be read by us now */
		add_place(v, (struct place){ r->real, NULL, true });
		add_elsewhere(v, r, mounts, n);
	}
	/* links on the way may lead elsewhere one day, or give way to the secret itself */
	if (linked && is_hosts(v->plan, r->path) && (hidden || is_denied(v, r->real)))
		add_place(v, (struct place){ r->path, NULL, !hidden });
}

static void find_places(struct veil *v)
{
	const struct path_rules *rules = &v->policy->fs.rules;
	const struct view_mount *mounts = NULL;
	size_t n = path_host_view.mounts(&path_host_view, v->a, &mounts);

	for (size_t i = 0; i < v->plan->n_mounts; i++) {
		const struct mount_step *m = &v->plan->mounts[i];

		if ((m->kind == MOUNT_HIDE_DIR || m->kind == MOUNT_HIDE_FILE) && !m->make_point)
			add_place(v, (struct place){ m->path, NULL, false });
	}
	for (size_t i = 0; i < rules->n; i++) {
		if (rules->v[i].access == ACCESS_READ && rules->v[i].verdict == VERDICT_DENY)
			add_rule(v, &rules->v[i], mounts, n);
	}
}

/* --- the ways to them ------------------------------------------------------------------------ */

static size_t hash_of(const char *text)
{
	size_t h = 5381;

	while (*text)
		h = h * 33 + (unsigned char)*text++;
	return h;
}

/* Where it is, or belongs. */
static struct node **find_slot(const struct veil *v, const char *path, size_t hash)
{
	size_t at = hash & (v->table_size - 1);

	while (v->table[at] &&
	       (v->table[at]->hash != hash || strcmp(v->table[at]->path, path) != 0))
		at = (at + 1) & (v->table_size - 1);
	return &v->table[at];
}

static void resize_table(struct veil *v, size_t size)
{
	v->table_size = size;
	v->table = arena_array(v->walk, size, sizeof(struct node *));
	for (size_t i = 0; i < v->n_nodes; i++)
		*find_slot(v, v->nodes[i]->path, v->nodes[i]->hash) = v->nodes[i];
}

static struct node *find_node(const struct veil *v, const char *path)
{
	return *find_slot(v, path, hash_of(path));
}

static struct node *get_node(struct veil *v, const char *path)
{
	size_t hash = hash_of(path);
	struct node *node = *find_slot(v, path, hash);

	if (node)
		return node;
	node = arena_alloc(v->walk, sizeof(*node));
	*node = (struct node){ .path = path, .hash = hash, .wd = -1 };
	*ARENA_PUSH(v->walk, v->nodes, v->n_nodes) = node;
	if (v->n_nodes > v->table_size / 2)
		resize_table(v, v->table_size * 2);
	else
		*find_slot(v, path, hash) = node;
	return node;
}

/* The kernel knows those that it watches already. */
static void watch(struct veil *v, struct node *dir)
{
	if (dir->watched)
		return;
	dir->watched = true;
	if (v->changes >= 0)
		dir->wd = inotify_add_watch(v->changes, dir->path, CHANGES);
	/* otherwise there is none, or none that we can look into */
	if (v->changes >= 0 && dir->wd < 0 && (errno == ENOSPC || errno == ENOMEM))
		fd_close(TAKE_FD(v->changes));
}

static void look(struct veil *v, struct node *node)
{
	char text[PATH_MAX];
	ssize_t n;

	if (node->kind != NODE_UNSEEN)
		return;
	n = readlink(node->path, text, sizeof(text));
	node->kind = n > 0 ? NODE_LINK : n < 0 && errno == EINVAL ? NODE_PLAIN : NODE_ABSENT;
	if (n > 0)
		node->target = arena_strndup(v->walk, text, (size_t)n);
}

static bool belongs_to_command(const struct veil *v, struct node *node)
{
	if (node->hosts == HOSTS_UNKNOWN)
		node->hosts = is_hosts(v->plan, node->path) ? HOSTS_OWN : HOSTS_NOT;
	return node->hosts == HOSTS_NOT;
}

static void walk_to(struct veil *v, size_t which)
{
	const struct place *place = &v->places[which];
	struct node *at = get_node(v, "/");
	const char *rest = place->path;

	for (unsigned links = 0; links <= LINKS_MAX && !is_kernels(at->path);) {
		size_t n = strcspn(rest += strspn(rest, "/"), "/");
		struct node *next;

		if (n == 0)
			break;
		next = get_node(v,
				path_absolute(v->walk, at->path, arena_strndup(v->walk, rest, n)));
		rest += n;
		if (strlen(next->path) <= strlen(at->path)) { /* "." or ".." */
			at = next;
			continue;
		}
		watch(v, at);
		look(v, next);
		if (!place->later || !belongs_to_command(v, next))
			*ARENA_PUSH(v->walk, next->places, next->n_places) = which;
		if (next->kind == NODE_ABSENT)
			return;
		at = next;
		if (next->kind != NODE_LINK)
			continue;
		links++;
		rest = arena_printf(v->walk, "%s/%s", next->target, rest);
		at = get_node(v, *rest == '/' ? "/" : path_absolute(v->walk, next->path, ".."));
	}
	if (!place->pattern)
		return;
	*ARENA_PUSH(v->walk, at->lists, at->n_lists) = which;
	watch(v, at);
}

static void walk_all(struct veil *v)
{
	arena_reset(v->walk);
	v->nodes = NULL;
	v->n_nodes = 0;
	resize_table(v, TABLE_MIN);
	for (size_t i = 0; i < v->n_places; i++)
		walk_to(v, i);
}

static int64_t now_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_REALTIME, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Was anything made in one of the directories since the last look? This is the next one. */
static bool were_changed(struct veil *v)
{
	int64_t since = v->looked_ns - SLACK_NS;

	v->looked_ns = now_ns();
	for (size_t i = 0; i < v->n_nodes; i++) {
		struct stat st;

		/* not the time of the last change of names, which anybody can set */
		if (v->nodes[i]->watched && stat(v->nodes[i]->path, &st) == 0 &&
		    (int64_t)st.st_ctim.tv_sec * 1000000000 + st.st_ctim.tv_nsec >= since)
			return true;
	}
	return false;
}

bool veil_is_needed(const struct policy *p)
{
	for (size_t i = 0; i < p->fs.rules.n; i++) {
		if (p->fs.rules.v[i].access == ACCESS_READ &&
		    p->fs.rules.v[i].verdict == VERDICT_DENY)
			return true;
	}
	return false;
}

int veil_reserve(void)
{
	return inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
}

struct veil *veil_new(struct arena *a, const struct policy *p, const struct plan *plan,
		      uint64_t started_ms, int changes)
{
	struct veil *v = arena_array(a, 1, sizeof(*v));

	*v = (struct veil){ .a = a, .policy = p, .plan = plan, .changes = changes };
	v->walk = arena_new();
	find_places(v);
	walk_all(v);
	v->looked_ns = now_ns() - (int64_t)(sys_now_ms() - started_ms) * 1000000;
	v->all = were_changed(v);
	return v;
}

/*
 * Holds the watch, and nothing else, until nobody else does any more, and leaves with it. The end of
 * `told` tells that all else is let go of.
 */
static _Noreturn void close_main(int watch, int told)
{
	const int keep[] = { watch, told };

	sys_close_all_but(0, keep, ARRAY_LEN(keep));
	if (chdir("/") < 0) /* what we were in can be unmounted */
		_exit(1);
	fd_close(told);
	(void)nanosleep(&(struct timespec){ .tv_nsec = CLOSE_PAUSE_NS }, NULL);
	_exit(0);
}

/*
 * The kernel keeps whoever closes the last descriptor of a watch until no processor can be looking
 * at what was watched: for 10 to 20 ms. So that is not us. We only wait until that one has let go
 * of everything else.
 */
static pid_t close_elsewhere(int fd)
{
	pid_t pid = -1;
	char none;
	int ends[2];

	if (fd >= 0 && sys_pipe(ends) >= 0) {
		pid = fork();
		if (pid == 0)
			close_main(fd, ends[1]);
		fd_close(ends[1]);
		while (pid > 0 && read(ends[0], &none, 1) < 0 && errno == EINTR)
			;
		fd_close(ends[0]);
	}
	fd_close(fd);
	return pid;
}

pid_t veil_free(struct veil *v)
{
	pid_t pid;

	if (!v)
		return -1;
	pid = close_elsewhere(v->changes);
	arena_free(v->walk);
	return pid;
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

/* A name in the directory of a pattern, which may be spelled otherwise than the policy has it. */
static void take_name(const struct veil *v, const struct place *place, const char *name,
		      struct candidates *c)
{
	const char *path = path_join(c->a, place->path, name);

	if (is_hosts(v->plan, path) &&
	    (is_denied(v, path) || pattern_matches(place->pattern, path)))
		add_candidate(c, path);
}

static void take_place(const struct veil *v, const struct place *place, struct candidates *c)
{
	DIR *dir = place->pattern ? opendir(place->path) : NULL;
	const struct dirent *entry;

	if (!place->pattern)
		add_candidate(c, place->path);
	while (dir && (entry = readdir(dir))) {
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			take_name(v, place, entry->d_name, c);
	}
	if (dir)
		(void)closedir(dir);
}

/* Something in the directory; `places` gets those that it leads to. */
static void take_change(const struct veil *v, const struct node *dir, const char *name,
			bool *ret_places, struct candidates *c)
{
	const char *path = path_join(c->a, dir->path, name);
	const struct node *node = find_node(v, path);

	for (size_t i = 0; node && i < node->n_places; i++)
		ret_places[node->places[i]] = true;
	for (size_t i = 0; i < dir->n_lists; i++)
		take_name(v, &v->places[dir->lists[i]], name, c);
	if (will_be_hidden(v, path)) /* by a pattern for a whole tree */
		add_candidate(c, path);
}

static void take_event(struct veil *v, const struct inotify_event *ev, bool *ret_places,
		       struct candidates *c)
{
	if (ev->mask & IN_Q_OVERFLOW)
		v->all = true;
	for (size_t i = 0; i < v->n_nodes && ev->len > 0; i++) {
		if (v->nodes[i]->wd == ev->wd)
			take_change(v, v->nodes[i], ev->name, ret_places, c);
	}
}

static void take_events(struct veil *v, bool *ret_places, struct candidates *c)
{
	_Alignas(struct inotify_event) char events[EVENTS_BYTES];
	ssize_t n;

	while ((n = read(v->changes, events, sizeof(events))) > 0) {
		for (const char *at = events; at < events + n;) {
			const struct inotify_event *ev = (const void *)at;

			take_event(v, ev, ret_places, c);
			at += sizeof(*ev) + ev->len;
		}
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

/* Everything that may have to be hidden now. Walks anew before it looks: what comes later is an event. */
static void find_candidates(struct veil *v, struct candidates *c)
{
	bool *changed = arena_array(c->a, v->n_places + 1, sizeof(*changed)), any;

	if (v->changes >= 0)
		take_events(v, changed, c);
	else
		v->all |= were_changed(v);
	any = v->all || c->n > 0;
	for (size_t i = 0; i < v->n_places; i++) {
		changed[i] |= v->all;
		any |= changed[i];
	}
	v->all = false;
	if (any)
		walk_all(v);
	for (size_t i = 0; i < v->n_places; i++) {
		if (changed[i])
			take_place(v, &v->places[i], c);
	}
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
	struct error said = { 0 };
	int ends[2];
	pid_t pid;
	bool heard;

	if (sys_pipe(ends) < 0)
		return error_set(e, errno, "cannot make a pipe: %s", strerror(errno));
	pid = fork();
	if (pid == 0)
		hide_main(c, user_ns, mount_ns, ends[1]);
	fd_close(ends[1]);
	heard = pid > 0 && read_whole(ends[0], &said, sizeof(said)) &&
		read_whole(ends[0], ret_hidden, c->n);
	fd_close(ends[0]);
	if (pid > 0)
		(void)waitpid(pid, NULL, 0);
	if (!heard)
		return error_set(
			e, ECHILD,
			"what appeared outside, where nothing may be read, cannot be hidden: "
			"%s",
			pid < 0 ? "no process can be started" : "who was to do it is gone");
	if (said.code)
		*e = said;
	return -said.code;
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

	find_candidates(v, &c);
	if (!c.n)
		return 0;
	hidden = arena_array(scratch, c.n, sizeof(*hidden));
	r = hide(&c, user_ns, mount_ns, hidden, e);
	if (r < 0)
		return r;
	for (size_t i = 0; i < c.n; i++) {
		if (hidden[i] && is_news(v, c.v[i]))
			told(ctx, c.v[i]);
	}
	return 0;
}
