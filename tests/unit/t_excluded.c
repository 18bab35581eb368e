/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/excluded.h"
#include "policy_fixture.h"

static enum command_place judge(struct fixture *f, const char *line)
{
	struct command_answer answer;

	command_judge_text(f->p, f->a, line, &answer);
	assert_non_null(answer.reason);
	/* where a shell gets the words, the answer is the same */
	if (answer.argv) {
		struct command_answer words;

		command_judge_argv(f->p, f->a, answer.argv, &words);
		assert_int_equal(words.place, answer.place);
		assert_ptr_equal(words.rule, answer.rule);
	}
	return answer.place;
}

static void assert_places(struct fixture *f, enum command_place place, const char *const *lines)
{
	for (; *lines; lines++) {
		if (judge(f, *lines) != place)
			fail_msg("%s: not %s", *lines, command_place_text(place));
	}
}

#define THREE                                                                                      \
	"excludedCommands: [docker, 'npm run test:*', 'git push', 'make *']\n"                     \
	"allowUnsandboxedCommands: true\n"

static void test_patterns(void **state)
{
	static const char *const outside[] = { "docker",
					       "docker ps",
					       "docker run --rm x",
					       "'docker' ps",
					       "npm run test",
					       "npm run test -- -u",
					       "npm 'run' \"test\" x",
					       "git push",
					       "make",
					       "make all",
					       NULL };
	static const char *const inside[] = { "dockerd",
					      "Docker ps",
					      "./docker ps",
					      "/usr/bin/docker ps",
					      "sudo docker ps",
					      "env docker ps",
					      "xargs docker",
					      "nohup docker ps",
					      "command docker",
					      "exec docker",
					      "\\docker;id",
					      "docker ps && curl x",
					      "docker ps | cat",
					      "A=1 docker ps",
					      "docker $x",
					      "npm",
					      "npm run",
					      "npm run tests",
					      "npm run test:a",
					      "npm test",
					      "npm  run  build",
					      "npm -s run test",
					      "git push -f",
					      "git push origin",
					      "git",
					      "gitpush",
					      "'git push'",
					      "docker:*",
					      "'docker ps'",
					      "''",
					      "",
					      "bash -c 'docker ps'",
					      "time docker ps",
					      "docker\nid",
					      "make;id",
					      "'docker '",
					      NULL };
	struct fixture *f = *state;

	fixture_user(f, THREE);
	fixture_load(f);
	assert_places(f, COMMAND_OUTSIDE, outside);
	assert_places(f, COMMAND_SANDBOXED, inside);
}

static void test_refused(void **state)
{
	static const char *const refused[] = { "docker ps", "docker", NULL };
	static const char *const inside[] = { "docker ps && curl x", "ls", NULL };
	struct command_answer answer;
	struct fixture *f = *state;

	fixture_user(f, "excludedCommands: [docker]\n");
	fixture_load(f);
	assert_places(f, COMMAND_REFUSED, refused);
	assert_places(f, COMMAND_SANDBOXED, inside);
	command_decide_text(f->p, f->a, "docker ps", "/nowhere", &answer);
	assert_int_equal(answer.place, COMMAND_REFUSED);
	assert_null(answer.program);
}

static void test_bad_entries(void **state)
{
	static const struct {
		const char *entry, *why;
	} bad[] = {
		{ "docker;id", "more than one command" },
		{ "docker $x", "an expansion" },
		{ "docker * ps", "a file name pattern" },
		{ "*", "a file name pattern" },
		{ ":*", "no command" },
		{ " *", "no command" },
		{ "A=1 docker", "a variable assignment" },
		{ "docker > x", "a redirection" },
		{ "if docker", "the shell's own grammar" },
		{ "'docker", "a quote without its end" },
		{ "sudo", "let every command out" },
		{ "sudo:*", "let every command out" },
		{ "sudo -E *", "let every command out" },
		{ "env", "let every command out" },
		{ "/usr/bin/env", "let every command out" },
		{ "env A=B *", "let every command out" },
		{ "bash", "let every command out" },
		{ "bash -c *", "let every command out" },
		{ "xargs:*", "let every command out" },
	};
	static const char *const good[] = { "docker",
					    "docker:*",
					    "docker *",
					    "npm run test:*",
					    "sudo docker:*",
					    "bash ./x.sh",
					    "git commit -m 'a b'",
					    "/opt/x/y:*",
					    "timeout 5 docker *" };
	struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		f->e = (struct error){ 0 };
		assert_int_equal(excluded_check(bad[i].entry, &f->e), -EINVAL);
		if (!strstr(f->e.text, bad[i].why))
			fail_msg("%s: %s", bad[i].entry, f->e.text);
	}
	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		if (excluded_check(good[i], &f->e) != 0)
			fail_msg("%s: %s", good[i], f->e.text);
	}
	fixture_text_fails(f, "{\"excludedCommands\": [\"docker\",\n \"sudo\"]}",
			   "2:2: excludedCommands: \"sudo\" would let every command out: sudo runs "
			   "others; name the one, as in \"sudo docker:*\"");
}

