/* SPDX-License-Identifier: Apache-2.0 */
/* Who wins, who may not, and what is said about it. */
#include "policy/schema.h"
#include "policy_fixture.h"

static void test_later_wins_and_lists_merge(void **state)
{
	struct fixture *f = *state;

	fixture_user(f, "limits: {memory: 1g, pids: 10}\n"
			"network: {allowedDomains: [a.example]}\n");
	fixture_project(f, "limits: {memory: 512m}\nnetwork: {deniedDomains: [b.a.example]}\n");
	fixture_option(f, "limits.pids", "20");
	fixture_option(f, "network.allowedDomains", "c.example");
	fixture_load(f);
	assert_int_equal(f->p->limits.memory, 512u << 20);
	assert_int_equal(f->p->limits.pids, 20);
	assert_int_equal(f->p->network.allowed.n, 2);
	assert_int_equal(f->p->network.denied.n, 1);
	assert_int_equal(f->p->notes.n, 0);
}

static const char *origin_of(const struct fixture *f, const char *key)
{
	return origin_text(f->a, &f->p->value_origin[setting_find(key)]);
}

static void test_origins(void **state)
{
	struct fixture *f = *state;

	f->in.profile_dir = fixture_mkdir(f, "profiles");
	fixture_write(f, "profiles/mine.json",
		      "{\n \"limits\": {\"pids\": 5},\n"
		      " \"network\": {\"allowedDomains\":\n [\"a.example\"]}}");
	fixture_user(f, "\nlimits:\n  memory: 1g\n");
	fixture_option(f, "profiles", "mine");
	fixture_option(f, "limits.disk", "1g");
	fixture_load(f);
	assert_string_equal(origin_of(f, "limits.output"), "default");
	assert_string_equal(origin_of(f, "limits.pids"), "profile mine:2");
	assert_string_equal(origin_of(f, "limits.memory"),
			    arena_printf(f->a, "%s/user.yaml:3", f->dir));
	assert_string_equal(origin_of(f, "limits.disk"), "--option");
	/* the mode followed from this entry */
	assert_string_equal(origin_of(f, "network.mode"), "profile mine:4");
	assert_string_equal(f->p->profiles.v[0].text, "mine");
	assert_string_equal(origin_text(f->a, &f->p->profiles.v[0].origin), "--option");
}

static void test_only_file_replaces(void **state)
{
	struct fixture *f = *state;

	fixture_user(f, "limits: {memory: 1g}");
	fixture_project(f, "this is: [broken");
	fixture_managed(f, "limits: {pids: 7}");
	fixture_only(f, "{\"limits\": {\"cpu\": 1}}");
	fixture_load(f);
	assert_int_equal(f->p->limits.memory, 0);
	assert_int_equal(f->p->limits.pids, 7);
}

/*
 * Managed settings.
 */

static void test_managed_values_only_narrow(void **state)
{
	struct fixture *f = *state;

	fixture_managed(f, "network: {mode: allowlist}\n"
			   "limits: {memory: 1g, timeout: 60}\n"
			   "enabled: true\n");
	fixture_user(f, "network: {mode: none}\nlimits:\n  memory: 2g\n  timeout: 30\n");
	fixture_load(f);
	assert_int_equal(f->p->network.mode, NETWORK_NONE);
	assert_int_equal(f->p->limits.memory, 1u << 30);
	assert_int_equal(f->p->limits.timeout_ms, 30000);
	assert_one_note(f,
			"user.yaml:3: ignored: limits.memory is fixed by the managed settings, ");
	assert_non_null(strstr(f->p->notes.v[0].text, "managed.yaml:2"));
	/* no limit is more than any limit */
	fixture_option(f, "limits.memory", "0");
	fixture_fails(f, "--option: limits.memory: refused: fixed by the managed settings, "
			 "@/managed.yaml:2");
	f->settings[0] =
		(struct setting_text){ "network.mode", "allowlist", "--option", LAYER_OPTION };
	fixture_load(f);
	assert_int_equal(f->p->network.mode, NETWORK_ALLOWLIST);
	f->settings[0] =
		(struct setting_text){ "enabled", "false", "AMBIT_NO_SANDBOX", LAYER_ENVIRONMENT };
	fixture_fails(f, "AMBIT_NO_SANDBOX: enabled: refused: fixed by the managed settings, "
			 "@/managed.yaml:3");
}

static void test_managed_denies_hold(void **state)
{
	struct fixture *f = *state;

	fixture_managed(f, "filesystem:\n"
			   "  denyRead: [~/vault]\n"
			   "  allowRead: [~/vault/open]\n"
			   "  denyWrite: [~/proj/lock]\n"
			   "network: {deniedDomains: ['*.evil.example']}\n");
	fixture_user(f, "filesystem:\n  allowRead: [~/vault/deep/er]\n  allowWrite: [~]\n");
	fixture_load(f);
	assert_hidden(f, "home/vault/deep/er");
	assert_hidden(f, "home/vault/x");
	/* its own exception counts */
	assert_readable(f, "home/vault/open/x");
	assert_unwritable(f, "home/vault/x");
	assert_unwritable(f, "home/proj/lock/x");
	assert_writable(f, "home/other");
	assert_one_note(f, "user.yaml:2: ignored: filesystem.allowRead is fixed by the managed "
			   "settings, ");
	fixture_option(f, "filesystem.allowWrite", "lock/sub");
	fixture_fails(f, "--option: filesystem.allowWrite: refused: fixed by the managed settings, "
			 "@/managed.yaml:4");
	f->settings[0].key = "network.allowedDomains";
	f->settings[0].value = "a.evil.example";
	fixture_fails(f, "--option: network.allowedDomains: refused: fixed by the managed "
			 "settings, @/managed.yaml:5");
	f->settings[0].value = "evil.example";
	fixture_load(f);
}

