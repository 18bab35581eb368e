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

/* Where they are written; fd -1: nowhere. */
struct events {
	int fd;
	bool slow; /* the last line was not taken in time: the next is not waited with */
	struct buf rest; /* of a line that was begun */
	struct buf answers; /* read, and not yet a whole line */
};

#define EVENTS_LINE_MAX ((size_t)16 << 20)
#define EVENTS_ANSWERS_MAX 4096
#define EVENTS_NONE                                                                                \
	{                                                                                          \
		.fd = -1, .rest = BUF_INIT(EVENTS_LINE_MAX),                                       \
		.answers = BUF_INIT(EVENTS_ANSWERS_MAX)                                            \
	}

/*
 * The descriptor must be open for writing, and not one of the standard three. Call it before
 * anything else is opened; it is made close-on-exec. Name: the option, for messages.
 */
int events_open(struct events *v, const char *name, int fd, struct error *e) NODISCARD;
void events_done(struct events *v);

void events_note(struct events *v, const char *text);
void events_denied(struct events *v, const struct report_entry *entry);
void events_ask(struct events *v, const struct egress_record *r);
void events_ask_write(struct events *v, const struct violation *q);
/* What there is of answers, told to the session. */
void events_take_answers(struct events *v, struct session *s);
void events_error(struct events *v, const struct error *e);
void events_end(struct events *v, const struct report *r, char *const *argv,
		const struct run_result *result);
