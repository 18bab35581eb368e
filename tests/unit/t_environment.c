/* SPDX-License-Identifier: Apache-2.0 */
/* What of the caller's environment reaches the command. */
#include "policy_fixture.h"

static const char *const *variables;

/* The value of a variable in the result, NULL when it is not there. Twice is a failure. */
static const char *value_of(char **env, const char *name)
{
	const char *found = NULL;
	size_t n = strlen(name);

	for (; *env; env++) {
		if (strncmp(*env, name, n) != 0 || (*env)[n] != '=')
			continue;
		assert_null(found);
		found = *env + n + 1;
	}
	return found;
}

static char **environment(struct fixture *f, struct text_rules *dropped)
{
	union {
		const char *const *in;
		char *const *out;
	} cast = { .in = variables };

	fixture_load(f);
	return policy_environment(f->p, f->a, cast.out, dropped);
}

static void test_safe(void **state)
{
	static const char *const keep[] = { "PATH=/bin",
					    "HOME=/h",
					    "CI=1",
					    "EDITOR=vi",
					    "PYTHONPATH=lib",
					    "GOPATH=/go",
					    "TOKENIZERS_PARALLELISM=false",
					    "GIT_AUTHOR_NAME=x",
					    "KEYBOARD=us",
					    "PASSAGE=1",
					    "COMPASS=n",
					    "OLDPWD=/x",
					    "PWD=/y",
					    "EMPTY=",
					    "_=x",
					    "SSH_CONNECTION=x",
					    "HTTPS_PROXY=http://proxy.example:3128",
					    "URL=http://host:80/a@b",
					    "MONKEY=1",
					    "LC_ALL=C",
					    "XDG_SESSION_TYPE=tty",
					    "http_proxy=http://user@p:1",
					    NULL };
	struct fixture *f = *state;
	char **env;

	variables = keep;
	env = environment(f, NULL);
	for (size_t i = 0; keep[i]; i++) {
		_cleanup_free_ char *name = strndup(keep[i], strcspn(keep[i], "="));

		if (!value_of(env, name))
			fail_msg("%s was dropped", name);
	}
	assert_string_equal(value_of(env, "EMPTY"), "");
	assert_string_equal(value_of(env, "AMBIT"), "1");
	assert_string_equal(value_of(env, "SANDBOX_RUNTIME"), "1");
	assert_string_equal(value_of(env, "TMPDIR"), "/tmp");
}

static void test_unsafe(void **state)
{
	static const char *const drop[] = {
		"GITHUB_TOKEN=x", "NPM_TOKEN=x", "gh_token=x", "TOKEN_FILE=x", "OPENAI_API_KEY=x",
		"SOME_APIKEY=x", "MYSQL_PWD=x", "DB_PASSWORD=x", "dbpassword=x", "DB_PASS=x",
		"CLIENT_SECRET_ID=x", "GOOGLE_APPLICATION_CREDENTIALS=x", "AWS_PROFILE=x",
		"AWS_SESSION_TOKEN=x", "DOCKER_AUTH_CONFIG=x", "SIGNING_KEY=x", "NPM_AUTH=x",
		"AZURE_DEVOPS_EXT_PAT=x", "SENTRY_DSN=x", "CI_JOB_JWT=x",
		"DATABASE_URL=postgres://u:p@h/db", "LD_PRELOAD=x", "LD_LIBRARY_PATH=x",
		"GLIBC_TUNABLES=x", "GCONV_PATH=x", "BASH_ENV=x", "ENV=x", "SHELLOPTS=x", "PS4=x",
		"IFS=x", "PROMPT_COMMAND=x", "PYTHONSTARTUP=x", "NODE_OPTIONS=x", "PERL5OPT=x",
		"RUBYOPT=x", "JAVA_TOOL_OPTIONS=x", "_JAVA_OPTIONS=x", "GIT_CONFIG_COUNT=1",
		"GIT_CONFIG=x", "GIT_SSH_COMMAND=x", "GIT_ASKPASS=x", "SSH_ASKPASS=x",
		"GIT_EXEC_PATH=x", "SSH_AUTH_SOCK=x", "DBUS_SESSION_BUS_ADDRESS=x", "DISPLAY=:0",
		"WAYLAND_DISPLAY=x", "XAUTHORITY=x", "DOCKER_HOST=x", "VSCODE_IPC_HOOK_CLI=x",
		"XDG_RUNTIME_DIR=x", "TMUX=x", "KUBECONFIG=x",
		/* not proper names */
		"BASH_FUNC_ls%%=() { :; }", "A B=x", "1A=x", "A.B=x", NULL
	};
	struct fixture *f = *state;
	struct text_rules dropped = { 0 };
	size_t n = 0;
	char **env;

	variables = drop;
	env = environment(f, &dropped);
	for (; drop[n]; n++) {
		_cleanup_free_ char *name = strndup(drop[n], strcspn(drop[n], "="));

		if (value_of(env, name))
			fail_msg("%s was kept", name);
		assert_string_equal(dropped.v[n].text, name);
		assert_true(strlen(dropped.v[n].origin.name) > 5);
	}
	assert_int_equal(dropped.n, n);
}