static void test_locked_keys(void **state)
{
	struct fixture *f = *state;

	f->in.profile_dir = fixture_mkdir(f, "profiles");
	fixture_write(f, "profiles/net.yaml", "network: {allowedDomains: [p.example]}");
	fixture_managed(f, "locked:\n  - network.allowedDomains\n  - filesystem.unprotect\n"
			   "network: {allowedDomains: [m.example]}\n");
	fixture_user(f, "network: {allowedDomains: [u.example]}");
	fixture_load(f);
	assert_int_equal(f->p->network.allowed.n, 1);
	assert_one_note(f, "ignored: network.allowedDomains is fixed");
	/* a profile cannot do what its caller cannot */
	f->in.user_file = NULL;
	fixture_option(f, "profiles", "net");
	fixture_load(f);
	assert_int_equal(f->p->network.allowed.n, 1);
	assert_one_note(f, "profile net:1: ignored: network.allowedDomains");
	/* but the managed file's own can */
	f->in.n_settings = 0;
	fixture_managed(f, "locked: [network.allowedDomains]\nprofiles: [net]\n");
	fixture_load(f);
	assert_int_equal(f->p->network.allowed.n, 1);
	assert_int_equal(f->p->notes.n, 0);
	fixture_managed(f, "locked: [network.allowedDomain]\n");
	fixture_fails(f,
		      "@/managed.yaml:1:10: locked: unknown key \"network.allowedDomain\" (did you "
		      "mean \"network.allowedDomains\"?)");
}

static void test_locked_profiles(void **state)
{
	struct fixture *f = *state;

	f->in.profile_dir = fixture_mkdir(f, "profiles");
	fixture_write(f, "profiles/net.yaml", "network: {allowedDomains: [p.example]}");
	fixture_managed(f, "locked: [profiles]");
	fixture_option(f, "profiles", "net");
	fixture_fails(f, "--option: profiles: refused: fixed by the managed settings, "
			 "@/managed.yaml:1");
}

/* Nobody takes a profile away from the managed file, neither by asking too nor by another of its name. */
static void test_managed_profiles(void **state)
{
	struct fixture *f = *state;
	const char *const own[] = { fixture_mkdir(f, "own"), NULL };

	f->in.profile_dir = fixture_mkdir(f, "shipped");
	f->in.profile_dirs_user = own;
	fixture_write(f, "shipped/corp.yaml", "filesystem: {denyRead: [~/hidden]}\n");
	fixture_managed(f, "locked: [filesystem.denyRead, filesystem.allowWrite]\n"
			   "profiles: [corp]\n");
	fixture_load(f);
	assert_hidden(f, "home/hidden");
	fixture_option(f, "profiles", "corp");
	fixture_load(f);
	assert_hidden(f, "home/hidden");
	f->in.n_settings = 0;
	fixture_write(f, "own/corp.yaml", "filesystem: {allowWrite: [~]}\n");
	fixture_load(f);
	assert_hidden(f, "home/hidden");
	assert_unwritable(f, "home/x");
}

/* A file named without its directory lies beside the settings, not in the project. */
static void test_profile_beside_the_settings(void **state)
{
	struct fixture *f = *state;

	fixture_write(f, "home/proj/mine.yaml", "filesystem: {allowWrite: [~]}\n");
	fixture_write(f, "mine.yaml", "filesystem: {denyRead: [~/hidden]}\n");
	fixture_user(f, "profiles: [mine.yaml]\n");
	fixture_load(f);
	assert_hidden(f, "home/hidden");
	assert_unwritable(f, "home/x");
}

static void test_managed_protection(void **state)
{
	struct fixture *f = *state;

	fixture_managed(f, "filesystem: {protectNames: [deploy.key]}");
	fixture_user(f, "filesystem: {unprotect: [deploy.key, .vscode, .claude]}");
	fixture_load(f);
	assert_unwritable(f, "home/proj/a/deploy.key");
	assert_writable(f, "home/proj/.vscode/tasks.json");
	/* lifts everything below, too */
	assert_writable(f, "home/proj/.claude/settings.json");
	assert_unwritable(f, "home/proj/.idea/x");
	assert_one_note(f, "unprotect is fixed by the managed settings");
	/* locked: naming the very path does not help either */
	fixture_managed(f, "locked: [filesystem.unprotect]");
	f->in.user_file = NULL;
	fixture_option(f, "filesystem.allowWrite", ".vscode");
	fixture_load(f);
	assert_unwritable(f, "home/proj/.vscode/x");
	f->in.managed_file = NULL;
	fixture_load(f);
	assert_writable(f, "home/proj/.vscode/x");
}

/* Another key that lifts a name. */
static void test_managed_protection_of_git_config(void **state)
{
	static const char *const managed[] = {
		"filesystem: {protectNames: [.git/config]}",
		"locked: [filesystem.unprotect]",
	};
	struct fixture *f = *state;

	fixture_user(f, "filesystem: {allowGitConfig: true}");
	for (size_t i = 0; i < ARRAY_LEN(managed); i++) {
		fixture_managed(f, managed[i]);
		fixture_load(f);
		assert_unwritable(f, "home/proj/.git/config");
		assert_false(f->p->fs.allow_git_config);
		assert_one_note(f, "user.yaml:1: ignored: filesystem.allowGitConfig is fixed by "
				   "the managed settings, ");
	}
	f->in.user_file = NULL;
	fixture_managed(f, "filesystem: {allowGitConfig: true}\nlocked: [filesystem.unprotect]\n");
	fixture_load(f);
	assert_writable(f, "home/proj/.git/config");
}

/*
 * Projects.
 */

static const char widening[] = "network:\n"
			       "  mode: host\n"
			       "  allowedDomains: [evil.example]\n"
			       "  allowUnixSockets: [/run/docker.sock]\n"
			       "  allowHostPorts: [22]\n"
			       "  allowPrivateAddresses: true\n"
			       "filesystem:\n"
			       "  allowRead: [~/.ssh]\n"
			       "  allowWrite: [~, /etc]\n"
			       "  unprotect: [.vscode]\n"
			       "  tmp: shared\n"
			       "  bulk: [src]\n"
			       "limits: {memory: 0}\n"
			       "environment:\n"
			       "  inherit: all\n"
			       "  pass: [SECRET]\n"
			       "  set: {LD_PRELOAD: ./x.so}\n"
			       "enabled: false\n"
			       "backend: none\n"
			       "fallback: warn\n"
			       "excludedCommands: [docker]\n"
			       "ignoreViolations: {'*': [x]}\n"
			       "audit: {path: /var/log/x/log, redact: false}\n"
			       "log: {format: jsonl, maxSize: 1, maxFiles: 0}\n";

