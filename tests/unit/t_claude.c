/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/claude.h"
#include "policy/excluded.h"
#include "policy_fixture.h"

/* The files in the fixture's directory: managed.json, managed.d/, home/.claude, home/proj/.claude */
static struct claude_files *claude(struct fixture *f)
{
	struct claude_files *files = arena_alloc(f->a, sizeof(*files));

	files->managed = path_join(f->a, f->dir, "claude-managed.json");
	files->managed_dir = path_join(f->a, f->dir, "managed.d");
	files->user = path_join(f->a, f->home, ".claude/settings.json");
	files->cwd = f->proj;
	files->top = f->proj;
	f->in.claude = files;
	fixture_mkdir(f, "home/.claude");
	fixture_mkdir(f, "home/proj/.claude");
	fixture_mkdir(f, "managed.d");
	fixture_user(f, "claudeSettings: true\n");
	return files;
}

static void user(struct fixture *f, const char *text)
{
	fixture_write(f, "home/.claude/settings.json", text);
}

static void project(struct fixture *f, const char *text)
{
	fixture_write(f, "home/proj/.claude/settings.json", text);
}

static bool allows(const struct fixture *f, const char *host)
{
	for (size_t i = 0; i < f->p->network.allowed.n; i++) {
		if (strcmp(f->p->network.allowed.v[i].text, host) == 0)
			return true;
	}
	return false;
}

static void test_only_when_asked(void **state)
{
	struct fixture *f = *state;

	claude(f);
	user(f, "{\"sandbox\":{\"network\":{\"allowedDomains\":[\"a.example\"]}}}");
	f->in.user_file = NULL;
	fixture_load(f);
	assert_int_equal(f->p->network.allowed.n, 0);
	fixture_option(f, "claudeSettings", "true");
	fixture_load(f);
	assert_true(allows(f, "a.example"));
	/* -s stands for the user's files, Claude's too */
	fixture_only(f, "{}");
	fixture_load(f);
	assert_int_equal(f->p->network.allowed.n, 0);
}

static void test_who_may_ask(void **state)
{
	struct fixture *f = *state;

	claude(f);
	user(f, "{\"sandbox\":{\"network\":{\"allowedDomains\":[\"a.example\"]}}}");
	f->in.user_file = NULL;
	fixture_project(f, "claudeSettings: true\n");
	fixture_load(f);
	assert_int_equal(f->p->network.allowed.n, 0);
	assert_one_note(f, "claudeSettings would widen");
	fixture_trust(f, "home/proj/.ambit.yaml");
	fixture_load(f);
	assert_true(allows(f, "a.example"));
	fixture_managed(f, "claudeSettings: false\n");
	fixture_load(f);
	assert_int_equal(f->p->network.allowed.n, 0);
}

static void test_sandbox_keys(void **state)
{
	struct fixture *f = *state;
	const struct host_rule_entry *h;

	claude(f);
	fixture_mkdir(f, "out");
	fixture_mkdir(f, "home/.claude/rel");
	user(f,
	     arena_printf(f->a,
			  "{\n\"model\": \"opus\", \"hooks\": {\"Stop\": [{\"x\": 1}]},\n"
			  "\"sandbox\": {\n"
			  "\"enabled\": false, \"autoAllowBashIfSandboxed\": false,\n"
			  "\"excludedCommands\": [\"docker\", \"npm * x\", \"sudo\"],\n"
			  "\"allowUnsandboxedCommands\": true, \"unknown\": 7,\n"
			  "\"network\": {\"allowedDomains\": [\n\"a.example\",\n\"*.b.example\"],\n"
			  "  \"deniedDomains\": [\"c.example\"], \"other\": 1},\n"
			  "\"filesystem\": {\"allowWrite\": [\"%s/out\", \"rel\", \"~/absent\"],\n"
			  "  \"denyRead\": [\"~/secret\"], \"denyWrite\": [\"%s/out/no\"]}}}",
			  f->dir, f->dir));
	fixture_load(f);
	/* Claude's own switch is not ours */
	assert_true(f->p->enabled);
	assert_false(f->p->auto_allow_bash);
	assert_true(f->p->allow_unsandboxed_commands);
	assert_int_equal(f->p->excluded_commands.n, 1);
	assert_int_equal(f->p->notes.n, 2);
	assert_non_null(
		strstr(f->p->notes.v[0].text, "settings.json:5: left out: excludedCommands"));
	assert_true(allows(f, "a.example"));
	assert_true(allows(f, "*.b.example"));
	assert_int_equal(f->p->network.mode, NETWORK_ALLOWLIST);
	h = &f->p->network.allowed.v[1];
	assert_int_equal(h->origin.line, 9);
	assert_int_equal(h->origin.layer, LAYER_USER);
	assert_string_equal(h->origin.name, path_join(f->a, f->home, ".claude/settings.json"));
	assert_int_equal(f->p->network.denied.n, 1);
	assert_writable(f, "out/x");
	assert_unwritable(f, "out/no");
	/* relative to ~/.claude, as Claude has it */
	assert_writable(f, "home/.claude/rel/x");
	assert_unwritable(f, "home/rel");
	assert_hidden(f, "home/secret");
}

