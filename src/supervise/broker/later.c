/* SPDX-License-Identifier: Apache-2.0 */
#include "supervise/broker/later.h"

#include <string.h>

#include "base/macros.h"
#include "base/text.h"

static const struct {
	const char *name; /* last component; a leading or trailing "*" matches the rest */
	const char *reason;
} names[] = {
	{ "package.json", "package scripts" },
	{ ".npmrc", "package manager settings" },
	{ ".yarnrc*", "package manager settings" },
	{ ".pnpmfile*", "package manager hooks" },
	{ "package-lock.json", "where packages come from" },
	{ "npm-shrinkwrap.json", "where packages come from" },
	{ "yarn.lock", "where packages come from" },
	{ "pnpm-lock.yaml", "where packages come from" },
	{ "Cargo.lock", "where packages come from" },
	{ "poetry.lock", "where packages come from" },
	{ "uv.lock", "where packages come from" },
	{ "Gemfile.lock", "where packages come from" },
	{ "go.sum", "where packages come from" },
	{ "Makefile", "make rules" },
	{ "makefile", "make rules" },
	{ "GNUmakefile", "make rules" },
	{ "*.mk", "make rules" },
	{ "CMakeLists.txt", "build rules" },
	{ "meson.build", "build rules" },
	{ "build.rs", "build script" },
	{ "build.gradle*", "build rules" },
	{ "settings.gradle*", "build rules" },
	{ "gradlew", "build script" },
	{ "pom.xml", "build rules" },
	{ "mvnw", "build script" },
	{ "justfile", "task runner" },
	{ "Justfile", "task runner" },
	{ "Taskfile.y*", "task runner" },
	{ "Rakefile", "task runner" },
	{ "gulpfile.*", "task runner" },
	{ "Gruntfile.*", "task runner" },
	{ "setup.py", "build script" },
	{ "setup.cfg", "build rules" },
	{ "pyproject.toml", "build rules" },
	{ "conftest.py", "run by pytest" },
	{ "noxfile.py", "test sessions" },
	{ "tox.ini", "test sessions" },
	{ "pip.conf", "package manager settings" },
	{ "Gemfile", "package scripts" },
	{ "Jenkinsfile", "CI" },
	{ ".gitlab-ci.yml", "CI" },
	{ ".travis.yml", "CI" },
	{ "azure-pipelines.yml", "CI" },
	{ ".pre-commit-config.yaml", "git hooks" },
	{ "lefthook.y*", "git hooks" },
	{ ".gitattributes", "chooses git filters" },
	{ "Dockerfile", "container build" },
	{ "docker-compose.y*", "containers" },
	{ "compose.y*", "containers" },
	{ "git-rebase-todo", "a rebase in progress" },
	{ "CLAUDE.md", "instructions for agents" },
	{ "AGENTS.md", "instructions for agents" },
	{ "GEMINI.md", "instructions for agents" },
	{ ".cursorrules", "instructions for agents" },
};

static const struct {
	const char *part;
	const char *reason;
} directories[] = {
	{ "/.github/workflows/", "CI" },
	{ "/.github/actions/", "CI" },
	{ "/.circleci/", "CI" },
	{ "/.husky/", "git hooks" },
	{ "/.cargo/config", "cargo settings" },
};

/* Installed packages: as many such files as packages, and nobody runs them by their names. */
static const char *const installed[] = { "/node_modules/", "/site-packages/", "/dist-packages/",
					 "/.cargo/registry/" };

static bool name_matches(const char *pattern, const char *name)
{
	size_t n = strlen(pattern);

	if (*pattern == '*')
		return text_ends(name, pattern + 1);
	if (pattern[n - 1] == '*')
		return strncmp(name, pattern, n - 1) == 0;
	return strcmp(name, pattern) == 0;
}

const char *later_reason(const char *path)
{
	const char *slash = strrchr(path, '/');

	for (size_t i = 0; i < ARRAY_LEN(installed); i++) {
		if (strstr(path, installed[i]))
			return NULL;
	}
	for (size_t i = 0; slash && i < ARRAY_LEN(names); i++) {
		if (name_matches(names[i].name, slash + 1))
			return names[i].reason;
	}
	for (size_t i = 0; i < ARRAY_LEN(directories); i++) {
		if (strstr(path, directories[i].part))
			return directories[i].reason;
	}
	return NULL;
}
