/* SPDX-License-Identifier: Apache-2.0 */
/* What a profile says that the managed file asks for is the managed file's own. */
#include "policy_fixture.h"

#include "policy/build.h"
#include "policy/claude.h"
#include "policy/excluded.h"

/* The managed file asks for `corp`, which says this. */
static void corp(struct fixture *f, const char *text)
{
	if (!f->in.profile_dir)
		f->in.profile_dir = fixture_mkdir(f, "shipped");
	fixture_write(f, "shipped/corp.yaml", text);
	fixture_managed(f, "profiles: [corp]\n");
}

static void assert_note(const struct fixture *f, const char *words)
{
	for (size_t i = 0; i < f->p->notes.n; i++) {
		if (strstr(f->p->notes.v[i].text, words))
			return;
	}
	fail_msg("no note with \"%s\" among %zu", words, f->p->notes.n);
}

static const char *row_text(const struct fixture *f, const char *key)
{
	_cleanup_buf_ struct buf out = BUF_INIT(4096);

	policy_print_row(f->p, (size_t)setting_find(key), ~0u, &out);
	return arena_strdup(f->a, buf_str(&out));
}

/* Every single value that has a wider side: what the profile says, and what goes beyond it. */
static const struct pair {
	const char *key, *fixed, *wider;
} pairs[] = {
	{ "network.mode", "none", "host" },
	{ "network.strictAllowlist", "true", "false" },
	{ "network.requireSNI", "true", "false" },
	{ "network.allowECH", "false", "true" },
	{ "network.allowAllUnixSockets", "false", "true" },
	{ "network.allowLocalBinding", "false", "true" },
	{ "network.allowPrivateAddresses", "false", "true" },
	{ "network.httpProxyPort", "0", "8080" },
	{ "network.socksProxyPort", "0", "1080" },
	{ "network.parentProxy.http", "http://a.test:1", "http://b.test:1" },
	{ "network.parentProxy.https", "http://a.test:1", "http://b.test:1" },
	{ "network.parentProxy.noProxy", "a.test", "b.test" },
	{ "filesystem.protect", "everywhere", "anchors" },
	{ "filesystem.tmp", "private", "shared" },
	{ "filesystem.home", "private", "real" },
	{ "filesystem.allowGitConfig", "false", "true" },
	{ "limits.memory", "100", "0" },
	{ "limits.cpu", "1", "2" },
	{ "limits.pids", "100", "101" },
	{ "limits.disk", "100", "101" },
	{ "limits.output", "100", "101" },
	{ "limits.timeout", "100", "0" },
	{ "environment.inherit", "none", "all" },
	{ "container.image", "a", "b" },
	{ "allowUnsandboxedCommands", "false", "true" },
	{ "autoAllowBashIfSandboxed", "false", "true" },
	{ "enabled", "true", "false" },
	{ "backend", "native", "none" },
	{ "fallback", "enforce", "warn" },
	{ "enableWeakerNestedSandbox", "false", "true" },
	{ "claudeSettings", "false", "true" },
	{ "audit.path", "/var/log/a/log", "none" },
	{ "audit.maxSize", "1000", "1001" },
	{ "audit.maxFiles", "7", "6" },
	{ "audit.redact", "true", "false" },
	{ "log.format", "jsonl", "text" },
	{ "log.maxSize", "1000", "100" },
	{ "log.maxFiles", "5", "0" },
};

/* One value as a settings file: "{network: {mode: none}}". */
static const char *file_of(struct fixture *f, const char *key, const char *value)
{
	const char *dot = strchr(key, '.');

	if (!dot)
		return arena_printf(f->a, "{%s: %s}", key, value);
	return arena_printf(f->a, "{%s: %s}", arena_strndup(f->a, key, (size_t)(dot - key)),
			    file_of(f, dot + 1, value));
}

/* A new value setting must be thought about here, too. */
static void test_all_values_are_here(void **state)
{
	(void)state;
	for (size_t i = 0; i < settings_count; i++) {
		bool found = !setting_is_scalar(&settings_table[i]);

		for (size_t k = 0; k < ARRAY_LEN(pairs); k++)
			found = found || strcmp(pairs[k].key, settings_table[i].key) == 0;
		if (!found)
			fail_msg("%s has no pair", settings_table[i].key);
	}
}

