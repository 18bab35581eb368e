/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where groups are looked for and what is written to them, on trees of plain files: version 1,
 * version 2 in all the situations in which a process can find itself, and none at all.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/fd.h"
#include "base/text.h"
#include "supervise/cgroup.h"
#include "supervise/limit_internal.h"

static char root[64];
static struct arena *arena;
static const bool all[CGROUP_CONTROLLER_MAX_] = { true, true, true };

static void make(const char *path, const char *text)
{
	char full[512];
	int fd;

	(void)snprintf(full, sizeof(full), "%s%s", root, path);
	for (char *s = full + strlen(root) + 1; (s = strchr(s, '/')); *s++ = '/') {
		*s = '\0';
		(void)mkdir(full, 0755);
		*s = '/';
	}
	if (!text) {
		(void)mkdir(full, 0755);
		return;
	}
	fd = open(full, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	assert_int_equal(fd_write_all(fd, text, strlen(text)), 0);
	fd_close(fd);
}

static int set_up(void **state)
{
	(void)state;
	text_copy(root, sizeof(root), "/tmp/t_cgroup.XXXXXX");
	arena = arena_new();
	return mkdtemp(root) ? 0 : -1;
}

static int tear_down(void **state)
{
	char *const argv[] = { (char[]){ "rm" }, (char[]){ "-rf" }, root, NULL };
	pid_t pid = fork();

	(void)state;
	if (pid == 0) {
		(void)execv("/bin/rm", argv);
		_exit(127);
	}
	(void)waitpid(pid, NULL, 0);
	arena_free(arena);
	return 0;
}

static const struct cgroup_place *find(struct cgroup_places *places, enum cgroup_controller c)
{
	cgroup_find(arena, root, all, places);
	return &places->by[c];
}

static void assert_parent(const struct cgroup_place *p, enum cgroup_kind kind, const char *path)
{
	assert_int_equal(p->kind, kind);
	assert_string_equal(p->parent + strlen(root), path);
}

static void test_version_1(void **state)
{
	struct cgroup_places places;

	(void)state;
	make("/proc/self/cgroup", "4:memory:/a/b\n3:cpu,cpuacct:/a\n2:pids:/\n0::/\n");
	make("/sys/fs/cgroup/memory/a/b/", NULL);
	make("/sys/fs/cgroup/cpu,cpuacct/a/", NULL);
	make("/sys/fs/cgroup/pids/", NULL);
	assert_parent(find(&places, CGROUP_MEMORY), CGROUP_V1, "/sys/fs/cgroup/memory/a/b");
	assert_parent(find(&places, CGROUP_CPU), CGROUP_V1, "/sys/fs/cgroup/cpu,cpuacct/a");
	assert_parent(find(&places, CGROUP_PIDS), CGROUP_V1, "/sys/fs/cgroup/pids");
}

/* "cpu" is not "cpuset", and a controller that is not mounted is none. */
static void test_version_1_without(void **state)
{
	struct cgroup_places places;

	(void)state;
	make("/proc/self/cgroup", "3:cpuset:/\n4:memory:/gone\n");
	make("/sys/fs/cgroup/cpuset/", NULL);
	make("/sys/fs/cgroup/memory/", NULL);
	assert_int_equal(find(&places, CGROUP_CPU)->kind, CGROUP_NONE);
	assert_non_null(find(&places, CGROUP_CPU)->missing);
	assert_int_equal(find(&places, CGROUP_MEMORY)->kind, CGROUP_NONE);
}

static void make_unified(const char *group)
{
	char text[256];

	(void)snprintf(text, sizeof(text), "0::%s\n", group);
	make("/proc/self/cgroup", text);
	make("/sys/fs/cgroup/cgroup.controllers", "cpuset cpu io memory pids\n");
	make("/sys/fs/cgroup/cgroup.subtree_control", "memory pids\n");
}

static void make_group(const char *group, const char *controllers, const char *procs)
{
	char path[256];

	(void)snprintf(path, sizeof(path), "/sys/fs/cgroup%s/cgroup.controllers", group);
	make(path, controllers);
	(void)snprintf(path, sizeof(path), "/sys/fs/cgroup%s/cgroup.type", group);
	make(path, "domain\n");
	(void)snprintf(path, sizeof(path), "/sys/fs/cgroup%s/cgroup.subtree_control", group);
	make(path, "");
	(void)snprintf(path, sizeof(path), "/sys/fs/cgroup%s/cgroup.procs", group);
	make(path, procs);
}

static const char *own_pid(void)
{
	return arena_printf(arena, "%d\n", getpid());
}

/* Alone in a group that we may divide. */
static void test_delegated(void **state)
{
	struct cgroup_places places;

	(void)state;
	make_unified("/service");
	make_group("/service", "memory pids\n", own_pid());
	assert_parent(find(&places, CGROUP_MEMORY), CGROUP_V2, "/sys/fs/cgroup/service");
	assert_parent(find(&places, CGROUP_PIDS), CGROUP_V2, "/sys/fs/cgroup/service");
	/* not handed down to us */
	assert_int_equal(find(&places, CGROUP_CPU)->kind, CGROUP_NONE);
}

/* We went into a group of our own for an earlier run: the one above is to be used. */
static void test_delegated_again(void **state)
{
	struct cgroup_places places;

	(void)state;
	make_unified("/service/ambit-supervisor");
	make_group("/service", "memory pids\n", "");
	make_group("/service/ambit-supervisor", "memory pids\n", own_pid());
	assert_parent(find(&places, CGROUP_MEMORY), CGROUP_V2, "/sys/fs/cgroup/service");
}

/* With others in it a group cannot be divided. */
static void test_shared(void **state)
{
	struct cgroup_places places;

	(void)state;
	make_unified("/session");
	make_group("/session", "memory pids\n", arena_printf(arena, "1\n%d\n", getpid()));
	assert_int_equal(find(&places, CGROUP_MEMORY)->kind, CGROUP_NONE);
	assert_non_null(find(&places, CGROUP_MEMORY)->remedy);
}

static void make_socket(const char *path)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)snprintf(to.sun_path, sizeof(to.sun_path), "%.30s%.70s", root, path);
	assert_int_equal(bind(fd, (struct sockaddr *)&to, sizeof(to)), 0);
	fd_close(fd);
}

