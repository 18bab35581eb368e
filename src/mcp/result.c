/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a call returns, twice: as text for the model, as data for programs. The text begins with
 * what the sandbox stopped, then comes what the program printed, then how it ended unless that
 * is plain success.
 *
 * The output is the command's: it is escaped by the JSON writer, cut to a size, and otherwise
 * left as it is. Lines of ours stand in brackets, at the start and at the end.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/sys.h"
#include "base/text.h"
#include "mcp/excerpt.h"
#include "mcp/find.h"
#include "mcp/server.h"

/*
 * Output shown in one result; the rest by resource. Claude Code puts results of more than 50,000
 * characters, as JSON, into a file instead of showing them.
 */
#define INLINE_MAX ((size_t)32 << 10)
#define INLINE_LEAST 500 /* of each command of a batch */
#define HINTS_MAX 20 /* in the one command */
#define INTENT_BYTES 5000 /* shorter outputs are shown whole, intent or not */
#define INTENT_SHOWN 2000
#define PLACES_MAX 5 /* per question */
#define PLACE_BYTES 1500

static const char *const stream_names[] = { "stdout", "stderr" };

/* --- what the sandbox stopped -------------------------------------------------------------------- */

void result_describe(const struct report_entry *entry, struct buf *out)
{
	struct report_entry shown = *entry;

	shown.hint = NULL;
	if (strcmp(shown.kind, "write") == 0 &&
	    strcmp(shown.reason, "outside the writable directories") == 0)
		shown.reason = "this path is outside the project directory";
	report_describe(&shown, out);
}

static void put_blocked_text(const struct run *run, struct buf *text)
{
	for (size_t i = 0; i < run->report.n_denied && i < RESULT_BLOCKED_MAX; i++) {
		buf_puts(text, "[SANDBOX BLOCKED] ");
		result_describe(&run->report.denied[i], text);
		buf_putc(text, '\n');
	}
	if (run->report.n_denied > RESULT_BLOCKED_MAX)
		buf_printf(text, "[SANDBOX BLOCKED] and %zu more\n",
			   run->report.n_denied - RESULT_BLOCKED_MAX);
}

/* The options that would allow what was stopped, each once. */
struct hints {
	const char *v[HINTS_MAX];
	size_t n;
};

static void add_hint(struct hints *h, const char *hint)
{
	for (size_t i = 0; i < h->n; i++) {
		if (strcmp(h->v[i], hint) == 0)
			return;
	}
	if (h->n < HINTS_MAX)
		h->v[h->n++] = hint;
}

static void add_hints(struct hints *h, const struct run *run)
{
	static const char mode[] = "--network allowlist";

	for (size_t i = 0; i < run->report.n_denied; i++) {
		const struct report_entry *entry = &run->report.denied[i];
		const char *hint = entry->hint;

		if (!report_can_hint(entry))
			continue;
		if (text_starts(hint, mode) && hint[strlen(mode)] == ' ') {
			add_hint(h, mode);
			hint += strlen(mode) + 1;
		}
		add_hint(h, hint);
	}
}

/* One command for all of a call: whoever starts the server again wants to do so once. */
static void put_hints(struct run *const *runs, size_t n, struct buf *text)
{
	struct hints h = { .n = 0 };

	for (size_t i = 0; i < n; i++)
		add_hints(&h, runs[i]);
	if (!h.n)
		return;
	buf_puts(text, "[the user can allow it by adding to the server's options: ambit mcp serve");
	for (size_t i = 0; i < h.n; i++)
		buf_printf(text, " %s", h.v[i]);
	buf_puts(text, "]\n");
}

static void put_blocked_data(const struct run *run, struct json *j)
{
	json_key(j, "blocked");
	json_begin_array(j);
	for (size_t i = 0; i < run->report.n_denied; i++) {
		json_begin_object(j);
		report_write_entry(&run->report.denied[i], j);
		json_end_object(j);
	}
	json_end_array(j);
}

