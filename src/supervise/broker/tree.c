/* SPDX-License-Identifier: Apache-2.0 */
#include "supervise/broker/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"

#define DEPTH_MAX 64
#define ENTRIES_MAX 100000

struct walk {
	tree_visit *visit;
	void *ctx;
	unsigned entries;
	char path[PATH_MAX + NAME_MAX + 2];
};

static int walk_directory(struct walk *w, int dirfd, const char *name, size_t len, unsigned depth);

static unsigned char type_of(int dirfd, const struct dirent *d)
{
	struct stat st;

	if (d->d_type != DT_UNKNOWN)
		return d->d_type;
	if (fstatat(dirfd, d->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return DT_UNKNOWN;
	return IFTODT(st.st_mode);
}

/* 0 to go on, 1 when the visitor has seen enough, or -errno. */
static int walk_entry(struct walk *w, int dirfd, const struct dirent *d, size_t len, unsigned depth)
{
	struct tree_entry e = { dirfd, d->d_name, w->path, type_of(dirfd, d) };
	size_t n = strlen(d->d_name);

	if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0)
		return 0;
	if (++w->entries > ENTRIES_MAX || depth > DEPTH_MAX || len + n + 2 > sizeof(w->path))
		return -E2BIG;
	w->path[len] = '/';
	memcpy(w->path + len + 1, d->d_name, n + 1);
	switch (w->visit(w->ctx, &e)) {
	case TREE_STOP:
		return 1;
	case TREE_SKIP:
		return 0;
	case TREE_GO_ON:
	default:
		return e.type == DT_DIR || e.type == DT_UNKNOWN
			       ? walk_directory(w, dirfd, d->d_name, len + 1 + n, depth + 1)
			       : 0;
	}
}

static int walk_directory(struct walk *w, int dirfd, const char *name, size_t len, unsigned depth)
{
	int fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), r = 0;
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *d;

	if (!dir) {
		r = -errno;
		fd_close(fd);
		return r;
	}
	while (r == 0) {
		errno = 0;
		d = readdir(dir);
		if (!d) {
			r = -errno;
			break;
		}
		r = walk_entry(w, fd, d, len, depth);
	}
	(void)closedir(dir);
	return r;
}

int tree_walk(int dirfd, const char *name, const char *path, tree_visit *visit, void *ctx)
{
	struct walk w = { .visit = visit, .ctx = ctx };
	size_t len = strlen(path);

	if (len >= sizeof(w.path))
		return -E2BIG;
	memcpy(w.path, path, len + 1);
	return walk_directory(&w, dirfd, name, len, 1);
}
