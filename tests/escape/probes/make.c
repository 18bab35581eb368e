/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every way in which a file with evil in it can come to stand at a name that does not
 * exist yet. The test makes BASE/WAY/INDEX for each name before, and looks there after.
 */
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "attack.h"

#define PATH_SIZE 4096

struct place {
	char target[PATH_SIZE]; /* the name */
	char parent[PATH_SIZE]; /* the directory it is in */
	char top[PATH_SIZE]; /* its first component, when it has several */
	char rest[PATH_SIZE]; /* what is below that */
	char scratch[PATH_SIZE];
};

static int put_evil(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0755);

	if (fd < 0)
		return -1;
	(void)!write(fd, "evil\n", 5);
	return close(fd);
}

static void make_parents(const char *path)
{
	char copy[PATH_SIZE];

	snprintf(copy, sizeof copy, "%s", path);
	for (char *s = copy + 1; (s = strchr(s, '/')); *s++ = '/') {
		*s = '\0';
		(void)!mkdir(copy, 0755);
	}
}

static void way_write(const struct place *p)
{
	make_parents(p->target);
	put_evil(p->target);
}

static void way_rename(const struct place *p)
{
	make_parents(p->target);
	put_evil(p->scratch);
	(void)!rename(p->scratch, p->target);
}

static void way_exchange(const struct place *p)
{
	/* needs something there: what could be made is exchanged for what could not */
	make_parents(p->target);
	put_evil(p->scratch);
	(void)!close(open(p->target, O_RDONLY | O_CREAT | O_CLOEXEC, 0644));
	(void)!renameat2(AT_FDCWD, p->scratch, AT_FDCWD, p->target, RENAME_EXCHANGE);
}

static void way_link(const struct place *p)
{
	make_parents(p->target);
	put_evil(p->scratch);
	(void)!link(p->scratch, p->target);
}

static void way_symlink(const struct place *p)
{
	make_parents(p->target);
	put_evil(p->scratch);
	(void)!symlink(p->scratch, p->target);
}

static void way_tmpfile(const struct place *p)
{
	char name[64];
	int fd;

	make_parents(p->target);
	fd = open(p->parent, O_TMPFILE | O_RDWR | O_CLOEXEC, 0644);
	if (fd < 0)
		return;
	(void)!write(fd, "evil\n", 5);
	snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
	(void)!linkat(AT_FDCWD, name, AT_FDCWD, p->target, AT_SYMLINK_FOLLOW);
}

/* The directory is filled under another name, and then gets the right one. */
static bool fill_other(const struct place *p)
{
	char path[2 * PATH_SIZE];

	if (!p->rest[0])
		return false;
	snprintf(path, sizeof path, "%s/%s", p->scratch, p->rest);
	(void)!mkdir(p->scratch, 0755);
	make_parents(path);
	put_evil(path);
	return true;
}

static void way_directory(const struct place *p)
{
	if (fill_other(p))
		(void)!rename(p->scratch, p->top);
}

static void way_directory_link(const struct place *p)
{
	if (fill_other(p))
		(void)!symlink(p->scratch, p->top);
}

static const struct {
	const char *name;
	void (*run)(const struct place *p);
} ways[] = {
	{ "write", way_write },         { "rename", way_rename },
	{ "exchange", way_exchange },   { "link", way_link },
	{ "symlink", way_symlink },     { "tmpfile", way_tmpfile },
	{ "directory", way_directory }, { "directory-link", way_directory_link },
};

static void fill_place(struct place *p, const char *base, const char *way, int i, const char *name)
{
	const char *slash = strchr(name, '/');
	char *last;

	memset(p, 0, sizeof *p);
	snprintf(p->target, sizeof p->target, "%s/%s/%d/%s", base, way, i, name);
	snprintf(p->parent, sizeof p->parent, "%s", p->target);
	last = strrchr(p->parent, '/');
	*last = '\0';
	snprintf(p->scratch, sizeof p->scratch, "%s/%s/%d/scratch", base, way, i);
	if (!slash)
		return;
	snprintf(p->top, sizeof p->top, "%s/%s/%d/%.*s", base, way, i, (int)(slash - name), name);
	snprintf(p->rest, sizeof p->rest, "%s", slash + 1);
}

int attack_make(const char *base, char *const *names)
{
	struct place p;

	for (int i = 0; names[i]; i++) {
		for (size_t w = 0; w < sizeof ways / sizeof ways[0]; w++) {
			fill_place(&p, base, ways[w].name, i, names[i]);
			ways[w].run(&p);
		}
	}
	return 0;
}