/* Said in every response: that there is no sandbox, or what it does not hold. */
static void put_unsandboxed(const struct server *s, struct buf *text)
{
	if (s->unsandboxed)
		buf_printf(text, "[NO SANDBOX] %s: this ran with all rights of the user\n",
			   s->unsandboxed);
	else if (s->req->policy->fallback == FALLBACK_WARN) {
		for (size_t i = 0; i < s->n_notes; i++)
			buf_printf(text, "[SANDBOX] %s\n", s->notes[i]);
	}
}

/* --- how it ended ------------------------------------------------------------------------------ */

bool result_failed(const struct run *run)
{
	if (run->failure.code || run->stop != RUN_STOP_NONE)
		return true;
	/* grep and diff say "nothing found", "they differ" so, and the output is the answer */
	if (run->result.exit_code == 1 && strcmp(run->language, "shell") == 0 &&
	    run->spool[0].size && !run->spool[1].size && !run->report.n_denied)
		return false;
	return run->result.exit_code != 0;
}

static int exit_code(const struct run *run)
{
	if (run->failure.code)
		return run->failure.exit_code ? run->failure.exit_code : 125;
	return run->stop == RUN_STOP_TIMEOUT ? 124 : run->result.exit_code;
}

static void put_end_text(const struct run *run, struct buf *text)
{
	if (run->state != RUN_ENDED) {
		buf_printf(text,
			   "[still running as job %s: job_output reads what it prints, job_kill "
			   "ends it]\n",
			   run->id);
		return;
	}
	if (run->failure.code) {
		buf_puts(text, "[not run: ");
		text_append_safe(text, run->failure.text);
		buf_puts(text, "]\n");
		return;
	}
	switch (run->stop) {
	case RUN_STOP_TIMEOUT:
		buf_printf(text,
			   "[timed out after %" PRIu64 " ms: all of its processes were ended]\n",
			   run->result.wall_ms);
		return;
	case RUN_STOP_OUTPUT:
		buf_printf(text, "[ended because of its output: %s]\n",
			   run->lost ? "there is no room to keep it"
				     : "more than the limit (limits.output)");
		return;
	case RUN_STOP_KILL:
		buf_puts(text, "[ended by job_kill]\n");
		return;
	case RUN_STOP_CANCEL:
		buf_puts(text, "[cancelled]\n");
		return;
	case RUN_STOP_NONE:
		break;
	}
	if (run->result.signal)
		buf_printf(text, "[killed by %s]\n", run_signal_name(run->result.signal));
	else if (run->result.exit_code)
		buf_printf(text, "[exit code %d]\n", run->result.exit_code);
	else if (!run_bytes(run))
		buf_puts(text, "[no output]\n");
}

/* Everything about a run but its output. */
static void put_end_data(const struct server *s, const struct run *run, struct json *j)
{
	json_kstring(j, "jobId", run->id);
	json_kbool(j, "running", run->state != RUN_ENDED);
	if (run->state == RUN_ENDED) {
		json_kint(j, "exitCode", exit_code(run));
		if (run->result.signal)
			json_kstring(j, "signal", run_signal_name(run->result.signal));
	}
	if (run->failure.code)
		json_kstring(j, "error", run->failure.text);
	json_kbool(j, "timedOut", run->stop == RUN_STOP_TIMEOUT);
	json_kint(j, "stdoutBytes", (int64_t)run->spool[0].size);
	json_kint(j, "stderrBytes", (int64_t)run->spool[1].size);
	json_kint(j, "durationMs",
		  run->state == RUN_ENDED ? (int64_t)run->result.wall_ms
					  : (int64_t)(sys_now_ms() - run->started_ms));
	json_kint(j, "cpuMs", (int64_t)run->result.cpu_ms);
	json_kint(j, "maxRssKb", (int64_t)(run->result.max_rss / 1024));
	json_kbool(j, "sandboxed", run->sandboxed);
	if (s->unsandboxed)
		json_kstring(j, "warning", s->unsandboxed);
	put_blocked_data(run, j);
}

/*
 * What the text says besides the output, once more: clients that show the data to the model leave
 * the text away.
 */