static void make_systemd(void)
{
	const char *dir = geteuid() == 0 ? "/run/systemd/"
					 : arena_printf(arena, "/run/user/%u/systemd/", geteuid());

	make(dir, NULL);
	make_socket(arena_printf(arena, "%sprivate", dir));
}

static void test_scope(void **state)
{
	struct cgroup_places places;

	(void)state;
	make_unified("/session");
	make_group("/session", "memory pids\n", "1\n");
	make_systemd();
	assert_int_equal(find(&places, CGROUP_MEMORY)->kind, CGROUP_SCOPE);
	assert_int_equal(find(&places, CGROUP_CPU)->kind, CGROUP_SCOPE);
}

/* The top belongs to systemd where there is one, else to root. */
static void test_top(void **state)
{
	struct cgroup_places places;

	(void)state;
	make_unified("/");
	assert_parent(find(&places, CGROUP_MEMORY), CGROUP_V2, "/sys/fs/cgroup");
	make_systemd();
	assert_int_equal(find(&places, CGROUP_MEMORY)->kind, CGROUP_SCOPE);
}

static void test_nothing(void **state)
{
	struct cgroup_places places;

	(void)state;
	for (enum cgroup_controller c = 0; c < CGROUP_CONTROLLER_MAX_; c++) {
		assert_int_equal(find(&places, c)->kind, CGROUP_NONE);
		assert_non_null(find(&places, c)->missing);
	}
	make("/proc/self/cgroup", "nonsense\n:\n::\n0:\n");
	assert_int_equal(find(&places, CGROUP_MEMORY)->kind, CGROUP_NONE);
}

static void assert_file(int dir, const char *name, const char *expected)
{
	_cleanup_free_ char *text = NULL;

	if (fd_read_file(dir, name, 4096, &text, NULL) < 0)
		fail_msg("%s was not written", name);
	assert_string_equal(text, expected);
}

/* As after the start of a child that is us. */
static void start(struct cgroup *g, int control)
{
	const struct sandbox_child child = { .init = getpid(), .control = control, .pidfd = -1 };
	struct error e = { 0 };

	assert_int_equal(cgroup_start(g, &child, &e), 0);
}

