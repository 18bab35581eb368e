/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/srt.h"
#include "policy/srt.h"
#include "policy_fixture.h"

static int parse(struct fixture *f, struct srt_options *o, const char *const *words)
{
	f->e = (struct error){ 0 };
	return srt_options_parse(f->a, (char *const *)(uintptr_t)words, o, &f->e);
}
#define PARSE(f, o, ...) parse(f, o, (const char *const[]){ __VA_ARGS__ __VA_OPT__(, ) NULL })

/* The command line for the shell, or the error. */
static const char *command(struct fixture *f, const struct srt_options *o)
{
	const char *text = NULL;

	f->e = (struct error){ 0 };
	return srt_command(f->a, o, &text, &f->e) < 0 ? f->e.text : text;
}

static void test_options(void **state)
{
	struct fixture *f = *state;
	struct srt_options o;

	assert_int_equal(PARSE(f, &o, "-d", "-s", "x.json", "-c", "a b"), 0);
	assert_true(o.debug);
	assert_string_equal(o.settings, "x.json");
	assert_string_equal(command(f, &o), "a b");
	assert_int_equal(PARSE(f, &o, "-dsx.json", "--control-fd=4", "ls"), 0);
	assert_true(o.debug);
	assert_string_equal(o.settings, "x.json");
	assert_string_equal(o.control_fd, "4");
	assert_int_equal(PARSE(f, &o, "--settings=y", "--debug", "--control-fd", "3", "ls"), 0);
	assert_string_equal(o.settings, "y");
	assert_int_equal(PARSE(f, &o, "-V"), 0);
	assert_true(o.version);
	assert_int_equal(PARSE(f, &o, "--help"), 0);
	assert_true(o.help);
}

/* What follows the command is the command's. */
static void test_options_end(void **state)
{
	static const char *const lines[][5] = {
		{ "git", "--version" },
		{ "node", "-V" },
		{ "ls", "-d", "src" },
		{ "ls", "-s", "src" },
		{ "grep", "-c", "foo", "f" },
		{ "x", "--", "-d" },
		{ "x", "--help" },
		{ "-", "-d" },
	};
	struct fixture *f = *state;
	struct srt_options o;

	for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
		assert_int_equal(parse(f, &o, lines[i]), 0);
		assert_false(o.debug || o.version || o.help || o.settings || o.shell);
		assert_string_equal(o.words[0], lines[i][0]);
		assert_string_equal(o.words[1], lines[i][1]);
	}
	assert_int_equal(PARSE(f, &o, "-d", "--", "-d", "--version"), 0);
	assert_false(o.version);
	assert_string_equal(command(f, &o), "-d --version");
	assert_int_equal(PARSE(f, &o, "--", "proxy"), 0);
	assert_string_equal(command(f, &o), "proxy");
}

static void test_option_errors(void **state)
{
	struct fixture *f = *state;
	struct srt_options o;

	assert_true(PARSE(f, &o, "--nope", "ls") < 0);
	assert_string_equal(f->e.text, "unknown option '--nope'");
	assert_true(PARSE(f, &o, "-x") < 0);
	assert_true(PARSE(f, &o, "--debug=1") < 0);
	assert_true(PARSE(f, &o, "-s") < 0);
	assert_string_equal(f->e.text, "option --settings needs an argument: <path>");
	assert_true(PARSE(f, &o, "-c") < 0);
	assert_string_equal(f->e.text, "option -c needs an argument: <command>");
	assert_true(PARSE(f, &o, "proxy", "--listen-fd", "3") < 0);
	assert_true(PARSE(f, &o, "windows-install") < 0);
	assert_non_null(strstr(f->e.text, "Windows"));
}

static void test_command(void **state)
{
	struct fixture *f = *state;
	struct srt_options o;

	assert_int_equal(PARSE(f, &o), 0);
	assert_non_null(strstr(command(f, &o), "no command"));
	assert_int_equal(PARSE(f, &o, "-c", ""), 0);
	assert_non_null(strstr(command(f, &o), "no command"));
	assert_int_equal(PARSE(f, &o, "-c", "a", "b"), 0);
	assert_non_null(strstr(command(f, &o), "'b' is left over"));
	assert_int_equal(PARSE(f, &o, "echo", "a b", "$x;y", "it's"), 0);
	assert_string_equal(command(f, &o), "echo 'a b' '$x;y' 'it'\\''s'");
	assert_int_equal(PARSE(f, &o, "ls"), 0);
	assert_string_equal(command(f, &o), "ls");
	/* as its documentation has it */
	assert_int_equal(PARSE(f, &o, "echo hi there"), 0);
	assert_string_equal(command(f, &o), "echo hi there");
	assert_int_equal(PARSE(f, &o, fixture_write(f, "a program", "")), 0);
	assert_string_equal(command(f, &o), arena_printf(f->a, "'%s/a program'", f->dir));
}

#define EMPTY                                                                                      \
	"\"network\":{\"allowedDomains\":[],\"deniedDomains\":[]},"                                \
	"\"filesystem\":{\"denyRead\":[%s],\"allowRead\":[%s],\"allowWrite\":[%s],\"denyWrite\":[" \
	"%s]}"