static void test_pass_and_set(void **state)
{
	static const char *const in[] = { "GH_TOKEN=1", "LD_PRELOAD=2", "CLAUDE_TOKEN=3",
					  "A=4",        "A=5",          "no equals",
					  "=empty",     "AMBIT=0",      "TMPDIR=/x",
					  NULL };
	struct fixture *f = *state;
	char **env;

	variables = in;
	fixture_user(f, "environment:\n  pass: [GH_TOKEN]\n  passPrefix: [CLAUDE_]\n"
			"  set: {B: x, A: set, AMBIT: no, N: 5}\n");
	fixture_option(f, "environment.set", "B=y=z");
	env = environment(f, NULL);
	assert_string_equal(value_of(env, "GH_TOKEN"), "1");
	assert_string_equal(value_of(env, "CLAUDE_TOKEN"), "3");
	assert_null(value_of(env, "LD_PRELOAD"));
	assert_string_equal(value_of(env, "A"), "set");
	assert_string_equal(value_of(env, "B"), "y=z");
	assert_string_equal(value_of(env, "N"), "5");
	assert_string_equal(value_of(env, "AMBIT"), "1");
	assert_string_equal(value_of(env, "TMPDIR"), "/tmp");
}

static void test_first_of_two_counts(void **state)
{
	static const char *const in[] = { "A=1", "A=2", NULL };
	struct fixture *f = *state;

	variables = in;
	assert_string_equal(value_of(environment(f, NULL), "A"), "1");
}

static void test_none_and_all(void **state)
{
	static const char *const in[] = { "PATH=/bin", "LC_TIME=C",  "CI=1",      "GH_TOKEN=x",
					  "LD_X=1",    "BAD NAME=1", "TMPDIR=/t", NULL };
	struct fixture *f = *state;
	char **env;

	variables = in;
	fixture_user(f, "environment: {inherit: none, pass: [CI]}");
	env = environment(f, NULL);
	assert_string_equal(value_of(env, "PATH"), "/bin");
	assert_string_equal(value_of(env, "LC_TIME"), "C");
	assert_string_equal(value_of(env, "CI"), "1");
	assert_null(value_of(env, "GH_TOKEN"));
	fixture_user(f, "environment: {inherit: all}\nfilesystem: {tmp: shared}");
	env = environment(f, NULL);
	assert_string_equal(value_of(env, "GH_TOKEN"), "x");
	assert_string_equal(value_of(env, "LD_X"), "1");
	assert_null(value_of(env, "BAD NAME"));
	assert_string_equal(value_of(env, "TMPDIR"), "/t");
}

/* A name longer than the buffer for comparing it. */
static void test_long_name(void **state)
{
	struct fixture *f = *state;
	char name[600];
	const char *in[] = { name, "B=1", NULL };

	memset(name, 'A', sizeof(name));
	memcpy(name + sizeof(name) - 3, "=x", 3);
	variables = in;
	assert_string_equal(value_of(environment(f, NULL), "B"), "1");
	name[sizeof(name) - 3] = '\0';
	assert_null(value_of(environment(f, NULL), name));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		policy_test(test_safe),         policy_test(test_unsafe),
		policy_test(test_pass_and_set), policy_test(test_first_of_two_counts),
		policy_test(test_none_and_all), policy_test(test_long_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
