/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The trust store. It decides whether a file from a repository may widen the
 * policy, so a store that somebody else could have written is not believed.
 * Inside a sandbox the directory is a protected name.
 */
#include "policy/trust.h"

#include <errno.h>
#include <fcntl.h>
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

#define STORE_MAX ((size_t)1 << 20)

const char *trust_line(struct arena *a, const char *file, const char *text, size_t len)
{
	_cleanup_free_ char *real = realpath(file, NULL);
	char hex[SHA256_HEX_LEN + 1];

	if (!real || strchr(real, '\n'))
		return NULL;
	sha256_hex(text, len, hex);
	return arena_printf(a, "%s %s", hex, real);
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

int trust_read(struct arena *a, const char *store, const char **ret, struct error *e)
{
	_cleanup_free_ char *text = NULL;
	int r = read_store(store, &text, e);

	if (r == 0)
		*ret = arena_strdup(a, text);
	return r;
}

bool trust_holds(const char *list, const char *line)
{
	size_t n = strlen(line);

	for (; list && *list; list += line_len(list)) {
		if (line_len(list) == n + 1 && memcmp(list, line, n) == 0 && list[n] == '\n')
			return true;
	}
	return false;
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

/* Does a line of the store, n bytes with its end, speak of the same path as one of these? */
static bool is_replaced(const char *entry, size_t n, const char *const *lines, size_t n_lines)
{
	for (size_t i = 0; i < n_lines; i++) {
		const char *path = lines[i] + SHA256_HEX_LEN;
		size_t len = strlen(path);

		if (n == SHA256_HEX_LEN + len + 1 && memcmp(entry + SHA256_HEX_LEN, path, len) == 0)
			return true;
	}
	return false;
}

/* The store without the entries of these paths, then the new lines. */
static void replace_lines(const char *text, const char *const *lines, size_t n, struct buf *out)
{
	for (; *text; text += line_len(text)) {
		size_t len = line_len(text);

		if (text[len - 1] != '\n' || len <= SHA256_HEX_LEN)
			continue; /* cut short: not an entry */
		if (!is_replaced(text, len, lines, n))
			buf_append(out, text, len);
	}
	for (size_t i = 0; i < n; i++) {
		buf_puts(out, lines[i]);
		buf_putc(out, '\n');
	}
}

static int write_store(const char *store, const struct buf *content, struct error *e)
{
	int r = fd_replace_file(store, content->data, content->len, 0600);

	return r < 0 ? error_set(e, -r, "%s: %s", store, strerror(-r)) : 0;
}

int trust_add(const char *store, const char *const *lines, size_t n, struct error *e)
{
	_cleanup_buf_ struct buf out = BUF_INIT(STORE_MAX);
	_cleanup_arena_ struct arena *a = arena_new();
	_cleanup_free_ char *text = NULL;
	_cleanup_fd_ int dir = -1;
	int r = make_directories(store, e);

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
	replace_lines(text, lines, n, &out);
	if (out.overflow)
		return error_set(e, EFBIG, "%s: too large", store);
	return write_store(store, &out, e);
}
