/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The session log (--log): what the command read and wrote, line by line, with the time.
 *
 *   text    2026-01-31T12:00:00.000Z out| total 4
 *   jsonl   {"time":"2026-01-31T12:00:00.000Z","run":"...","stream":"stdout","text":"total 4"}
 *
 * A line that goes on in the next record (a prompt, a very long line) has \ in place of |, or
 * "cut":true. Control bytes are escaped in text, so that a log can be looked at safely.
 * Secrets are masked as in the audit log; what is typed while the terminal does not echo is not
 * logged at all. The file is the user's alone (0600); at its greatest size it becomes FILE.1.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "policy/policy.h"

enum seslog_stream {
	SESLOG_IN, /* stdin that is no terminal */
	SESLOG_OUT,
	SESLOG_ERR,
	SESLOG_KEYS, /* typed at the terminal */
	SESLOG_TERMINAL, /* shown there: stdout and stderr in one */
	SESLOG_STREAM_MAX_,
};

struct seslog_config {
	const char *path;
	enum log_format format;
	uint64_t max_bytes; /* of one file; 0 = no bound */
	uint64_t keep; /* older files besides it */
	bool redact;
};

struct seslog;

/* -errno when it is not a file that only this user can write to. */
int seslog_open(const struct seslog_config *c, struct seslog **ret, struct error *e) NODISCARD;
void seslog_start(struct seslog *l, const char *run, char *const *argv);
void seslog_add(struct seslog *l, enum seslog_stream which, const char *data, size_t len);
/* Something was read that is not to be kept. */
void seslog_hide(struct seslog *l, enum seslog_stream which);
/* Begun lines are written when nothing came for a while: by when, -1 = there are none. */
int seslog_wait_ms(const struct seslog *l);
void seslog_flush(struct seslog *l);
/* errno of the first write that failed, 0 = none. */
int seslog_failure(const struct seslog *l);
void seslog_end(struct seslog *l, int exit_code);
void seslog_close(struct seslog *l); /* NULL is fine */