/* A project cannot let anything out, whichever key it tries. */
static void test_project(void **state)
{
	struct fixture *f = *state;

	fixture_user(f, "allowUnsandboxedCommands: true\n");
	fixture_project(f, "excludedCommands: [docker]\n");
	fixture_load(f);
	assert_int_equal(judge(f, "docker ps"), COMMAND_SANDBOXED);
	assert_one_note(f, "excludedCommands would widen");
	fixture_user(f, "excludedCommands: [docker]\n");
	fixture_project(f, "allowUnsandboxedCommands: true\n");
	fixture_load(f);
	assert_int_equal(judge(f, "docker ps"), COMMAND_REFUSED);
	assert_one_note(f, "allowUnsandboxedCommands would widen");
	fixture_user(f, "excludedCommands: [docker]\nallowUnsandboxedCommands: true\n");
	fixture_project(f, "allowUnsandboxedCommands: false\n");
	fixture_load(f);
	assert_int_equal(judge(f, "docker ps"), COMMAND_REFUSED);
}

static void test_managed(void **state)
{
	struct fixture *f = *state;

	/* locked: nobody adds */
	fixture_managed(f, "excludedCommands: [podman]\nlocked: [excludedCommands]\n");
	fixture_user(f, "excludedCommands: [docker]\nallowUnsandboxedCommands: true\n");
	fixture_load(f);
	assert_int_equal(judge(f, "docker ps"), COMMAND_SANDBOXED);
	assert_int_equal(judge(f, "podman ps"), COMMAND_OUTSIDE);
	assert_one_note(f, "excludedCommands is fixed by the managed settings");
	/* nothing may leave */
	fixture_managed(f, "allowUnsandboxedCommands: false\n");
	fixture_load(f);
	assert_int_equal(judge(f, "docker ps"), COMMAND_REFUSED);
	assert_false(command_can_bypass(f->p, true));
	/* the sandbox is kept on: that goes for single commands too */
	fixture_managed(f, "enabled: true\nexcludedCommands: [podman]\n");
	fixture_load(f);
	assert_int_equal(judge(f, "docker ps"), COMMAND_SANDBOXED);
	assert_int_equal(judge(f, "podman ps"), COMMAND_OUTSIDE);
	assert_false(command_can_bypass(f->p, true));
	fixture_managed(f, "locked: [enabled]\n");
	fixture_load(f);
	assert_int_equal(judge(f, "docker ps"), COMMAND_SANDBOXED);
	f->in.managed_file = NULL;
	fixture_load(f);
	assert_int_equal(judge(f, "docker ps"), COMMAND_OUTSIDE);
	assert_true(command_can_bypass(f->p, true));
	assert_false(command_can_bypass(f->p, false));
}

static void test_auto_allow(void **state)
{
	struct command_answer answer;
	struct fixture *f = *state;

	fixture_user(f, "excludedCommands: [docker]\nallowUnsandboxedCommands: true\n");
	fixture_load(f);
	command_judge_text(f->p, f->a, "ls", &answer);
	assert_true(command_auto_allowed(f->p, &answer));
	command_judge_text(f->p, f->a, "docker ps", &answer);
	assert_false(command_auto_allowed(f->p, &answer));
	fixture_user(f, "autoAllowBashIfSandboxed: false\n");
	fixture_load(f);
	command_judge_text(f->p, f->a, "ls", &answer);
	assert_false(command_auto_allowed(f->p, &answer));
	fixture_user(f, "enabled: false\n");
	fixture_load(f);
	assert_false(command_auto_allowed(f->p, &answer));
}

