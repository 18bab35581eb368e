/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When a record is lost, its log is what cannot be written: the disk is full, or the directory is
 * not safe. The head is there already, and has its block, so that 82 bytes more need no
 * room; it is of this user alone, whatever became of its directory, and it is written to
 * only while it is a head to the last byte, so that no other file is taken for it. Where there
 * is no such head, a second place is tried, a directory that must be as safe as that of the log.
 * If that fails too, only the process knows, and has said so.
 *
 * Whoever tells of a loss forgets it afterwards: a process that is killed in between has it told
 * twice, never not at all. Locks are taken in this order: head, second place.
 */
#include "audit/lost.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/path.h"
#include "base/text.h"

#define NAME_DIGITS 16 /* of the hash of the log's path */
#define TRIES 16 /* to open a file that others remove meanwhile */

void lost_merge(struct chain_lost *sum, const struct chain_lost *more)
{
	uint64_t count = sum->count + more->count;

	if (!more->count)
		return;
	if (!sum->count || strcmp(more->since, sum->since) < 0)
		*sum = *more;
	sum->count = count;
}

static int write_at(int fd, const struct chain_lost *l, off_t at)
{
	char text[CHAIN_LOST_LEN + 1];
	ssize_t n;

	chain_lost_print(l, text);
	n = pwrite(fd, text, CHAIN_LOST_LEN, at);
	if (n == CHAIN_LOST_LEN)
		return 0;
	return n < 0 ? -errno : -ENOSPC;
}

int lost_add_to_head(int head, const struct chain_lost *more)
{
	struct chain_head h;
	bool first;
	int r;

	if (files_read_head(head, &h) != FILES_HEAD_OK)
		return -ENODATA;
	first = !h.lost.count;
	lost_merge(&h.lost, more);
	r = write_at(head, &h.lost, CHAIN_HEAD_LEN);
	/* half a line would make it a bad head */
	if (r < 0 && first)
		(void)!ftruncate(head, CHAIN_HEAD_LEN);
	return r;
}

void lost_choose_place(const char *log, const char *state_dir, char ret[FILES_PATH_MAX])
{
	char hash[SHA256_HEX_LEN + 1];
	int n;

	sha256_hex(log, strlen(log), hash);
	if (state_dir && !path_within(log, state_dir))
		n = snprintf(ret, FILES_PATH_MAX, "%s/lost-%.*s", state_dir, NAME_DIGITS, hash);
	else
		n = snprintf(ret, FILES_PATH_MAX, "/run/user/%u/ambit-lost-%.*s", geteuid(),
			     NAME_DIGITS, hash);
	if (n >= FILES_PATH_MAX)
		*ret = '\0';
}

/* The file, locked, and still the one that has the name. The directory is never made here. */
static int open_locked(const char *place, enum files_use use)
{
	struct audit_files f = AUDIT_FILES_INIT;
	int fd = -EBUSY, r = files_open(place, FILES_READ, &f, NULL);

	for (unsigned i = 0; r == 0 && fd == -EBUSY && i < TRIES; i++) {
		struct stat st;
		uint64_t size;

		fd = files_open_one(&f, f.name, use, &size, NULL);
		if (fd < 0)
			break;
		r = files_lock(fd, LOCK_EX);
		if (r == 0 && fstat(fd, &st) == 0 && st.st_nlink == 1)
			break;
		fd_close(fd);
		fd = -EBUSY;
	}
	files_close(&f);
	return r < 0 ? r : fd;
}

static void read_place(int fd, struct chain_lost *ret)
{
	char text[CHAIN_LOST_LEN + 1];
	ssize_t n = pread(fd, text, sizeof(text), 0);

	/* somebody had something to say, and was killed or met a full disk */
	if (n != 0 && !(n == CHAIN_LOST_LEN && chain_lost_parse(text, (size_t)n, ret)))
		*ret = (struct chain_lost){ .count = 1, .code = EBADMSG, .since = CHAIN_TIME_NONE };
}

int lost_add_to_place(const char *place, const struct chain_lost *more)
{
	_cleanup_fd_ int fd = *place ? open_locked(place, FILES_WRITE) : -ENOENT;
	struct chain_lost sum = { 0 };
	int r;

	if (fd < 0)
		return fd;
	(void)fcntl(fd, F_SETFL, O_RDWR); /* overwritten in place */
	read_place(fd, &sum);
	lost_merge(&sum, more);
	r = write_at(fd, &sum, 0);
	return r < 0 || ftruncate(fd, CHAIN_LOST_LEN) == 0 ? r : -errno;
}

int lost_open_place(const char *place, struct chain_lost *ret)
{
	struct stat st;
	int fd;

	if (!*place || fstatat(AT_FDCWD, place, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -ENOENT;
	fd = open_locked(place, FILES_READ);
	if (fd < 0)
		return fd;
	*ret = (struct chain_lost){ 0 };
	read_place(fd, ret);
	return fd;
}

void lost_forget_place(const char *place)
{
	(void)unlink(place);
}