static void put_messages(struct buf *b, struct json *j)
{
	if (!b->len)
		return;
	json_key(j, "messages");
	json_begin_array(j);
	for (const char *line = buf_str(b); *line;) {
		size_t len = strcspn(line, "\n");

		json_string_n(j, line, len);
		line += len + (line[len] == '\n');
	}
	json_end_array(j);
}

static void put_run_messages(const struct server *s, struct run *run, bool hints, struct json *j)
{
	_cleanup_buf_ struct buf b = BUF_INIT(BUF_MAX_TEXT);

	put_blocked_text(run, &b);
	if (hints)
		put_hints(&run, 1, &b);
	put_unsandboxed(s, &b);
	if (run->state != RUN_ENDED || run->failure.code || run->stop != RUN_STOP_NONE)
		put_end_text(run, &b);
	put_messages(&b, j);
}

/* --- output ------------------------------------------------------------------------------------ */

static bool take_excerpt(struct run *run, size_t which, size_t max, struct buf *out)
{
	_cleanup_arena_ struct arena *a = arena_new();
	const char *where =
		arena_printf(a, "job_output jobId=%s offset=..., or resource exec://%s/%s", run->id,
			     run->id, stream_names[which]);

	run->cut[which] = excerpt_append(&run->spool[which], max, where, out).truncated;
	return run->cut[which];
}

/* How much of `max` each stream gets: what it needs, at most two thirds if the other needs some. */
static void share(const struct run *run, size_t max, size_t ret[2])
{
	size_t part = max / 3;

	ret[1] = run->spool[1].size < part ? (size_t)run->spool[1].size : part;
	ret[0] = max - ret[1];
	if (run->spool[0].size < ret[0])
		ret[1] = max - (size_t)run->spool[0].size;
}

static void put_output_text(const struct buf parts[2], struct buf *text)
{
	for (size_t i = 0; i < 2; i++) {
		if (!parts[i].len)
			continue;
		if (i)
			buf_puts(text, "[stderr]\n");
		buf_append(text, parts[i].data, parts[i].len);
		if (parts[i].data[parts[i].len - 1] != '\n')
			buf_putc(text, '\n');
	}
}

static void put_output_data(const struct call *c, struct buf parts[2], struct json *j)
{
	bool base64 = c->args.encoding && strcmp(c->args.encoding, "base64") == 0;

	for (size_t i = 0; i < 2; i++) {
		json_key(j, stream_names[i]);
		if (base64) {
			_cleanup_buf_ struct buf b = BUF_INIT(BUF_MAX_TEXT);

			excerpt_base64(&b, buf_str(&parts[i]), parts[i].len);
			json_string(j, buf_str(&b));
		} else {
			json_string_n(j, buf_str(&parts[i]), parts[i].len);
		}
	}
}

/* --- search ------------------------------------------------------------------------------------ */

/* The texts of runs for find.c; freed by free_texts(). */
struct texts {
	struct find_text v[2 * (ARGUMENTS_COMMANDS_MAX + 40)];
	size_t n, left;
};

static void add_texts(struct arena *a, struct texts *t, const struct run *run)
{
	for (size_t i = 0; i < 2 && t->n < ARRAY_LEN(t->v); i++) {
		const struct spool *spool = &run->spool[i];
		size_t len = spool->size < t->left ? (size_t)spool->size : t->left;
		char *data;

		if (!len)
			continue;
		data = malloc(len);
		if (!data)
			abort();
		len = spool_read(spool, 0, data, len);
		t->v[t->n++] = (struct find_text){ i ? arena_printf(a, "%s (stderr)", run->label)
						     : run->label,
						   data, len };
		t->left -= len;
	}
}

static void free_texts(struct texts *t)
{
	for (size_t i = 0; i < t->n; i++) {
		char *data;

		memcpy(&data, &t->v[i].text, sizeof(data)); /* ours, const for the search only */
		free(data);
	}
}

