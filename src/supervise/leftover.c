/* SPDX-License-Identifier: Apache-2.0 */
#include "supervise/leftover.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/text.h"
#include "supervise/broker/lockfile.h"

#define TODO_MAX ((size_t)1 << 20)

/* A line of a rebase that runs a program, as git reads it: "exec CMD" or "x CMD". */
static bool is_exec_line(const char *line)
{
	size_t n;

	line += strspn(line, " \t");
	n = strcspn(line, " \t\r\n");
	return (n == 4 && memcmp(line, "exec", 4) == 0) || (n == 1 && *line == 'x');
}

/* The list of a rebase in progress runs programs only where it says so. */
static bool is_harmless_todo(const char *path)
{
	_cleanup_fd_ int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	_cleanup_free_ char *text = malloc(TODO_MAX + 1);
	struct stat st;
	ssize_t n;

	if (fd < 0 || !text || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) ||
	    st.st_size > (off_t)TODO_MAX)
		return false;
	n = fd_read_full(fd, text, TODO_MAX);
	if (n < 0 || memchr(text, '\0', (size_t)n))
		return false;
	text[n] = '\0';
	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (is_exec_line(line))
			return false;
	}
	return true;
}

/* Only when packages come from somewhere new. */
static bool names_new_hosts(struct arena *a, struct report_entry *entry)
{
	char after[LOCKFILE_HOSTS_MAX], new[LOCKFILE_HOSTS_MAX];

	lockfile_read_hosts(AT_FDCWD, entry->target, after);
	lockfile_new_hosts(entry->source, after, new);
	if (!*new)
		return false;
	entry->reason = arena_printf(a, "packages come from %s",
				     strcmp(new, "?") == 0 ? "where cannot be read plainly" : new);
	return true;
}

bool leftover_matters(struct arena *a, struct report_entry *entry)
{
	const char *slash = strrchr(entry->target, '/');

	if (!slash || faccessat(AT_FDCWD, entry->target, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
		return false;
	if (strcmp(slash + 1, "git-rebase-todo") == 0)
		return !is_harmless_todo(entry->target);
	if (lockfile_is_one(slash + 1))
		return names_new_hosts(a, entry);
	return true;
}
