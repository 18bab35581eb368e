/* SPDX-License-Identifier: Apache-2.0 */
/* How the tables of rules are written; included by those two files only. */
#pragma once

#include <linux/seccomp.h>

#include "sandbox/native/seccomp.h"

/* musl has these as other names for calls of the C library; here they name system calls */
#undef fallocate64
#undef pread64
#undef prlimit64
#undef pwrite64

/*
 * Tests. Arguments that the kernel declares as int, unsigned int or umode_t are compared in
 * their low 32 bits only, because it does not see the others: INT. Those it takes as long are
 * compared in full: LONG.
 */
#define INT_IS(n, is)                                                                              \
	{                                                                                          \
		.arg = (n), .mask = UINT32_MAX, .value = (uint32_t)(is)                            \
	}
#define INT_HAS_NONE(n, bits)                                                                      \
	{                                                                                          \
		.arg = (n), .mask = (uint32_t)(bits), .value = 0                                   \
	}
#define INT_HAS_ALL(n, bits)                                                                       \
	{                                                                                          \
		.arg = (n), .mask = (bits), .value = (bits)                                        \
	}
/* SOCK_CLOEXEC and SOCK_NONBLOCK are other bits */
#define INT_TYPE_IS(n, type)                                                                       \
	{                                                                                          \
		.arg = (n), .mask = 0xf, .value = (type)                                           \
	}
#define INT_MASKED_IS(n, bits, is)                                                                 \
	{                                                                                          \
		.arg = (n), .mask = (uint32_t)(bits), .value = (uint32_t)(is)                      \
	}
#define LONG_HAS_ONLY(n, bits)                                                                     \
	{                                                                                          \
		.arg = (n), .mask = ~(uint64_t)(bits), .value = 0                                  \
	}
#define LONG_IS(n, is)                                                                             \
	{                                                                                          \
		.arg = (n), .mask = UINT64_MAX, .value = (is)                                      \
	}

/* Rows. IN is the group of the rows below it. */
#define ROW(name, verdict, ...)                                                                    \
	{                                                                                          \
		.call = CALL_##name, .group = (IN), .action = (uint32_t)(verdict), .tests = {      \
			__VA_ARGS__                                                                \
		}                                                                                  \
	}
#define ALLOW(name, ...) ROW(name, SECCOMP_RET_ALLOW, __VA_ARGS__)
#define NOTIFY(name, ...) ROW(name, SECCOMP_RET_USER_NOTIF, __VA_ARGS__)
#define NO_DATAGRAMS(name, ...) ROW(name, SECCOMP_NO_DATAGRAMS, __VA_ARGS__)
#define LISTEN(name, ...) ROW(name, SECCOMP_LISTEN, __VA_ARGS__)
#define MEMFD(name, ...) ROW(name, SECCOMP_MEMFD, __VA_ARGS__)
#define RESERVE(name, ...) ROW(name, SECCOMP_RESERVE, __VA_ARGS__)
#define PINNED(name, ...) ROW(name, SECCOMP_PINNED, __VA_ARGS__)
#define UNIX(name, ...) ROW(name, SECCOMP_UNIX, __VA_ARGS__)
#define INET(name, ...) ROW(name, SECCOMP_BROKERED, __VA_ARGS__)
#define DIRECT(name) ROW(name, SECCOMP_DIRECT, LONG_IS(5, DIRECT_MARK))
#define WATCH(name, ...) ROW(name, SECCOMP_WATCH, __VA_ARGS__)
#define DENY(name, err, ...) ROW(name, SECCOMP_RET_ERRNO | (err), __VA_ARGS__)

/* ioctl(2), by the letter of a request: 'T' is the terminal's (FIONREAD and FIONBIO have it too). */
#define IOCTL_LETTER 0xff00
#define LETTER_TERMINAL 0x5400
#define LETTER_SOCKET 0x8900
#define LETTER_BTRFS 0x9400
#define LETTER_BCACHEFS 0xbc00
#define LETTER_EXT4 0x6600 /* FS_IOC_SETFLAGS, of all file systems */
#define LETTER_XFS 0x5800 /* FS_IOC_FSSETXATTR, of all file systems */
#define LETTER_F2FS 0xf500
/* Of the file systems' those that only read, or copy between open files. */
#define CLONE_FILE 0x40049409 /* FICLONE, FICLONERANGE, FIDEDUPERANGE */
#define CLONE_RANGE 0x4020940d
#define DEDUPE_RANGE 0xc0189436
#define GET_FLAGS 0x80086601 /* FS_IOC_GETFLAGS */
#define GET_ATTRIBUTES 0x801c581f /* FS_IOC_FSGETXATTR */
#define GET_EXTENTS 0xc020660b /* FS_IOC_FIEMAP */

/* clang-format off */
#define PLAIN_IOCTLS                                                                               \
	ALLOW(ioctl, INT_MASKED_IS(1, IOCTL_LETTER, LETTER_TERMINAL)),                             \
	ALLOW(ioctl, INT_MASKED_IS(1, IOCTL_LETTER, LETTER_SOCKET)),                               \
	ALLOW(ioctl, INT_IS(1, CLONE_FILE)), ALLOW(ioctl, INT_IS(1, CLONE_RANGE)),                 \
	ALLOW(ioctl, INT_IS(1, DEDUPE_RANGE)), ALLOW(ioctl, INT_IS(1, GET_FLAGS)),                 \
	ALLOW(ioctl, INT_IS(1, GET_ATTRIBUTES)), ALLOW(ioctl, INT_IS(1, GET_EXTENTS))
/* clang-format on */