static void test_untrusted_project_cannot_widen(void **state)
{
	struct fixture *f = *state;

	fixture_user(f, "limits: {memory: 1g}");
	fixture_project(f, widening);
	fixture_load(f);
	assert_int_equal(f->p->network.mode, NETWORK_NONE);
	assert_int_equal(f->p->network.allowed.n, 0);
	assert_int_equal(f->p->network.unix_sockets.n, 0);
	assert_int_equal(f->p->network.host_ports.n, 0);
	assert_false(f->p->network.allow_private_addresses);
	assert_hidden(f, "home/.ssh/id");
	assert_unwritable(f, "home/x");
	assert_unwritable(f, "/etc/x");
	assert_unwritable(f, "home/proj/.vscode/x");
	assert_int_equal(f->p->fs.tmp, TMP_PRIVATE);
	assert_int_equal(f->p->fs.bulk.n, 0);
	assert_int_equal(f->p->limits.memory, 1u << 30);
	assert_int_equal(f->p->env.inherit, ENV_SAFE);
	assert_int_equal(f->p->env.pass.n, 0);
	assert_int_equal(f->p->env.set.n, 0);
	assert_true(f->p->enabled);
	assert_int_equal(f->p->backend, BACKEND_AUTO);
	assert_int_equal(f->p->fallback, FALLBACK_ENFORCE);
	assert_int_equal(f->p->excluded_commands.n, 0);
	assert_int_equal(f->p->ignore.n, 0);
	assert_null(f->p->audit_path);
	assert_true(f->p->audit_redact);
	assert_int_equal(f->p->log_format, LOG_FORMAT_AUTO);
	assert_int_equal(f->p->log_max_size, 10 << 20);
	assert_int_equal(f->p->log_max_files, 5);
	assert_int_equal(f->p->notes.n, 25);
	assert_string_equal(
		f->p->notes.v[0].text,
		arena_printf(f->a,
			     "%s/.ambit.yaml:2: ignored: network.mode would widen the policy "
			     "(accept with: ambit trust %s)",
			     f->proj, f->proj));
}

static void test_trusted_project_can_widen(void **state)
{
	struct fixture *f = *state;

	fixture_user(f, "limits: {memory: 1g}");
	fixture_project(f, widening);
	fixture_trust(f, "home/proj/.ambit.yaml");
	fixture_load(f);
	assert_int_equal(f->p->notes.n, 0);
	assert_int_equal(f->p->network.mode, NETWORK_HOST);
	assert_readable(f, "home/.ssh/id");
	assert_writable(f, "home/x");
	assert_int_equal(f->p->limits.memory, 0);
	assert_false(f->p->enabled);
	assert_int_equal(f->p->log_format, LOG_FORMAT_JSONL);
	assert_int_equal(f->p->log_max_size, 1);
	assert_int_equal(f->p->log_max_files, 0);
}

/*
 * What an untrusted project may set as it likes. A new row here needs a reason why nothing that
 * the user relies on gets weaker by it.
 */
static void test_neutral_settings(void **state)
{
	static const char *const neutral[] = {
		"network.deniedDomainReasons", /* for its own entries only */
		"profiles", /* of which only what narrows counts */
		"locked", /* refused in all files but the managed one */
	};

	(void)state;
	for (size_t i = 0; i < settings_count; i++) {
		const struct setting *s = &settings_table[i];
		bool known = s->widening != WIDEN_NEUTRAL || s->type == SETTING_REFUSED ||
			     s->type == SETTING_ACCEPTED;

		for (size_t k = 0; k < ARRAY_LEN(neutral); k++)
			known = known || strcmp(neutral[k], s->key) == 0;
		if (!known)
			fail_msg("%s can be set by anybody", s->key);
	}
}

/* The text that a refusal is shown with is the word of whoever refuses. */
static void test_reasons_for_rules_of_others(void **state)
{
	static const char reasons[] = "network:\n"
				      "  deniedDomains: [p.test]\n"
				      "  deniedDomainReasons:\n"
				      "    m.test: project\n"
				      "    u.test: project\n"
				      "    p.test: project\n";
	struct fixture *f = *state;
	const struct host_rules *denied;

	fixture_managed(f, "network:\n  deniedDomains: [m.test]\n"
			   "  deniedDomainReasons: {m.test: managed}\n");
	fixture_user(f, "network:\n  deniedDomains: [u.test]\n"
			"  deniedDomainReasons: {m.test: user, u.test: user}\n");
	fixture_project(f, reasons);
	denied = &fixture_load(f)->network.denied;
	assert_int_equal(denied->n, 3);
	assert_string_equal(denied->v[0].reason, "managed");
	assert_string_equal(denied->v[1].reason, "user");
	assert_string_equal(denied->v[2].reason, "project");
	assert_int_equal(f->p->notes.n, 3);
	assert_non_null(strstr(f->p->notes.v[0].text,
			       "ignored: network.deniedDomainReasons is fixed by the managed "
			       "settings, "));
	assert_non_null(strstr(f->p->notes.v[2].text,
			       ":5: ignored: network.deniedDomainReasons would widen the policy "
			       "(accept with: ambit trust "));
	fixture_trust(f, "home/proj/.ambit.yaml");
	denied = &fixture_load(f)->network.denied;
	assert_string_equal(denied->v[0].reason, "managed");
	assert_string_equal(denied->v[1].reason, "project");
	assert_int_equal(f->p->notes.n, 2);
}

