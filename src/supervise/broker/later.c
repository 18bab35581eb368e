/* SPDX-License-Identifier: Apache-2.0 */
#include "supervise/broker/later.h"

#include <string.h>

#include "base/macros.h"
#include "base/text.h"
#include "supervise/broker/lockfile.h"

static const struct {
	const char *name; /* last component; a trailing "*" matches the rest */
	const char *reason;
} names[] = {
	{ "package.json", "package scripts" },
	{ "composer.json", "package scripts" },
	{ "deno.json", "package scripts" },
	{ "deno.jsonc", "package scripts" },
	{ ".npmrc", "package manager settings" },
	{ ".yarnrc*", "package manager settings" },
	{ ".pnpmfile*", "package manager hooks" },
	{ "Makefile", "make rules" },
	{ "makefile", "make rules" },
	{ "GNUmakefile", "make rules" },
	{ "CMakeLists.txt", "build rules" },
	{ "meson.build", "build rules" },
	{ "build.rs", "build script" },
	{ "Cargo.toml", "build rules" },
	{ "build.gradle*", "build rules" },
	{ "settings.gradle*", "build rules" },
	{ "gradlew", "build script" },
	{ "pom.xml", "build rules" },
	{ "mvnw", "build script" },
	{ "build.sbt", "build rules" },
	{ "mix.exs", "build rules" },
	{ "build.zig", "build script" },
	{ "configure", "build script" },
	{ "flake.nix", "build rules" },
	{ "shell.nix", "build rules" },
	{ "default.nix", "build rules" },
	/* names most of its sources by owner and repository, not by an address: told as a whole */
	{ "flake.lock", "where packages come from" },
	{ "justfile", "task runner" },
	{ "Justfile", "task runner" },
	{ "Taskfile.y*", "task runner" },
	{ "Rakefile", "task runner" },
	{ "tasks.py", "task runner" },
	{ "Procfile", "task runner" },
	{ "mise.toml", "task runner" },
	{ ".mise.toml", "task runner" },
	{ "gulpfile.*", "task runner" },
	{ "Gruntfile.*", "task runner" },
	{ "setup.py", "build script" },
	{ "setup.cfg", "build rules" },
	{ "pyproject.toml", "build rules" },
	{ "conftest.py", "run by pytest" },
	{ "sitecustomize.py", "run by python" },
	{ "usercustomize.py", "run by python" },
	{ ".eslintrc.js", "settings that are code" },
	{ ".eslintrc.cjs", "settings that are code" },
	{ ".mocharc.js", "settings that are code" },
	{ ".mocharc.cjs", "settings that are code" },
	{ ".babelrc.js", "settings that are code" },
	{ ".babelrc.cjs", "settings that are code" },
	{ ".pylintrc", "settings that name code" },
	{ "noxfile.py", "test sessions" },
	{ "tox.ini", "test sessions" },
	{ "pip.conf", "package manager settings" },
	{ "Gemfile", "package scripts" },
	{ "Jenkinsfile", "CI" },
	{ ".gitlab-ci.yml", "CI" },
	{ ".travis.yml", "CI" },
	{ "azure-pipelines.yml", "CI" },
	{ "bitbucket-pipelines.yml", "CI" },
	{ ".drone.yml", "CI" },
	{ ".woodpecker.y*", "CI" },
	{ ".pre-commit-config.yaml", "git hooks" },
	{ "lefthook.y*", "git hooks" },
	{ ".gitattributes", "chooses git filters" },
	{ "Dockerfile", "container build" },
	{ "docker-compose.y*", "containers" },
	{ "compose.y*", "containers" },
	{ "Vagrantfile", "virtual machines" },
	{ "git-rebase-todo", "a rebase in progress" },
	{ "CLAUDE.md", "instructions for agents" },
	{ "AGENTS.md", "instructions for agents" },
	{ "GEMINI.md", "instructions for agents" },
	{ ".cursorrules", "instructions for agents" },
	{ ".windsurfrules", "instructions for agents" },
	{ ".clinerules", "instructions for agents" },
};

static const struct {
	const char *stem, *extension; /* how the last component ends */
	const char *reason;
} endings[] = {
	{ "", ".mk", "make rules" },
	{ "", ".pth", "run by python" },
	{ ".config", ".js", "settings that are code" },
	{ ".config", ".cjs", "settings that are code" },
	{ ".config", ".mjs", "settings that are code" },
	{ ".config", ".ts", "settings that are code" },
};

static const struct {
	const char *part;
	const char *reason;
} directories[] = {
	/* each begins with a dot */
	{ "/.github/workflows/", "CI" },
	{ "/.github/actions/", "CI" },
	{ "/.circleci/", "CI" },
	{ "/.buildkite/", "CI" },
	{ "/.woodpecker/", "CI" },
	{ "/.github/copilot-instructions.md", "instructions for agents" },
	{ "/.github/instructions/", "instructions for agents" },
	{ "/.clinerules/", "instructions for agents" },
	{ "/.husky/", "git hooks" },
	{ "/.cargo/config", "cargo settings" },
};

static const char *const installed[] = { "/node_modules/", "/site-packages/", "/dist-packages/",
					 "/.cargo/registry/" };

static bool name_matches(const char *pattern, const char *name)
{
	size_t n;

	if (*pattern != *name)
		return false; /* nearly all; every file that is written is asked about */
	n = strlen(pattern);
	if (pattern[n - 1] == '*')
		return strncmp(name, pattern, n - 1) == 0;
	return strcmp(name, pattern) == 0;
}

static bool ends_like(const char *name, const char *dot, const char *stem, const char *extension)
{
	size_t n = (size_t)(dot - name), len;

	if (strcmp(dot, extension) != 0)
		return false;
	len = strlen(stem);
	return n >= len && memcmp(dot - len, stem, len) == 0;
}

bool later_is_installed(const char *path)
{
	for (size_t i = 0; i < ARRAY_LEN(installed); i++) {
		if (strstr(path, installed[i]))
			return true;
	}
	return false;
}

/* By its name, or by a directory that it lies in. */
static const char *reason_of(const char *path)
{
	const char *slash = strrchr(path, '/'), *dot = slash ? strrchr(slash, '.') : NULL;

	if (slash && lockfile_is_one(slash + 1))
		return "where packages come from";
	for (size_t i = 0; slash && i < ARRAY_LEN(names); i++) {
		if (name_matches(names[i].name, slash + 1))
			return names[i].reason;
	}
	for (size_t i = 0; dot && i < ARRAY_LEN(endings); i++) {
		if (ends_like(slash + 1, dot, endings[i].stem, endings[i].extension))
			return endings[i].reason;
	}
	for (size_t i = 0; strstr(path, "/.") && i < ARRAY_LEN(directories); i++) {
		if (strstr(path, directories[i].part))
			return directories[i].reason;
	}
	return NULL;
}

const char *later_reason(const char *path)
{
	const char *reason = reason_of(path);

	return reason && !later_is_installed(path) ? reason : NULL;
}
