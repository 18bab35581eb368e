/* SPDX-License-Identifier: Apache-2.0 */
/* The option table and its parser: what ends options, what is refused and how. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "cli/options.h"

#define MAX_ARGS 16
#define PARSE(f, ...) parse((f), (const char *[]){ __VA_ARGS__, NULL })

struct fixture {
	struct arena *a;
	struct option_scope scope;
	struct options o;
	struct error e;
};

static int setup(void **state)
{
	static struct fixture f;

	f = (struct fixture){
		.a = arena_new(),
		.scope = { "run", GROUP_GENERAL | GROUP_POLICY | GROUP_RUN | GROUP_SHELL, true }
	};
	*state = &f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	arena_free(f->a);
	return 0;
}

static int parse(struct fixture *f, const char *const *args)
{
	char *copy[MAX_ARGS] = { 0 };

	for (size_t i = 0; args[i]; i++) {
		assert_true(i + 1 < MAX_ARGS);
		copy[i] = arena_strdup(f->a, args[i]);
	}
	f->e = (struct error){ 0 };
	return options_parse(f->a, &f->scope, copy, &f->o, &f->e);
}

static void assert_words(const struct fixture *f, const char *const *words)
{
	size_t n = 0;

	while (words[n])
		n++;
	assert_int_equal(f->o.n_words, n);
	for (size_t i = 0; i < n; i++)
		assert_string_equal(f->o.words[i], words[i]);
	assert_null(f->o.words[n]);
}
#define ASSERT_WORDS(f, ...) assert_words((f), (const char *[]){ __VA_ARGS__, NULL })

static void assert_refused(const struct fixture *f, int r, const char *part)
{
	assert_true(r < 0);
	assert_int_equal(f->e.code, -r);
	if (!strstr(f->e.text, part))
		fail_msg("'%s' is not in '%s'", part, f->e.text);
	assert_null(strchr(f->e.text, '\n'));
}

static void test_options_end_at_first_word(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(PARSE(f, "-q", "ls", "-v", "--json", "--", "x"), 0);
	assert_true(f->o.quiet);
	assert_false(f->o.verbose);
	ASSERT_WORDS(f, "ls", "-v", "--json", "--", "x");
}

static void test_double_dash_hides_options(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(PARSE(f, "--", "--network", "host"), 0);
	ASSERT_WORDS(f, "--network", "host");
	assert_int_equal(f->o.n_uses, 0);
	/* only the first one is ours */
	assert_int_equal(PARSE(f, "--", "--", "-q"), 0);
	ASSERT_WORDS(f, "--", "-q");
	/* as the argument of an option it is an argument */
	assert_int_equal(PARSE(f, "--allow-read", "--", "--", "ls"), 0);
	assert_string_equal(f->o.uses[0].value, "--");
	ASSERT_WORDS(f, "ls");
}

static void test_lone_dash_and_empty_word_are_words(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(PARSE(f, "-", "-q"), 0);
	ASSERT_WORDS(f, "-", "-q");
	assert_int_equal(PARSE(f, "", "-q"), 0);
	ASSERT_WORDS(f, "", "-q");
	assert_false(f->o.quiet);
}

static void test_intermixed_where_no_command_follows(void **state)
{
	struct fixture *f = *state;

	f->scope = (struct option_scope){ "explain", GROUP_GENERAL | GROUP_JSON, false };
	assert_int_equal(PARSE(f, "read", "--json", "x", "-q", "--", "--json"), 0);
	assert_true(f->o.json && f->o.quiet);
	ASSERT_WORDS(f, "read", "x", "--json");
}

static void test_forms_of_arguments(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(PARSE(f, "--allow-read=a=b", "--allow-read", "-x", "-sF", "-qvcls"), 0);
	assert_int_equal(f->o.n_uses, 6);
	assert_string_equal(f->o.uses[0].value, "a=b");
	assert_string_equal(f->o.uses[0].option->key, "filesystem.allowRead");
	assert_string_equal(f->o.uses[1].value, "-x");
	assert_string_equal(f->o.settings, "F");
	assert_true(f->o.quiet && f->o.verbose);
	assert_string_equal(f->o.shell, "ls");
	assert_int_equal(f->o.n_words, 0);
}

static void test_shell_string_may_be_empty_or_look_like_an_option(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(PARSE(f, "-c", ""), 0);
	assert_string_equal(f->o.shell, "");
	assert_int_equal(PARSE(f, "-c", "--help"), 0);
	assert_string_equal(f->o.shell, "--help");
	assert_false(f->o.help);
}

static void test_missing_and_unwanted_arguments(void **state)
{
	struct fixture *f = *state;

	assert_refused(f, PARSE(f, "--allow-write"), "--allow-write needs an argument: PATH");
	assert_refused(f, PARSE(f, "-q", "-s"), "--settings needs an argument: FILE");
	assert_refused(f, PARSE(f, "--clear-env=yes", "ls"), "--clear-env takes no argument");
}

