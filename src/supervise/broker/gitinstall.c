/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Git configuration goes in only as our own copy of checked text: a program
 * that kept the lock file open cannot change it afterwards. Callers hold the lock. A long text, whose
 * judgement others would notice, is judged without it: the text is our copy by then.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/error.h"
#include "base/fd.h"
#include "base/sys.h"
#include "base/text.h"
#include "supervise/broker/gitconfig.h"
#include "supervise/broker/gitfiles.h"

#define REMOTES "where git fetches from and pushes to"
#define LONG_TEXT ((size_t)64 << 10) /* bytes; shorter ones are judged in milliseconds */

int git_read_regular(int dirfd, const char *name, char **ret, size_t *ret_len, mode_t *ret_mode)
{
	_cleanup_fd_ int fd = openat(dirfd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	_cleanup_free_ char *text = NULL;
	struct stat st;
	ssize_t n;

	if (fd < 0 || fstat(fd, &st) < 0)
		return error_negative(errno);
	if (!S_ISREG(st.st_mode) || st.st_size > (off_t)GITCONFIG_MAX)
		return -EACCES;
	text = malloc(GITCONFIG_MAX + 2);
	if (!text)
		return -ENOMEM;
	n = fd_read_full(fd, text, GITCONFIG_MAX + 1);
	if (n < 0)
		return error_negative((int)-n);
	if ((size_t)n > GITCONFIG_MAX)
		return -EACCES;
	text[n] = '\0';
	*ret = TAKE_PTR(text);
	*ret_len = (size_t)n;
	*ret_mode = st.st_mode & 0777;
	return 0;
}

/*
 * A file of our own that nobody else has open, under `name`, which must be free. It gets
 * the name when it is complete, where the file system can do that.
 */
static int make_file(const struct broker *b, int dirfd, const char *name, const char *text,
		     size_t len, mode_t mode)
{
	_cleanup_fd_ int fd = openat(dirfd, ".", O_WRONLY | O_TMPFILE | O_CLOEXEC, 0600);
	bool unnamed = fd >= 0;
	char link[32];
	int r;

	if (!unnamed)
		fd = openat(dirfd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
			    0600);
	if (fd < 0)
		return -errno;
	r = fd_write_all(fd, text, len);
	if (r == 0 && fchmod(fd, mode) < 0)
		r = -errno;
	(void)snprintf(link, sizeof(link), "self/fd/%d", fd);
	if (r == 0 && unnamed && linkat(b->proc, link, dirfd, name, AT_SYMLINK_FOLLOW) < 0)
		r = -errno;
	if (r < 0 && !unnamed)
		(void)unlinkat(dirfd, name, 0);
	return r;
}

/*
 * Put `text` in place of parent/name. The step between is called as git itself calls it, so
 * that whenever we are killed nothing is left that git would not leave. `taken`: that name
 * is what the command asked to be renamed.
 */
static int install_text(const struct broker *b, const struct place *p, const char *text, size_t len,
			mode_t mode, bool taken)
{
	char name[NAME_MAX + 6];
	int r;

	(void)snprintf(name, sizeof(name), "%s.lock", p->name);
	if (taken && unlinkat(p->parent, name, 0) < 0)
		return -errno;
	r = make_file(b, p->parent, name, text, len, mode);
	if (r < 0)
		return r == -EEXIST ? -EACCES : r; /* somebody holds git's lock */
	if (renameat(p->parent, name, p->parent, p->name) < 0) {
		r = -errno;
		(void)unlinkat(p->parent, name, 0);
	}
	return r;
}

static bool same_directory(const struct place *a, const struct place *b)
{
	struct stat x, y;

	return fstat(a->parent, &x) == 0 && fstat(b->parent, &y) == 0 && x.st_dev == y.st_dev &&
	       x.st_ino == y.st_ino;
}

int git_open_pointed(int checkout)
{
	static const char head[] = "gitdir: ";
	_cleanup_free_ char *text = NULL;
	mode_t mode;
	size_t len;

	if (git_read_regular(checkout, ".git", &text, &len, &mode) < 0 || !text ||
	    strlen(text) != len || !text_starts(text, head))
		return -1;
	text[strcspn(text, "\n")] = '\0';
	return sys_openat2(checkout, text + strlen(head), O_PATH | O_DIRECTORY | O_CLOEXEC, 0,
			   SYS_RESOLVE_NO_SYMLINKS);
}

/*
 * Is what core.worktree leads to a directory, without a link on the way, whose .git leads back? To
 * anything else git outside would write files that were chosen in here.
 */
static bool is_checkout(const struct broker *b, const char *path, const struct place *p)
{
	_cleanup_fd_ int dir = sys_openat2(b->root, path, O_PATH | O_DIRECTORY | O_CLOEXEC, 0,
					   SYS_RESOLVE_NO_SYMLINKS);
	_cleanup_fd_ int git_dir = dir < 0 ? -1 : git_open_pointed(dir);
	struct stat theirs, ours;

	return git_dir >= 0 && fstat(git_dir, &theirs) == 0 && fstat(p->parent, &ours) == 0 &&
	       theirs.st_dev == ours.st_dev && theirs.st_ino == ours.st_ino;
}

/* What core.worktree leads to. */
static int check_worktree(const struct broker *b, const struct place *p,
			  struct gitconfig_finding *ret)
{
	if (!ret->worktree[0] || is_checkout(b, ret->worktree, p))
		return 0;
	text_copy(ret->key, sizeof(ret->key), "core.worktree");
	ret->reason = "not the checkout of this repository";
	return -EACCES;
}

static int check_text(const char *before, const char *after, const struct place *p,
		      struct gitconfig_finding *ret)
{
	const struct gitconfig_place place = { .git_dir = p->path, .root = p->root };

	return gitconfig_check(before, after, &place, ret);
}

/* The reason of a refusal, kept for the report. */
static int refuse(struct call *c, const struct gitconfig_finding *f, struct guard_answer *why)
{
	(void)snprintf(c->b->reason, sizeof(c->b->reason), "git configuration key %.60s: %.70s",
		       f->key, f->reason);
	why->reason = c->b->reason;
	why->git_config = true;
	return -EACCES;
}

/* The lock is ours alone again: does the place lie where it did? */
static bool is_alone_as_before(const struct call *c, const struct place *p)
{
	struct place now = *p; /* shares the descriptor */

	return call_alone(c, &now) == 0 && strcmp(now.path, p->path) == 0;
}

struct change {
	char *before, *after; /* before: NULL = no file, or none that can be read */
	size_t old_len, len;
	mode_t mode;
};

static void change_done(struct change *t)
{
	free(t->before);
	free(t->after);
}

/* NULL when it cannot be read: then it vouches for nothing. */
static char *read_before(const struct place *p, size_t *ret_len)
{
	char *text = NULL;
	mode_t mode;

	*ret_len = 0;
	return git_read_regular(p->parent, p->name, &text, ret_len, &mode) < 0 ? NULL : text;
}

static bool is_as_read(const struct change *t, const struct place *p)
{
	_cleanup_free_ char *now = NULL;
	size_t len;

	now = read_before(p, &len);
	return now && t->before ? len == t->old_len && memcmp(now, t->before, len) == 0
				: now == t->before;
}

/* 0, -EACCES with what was found, -EINVAL; -EBUSY when another sandbox was there meanwhile. */
static int judge(const struct call *c, const struct change *t, const struct place *from,
		 const struct place *to, struct gitconfig_finding *ret)
{
	bool apart = c->b->lock >= 0 && t->len + t->old_len > LONG_TEXT;
	int r;

	if (strlen(t->after) != t->len)
		return -EINVAL;
	if (apart)
		(void)flock(c->b->lock, LOCK_UN);
	r = check_text(t->before, t->after, to, ret);
	if (apart &&
	    (!is_alone_as_before(c, from) || !is_alone_as_before(c, to) || !is_as_read(t, to)))
		return -EBUSY;
	return r < 0 ? r : check_worktree(c->b, to, ret);
}

/* It is judged: put it in place, and take away what it came from. */
static int perform(struct call *c, const struct change *t, const struct place *from,
		   const struct place *to)
{
	char lock[NAME_MAX + 6];
	bool taken;
	int r;

	(void)snprintf(lock, sizeof(lock), "%s.lock", to->name);
	taken = strcmp(from->name, lock) == 0 && same_directory(from, to);
	r = install_text(c->b, to, t->after, t->len, t->mode, taken);
	if (r == 0 && !taken && unlinkat(from->parent, from->name, 0) < 0)
		r = -errno;
	return r;
}

int install_config(struct call *c, const struct place *from, const struct place *to,
		   struct guard_answer *why)
{
	__attribute__((cleanup(change_done))) struct change t = { 0 };
	struct gitconfig_finding finding;
	int r = git_read_regular(from->parent, from->name, &t.after, &t.len, &t.mode);

	if (!t.after)
		return error_negative(-r);
	t.before = read_before(to, &t.old_len);
	r = judge(c, &t, from, to, &finding);
	if (r == -EACCES)
		return refuse(c, &finding, why);
	if (r == -EINVAL) {
		why->reason = "it is not a valid git configuration";
		return -EACCES;
	}
	if (r < 0)
		return r;
	r = perform(c, &t, from, to);
	if (r == 0 && finding.url)
		call_tell_later(c, to, REMOTES);
	return r;
}

int replace_config(struct call *c, const struct place *p, struct guard_answer *why)
{
	struct place config = *p; /* shares the descriptor */
	struct gitconfig_finding finding = { 0 };
	_cleanup_free_ char *text = NULL;
	mode_t mode;
	size_t len;
	int r;

	(void)snprintf(config.name, sizeof(config.name), "config");
	r = git_read_regular(p->parent, config.name, &text, &len, &mode);
	if (r == -ENOENT)
		return 0;
	/* one reading: somebody may have it open for writing */
	if (text && guard_checks_config(c->b->guard)) {
		if (strlen(text) != len || check_text(NULL, text, p, &finding) < 0 ||
		    check_worktree(c->b, p, &finding) < 0)
			r = -EACCES;
	}
	if (r < 0) {
		why->reason = "the directory would become a git directory, and its config "
			      "names programs";
		why->git_config = true;
		return -EACCES;
	}
	r = install_text(c->b, &config, text, len, mode, false);
	if (r == 0 && finding.url)
		call_tell_later(c, &config, REMOTES);
	return r;
}

int give_commondir(struct call *c, const struct place *p, mode_t mode)
{
	static const char text[] = "../..\n";
	int r = make_file(c->b, p->parent, p->name, text, sizeof(text) - 1,
			  mode & 0777 & ~call_umask(c));

	if (r < 0)
		return r;
	/* git writes what it likes into this; only what we wrote stays */
	r = (int)syscall(SYS_memfd_create, "commondir", 1u /* CLOEXEC */);
	return r < 0 ? -errno : r;
}
