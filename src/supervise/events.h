/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What happens in a run, for the program that started it (--events-fd; libambit): JSON
 * lines, written as things happen.
 *
 *   {"event":"note","text":...}
 *   {"event":"denied", and the fields of a report entry}
 *   {"event":"ask","id":1,"host":...,"port":443}      may this host be connected to?
 *   {"event":"ask","id":2147483649,"path":...,"reason":...}  may this protected name be written to?
 *   {"event":"unask","id":1}                          the question is over
 *   {"event":"error","text":...,"exitCode":125}       nothing was run
 *   {"event":"end", and the fields of the report}
 *
 * Answers come back over the same descriptor (a socket), a line each: the id, a space, and
 * one of once, run, no, never. A reader that is gone or does not read is never waited for longer than a moment: the run
 * does not depend on it.
 */
#pragma once

#include "base/buf.h"
#include "base/error.h"
#include "supervise/egress.h"
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
void events_ask(int fd, const struct egress_record *r);
void events_ask_write(int fd, const struct violation *v);
/* What there is of answers, told to the session. */
void events_take_answers(int fd, struct buf *text, struct session *s);
void events_error(int fd, const struct error *e);
void events_end(int fd, const struct report *r, char *const *argv, const struct run_result *result);
