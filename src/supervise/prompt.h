/* SPDX-License-Identifier: Apache-2.0 */
/* One question to the person at the terminal. */
#pragma once

#include <stdbool.h>

struct prompt {
	int tty;
	int signals; /* readable: a signal came, and the question is over */
	int timeout_ms;
	/*
	 * The limits must hold while somebody thinks: `look` is called as often as `wait_ms` says
	 * (-1 = just now and then). False: the question is over.
	 */
	int (*wait_ms)(void *ctx);
	bool (*look)(void *ctx);
	void *ctx;
};

/*
 * Asks and waits for a line; the first letter counts. When it is none of `keys` (or an empty line),
 * `again` is shown and the next line waited for. 0 when the question is over: the time for all of
 * it is up, a signal came, or the terminal has no more lines (^D). What was typed before the
 * question is thrown away: it was meant for the command. While we ask, others on this terminal are stopped when they write to it (TOSTOP).
 * The caller's group must have the foreground; the terminal is left as it was found.
 */
char prompt_ask(const struct prompt *p, const char *question, const char *again, const char *keys);