static void test_permission_rules(void **state)
{
	struct fixture *f = *state;

	claude(f);
	fixture_mkdir(f, "out");
	user(f,
	     arena_printf(
		     f->a,
		     "{\"permissions\": {\n"
		     "\"allow\": [\"Bash(npm run:*)\", \"Edit(/%s/out/**)\", \"Read(~/.ssh/**)\",\n"
		     "  \"WebFetch(domain:docs.example)\", \"WebFetch\", \"mcp__x\", "
		     "\"WebSearch\",\n"
		     "  \"WebFetch(domain:*)\", \"Edit\"],\n"
		     "\"ask\": [\"Edit(/%s)\", \"WebFetch(domain:asked.example)\"],\n"
		     "\"deny\": [\"Read(./.token)\", \"Read(//%s/home/deep/**)\", \"Edit(/own)\",\n"
		     "  \"Edit(src/generated/)\", \"Write(Makefile)\", "
		     "\"WebFetch(domain:bad.example)\",\n"
		     "  \"Bash(curl:*)\", \"Bash(rm -rf *)\", \"Read(*.pem)\", \"Bash\", \"Bash(a "
		     "| b)\"],\n"
		     "\"additionalDirectories\": [\"../more\"]}}",
		     f->dir, f->dir, f->dir));
	fixture_mkdir(f, "home/more");
	fixture_load(f);
	assert_writable(f, "out/x");
	assert_writable(f, "home/more/x");
	/* allowing the Read tool spares a question; it does not open a secret */
	assert_hidden(f, "home/.ssh/id");
	assert_true(allows(f, "docs.example"));
	assert_int_equal(f->p->network.allowed.n, 1);
	assert_int_equal(f->p->network.denied.n, 1);
	assert_hidden(f, "home/proj/.token");
	assert_readable(f, "home/proj/sub/.token");
	assert_hidden(f, "home/deep/x");
	assert_hidden(f, "home/proj/a.pem");
	assert_hidden(f, "home/proj/sub/deeper/a.pem");
	assert_unwritable(f, "home/proj/src/generated/x");
	assert_writable(f, "home/proj/src/x");
	assert_unwritable(f, "home/proj/Makefile");
	assert_unwritable(f, "home/proj/sub/Makefile");
	assert_writable(f, "home/proj/own");
	assert_unwritable(f, "home/.claude/own");
	assert_int_equal(f->p->denied_commands.n, 2);
	assert_int_equal(f->p->notes.n, 2);
	assert_non_null(strstr(f->p->notes.v[0].text, "Bash(a | b)"));
	assert_non_null(strstr(f->p->notes.v[1].text, "WebFetch(domain:*)"));
}

