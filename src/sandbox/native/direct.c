/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ambit-direct.so, loaded into the programs of a sandbox that has directories which are granted
 * directly (filesystem.bulk, filesystem.protect anchors): whoever fills them with files pays
 * nothing for it.
 *
 * A system call filter sees no paths, so a call that makes a file goes to the broker wherever it
 * leads. Here it is tried first with a mark that the filter lets pass (direct.h): in such a
 * directory the kernel carries it out. Everywhere else it refuses, having changed nothing, and the
 * call is made again as any program makes it. docs/decisions/0008-bulk.md
 *
 * This is no part of the wall: nothing depends on who uses it, or on what the program does to it.
 * It needs of the C library, whichever that is, only errno, and how threads are cancelled if it has
 * that; nothing is run when it is loaded.
 */
#include <errno.h>
#include <linux/fcntl.h> /* not <fcntl.h>: what that declares is defined here */
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <sys/types.h>

#include "sandbox/native/direct.h"

int open(const char *path, int flags, ...);
int openat(int dir, const char *path, int flags, ...);
int mkdir(const char *path, mode_t mode);
int mkdirat(int dir, const char *path, mode_t mode);
/* variants for large files, which are all the same here, and those of _FORTIFY_SOURCE */
int open64(const char *path, int flags, ...);
int openat64(int dir, const char *path, int flags, ...);
int __open_2(const char *path, int flags);
int __open64_2(const char *path, int flags);
int __openat_2(int dir, const char *path, int flags);
int __openat64_2(int dir, const char *path, int flags);
const char *__asan_default_options(void);

/* glibc's own open(), which a thread can be cancelled in; others have no second name for it. */
int __open64(const char *path, int flags, ...);
#pragma weak __open64
#pragma weak pthread_setcanceltype

static long call(long number, long a, long b, long c, long d, unsigned long mark)
{
#if defined(__x86_64__)
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = 0;
	register unsigned long r9 __asm__("r9") = mark;
	long r;

	__asm__ volatile("syscall"
			 : "=a"(r)
			 : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return r;
#elif defined(__aarch64__)
	register long x8 __asm__("x8") = number;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;
	register long x4 __asm__("x4") = 0;
	register unsigned long x5 __asm__("x5") = mark;

	__asm__ volatile("svc 0"
			 : "+r"(x0)
			 : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
			 : "memory");
	return x0;
#endif
}

static int answer(long r)
{
	if (r >= 0)
		return (int)r;
	errno = (int)-r;
	return -1;
}

/* A thread may be cancelled while it waits for the other end of a pipe, as in the C library's own. */
static long open_once(int dir, const char *path, int flags, mode_t mode, unsigned long mark)
{
	int old = PTHREAD_CANCEL_DEFERRED;
	long r;

	if (pthread_setcanceltype)
		(void)pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &old);
	r = call(SYS_openat, dir, (long)path, flags, (long)mode, mark);
	if (pthread_setcanceltype)
		(void)pthread_setcanceltype(old, &old);
	return r;
}

/* What the kernel refuses with the mark is asked for again: then the answer is that of any run. */
static bool is_refused(long r)
{
	return r < 0 && r != -EINTR;
}

static int open_at(int dir, const char *path, int flags, mode_t mode)
{
	long r = -EACCES;

	if (flags & O_CREAT)
		r = open_once(dir, path, flags, mode, DIRECT_MARK);
	else if (dir == AT_FDCWD && __open64)
		return __open64(path, flags, mode);
	if (is_refused(r))
		r = open_once(dir, path, flags, mode, 0);
	return answer(r);
}

/* The mode is there only with these. */
static bool has_mode(int flags)
{
	return (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE;
}

#define MODE_BEHIND(flags)                                                                         \
	({                                                                                         \
		mode_t mode_ = 0;                                                                  \
		if (has_mode(flags)) {                                                             \
			va_list ap_;                                                               \
			va_start(ap_, flags);                                                      \
			mode_ = va_arg(ap_, mode_t);                                               \
			va_end(ap_);                                                               \
		}                                                                                  \
		mode_;                                                                             \
	})

int open(const char *path, int flags, ...)
{
	return open_at(AT_FDCWD, path, flags, MODE_BEHIND(flags));
}

int open64(const char *path, int flags, ...)
{
	return open_at(AT_FDCWD, path, flags, MODE_BEHIND(flags));
}

int openat(int dir, const char *path, int flags, ...)
{
	return open_at(dir, path, flags, MODE_BEHIND(flags));
}

int openat64(int dir, const char *path, int flags, ...)
{
	return open_at(dir, path, flags, MODE_BEHIND(flags));
}

int __open_2(const char *path, int flags)
{
	return open_at(AT_FDCWD, path, flags, 0);
}

int __open64_2(const char *path, int flags)
{
	return open_at(AT_FDCWD, path, flags, 0);
}

int __openat_2(int dir, const char *path, int flags)
{
	return open_at(dir, path, flags, 0);
}

int __openat64_2(int dir, const char *path, int flags)
{
	return open_at(dir, path, flags, 0);
}

int mkdir(const char *path, mode_t mode)
{
	/* the very call that the C library makes: a filter of the program's own may know no other */
#ifdef SYS_mkdir
	long r = call(SYS_mkdir, (long)path, (long)mode, 0, 0, DIRECT_MARK);

	return answer(is_refused(r) ? call(SYS_mkdir, (long)path, (long)mode, 0, 0, 0) : r);
#else
	return mkdirat(AT_FDCWD, path, mode);
#endif
}

int mkdirat(int dir, const char *path, mode_t mode)
{
	long r = call(SYS_mkdirat, dir, (long)path, (long)mode, 0, DIRECT_MARK);

	return answer(is_refused(r) ? call(SYS_mkdirat, dir, (long)path, (long)mode, 0, 0) : r);
}

/* Asked by libasan before it reads ASAN_OPTIONS: it need not be the first library. */
const char *__asan_default_options(void)
{
	return "verify_asan_link_order=0";
}