/* One question: the places, as text and as data. */
static void put_places(struct arena *a, const struct texts *t, const char *question,
		       struct buf *text, struct json *j)
{
	struct find_matches found;

	find_places(a, t->v, t->n, question, PLACES_MAX, &found);
	buf_puts(text, "## ");
	text_append_safe(text, question);
	buf_puts(text, found.n ? "\n" : "\n[nothing found]\n");
	json_begin_object(j);
	json_kstring(j, "query", question);
	json_key(j, "places");
	json_begin_array(j);
	for (size_t i = 0; i < found.n; i++) {
		const struct find_match *m = &found.v[i];
		size_t len = m->len < PLACE_BYTES ? m->len : excerpt_whole(m->text, PLACE_BYTES);
		const char *label = t->v[m->which].label;

		buf_printf(text, "[%s, line %zu]\n", label, m->line);
		buf_append(text, m->text, len);
		buf_puts(text, len < m->len ? " [...]\n" : "\n");
		json_begin_object(j);
		json_kstring(j, "label", label);
		json_kint(j, "line", (int64_t)m->line);
		json_key(j, "text");
		json_string_n(j, m->text, len);
		json_end_object(j);
	}
	json_end_array(j);
	json_end_object(j);
}

/* --- execute, execute_file ----------------------------------------------------------------------- */

void result_run(struct server *s, struct call *c, struct buf *text, struct json *j)
{
	struct run *run = c->runs[0];
	struct buf parts[2] = { BUF_INIT(BUF_MAX_TEXT), BUF_INIT(BUF_MAX_TEXT) };
	bool search = c->args.intent && *c->args.intent && run_bytes(run) > INTENT_BYTES;
	size_t room[2];
	bool truncated = false;

	c->failed = run->state == RUN_ENDED && result_failed(run);
	share(run, search ? INTENT_SHOWN : INLINE_MAX, room);
	for (size_t i = 0; i < 2; i++)
		truncated |= take_excerpt(run, i, room[i], &parts[i]);
	put_blocked_text(run, text);
	put_hints(&run, 1, text);
	put_unsandboxed(s, text);
	json_begin_object(j);
	put_run_messages(s, run, true, j);
	put_output_data(c, parts, j);
	json_kbool(j, "truncated", truncated);
	put_end_data(s, run, j);
	if (search) {
		struct texts *t = arena_alloc(c->a, sizeof(*t));

		t->left = FIND_BYTES_MAX;
		add_texts(c->a, t, run);
		json_key(j, "matches");
		json_begin_array(j);
		put_places(c->a, t, c->args.intent, text, j);
		json_end_array(j);
		free_texts(t);
		buf_printf(text, "## the whole output: %" PRIu64 " bytes\n", run_bytes(run));
	}
	json_end_object(j);
	put_output_text(parts, text);
	put_end_text(run, text);
	buf_done(&parts[0]);
	buf_done(&parts[1]);
}

/* --- batch_execute -------------------------------------------------------------------------------- */

static void put_command_head(const struct run *run, struct buf *text)
{
	buf_puts(text, "# ");
	text_append_safe(text, run->label);
	if (run->stop == RUN_STOP_NONE && !run->failure.code && !run->result.signal)
		buf_printf(text, " (exit code %d, %" PRIu64 " ms, %" PRIu64 " bytes)\n",
			   run->result.exit_code, run->result.wall_ms, run_bytes(run));
	else
		buf_printf(text, " (%" PRIu64 " ms, %" PRIu64 " bytes)\n", run->result.wall_ms,
			   run_bytes(run));
}

static void put_command(struct server *s, struct call *c, struct run *run, size_t room_all,
			struct buf *text, struct json *j)
{
	struct buf parts[2] = { BUF_INIT(BUF_MAX_TEXT), BUF_INIT(BUF_MAX_TEXT) };
	bool truncated = false;
	size_t room[2];