/* Whatever a project's files say, they only narrow; trust makes no difference. */
static void test_project_narrows(void **state)
{
	static const char widening[] =
		"{\"sandbox\": {\"excludedCommands\": [\"docker\"], \"allowUnsandboxedCommands\": "
		"true,\n"
		" \"network\": {\"allowedDomains\": [\"evil.example\"], \"allowAllUnixSockets\": "
		"true},\n"
		" \"filesystem\": {\"allowWrite\": [\"~\"], \"allowRead\": [\"~/.ssh\"],\n"
		"   \"denyRead\": [\"hidden\"]}},\n"
		"\"permissions\": {\"allow\": [\"WebFetch(domain:evil2.example)\", \"Edit(~/x)\",\n"
		"  \"Edit(src/**)\"], \"deny\": [\"Read(/quiet)\", "
		"\"WebFetch(domain:ok.example)\"],\n"
		"  \"additionalDirectories\": [\"..\"]}}";
	struct fixture *f = *state;

	claude(f);
	user(f, "{\"sandbox\":{\"network\":{\"allowedDomains\":[\"ok.example\"]}}}");
	project(f, widening);
	fixture_write(f, "home/proj/.claude/settings.local.json",
		      "{\"sandbox\":{\"network\":{\"allowedDomains\":[\"evil3.example\"]},"
		      "\"filesystem\":{\"denyWrite\":[\"fixed\"]}}}");
	fixture_project(f, "{}");
	fixture_trust(f, "home/proj/.ambit.yaml");
	fixture_load(f);
	assert_int_equal(f->p->network.allowed.n, 1);
	assert_int_equal(f->p->network.denied.n, 1);
	assert_false(f->p->network.allow_all_unix_sockets);
	assert_false(f->p->allow_unsandboxed_commands);
	assert_int_equal(f->p->excluded_commands.n, 0);
	assert_unwritable(f, "home/x");
	assert_hidden(f, "home/.ssh/id");
	assert_hidden(f, "home/proj/hidden");
	assert_hidden(f, "home/proj/quiet");
	assert_unwritable(f, "home/proj/fixed");
	assert_writable(f, "home/proj/src/x");
	/* one line for each file */
	assert_int_equal(f->p->notes.n, 2);
	assert_non_null(strstr(f->p->notes.v[0].text, "settings.json: ignored: 9 entries"));
	assert_non_null(strstr(f->p->notes.v[1].text, "settings.local.json: ignored: 1 entry"));
}

static void test_project_is_found(void **state)
{
	struct fixture *f = *state;
	struct claude_files *files = claude(f);

	fixture_mkdir(f, "home/proj/a");
	f->in.cwd = files->cwd = fixture_mkdir(f, "home/proj/a/b");
	project(f, "{\"sandbox\":{\"filesystem\":{\"denyRead\":[\"hidden\"]}}}");
	fixture_load(f);
	assert_hidden(f, "home/proj/hidden");
	/* not above the project: there it is the user's, or a stranger's */
	files->top = files->cwd;
	fixture_load(f);
	assert_readable(f, "home/proj/hidden");
	/* the home as a project: the user's file is not taken twice, nor for a project's */
	f->in.cwd = files->cwd = files->top = f->home;
	user(f, "{\"sandbox\":{\"network\":{\"allowedDomains\":[\"a.example\"]}}}");
	fixture_load(f);
	assert_true(allows(f, "a.example"));
	assert_int_equal(f->p->notes.n, 0);
}

static void test_managed(void **state)
{
	struct fixture *f = *state;

	claude(f);
	user(f, "{\"sandbox\":{\"allowUnsandboxedCommands\": true,"
		"\"network\":{\"allowedDomains\":[\"user.example\"]},"
		"\"filesystem\":{\"allowRead\":[\"~/vault\"]}},"
		"\"permissions\":{\"allow\":[\"Edit(~/notes/**)\"],\"deny\":[\"Read(~/mine)\"]}}");
	fixture_write(f, "claude-managed.json",
		      "{\"allowManagedPermissionRulesOnly\": true, \"sandbox\": {\"enabled\": true,"
		      "\"failIfUnavailable\": true, \"allowUnsandboxedCommands\": false,"
		      "\"network\":{\"allowedDomains\":[\"corp.example\"],"
		      "\"allowManagedDomainsOnly\": true},"
		      "\"filesystem\":{\"denyRead\":[\"~/vault\"]}}}");
	fixture_write(f, "managed.d/20.json", "{\"permissions\":{\"deny\":[\"Read(~/b)\"]}}");
	fixture_write(f, "managed.d/10.json", "{\"permissions\":{\"deny\":[\"Read(~/a)\"]}}");
	fixture_write(f, "managed.d/note.txt", "not JSON");
	fixture_mkdir(f, "home/notes");
	fixture_load(f);
	assert_true(allows(f, "corp.example"));
	assert_false(allows(f, "user.example"));
	assert_hidden(f, "home/vault/x");
	assert_hidden(f, "home/a");
	assert_hidden(f, "home/b");
	/* denies of others count all the same, allows do not */
	assert_hidden(f, "home/mine");
	assert_unwritable(f, "home/notes/x");
	assert_false(f->p->allow_unsandboxed_commands);
	assert_true(f->p->only_managed_outside);
	fixture_option(f, "fallback", "warn");
	fixture_fails(f, "--option: fallback: refused: fixed by the managed settings, "
			 "@/claude-managed.json:1");
}

