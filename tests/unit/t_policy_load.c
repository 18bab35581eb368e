/* SPDX-License-Identifier: Apache-2.0 */
/* Settings files: what is read, what is refused, and where the message points. */
#include <time.h>

#include "policy/schema.h"
#include "policy_fixture.h"

static void test_defaults(void **state)
{
	struct fixture *f = *state;
	const struct policy *p = fixture_load(f);

	assert_int_equal(p->network.mode, NETWORK_NONE);
	assert_true(p->enabled);
	assert_int_equal(p->fallback, FALLBACK_ENFORCE);
	assert_int_equal(p->env.inherit, ENV_SAFE);
	assert_int_equal(p->fs.tmp, TMP_PRIVATE);
	assert_int_equal(p->limits.memory, 0);
	assert_string_equal(p->cwd, f->proj);
	assert_string_equal(p->fs.rules.v[0].real, f->proj);
	assert_int_equal(p->notes.n, 0);
}

static void test_json_with_comments(void **state)
{
	struct fixture *f = *state;

	fixture_only(f, "// comment with a \"quote\n"
			"{ /* { */ \"network\": { // it's\n"
			"\t\"allowedDomains\": [\"a.example\", \"b.example\",], # don't\n"
			"    \"parentProxy\": {\"noProxy\": \"p.example/*x*/\"}\n"
			"  },\"enabled\":true,\"limits\":{\"memory\":\"1g\"}}\n");
	fixture_load(f);
	assert_int_equal(f->p->network.allowed.n, 2);
	assert_string_equal(f->p->network.allowed.v[1].text, "b.example");
	/* comments inside strings are text */
	assert_string_equal(f->p->network.parent_no_proxy, "p.example/*x*/");
	assert_int_equal(f->p->limits.memory, 1 << 30);
	/* the comment above did not shift anything */
	assert_int_equal(f->p->network.allowed.v[1].origin.line, 3);
	assert_int_equal(f->p->network.allowed.v[1].origin.column, 34);
}

static void test_yaml(void **state)
{
	struct fixture *f = *state;

	fixture_only(f, "\xef\xbb\xbf# a BOM, CRLF, and a tilde that is not null\r\n"
			"filesystem:\r\n"
			"  allowWrite: [~]\r\n"
			"  denyWrite:\r\n"
			"    - {path: 'a[1]', literal: true}\r\n"
			"network:\r\n"
			"limits: {timeout: 90, cpu: 1.5, pids: null}\r\n");
	fixture_load(f);
	assert_int_equal(f->p->limits.timeout_ms, 90000);
	assert_true(f->p->limits.cpu > 1.49 && f->p->limits.cpu < 1.51);
	assert_writable(f, "home/new");
	assert_unwritable(f, "home/proj/a[1]");
	assert_writable(f, "home/proj/a1");
}

static void test_empty(void **state)
{
	struct fixture *f = *state;
	static const char *const texts[] = { "",   "\n\n",  "# only\n", "// only", "/* only */ ",
					     "{}", "---\n", "null",     "{\n}\n" };

	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		fixture_only(f, texts[i]);
		fixture_load(f);
	}
}

struct bad {
	const char *text, *want;
};

static void check_bad(struct fixture *f, const struct bad *bad, size_t n)
{
	for (size_t i = 0; i < n; i++)
		fixture_text_fails(f, bad[i].text, bad[i].want);
}