	share(run, room_all, room);
	for (size_t i = 0; i < 2; i++)
		truncated |= take_excerpt(run, i, room[i], &parts[i]);
	put_command_head(run, text);
	put_blocked_text(run, text);
	/* what is searched for is shown there; of failures the model wants to see the words */
	if (c->args.queries.n == 0 || result_failed(run))
		put_output_text(parts, text);
	if (result_failed(run) &&
	    (run->stop != RUN_STOP_NONE || run->failure.code || run->result.signal))
		put_end_text(run, text);
	json_begin_object(j);
	json_kstring(j, "label", run->label);
	put_run_messages(s, run, false, j);
	put_output_data(c, parts, j);
	json_kbool(j, "truncated", truncated);
	put_end_data(s, run, j);
	json_end_object(j);
	buf_done(&parts[0]);
	buf_done(&parts[1]);
}

static void put_skipped(const struct named_command *cmd, struct buf *text, struct json *j)
{
	buf_puts(text, "# ");
	text_append_safe(text, cmd->label);
	buf_puts(text, " (not started)\n");
	json_begin_object(j);
	json_kstring(j, "label", cmd->label);
	json_kbool(j, "skipped", true);
	json_end_object(j);
}

static void put_searches(struct server *s, struct call *c, struct buf *text, struct json *j)
{
	struct texts *t = arena_alloc(c->a, sizeof(*t));

	t->left = FIND_BYTES_MAX;
	for (size_t i = 0; i < c->next_run; i++)
		add_texts(c->a, t, c->runs[i]);
	if (c->args.scope && strcmp(c->args.scope, "global") == 0) {
		for (const struct run *run = s->runs; run; run = run->next) {
			bool own = false;

			for (size_t i = 0; i < c->next_run; i++)
				own |= run == c->runs[i];
			if (!own && run->label)
				add_texts(c->a, t, run);
		}
	}
	json_key(j, "matches");
	json_begin_array(j);
	for (size_t i = 0; i < c->args.queries.n; i++)
		put_places(c->a, t, c->args.queries.v[i], text, j);
	json_end_array(j);
	free_texts(t);
}

void result_batch(struct server *s, struct call *c, struct buf *text, struct json *j)
{
	_cleanup_buf_ struct buf hints = BUF_INIT(BUF_MAX_TEXT);
	size_t room = INLINE_MAX / c->n_runs, passed = 0, failed = 0;
	bool blocked = false;

	if (room < INLINE_LEAST || c->args.queries.n)
		room = INLINE_LEAST;
	for (size_t i = 0; i < c->next_run; i++) {
		if (result_failed(c->runs[i]))
			failed++;
		else
			passed++;
		blocked |= c->runs[i]->report.n_denied > 0;
	}
	c->failed = failed && (passed == 0 || c->args.stop_on_error);
	if (blocked)
		buf_puts(text, "[SANDBOX BLOCKED] in the commands below\n");
	put_hints(c->runs, c->next_run, &hints);
	buf_append(text, hints.data, hints.len);
	put_unsandboxed(s, text);
	json_begin_object(j);
	put_messages(&hints, j);
	json_key(j, "commands");
	json_begin_array(j);
	for (size_t i = 0; i < c->n_runs; i++) {
		if (i < c->next_run)
			put_command(s, c, c->runs[i], room, text, j);
		else
			put_skipped(&c->args.commands[i], text, j);
	}
	json_end_array(j);
	json_kint(j, "passed", (int64_t)passed);
	json_kint(j, "failed", (int64_t)failed);
	json_kint(j, "skipped", (int64_t)(c->n_runs - c->next_run));
	if (c->args.queries.n)
		put_searches(s, c, text, j);
	json_end_object(j);
	buf_printf(text, "[%zu passed, %zu failed, %zu not started]\n", passed, failed,
		   c->n_runs - c->next_run);
}

/* --- job_output, job_kill ------------------------------------------------------------------------- */