/* Our own files count above Claude's. */
static void test_order(void **state)
{
	struct fixture *f = *state;

	claude(f);
	user(f, "{\"sandbox\":{\"autoAllowBashIfSandboxed\": true}}");
	fixture_user(f, "claudeSettings: true\nautoAllowBashIfSandboxed: false\n");
	fixture_load(f);
	assert_false(f->p->auto_allow_bash);
	fixture_write(f, "claude-managed.json",
		      "{\"sandbox\":{\"autoAllowBashIfSandboxed\": false}}");
	fixture_managed(f, "autoAllowBashIfSandboxed: true\n");
	fixture_user(f, "claudeSettings: true\n");
	fixture_load(f);
	assert_true(f->p->auto_allow_bash);
}

static void test_credentials(void **state)
{
	static const char *const names[] = { "A_VARIABLE=1", "OTHER=2", "MASKED=3", NULL };
	struct fixture *f = *state;
	char **env;

	claude(f);
	user(f,
	     "{\"sandbox\":{\"credentials\":{\"files\":[{\"path\":\"~/.tok\",\"mode\":\"deny\"}],"
	     "\"envVars\":[{\"name\":\"A_VARIABLE\",\"mode\":\"deny\"},"
	     "{\"name\":\"MASKED\",\"mode\":\"mask\"}]}}}");
	fixture_load(f);
	assert_hidden(f, "home/.tok");
	assert_one_note(f, "denied instead of masked");
	env = policy_environment(f->p, f->a, (char *const *)(uintptr_t)names, NULL);
	assert_string_equal(env[0], "OTHER=2");
	for (size_t i = 0; env[i]; i++)
		assert_false(text_starts(env[i], "MASKED"));
}

static void test_errors(void **state)
{
	static const struct {
		const char *text, *want;
	} bad[] = {
		{ "{", "1:2: " },
		{ "{\"sandbox\": []}", "1:13: sandbox: must be an object" },
		{ "{\"sandbox\": {\"network\": 1}}", "1:25: network: must be an object" },
		{ "{\"sandbox\": {\"network\": {\"allowedDomains\": \"x\"}}}",
		  "1:44: network.allowedDomains: must be a list" },
		{ "{\"sandbox\": {\"network\":\n{\"allowedDomains\": [1]}}}",
		  "2:21: network.allowedDomains: must be a string" },
		{ "{\"sandbox\": {\"network\":\n{\"allowedDomains\": [\"a b\"]}}}", "2:21: " },
		{ "{\"sandbox\": {\"autoAllowBashIfSandboxed\": \"yes\"}}",
		  "1:42: autoAllowBashIfSandboxed: must be true or false" },
		{ "{\"sandbox\": {\"excludedCommands\": [[]]}}",
		  "excludedCommands: must be a string" },
		{ "{\"permissions\": 1}", "1:17: permissions: must be an object" },
		{ "{\"permissions\": {\"deny\": {}}}", "1:26: permissions: must be a list" },
		{ "{\"permissions\": {\"deny\": [3]}}", "1:27: permissions: must be a string" },
		{ "{\"permissions\": {\"deny\": [\"Read(x\"]}}", "closing parenthesis" },
		{ "{\"permissions\": {\"allow\": [\"Edit()\"]}}", "nothing in the parentheses" },
		{ "{\"permissions\": {\"deny\": [\"Read(a**b/c[)\"]}}", "filesystem.denyRead" },
		{ "{\"permissions\": {\"deny\": [\"WebFetch(domain:a b)\"]}}",
		  "network.deniedDomains" },
		{ "{\"sandbox\": {\"credentials\": {\"files\": [{}]}}}", "\"path\" is missing" },
	};
	struct fixture *f = *state;

	claude(f);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		const char *file = path_join(f->a, f->home, ".claude/settings.json:");

		user(f, bad[i].text);
		memset(&f->e, 0, sizeof(f->e));
		if (policy_load(f->a, &f->in, &f->p, &f->e) >= 0)
			fail_msg("accepted: %s", bad[i].text);
		if (!text_starts(f->e.text, file) || !strstr(f->e.text, bad[i].want))
			fail_msg("%s: %s", bad[i].text, f->e.text);
	}
}