static void test_values(void **state)
{
	struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_LEN(pairs); i++) {
		const char *key = pairs[i].key, *want;
		const char *by = arena_printf(
			f->a, "%s is fixed by the managed settings, profile corp:1 (managed)", key);

		corp(f, file_of(f, key, pairs[i].fixed));
		f->in.user_file = f->in.project_file = NULL;
		f->in.n_settings = 0;
		fixture_load(f);
		want = row_text(f, key);

		fixture_user(f, file_of(f, key, pairs[i].wider));
		fixture_load(f);
		assert_string_equal(row_text(f, key), want);
		assert_note(f, by);

		f->in.user_file = NULL;
		fixture_project(f, file_of(f, key, pairs[i].wider));
		fixture_trust(f, "home/proj/.ambit.yaml");
		fixture_load(f);
		assert_true(f->p->project_trusted);
		assert_string_equal(row_text(f, key), want);
		assert_note(f, by);

		f->in.project_file = NULL;
		fixture_write(f, "shipped/other.yaml", file_of(f, key, pairs[i].wider));
		fixture_option(f, "profiles", "other");
		fixture_load(f);
		assert_string_equal(row_text(f, key), want);
		assert_note(f, by);

		f->in.n_settings = 0;
		fixture_option(f, key, pairs[i].wider);
		fixture_fails(f, arena_printf(f->a,
					      "--option: %s: refused: fixed by the managed "
					      "settings, profile corp:1 (managed)",
					      key));
	}
}

/* The same pairs: an untrusted project does not go beyond what the user says. */
static void test_values_and_an_untrusted_project(void **state)
{
	struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_LEN(pairs); i++) {
		const char *key = pairs[i].key, *want;

		fixture_user(f, file_of(f, key, pairs[i].fixed));
		f->in.project_file = NULL;
		fixture_load(f);
		want = row_text(f, key);
		fixture_project(f, file_of(f, key, pairs[i].wider));
		fixture_load(f);
		assert_string_equal(row_text(f, key), want);
		assert_note(f, arena_printf(f->a, "%s would widen the policy", key));
	}
}

/* The managed file stands above its profiles, and others may still narrow. */
static void test_values_of_the_managed_file(void **state)
{
	struct fixture *f = *state;

	corp(f, "limits: {pids: 100}\nbackend: native\n");
	fixture_write(f, "shipped/less.yaml", "limits: {pids: 10}\n");
	fixture_user(f, "profiles: [less]\n");
	fixture_load(f);
	assert_int_equal(f->p->limits.pids, 10);
	assert_int_equal(f->p->notes.n, 0);
	fixture_user(f, "limits: {pids: 20}\n");
	fixture_load(f);
	assert_int_equal(f->p->limits.pids, 20);

	fixture_managed(f, "profiles: [corp]\nlimits: {pids: 500}\n");
	fixture_user(f, "limits: {pids: 400}\n");
	fixture_load(f);
	assert_int_equal(f->p->limits.pids, 400);
	fixture_user(f, "limits: {pids: 600}\n");
	fixture_load(f);
	assert_int_equal(f->p->limits.pids, 500);
	assert_note(f, "limits.pids is fixed by the managed settings, ");
	assert_note(f, "managed.yaml:2");
	/* -p corp: its values are an option's now, where they narrow */
	f->in.user_file = NULL;
	fixture_option(f, "profiles", "corp");
	fixture_load(f);
	assert_int_equal(f->p->limits.pids, 100);
}

static void test_paths(void **state)
{
	struct fixture *f = *state;

	corp(f, "filesystem:\n"
		"  denyRead: [~/vault]\n"
		"  denyWrite: [~/proj/out]\n"
		"  allowRead: [~/vault/doc]\n");
	fixture_load(f);
	assert_hidden(f, "home/vault/key");
	assert_readable(f, "home/vault/doc/x");

	fixture_user(f, "filesystem:\n  allowRead: [~/vault/key]\n  allowWrite: [~/vault/a]\n");
	fixture_load(f);
	assert_hidden(f, "home/vault/key");
	assert_unwritable(f, "home/vault/a");
	assert_int_equal(f->p->notes.n, 2);
	assert_note(f, "user.yaml:2: ignored: filesystem.allowRead is fixed by the managed "
		       "settings, profile corp:2 (managed)");
	fixture_option(f, "profiles", "corp");
	fixture_load(f);
	assert_hidden(f, "home/vault/key");

	/* neither a profile of the user's nor a trusted project */
	f->in.n_settings = 0;
	f->in.user_file = NULL;
	fixture_write(f, "shipped/other.yaml", "filesystem: {allowRead: [~/vault/key]}\n");
	fixture_project(f, "profiles: [other]\nfilesystem: {allowRead: [~/vault/key]}\n");
	fixture_trust(f, "home/proj/.ambit.yaml");
	fixture_load(f);
	assert_hidden(f, "home/vault/key");
	assert_int_equal(f->p->notes.n, 2);

	f->in.project_file = NULL;
	fixture_option(f, "filesystem.allowRead", "~/vault/key");
	fixture_fails(f, "--option: filesystem.allowRead: refused: fixed by the managed settings, "
			 "profile corp:2 (managed)");
	f->settings[0] = (struct setting_text){ "filesystem.allowWrite", "~/proj/out", "--option",
						LAYER_OPTION };
	fixture_fails(f, "--option: filesystem.allowWrite: refused: fixed by the managed settings, "
			 "profile corp:3 (managed)");
}