static void put_job_list(struct server *s, struct buf *text, struct json *j)
{
	json_begin_object(j);
	json_key(j, "jobs");
	json_begin_array(j);
	for (const struct run *run = s->runs; run; run = run->next) {
		if (!run->label)
			continue;
		buf_printf(text, "%s: %s, %" PRIu64 " bytes, ", run->id,
			   run->state == RUN_ENDED ? "ended" : "running", run_bytes(run));
		text_append_safe(text, run->label);
		buf_putc(text, '\n');
		json_begin_object(j);
		json_kstring(j, "label", run->label);
		put_end_data(s, run, j);
		json_end_object(j);
	}
	json_end_array(j);
	json_end_object(j);
	if (!text->len)
		buf_puts(text, "[no run is kept]\n");
}

/* A piece of one stream from an offset on. */
static void put_piece(const struct call *c, struct run *run, struct buf *text, struct json *j)
{
	size_t which = c->args.stream && strcmp(c->args.stream, "stderr") == 0;
	const struct spool *spool = &run->spool[which];
	struct buf parts[2] = { BUF_INIT(BUF_MAX_TEXT), BUF_INIT(BUF_MAX_TEXT) };
	_cleanup_free_ char *data = malloc(INLINE_MAX);
	size_t n;

	if (!data)
		abort();
	n = spool_read(spool, c->args.offset, data, INLINE_MAX);
	if (c->args.offset + n < spool->size || run->state != RUN_ENDED)
		n = excerpt_whole(data, n);
	buf_append(&parts[which], data, n);
	if (!c->args.stream && run->spool[1].size)
		(void)take_excerpt(run, 1, INTENT_SHOWN, &parts[1]);
	json_kint(j, "nextOffset", (int64_t)(c->args.offset + n));
	json_kbool(j, "truncated", c->args.offset + n < spool->size);
	put_output_data(c, parts, j);
	put_output_text(parts, text);
	if (c->args.offset + n < spool->size)
		buf_printf(text, "[%" PRIu64 " bytes more: offset=%" PRIu64 "]\n",
			   spool->size - c->args.offset - n, c->args.offset + n);
	buf_done(&parts[0]);
	buf_done(&parts[1]);
}

void result_output(struct server *s, struct call *c, struct buf *text, struct json *j)
{
	struct run *run;

	put_unsandboxed(s, text);
	if (!c->n_runs) {
		put_job_list(s, text, j);
		return;
	}
	run = c->runs[0];
	put_blocked_text(run, text);
	put_hints(&run, 1, text);
	json_begin_object(j);
	json_kstring(j, "label", run->label);
	put_run_messages(s, run, true, j);
	put_piece(c, run, text, j);
	put_end_data(s, run, j);
	json_end_object(j);
	put_end_text(run, text);
	if (run->state == RUN_ENDED && !run->result.exit_code && !run->failure.code &&
	    run->stop == RUN_STOP_NONE)
		buf_puts(text, "[exit code 0]\n");
}

void result_kill(struct server *s, struct call *c, struct buf *text, struct json *j)
{
	struct run *run = c->runs[0];

	put_unsandboxed(s, text);
	json_begin_object(j);
	put_run_messages(s, run, true, j);
	put_end_data(s, run, j);
	json_end_object(j);
	buf_printf(text, "job %s: ", run->id);
	put_end_text(run, text);
	if (run->state == RUN_ENDED && text->data[text->len - 1] != '\n')
		buf_printf(text, "[exit code %d]\n", exit_code(run));
}

/* --- links ----------------------------------------------------------------------------- */

void result_links(const struct call *c, struct json *j)
{
	_cleanup_arena_ struct arena *a = arena_new();

	for (size_t i = 0; c->tool->runs && i < c->next_run; i++) {
		const struct run *run = c->runs[i];

		for (size_t k = 0; k < 2; k++) {
			if (!run->cut[k])
				continue;
			json_begin_object(j);
			json_kstring(j, "type", "resource_link");
			json_kstring(j, "uri",
				     arena_printf(a, "exec://%s/%s", run->id, stream_names[k]));
			json_kstring(j, "name",
				     arena_printf(a, "%s of %s", stream_names[k], run->id));
			json_kstring(j, "mimeType", "text/plain");
			json_kint(j, "size", (int64_t)run->spool[k].size);
			json_end_object(j);
		}
	}
}