static void make_program(struct fixture *f, const char *rel)
{
	assert_int_equal(chmod(fixture_write(f, rel, "#!/bin/sh\n"), 0755), 0);
}

static void make_link(struct fixture *f, const char *target, const char *rel)
{
	assert_int_equal(symlink(target, arena_printf(f->a, "%s/%s", f->dir, rel)), 0);
}

/* The program, found in `path`; "@" stands for the fixture's directory. */
static const char *find(struct fixture *f, const char *name, const char *path)
{
	_cleanup_buf_ struct buf text = BUF_INIT(8192);
	struct command_answer answer;
	char *const argv[] = { arena_strdup(f->a, name), NULL };

	for (; *path; path++) {
		if (*path == '@')
			buf_puts(&text, f->dir);
		else
			buf_putc(&text, *path);
	}
	command_decide_argv(f->p, f->a, argv, buf_str(&text), &answer);
	if (answer.place != COMMAND_OUTSIDE) {
		assert_null(answer.program);
		return NULL;
	}
	assert_true(text_starts(answer.program, f->dir));
	return answer.program + strlen(f->dir);
}

/* Only what the sandbox cannot write is run outside. */
static void test_programs(void **state)
{
	struct fixture *f = *state;

	fixture_mkdir(f, "bin");
	fixture_mkdir(f, "opt");
	make_program(f, "bin/docker");
	make_program(f, "opt/tool");
	make_program(f, "home/proj/planted");
	fixture_mkdir(f, "home/proj/bin");
	make_program(f, "home/proj/bin/docker");
	/* links: good ones, one that ends in the project, one that passes through it */
	make_link(f, "../opt/tool", "bin/good");
	make_link(f, "../home/proj/planted", "bin/bad");
	make_link(f, "../home/proj/hop", "bin/through");
	make_link(f, "../../bin/docker", "home/proj/hop");
	make_link(f, "loop", "bin/loop");
	make_link(f, "home/proj/bin", "linked");
	make_link(f, "home/proj/way", "by");
	make_link(f, "../../bin", "home/proj/way");
	fixture_user(f, "excludedCommands: [docker, good, bad, through, loop, ./planted, planted, "
			"bin/docker]\nallowUnsandboxedCommands: true\n");
	fixture_load(f);
	assert_string_equal(find(f, "docker", "@/bin"), "/bin/docker");
	assert_string_equal(find(f, "good", "/nowhere:@/bin"), "/bin/good");
	assert_null(find(f, "bad", "@/bin"));
	assert_null(find(f, "through", "@/bin"));
	assert_null(find(f, "loop", "@/bin"));
	/* what the shell would find first is what counts */
	assert_null(find(f, "docker", "@/home/proj/bin:@/bin"));
	assert_null(find(f, "docker", "@/linked:@/bin"));
	assert_null(find(f, "docker", "@/by"));
	assert_string_equal(find(f, "docker", "@/bin:@/home/proj/bin"), "/bin/docker");
	/* relative directories are no places */
	assert_string_equal(find(f, "docker", ".:bin::@/bin"), "/bin/docker");
	assert_null(find(f, "planted", ".:"));
	assert_null(find(f, "./planted", ""));
	assert_null(find(f, "bin/docker", "@/bin"));
	assert_null(find(f, "docker", "/nowhere"));
	/* a file that no rule lets be changed is as good as one outside */
	fixture_user(f, "excludedCommands: [./planted]\nallowUnsandboxedCommands: true\n"
			"filesystem: {denyWrite: [planted]}\n");
	fixture_load(f);
	assert_string_equal(find(f, "./planted", ""), "/home/proj/./planted");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		policy_test(test_patterns),    policy_test(test_refused),
		policy_test(test_bad_entries), policy_test(test_project),
		policy_test(test_managed),     policy_test(test_auto_allow),
		policy_test(test_programs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