/* The files that a trusted project names are part of what was trusted; by name they are not its own. */
static void test_profiles_of_trusted_project(void **state)
{
	struct fixture *f = *state;

	fixture_mkdir(f, "home/proj/conf");
	fixture_write(f, "home/proj/conf/a.yaml", "profiles: [./b.yaml]\n");
	fixture_write(f, "home/proj/conf/b.yaml",
		      "filesystem: {allowWrite: [~/x], denyRead: [~/hidden]}\n");
	fixture_mkdir(f, "home/x");
	fixture_project(f, "profiles: [conf/a.yaml]\n");
	fixture_trust(f, "home/proj/.ambit.yaml");
	fixture_trust(f, "home/proj/conf/a.yaml");
	fixture_load(f);
	assert_true(f->p->project_trusted);
	assert_unwritable(f, "home/x/y");
	assert_hidden(f, "home/hidden");
	assert_int_equal(f->p->project_lines.n, 3);
	fixture_trust(f, "home/proj/conf/b.yaml");
	fixture_load(f);
	assert_writable(f, "home/x/y");
	fixture_write(f, "home/proj/conf/a.yaml", "profiles: [./b.yaml] # changed\n");
	fixture_load(f);
	assert_unwritable(f, "home/x/y");
}

/* What ambit remembers is hidden from everybody inside, whatever the rules say. */
static void test_own_places(void **state)
{
	struct fixture *f = *state;
	const char *log = arena_printf(f->a, "%s/home/log", f->dir);

	f->in.state_dir = fixture_mkdir(f, "home/state");
	fixture_user(f, "filesystem: {allowWrite: [~], allowRead: ['~/state/*']}");
	fixture_load(f);
	assert_hidden(f, "home/state/trust");
	assert_unwritable(f, "home/state/audit.jsonl");
	assert_writable(f, "home/stat");
	assert_string_equal(f->p->audit_file,
			    arena_printf(f->a, "%s/audit.jsonl", f->in.state_dir));

	fixture_user(f, "audit: {path: ~/log/a, maxSize: 1k, maxFiles: 3}");
	fixture_load(f);
	assert_hidden(f, "home/state/trust");
	assert_hidden(f, "home/log/a");
	assert_string_equal(f->p->audit_file, path_join(f->a, log, "a"));
	assert_int_equal(f->p->audit_max_size, 1024);
	assert_int_equal(f->p->audit_max_files, 3);

	fixture_user(f, "audit: {path: none}");
	fixture_load(f);
	assert_null(f->p->audit_file);
	assert_hidden(f, "home/state/trust");
}

static void test_own_places_refused(void **state)
{
	struct fixture *f = *state;

	f->in.state_dir = fixture_mkdir(f, "home/state");
	fixture_user(f, "filesystem: {allowWrite: [~/state/x]}");
	fixture_fails(f, "~/state/x (@/user.yaml:1) lies in @/home/state, which holds records of "
			 "ambit and is hidden from the command: work elsewhere");
	fixture_user(f, "audit: {path: ~/a}");
	fixture_fails(f, "the working directory lies in @/home, which holds records of ambit and "
			 "is hidden from the command: give the log a directory of its own "
			 "(audit.path)");
	fixture_user(f, "audit: {path: a/b}");
	fixture_fails(f,
		      "@/user.yaml:1:15: audit.path: \"a/b\" must begin with / or ~/, or be none");
}

static void test_untrusted_project_may_narrow(void **state)
{
	struct fixture *f = *state;

	fixture_user(f, "network: {allowedDomains: ['*.a.example', 10.0.0.0/8]}\n"
			"filesystem: {allowWrite: [~/data]}\n");
	fixture_project(f, "network:\n"
			   "  mode: allowlist\n"
			   "  allowedDomains: [x.a.example, '10.1.2.3:443']\n"
			   "  deniedDomains: ['*']\n"
			   "filesystem:\n"
			   "  denyRead: [.., secret]\n"
			   "  denyWrite: [src]\n"
			   "  allowRead: [.]\n"
			   "  allowWrite: [sub, ~/data/x, 'gen/*.c']\n"
			   "  protectNames: [Makefile]\n"
			   "  home: private\n"
			   "limits: {memory: 1g}\n"
			   "environment: {inherit: none}\n"
			   "enabled: true\n"
			   "require: [landlock]\n");
	fixture_load(f);
	assert_int_equal(f->p->notes.n, 0);
	assert_int_equal(f->p->network.mode, NETWORK_ALLOWLIST);
	/* relative to the project, and its own exception to its own rule works */
	assert_hidden(f, "home/other");
	assert_readable(f, "home/proj/README");
	assert_hidden(f, "home/proj/secret");
	assert_unwritable(f, "home/proj/src/a.c");
	assert_writable(f, "home/proj/lib/a.c");
	assert_unwritable(f, "home/proj/a/Makefile");
	assert_int_equal(f->p->fs.home, HOME_PRIVATE);
	assert_int_equal(f->p->limits.memory, 1u << 30);
	assert_int_equal(f->p->require.n, 1);
}

/* What was open when the project's rule was read, and is shut by an option, a variable, a profile. */
static void test_untrusted_rules_open_nothing_shut_later(void **state)
{
	struct fixture *f = *state;

	fixture_mkdir(f, "home/notes");
	fixture_user(f, "filesystem: {allowWrite: [~/data]}\n");
	fixture_project(f, "filesystem:\n"
			   "  denyRead: [~/notes, sub]\n"
			   "  allowRead: [~/notes/x, ~/notes/y*, ~/docs]\n"
			   "  allowWrite: [~/data/deep/er, sub/own]\n");
	fixture_load(f);
	assert_int_equal(f->p->notes.n, 0);
	/* exceptions to its own rules */
	assert_hidden(f, "home/notes/z");
	assert_readable(f, "home/notes/x");
	assert_readable(f, "home/notes/y1");
	assert_writable(f, "home/proj/sub/own/a");
	assert_unwritable(f, "home/proj/sub/a");
	assert_readable(f, "home/docs/a");

	fixture_option(f, "filesystem.denyRead", "~/notes");
	fixture_option(f, "filesystem.denyRead", "~/data/deep");
	fixture_option(f, "filesystem.protectNames", "own");
	fixture_load(f);
	assert_hidden(f, "home/notes/x");
	assert_hidden(f, "home/notes/y1");
	assert_hidden(f, "home/data/deep/er");
	assert_unwritable(f, "home/data/deep/er/a");
	assert_writable(f, "home/data/a");
	/* a name is lifted by who names it, which the project is not */
	assert_unwritable(f, "home/proj/sub/own");
	fixture_option(f, "filesystem.allowRead", "~/notes/x");
	fixture_load(f);
	assert_readable(f, "home/notes/x");
	assert_hidden(f, "home/notes/y1");
}

