/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Becoming the command: looked for on its own PATH, with its own rights, because the one who
 * asks does so from inside.
 */
#include "sandbox/search.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"

#define NO_INTERPRETER 4096 /* the file is there, what it names to run it is not */

static const char *env_value(char *const *env, const char *name)
{
	size_t n = strlen(name);

	for (; *env; env++) {
		if (strncmp(*env, name, n) == 0 && (*env)[n] == '=')
			return *env + n + 1;
	}
	return NULL;
}

/* execve, and what every shell does with a script that names no interpreter. */
static int try_exec(const char *path, char *const *argv, char *const *env)
{
	size_t n = 0;
	_cleanup_free_ const char **with_shell = NULL;

	(void)execve(path, argv, env);
	if (errno != ENOEXEC)
		return errno;
	while (argv[n])
		n++;
	with_shell = calloc(n + 2, sizeof(*with_shell));
	if (!with_shell)
		return ENOMEM;
	with_shell[0] = "/bin/sh";
	with_shell[1] = path;
	for (size_t i = 1; i < n; i++)
		with_shell[i + 1] = argv[i];
	(void)execve("/bin/sh", (char *const *)(uintptr_t)with_shell, env);
	return ENOEXEC;
}

static int search_exec(const char *name, char *const *argv, char *const *env)
{
	const char *path = env_value(env, "PATH");
	int err = ENOENT;

	if (strchr(name, '/')) {
		err = try_exec(name, argv, env);
		return err == ENOENT && access(name, F_OK) == 0 ? NO_INTERPRETER : err;
	}
	if (!path || !*path)
		path = "/usr/local/bin:/usr/bin:/bin";
	while (*name) {
		size_t len = strcspn(path, ":");
		char file[PATH_MAX];
		int failed = ENAMETOOLONG;
		bool there = false;

		if (len + strlen(name) + 2 <= sizeof(file)) {
			memcpy(file, path, len);
			file[len] = '/';
			memcpy(file + len + (len > 0), name, strlen(name) + 1);
			/* most directories do not have it, and to find that out by exec is dear */
			there = access(file, F_OK) == 0;
			failed = there ? try_exec(file, argv, env) : errno;
		}
		if (failed == ENOENT && there)
			return NO_INTERPRETER;
		if (failed == EACCES) /* remembered, but a later directory may do */
			err = there ? EACCES : err; /* one that cannot be searched has nothing */
		else if (failed != ENOENT && failed != ENOTDIR && failed != ENAMETOOLONG)
			return failed;
		if (!path[len])
			break;
		path += len + 1;
	}
	return err;
}

static int exec_failure(int err, const char *name, struct error *e)
{
	bool missing = err == ENOENT || err == ENOTDIR;

	e->exit_code = missing ? 127 : 126;
	if (err == NO_INTERPRETER)
		return error_set(e, ENOENT,
				 "%s: cannot be executed: its interpreter or loader is missing",
				 name);
	if (missing)
		return error_set(e, err, "%s: not found", name);
	return error_set(e, err, "%s: cannot be executed: %s", name, strerror(err));
}

int sandbox_exec(const char *file, char *const *argv, char *const *env, struct error *e)
{
	return exec_failure(search_exec(file, argv, env), file, e);
}
