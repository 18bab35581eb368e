/* SPDX-License-Identifier: Apache-2.0 */
#include "supervise/broker/later.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/macros.h"

static void check(const char *path, const char *reason)
{
	const char *found = later_reason(path);

	if (!found)
		fail_msg("%s is not listed", path);
	assert_string_equal(found, reason);
}

static void test_listed(void **state)
{
	(void)state;
	check("/w/.buildkite/pipeline.yml", "CI");
	check("/w/.buildkite/hooks/pre-command", "CI");
	check("/w/.drone.yml", "CI");
	check("/w/.woodpecker.yml", "CI");
	check("/w/.woodpecker/test.yaml", "CI");
	check("/w/bitbucket-pipelines.yml", "CI");
	check("/w/composer.json", "package scripts");
	check("/w/deno.json", "package scripts");
	check("/w/deno.jsonc", "package scripts");
	check("/w/flake.nix", "build rules");
	check("/w/flake.lock", "where packages come from");
	check("/w/shell.nix", "build rules");
	check("/w/a/default.nix", "build rules");
	check("/w/Vagrantfile", "virtual machines");
	check("/w/mix.exs", "build rules");
	check("/w/build.sbt", "build rules");
	check("/w/build.zig", "build script");
	check("/w/configure", "build script");
	check("/w/.mocharc.js", "settings that are code");
	check("/w/.mocharc.cjs", "settings that are code");
	check("/w/.babelrc.js", "settings that are code");
	check("/w/.babelrc.cjs", "settings that are code");
	check("/w/.github/copilot-instructions.md", "instructions for agents");
	check("/w/.github/instructions/c.instructions.md", "instructions for agents");
	check("/w/.windsurfrules", "instructions for agents");
	check("/w/.clinerules", "instructions for agents");
	check("/w/.clinerules/style.md", "instructions for agents");
	check("/w/composer.lock", "where packages come from");
	check("/w/bun.lock", "where packages come from");
	check("/w/deno.lock", "where packages come from");
	/* from before */
	check("/w/Makefile", "make rules");
	check("/w/a/rules.mk", "make rules");
	check("/w/vite.config.ts", "settings that are code");
	check("/w/.github/workflows/ci.yml", "CI");
	check("/w/gradlew", "build script");
	check("/w/docker-compose.yaml", "containers");
}

/* Beside those: ordinary work, of which a list would be too long to read. */
static void test_not_listed(void **state)
{
	static const char *const paths[] = {
		"/w/main.c",          "/w/configure.ac",        "/w/src/configure.c",
		"/w/pkgs/hello.nix",  "/w/lib/mix.ex",          "/w/build.zig.txt",
		"/w/.babelrc.md",     "/w/.github/CODEOWNERS",  "/w/buildkite/pipeline.yml",
		"/w/denojson",        "/w/clinerules/style.md", "/w/.github/instructions.md",
		"/w/composer.json.md"
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(paths); i++)
		assert_null(later_reason(paths[i]));
}

static void test_installed(void **state)
{
	(void)state;
	assert_null(later_reason("/w/node_modules/a/configure"));
	assert_null(later_reason("/w/node_modules/a/composer.lock"));
	assert_null(later_reason("/w/lib/site-packages/a/.github/copilot-instructions.md"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_listed),
		cmocka_unit_test(test_not_listed),
		cmocka_unit_test(test_installed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