/* The managed file can make exceptions to its profiles, they cannot to the managed file. */
static void test_paths_of_the_managed_file(void **state)
{
	struct fixture *f = *state;

	corp(f, "filesystem: {denyRead: [~/vault, ~/a], allowRead: [~/own/doc]}\n");
	fixture_managed(f, "profiles: [corp]\n"
			   "filesystem: {denyRead: [~/own], allowRead: [~/vault, ~/a/b]}\n");
	fixture_load(f);
	assert_int_equal(f->p->notes.n, 0);
	assert_readable(f, "home/vault/x");
	assert_readable(f, "home/a/b");
	assert_hidden(f, "home/a/c");
	assert_hidden(f, "home/own/doc");
}

static void test_hosts(void **state)
{
	struct fixture *f = *state;

	corp(f, "network: {deniedDomains: ['*.evil.test']}\n");
	fixture_user(f, "network: {allowedDomains: [a.evil.test, b.test]}\n");
	fixture_load(f);
	assert_int_equal(f->p->network.allowed.n, 1);
	assert_one_note(f, "network.allowedDomains is fixed by the managed settings, "
			   "profile corp:1 (managed)");
	f->in.user_file = NULL;
	fixture_option(f, "network.allowedDomains", "a.evil.test");
	fixture_fails(f, "--option: network.allowedDomains: refused: fixed by the managed "
			 "settings, profile corp:1 (managed)");
	/* a proxy in place of ours would not know of it */
	f->settings[0] =
		(struct setting_text){ "network.httpProxyPort", "8080", "--option", LAYER_OPTION };
	fixture_fails(f, "--option: a proxy in place of ambit's is refused: the network rules of "
			 "the managed settings, profile corp:1 (managed), would not hold for it");
}

static void test_names(void **state)
{
	struct fixture *f = *state;

	corp(f, "filesystem: {protectNames: [deploy.key]}\n");
	fixture_user(f, "filesystem: {unprotect: [deploy.key], allowWrite: [deploy.key]}\n");
	fixture_load(f);
	assert_unwritable(f, "home/proj/a/deploy.key");
	assert_unwritable(f, "home/proj/deploy.key");
	assert_one_note(f, "filesystem.unprotect is fixed by the managed settings, "
			   "profile corp:1 (managed)");
	f->in.user_file = NULL;
	fixture_managed(f, "profiles: [corp]\nfilesystem: {unprotect: [deploy.key]}\n");
	fixture_load(f);
	assert_writable(f, "home/proj/a/deploy.key");
	assert_int_equal(f->p->notes.n, 0);
}

/* A profile that comes with another of the managed file's: nobody gets it by asking first. */
static void test_profiles_of_profiles(void **state)
{
	struct fixture *f = *state;

	corp(f, "profiles: [inner]\n");
	fixture_write(f, "shipped/inner.yaml",
		      "profiles: [core]\nfilesystem: {denyRead: [~/vault]}\n");
	fixture_write(f, "shipped/core.yaml", "limits: {pids: 100}\n");
	fixture_user(f, "profiles: [core, inner]\n"
			"limits: {pids: 200}\n"
			"filesystem: {allowRead: [~/vault/x]}\n");
	fixture_load(f);
	assert_hidden(f, "home/vault/x");
	assert_int_equal(f->p->limits.pids, 100);
	assert_note(f, "limits.pids is fixed by the managed settings, profile core:1 (managed)");
}

