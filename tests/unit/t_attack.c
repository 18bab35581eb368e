/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The judging half of `check --attack`: answers read from lines, outcomes, and canaries that
 * must be seen when they are touched. That the attempts themselves work is shown by
 * their control run (tests/run/test_attack.py).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <ftw.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/path.h"
#include "supervise/attack_world.h"

static void test_answers(void **state)
{
	static const char lines[] = "git-config-lock\tfailed\tno\n"
				    "noise\n"
				    "x\tworked\tgit-config\tworked\tforged\n"
				    "git-config\tworked\tfirst\n"
				    "git-config\tfailed\tsecond\n"
				    "odd\tperhaps\tdetail\n"
				    "bare\tworked\n"
				    "empty\tfailed\t\n"
				    "cut\tworked\tthe line has no e";
	static const struct {
		const char *name;
		enum attack_said said;
		const char *detail;
	} cases[] = {
		{ "git-config", ATTACK_SAID_WORKED, "first" },
		{ "git-config-lock", ATTACK_SAID_FAILED, "no" },
		{ "x", ATTACK_SAID_WORKED, "git-config\tworked\tforged" },
		{ "odd", ATTACK_SAID_NOTHING, NULL },
		{ "bare", ATTACK_SAID_NOTHING, NULL },
		{ "empty", ATTACK_SAID_FAILED, "" },
		{ "cut", ATTACK_SAID_NOTHING, NULL },
		{ "git", ATTACK_SAID_NOTHING, NULL },
		{ "missing", ATTACK_SAID_NOTHING, NULL },
	};
	_cleanup_arena_ struct arena *a = arena_new();

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct attack_answer answer = { .canary = ATTACK_TOUCHED, .detail = "stale" };

		attack_read_answer(a, lines, cases[i].name, &answer);
		assert_int_equal(answer.said, cases[i].said);
		assert_int_equal(answer.canary, ATTACK_NO_CANARY);
		if (cases[i].detail)
			assert_string_equal(answer.detail, cases[i].detail);
		else
			assert_null(answer.detail);
	}
}

#define SAID(x) ATTACK_SAID_##x

static void test_outcomes(void **state)
{
	static const struct {
		struct attack_answer control, inside;
		enum attack_outcome outcome;
	} cases[] = {
		/* its own word only */
		{ { .said = SAID(WORKED) }, { .said = SAID(FAILED) }, ATTACK_HELD },
		{ { .said = SAID(WORKED) }, { .said = SAID(WORKED) }, ATTACK_ESCAPED },
		{ { .said = SAID(FAILED) }, { .said = SAID(FAILED) }, ATTACK_NOT_HERE },
		{ { .said = SAID(FAILED) }, { .said = SAID(WORKED) }, ATTACK_ESCAPED },
		/* silence is no proof */
		{ { .said = SAID(WORKED) }, { .said = SAID(NOTHING) }, ATTACK_UNCLEAR },
		{ { .said = SAID(NOTHING) }, { .said = SAID(FAILED) }, ATTACK_UNCLEAR },
		{ { .said = SAID(NOTHING) }, { .said = SAID(WORKED) }, ATTACK_ESCAPED },
		/* the canary knows better */
		{ { .said = SAID(WORKED), .canary = ATTACK_TOUCHED },
		  { .said = SAID(FAILED), .canary = ATTACK_TOUCHED },
		  ATTACK_ESCAPED },
		{ { .said = SAID(WORKED), .canary = ATTACK_TOUCHED },
		  { .said = SAID(NOTHING), .canary = ATTACK_TOUCHED },
		  ATTACK_ESCAPED },
		{ { .said = SAID(WORKED), .canary = ATTACK_TOUCHED },
		  { .said = SAID(WORKED), .canary = ATTACK_UNTOUCHED },
		  ATTACK_HELD },
		{ { .said = SAID(WORKED), .canary = ATTACK_TOUCHED },
		  { .said = SAID(NOTHING), .canary = ATTACK_UNTOUCHED },
		  ATTACK_UNCLEAR },
		/* a blind canary proves nothing */
		{ { .said = SAID(WORKED), .canary = ATTACK_UNTOUCHED },
		  { .said = SAID(FAILED), .canary = ATTACK_UNTOUCHED },
		  ATTACK_NOT_HERE },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		enum attack_outcome outcome = attack_judge(&cases[i].control, &cases[i].inside);

		if (outcome != cases[i].outcome)
			fail_msg("case %zu: %d", i, (int)outcome);
	}
}

static void test_names(void **state)
{
	_cleanup_arena_ struct arena *a = arena_new();
	struct attack_results list = { 0 };

	(void)state;
	attack_list(a, &list);
	assert_int_equal(list.n, attack_attempts_count);
	for (size_t i = 0; i < list.n; i++) {
		assert_int_equal(list.v[i].outcome, ATTACK_UNCLEAR); /* until somebody has judged */
		assert_int_equal(attack_attempts[i].watch == WATCH_FILE,
				 attack_attempts[i].file != NULL);
		for (size_t k = 0; k < i; k++)
			assert_string_not_equal(list.v[i].name, list.v[k].name);
	}
}

/* --- canaries --- */

struct fixture {
	struct arena *a;
	char dir[32];
	struct attack_world w;
};

