/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/log_show.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/text.h"

#define RUN_SHOWN 6 /* characters of a run's name */
#define FIRST_MS 1 /* the earliest time that there is: 0 is none */

static bool is_word(const struct json_span *record, const char *key, const char *text)
{
	struct json_span value;

	return json_find(record, key, &value) && json_equals(&value, text);
}

static bool is_run(const struct json_span *record, const char *prefix)
{
	_cleanup_buf_ struct buf b = BUF_INIT(BUF_MAX_TEXT);
	struct json_span value;

	if (!json_find(record, "run", &value))
		return false;
	json_unquote(&value, &b);
	return text_starts(buf_str(&b), prefix);
}

bool log_filter_takes(const struct log_filter *f, const struct chain_line *l,
		      const struct json_span *record)
{
	int64_t when = chain_time_ms(l->time);

	if ((f->since_ms && when < f->since_ms) || (f->until_ms && when > f->until_ms))
		return false;
	if (f->violations && strcmp(l->event, "violation") != 0)
		return false;
	if (f->kind && strcmp(l->event, f->kind) != 0 && !is_word(record, "kind", f->kind))
		return false;
	return !f->run || is_run(record, f->run);
}

/* ---- showing ---- */

/* The value of a member, escaped; nothing when it is not there. False then. */
static bool put(struct buf *out, const struct json_span *record, const char *key)
{
	_cleanup_buf_ struct buf b = BUF_INIT(BUF_MAX_TEXT);
	struct json_span value;

	if (!json_find(record, key, &value) || value.kind == JSON_NULL)
		return false;
	json_unquote(&value, &b);
	text_append_safe_n(out, buf_str(&b), b.len);
	return true;
}

static uint64_t number(const struct json_span *record, const char *key)
{
	struct json_span value;
	uint64_t n = 0;

	if (json_find(record, key, &value))
		(void)!json_to_u64(&value, UINT64_MAX, &n);
	return n;
}

static void put_words(struct buf *out, const struct json_span *record, const char *key)
{
	struct json_span list, word;
	struct json_walk w;
	const char *space = "";

	if (!json_find(record, key, &list) || list.kind != JSON_ARRAY)
		return;
	w = json_walk(&list);
	while (json_next_member(&w, NULL, &word)) {
		_cleanup_buf_ struct buf plain = BUF_INIT(BUF_MAX_TEXT);
		_cleanup_buf_ struct buf quoted = BUF_INIT(BUF_MAX_TEXT);

		json_unquote(&word, &plain);
		text_append_shell(&quoted, buf_str(&plain));
		buf_puts(out, space);
		text_append_safe_n(out, buf_str(&quoted), quoted.len);
		space = " ";
	}
}

static void show_start(const struct json_span *r, struct buf *out)
{
	put_words(out, r, "command");
	buf_puts(out, "  (in ");
	(void)put(out, r, "cwd");
	if (is_word(r, "network", "allowlist")) {
		buf_puts(out, "; may reach ");
		put_words(out, r, "allowedDomains");
	} else if (is_word(r, "network", "host")) {
		buf_puts(out, "; the host's network");
	}
	buf_puts(out, is_word(r, "backend", "none") ? "; NO SANDBOX)" : ")");
}

static void show_end(const struct json_span *r, struct buf *out)
{
	struct json_span value;
	uint64_t ms = number(r, "wallMs");

	if (json_find(r, "error", &value)) {
		buf_puts(out, "not run: ");
		(void)put(out, r, "error");
		return;
	}
	buf_puts(out, "exit ");
	(void)put(out, r, "exitCode");
	buf_printf(out, " after %u.%u s", (unsigned)(ms / 1000), (unsigned)(ms % 1000 / 100));
	if (number(r, "violations"))
		buf_printf(out, ", %u denied", (unsigned)number(r, "violations"));
	if (number(r, "connectionsAllowed"))
		buf_printf(out, ", %u connections", (unsigned)number(r, "connectionsAllowed"));
	if (number(r, "connectionsNotTold"))
		buf_printf(out, ", %u connections that the proxy could not tell of",
			   (unsigned)number(r, "connectionsNotTold"));
	if (number(r, "recordsLeftOut"))
		buf_printf(out, ", %u records left out", (unsigned)number(r, "recordsLeftOut"));
}

static void show_violation(const struct json_span *r, struct buf *out)
{
	buf_puts(out, "denied ");
	(void)put(out, r, "kind");
	buf_putc(out, ' ');
	(void)put(out, r, "target");
	buf_puts(out, " — ");
	(void)put(out, r, "reason");
	if (is_word(r, "process", ""))
		return;
	buf_puts(out, "  [");
	(void)put(out, r, "process");
	buf_putc(out, ']');
}

static void show_network(const struct json_span *r, struct buf *out)
{
	(void)put(out, r, "verdict");
	buf_putc(out, ' ');
	(void)put(out, r, "host");
	if (number(r, "port"))
		buf_printf(out, ":%u", (unsigned)number(r, "port"));
	buf_puts(out, "  (");
	if (!put(out, r, "reason"))
		(void)put(out, r, "rule");
	buf_putc(out, ')');
}

static void show_change(const struct json_span *r, struct buf *out)
{
	(void)put(out, r, "action");
	buf_putc(out, ' ');
	(void)put(out, r, "setting");
	buf_putc(out, ' ');
	(void)put(out, r, "value");
	put_words(out, r, "allowedDomains");
	buf_puts(out, "  (by ");
	(void)put(out, r, "by");
	buf_putc(out, ')');
}