/* Nor does an untrusted project take one from the user. */
static void test_profiles_of_profiles_and_a_project(void **state)
{
	struct fixture *f = *state;

	f->in.profile_dir = fixture_mkdir(f, "shipped");
	fixture_write(f, "shipped/outer.yaml", "profiles: [inner]\n");
	fixture_write(f, "shipped/inner.yaml", "filesystem: {allowWrite: [~/cache]}\n");
	fixture_user(f, "profiles: [outer]\n");
	fixture_project(f, "profiles: [inner]\n");
	fixture_load(f);
	assert_writable(f, "home/cache/x");
	assert_int_equal(f->p->notes.n, 0);
}

static void test_claude(void **state)
{
	struct fixture *f = *state;
	struct claude_files files = { .cwd = f->proj, .top = f->proj };

	files.user = fixture_write(f, "claude.json",
				   "{\"sandbox\":{\"filesystem\":{\"denyRead\":[\"~/seen\"]}}}");
	f->in.claude = &files;
	corp(f, "claudeSettings: true\n");
	fixture_user(f, "claudeSettings: false\n");
	fixture_load(f);
	assert_hidden(f, "home/seen");
	assert_true(f->p->claude_settings);
	corp(f, "claudeSettings: false\n");
	fixture_user(f, "claudeSettings: true\n");
	fixture_load(f);
	assert_readable(f, "home/seen");
	fixture_managed(f, "profiles: [corp]\nclaudeSettings: true\n");
	fixture_load(f);
	assert_hidden(f, "home/seen");
}

static enum command_place place_of(const struct fixture *f, const char *word)
{
	char *argv[] = { arena_strdup(f->a, word), NULL };
	struct command_answer answer;

	command_judge_argv(f->p, f->a, argv, &answer);
	return answer.place;
}

static void test_excluded(void **state)
{
	struct fixture *f = *state;

	corp(f, "enabled: true\nallowUnsandboxedCommands: true\nexcludedCommands: [podman]\n");
	fixture_user(f, "excludedCommands: [docker]\n");
	fixture_load(f);
	assert_true(f->p->only_managed_outside);
	assert_int_equal(place_of(f, "docker"), COMMAND_SANDBOXED);
	assert_int_equal(place_of(f, "podman"), COMMAND_OUTSIDE);
}

static void test_live(void **state)
{
	const struct live_text line = { .name = "control fd 3",
					.text = "{\"network\":{\"allowedDomains\":"
						"[\"a.evil.test\",\"b.test\"]}}" };
	struct live_text text = line;
	struct fixture *f = *state;
	const struct policy *next;

	text.len = strlen(text.text);
	corp(f, "network: {mode: allowlist, deniedDomains: ['*.evil.test']}\n");
	f->in.live_network = true;
	fixture_load(f);
	assert_int_equal(policy_load_live(f->a, &f->in, f->p, &text, &next, &f->e), 0);
	assert_int_equal(next->network.allowed.n, 1);
	assert_int_equal(next->network.denied.n, 1);
	assert_true(next->network.denied.v[0].locked);
}

static void test_provenance(void **state)
{
	_cleanup_buf_ struct buf text = BUF_INIT(BUF_MAX_TEXT), json = BUF_INIT(BUF_MAX_TEXT);
	struct fixture *f = *state;

	corp(f, "filesystem: {denyRead: [~/vault]}\nlimits: {pids: 100}\n");
	fixture_write(f, "shipped/other.yaml", "limits: {cpu: 2}\n");
	fixture_user(f, "profiles: [other]\n");
	fixture_load(f);
	policy_print(f->p, &text);
	assert_non_null(strstr(buf_str(&text), " profile corp:1 (managed)\n"));
	assert_non_null(strstr(buf_str(&text), " profile corp:2 (managed)\n"));
	assert_non_null(strstr(buf_str(&text), " profile other:1\n"));
	policy_print_json(f->p, &json);
	assert_non_null(strstr(buf_str(&json), "\"pids\": \"profile corp:2 (managed)\""));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		policy_test(test_all_values_are_here),
		policy_test(test_values),
		policy_test(test_values_and_an_untrusted_project),
		policy_test(test_values_of_the_managed_file),
		policy_test(test_paths),
		policy_test(test_paths_of_the_managed_file),
		policy_test(test_hosts),
		policy_test(test_names),
		policy_test(test_profiles_of_profiles),
		policy_test(test_profiles_of_profiles_and_a_project),
		policy_test(test_claude),
		policy_test(test_excluded),
		policy_test(test_live),
		policy_test(test_provenance),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