static void test_limits_are_written(void **state)
{
	const struct cgroup_limits limits = { .memory = 64 << 20, .pids = 20, .cpu = 1.5 };
	struct cgroup_places places;
	struct cgroup *g = NULL;
	struct error e = { 0 };
	int pair[2], dir;
	char word = 'x';

	(void)state;
	make_unified("/");
	make("/sys/fs/cgroup/cgroup.controllers", "cpu memory pids\n");
	(void)find(&places, CGROUP_MEMORY);
	assert_int_equal(cgroup_new(root, &places, &limits, &g, &e), 0);
	dir = cgroup_born_in(g);
	assert_true(dir >= 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	start(g, pair[0]);
	assert_file(dir, "memory.max", "67108864");
	assert_file(dir, "memory.swap.max", "0");
	assert_file(dir, "memory.oom.group", "1");
	assert_file(dir, "pids.max", "21"); /* and init */
	assert_file(dir, "cpu.max", "150000 100000");
	assert_file(dir, "../cgroup.subtree_control", "+memory +pids +cpu ");
	/* the child may go on, with nothing to enter */
	assert_int_equal(recv(pair[1], &word, 1, MSG_DONTWAIT), 1);
	make(arena_printf(arena, "/sys/fs/cgroup/%s", "x"), "");
	fd_close(pair[0]);
	fd_close(pair[1]);
	(void)waitpid(cgroup_free(g), NULL, 0);
}

/* One directory for each hierarchy; what is to be entered comes with the word. */
static void test_version_1_limits_are_written(void **state)
{
	const struct cgroup_limits limits = { .memory = 64 << 20, .pids = 20 };
	struct cgroup_places places;
	struct cgroup *g = NULL;
	struct error e = { 0 };
	int pair[2], fds[3];
	pid_t guard;
	char word = 'x';

	(void)state;
	make("/proc/self/cgroup", "4:memory:/a\n2:pids:/\n");
	make("/sys/fs/cgroup/memory/a/", NULL);
	make("/sys/fs/cgroup/pids/", NULL);
	(void)find(&places, CGROUP_MEMORY);
	assert_int_equal(cgroup_new(root, &places, &limits, &g, &e), 0);
	assert_int_equal(cgroup_born_in(g), -1);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	start(g, pair[0]);
	assert_int_equal(fd_receive_many(pair[1], &word, 1, fds, 3), 1);
	for (size_t i = 0; i < 2; i++) {
		static const char *const files[][2] = { { "memory.limit_in_bytes", "67108864" },
							{ "pids.max", "21" } };
		char path[64], at[256];
		ssize_t n;

		(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fds[i]);
		n = readlink(path, at, sizeof(at) - 1);
		assert_true(n > 0);
		at[n] = '\0';
		assert_true(text_ends(at, "/tasks"));
		*strrchr(at, '/') = '\0';
		assert_file(AT_FDCWD, arena_printf(arena, "%s/%s", at, files[i][0]), files[i][1]);
		fd_close(fds[i]);
	}
	assert_int_equal(fds[2], -1);
	fd_close(pair[0]);
	fd_close(pair[1]);
	guard = cgroup_free(g);
	assert_true(guard > 0);
	(void)waitpid(guard, NULL, 0);
}

/* What cannot be made is told, and the child not sent on. */
static void test_failure_is_told(void **state)
{
	const struct cgroup_limits limits = { .pids = 5 };
	const struct cgroup_places places = { .by[CGROUP_PIDS] = { CGROUP_V1, .parent = "/proc" } };
	struct sandbox_child child = { .init = getpid(), .pidfd = -1 };
	struct cgroup *g = NULL;
	struct error e = { 0 };
	int pair[2];
	char word;

	(void)state;
	assert_int_equal(cgroup_new(root, &places, &limits, &g, &e), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	child.control = pair[0];
	assert_true(cgroup_start(g, &child, &e) < 0);
	assert_non_null(strstr(e.text, "cannot "));
	assert_int_equal(recv(pair[1], &word, 1, MSG_DONTWAIT), -1);
	fd_close(pair[0]);
	fd_close(pair[1]);
	(void)waitpid(cgroup_free(g), NULL, 0);
}

static void test_events_are_read(void **state)
{
	const struct cgroup_limits limits = { .memory = 1 << 20, .pids = 5 };
	struct cgroup_places places;
	struct cgroup *g = NULL;
	struct error e = { 0 };
	int pair[2];
	char name[256], path[512];
	ssize_t n;

	(void)state;
	make_unified("/");
	(void)find(&places, CGROUP_MEMORY);
	assert_int_equal(cgroup_new(root, &places, &limits, &g, &e), 0);
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", cgroup_born_in(g));
	n = readlink(path, name, sizeof(name) - 1);
	assert_true(n > 0);
	name[n] = '\0';
	assert_int_equal(cgroup_memory_kills(g), 0);
	make(arena_printf(arena, "%s/memory.events", name + strlen(root)),
	     "low 0\nhigh 0\nmax 9\noom 3\noom_kill 2\noom_group_kill 1\n");
	make(arena_printf(arena, "%s/pids.events", name + strlen(root)), "max 7\n");
	make(arena_printf(arena, "%s/memory.peak", name + strlen(root)), "1048576\n");
	make(arena_printf(arena, "%s/pids.peak", name + strlen(root)), "6\n");
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	start(g, pair[0]);
	assert_int_equal(cgroup_memory_kills(g), 2);
	assert_int_equal(cgroup_fork_refusals(g), 7);
	assert_int_equal(cgroup_memory_peak(g), 1048576);
	assert_int_equal(cgroup_pids_peak(g), 5); /* without init */
	fd_close(pair[0]);
	fd_close(pair[1]);
	(void)waitpid(cgroup_free(g), NULL, 0);
}

/* --- what is chosen, and how it is said ------------------------------------------- */

static void test_choice(void **state)
{
	struct cgroup_places places = { 0 };
	struct policy p = { .limits = { .memory = 1, .pids = 1, .cpu = 2 } };
	enum limit_means means[LIMIT_MAX_] = { 0 };
	const char *note = NULL;
	struct error e = { 0 };

	(void)state;
	for (size_t i = 0; i < CGROUP_CONTROLLER_MAX_; i++)
		places.by[i].missing = "none here";
	assert_int_equal(limits_choose(arena, &p, &places, means, &note, &e), 0);
	assert_int_equal(means[LIMIT_MEMORY], MEANS_SAMPLED);
	assert_int_equal(means[LIMIT_CPU], MEANS_AFFINITY);
	assert_int_equal(means[LIMIT_PIDS], geteuid() ? MEANS_RLIMIT : MEANS_SAMPLED);
	assert_int_equal(means[LIMIT_DISK], MEANS_NONE);

	/* half a processor needs a cgroup, or to be content with a whole one */
	p.limits.cpu = 0.5;
	assert_int_equal(limits_choose(arena, &p, &places, means, &note, &e), -ENOTSUP);
	assert_non_null(strstr(e.text, "--cpu 1"));
	p.fallback = FALLBACK_WARN;
	assert_int_equal(limits_choose(arena, &p, &places, means, &note, &e), 0);
	assert_non_null(strstr(note, "1 processors instead of 0.5"));
	places.by[CGROUP_CPU].kind = CGROUP_V2;
	p.fallback = FALLBACK_ENFORCE;
	assert_int_equal(limits_choose(arena, &p, &places, means, &note, &e), 0);
	assert_int_equal(means[LIMIT_CPU], MEANS_CGROUP2);
}

static void test_values_as_text(void **state)
{
	static const struct {
		struct policy_limits limits;
		enum limit which;
		unsigned times;
		const char *text;
	} cases[] = {
		{ { .memory = 512 << 20 }, LIMIT_MEMORY, 1, "512m" },
		{ { .memory = 512 << 20 }, LIMIT_MEMORY, 2, "1g" },
		{ { .memory = 1500 }, LIMIT_MEMORY, 1, "1500" },
		{ { .disk = 3ULL << 40 }, LIMIT_DISK, 1, "3t" },
		{ { .pids = 200 }, LIMIT_PIDS, 2, "400" },
		{ { .cpu = 1.5 }, LIMIT_CPU, 1, "1.5" },
		{ { .timeout_ms = 90000 }, LIMIT_TIMEOUT, 1, "90s" },
		{ { .timeout_ms = 90000 }, LIMIT_TIMEOUT, 2, "3m" },
		{ { .timeout_ms = 300 }, LIMIT_TIMEOUT, 1, "300ms" },
		{ { .timeout_ms = 86400000 }, LIMIT_TIMEOUT, 1, "1d" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		_cleanup_buf_ struct buf b = BUF_INIT(BUF_MAX_TEXT);

		limit_value(&cases[i].limits, cases[i].which, cases[i].times, &b);
		assert_string_equal(buf_str(&b), cases[i].text);
		assert_true(limit_is_set(&cases[i].limits, cases[i].which));
	}
}

#define TREE_TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TREE_TEST(test_version_1),
		TREE_TEST(test_version_1_without),
		TREE_TEST(test_delegated),
		TREE_TEST(test_delegated_again),
		TREE_TEST(test_shared),
		TREE_TEST(test_scope),
		TREE_TEST(test_top),
		TREE_TEST(test_nothing),
		TREE_TEST(test_limits_are_written),
		TREE_TEST(test_version_1_limits_are_written),
		TREE_TEST(test_failure_is_told),
		TREE_TEST(test_events_are_read),
		TREE_TEST(test_choice),
		TREE_TEST(test_values_as_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
