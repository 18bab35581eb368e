/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/text.h"

#define LOG_LINE_MAX 8192
#define PATIENCE_MS 2000

/*
 * The last message found no reader: the next is not waited with. The command may write to the
 * same pipe, and who supervises it must not be stopped by one that it has filled.
 */
static bool stuck;

enum log_level log_level = LOG_NORMAL;
struct log_prefix log_prefix = { "ambit: ", "ambit: " };

static void PRINTF_LIKE(2, 0) log_write(const char *prefix, const char *fmt, va_list ap)
{
	char raw[LOG_LINE_MAX];
	_cleanup_buf_ struct buf b = BUF_INIT(sizeof(raw) * 4 + 64);
	const char *line = raw, *end;

	(void)vsnprintf(raw, sizeof(raw), fmt, ap);
	buf_puts(&b, prefix);
	/* our own messages may span lines; each part is made safe by itself */
	while ((end = __builtin_strchr(line, '\n'))) {
		text_append_safe_n(&b, line, (size_t)(end - line));
		buf_putc(&b, '\n');
		line = end + 1;
	}
	text_append_safe(&b, line);
	buf_putc(&b, '\n');
	stuck = fd_write_within(STDERR_FILENO, buf_str(&b), b.len, stuck ? 0 : PATIENCE_MS) !=
		(ssize_t)b.len;
}

void log_error(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	log_write(log_prefix.message, fmt, ap);
	va_end(ap);
}

void log_warn(const char *fmt, ...)
{
	va_list ap;

	if (log_level < LOG_NORMAL)
		return;
	va_start(ap, fmt);
	log_write(log_prefix.message, fmt, ap);
	va_end(ap);
}

void log_info(const char *fmt, ...)
{
	va_list ap;

	if (log_level < LOG_VERBOSE)
		return;
	va_start(ap, fmt);
	log_write(log_prefix.detail, fmt, ap);
	va_end(ap);
}

void log_debug(const char *fmt, ...)
{
	va_list ap;

	if (log_level < LOG_DEBUG)
		return;
	va_start(ap, fmt);
	log_write(log_prefix.detail, fmt, ap);
	va_end(ap);
}