static void test_structure_errors(void **state)
{
	static const struct bad bad[] = {
		{ "[1]", "1:1: settings must be an object ({...} or key: value)" },
		{ "plain", "1:1: settings must be an object ({...} or key: value)" },
		{ "a: &x 1", "1:4: anchors and tags are not accepted" },
		{ "enabled: true\nbackend: *x",
		  "2:10: aliases are not accepted: what begins with * must be quoted" },
		{ "network:\n  allowedDomains:\n    - *.a.test",
		  "3:7: aliases are not accepted: what begins with * must be quoted" },
		{ "enabled: !!bool true", "1:10: anchors and tags are not accepted" },
		{ "limits: !x {}", "1:9: anchors and tags are not accepted" },
		{ "enabled: true\n---\nenabled: false", "2:1: more than one document" },
		{ "enabled: true\nlimits: {}\nenabled: true",
		  "3:1: enabled: given twice (first in line 1)" },
		{ "{\"limits\":{\"cpu\":1,\"cpu\":2}}",
		  "1:20: cpu: given twice (first in line 1)" },
		{ "{? [a] : b}", "1:4: a key must be a word" },
		{ "{\"$schema\": \"a\\0b\"}", "1:13: a NUL byte in a string" },
		{ "git: {safeDirectories: [[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]}",
		  "1:38: nested too deeply" },
	};

	check_bad(*state, bad, ARRAY_LEN(bad));
}

static void test_nul_byte(void **state)
{
	struct fixture *f = *state;

	f->in.only_file = "mem";
	f->in.only_text = "{}\n{\0}";
	f->in.only_len = 6;
	fixture_fails(f, "mem:2:2: a NUL byte");
}

/* libyaml's own words follow the position; only that is ours. */
static void test_syntax_error_position(void **state)
{
	struct fixture *f = *state;

	fixture_only(f, "{\n  \"enabled\": true\n  \"backend\": \"auto\"\n}");
	assert_true(policy_load(f->a, &f->in, &f->p, &f->e) < 0);
	assert_non_null(strstr(f->e.text, "only.json:3:12: "));
	fixture_only(f, "{\"enabled\": tr\x01ue}");
	assert_true(policy_load(f->a, &f->in, &f->p, &f->e) < 0);
	assert_non_null(strstr(f->e.text, "only.json:1:15: "));
}

static void test_type_errors(void **state)
{
	static const struct bad bad[] = {
		{ "{\"enabled\": \"true\"}",
		  "1:13: enabled: must be true or false, without quotes" },
		{ "enabled: 1", "1:10: enabled: must be true or false" },
		{ "enabled: off", "1:10: enabled: must be true or false" },
		{ "require: [landlock, landlok]", "1:21: require: \"landlok\" is none of "
						  "user-namespaces, files, attributes, hidden, "
						  "processes, devices, network, egress, ipc, "
						  "landlock, signal-scope, seccomp, names "
						  "(did you mean \"landlock\"?)" },
		{ "enabled: {}", "1:10: enabled: must be true or false" },
		{ "limits: {cpu: -1}", "1:15: limits.cpu: must be a number that is not negative" },
		{ "limits: {cpu: '1'}", "1:15: limits.cpu: must be a number that is not negative" },
		{ "limits:\n  memory: 5q",
		  "2:11: limits.memory: must be a size like \"512m\" or a number of bytes" },
		{ "limits: {pids: 1.5}",
		  "1:16: limits.pids: must be a whole number that is not negative" },
		{ "limits: {memory: 99999999999g}",
		  "1:18: limits.memory: 99999999999g is too large" },
		{ "network: {httpProxyPort: 65536}",
		  "1:26: network.httpProxyPort: 65536 is too large" },
		{ "network: {publish: [80, 0]}",
		  "1:25: network.publish: must be a port from 1 to 65535, or \"HOSTPORT:PORT\"" },
		{ "network: {publish: ['80']}",
		  "1:21: network.publish: must be a port from 1 to 65535, or \"HOSTPORT:PORT\"" },
		{ "network: {allowHostPorts: ['80:81']}",
		  "1:28: network.allowHostPorts: must be a port from 1 to 65535" },
		{ "network: {allowedDomains: a.example}",
		  "1:27: network.allowedDomains: must be a list" },
		{ "network: {allowedDomains: [true]}",
		  "1:28: network.allowedDomains: must be a string: put true in quotes" },
		{ "network: []", "1:10: network: must be an object" },
		{ "environment: {set: [A]}", "1:20: environment.set: must be an object" },
		{ "environment: {set: {A: [1]}}", "1:24: environment.set: A must be a string" },
		{ "environment: {set: {'A=B': x}}",
		  "1:28: environment.set: \"A=B\" is not a name for a variable" },
		{ "excludedCommands: ['']", "1:20: excludedCommands: must not be empty" },
		{ "network: {deniedResolvedAddresses: [a.example]}",
		  "1:37: network.deniedResolvedAddresses: \"a.example\" is not an address or "
		  "network" },
		{ "network: {parentProxy: {http: 'socks://x'}}",
		  "1:31: network.parentProxy.http: \"socks://x\" must begin with http://" },
		{ "network: {parentProxy: {https: 'https://x'}}",
		  "1:32: network.parentProxy.https: \"https://x\": a proxy that is itself reached "
		  "by "
		  "TLS cannot be used" },
		{ "network: {parentProxy: {http: 'http://x/y'}}",
		  "1:31: network.parentProxy.http: \"http://x/y\" must be http://HOST:PORT and no "
		  "more" },
		{ "network: {parentProxy: {http: \"http://x\\nallow evil.test\"}}",
		  "1:31: network.parentProxy.http: a URL has no blanks" },
		{ "network: {parentProxy: {noProxy: \"x\\nallow evil.test\"}}",
		  "1:34: network.parentProxy.noProxy: must be one line" },
		{ "locked: [enabled]", "1:9: locked: only the managed settings can lock" },
	};

	check_bad(*state, bad, ARRAY_LEN(bad));
}

