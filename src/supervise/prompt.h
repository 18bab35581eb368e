/* SPDX-License-Identifier: Apache-2.0 */
/* One question to the person at the terminal. */
#pragma once

/*
 * Asks and waits for a line; the first letter counts. 0 when it is none of `keys` (an empty line
 * too), when the time is up, or when `signals` can be read from: a signal came. What was typed
 * before the question is thrown away: it was meant for the command. While we ask, others on this
 * terminal are stopped when they write to it (TOSTOP). The caller's group must have the
 * foreground; the terminal is left as it was found.
 */
char prompt_ask(int tty, int signals, const char *question, const char *keys, int timeout_ms);
