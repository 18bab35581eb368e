/* SPDX-License-Identifier: Apache-2.0 */
/*
 * File descriptors: cleanup, whole reads and writes, passing them on. Every fd
 * of ours is CLOEXEC; a variable that holds one starts at -1.
 */
#pragma once

#include <stddef.h>
#include <stdlib.h>
#include <sys/types.h>

#include "base/macros.h"

void fd_close(int fd); /* -1 is fine; errno is kept */

static inline void fd_close_p(const int *fd)
{
	fd_close(*fd);
}
#define _cleanup_fd_ __attribute__((cleanup(fd_close_p)))

static inline void free_p(void *p)
{
	free(*(void **)p);
}
#define _cleanup_free_ __attribute__((cleanup(free_p)))

/* 0 or -errno; never a short transfer. */
int fd_write_all(int fd, const void *data, size_t len) NODISCARD;
/*
 * As much as is taken within that time: bytes, or -errno. For who must not wait for a reader;
 * the descriptor, which others may share, stays as it is.
 */
ssize_t fd_write_within(int fd, const void *data, size_t len, int ms) NODISCARD;
/* Number of bytes until EOF or len, or -errno. */
ssize_t fd_read_full(int fd, void *data, size_t len) NODISCARD;
/*
 * The whole file as NUL-terminated malloc'ed text; -EFBIG over max. The length
 * goes to ret_len (may be NULL).
 */
int fd_read_file(int dirfd, const char *path, size_t max, char **ret, size_t *ret_len) NODISCARD;

/* The file as a whole, or as it was before: a new one takes its place. 0 or -errno. */
int fd_replace_file(const char *path, const void *data, size_t len, mode_t mode) NODISCARD;

/* One message with a descriptor, over a socket that keeps messages apart. 0 or -errno. */
int fd_send(int sock, const void *data, size_t len, int fd) NODISCARD;
/*
 * The next message: its length or -errno, never waiting (-EAGAIN). *ret_fd gets the
 * descriptor that came with it, or -1; should there be more, they are closed.
 */
ssize_t fd_receive(int sock, void *data, size_t len, int *ret_fd) NODISCARD;

/* The same with several; missing ones are -1. */
#define FD_SEND_MAX 6
int fd_send_many(int sock, const void *data, size_t len, const int *fds, size_t n) NODISCARD;
ssize_t fd_receive_many(int sock, void *data, size_t len, int *fds, size_t max) NODISCARD;