static void test_published_ports(void **state)
{
	struct fixture *f = *state;
	static const char *const bad[] = { "80:0",         "0:80",     ":80", "80:",
					   "1:2:3",        "-1:80",    "80",  "",
					   "123456789:80", "65536:80", "80:x" };

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		fixture_text_fails(f, arena_printf(f->a, "network: {publish: ['%s']}", bad[i]),
				   "1:21: network.publish: must be a port from 1 to 65535, or "
				   "\"HOSTPORT:PORT\"");
	}
}

static void test_path_errors(void **state)
{
	static const struct bad bad[] = {
		{ "filesystem: {denyRead: [~root/x]}",
		  "1:25: filesystem.denyRead: ~ stands for your own home directory only" },
		{ "filesystem: {denyRead: ['$HOME/x']}",
		  "1:25: filesystem.denyRead: variables are not expanded (write ~ for the home "
		  "directory)" },
		{ "filesystem: {denyRead: [{literal: true}]}",
		  "1:25: filesystem.denyRead: \"path\" is missing" },
		{ "filesystem: {denyRead: [{path: a, glob: true}]}",
		  "1:41: filesystem.denyRead: unknown key \"glob\" (path, literal)" },
		{ "filesystem: {denyRead: [{path: a, literal: 'x'}]}",
		  "1:44: filesystem.denyRead: \"literal\" must be true or false" },
		{ "filesystem: {protectNames: [/etc]}",
		  "1:29: filesystem.protectNames: \"/etc\" must be a name, not a path (see "
		  "denyWrite)" },
		{ "filesystem: {protectNames: ['*']}",
		  "1:29: filesystem.protectNames: \"*\" would protect everything" },
		{ "filesystem: {protectNames: [a/../b]}",
		  "1:29: filesystem.protectNames: \"a/../b\" has an empty, \".\" or \"..\" part" },
		{ "filesystem: {protectNames: ['a*']}",
		  "1:29: filesystem.protectNames: \"a*\": * must be a whole part" },
		{ "filesystem: {unprotect: [.vscod]}",
		  "1:26: filesystem.unprotect: \".vscod\" is not protected (did you mean "
		  "\".vscode\"?)" },
	};

	check_bad(*state, bad, ARRAY_LEN(bad));
}