static void test_untrusted_rules_open_no_private_directory(void **state)
{
	struct fixture *f = *state;

	fixture_user(f, "filesystem: {allowWrite: [~/data], tmp: host}\n");
	fixture_project(f, "filesystem:\n"
			   "  denyRead: [~/data/x]\n"
			   "  allowRead: [~/docs, ~/data/x/y, /tmp/z]\n");
	fixture_load(f);
	assert_int_equal(f->p->notes.n, 0);
	assert_readable(f, "home/docs/a");
	assert_readable(f, "/tmp/z");
	fixture_option(f, "filesystem.home", "private");
	fixture_option(f, "filesystem.tmp", "private");
	fixture_load(f);
	assert_hidden(f, "home/docs/a");
	assert_hidden(f, "/tmp/z");
	assert_hidden(f, "home/data/x/a");
	assert_writable(f, "home/data/x/y");
	assert_writable(f, "home/proj/a");
}

/* Where every host can be reached a project's list widens nothing: until somebody makes one of it. */
static void test_untrusted_hosts(void **state)
{
	struct fixture *f = *state;

	f->in.profile_dir = fixture_mkdir(f, "profiles");
	fixture_write(f, "profiles/listed.yaml", "network: {mode: allowlist}");
	fixture_user(f, "network: {mode: host, allowedDomains: ['*.a.example']}\n");
	fixture_project(f, "network: {allowedDomains: [evil.example, x.a.example]}\n");
	fixture_load(f);
	assert_int_equal(f->p->network.allowed.n, 3);
	fixture_option(f, "network.mode", "allowlist");
	fixture_option(f, "network.allowedDomains", "github.com");
	fixture_load(f);
	assert_int_equal(f->p->network.allowed.n, 3);
	assert_string_equal(f->p->network.allowed.v[0].text, "*.a.example");
	assert_string_equal(f->p->network.allowed.v[1].text, "x.a.example");
	assert_string_equal(f->p->network.allowed.v[2].text, "github.com");
	assert_one_note(f, ".ambit.yaml:1: ignored: evil.example would widen the list of allowed "
			   "hosts (--option)");
	/* the project's own narrowing of the mode is its own list, unless an option's profile says so */
	f->in.n_settings = 0;
	fixture_project(f, "network: {allowedDomains: [evil.example], mode: allowlist}\n");
	fixture_load(f);
	assert_int_equal(f->p->network.mode, NETWORK_ALLOWLIST);
	assert_int_equal(f->p->network.allowed.n, 2);
	fixture_option(f, "profiles", "listed");
	fixture_load(f);
	assert_int_equal(f->p->network.allowed.n, 1);
}

/* A pattern that would be deeper than the rule that hides the keys. */
static void test_untrusted_pattern(void **state)
{
	struct fixture *f = *state;

	fixture_mkdir(f, "home/.ssh");
	fixture_project(f, "filesystem: {allowRead: ['~/**/id_rsa', '/**/x']}");
	fixture_load(f);
	assert_hidden(f, "home/.ssh/id_rsa");
	assert_int_equal(f->p->notes.n, 2);
}

/* Private directories are writable, but that does not make the host's be. */
static void test_untrusted_tmp(void **state)
{
	struct fixture *f = *state;

	fixture_project(f, "filesystem: {allowWrite: [/tmp/shared]}");
	fixture_load(f);
	assert_one_note(f, "filesystem.allowWrite would widen");
	assert_int_equal(f->p->fs.rules.v[f->p->fs.rules.n - 1].verdict, VERDICT_DENY);
}

/*
 * Profiles.
 */

static void test_profiles(void **state)
{
	struct fixture *f = *state;
	const char *const user_dirs[] = { fixture_mkdir(f, "mine"), NULL };

	f->in.profile_dir = fixture_mkdir(f, "profiles");
	f->in.profile_dirs_user = user_dirs;
	fixture_write(f, "profiles/a.yaml",
		      "profiles: [b]\nnetwork: {allowedDomains: [a.example]}");
	fixture_write(f, "profiles/b.yaml",
		      "profiles: [a]\nfilesystem: {allowWrite: [~/.cache/none]}");
	fixture_write(f, "mine/b.json", "{\"limits\": {\"pids\": 3}}");
	fixture_write(f, "home/proj/own.yaml", "limits: {cpu: 2}");
	fixture_user(f, "profiles: [a]");
	fixture_option(f, "profiles", "./own.yaml");
	fixture_option(f, "profiles", "a");
	fixture_load(f);
	assert_int_equal(f->p->profiles.n, 3);
	assert_int_equal(f->p->network.allowed.n, 1);
	/* the user's own b, not the shipped one */
	assert_int_equal(f->p->limits.pids, 3);
	assert_true(f->p->limits.cpu > 1);
	fixture_option(f, "profiles", "c");
	fixture_fails(f, "--option: profiles: no profile \"c\"; there are: a, b");
	f->settings[2].value = "../profiles/a";
	fixture_fails(f, "@/home/profiles/a: No such file or directory");
	fixture_user(f, "profiles:\n  - a\n  - ./none.yaml\n");
	assert_int_equal(policy_load(f->a, &f->in, &f->p, &f->e), -EINVAL);
	assert_non_null(strstr(f->e.text, ":3:5: profiles: "));
	assert_non_null(strstr(f->e.text, "/none.yaml: No such file or directory"));
	fixture_user(f, "profiles: [a]");
	f->settings[2].value = "..";
	fixture_fails(f, "--option: profiles: no profile \"..\"; there are: a, b");
}