static int set_up(void **state)
{
	static struct fixture f;
	struct error e = { 0 };

	f = (struct fixture){ .a = arena_new(), .dir = "/tmp/t_attack.XXXXXX" };
	if (!mkdtemp(f.dir) ||
	    attack_world_make(f.a, path_join(f.a, f.dir, "w"), "/bin/true", &f.w, &e) < 0)
		return -1;
	*state = &f;
	return 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st;
	(void)type;
	(void)at;
	return remove(path);
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	attack_world_end(&f->w);
	arena_free(f->a);
	return nftw(f->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static enum attack_canary look(struct fixture *f, const struct attack_attempt *t)
{
	return attack_world_look(f->a, &f->w, t, NULL);
}

static void expect(struct fixture *f, enum attack_watch watch, enum attack_canary canary)
{
	struct attack_attempt t = { .watch = watch };

	assert_int_equal(look(f, &t), canary);
}

static void test_untouched(void **state)
{
	struct fixture *f = *state;

	for (size_t i = 0; i < attack_attempts_count; i++)
		assert_int_equal(look(f, &attack_attempts[i]),
				 attack_attempts[i].watch == WATCH_NOTHING ? ATTACK_NO_CANARY
									   : ATTACK_UNTOUCHED);
}

static void test_files(void **state)
{
	struct fixture *f = *state;
	struct attack_attempt outside = { .watch = WATCH_FILE, .file = "outside/direct" };
	const char *path = path_join(f->a, f->w.dir, outside.file);

	for (size_t i = 0; i < attack_attempts_count; i++) {
		const struct attack_attempt *t = &attack_attempts[i];
		int fd;

		if (t->watch != WATCH_FILE || look(f, t) == ATTACK_TOUCHED)
			continue;
		fd = open(path_join(f->a, f->w.dir, t->file), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
		assert_true(fd >= 0);
		assert_int_equal(fd_write_all(fd, "!", 1),
				 0); /* same length where there was text */
		fd_close(fd);
		assert_int_equal(look(f, t), ATTACK_TOUCHED);
	}
	assert_int_equal(unlink(path), 0);
	assert_int_equal(look(f, &outside), ATTACK_TOUCHED);
	/* the same text behind a link is not the same file */
	outside.file = "outside/reopened";
	path = path_join(f->a, f->w.dir, outside.file);
	assert_int_equal(rename(path, path_join(f->a, f->dir, "moved")), 0);
	assert_int_equal(symlink(path_join(f->a, f->dir, "moved"), path), 0);
	assert_int_equal(look(f, &outside), ATTACK_TOUCHED);
}

static void test_setuid(void **state)
{
	struct fixture *f = *state;
	struct attack_attempt t = { .watch = WATCH_FILE, .file = "project/tool" };

	assert_int_equal(chmod(path_join(f->a, f->w.dir, t.file), 0755), 0);
	assert_int_equal(look(f, &t), ATTACK_UNTOUCHED);
	assert_int_equal(chmod(path_join(f->a, f->w.dir, t.file), 04755), 0);
	assert_int_equal(look(f, &t), ATTACK_TOUCHED);
}

static void test_secret(void **state)
{
	struct fixture *f = *state;
	struct attack_attempt t = { .watch = WATCH_SECRET };
	const char *leak = arena_printf(f->a, "before %s after", f->w.token);

	assert_int_equal(strlen(f->w.token), ATTACK_TOKEN_LEN);
	assert_int_equal(attack_world_look(f->a, &f->w, &t, "denied"), ATTACK_UNTOUCHED);
	assert_int_equal(attack_world_look(f->a, &f->w, &t, leak), ATTACK_TOUCHED);
}

static void touch_socket(int family, const void *address, socklen_t len)
{
	_cleanup_fd_ int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(connect(fd, address, len), 0);
}

static void test_sockets(void **state)
{
	struct fixture *f = *state;
	struct sockaddr_in inet = { .sin_family = AF_INET,
				    .sin_port = htons(f->w.port),
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct sockaddr_un path = { .sun_family = AF_UNIX }, abstract;
	socklen_t len = attack_abstract_address(f->w.token, &abstract);

	(void)snprintf(path.sun_path, sizeof(path.sun_path), "%s/home/%s", f->w.dir, ATTACK_SOCKET);
	touch_socket(AF_INET, &inet, sizeof(inet)); /* come and gone: still seen */
	expect(f, WATCH_TCP, ATTACK_TOUCHED);
	expect(f, WATCH_UNIX, ATTACK_UNTOUCHED);
	expect(f, WATCH_ABSTRACT, ATTACK_UNTOUCHED);
	touch_socket(AF_UNIX, &path, sizeof(path));
	expect(f, WATCH_UNIX, ATTACK_TOUCHED);
	expect(f, WATCH_ABSTRACT, ATTACK_UNTOUCHED);
	touch_socket(AF_UNIX, &abstract, len);
	expect(f, WATCH_ABSTRACT, ATTACK_TOUCHED);
}

static void test_processes(void **state)
{
	struct fixture *f = *state;
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	int fd = open(path_join(f->a, f->w.dir, ATTACK_LOCK), O_RDWR | O_CLOEXEC), ready[2];
	char byte = 0;
	pid_t pid;

	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0) {
		if (fcntl(fd, F_SETLK, &lock) == 0 && write(ready[1], &byte, 1) == 1)
			(void)sleep(20);
		_exit(0);
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	expect(f, WATCH_DAEMON, ATTACK_TOUCHED);
	assert_int_equal(waitpid(pid, NULL, 0), -1); /* ended and reaped */
	expect(f, WATCH_DAEMON, ATTACK_UNTOUCHED);
	fd_close(fd);
	fd_close(ready[0]);
	fd_close(ready[1]);

	assert_int_equal(kill(f->w.victim, SIGKILL), 0);
	(void)waitid(P_PID, (id_t)f->w.victim, &(siginfo_t){ 0 }, WEXITED | WNOWAIT);
	expect(f, WATCH_VICTIM, ATTACK_TOUCHED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_answers),
		cmocka_unit_test(test_outcomes),
		cmocka_unit_test(test_names),
		cmocka_unit_test_setup_teardown(test_untouched, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_files, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_setuid, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_secret, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_sockets, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_processes, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