static void test_did_you_mean(void **state)
{
	static const struct bad bad[] = {
		{ "{\"netwrok\": {}}", "1:2: netwrok: unknown key (did you mean \"network\"?)" },
		{ "network:\n  allowedDomain: []", "2:3: network.allowedDomain: unknown key (did "
						   "you mean \"network.allowedDomains\"?)" },
		/* right name, wrong object */
		{ "allowWrite: [x]",
		  "1:1: allowWrite: unknown key (did you mean \"filesystem.allowWrite\"?)" },
		{ "filesystem: {deniedDomains: []}", "1:14: filesystem.deniedDomains: unknown key "
						     "(did you mean \"network.deniedDomains\"?)" },
		{ "enable: true", "1:1: enable: unknown key (did you mean \"enabled\"?)" },
		{ "zzzzzzzz: 1", "1:1: zzzzzzzz: unknown key" },
		/* dotted names are for options */
		{ "network.mode: none",
		  "1:1: network.mode: in a file, write one object inside the other" },
		{ "network: {mode: allowlists}",
		  "1:17: network.mode: \"allowlists\" is none of none, allowlist, host (did you "
		  "mean \"allowlist\"?)" },
		{ "backend: x", "1:10: backend: \"x\" is none of auto, native, bwrap, landlock, "
				"seatbelt, podman, docker, none" },
	};

	check_bad(*state, bad, ARRAY_LEN(bad));
}

/* Settings of sandbox-runtime: harmless ones load, others are refused by name. */
static void test_sandbox_runtime_keys(void **state)
{
	struct fixture *f = *state;

	fixture_only(f, "{\"network\": {\"allowedDomains\": [\"a.example\"], \"deniedDomains\": "
			"[\"b.example\"],"
			" \"deniedDomainReasons\": {\"b.example\": \"not here\"}, "
			"\"allowMachLookup\": [\"x\"],"
			" \"tlsTerminate\": null, \"refuseOpaqueTunnels\": false},"
			"\"filesystem\": {\"denyRead\": [], \"allowWrite\": [\".\"], "
			"\"denyWrite\": [], \"disabled\": false},"
			"\"ripgrep\": {\"command\": \"rg\", \"args\": [1]}, \"windows\": {\"a\": "
			"{}}, \"credentials\": {},"
			"\"ignoreViolations\": {\"*\": [\"/usr\"], \"npm\": []}, \"seccomp\": {}}");
	fixture_load(f);
	assert_string_equal(f->p->network.denied.v[0].reason, "not here");
	assert_int_equal(f->p->ignore.n, 1);
	assert_string_equal(f->p->ignore.v[0].command, "*");
	assert_int_equal(f->p->notes.n, 0);
	/* empty as it is, there it turns interception on */
	fixture_text_fails(
		f, "network:\n  tlsTerminate: {}",
		"2:17: network.tlsTerminate: not supported: TLS is not opened by this sandbox");
	fixture_text_fails(f, "network:\n  tlsTerminate: null\n  mitmProxy: {socketPath: x}",
			   "3:14: network.mitmProxy: not supported: there is no hand-over to an "
			   "inspecting proxy; see network.httpProxyPort");
	fixture_text_fails(f, "filesystem: {disabled: true}",
			   "1:24: filesystem.disabled: not supported: say what is wanted instead: "
			   "\"allowWrite\": [\"/\"]");
}

static void test_files(void **state)
{
	struct fixture *f = *state;

	f->in.user_file = arena_printf(f->a, "%s/none.json", f->dir);
	f->in.managed_file = arena_printf(f->a, "%s/none/none.json", f->dir);
	fixture_load(f);
	f->in.only_file = f->in.user_file;
	fixture_fails(f, "@/none.json: No such file or directory");
	f->in.only_file = NULL;
	/* there, but not readable as a file: never taken for missing */
	f->in.managed_file = f->dir;
	fixture_fails(f, "@: Is a directory");
}

