/* SPDX-License-Identifier: Apache-2.0 */
#include "base/path.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/sys.h"

#define LINKS_MAX 40 /* as the kernel follows */
#define SHUT_TRIES 32

void path_put(char *ret, const char *dir, const char *name)
{
	size_t n = strcmp(dir, "/") == 0 ? 0 : strlen(dir);

	memcpy(ret, dir, n);
	ret[n] = '/';
	memcpy(ret + n + 1, name, strlen(name) + 1);
}

char *path_join(struct arena *a, const char *dir, const char *name)
{
	char *path = arena_alloc(a, strlen(dir) + strlen(name) + 2);

	path_put(path, dir, name);
	return path;
}

char *path_absolute(struct arena *a, const char *base, const char *path)
{
	const char *in = *path == '/' ? path : arena_printf(a, "%s/%s", base, path);
	char *out = arena_alloc(a, strlen(in) + 2);
	size_t n = 0;

	while (*in) {
		size_t len;

		while (*in == '/')
			in++;
		len = strcspn(in, "/");
		if (len == 2 && in[0] == '.' && in[1] == '.') {
			while (n > 0 && out[--n] != '/')
				;
		} else if (len > 0 && !(len == 1 && in[0] == '.')) {
			out[n++] = '/';
			memcpy(out + n, in, len);
			n += len;
		}
		in += len;
	}
	if (n == 0)
		out[n++] = '/';
	out[n] = '\0';
	return out;
}

bool path_within(const char *path, const char *dir)
{
	size_t i = 0;

	if (dir[0] == '/' && dir[1] == '\0')
		return path[0] == '/';
	/* most pairs differ after a few bytes */
	while (dir[i] && path[i] == dir[i])
		i++;
	return !dir[i] && (path[i] == '/' || path[i] == '\0');
}

unsigned path_depth(const char *path)
{
	unsigned depth = 0;

	if (strcmp(path, "/") == 0)
		return 0;
	for (; *path; path++)
		depth += *path == '/';
	return depth;
}

int path_compare(const char *a, const char *b)
{
	size_t i = 0;

	/* "/" is the parent of all */
	if (a[0] == '/' && a[1] == '\0')
		return b[1] == '\0' ? 0 : -1;
	if (b[0] == '/' && b[1] == '\0')
		return 1;
	while (a[i] && a[i] == b[i])
		i++;
	if (a[i] == b[i])
		return 0;
	if (a[i] == '\0' || b[i] == '\0')
		return a[i] == '\0' ? -1 : 1;
	if (a[i] == '/' || b[i] == '/')
		return a[i] == '/' ? -1 : 1;
	return (unsigned char)a[i] < (unsigned char)b[i] ? -1 : 1;
}

static enum file_kind kind_of(mode_t mode)
{
	if (S_ISDIR(mode))
		return FILE_DIRECTORY;
	if (S_ISLNK(mode))
		return FILE_LINK;
	return S_ISREG(mode) ? FILE_REGULAR : FILE_OTHER;
}

/* Canonical form of the deepest existing ancestor, plus what is missing. */
static void look_absent(struct arena *a, const char *path, struct view_entry *ret)
{
	char *head = arena_strdup(a, path);
	char real[PATH_MAX];

	ret->kind = FILE_ABSENT;
	ret->real = path;
	for (;;) {
		char *slash = strrchr(head, '/');

		if (!slash)
			return;
		*(slash == head ? slash + 1 : slash) = '\0';
		if (realpath(head, real)) {
			const char *rest = path + strlen(head);

			ret->real = path_join(a, real, rest + (*rest == '/'));
			return;
		}
		if (errno != ENOENT && errno != ENOTDIR) {
			ret->kind = FILE_UNKNOWN;
			ret->err = errno;
			return;
		}
		if (slash == head)
			return;
	}
}

static void fill_entry(const struct stat *st, const char *real, struct view_entry *ret)
{
	ret->kind = kind_of(st->st_mode);
	ret->real = real;
	ret->dev = (uint64_t)st->st_dev;
	ret->ino = st->st_ino;
	ret->size = S_ISREG(st->st_mode) ? (uint64_t)st->st_size : 0;
	/* cheap: most files can be read by everybody, or are our own */
	ret->unreadable = !(st->st_mode & S_IROTH) &&
			  !(st->st_mode & S_IRUSR && st->st_uid == geteuid()) &&
			  faccessat(AT_FDCWD, real, R_OK, AT_EACCESS) < 0 &&
			  faccessat(AT_FDCWD, real, X_OK, AT_EACCESS) < 0;
}

static void host_look(const struct view *v, struct arena *a, const char *path,
		      struct view_entry *ret)
{
	_cleanup_fd_ int fd = sys_open_direct(path);
	char real[PATH_MAX];
	struct stat st;

