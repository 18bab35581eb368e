/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The trust store. It decides whether a file from a repository may widen the
 * policy, so a store that somebody else could have written is not believed.
 * Inside a sandbox the directory is a protected name.
 */
#include "policy/trust.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/sha256.h"
#include "policy/tree.h"

#define STORE_MAX ((size_t)1 << 20)

/* "HASH PATH\n" of the file as it is now */
static int make_line(const char *settings_file, struct buf *ret, struct error *e)
{
	_cleanup_free_ char *real = realpath(settings_file, NULL), *text = NULL;
	char hex[SHA256_HEX_LEN + 1];
	size_t len;
	int r;

	if (!real)
		return error_set(e, errno, "%s: %s", settings_file, strerror(errno));
	if (strchr(real, '\n'))
		return error_set(e, EINVAL, "%s: a line break in the path", settings_file);
	r = fd_read_file(AT_FDCWD, real, TREE_TEXT_MAX, &text, &len);
	if (r < 0)
		return error_set(e, -r, "%s: %s", real, strerror(-r));
	sha256_hex(text, len, hex);
	buf_printf(ret, "%s %s\n", hex, real);
	return 0;
}

static int check_owner(const char *store, struct error *e)
{
	struct stat st;

	if (lstat(store, &st) < 0)
		return errno == ENOENT || errno == ENOTDIR
			       ? -ENOENT
			       : error_set(e, errno, "%s: %s", store, strerror(errno));
	if (!S_ISREG(st.st_mode) || (st.st_mode & (S_IWGRP | S_IWOTH)) ||
	    (st.st_uid != geteuid() && st.st_uid != 0))
		return error_set(
			e, EPERM,
			"%s: not a file that only you can write; remove it and trust again", store);
	return 0;
}

/* The whole store; "" when there is none. */
static int read_store(const char *store, char **ret, struct error *e)
{
	int r = check_owner(store, e);

	if (r == -ENOENT) {
		*ret = strdup("");
		if (!*ret)
			abort();
		return 0;
	}
	if (r < 0)
		return r;
	r = fd_read_file(AT_FDCWD, store, STORE_MAX, ret, NULL);
	return r < 0 ? error_set(e, -r, "%s: %s", store, strerror(-r)) : 0;
}

static size_t line_len(const char *line)
{
	const char *end = strchr(line, '\n');

	return end ? (size_t)(end - line) + 1 : strlen(line);
}

int trust_check(const char *store, const char *settings_file, bool *ret, struct error *e)
{
	_cleanup_buf_ struct buf want = BUF_INIT(PATH_MAX + SHA256_HEX_LEN + 8);
	_cleanup_free_ char *text = NULL;
	int r = read_store(store, &text, e);

	*ret = false;
	if (r < 0 || !*text)
		return r;
	r = make_line(settings_file, &want, e);
	if (r < 0)
		return r;
	for (const char *line = text; *line; line += line_len(line)) {
		if (line_len(line) == want.len && memcmp(line, want.data, want.len) == 0)
			*ret = true;
	}
	return 0;
}

static int make_directories(const char *file, struct error *e)
{
	_cleanup_arena_ struct arena *a = arena_new();
	char *path = arena_strdup(a, file);

	for (char *s = path + 1; (s = strchr(s, '/')); s++) {
		*s = '\0';
		if (mkdir(path, 0700) < 0 && errno != EEXIST)
			return error_set(e, errno, "%s: %s", path, strerror(errno));
		*s = '/';
	}
	return 0;
}

/* The store without the entry of this path, then the new line. */
static void replace_line(const char *text, const struct buf *line, struct buf *out)
{
	const char *path = line->data + SHA256_HEX_LEN;
	size_t path_len = line->len - SHA256_HEX_LEN;

	for (; *text; text += line_len(text)) {
		size_t n = line_len(text);

		if (text[n - 1] != '\n' || n <= SHA256_HEX_LEN)
			continue; /* cut short: not an entry */
		if (n != SHA256_HEX_LEN + path_len ||
		    memcmp(text + SHA256_HEX_LEN, path, path_len) != 0)
			buf_append(out, text, n);
	}
	buf_append(out, line->data, line->len);
}

static int write_store(const char *store, const struct buf *content, struct error *e)
{
	int r = fd_replace_file(store, content->data, content->len, 0600);

	return r < 0 ? error_set(e, -r, "%s: %s", store, strerror(-r)) : 0;
}

int trust_add(const char *store, const char *settings_file, struct error *e)
{
	_cleanup_buf_ struct buf line = BUF_INIT(PATH_MAX + SHA256_HEX_LEN + 8);
	_cleanup_buf_ struct buf out = BUF_INIT(STORE_MAX);
	_cleanup_arena_ struct arena *a = arena_new();
	_cleanup_free_ char *text = NULL;
	_cleanup_fd_ int dir = -1;
	int r = make_line(settings_file, &line, e);

	if (r >= 0)
		r = make_directories(store, e);
	if (r < 0)
		return r;
	/* two at a time must not lose each other's line */
	dir = open(path_absolute(a, "/", path_join(a, store, "..")),
		   O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0 || flock(dir, LOCK_EX) < 0)
		return error_set(e, errno, "%s: %s", store, strerror(errno));
	r = read_store(store, &text, e);
	if (r < 0)
		return r;
	replace_line(text, &line, &out);
	if (out.overflow)
		return error_set(e, EFBIG, "%s: too large", store);
	return write_store(store, &out, e);
}
