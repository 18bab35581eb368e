/* SPDX-License-Identifier: Apache-2.0 */
/* Paths to rules, rules to text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "policy/tree.h"
#include "supervise/learn.h"

#define HOME "/home/u"

/* What is there at the end: the files and directories named here. */
static enum file_kind kind_of(const struct view *v, const char *path)
{
	const char *const *there = v->ctx;

	for (; there && *there; there++) {
		size_t n = strlen(*there);

		if (strncmp(*there, path, strlen(path)) == 0 && (*there)[strlen(path)] == '/')
			return FILE_DIRECTORY; /* above it */
		if (strcmp(*there, path) == 0)
			return FILE_REGULAR;
		if (n && (*there)[n - 1] == '/' && strncmp(*there, path, n - 1) == 0 &&
		    !path[n - 1])
			return FILE_DIRECTORY;
	}
	return FILE_ABSENT;
}

static void check(const char *const *used, const char *const *there, const char *const *want,
		  size_t n_wide)
{
	_cleanup_arena_ struct arena *a = arena_new();
	struct view view = { .kind = kind_of, .ctx = (void *)(uintptr_t)there };
	struct learned_paths in = { 0 }, rules, wide;
	size_t n = 0;

	/* "+": it was not there before */
	for (; *used; used++)
		*ARENA_PUSH(a, in.v, in.n) = (struct learned_path){ .path = *used + (**used == '+'),
								    .processes = "p",
								    .count = 1,
								    .made = **used == '+' };
	learn_generalise(a, &view, HOME, &in, &rules, &wide);
	for (; want[n]; n++) {
		if (n >= rules.n || strcmp(rules.v[n].path, want[n]) != 0)
			fail_msg("rule %zu is %s, not %s", n, n < rules.n ? rules.v[n].path : "-",
				 want[n]);
	}
	assert_int_equal(rules.n, n);
	assert_int_equal(wide.n, n_wide);
	/* all of it is allowed by one of them, but directories that are there */
	for (size_t i = 0; i < in.n; i++) {
		bool inside = view.kind(&view, in.v[i].path) == FILE_DIRECTORY && !in.v[i].made;

		for (size_t k = 0; k < rules.n; k++)
			inside |= path_within(in.v[i].path, rules.v[k].path) ||
				  path_within(rules.v[k].path, in.v[i].path);
		for (size_t k = 0; k < wide.n; k++)
			inside |= path_within(in.v[i].path, wide.v[k].path);
		assert_true(inside);
	}
}

#define LIST(...) ((const char *const[]){ __VA_ARGS__, NULL })

static void test_known_places(void **state)
{
	(void)state;
	check(LIST(HOME "/.npm/_cacache/tmp/a", HOME "/.npm/_logs/b"),
	      LIST(HOME "/.npm/_cacache/", HOME "/.npm/_logs/b"), LIST(HOME "/.npm"), 0);
	check(LIST(HOME "/.cache/pip/http/a", HOME "/.cache/go-build/b/c", HOME "/.cache/pip/x"),
	      LIST(HOME "/.cache/pip/", HOME "/.cache/go-build/"),
	      LIST(HOME "/.cache/pip", HOME "/.cache/go-build"), 0);
	check(LIST(HOME "/.local/share/tool/db", HOME "/.config/tool/rc",
		   HOME "/.cargo/registry/x/y"),
	      LIST(HOME "/.local/share/tool/", HOME "/.config/tool/", HOME "/.cargo/registry/"),
	      LIST(HOME "/.local/share/tool", HOME "/.config/tool", HOME "/.cargo/registry"), 0);
}