	(void)v;
	*ret = (struct view_entry){ .kind = FILE_UNKNOWN, .real = path };
	/* no link on the way: the path is canonical already, found with one lookup */
	if (fd >= 0 && fstat(fd, &st) == 0 && !S_ISLNK(st.st_mode)) {
		fill_entry(&st, path, ret);
		return;
	}
	if (realpath(path, real) && lstat(real, &st) == 0) {
		fill_entry(&st, arena_strdup(a, real), ret);
		return;
	}
	ret->err = errno;
	if (errno == ENOENT || errno == ENOTDIR)
		look_absent(a, path, ret);
}

static enum file_kind host_kind(const struct view *v, const char *path)
{
	struct stat st;

	(void)v;
	if (lstat(path, &st) == 0)
		return kind_of(st.st_mode);
	return errno == ENOENT || errno == ENOTDIR ? FILE_ABSENT : FILE_UNKNOWN;
}

static char *host_read(const struct view *v, struct arena *a, const char *path)
{
	_cleanup_free_ char *text = NULL;

	(void)v;
	if (fd_read_file(AT_FDCWD, path, VIEW_READ_MAX, &text, NULL) < 0)
		return NULL;
	return arena_strdup(a, text);
}

static int host_list(const struct view *v, struct arena *a, const char *path,
		     const char *const **ret)
{
	DIR *dir = opendir(path);
	const char **names = NULL;
	size_t n = 0;
	const struct dirent *d;

	(void)v;
	if (!dir)
		return -errno;
	while ((d = readdir(dir))) {
		if (strcmp(d->d_name, ".") != 0 && strcmp(d->d_name, "..") != 0)
			*ARENA_PUSH(a, names, n) = arena_strdup(a, d->d_name);
	}
	(void)closedir(dir);
	*ret = names;
	return n > INT_MAX ? -EOVERFLOW : (int)n;
}

static char *host_target(const struct view *v, struct arena *a, const char *path)
{
	char text[PATH_MAX];
	ssize_t n = readlink(path, text, sizeof(text));

	(void)v;
	return n < 0 ? NULL : arena_strndup(a, text, (size_t)n);
}

/* Where the way to a path ends: the directory that may not be searched, or what stands at its end. */
enum way { WAY_SHUT, WAY_FREE, WAY_BROKEN };

/* By trying: Landlock, which forbids to read, is asked by no other call. */
static enum way way_end(const char *path)
{
	_cleanup_fd_ int fd = -1;
	struct stat st;

	if (lstat(path, &st) < 0 || (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode)))
		return WAY_FREE;
	fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	return fd < 0 && errno == EACCES ? WAY_SHUT : WAY_FREE;
}

static enum way walk(struct arena *a, const char *path, const char **ret_at)
{
	const char *rest = path;
	unsigned links = 0;

	*ret_at = "/";
	while (*(rest += strspn(rest, "/"))) {
		size_t n = strcspn(rest, "/");
		const char *next = path_absolute(a, *ret_at, arena_strndup(a, rest, n));
		char text[PATH_MAX];
		ssize_t len = readlink(next, text, sizeof(text));

		rest += n;
		if (len < 0 && errno == EINVAL) {
			*ret_at = next;
			continue;
		}
		if (len < 0 && errno == EACCES)
			return WAY_SHUT;
		if (len < 0 || ++links > LINKS_MAX)
			return len < 0 && (errno == ENOENT || errno == ENOTDIR) ? WAY_FREE
										: WAY_BROKEN;
		if (*text == '/')
			*ret_at = "/";
		rest = arena_printf(a, "%.*s%s", (int)len, text, rest);
	}
	return way_end(*ret_at);
}

/* Could we change its mode? In another sandbox, not of what that one has mounted. */
static bool is_own(const char *path, const struct stat *st)
{
	struct statvfs fs;

	return st->st_uid == geteuid() && statvfs(path, &fs) == 0 && !(fs.f_flag & ST_RDONLY);
}

static const char *host_shut(const struct view *v, struct arena *a, const char *path,
			     bool *ret_changed)
{
	(void)v;
	*ret_changed = false;
	/*
	 * Shut, though its mode says otherwise: another sandbox does that, or somebody opens and
	 * shuts it all the time. Who does will be met in the act.
	 */
	for (unsigned tries = 0; tries < SHUT_TRIES; tries++) {
		const char *at;
		enum way way = walk(a, path, &at);
		struct stat st;

		*ret_changed = way == WAY_FREE;
		if (way != WAY_SHUT)
			return way == WAY_FREE ? at : NULL;
		if (lstat(at, &st) < 0)
			continue;
		if (!is_own(at, &st))
			return NULL;
		if (!(st.st_mode & S_IRUSR) || (S_ISDIR(st.st_mode) && !(st.st_mode & S_IXUSR)))
			return at;
	}
	return NULL;
}

const struct view path_host_view = {
	.look = host_look,
	.kind = host_kind,
	.read = host_read,
	.list = host_list,
	.peek = path_host_peek,
	.target = host_target,
	.shut = host_shut,
#ifdef __linux__
	.mounts = path_host_mounts,
#endif
};
