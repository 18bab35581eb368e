/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Git configuration goes in only as our own copy of checked text: a program
 * that kept the lock file open cannot change it afterwards. Callers hold the lock.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "supervise/broker/gitconfig.h"
#include "supervise/broker/internal.h"

/* Put `text` in place of parent/name, by a file of our own that nobody else has open. */
static int install_text(const struct place *p, const char *text, size_t len, mode_t mode)
{
	_cleanup_fd_ int fd = -1;
	char name[64];
	int r;

	(void)snprintf(name, sizeof(name), ".ambit-config-%d", getpid());
	(void)unlinkat(p->parent, name, 0);
	fd = openat(p->parent, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	r = fd_write_all(fd, text, len);
	if (r == 0 && fchmod(fd, mode & 0777) < 0)
		r = -errno;
	if (r == 0 && renameat(p->parent, name, p->parent, p->name) < 0)
		r = -errno;
	if (r < 0)
		(void)unlinkat(p->parent, name, 0);
	return r;
}

int install_config(struct call *c, const struct place *from, const struct place *to,
		   struct guard_answer *why)
{
	_cleanup_free_ char *before = NULL, *after = NULL;
	struct gitconfig_place place = { .git_dir = to->path, .root = to->root };
	static struct gitconfig_finding finding; /* its text outlives this call in the report */
	static char reason[160];
	_cleanup_fd_ int file = -1;
	struct stat st;
	size_t len;
	int r;

	(void)c;
	file = openat(from->parent, from->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (file < 0)
		return -errno;
	if (fstat(file, &st) < 0 || !S_ISREG(st.st_mode))
		return -EACCES;
	r = fd_read_file(from->parent, from->name, GITCONFIG_MAX, &after, &len);
	if (r < 0)
		return r == -EFBIG ? -EACCES : r;
	if (fd_read_file(to->parent, to->name, GITCONFIG_MAX, &before, NULL) < 0)
		before = NULL;
	r = strlen(after) == len ? gitconfig_check(before, after, &place, &finding) : -EINVAL;
	if (r < 0) {
		(void)snprintf(reason, sizeof(reason), "git configuration key %.60s: %.70s",
			       finding.key, finding.reason);
		why->reason = reason;
		return -EACCES;
	}
	r = install_text(to, after, len, st.st_mode);
	if (r == 0 && unlinkat(from->parent, from->name, 0) < 0)
		r = -errno;
	return r;
}

int replace_config(struct call *c, const struct place *p)
{
	struct place config = *p; /* shares the descriptor */
	_cleanup_free_ char *text = NULL;
	struct stat st;
	size_t len;
	int r;

	(void)c;
	(void)snprintf(config.name, sizeof(config.name), "config");
	if (fstatat(p->parent, "config", &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISREG(st.st_mode))
		return -EACCES;
	r = fd_read_file(p->parent, "config", GITCONFIG_MAX, &text, &len);
	if (r < 0)
		return r;
	return install_text(&config, text, len, st.st_mode);
}

int give_commondir(struct call *c, const struct place *p, int flags, mode_t mode)
{
	static const char text[] = "../..\n";
	_cleanup_fd_ int memory = -1;
	int r;

	(void)umask(call_umask(c));
	r = install_text(p, text, sizeof(text) - 1, mode);
	if (r < 0)
		return r;
	/* git writes what it likes into this; only what we wrote stays */
	memory = (int)syscall(SYS_memfd_create, "commondir", 1u /* CLOEXEC */);
	if (memory < 0)
		return -errno;
	r = call_send_fd(c, memory, (flags & O_CLOEXEC) != 0);
	return r;
}
