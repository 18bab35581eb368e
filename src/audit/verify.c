/* SPDX-License-Identifier: Apache-2.0 */
/*
 * First all lines are read and hashed, then judged together: a line is vouched for by the line
 * after it (or by the head, if it is the last), which holds its hash. So when the link
 * between two lines is broken, the one that nobody vouches for is the one that was
 * changed.
 */
#include "audit/verify.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_read.h"
#include "base/text.h"

struct entry {
	uint64_t seq; /* 0 = not a line of a log */
	uint64_t number; /* in its file */
	const char *file;
	char prev[SHA256_HEX_LEN + 1], hash[SHA256_HEX_LEN + 1];
	bool torn; /* no line break, and the head does not reach that far */
};

struct verifier {
	struct arena *a;
	const struct snapshot *s;
	struct verify_result *out;
	struct entry *v;
	size_t n;
	const struct entry **by_seq;
	size_t n_by_seq;
};

const char *verify_kind_name(enum verify_kind k)
{
	static const char *const names[] = {
		[VERIFY_CHANGED] = "changed",     [VERIFY_MISSING] = "missing",
		[VERIFY_ORDER] = "reordered",     [VERIFY_TORN] = "torn",
		[VERIFY_TRUNCATED] = "truncated", [VERIFY_HEAD] = "head",
	};

	return names[k];
}

static void add_problem(struct verifier *v, enum verify_kind kind, const char *file, uint64_t line,
			const char *text)
{
	struct verify_result *out = v->out;

	if (out->n_problems >= VERIFY_PROBLEMS_MAX)
		return;
	/* one line, one word about it */
	if (out->n_problems > 0 && line) {
		const struct verify_problem *last = &out->problems[out->n_problems - 1];

		if (last->line == line && strcmp(last->file, file) == 0 && last->kind == kind)
			return;
	}
	*ARENA_PUSH(v->a, out->problems, out->n_problems) =
		(struct verify_problem){ kind, file, line, text };
}

static void add_changed(struct verifier *v, const struct entry *e)
{
	add_problem(
		v, VERIFY_CHANGED, e->file, e->number,
		e->seq ? arena_printf(v->a, "record %" PRIu64 " is not what was written", e->seq)
		       : "not a record of this log");
}

static void add_note(struct verifier *v, const char *text)
{
	*ARENA_PUSH(v->a, v->out->notes, v->out->n_notes) = text;
}

static const char *text_of(struct verifier *v, const struct json_span *object, const char *key)
{
	_cleanup_buf_ struct buf b = BUF_INIT(SNAPSHOT_LINE_MAX);
	struct json_span value;

	if (!json_find(object, key, &value))
		return "";
	json_unquote(&value, &b);
	return arena_strdup(v->a, buf_str(&b));
}

/* What the log itself tells of accidents. */
static void note_accident(struct verifier *v, const struct json_span *object,
			  const struct chain_line *l, const struct entry *e)
{
	bool repair = strcmp(l->event, "repair") == 0;

	/* nothing else remembers it: the chain goes on from whatever was left */
	if (repair && strcmp(text_of(v, object, "problem"), "head") == 0) {
		add_problem(v, VERIFY_HEAD, e->file, e->number,
			    "it was missing or not what was written when this record was added: "
			    "whether records are missing before it cannot be said");
		return;
	}
	if ((!repair && strcmp(l->event, "lost") != 0) || v->out->n_notes >= VERIFY_PROBLEMS_MAX)
		return;
	if (repair && strcmp(text_of(v, object, "problem"), "torn") == 0)
		add_note(v, arena_printf(v->a,
					 "before record %" PRIu64
					 " a record was cut short: its writer was killed or the "
					 "disk was full; what there was of it is in that record",
					 l->seq));
	else if (repair)
		add_note(v,
			 arena_printf(v->a,
				      "at record %" PRIu64 " a writer found the log damaged (%s)",
				      l->seq, text_of(v, object, "problem")));
	else
		add_note(v, arena_printf(v->a,
					 "before record %" PRIu64
					 " %s records could not be written: %s",
					 l->seq, text_of(v, object, "count"),
					 text_of(v, object, "reason")));
}

