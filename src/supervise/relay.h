/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the command reads and writes passes through us, when it is to be logged (--log) or counted
 * (--output); else nothing of this exists and the bytes go directly.
 *
 * By what each of the caller's three descriptors is, the command gets:
 *
 *   stdin     stdout    stderr     stdin         stdout      stderr         its terminal
 *   terminal  terminal  terminal   pty           pty         pty            the pty
 *   terminal  terminal  other      pty           pty         pipe           the pty
 *   other     terminal  any        pipe          pty         pty or pipe    the pty
 *   terminal  other     terminal   the caller's  pipe        pty, output    the caller's
 *   terminal  other     other      the caller's  pipe        pipe           the caller's
 *   other     other     terminal   pipe          pipe        pty, output    the caller's
 *   other     other     other      pipe          pipe        pipe           the caller's, or none
 *
 * So a program sees a terminal where it would have seen one, and two streams where there were
 * two. Who writes to the terminal is who reads its keys; with its output elsewhere, the keys are
 * left to the rest of the pipeline, and what is typed is not logged. "pty, output": isatty() is
 * true, nothing is read from it. Input that is not logged is not passed through either; devices
 * (/dev/null) never are.
 */
#pragma once

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "supervise/seslog.h"

struct relay;

struct relay_setup {
	struct seslog *log; /* NULL = none */
	uint64_t output_max; /* bytes of stdout and stderr together; 0 = not limited */
	int tty; /* our controlling terminal, -1 = none */
	bool own_terminal; /* a terminal is passed through: the command cannot have it as its own */
};

/* *ret is NULL when nothing is to be passed through. */
int relay_new(const struct relay_setup *setup, struct relay **ret, struct error *e) NODISCARD;
/* For the command's 0, 1 and 2; -1 = the caller's own. */
const int *relay_inner(const struct relay *s);
/* The pty is the command's controlling terminal: the descriptor to make it that, or -1. */
int relay_terminal(const struct relay *s);
/* Where the pty is, to be shown inside; NULL = there is none. */
const char *relay_terminal_path(const struct relay *s);
/* The command has its ends: ours are all that is left here. */
void relay_started(struct relay *s);

#define RELAY_POLL_MAX 10

/* What to wait for: fills fds, returns their number. And how long at most, -1 = no bound. */
size_t relay_poll(struct relay *s, struct pollfd fds[RELAY_POLL_MAX]);
int relay_wait_ms(const struct relay *s);
/* After poll(); fds as they were filled, with their events. */
void relay_step(struct relay *s, const struct pollfd *fds, size_t n);
/* More was printed than may be: exactly as much as may be was passed on. */
bool relay_is_over(const struct relay *s);
/* Everything inside is gone: what is in the pipes is the rest. True when all of it is through. */
bool relay_drain(struct relay *s);

/* The terminal, when it is ours to handle: of another size; before and after we are stopped. */
void relay_resize(struct relay *s);
void relay_pause(struct relay *s);
void relay_resume(struct relay *s);
/* What is printed between the two is for the person at the terminal. */
void relay_begin_message(struct relay *s);
void relay_end_message(struct relay *s);

/*
 * The terminal as it was; as the command left it when that ended by itself. NULL is fine.
 * Bytes that were printed, for the report.
 */
enum relay_end { RELAY_ENDED, RELAY_KILLED };
uint64_t relay_free(struct relay *s, enum relay_end how);