static void test_profile_cycle_and_optional(void **state)
{
	struct fixture *f = *state;

	f->in.profile_dir = fixture_mkdir(f, "profiles");
	fixture_write(f, "profiles/a.yaml", "profiles: [b]");
	fixture_write(f, "profiles/b.yaml",
		      "profiles: [a]\nfilesystem: {allowWrite: [~/.cache/none]}");
	fixture_user(f, "profiles: [b]\nfilesystem: {allowWrite: [~/other]}");
	fixture_load(f);
	assert_int_equal(f->p->profiles.n, 2);
	assert_writable(f, "home/.cache/none/x");
	for (size_t i = 0; i < f->p->fs.rules.n; i++) {
		const struct path_rule *r = &f->p->fs.rules.v[i];

		assert_int_equal(r->optional, r->origin.layer == LAYER_PROFILE);
	}
}

/* An error in a profile names its file, not its name. */
static void test_profile_error(void **state)
{
	struct fixture *f = *state;

	f->in.profile_dir = fixture_mkdir(f, "profiles");
	fixture_write(f, "profiles/a.yaml", "limits:\n  cpu: x\n");
	fixture_user(f, "profiles: [a]");
	fixture_fails(f,
		      "@/profiles/a.yaml:2:8: limits.cpu: must be a number that is not negative");
}

static void test_profile_of_untrusted_project(void **state)
{
	struct fixture *f = *state;

	f->in.profile_dir = fixture_mkdir(f, "profiles");
	fixture_write(f, "profiles/a.yaml",
		      "network: {allowedDomains: [a.example]}\nlimits: {pids: 9}\n");
	fixture_project(f, "profiles: [a]");
	fixture_load(f);
	assert_int_equal(f->p->network.allowed.n, 0);
	assert_int_equal(f->p->limits.pids, 9);
	assert_one_note(f, "profiles/a.yaml:1: ignored: network.allowedDomains would widen");
	/* when the user asks for it as well, it is the user's */
	fixture_user(f, "profiles: [a]");
	fixture_load(f);
	assert_int_equal(f->p->network.allowed.n, 1);
	assert_int_equal(f->p->notes.n, 0);
}

/* `ambit trust` shows the values that it lets in, and what stays without effect. */
static void test_trusting_lists_values(void **state)
{
	struct fixture *f = *state;

	fixture_managed(f, "locked: [backend]\n");
	fixture_project(f, "filesystem: {allowWrite: [~/x], denyRead: [~/y]}\n"
			   "environment: {set: {A: b}}\n"
			   "backend: none\n");
	f->in.trusting = true;
	fixture_load(f);
	assert_int_equal(f->p->widening.n, 2);
	assert_string_equal(f->p->widening.v[0].text, "filesystem.allowWrite: ~/x");
	assert_string_equal(f->p->widening.v[1].text, "environment.set: A=b");
	assert_one_note(f, ":3: without effect: backend is fixed by the managed settings, ");
}

/* A file of somebody else's is not read because a stranger names it: messages would show parts of it. */
static void test_untrusted_profile_outside_the_project(void **state)
{
	struct fixture *f = *state;
	const char *link = arena_printf(f->a, "%s/link.yaml", f->proj);
	const char *const user_dirs[] = { fixture_mkdir(f, "mine"), NULL };

	fixture_write(f, "secret.yaml", "password: x\n");
	fixture_write(f, "home/proj/in.yaml", "profiles: [../../secret.yaml]\nlimits: {pids: 9}\n");
	assert_int_equal(symlink("../../secret.yaml", link), 0);
	fixture_project(f, "profiles: [../../secret.yaml, link.yaml, in.yaml, /dev/stdin]\n");
	fixture_load(f);
	assert_int_equal(f->p->limits.pids, 9);
	assert_int_equal(f->p->notes.n, 4);
	assert_string_equal(f->p->notes.v[0].text,
			    arena_printf(f->a,
					 "%s/.ambit.yaml:1: ignored: profiles would widen the "
					 "policy (accept with: ambit trust %s)",
					 f->proj, f->proj));
	/* nor by settings that are a link themselves */
	fixture_write(f, "home/secret.yaml", "password: x\n");
	assert_int_equal(unlink(f->in.project_file), 0);
	assert_int_equal(symlink("../../elsewhere.yaml", f->in.project_file), 0);
	fixture_write(f, "elsewhere.yaml", "profiles: [../secret.yaml]\n");
	fixture_fails(f, "@/home/proj/.ambit.yaml: leads out of the project, to @/elsewhere.yaml: "
			 "settings of a project must lie in it");
	assert_int_equal(unlink(f->in.project_file), 0);
	/* `ambit trust` looks at all of them, and afterwards they count */
	fixture_write(f, "secret.yaml", "filesystem: {allowWrite: [~/x]}\n");
	fixture_project(f, "profiles: [../../secret.yaml]\n");
	f->in.trusting = true;
	fixture_load(f);
	assert_int_equal(f->p->project_lines.n, 2);
	f->in.trusting = false;
	fixture_trust(f, "home/proj/.ambit.yaml");
	fixture_trust(f, "secret.yaml");
	fixture_load(f);
	assert_writable(f, "home/x");
	/* what a profile of the user's names is the user's word, whoever asks for it */
	f->in.profile_dirs_user = user_dirs;
	fixture_write(f, "mine/own.yaml", "profiles: [../more.yaml]\n");
	fixture_write(f, "more.yaml", "limits: {pids: 3}\n");
	fixture_project(f, "profiles: [own]\n");
	fixture_load(f);
	assert_int_equal(f->p->limits.pids, 3);
	assert_int_equal(f->p->notes.n, 0);
}

