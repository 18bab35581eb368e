/* SPDX-License-Identifier: Apache-2.0 */
#include "audit/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/sys.h"
#include "base/text.h"

#define LOCK_PATIENCE_MS 5000 /* a writer holds the lock for microseconds, unless it is stopped */
#define OLD_DIGITS 20

static int make_directories(const char *dir, struct error *e)
{
	char path[PATH_MAX];

	text_copy(path, sizeof(path), dir);
	for (char *s = path + 1;; s++) {
		char c;

		s += strcspn(s, "/");
		c = *s;
		*s = '\0';
		if (mkdir(path, 0700) < 0 && errno != EEXIST)
			return error_set(e, errno, "%s: %s", path, strerror(errno));
		*s = c;
		if (!c)
			return 0;
	}
}

void files_make_directory(const char *dir)
{
	(void)!make_directories(dir, NULL);
}

static int check_directory(int dir, const char *path, uid_t user, struct error *e)
{
	struct stat st;

	if (fstat(dir, &st) < 0)
		return error_set(e, errno, "%s: %s", path, strerror(errno));
	if ((st.st_uid != user && st.st_uid != 0) || (st.st_mode & (S_IWGRP | S_IWOTH)))
		return error_set(e, EPERM,
				 "%s: not a directory that only you can write to (see audit.path)",
				 path);
	return 0;
}

int files_open(const char *path, enum files_use use, struct audit_files *ret, struct error *e)
{
	const char *slash = strrchr(path, '/');
	char dir[PATH_MAX];
	_cleanup_fd_ int fd = -1;
	int r;

	/* room for the longest of the names made from it */
	if (!slash || !slash[1] || strlen(path) >= sizeof(ret->path) ||
	    strlen(slash + 1) + OLD_DIGITS + 2 > NAME_MAX)
		return error_set(e, EINVAL, "%s: not a path for a log", path);
	text_copy(dir, sizeof(dir), slash == path ? "/" : path);
	if (slash != path)
		dir[slash - path] = '\0';
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT && use == FILES_WRITE) {
		r = make_directories(dir, e);
		if (r < 0)
			return r;
		fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	}
	if (fd < 0)
		return error_set(e, errno, "%s: %s", dir, strerror(errno));
	ret->user = geteuid();
	r = check_directory(fd, dir, ret->user, e);
	if (r < 0)
		return r;
	text_copy(ret->name, sizeof(ret->name), slash + 1);
	text_copy(ret->path, sizeof(ret->path), path);
	ret->dir = TAKE_FD(fd);
	return 0;
}

void files_close(struct audit_files *f)
{
	fd_close(TAKE_FD(f->dir));
}

/* A second name would be a way to it that nobody guards. */
static int check_file(int fd, uid_t user, struct stat *st)
{
	if (fstat(fd, st) < 0)
		return -errno;
	if (!S_ISREG(st->st_mode) || st->st_nlink > 1 || (st->st_uid != user && st->st_uid != 0) ||
	    (st->st_mode & (S_IWGRP | S_IWOTH)))
		return -EPERM;
	return 0;
}

static int refuse_open(const struct audit_files *f, const char *name, int code, struct error *e)
{
	/* of one name, opened without following: it cannot be a loop */
	if (code == ELOOP)
		return error_set(e, code,
				 "%s: %s is a symbolic link and is not followed: name the file "
				 "that it leads to (audit.path, --file)",
				 f->path, name);
	return error_set(e, code, "%s (%s): %s", f->path, name, strerror(code));
}

int files_open_one(const struct audit_files *f, const char *name, enum files_use use,
		   uint64_t *ret_size, struct error *e)
{
	int flags = use == FILES_WRITE ? O_RDWR | O_CREAT | O_APPEND : O_RDONLY;
	_cleanup_fd_ int fd =
		openat(f->dir, name, flags | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0600);
	struct stat st;
	int r;

	if (fd < 0)
		return refuse_open(f, name, errno, e);
	r = check_file(fd, f->user, &st);
	if (r < 0)
		return error_set(e, -r, "%s (%s): not a file that only you can write to", f->path,
				 name);
	if (use == FILES_WRITE && (st.st_mode & 077))
		(void)fchmod(fd, 0600);
	*ret_size = (uint64_t)st.st_size;
	return TAKE_FD(fd);
}

