/* SPDX-License-Identifier: Apache-2.0 */
/* What is printed can be read again and cannot fool a terminal. */
#include "policy/schema.h"
#include "policy/tree.h"
#include "policy_fixture.h"

static void use_everything(struct fixture *f)
{
	fixture_user(f, "network:\n"
			"  mode: allowlist\n"
			"  allowedDomains: [a.example, '[::1]:80']\n"
			"  deniedDomains: ['*']\n"
			"  deniedDomainReasons: {'*': no}\n"
			"  allowUnixSockets: [run/x.sock, '@abstract']\n"
			"  publish: [8080, '3000:80']\n"
			"  parentProxy: {http: 'http://p.example'}\n"
			"filesystem:\n"
			"  denyRead: ['~/*.key', {path: '~/a[1]', literal: true}]\n"
			"  protectNames: [x/*/y]\n"
			"  unprotect: [.vscode]\n"
			"limits: {memory: 1536, timeout: 1500ms, cpu: 0.5}\n"
			"environment: {set: {A: '1', B: \"x\\ty\"}, pass: [C]}\n"
			"ignoreViolations: {npm: [a, b], '*': [c]}\n"
			"excludedCommands: [docker]\n");
}

/* Settings -> JSON -> settings: the second time adds only what the defaults add anyway. */
static void test_json_loads_again(void **state)
{
	struct fixture *f = *state;
	_cleanup_buf_ struct buf json = BUF_INIT(BUF_MAX_TEXT);
	const struct policy *first;
	size_t defaults;

	fixture_load(f);
	defaults = f->p->fs.rules.n;
	use_everything(f);
	first = fixture_load(f);
	policy_print_json(first, &json);
	f->in.only_file = "printed";
	f->in.only_text = json.data;
	f->in.only_len = json.len;
	f->in.cwd = f->home;
	fixture_load(f);
	assert_int_equal(f->p->fs.rules.n, first->fs.rules.n + defaults);
	assert_int_equal(f->p->network.allowed.n, 2);
	assert_string_equal(f->p->network.denied.v[0].reason, "no");
	assert_string_equal(f->p->network.unix_sockets.v[0].text,
			    arena_printf(f->a, "%s/run/x.sock", f->proj));
	assert_int_equal(f->p->network.publish.v[0].port, 8080);
	assert_int_equal(f->p->network.publish.v[0].host_port, 8080);
	assert_int_equal(f->p->network.publish.v[1].port, 80);
	assert_int_equal(f->p->network.publish.v[1].host_port, 3000);
	assert_string_equal(f->p->network.parent_http, "http://p.example");
	assert_int_equal(f->p->limits.memory, 1536);
	assert_int_equal(f->p->limits.timeout_ms, 1500);
	assert_string_equal(f->p->env.set.v[1].value, "x\ty");
	assert_int_equal(f->p->ignore.n, 3);
	assert_int_equal(f->p->notes.n, 0);
	assert_hidden(f, "home/x.key");
	assert_hidden(f, "home/a[1]");
	assert_readable(f, "home/a1");
	assert_unwritable(f, "home/proj/x/z/y");
	assert_writable(f, "home/proj/.vscode/x");
	assert_writable(f, "home/proj/x");
}

static const struct node *get(const struct node *n, const char *a, const char *b)
{
	n = tree_get(n, a);
	assert_non_null(n);
	return tree_get(n, b);
}

static void test_json_origins(void **state)
{
	struct fixture *f = *state;
	_cleanup_buf_ struct buf json = BUF_INIT(BUF_MAX_TEXT);
	const struct node *root, *origins, *list;

	use_everything(f);
	fixture_load(f);
	policy_print_json(f->p, &json);
	assert_int_equal(tree_parse(f->a, "json", json.data, json.len, &root, NULL), 0);
	origins = tree_get(root, "origins");
	assert_non_null(origins);
	list = get(origins, "network", "allowedDomains");
	assert_int_equal(list->n, 2);
	assert_string_equal(list->v[1].text, arena_printf(f->a, "%s/user.yaml:3", f->dir));
	assert_string_equal(get(origins, "limits", "pids")->text, "default");
	assert_int_equal(get(origins, "filesystem", "denyRead")->n,
			 get(root, "filesystem", "denyRead")->n);
	/* keys that only exist for compatibility are not shown */
	assert_null(tree_get(root, "ripgrep"));
	assert_null(get(root, "network", "tlsTerminate"));
}

static void test_text(void **state)
{
	struct fixture *f = *state;
	_cleanup_buf_ struct buf out = BUF_INIT(BUF_MAX_TEXT);

	fixture_user(f, "filesystem: {denyRead: [\"~/a\\e]2Jb\\nforged default\"]}\n"
			"limits: {memory: 3145728}");
	fixture_load(f);
	policy_print(f->p, &out);
	assert_null(strchr(buf_str(&out), '\x1b'));
	assert_null(strstr(buf_str(&out), "\nforged"));
	assert_non_null(strstr(buf_str(&out), "~/a\\x1b]2Jb\\x0aforged"));
	assert_non_null(strstr(buf_str(&out), "  memory                    3m  "));
	assert_non_null(strstr(buf_str(&out), "user.yaml:2\n"));
	assert_non_null(strstr(buf_str(&out), "\nprotected names\n"));
}

/* The schema is JSON, closed, and has a property for each row. */
static void test_schema(void **state)
{
	struct fixture *f = *state;
	_cleanup_buf_ struct buf out = BUF_INIT(BUF_MAX_TEXT);
	const struct node *root, *mode;

	settings_print_schema(&out);
	assert_int_equal(tree_parse(f->a, "schema", out.data, out.len, &root, &f->e), 0);
	for (size_t i = 0; i < settings_count; i++) {
		const struct node *n = root;
		char *rest = arena_strdup(f->a, settings_table[i].key), *part;

		while ((part = strsep(&rest, "."))) {
			assert_string_equal(tree_get(n, "additionalProperties")->text, "false");
			n = get(n, "properties", part);
			assert_non_null(n);
		}
		assert_string_equal(tree_get(n, "description")->text, settings_table[i].help);
	}
	mode = tree_get(get(get(root, "properties", "network"), "properties", "mode"), "enum");
	assert_int_equal(mode->n, 3);
	assert_string_equal(mode->v[0].text, "none");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		policy_test(test_json_loads_again),
		policy_test(test_json_origins),
		policy_test(test_text),
		policy_test(test_schema),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