static int take_line(void *ctx, const struct snapshot_line *line)
{
	struct verifier *v = ctx;
	bool present = v->s->has_present && line->file == &v->s->v[v->s->n - 1];
	struct entry *e = ARENA_PUSH(v->a, v->v, v->n);
	struct json_span object;
	struct chain_line l;

	e->file = line->file->name;
	e->number = line->number;
	sha256_hex(line->text, line->len, e->hash);
	if (!line->whole) {
		e->torn = present && v->s->head_state == SNAPSHOT_HEAD_OK &&
			  line->offset >= v->s->head.size;
		return 0;
	}
	if (!chain_parse(line->text, line->len, &l) ||
	    json_parse(line->text, line->len, &object) < 0)
		return 0;
	e->seq = l.seq;
	memcpy(e->prev, l.prev, sizeof(e->prev));
	note_accident(v, &object, &l, e);
	return 0;
}

static int compare_seq(const void *a, const void *b)
{
	const struct entry *x = *(const struct entry *const *)a,
			   *y = *(const struct entry *const *)b;

	/* of several with one number, in the order in which they lie there */
	return x->seq == y->seq ? (x > y) - (x < y) : x->seq < y->seq ? -1 : 1;
}

static void index_lines(struct verifier *v)
{
	v->by_seq = arena_array(v->a, v->n + 1, sizeof(*v->by_seq));
	for (size_t i = 0; i < v->n; i++) {
		if (v->v[i].seq)
			v->by_seq[v->n_by_seq++] = &v->v[i];
	}
	if (v->n_by_seq)
		qsort(v->by_seq, v->n_by_seq, sizeof(*v->by_seq), compare_seq);
}

/* The first of the lines with this number, in by_seq; n_by_seq when there is none. */
static size_t find_seq(const struct verifier *v, uint64_t seq)
{
	size_t lo = 0, hi = v->n_by_seq;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (v->by_seq[mid]->seq < seq)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < v->n_by_seq && v->by_seq[lo]->seq == seq ? lo : v->n_by_seq;
}

/* Does the line after it, or the head, hold its hash? */
static bool is_vouched(const struct verifier *v, const struct entry *e)
{
	if (v->s->head_state == SNAPSHOT_HEAD_OK && e->seq == v->s->head.seq &&
	    strcmp(e->hash, v->s->head.hash) == 0)
		return true;
	for (size_t i = find_seq(v, e->seq + 1); i < v->n_by_seq && v->by_seq[i]->seq == e->seq + 1;
	     i++) {
		if (strcmp(v->by_seq[i]->prev, e->hash) == 0)
			return true;
	}
	return false;
}

static void add_missing(struct verifier *v, const struct entry *before, uint64_t from, uint64_t to)
{
	bool elsewhere = find_seq(v, from) < v->n_by_seq;
	const char *text =
		from == to ? arena_printf(v->a, "record %" PRIu64, from)
			   : arena_printf(v->a, "records %" PRIu64 " to %" PRIu64, from, to);

	if (elsewhere)
		add_problem(v, VERIFY_ORDER, before->file, before->number,
			    arena_printf(v->a, "%s should stand before this line", text));
	else
		add_problem(v, VERIFY_MISSING, before->file, before->number,
			    arena_printf(v->a, "%s should stand before this line and %s not there",
					 text, from == to ? "is" : "are"));
}

/* What the walk knows of the line before. */
struct walk {
	const struct entry *last; /* NULL = none, or it was no line of a log */
	uint64_t seq; /* of the line before, 0 = none yet */
	bool known; /* last->hash can be compared */
};

/* The number is not the next one. True when the line is nevertheless the next. */
static bool judge_number(struct verifier *v, struct walk *w, const struct entry *e,
			 const struct entry *after)
{
	/* its number was changed: its neighbours fit, or it claims the right predecessor */
	if ((w->known && strcmp(e->prev, w->last->hash) == 0) ||
	    (!is_vouched(v, e) && after && after->seq == w->seq + 2)) {
		add_changed(v, e);
		return true;
	}
	if (e->seq > w->seq + 1) {
		add_missing(v, e, w->seq + 1, e->seq - 1);
		w->seq = e->seq - 1;
		w->known = false;
		return true;
	}
	add_problem(v, VERIFY_ORDER, e->file, e->number,
		    arena_printf(v->a, "record %" PRIu64 " does not belong here", e->seq));
	return false;
}

/* Nothing stands before the oldest line: its number is held against the head and the next line. */
static void judge_first(struct verifier *v, struct walk *w, const struct entry *e,
			const struct entry *after)
{
	uint64_t first = v->s->head_state == SNAPSHOT_HEAD_OK ? v->s->head.first : e->seq;

	w->seq = e->seq;
	if (e->seq != first && after && after->seq == first + 1 && !is_vouched(v, e)) {
		w->seq = first;
		add_changed(v, e);
	} else if (e->seq == 1 && strcmp(e->prev, chain_origin) != 0) {
		add_changed(v, e);
	}
	v->out->first = w->seq;
	w->last = e;
	w->known = true;
}