/* `-p offline` is offline even when a file says otherwise; the next word may go further. */
static void test_option_profile_narrows_files(void **state)
{
	struct fixture *f = *state;

	f->in.profile_dir = fixture_mkdir(f, "profiles");
	fixture_write(f, "profiles/off.yaml",
		      "network: {mode: none}\nlimits: {pids: 100}\nbackend: bwrap\n");
	fixture_user(f, "network: {mode: allowlist, allowedDomains: [a.example]}\n"
			"limits: {pids: 50}\nbackend: native\n");
	fixture_option(f, "profiles", "off");
	fixture_load(f);
	assert_int_equal(f->p->network.mode, NETWORK_NONE);
	assert_int_equal(f->p->limits.pids, 50);
	assert_int_equal(f->p->backend, BACKEND_NATIVE);
	fixture_option(f, "network.allowedDomains", "b.example");
	fixture_load(f);
	assert_one_note(f, "b.example is not reachable: network.mode is none (profile off:1)");
	fixture_option(f, "network.mode", "host");
	fixture_load(f);
	assert_one_note(f, "b.example is no limit: network.mode is host (");
	fixture_option(f, "network.mode", "allowlist");
	fixture_load(f);
	assert_int_equal(f->p->network.mode, NETWORK_ALLOWLIST);
	/* asked for in a file, the profile lies below it */
	f->in.n_settings = 0;
	fixture_user(f, "network: {mode: allowlist}\nprofiles: [off]\n");
	fixture_load(f);
	assert_int_equal(f->p->network.mode, NETWORK_ALLOWLIST);
}

/* The profiles that are shipped load, each alone and all together. */
static void test_shipped_profiles(void **state)
{
	static const char *const names[] = { "npm",    "pip",     "cargo",  "go",     "git",
					     "claude", "offline", "strict", "python", "node",
					     "rust",   "maven",   "gradle" };
	struct fixture *f = *state;

	f->in.profile_dir = "profiles"; /* tests run at the root of the source */
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		f->in.n_settings = 0;
		fixture_option(f, "profiles", names[i]);
		fixture_load(f);
		assert_int_equal(f->p->notes.n, 0);
	}
	f->in.n_settings = 0;
	fixture_option(f, "profiles", "claude");
	fixture_load(f);
	assert_readable(f, "home/.claude/.credentials.json");
	assert_writable(f, "home/.claude/projects/x");
	assert_writable(f, "home/.claude.json");
	assert_unwritable(f, "home/.claude/settings.json");
	assert_unwritable(f, "home/.claude/hooks/x");
}

/*
 * Proxies: of the caller's environment, and in place of ours.
 */

static void test_proxies_of_the_environment(void **state)
{
	struct fixture *f = *state;

	f->in.parent_http = (struct inputs_text){ "proxy.test:3128", "http_proxy" };
	f->in.parent_https = (struct inputs_text){ "socks5://proxy.test", "HTTPS_PROXY" };
	f->in.parent_no_proxy = (struct inputs_text){ "a.test,10.0.0.0/8", "no_proxy" };
	fixture_load(f);
	assert_string_equal(f->p->network.parent_http, "http://proxy.test:3128");
	assert_string_equal(origin_of(f, "network.parentProxy.http"), "http_proxy");
	assert_null(f->p->network.parent_https);
	assert_string_equal(f->p->network.parent_no_proxy, "a.test,10.0.0.0/8");
	assert_int_equal(f->p->notes.n, 0); /* nothing leaves */
	/* what was written down for ambit counts more */
	fixture_user(f, "network: {allowedDomains: [a.test], "
			"parentProxy: {http: 'http://other.test', noProxy: b.test}}");
	fixture_load(f);
	assert_string_equal(f->p->network.parent_http, "http://other.test");
	assert_string_equal(f->p->network.parent_no_proxy, "b.test");
	assert_one_note(f, "HTTPS_PROXY: not used: allowed hosts are reached directly");
}

static void test_a_proxy_in_place_of_ours(void **state)
{
	struct fixture *f = *state;

	fixture_option(f, "network.httpProxyPort", "8080");
	fixture_load(f);
	assert_int_equal(f->p->network.mode, NETWORK_ALLOWLIST);
	assert_string_equal(origin_of(f, "network.mode"), "--option");
	fixture_option(f, "network.mode", "none");
	fixture_load(f);
	assert_int_equal(f->p->network.mode, NETWORK_NONE);
}

static void test_a_proxy_in_place_of_ours_breaks_no_managed_rule(void **state)
{
	static const char *const managed[] = {
		"network: {mode: allowlist}",
		"network: {deniedDomains: [evil.test]}",
		"locked: [network.allowedDomains]",
	};
	struct fixture *f = *state;

	fixture_option(f, "network.socksProxyPort", "1080");
	for (size_t i = 0; i < ARRAY_LEN(managed); i++) {
		fixture_managed(f, managed[i]);
		fixture_fails(f,
			      arena_printf(f->a,
					   "--option: a proxy in place of ambit's is refused: the "
					   "network rules of the managed settings, "
					   "@/managed.yaml:1, would not hold for it"));
	}
	fixture_managed(f, "network: {mode: allowlist, socksProxyPort: 1080}");
	f->in.n_settings = 0;
	fixture_load(f); /* who made the rules may do so */
	/* nor by a profile of the user's */
	f->in.profile_dir = fixture_mkdir(f, "profiles");
	fixture_write(f, "profiles/out.yaml", "network: {socksProxyPort: 1080}");
	fixture_option(f, "profiles", "out");
	fixture_managed(f, "network: {deniedDomains: [evil.test]}");
	fixture_fails(f, "profile out:1: a proxy in place of ambit's is refused: the network rules "
			 "of the managed settings, @/managed.yaml:1, would not hold for it");
}