/* --allow-write "$UNSET" must not come to mean the working directory */
static void test_empty_arguments(void **state)
{
	struct fixture *f = *state;

	assert_refused(f, PARSE(f, "--allow-write", "", "ls"), "the argument is empty");
	assert_refused(f, PARSE(f, "--allow-domain=", "ls"), "the argument is empty");
	assert_refused(f, PARSE(f, "--settings=", "ls"), "the file name is empty");
	assert_refused(f, PARSE(f, "--chdir", "", "ls"), "the file name is empty");
}

static void test_pairs(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(PARSE(f, "--env", "A", "--env=B=", "--set", "a.b=c=d", "ls"), 0);
	assert_refused(f, PARSE(f, "--set", "enabled"), "wants KEY=VALUE");
	assert_refused(f, PARSE(f, "--set", "=x"), "wants KEY=VALUE");
}

static void test_unknown(void **state)
{
	struct fixture *f = *state;

	assert_refused(f, PARSE(f, "--alow-raed=x"), "did you mean --allow-read?");
	assert_refused(f, PARSE(f, "--frobnicate"), "unknown option --frobnicate (see");
	assert_refused(f, PARSE(f, "-qX"), "unknown option -X");
	/* no abbreviations: a new option must not change what a script means */
	assert_refused(f, PARSE(f, "--allow-d", "x"), "unknown option");
	/* an escape sequence or a newline in it is not passed on */
	assert_refused(f, PARSE(f, "--a\n\033[2Jb"), "--a\\x0a\\x1b[2Jb");
	assert_refused(f, PARSE(f, "-\377"), "-\\xff");
	assert_refused(f, PARSE(f, "--logg"), "unknown option --logg; did you mean --log");
}

static void test_scope(void **state)
{
	struct fixture *f = *state;

	assert_refused(f, PARSE(f, "--attack"), "ambit run takes no --attack");
	f->scope = (struct option_scope){ "check", GROUP_GENERAL | GROUP_ATTACK, false };
	assert_refused(f, PARSE(f, "-s", "x"), "ambit check takes no --settings");
	assert_int_equal(PARSE(f, "--attack"), 0);
}

static void test_once(void **state)
{
	struct fixture *f = *state;

	assert_refused(f, PARSE(f, "-s", "a", "-s", "b"), "--settings is given twice");
	assert_refused(f, PARSE(f, "-c", "", "-c", "b"), "--command is given twice");
	assert_int_equal(PARSE(f, "--chdir", "a", "--chdir", "b"), 0);
	assert_string_equal(f->o.chdir, "b");
}

static void test_failure_leaves_output_alone(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(PARSE(f, "-q", "ls"), 0);
	assert_true(PARSE(f, "-v", "--nonsense") < 0);
	assert_true(f->o.quiet);
	assert_false(f->o.verbose);
	ASSERT_WORDS(f, "ls");
}

static bool same(const char *a, const char *b)
{
	return strcmp(a, b) == 0;
}

/* The table holds together: what a row needs is there, no name stands twice. */
static void test_table(void **state)
{
	(void)state;
	for (size_t i = 0; i < options_count; i++) {
		const struct option *o = &options_table[i];

		for (size_t j = 0; j < i; j++) {
			assert_false(same(o->name, options_table[j].name));
			assert_false(o->letter && o->letter == options_table[j].letter);
		}
		assert_true(o->groups);
		assert_non_null(o->help);
		assert_int_equal(o->effect == OPTION_SETTING, o->key != NULL);
		if (o->effect == OPTION_SETTING)
			assert_true((o->argument != NULL) != (o->value != NULL));
		if (o->effect == OPTION_TEXT || o->effect == OPTION_FLAG) {
			assert_int_equal(o->effect == OPTION_TEXT, o->argument != NULL);
			assert_true(o->offset > 0);
		}
	}
}

static void test_nearest(void **state)
{
	struct nearest n = { 0 };

	(void)state;
	nearest_try(&n, "rnu", "wrap");
	assert_null(n.name);
	nearest_try(&n, "rnu", "run");
	assert_string_equal(n.name, "run");
	/* a short word is not "near" to everything short */
	n = (struct nearest){ 0 };
	nearest_try(&n, "ls", "run");
	assert_null(n.name);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_options_end_at_first_word),
		TEST(test_double_dash_hides_options),
		TEST(test_lone_dash_and_empty_word_are_words),
		TEST(test_intermixed_where_no_command_follows),
		TEST(test_forms_of_arguments),
		TEST(test_shell_string_may_be_empty_or_look_like_an_option),
		TEST(test_missing_and_unwanted_arguments),
		TEST(test_empty_arguments),
		TEST(test_pairs),
		TEST(test_unknown),
		TEST(test_scope),
		TEST(test_once),
		TEST(test_failure_leaves_output_alone),
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_nearest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