static void judge_line(struct verifier *v, struct walk *w, const struct entry *e,
		       const struct entry *after)
{
	if (!w->seq && e->seq) {
		judge_first(v, w, e, after);
		return;
	}
	if (!e->seq) {
		add_changed(v, e);
		/* it may have been one; the next line tells */
		if (after && after->seq == w->seq + 2) {
			w->seq++;
			v->out->first = v->out->first ? v->out->first : w->seq;
		}
		w->known = false;
		return;
	}
	if (e->seq != w->seq + 1 && !judge_number(v, w, e, after))
		return;
	if (w->known && strcmp(e->prev, w->last->hash) != 0)
		add_changed(v, is_vouched(v, e) ? w->last : e);
	w->seq++;
	w->last = e;
	w->known = true;
}

static const struct entry *judge_lines(struct verifier *v)
{
	struct walk w = { 0 };

	for (size_t i = 0; i < v->n; i++) {
		const struct entry *e = &v->v[i];

		if (e->torn)
			add_problem(v, VERIFY_TORN, e->file, e->number,
				    "cut short: its writer was killed or the disk was full; the "
				    "next run closes it off");
		else
			judge_line(v, &w, e, i + 1 < v->n ? &v->v[i + 1] : NULL);
	}
	v->out->last = w.seq;
	return w.last;
}

/* The end of the log against the head. */
static void judge_end(struct verifier *v, const struct entry *last)
{
	const struct chain_head *h = &v->s->head;
	const char *present = v->s->n ? v->s->v[v->s->n - 1].name : v->s->head_name;
	uint64_t end = v->out->last;

	if (end < h->seq)
		add_problem(v, VERIFY_TRUNCATED, present, 0,
			    arena_printf(v->a,
					 "the log ends at record %" PRIu64 ", %" PRIu64
					 " were written",
					 end, h->seq));
	else if (end > h->seq)
		add_note(v, arena_printf(v->a,
					 "the last %" PRIu64 " records are not in the head yet: "
					 "their writer was killed",
					 end - h->seq));
	else if (last && strcmp(last->hash, h->hash) != 0)
		add_changed(v, last);
}

static void judge_head(struct verifier *v, const struct entry *last)
{
	static const char *const texts[] = {
		[SNAPSHOT_HEAD_MISSING] = "not there",
		[SNAPSHOT_HEAD_BAD] = "not what was written",
		[SNAPSHOT_HEAD_EMPTY] = "empty",
	};
	const struct chain_head *h = &v->s->head;

	/* its first writer has not come to it yet, or was killed */
	if (v->s->head_state == SNAPSHOT_HEAD_EMPTY && v->n == 0)
		return;
	if (v->s->head_state != SNAPSHOT_HEAD_OK) {
		add_problem(
			v, VERIFY_HEAD, v->s->head_name, 0,
			arena_printf(v->a,
				     "%s: whether records are missing at the end cannot be said",
				     texts[v->s->head_state]));
		return;
	}
	if (v->out->first > h->first)
		add_problem(v, VERIFY_MISSING, v->v[0].file, 1,
			    arena_printf(v->a,
					 "records %" PRIu64 " to %" PRIu64
					 " should stand before this line and are not there",
					 h->first, v->out->first - 1));
	judge_end(v, last);
}

/* What no record tells yet. */
static void note_lost(struct verifier *v)
{
	const struct chain_lost *lost = &v->s->lost;

	if (lost->count)
		add_note(v, arena_printf(v->a,
					 "after record %" PRIu64 ", since %s, %" PRIu64
					 " records could not be written: %s",
					 v->out->last, lost->since, lost->count,
					 strerror(lost->code)));
}

int audit_verify(struct arena *a, const struct snapshot *s, struct verify_result *ret,
		 struct error *e)
{
	struct verifier v = { .a = a, .s = s, .out = ret };
	const struct entry *last;
	int r;

	*ret = (struct verify_result){ .files = s->n };
	r = snapshot_each(s, take_line, &v, e);
	if (r < 0)
		return r;
	index_lines(&v);
	ret->records = v.n_by_seq;
	last = judge_lines(&v);
	judge_head(&v, last);
	note_lost(&v);
	return 0;
}
