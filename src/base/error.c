/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int(error_set)(struct error *e, int code, const char *fmt, ...)
{
	va_list ap;

	if (!e)
		return -code;
	e->code = code;
	va_start(ap, fmt);
	(void)vsnprintf(e->text, sizeof(e->text), fmt, ap);
	va_end(ap);
	return -code;
}

int error_wrap(struct error *e, const char *fmt, ...)
{
	char front[ERROR_TEXT_MAX];
	size_t n, keep;
	va_list ap;

	if (!e)
		return -1;
	va_start(ap, fmt);
	(void)vsnprintf(front, sizeof(front) - 3, fmt, ap);
	va_end(ap);
	n = strlen(front);
	front[n++] = ':';
	front[n++] = ' ';
	keep = strnlen(e->text, sizeof(e->text) - 1 - n);
	memmove(e->text + n, e->text, keep);
	memcpy(e->text, front, n);
	e->text[n + keep] = '\0';
	return -e->code;
}
