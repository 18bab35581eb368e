/* SPDX-License-Identifier: Apache-2.0 */
/* One numbered line per case: the call as written, its result, errno by name, and details. */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/openat2.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef RENAME_NOREPLACE
#define RENAME_NOREPLACE 1
#define RENAME_EXCHANGE 2
#define RENAME_WHITEOUT 4
#endif

extern const char *group;

__attribute__((format(printf, 1, 2))) void line(const char *format, ...);
void result(const char *text, long r);
/* The call, its result and errno. */
#define T(call) (errno = 0, result(#call, (long)(call)))
/* The same for an open: also the flags the kernel keeps, and the file is closed. */
#define O(call) (errno = 0, opened(#call, (int)(call)))

void opened(const char *text, int fd);
void show(const char *path); /* type, mode, size, links, content or target */
void put(const char *path, const char *text);
int sys_rename(const char *from, const char *to, unsigned flags);
long sys_open2(int dirfd, const char *path, uint64_t flags, uint64_t mode, uint64_t resolve);

/* Groups of cases, in the files of that name. */
void cases_open(void);
void cases_names(void);
void cases_state(void);
void cases_change(void);
