/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Details of a failure. The caller owns the struct; it has a fixed size and no
 * pointers, so that a cloned child can write it down a pipe and the parent can
 * report it as its own. Functions that fail return -errno and fill it in, in
 * one line: return error_set(e, EINVAL, "...").
 */
#pragma once

#include <errno.h>

#include "base/macros.h"

#define ERROR_TEXT_MAX 1016

struct error {
	int code; /* positive errno, 0 = no error */
	int exit_code; /* what `ambit` should exit with; 0 means the usual 125 */
	char text[ERROR_TEXT_MAX];
};

/* Both return -code; a NULL error is allowed and only loses the text. */
int error_set(struct error *e, int code, const char *fmt, ...) PRINTF_LIKE(3, 4);
/* -code, where an errno of 0 does not turn a failure into a success. */
static inline int error_negative(int code)
{
	const int r = -code;

	return r < 0 ? r : -EIO;
}
/* Lets the compiler and the analysers see that what comes back is negative. */
#define error_set(e, code, ...)                                                                    \
	__extension__({                                                                            \
		const int r_ = error_negative(code);                                               \
		(void)(error_set)((e), -r_, __VA_ARGS__);                                          \
		r_;                                                                                \
	})
/* "fmt: " is put in front of the present text. Returns -e->code. */
int error_wrap(struct error *e, const char *fmt, ...) PRINTF_LIKE(2, 3);
