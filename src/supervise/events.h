/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What happens in a run, for the program that started it (--events-fd; libambit): JSON
 * lines, written as things happen.
 *
 *   {"event":"note","text":...}
 *   {"event":"denied", and the fields of a report entry}
 *   {"event":"error","text":...,"exitCode":125}       nothing was run
 *   {"event":"end", and the fields of the report}
 *
 * A reader that is gone or does not read is never waited for longer than a moment: the run
 * does not depend on it.
 */
#pragma once

#include "base/error.h"
#include "supervise/report.h"
#include "supervise/session.h"

/*
 * The descriptor must be open for writing, and not one of the standard three. Call it before
 * anything else is opened; it is made close-on-exec. Name: the option, for messages.
 */
int events_open(const char *name, int fd, struct error *e) NODISCARD;

/* fd -1: nothing is written. */
void events_note(int fd, const char *text);
void events_denied(int fd, const struct report_entry *entry);
void events_error(int fd, const struct error *e);
void events_end(int fd, const struct report *r, char *const *argv, const struct run_result *result);