static void test_directories_that_were_made(void **state)
{
	(void)state;
	check(LIST(HOME "/.cache", HOME "/.cache/tool", HOME "/.cache/tool/f"),
	      LIST(HOME "/.cache/tool/f"), LIST(HOME "/.cache/tool"), 0);
	check(LIST(HOME "/empty"), LIST(HOME "/empty/"), LIST(NULL), 0);
	check(LIST("+" HOME "/empty"), LIST(HOME "/empty/"), LIST(HOME "/empty"), 0);
	check(LIST("+" HOME "/a", "+" HOME "/a/b", "+" HOME "/a/b/f"), LIST(HOME "/a/b/f"),
	      LIST(HOME "/a"), 0);
	check(LIST("+" HOME "/work/lib/x"), LIST(HOME "/work/lib/x/"), LIST(HOME "/work/lib"), 0);
	check(LIST("+" HOME "/.cache", "+" HOME "/.cache/tool"), LIST(HOME "/.cache/tool/"),
	      LIST(HOME "/.cache/tool"), 0);
	/* what many programs share is nobody's */
	check(LIST("+" HOME "/.cache"), LIST(HOME "/.cache/"), LIST(NULL), 1);
	check(LIST("+" HOME "/.local"), LIST(HOME "/.local/"), LIST(NULL), 1);
}

/* The rule of a file that is not there would make a directory of that name. */
static void test_files_that_were_made(void **state)
{
	(void)state;
	check(LIST("+" HOME "/foo.txt"), LIST(HOME "/foo.txt"), LIST(NULL), 1);
	check(LIST("+" HOME "/docs/a.txt"), LIST(HOME "/docs/a.txt"), LIST(HOME "/docs"), 0);
	check(LIST("+" HOME "/.config/tool/rc"), LIST(HOME "/.config/tool/rc"),
	      LIST(HOME "/.config/tool"), 0);
	check(LIST("+/file"), LIST("/file"), LIST(NULL), 1);
}

/* What many programs share is no rule for one file: the file is, where it is not replaced. */
static void test_files_in_shared_places(void **state)
{
	(void)state;
	check(LIST("+" HOME "/.config/tool.conf", "+" HOME "/.local/share/solo.db"),
	      LIST(HOME "/.config/tool.conf", HOME "/.local/share/solo.db"),
	      LIST(HOME "/.config/tool.conf", HOME "/.local/share/solo.db"), 0);
	check(LIST("+" HOME "/.local/bin/tool", "+" HOME "/.local/x", "+" HOME "/go/y"),
	      LIST(HOME "/.local/bin/tool", HOME "/.local/x", HOME "/go/y"),
	      LIST(HOME "/.local/bin/tool", HOME "/.local/x", HOME "/go/y"), 0);
	check(LIST("+" HOME "/.local/opt/tool/f"), LIST(HOME "/.local/opt/tool/f"),
	      LIST(HOME "/.local/opt/tool"), 0);
	/* renamed into its place, whether it was there before or not; gone again; removed */
	check(LIST("+" HOME "/.config/a.tmp", "+" HOME "/.config/a"), LIST(HOME "/.config/a"),
	      LIST(NULL), 2);
	check(LIST("+" HOME "/.config/a.tmp", HOME "/.config/a"), LIST(HOME "/.config/a"),
	      LIST(NULL), 2);
	check(LIST("+" HOME "/.cache/lock"), LIST(HOME "/.cache/"), LIST(NULL), 1);
	check(LIST(HOME "/.config/old"), LIST(HOME "/.config/"), LIST(NULL), 1);
	/* places in one of them that are gone are not one place */
	check(LIST("+" HOME "/.local/share/a/f", "+" HOME "/.local/share/b/f"),
	      LIST(HOME "/.local/share/"), LIST(HOME "/.local/share/a", HOME "/.local/share/b"), 0);
	check(LIST("+" HOME "/.local/share/b/f", "+" HOME "/.local/share/a/f"),
	      LIST(HOME "/.local/share/b/f"), LIST(HOME "/.local/share/b", HOME "/.local/share/a"),
	      0);
}

static void test_neighbours(void **state)
{
	(void)state;
	check(LIST(HOME "/work/lib/out/a/f", HOME "/work/lib/out/b/g", HOME "/work/app/x/h"),
	      LIST(HOME "/work/lib/out/a/f", HOME "/work/lib/out/b/g", HOME "/work/app/x/h"),
	      LIST(HOME "/work/lib/out", HOME "/work/app/x"), 0);
	check(LIST("/data/x/one/f", "/data/x/two/f", "/data/y/z/f"),
	      LIST("/data/x/one/f", "/data/x/two/f", "/data/y/z/f"), LIST("/data/x", "/data/y/z"),
	      0);
}