static void test_domains(void **state)
{
	struct fixture *f = *state;
	struct claude_files *files = claude(f);
	struct text_rules list;

	assert_int_equal(claude_domains(f->a, files, &list, &f->e), 0);
	assert_int_equal(list.n, 0);
	user(f, "{\"sandbox\":{\"network\":{\"allowedDomains\":[\"a.example\"]}},\n"
		"\"permissions\":{\"allow\":[\"WebFetch(domain:b.example)\"]}}");
	project(f, "{\"sandbox\":{\"network\":{\"allowedDomains\":[\"evil.example\"]}}}");
	fixture_write(f, "claude-managed.json",
		      "{\"sandbox\":{\"network\":{\"allowedDomains\":[\"corp.example\"]}}}");
	assert_int_equal(claude_domains(f->a, files, &list, &f->e), 0);
	assert_int_equal(list.n, 3);
	assert_string_equal(list.v[0].text, "corp.example");
	assert_string_equal(list.v[2].text, "b.example");
	assert_int_equal(list.v[2].origin.line, 2);
	user(f, "{\"sandbox\":3}");
	assert_true(claude_domains(f->a, files, &list, &f->e) < 0);
}

static bool denies(struct fixture *f, const char *line)
{
	struct command_answer answer;

	command_judge_text(f->p, f->a, line, &answer);
	if (answer.place == COMMAND_REFUSED)
		assert_string_equal(answer.key, "deniedCommands");
	return answer.place == COMMAND_REFUSED;
}

static void test_denied_commands(void **state)
{
	static const char *const yes[] = {
		"curl x",
		"curl",
		"/usr/bin/curl x",
		"ls && curl x",
		"ls;curl x",
		"ls | curl x",
		"(curl x)",
		"x=1 curl y",
		"echo $(curl x)",
		"echo \"$(curl x)\"",
		"echo `curl x`",
		"c'u'rl x",
		"cu\\rl x",
		"sudo curl x",
		"env A=B curl x",
		"timeout 5 curl x",
		"if curl; then x; fi",
		"! curl x",
		"ls\ncurl x",
		"rm -rf /",
		"bash -c 'curl x'",
		"sh -c \"ls; curl x\"",
		"xargs curl < x",
		"git push",
		"curl x > y",
		"ls > x & curl y",
	};
	static const char *const no[] = {
		"ls",
		"echo curl",
		"curly x",
		"git push -f",
		"rm -r x",
		"rm x",
		"git commit -m 'curl; x'",
		"grep curl y",
		"cat curl.txt && ls",
		"",
	};
	struct fixture *f = *state;

	fixture_user(f, "deniedCommands: ['curl:*', 'rm -rf *', 'git push']\n"
			"excludedCommands: [curl, ls]\nallowUnsandboxedCommands: true\n");
	fixture_load(f);
	for (size_t i = 0; i < ARRAY_LEN(yes); i++) {
		if (!denies(f, yes[i]))
			fail_msg("not denied: %s", yes[i]);
	}
	for (size_t i = 0; i < ARRAY_LEN(no); i++) {
		if (denies(f, no[i]))
			fail_msg("denied: %s", no[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		policy_test(test_only_when_asked), policy_test(test_who_may_ask),
		policy_test(test_sandbox_keys),    policy_test(test_permission_rules),
		policy_test(test_project_narrows), policy_test(test_project_is_found),
		policy_test(test_managed),         policy_test(test_order),
		policy_test(test_credentials),     policy_test(test_errors),
		policy_test(test_domains),         policy_test(test_denied_commands),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