static char *const environment[] = { (char *)(uintptr_t) "TMPDIR=/tmp/x", NULL };

static void load(struct fixture *f, struct srt_inputs *srt, const char *text)
{
	*srt = (struct srt_inputs){ .tmpdir = path_join(f->a, f->dir, "tmp"),
				    .environment = environment };
	f->in.srt = srt;
	f->in.only_file = NULL;
	if (text)
		fixture_only(f, text);
	fixture_load(f);
}

static const char *lists(struct fixture *f, const char *deny_read, const char *allow_read,
			 const char *allow_write, const char *deny_write)
{
	return arena_printf(f->a, "{" EMPTY "}", deny_read, allow_read, allow_write, deny_write);
}

static void test_defaults(void **state)
{
	struct fixture *f = *state;
	struct srt_inputs srt;

	fixture_mkdir(f, "tmp");
	fixture_mkdir(f, "home/.npm");
	fixture_mkdir(f, "home/.npm/_logs");
	load(f, &srt, NULL);
	assert_readable(f, "home/.ssh/id");
	assert_unwritable(f, "home/proj/x");
	assert_writable(f, "tmp/x");
	assert_unwritable(f, "/tmp/x");
	assert_readable(f, "/tmp/x");
	assert_writable(f, "home/.npm/_logs/x");
	assert_int_equal(f->p->network.mode, NETWORK_ALLOWLIST);
	assert_int_equal(f->p->env.inherit, ENV_ALL);
	assert_string_equal(f->p->env.set.v[0].name, "TMPDIR");
	assert_string_equal(f->p->env.set.v[0].value, "/tmp/x");
	/* what hides the home hides the logs */
	load(f, &srt, lists(f, "\"~\"", "", "", ""));
	assert_hidden(f, "home/.npm/_logs/x");
	assert_writable(f, "tmp/x");
}

static void test_rules(void **state)
{
	struct fixture *f = *state;
	struct srt_inputs srt;

	fixture_mkdir(f, "tmp");
	load(f, &srt,
	     lists(f, "\"~/a\",\"~/b\",\"~/d/e\"", "\"~/a\",\"~/b/c\",\"~/d\"", "\".\"", "\"no\""));
	/* in both lists: readable */
	assert_readable(f, "home/a/x");
	assert_hidden(f, "home/b/x");
	assert_readable(f, "home/b/c/x");
	assert_hidden(f, "home/d/e");
	assert_writable(f, "home/proj/x");
	assert_unwritable(f, "home/proj/no/x");
	assert_unwritable(f, "home/proj/.bashrc");
	assert_unwritable(f, "home/proj/sub/.git/hooks/x");
	/* not a name of sandbox-runtime's */
	assert_writable(f, "home/proj/.env");
	/* no escapes there */
	load(f, &srt, lists(f, "\"~/back\\\\slash\"", "", "", ""));
	assert_hidden(f, "home/back\\slash");
	/* what is not there is skipped, and told */
	load(f, &srt, lists(f, "", "", "\"/no/such/place\"", ""));
	assert_one_note(f, "allowWrite /no/such/place: it does not exist");
}

static void test_required(void **state)
{
	struct fixture *f = *state;
	struct srt_inputs srt;

	fixture_mkdir(f, "tmp");
	load(f, &srt, NULL);
	fixture_only(f, "{}");
	fixture_fails(f, "@/only.json: required: network.allowedDomains, network.deniedDomains, "
			 "filesystem.denyRead, filesystem.allowWrite, filesystem.denyWrite");
	fixture_only(f,
		     "{\"network\":{\"allowedDomains\":[],\"deniedDomains\":[]},\"filesystem\":3}");
	fixture_fails(f, "@/only.json: required: filesystem.denyRead, filesystem.allowWrite, "
			 "filesystem.denyWrite");
	/* keys that cannot be followed are named */
	fixture_only(f, arena_printf(f->a, "{" EMPTY ",\n\"credentials\":{\"envVars\":[{}]}}", "",
				     "", "", ""));
	fixture_fails(f,
		      "@/only.json:2:15: credentials: not supported: secrets are hidden instead: "
		      "filesystem.denyRead, environment.inherit");
	fixture_only(f, arena_printf(f->a, "{" EMPTY ",\n\"nonsense\":1}", "", "", "", ""));
	fixture_fails(f, "@/only.json:2:1: nonsense: unknown key");
}

static void test_managed_counts(void **state)
{
	struct fixture *f = *state;
	struct srt_inputs srt;

	fixture_mkdir(f, "tmp");
	fixture_managed(f, "network: {mode: none}\nfilesystem: {denyRead: [~/m]}\n");
	load(f, &srt, lists(f, "", "\"~/m\"", "", ""));
	assert_int_equal(f->p->network.mode, NETWORK_NONE);
	assert_hidden(f, "home/m");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		policy_test(test_options),       policy_test(test_options_end),
		policy_test(test_option_errors), policy_test(test_command),
		policy_test(test_defaults),      policy_test(test_rules),
		policy_test(test_required),      policy_test(test_managed_counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