/* A single file is a rule; one that is gone again needs its directory; and that may be too much. */
static void test_files(void **state)
{
	(void)state;
	check(LIST(HOME "/.toolrc"), LIST(HOME "/.toolrc"), LIST(HOME "/.toolrc"), 0);
	check(LIST(HOME "/docs/a.txt"), LIST(HOME "/docs/a.txt"), LIST(HOME "/docs/a.txt"), 0);
	check(LIST(HOME "/docs/.a.tmp"), LIST(HOME "/docs/"), LIST(HOME "/docs"), 0);
	check(LIST(HOME "/.x.tmp"), LIST(HOME "/docs/"), LIST(NULL), 1);
	check(LIST("/file.tmp"), LIST("/data/"), LIST(NULL), 1);
}

static const struct learned_rule *find(const struct learned_rules *list, const char *key)
{
	for (size_t i = 0; i < list->n; i++) {
		if (strcmp(list->v[i].key, key) == 0)
			return &list->v[i];
	}
	return NULL;
}

/* value: of the rule, or with "-" before it of what is listed only; NULL = neither. */
static void check_limit(const struct run_result *result, const struct policy_limits *have,
			const char *key, const char *value)
{
	_cleanup_arena_ struct arena *a = arena_new();
	const struct policy base = { .home = HOME, .limits = *have };
	struct view view = { .kind = kind_of };
	struct report report = { 0 };
	const struct learned_rule *rule, *listed;
	struct learned out;

	learn_finish(learn_new(a, &base, &view), &report, result, &out);
	rule = find(&out.rules, key);
	listed = find(&out.refused, key);
	if (value && *value == '-')
		assert_true(!rule && listed && strcmp(listed->value, value + 1) == 0);
	else if (value)
		assert_true(!listed && rule && strcmp(rule->value, value) == 0);
	else
		assert_true(!rule && !listed);
}

#define MB ((uint64_t)1 << 20)

/* A sample is no peak: a limit is learned only from what cannot have been more. */
static void test_limits(void **state)
{
	const struct policy_limits none = { 0 }, some = { .pids = 64, .memory = 256 * MB };
	struct run_result r = { .limit = -1,
				.max_rss = 12 * MB,
				.peak = { .pids = 1, .memory = 10 * MB, .tasks = 201 } };

	(void)state;
	check_limit(&r, &none, "limits.pids", "416");
	check_limit(&r, &none, "limits.memory", "2432m"); /* each as large as the largest */
	/* it did with what there was; more is seen than was thought enough */
	check_limit(&r, &some, "limits.pids", NULL);
	check_limit(&r, &some, "limits.memory", NULL);
	r.peak.pids = 50;
	r.peak.memory = 300 * MB;
	check_limit(&r, &some, "limits.pids", "112");
	check_limit(&r, &some, "limits.memory", "640m");
	check_limit(&r, &none, "limits.pids", "416");
	/* one process is its own peak */
	r.peak.tasks = r.peak.pids = 1;
	check_limit(&r, &none, "limits.pids", "64");
	check_limit(&r, &none, "limits.memory", "640m");
	/* nothing is sure */
	r.peak.tasks = 0;
	check_limit(&r, &none, "limits.pids", "-64");
	check_limit(&r, &none, "limits.memory", "-640m");
	r.peak.pids_exact = r.peak.memory_exact = true;
	check_limit(&r, &none, "limits.pids", "64");
	check_limit(&r, &none, "limits.memory", "640m");
	/* more than any machine has is no limit */
	r.peak.memory_exact = false;
	r.peak.tasks = (uint64_t)1 << 40;
	check_limit(&r, &none, "limits.memory", "-640m");
	/* it was ended: what it would have used is not known */
	r.peak.tasks = 1;
	r.limit = LIMIT_TIMEOUT;
	r.peak.pids_exact = false;
	check_limit(&r, &none, "limits.pids", "-64");
}

