/* SPDX-License-Identifier: Apache-2.0 */
#include "audit/chain.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/text.h"

#define HEAD_WORD "ambit-audit-1"
#define HEAD_DIGITS 20
#define HEAD_SUM_LEN 16
#define LOST_WORD "ambit-lost-1"
#define LOST_CODE_DIGITS 5

const char chain_origin[SHA256_HEX_LEN + 1] =
	"0000000000000000000000000000000000000000000000000000000000000000";

void chain_print(const struct chain_line *l, struct buf *out)
{
	buf_printf(out,
		   "{\"seq\":%" PRIu64 ",\"prev\":\"%s\",\"timestamp\":\"%s\",\"event\":\"%s\"",
		   l->seq, l->prev, l->time, l->event);
}

/* What is left of a line that is being taken apart. */
struct rest {
	const char *at, *end;
};

static bool take(struct rest *r, const char *text)
{
	size_t n = strlen(text);

	if ((size_t)(r->end - r->at) < n || memcmp(r->at, text, n) != 0)
		return false;
	r->at += n;
	return true;
}

/* A decimal number as it is printed: no sign, no leading zero. */
static bool take_number(struct rest *r, uint64_t *ret)
{
	const char *start = r->at;
	char digits[24];
	size_t n;

	while (r->at < r->end && ascii_digit(*r->at))
		r->at++;
	n = (size_t)(r->at - start);
	if (n == 0 || n >= sizeof(digits) || (n > 1 && *start == '0'))
		return false;
	memcpy(digits, start, n);
	digits[n] = '\0';
	return text_parse_u64(digits, UINT64_MAX, ret) == 0;
}

static bool take_hash(struct rest *r, char ret[SHA256_HEX_LEN + 1])
{
	if (r->end - r->at < SHA256_HEX_LEN)
		return false;
	for (size_t i = 0; i < SHA256_HEX_LEN; i++) {
		char c = r->at[i];

		if (!ascii_digit(c) && !(c >= 'a' && c <= 'f'))
			return false;
		ret[i] = c;
	}
	ret[SHA256_HEX_LEN] = '\0';
	r->at += SHA256_HEX_LEN;
	return true;
}

static bool take_time(struct rest *r, char ret[CHAIN_TIME_LEN + 1])
{
	if (r->end - r->at < CHAIN_TIME_LEN)
		return false;
	memcpy(ret, r->at, CHAIN_TIME_LEN);
	ret[CHAIN_TIME_LEN] = '\0';
	r->at += CHAIN_TIME_LEN;
	return chain_time_ms(ret) >= 0;
}

static bool take_event(struct rest *r, char ret[CHAIN_EVENT_MAX])
{
	size_t n = 0;

	while (r->at < r->end && n + 1 < CHAIN_EVENT_MAX && (ascii_alnum(*r->at) || *r->at == '-'))
		ret[n++] = *r->at++;
	ret[n] = '\0';
	return n > 0;
}

bool chain_parse(const char *line, size_t len, struct chain_line *ret)
{
	struct rest r = { line, line + len };
	struct chain_line l = { 0 };

	if (!take(&r, "{\"seq\":") || !take_number(&r, &l.seq) || l.seq == 0 ||
	    !take(&r, ",\"prev\":\"") || !take_hash(&r, l.prev) ||
	    !take(&r, "\",\"timestamp\":\"") || !take_time(&r, l.time) ||
	    !take(&r, "\",\"event\":\"") || !take_event(&r, l.event) || !take(&r, "\"") ||
	    r.end == r.at || r.end[-1] != '}')
		return false;
	*ret = l;
	return true;
}

#define DAY_MS 86400000LL
#define DAYS_PER_ERA 146097 /* 400 years: then the calendar repeats */
#define DAYS_BEFORE_EPOCH 719468 /* since the 1st of March of the year 0 */

/*
 * gmtime_r() would read the time zone of the machine first, in each run. Years are taken to begin
 * in March, so that a leap day is the last of its year.
 */
void chain_time(int64_t unix_ms, char ret[CHAIN_TIME_LEN + 1])
{
	int64_t days = unix_ms / DAY_MS + DAYS_BEFORE_EPOCH;
	int ms = (int)(unix_ms % DAY_MS), day = (int)(days % DAYS_PER_ERA);
	/* of 1460 days, 36524 and 146096 the last belongs to the year before */
	int year = (day - day / 1460 + day / 36524 - day / 146096) / 365;
	int of_year = day - (365 * year + year / 4 - year / 100);
	int month = (5 * of_year + 2) / 153; /* five months have 153 days, over and over */
	char text[96];

	(void)snprintf(text, sizeof(text), "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ",
		       (int)(days / DAYS_PER_ERA) * 400 + year + (month >= 10),
		       month < 10 ? month + 3 : month - 9, of_year - (153 * month + 2) / 5 + 1,
		       ms / 3600000, ms / 60000 % 60, ms / 1000 % 60, ms % 1000);
	text_copy(ret, CHAIN_TIME_LEN + 1, text);
}

