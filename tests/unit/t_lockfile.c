/* SPDX-License-Identifier: Apache-2.0 */
#include "supervise/broker/lockfile.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/macros.h"

static void check(const char *name, const char *text, const char *hosts)
{
	char found[LOCKFILE_HOSTS_MAX];

	lockfile_hosts(name, text, strlen(text), found);
	assert_string_equal(found, hosts);
}

static void test_names(void **state)
{
	(void)state;
	assert_true(lockfile_is_one("package-lock.json"));
	assert_true(lockfile_is_one("requirements-dev.txt"));
	assert_true(lockfile_is_one("dev-requirements.txt"));
	assert_false(lockfile_is_one("requirements.md"));
	assert_false(lockfile_is_one("package.json"));
	assert_false(lockfile_is_one(""));
}

static void test_hosts(void **state)
{
	(void)state;
	check("package-lock.json",
	      "{\"a\": {\n\"version\": \"1.0.0\",\n\"resolved\": \"https://r.example/a.tgz\",\n"
	      "\"funding\": {\"url\": \"https://money.example\"}},\n"
	      "\"b\": {\"resolved\": \"https://R.Example/b.tgz\"},\n"
	      "\"c\": {\"version\": \"git+ssh://git@g.example/c.git#1\"},\n"
	      "\"d\": {\"resolved\": \"file:../d\"}, \"e\": {\"resolved\": false}}",
	      "r.example g.example");
	check("package-lock.json", "{\"x\":{\"resolved\":\"https://one.example/x\",\"y\":1}}",
	      "one.example");
	check("yarn.lock", "a@^1:\n  version \"1.0\"\n  resolved \"https://y.example:8443/a#00\"\n",
	      "y.example:8443");
	check("yarn.lock",
	      "  resolution: \"a@npm:1.0\"\n  resolution: \"b@https://z.example/b.tgz\"\n",
	      "z.example");
	check("pnpm-lock.yaml",
	      "  resolution: {integrity: sha512-x, tarball: https://p.example/a}\n", "p.example");
	check("Cargo.lock", "source = \"registry+https://c.example/index\"\n", "c.example");
	check("poetry.lock", "[package.source]\nurl = \"https://u:p@po.example/simple\"\n",
	      "po.example");
	check("uv.lock",
	      "source = { registry = \"https://uv.example/simple\" }\n"
	      "sdist = { url = \"https://files.example/a\" }\n"
	      "source = { registry = \"./local\" }\n",
	      "uv.example files.example");
	check("Gemfile.lock", "GEM\n  remote: https://gems.example/\n  specs:\n", "gems.example");
	check("composer.lock",
	      "{\"source\": {\"type\": \"git\", \"url\": \"https://co.example/a.git\"},\n"
	      "\"dist\": {\"url\": \"https://zip.example/a\"}, \"psr-4\": {\"A\\\\\": \"src/\"},\n"
	      "\"homepage\": \"https://home.example\", \"dist\": {\"url\": \"../b\"}}",
	      "co.example zip.example");
	check("composer.lock", "\"url\": \"git@evil.example:x\"", "?");
	check("bun.lock",
	      "\"a\": [\"a@1.0.0\", \"https://bun.example/a.tgz\", {}, \"sha512-x==\"],\n"
	      "\"b\": [\"b@git+ssh://git@g.example/b.git#1\", {}, \"1\"],\n"
	      "\"c\": [\"c@1.0.0\", \"\", {}, \"sha512-y==\"],\n",
	      "bun.example g.example");
	check("deno.lock",
	      "{\"specifiers\": {\"npm:a@1\": \"1.0\"}, \"redirects\": {\n"
	      "\"https://short.example/a\": \"https://long.example/a.ts\"},\n"
	      "\"remote\": {\"https://long.example/a.ts\": \"00\"},\n"
	      "\"npm\": {\"b@1\": {\"tarball\": \"https://tar.example/b.tgz\"}}}",
	      "short.example long.example tar.example");
	check("requirements.txt",
	      "-i https://i.example/simple\na @ git+https://g.example/a\nb==1\n",
	      "i.example g.example");
	check("package.json", "\"resolved\": \"https://x.example\"", "");
}

/* What hides an address is told as something unclear. */
static void test_unclear(void **state)
{
	static const char *const texts[] = {
		"\"resolved\": \"https:\\/\\/evil.example\\/x\"",
		"\"\\u0072esolved\": \"https://evil.example/x\"",
		"\"resolved\":\n",
		"\"resolved\"",
		"\"resolved\": \"git@evil.example:x\"",
		"\"resolved\": \"https://\"",
		"\"resolved\": \"https://\303\251vil.example/\"",
		"\"resolved\": \"https://user@/x\"",
		"\\",
	};
	char found[LOCKFILE_HOSTS_MAX], longer[1000];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		lockfile_hosts("package-lock.json", texts[i], strlen(texts[i]), found);
		assert_non_null(strchr(found, '?'));
	}
	lockfile_hosts("package-lock.json", "a\0b", 3, found);
	assert_string_equal(found, "?");
	memset(longer, 'a', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	memcpy(longer, "resolved \"https://", 18);
	check("yarn.lock", longer, "?");
}

static void test_many(void **state)
{
	char text[20000], found[LOCKFILE_HOSTS_MAX];
	size_t n = 0;

	(void)state;
	for (unsigned i = 0; i < 400; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n,
				      "  remote: https://h%u.example/\n", i);
	lockfile_hosts("Gemfile.lock", text, n, found);
	assert_true(strlen(found) < LOCKFILE_HOSTS_MAX);
	assert_string_equal(found + strlen(found) - 2, " ?");
}

static void test_new_hosts(void **state)
{
	char found[LOCKFILE_HOSTS_MAX];

	(void)state;
	lockfile_new_hosts("a.example b.example", "b.example c.example a.example ?", found);
	assert_string_equal(found, "c.example ?");
	lockfile_new_hosts("a.example", "a.example", found);
	assert_string_equal(found, "");
	lockfile_new_hosts("", "a.example", found);
	assert_string_equal(found, "a.example");
	lockfile_new_hosts("aa.example", "a.example", found);
	assert_string_equal(found, "a.example");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),     cmocka_unit_test(test_hosts),
		cmocka_unit_test(test_unclear),   cmocka_unit_test(test_many),
		cmocka_unit_test(test_new_hosts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