void files_head_name(const struct audit_files *f, char ret[FILES_NAME_MAX])
{
	(void)snprintf(ret, FILES_NAME_MAX, "%.*s.head", FILES_NAME_MAX - 8, f->name);
}

int files_open_head_anyway(const char *path)
{
	char head[FILES_PATH_MAX];
	_cleanup_fd_ int fd = -1;
	struct stat st;
	int r;

	if (snprintf(head, sizeof(head), "%s.head", path) >= (int)sizeof(head))
		return -ENAMETOOLONG;
	fd = open(head, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return -errno;
	r = check_file(fd, geteuid(), &st);
	return r < 0 ? r : TAKE_FD(fd);
}

void files_old_name(const struct audit_files *f, uint64_t seq, char ret[FILES_NAME_MAX])
{
	(void)snprintf(ret, FILES_NAME_MAX, "%.*s.%0*" PRIu64, FILES_NAME_MAX - 24, f->name,
		       OLD_DIGITS, seq);
}

/* The number at the end of NAME.00000000000000000123; 0 = another file. */
static uint64_t old_number(const struct audit_files *f, const char *name)
{
	size_t n = strlen(f->name);
	uint64_t seq;

	if (strncmp(name, f->name, n) != 0 || name[n] != '.' ||
	    strlen(name + n + 1) != OLD_DIGITS ||
	    text_parse_u64(name + n + 1, UINT64_MAX, &seq) < 0)
		return 0;
	return seq;
}

static int compare_numbers(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void close_directory(DIR **d)
{
	if (*d)
		(void)closedir(*d);
}

int files_list_old(const struct audit_files *f, uint64_t **ret, size_t *ret_n)
{
	_cleanup_free_ uint64_t *v = calloc(FILES_OLD_MAX, sizeof(*v));
	__attribute__((cleanup(close_directory))) DIR *d = NULL;
	_cleanup_fd_ int fd = openat(f->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	const struct dirent *entry;
	size_t n = 0;

	if (!v)
		return -ENOMEM;
	if (fd < 0)
		return -errno;
	d = fdopendir(fd);
	if (!d)
		return -errno;
	fd = -1; /* it is the stream's now */
	while (n < FILES_OLD_MAX && (entry = readdir(d))) {
		uint64_t seq = old_number(f, entry->d_name);

		if (seq)
			v[n++] = seq;
	}
	qsort(v, n, sizeof(*v), compare_numbers);
	*ret = TAKE_PTR(v);
	*ret_n = n;
	return 0;
}

int files_lock(int fd, int operation)
{
	struct timespec pause = { .tv_nsec = 100000 };
	uint64_t until = 0;

	while (flock(fd, operation | LOCK_NB) < 0) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			return -errno;
		if (!until)
			until = sys_now_ms() + LOCK_PATIENCE_MS;
		else if (sys_now_ms() >= until)
			return -ETIMEDOUT;
		(void)nanosleep(&pause, NULL);
		if (pause.tv_nsec < 5000000)
			pause.tv_nsec *= 2;
	}
	return 0;
}

enum files_head files_read_head(int fd, struct chain_head *ret)
{
	char text[CHAIN_HEAD_LEN + CHAIN_LOST_LEN + 1];
	ssize_t n = pread(fd, text, sizeof(text), 0);
	struct chain_head h;

	if (n == 0) {
		*ret = (struct chain_head){ .first = 1 };
		memcpy(ret->hash, chain_origin, sizeof(ret->hash));
		return FILES_HEAD_EMPTY;
	}
	if (n < CHAIN_HEAD_LEN || !chain_head_parse(text, CHAIN_HEAD_LEN, &h) ||
	    (n > CHAIN_HEAD_LEN &&
	     !chain_lost_parse(text + CHAIN_HEAD_LEN, (size_t)n - CHAIN_HEAD_LEN, &h.lost)))
		return FILES_HEAD_BAD;
	*ret = h;
	return FILES_HEAD_OK;
}
