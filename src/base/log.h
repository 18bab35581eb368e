/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages for the person at the terminal: formatted into one buffer,
 * sanitised, prefixed with the program's name and written with a single write(2) to stderr.
 * Only cli/ and process mains call this; libraries return errors.
 */
#pragma once

#include "base/macros.h"

enum log_level { LOG_QUIET, LOG_NORMAL, LOG_VERBOSE, LOG_DEBUG };

extern enum log_level log_level;

/* How lines begin: messages, and what only -v and --debug show. Set at most once, by main(). */
extern struct log_prefix {
	const char *message, *detail;
} log_prefix;

void log_error(const char *fmt, ...) PRINTF_LIKE(1, 2); /* always */
void log_warn(const char *fmt, ...) PRINTF_LIKE(1, 2); /* unless -q */
void log_info(const char *fmt, ...) PRINTF_LIKE(1, 2); /* -v */
void log_debug(const char *fmt, ...) PRINTF_LIKE(1, 2); /* --debug */