/* On the host's network nobody looks at names and addresses. */
static void test_the_whole_network_breaks_no_managed_rule(void **state)
{
	static const char *const rules[] = {
		"network: {deniedDomains: [evil.test]}",
		"network: {deniedResolvedAddresses: [10.0.0.0/8]}",
		"network: {allowPrivateAddresses: false}",
		"network: {strictAllowlist: true}",
		"network: {requireSNI: true}",
		"network: {allowECH: false}",
		"locked: [network.allowedDomains]",
	};
	static const char *const want = "refused: the network rules of the managed settings, "
					"@/managed.yaml:1, would not hold for it";
	struct fixture *f = *state;

	f->in.profile_dir = fixture_mkdir(f, "profiles");
	fixture_write(f, "profiles/out.yaml", "network: {mode: host}");
	for (size_t i = 0; i < ARRAY_LEN(rules); i++) {
		fixture_managed(f, rules[i]);
		f->in.user_file = NULL;
		f->in.n_settings = 0;
		fixture_load(f);
		fixture_option(f, "network.mode", "host");
		fixture_fails(f, arena_printf(f->a, "--option: network.mode host is %s", want));
		f->in.n_settings = 0;
		fixture_option(f, "profiles", "out");
		fixture_fails(f,
			      arena_printf(f->a, "profile out:1: network.mode host is %s", want));
		f->in.n_settings = 0;
		fixture_user(f, "network: {mode: host}");
		fixture_fails(f,
			      arena_printf(f->a, "@/user.yaml:1: network.mode host is %s", want));
	}
	fixture_managed(f, "network: {mode: host, requireSNI: true}");
	fixture_load(f);
	fixture_managed(f, "network: {allowPrivateAddresses: true, allowedDomains: [a.test]}");
	fixture_load(f); /* nothing that would be broken */
}

/* A rule that cannot be enforced is an error, unless somebody meant to lift it. */
/* "none" by the administrator is no port of the host's either, nor one for the host. */
static void test_no_network_by_the_managed_settings(void **state)
{
	static const char *const ways[][2] = { { "network.allowHostPorts", "22" },
					       { "network.publish", "8080" },
					       { "network.httpProxyPort", "3128" },
					       { "network.socksProxyPort", "1080" } };
	struct fixture *f = *state;

	fixture_user(f, "network: {mode: none}\n");
	fixture_option(f, "network.allowHostPorts", "22");
	fixture_load(f);
	fixture_managed(f, "network: {mode: none}\n");
	for (size_t i = 0; i < ARRAY_LEN(ways); i++) {
		f->in.n_settings = 0;
		fixture_option(f, ways[i][0], ways[i][1]);
		fixture_fails(f, arena_printf(f->a,
					      "--option: %s is refused: the managed settings, "
					      "@/managed.yaml:1, allow no network",
					      ways[i][0]));
	}
	/* its own are its own */
	f->in.n_settings = 0;
	fixture_managed(f, "network: {mode: none, allowHostPorts: [5432], publish: [80]}\n");
	fixture_load(f);
	assert_int_equal(f->p->network.host_ports.n, 1);
}

static void test_denied_hosts_in_the_hosts_network(void **state)
{
	static const char *const both = "network: {mode: host, deniedDomains: [evil.test]}";
	struct fixture *f = *state;

	fixture_user(f, both);
	fixture_fails(f,
		      "@/user.yaml:1: network.deniedDomains evil.test cannot hold: network.mode is "
		      "host (@/user.yaml:1), where every host can be reached");
	fixture_managed(f, both);
	f->in.user_file = NULL;
	fixture_fails(f,
		      "@/managed.yaml:1: network.deniedDomains evil.test cannot hold: network.mode "
		      "is host (@/managed.yaml:1), where every host can be reached");
	f->in.managed_file = NULL;
	fixture_user(f, "network: {deniedDomains: [evil.test]}");
	fixture_load(f);
	fixture_option(f, "network.mode", "host");
	fixture_load(f);
	assert_int_equal(f->p->notes.n, 1);
	assert_non_null(strstr(f->p->notes.v[0].text, "evil.test can be reached"));
	fixture_option(f, "network.deniedDomains", "bad.test");
	fixture_fails(f,
		      "--option: network.deniedDomains bad.test cannot hold: network.mode is host "
		      "(--option), where every host can be reached");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		policy_test(test_no_network_by_the_managed_settings),
		policy_test(test_denied_hosts_in_the_hosts_network),
		policy_test(test_later_wins_and_lists_merge),
		policy_test(test_origins),
		policy_test(test_only_file_replaces),
		policy_test(test_managed_values_only_narrow),
		policy_test(test_managed_denies_hold),
		policy_test(test_locked_keys),
		policy_test(test_locked_profiles),
		policy_test(test_managed_protection),
		policy_test(test_managed_protection_of_git_config),
		policy_test(test_managed_profiles),
		policy_test(test_profile_beside_the_settings),
		policy_test(test_untrusted_project_cannot_widen),
		policy_test(test_trusted_project_can_widen),
		policy_test(test_neutral_settings),
		policy_test(test_reasons_for_rules_of_others),
		policy_test(test_profiles_of_trusted_project),
		policy_test(test_own_places),
		policy_test(test_own_places_refused),
		policy_test(test_untrusted_project_may_narrow),
		policy_test(test_untrusted_rules_open_nothing_shut_later),
		policy_test(test_untrusted_rules_open_no_private_directory),
		policy_test(test_untrusted_hosts),
		policy_test(test_untrusted_pattern),
		policy_test(test_untrusted_tmp),
		policy_test(test_profiles),
		policy_test(test_profile_cycle_and_optional),
		policy_test(test_profile_error),
		policy_test(test_profile_of_untrusted_project),
		policy_test(test_trusting_lists_values),
		policy_test(test_untrusted_profile_outside_the_project),
		policy_test(test_option_profile_narrows_files),
		policy_test(test_shipped_profiles),
		policy_test(test_proxies_of_the_environment),
		policy_test(test_a_proxy_in_place_of_ours),
		policy_test(test_a_proxy_in_place_of_ours_breaks_no_managed_rule),
		policy_test(test_the_whole_network_breaks_no_managed_rule),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