static const struct learned_rule rules[] = {
	{ "filesystem.allowWrite", "~/.npm", "npm: ~/.npm/x\n# \x1b[31m" },
	{ "filesystem.allowWrite", "/a \"b\"", "" },
	{ "network.allowedDomains", "*.a.test:443", "2 connections" },
	{ "network.publish", "3000", NULL },
	{ "limits.memory", "512m", "peak 200m" },
	{ "limits.pids", "64", "peak 9" },
	{ "profiles", "npm", "given" },
};

static const struct learned_rule refused[] = {
	{ "", "--allow-read ~/.npmrc", "read ~/.npmrc by npm: access tokens" },
	{ "network.allowUnixSockets", "/run/a b", "asked" },
};

static struct learned learned(void)
{
	return (struct learned){
		.rules = { (struct learned_rule *)(uintptr_t)rules, ARRAY_LEN(rules) },
		.refused = { (struct learned_rule *)(uintptr_t)refused, ARRAY_LEN(refused) },
	};
}

static void test_text(void **state)
{
	_cleanup_arena_ struct arena *a = arena_new();
	_cleanup_buf_ struct buf out = BUF_INIT(BUF_MAX_TEXT);
	struct learned l = learned();
	const struct node *root;
	struct error e;

	(void)state;
	learn_print(&l, "title\nevil: true", &out);
	assert_non_null(strstr(buf_str(&out), "network:\n"
					      "  allowedDomains:\n"
					      "    - \"*.a.test:443\" # 2 connections\n"
					      "  publish:\n"
					      "    - 3000\n"
					      "filesystem:\n"
					      "  allowWrite:\n"
					      "    - \"~/.npm\" # npm: ~/.npm/x\\x0a# \\x1b[31m\n"
					      "    - \"/a \\\"b\\\"\"\n"
					      "limits:\n"
					      "  memory: \"512m\" # peak 200m\n"
					      "  pids: 64 # peak 9\n"
					      "profiles:\n"
					      "  - \"npm\" # given\n"));
	assert_non_null(strstr(buf_str(&out),
			       "\n#   --allow-read ~/.npmrc # read ~/.npmrc by npm: access tokens\n"
			       "#   --set 'network.allowUnixSockets=/run/a b' # asked\n"));
	assert_int_equal(tree_parse(a, "x", out.data, out.len, &root, &e), 0);
	assert_int_equal(root->n, 4);
	/* nothing at all is a settings file as well */
	l = (struct learned){ 0 };
	buf_done(&out);
	learn_print(&l, "t", &out);
	assert_int_equal(tree_parse(a, "x", out.data, out.len, &root, &e), 0);
	assert_int_equal(root->n, 0);
}

static void test_update(void **state)
{
	static const char old[] = "# mine\n"
				  "filesystem:\n"
				  "  allowWrite:\n"
				  "    - ~/x # kept\n"
				  "limits:\n"
				  "  pids: 10 # old\n"
				  "# end\n";
	static const char new[] = "# mine\n"
				  "filesystem:\n"
				  "  allowWrite:\n"
				  "    - \"/a \\\"b\\\"\"\n"
				  "    - \"~/.npm\" # npm: ~/.npm/x\\x0a# \\x1b[31m\n"
				  "    - ~/x # kept\n"
				  "limits:\n"
				  "  \"memory\": \"512m\" # peak 200m\n"
				  "  pids: 64 # old\n"
				  "# end\n"
				  "\"network\":\n"
				  "  \"publish\": [3000]\n"
				  "  \"allowedDomains\":\n"
				  "    - \"*.a.test:443\" # 2 connections\n";
	_cleanup_buf_ struct buf out = BUF_INIT(BUF_MAX_TEXT);
	struct learned l = learned();
	struct error e = { 0 };

	(void)state;
	l.rules.n--; /* without the profile */
	assert_int_equal(learn_update("x", old, &l, &out, &e), 0);
	assert_string_equal(buf_str(&out), new);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_known_places),
		cmocka_unit_test(test_directories_that_were_made),
		cmocka_unit_test(test_files_that_were_made),
		cmocka_unit_test(test_files_in_shared_places),
		cmocka_unit_test(test_neighbours),
		cmocka_unit_test(test_files),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_update),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