static void show_call(const struct json_span *r, struct buf *out)
{
	struct json_span result;

	(void)put(out, r, "serverName");
	buf_putc(out, '/');
	(void)put(out, r, "toolName");
	buf_putc(out, ' ');
	if (json_find(r, "result", &result))
		(void)put(out, &result, "status");
	buf_puts(out, " after ");
	(void)put(out, r, "durationMs");
	buf_puts(out, " ms");
}

static void show_repair(const struct json_span *r, struct buf *out)
{
	buf_puts(out, "the log was found damaged: ");
	(void)put(out, r, "problem");
	if (number(r, "bytes"))
		buf_printf(out, ", %u bytes of a record that was cut short",
			   (unsigned)number(r, "bytes"));
}

static void show_lost(const struct json_span *r, struct buf *out)
{
	(void)put(out, r, "count");
	buf_puts(out, " records could not be written: ");
	(void)put(out, r, "reason");
	buf_puts(out, "  (since ");
	if (!put(out, r, "since"))
		buf_puts(out, "this run began");
	buf_putc(out, ')');
}

/* Of other kinds: the record as it is. */
static void show_any(const struct json_span *r, struct buf *out)
{
	text_append_safe_n(out, r->text, r->len);
}

static const struct {
	const char *event;
	void (*show)(const struct json_span *r, struct buf *out);
} shows[] = {
	{ "run-start", show_start },      { "run-end", show_end },
	{ "violation", show_violation },  { "network", show_network },
	{ "policy-change", show_change }, { "mcp-call", show_call },
	{ "repair", show_repair },        { "lost", show_lost },
	{ "mcp-start", show_any },
};

const char *log_event(size_t i)
{
	return i < ARRAY_LEN(shows) ? shows[i].event : NULL;
}

void log_show(const struct chain_line *l, const struct json_span *record, struct buf *out)
{
	time_t seconds = (time_t)(chain_time_ms(l->time) / 1000);
	_cleanup_buf_ struct buf run = BUF_INIT(BUF_MAX_TEXT);
	void (*show)(const struct json_span *, struct buf *) = show_any;
	struct tm tm = { 0 };

	(void)localtime_r(&seconds, &tm);
	(void)put(&run, record, "run");
	buf_printf(out, "%04d-%02d-%02d %02d:%02d:%02d  %-*.*s  %-13s  ", tm.tm_year + 1900,
		   tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec, RUN_SHOWN,
		   RUN_SHOWN, buf_str(&run), l->event);
	for (size_t i = 0; i < ARRAY_LEN(shows); i++) {
		if (strcmp(shows[i].event, l->event) == 0)
			show = shows[i].show;
	}
	show(record, out);
}

/* ---- times ---- */

/* Digits and punctuation by a pattern: d is a digit, the rest stands for itself. */
static bool has_form(const char *text, const char *form)
{
	for (; *form; form++, text++) {
		if (*form == 'd' ? !ascii_digit(*text) : *text != *form)
			return false;
	}
	return !*text;
}

static int digits(const char *s, int n)
{
	int v = 0;

	while (n-- > 0)
		v = v * 10 + (*s++ - '0');
	return v;
}

int log_parse_time(const char *text, int64_t now_ms, int64_t *ret_ms, struct error *e)
{
	struct tm tm = { .tm_isdst = -1 }, said;
	char plain[32];
	size_t n = strlen(text);
	bool utc = n > 0 && n < sizeof(plain) && text[n - 1] == 'Z';
	uint64_t ago;
	time_t t;

	if (text_parse_duration(text, &ago) == 0) {
		*ret_ms = (int64_t)ago < now_ms ? now_ms - (int64_t)ago : FIRST_MS;
		return 0;
	}
	text_copy(plain, sizeof(plain), text);
	plain[utc ? n - 1 : sizeof(plain) - 1] = '\0';
	if (n > 10 && n < sizeof(plain) && plain[10] == ' ')
		plain[10] = 'T';
	if (utc && n > 4 && plain[n - 5] == '.')
		plain[n - 5] =
			'\0'; /* as the log itself writes them: parts of a second are dropped */
	if (n >= sizeof(plain) ||
	    (!has_form(plain, "dddd-dd-dd") && !has_form(plain, "dddd-dd-ddTdd:dd") &&
	     !has_form(plain, "dddd-dd-ddTdd:dd:dd")))
		return error_set(e, EINVAL,
				 "'%s' is not a time: write 10m, 2h or 1d (ago), 2026-01-31, or "
				 "2026-01-31T12:00:00Z",
				 text);
	tm.tm_year = digits(plain, 4) - 1900;
	tm.tm_mon = digits(plain + 5, 2) - 1;
	tm.tm_mday = digits(plain + 8, 2);
	if (plain[10]) {
		tm.tm_hour = digits(plain + 11, 2);
		tm.tm_min = digits(plain + 14, 2);
		tm.tm_sec = plain[16] ? digits(plain + 17, 2) : 0;
	}
	said = tm;
	t = utc ? timegm(&tm) : mktime(&tm);
	/* the 31st of February is put right without a word; an hour may be moved by the summer */
	if (tm.tm_mon != said.tm_mon || tm.tm_mday != said.tm_mday || said.tm_hour > 23 ||
	    said.tm_min > 59 || said.tm_sec > 60)
		return error_set(e, EINVAL, "'%s' is not a time: there is none such", text);
	*ret_ms = t > 0 ? (int64_t)t * 1000 : FIRST_MS;
	return 0;
}