static void test_options(void **state)
{
	struct fixture *f = *state;

	fixture_write(f, "home/proj/hosts",
		      "# list\n\n a.example  # one\r\n*.b.example:443\nbad_/host\n");
	fixture_option(f, "network.allowedDomains", "x.example,,10.0.0.0/8,@hosts");
	fixture_fails(f, "@/home/proj/hosts:5:1: network.allowedDomains: '/' is only allowed after "
			 "an IP address: rules match hosts, not paths");
	fixture_write(f, "home/proj/hosts", "# list\n\n a.example  # one\r\n*.b.example:443");
	fixture_option(f, "environment.set", "A=1=2");
	fixture_option(f, "environment.set", "CI");
	fixture_option(f, "limits.cpu", "2");
	fixture_option(f, "enabled", "true");
	fixture_load(f);
	assert_int_equal(f->p->network.allowed.n, 4);
	assert_int_equal(f->p->network.allowed.v[3].rule.port, 443);
	assert_int_equal(f->p->network.allowed.v[3].origin.line, 4);
	assert_string_equal(f->p->env.set.v[0].value, "1=2");
	assert_string_equal(f->p->env.pass.v[0].text, "CI");
	assert_int_equal(f->p->network.mode, NETWORK_ALLOWLIST);
	fixture_option(f, "limits.memroy", "1g");
	fixture_fails(f, "--option: limits.memroy: unknown key (did you mean \"limits.memory\"?)");
	f->settings[f->in.n_settings - 1].key = "limits.memory";
	f->settings[f->in.n_settings - 1].value = "lots";
	fixture_fails(f,
		      "--option: limits.memory: must be a size like \"512m\" or a number of bytes");
}

static double now_ms(void)
{
	struct timespec t;

	assert_int_equal(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t), 0);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void test_many_rules(void **state)
{
	struct fixture *f = *state;
	_cleanup_buf_ struct buf text = BUF_INIT(BUF_MAX_TEXT);
	double start;

	buf_puts(&text, "{\"filesystem\": {\"denyRead\": [\n");
	for (unsigned i = 0; i < 10000; i++)
		buf_printf(&text, "  \"~/secret/%u/file\",\n", i);
	buf_puts(&text, "]}}");
	f->in.only_file = "mem";
	f->in.only_text = text.data;
	f->in.only_len = text.len;
	start = now_ms();
	fixture_load(f);
	/* 22 ms here, more with a sanitizer; what must not happen is quadratic time */
	assert_true(now_ms() - start < 500);
	assert_hidden(f, "home/secret/9999/file/x");
	assert_readable(f, "home/secret/10000/file");
	assert_int_equal(f->p->fs.rules.v[f->p->fs.rules.n - 1].origin.line, 10001);
}

/* Every row can be found, is grouped with its neighbours, and is said what it is for. */
static void test_table(void **state)
{
	(void)state;
	for (size_t i = 0; i < settings_count; i++) {
		const struct setting *s = &settings_table[i];
		const char *dot = strrchr(s->key, '.');

		assert_int_equal(setting_find(s->key), (int)i);
		assert_non_null(s->help);
		assert_true(s->type != SETTING_ENUM || s->values);
		assert_true(!s->values || s->type == SETTING_ENUM || s->type == SETTING_STRINGS);
		if (dot) {
			_cleanup_free_ char *group = strndup(s->key, (size_t)(dot - s->key));

			assert_true(setting_is_group(group));
			if (s->type != SETTING_ACCEPTED)
				assert_string_equal(setting_suggest(group), group);
		}
		assert_false(setting_is_group(s->key));
		/* a group that was left is not entered again */
		for (size_t k = i + 2; dot && k < settings_count; k++) {
			size_t len = (size_t)(dot - s->key) + 1;

			if (strncmp(settings_table[k].key, s->key, len) == 0)
				assert_memory_equal(settings_table[k - 1].key, s->key,
						    strcspn(s->key, ".") + 1);
		}
	}
	assert_int_equal(setting_find("network"), -1);
	assert_null(setting_suggest("completely-else"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		policy_test(test_defaults),
		policy_test(test_json_with_comments),
		policy_test(test_yaml),
		policy_test(test_empty),
		policy_test(test_structure_errors),
		policy_test(test_nul_byte),
		policy_test(test_syntax_error_position),
		policy_test(test_type_errors),
		policy_test(test_published_ports),
		policy_test(test_path_errors),
		policy_test(test_did_you_mean),
		policy_test(test_sandbox_runtime_keys),
		policy_test(test_files),
		policy_test(test_options),
		policy_test(test_many_rules),
		cmocka_unit_test(test_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
