/* SPDX-License-Identifier: Apache-2.0 */
#include "supervise/hint.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "policy/match_path.h"

static bool exists(const char *path)
{
	return faccessat(AT_FDCWD, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static const char *parent_of(struct arena *a, const char *path)
{
	size_t n = (size_t)(strrchr(path, '/') - path);

	return n ? arena_strndup(a, path, n) : "/";
}

/* Root has no capabilities inside: there it is one user among others. */
static bool root_may_write(const struct stat *st)
{
	if (st->st_uid == 0)
		return st->st_mode & S_IWUSR;
	return st->st_mode & (st->st_gid == getegid() ? S_IWGRP : S_IWOTH);
}

/* By the ordinary permissions, which a sandbox does not widen. */
static bool may_change(const char *path, enum hint_deed deed)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return false;
	if (deed == HINT_MODE)
		return st.st_uid == geteuid();
	return faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) == 0 &&
	       (geteuid() != 0 || root_may_write(&st));
}

static bool may_make_in(const char *dir)
{
	struct stat st;

	return stat(dir, &st) == 0 && S_ISDIR(st.st_mode) && may_change(dir, HINT_NAME);
}

/* The root, the home, and what holds it: nobody means to open these for the sake of one file. */
static bool is_too_wide(struct arena *a, const struct policy *p, const char *dir)
{
	struct view_entry home;

	path_host_view.look(&path_host_view, a, p->home, &home);
	return path_within(home.kind == FILE_UNKNOWN ? p->home : home.real, dir);
}

/* Inside these are the sandbox's own, or what no mount makes writable. */
static bool is_replaced(const char *path)
{
	static const char *const places[] = { "/dev", "/proc", "/sys" };

	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		if (path_within(path, places[i]))
			return true;
	}
	return false;
}

static bool is_hidden(const struct policy *p, const char *path)
{
	struct decision d;

	policy_decide_path(p, ACCESS_READ, path, &d);
	return d.verdict == VERDICT_DENY;
}

/* Its directory; where it is hidden, that would show more than the name. */
static const char *directory_for(struct arena *a, const struct policy *p, const char *dir)
{
	return is_too_wide(a, p, dir) || is_hidden(p, dir) || !may_make_in(dir) ? NULL : dir;
}

/*
 * Of what is not there yet, the first that is missing will do if it is a directory: an absent
 * --allow-write is made as one. A file needs the directory that is there.
 */
static const char *place_for_absent(struct arena *a, const struct policy *p, const char *path,
				    enum hint_deed deed)
{
	const char *missing = path, *dir = parent_of(a, path);

	while (!exists(dir)) {
		missing = dir;
		dir = parent_of(a, dir);
	}
	if ((missing != path || deed == HINT_MAKE_DIRECTORY) && may_make_in(dir))
		return is_hidden(p, missing) ? NULL : missing;
	return directory_for(a, p, dir);
}

/* What is there can be named itself; a name that comes or goes needs its directory. */
static const char *place_for(struct arena *a, const struct policy *p, const char *path,
			     enum hint_deed deed)
{
	if (!exists(path))
		return place_for_absent(a, p, path, deed);
	if (deed == HINT_NAME)
		return directory_for(a, p, parent_of(a, path));
	return is_too_wide(a, p, path) || !may_change(path, deed) ? NULL : path;
}

/*
 * The git directory that the place lies in, as with a worktree whose repository is elsewhere: git
 * writes all over it, and one part after the other would have to be allowed. Its hooks and
 * configuration stay protected.
 */
static const char *git_directory_around(struct arena *a, const char *place)
{
	static const char name[] = "/.git";

	for (const char *s = place; (s = strstr(s, name)); s++) {
		const char *end = s + sizeof(name) - 1;

		if (*end == '/' || !*end) {
			const char *dir = arena_strndup(a, place, (size_t)(end - place));

			return may_make_in(dir) ? dir : place;
		}
	}
	return place;
}

const char *hint_write(struct arena *a, const struct policy *p, const char *path,
		       enum hint_deed deed)
{
	_cleanup_buf_ struct buf b = BUF_INIT(BUF_MAX_TEXT);
	const char *place;

	if (*path != '/' || is_replaced(path) || policy_is_locked(p, "filesystem.allowWrite"))
		return NULL;
	place = place_for(a, p, path, deed);
	if (!place)
		return NULL;
	buf_puts(&b, "--allow-write ");
	text_append_shell(&b, pattern_escape(a, git_directory_around(a, place)));
	return arena_strdup(a, buf_str(&b));
}

static bool is_name_shut(const struct policy *p, const char *pattern)
{
	for (size_t i = 0; i < p->fs.n_protected; i++) {
		if (p->fs.protected[i].locked && strcmp(p->fs.protected[i].pattern, pattern) == 0)
			return true;
	}
	return false;
}

const char *hint_unprotect(struct arena *a, const struct policy *p, const char *pattern)
{
	_cleanup_buf_ struct buf b = BUF_INIT(BUF_MAX_TEXT);

	if (policy_is_locked(p, "filesystem.unprotect") || is_name_shut(p, pattern))
		return NULL;
	buf_puts(&b, "--set filesystem.unprotect=");
	text_append_shell(&b, pattern);
	return arena_strdup(a, buf_str(&b));
}

const char *hint_git_config(const struct policy *p)
{
	return policy_is_locked(p, "filesystem.allowGitConfig") || is_name_shut(p, ".git/config")
		       ? NULL
		       : "--set filesystem.allowGitConfig=true";
}