static bool digits_at(const char *s, int n, int *ret)
{
	*ret = 0;
	for (int i = 0; i < n; i++) {
		if (!ascii_digit(s[i]))
			return false;
		*ret = *ret * 10 + (s[i] - '0');
	}
	return true;
}

int64_t chain_time_ms(const char *time)
{
	struct tm tm = { 0 };
	int ms;
	time_t t;

	if (strlen(time) != CHAIN_TIME_LEN || !digits_at(time, 4, &tm.tm_year) || time[4] != '-' ||
	    !digits_at(time + 5, 2, &tm.tm_mon) || time[7] != '-' ||
	    !digits_at(time + 8, 2, &tm.tm_mday) || time[10] != 'T' ||
	    !digits_at(time + 11, 2, &tm.tm_hour) || time[13] != ':' ||
	    !digits_at(time + 14, 2, &tm.tm_min) || time[16] != ':' ||
	    !digits_at(time + 17, 2, &tm.tm_sec) || time[19] != '.' ||
	    !digits_at(time + 20, 3, &ms) || time[23] != 'Z')
		return -1;
	tm.tm_year -= 1900;
	tm.tm_mon -= 1;
	t = timegm(&tm);
	return t < 0 ? -1 : (int64_t)t * 1000 + ms;
}

void chain_head_print(const struct chain_head *h, char ret[CHAIN_HEAD_LEN + 1])
{
	_cleanup_buf_ struct buf b = BUF_INIT(CHAIN_HEAD_LEN);
	char sum[SHA256_HEX_LEN + 1];

	buf_printf(&b, HEAD_WORD " %020" PRIu64 " %020" PRIu64 " %020" PRIu64 " %.64s", h->seq,
		   h->first, h->size, h->hash);
	sha256_hex(b.data, b.len, sum);
	buf_printf(&b, " %.*s\n", HEAD_SUM_LEN, sum);
	text_copy(ret, CHAIN_HEAD_LEN + 1, buf_str(&b));
}

/* A blank and a number with leading zeros. */
static bool take_digits(struct rest *r, size_t n, uint64_t *ret)
{
	char digits[HEAD_DIGITS + 1] = { 0 };

	if (!take(r, " ") || (size_t)(r->end - r->at) < n)
		return false;
	memcpy(digits, r->at, n);
	r->at += n;
	return text_parse_u64(digits, UINT64_MAX, ret) == 0;
}

bool chain_head_parse(const char *text, size_t len, struct chain_head *ret)
{
	struct chain_head h = { 0 };
	struct rest r = { text, text + len };
	uint64_t *const numbers[] = { &h.seq, &h.first, &h.size };
	char again[CHAIN_HEAD_LEN + 1];

	if (len != CHAIN_HEAD_LEN || !take(&r, HEAD_WORD))
		return false;
	for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
		if (!take_digits(&r, HEAD_DIGITS, numbers[i]))
			return false;
	}
	if (!take(&r, " ") || !take_hash(&r, h.hash))
		return false;
	/* byte for byte what is written, with its own sum */
	chain_head_print(&h, again);
	if (memcmp(again, text, CHAIN_HEAD_LEN) != 0)
		return false;
	*ret = h;
	return true;
}

void chain_lost_print(const struct chain_lost *l, char ret[CHAIN_LOST_LEN + 1])
{
	_cleanup_buf_ struct buf b = BUF_INIT(CHAIN_LOST_LEN);
	char sum[SHA256_HEX_LEN + 1];

	buf_printf(&b, LOST_WORD " %020" PRIu64 " %0*u %.*s", l->count, LOST_CODE_DIGITS,
		   (unsigned)l->code, CHAIN_TIME_LEN, l->since);
	sha256_hex(b.data, b.len, sum);
	buf_printf(&b, " %.*s\n", HEAD_SUM_LEN, sum);
	text_copy(ret, CHAIN_LOST_LEN + 1, buf_str(&b));
}

bool chain_lost_parse(const char *text, size_t len, struct chain_lost *ret)
{
	struct chain_lost l = { 0 };
	struct rest r = { text, text + len };
	char again[CHAIN_LOST_LEN + 1];
	uint64_t code;

	if (len != CHAIN_LOST_LEN || !take(&r, LOST_WORD) ||
	    !take_digits(&r, HEAD_DIGITS, &l.count) || !take_digits(&r, LOST_CODE_DIGITS, &code) ||
	    !take(&r, " ") || !take_time(&r, l.since) || l.count == 0)
		return false;
	l.code = (int)code;
	chain_lost_print(&l, again);
	if (memcmp(again, text, CHAIN_LOST_LEN) != 0)
		return false;
	*ret = l;
	return true;
}
