/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The form of the log, pure: how a line begins, and the head.
 *
 *   {"seq":7,"prev":"<sha256 of line 6>","timestamp":"2026-01-31T12:00:00.000Z","event":"run-end",...}
 *
 * The hash is over the bytes of the line without its line break. Line 1 has 64 zeros for prev. The
 * first four fields always stand first and in this order, so that a line can be judged
 * without reading the rest of it.
 *
 * The head is a small file beside the log: number and hash of the last line, size of the log,
 * number of the oldest line that is kept, and a sum over these. It says what the end of the log should be, so that
 * a log that was cut off is noticed. A second line follows while records are missing that could not be
 * written.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/sha256.h"

#define CHAIN_TIME_LEN 24 /* 2026-01-31T12:00:00.000Z */
#define CHAIN_TIME_NONE "1970-01-01T00:00:00.000Z" /* not known */
#define CHAIN_EVENT_MAX 32

/* What stands in front of every line. */
struct chain_line {
	uint64_t seq;
	char prev[SHA256_HEX_LEN + 1];
	char time[CHAIN_TIME_LEN + 1];
	char event[CHAIN_EVENT_MAX];
};

extern const char chain_origin[SHA256_HEX_LEN + 1]; /* prev of the first line */

/* "{"seq":...,"event":"..."" : the caller adds ,"more":... and the closing brace */
void chain_print(const struct chain_line *l, struct buf *out);
/* Without line break. false: no line of a log. */
bool chain_parse(const char *line, size_t len, struct chain_line *ret);

void chain_time(int64_t unix_ms, char ret[CHAIN_TIME_LEN + 1]);
/* Milliseconds since the epoch; -1 when it is no such time. */
int64_t chain_time_ms(const char *time);

/* Records that could not be written. */
struct chain_lost {
	uint64_t count; /* 0 = none, and nothing else is set */
	int code; /* errno of the first */
	char since[CHAIN_TIME_LEN + 1];
};

#define CHAIN_LOST_LEN 82 /* always */

void chain_lost_print(const struct chain_lost *l, char ret[CHAIN_LOST_LEN + 1]);
bool chain_lost_parse(const char *text, size_t len, struct chain_lost *ret);

struct chain_head {
	uint64_t seq; /* of the last line; 0 = none yet */
	uint64_t first; /* of the oldest line that is kept */
	uint64_t size; /* bytes of the present file */
	char hash[SHA256_HEX_LEN + 1]; /* of the last line */
	struct chain_lost lost; /* since that line: a second line in the same file */
};

#define CHAIN_HEAD_LEN 159 /* always, without what was lost */

void chain_head_print(const struct chain_head *h, char ret[CHAIN_HEAD_LEN + 1]);
bool chain_head_parse(const char *text, size_t len, struct chain_head *ret);
