/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The few macros of the house. None of them hides a return or a loop.
 */
#pragma once

#include <stddef.h>

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

#define PRINTF_LIKE(fmt, args) __attribute__((format(printf, fmt, args)))
/* A large buffer on a path that is taken very often, and that is filled before it is read. */
#define _unfilled_ __attribute__((uninitialized))
#define NODISCARD __attribute__((warn_unused_result))
#define UNUSED __attribute__((unused))

/* Take ownership out of a _cleanup_ variable. */
#define TAKE_FD(fd) take_fd(&(fd))
#define TAKE_PTR(p)                                                                                \
	__extension__({                                                                            \
		__typeof__(p) *take_p_ = &(p);                                                     \
		__typeof__(p) take_v_ = *take_p_;                                                  \
		*take_p_ = NULL;                                                                   \
		take_v_;                                                                           \
	})

static inline int take_fd(int *fd)
{
	int v = *fd;

	*fd = -1;
	return v;
}
