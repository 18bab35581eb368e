/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trust: question and text are the model's and the command's; neither can make this slower than
 * one pass over FIND_BYTES_MAX bytes per question, nor make it keep more than HITS_MAX lines.
 */
#include "mcp/find.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

#define TERMS_MAX 16
#define TERM_LEN_MAX 64
#define HITS_MAX 20000
#define NEAR_LINES 3 /* hits not further apart belong together */
#define AROUND_LINES 2 /* shown before and after */
#define PLACE_LINES_MAX 12

struct term {
	char text[TERM_LEN_MAX]; /* lower case */
	size_t len;
	size_t lines; /* that hold it */
	unsigned weight;
};

struct hit {
	size_t which, line, offset;
	uint32_t terms;
};

struct search {
	struct term terms[TERMS_MAX];
	size_t n_terms;
	uint32_t starting[256]; /* by first byte: the terms that begin so */
	struct hit *hits;
	size_t n_hits, n_lines;
};

static bool is_word(char c)
{
	return ascii_alnum(c) || c == '_' || (unsigned char)c >= 0x80;
}

static bool is_common(const char *word)
{
	static const char *const common[] = { "the",  "and",  "for",  "are",  "was",
					      "with", "that", "this", "of",   "to",
					      "in",   "is",   "it",   "on",   "any",
					      "all",  "or",   "an",   "find", "show",
					      "what", "how",  "get",  "list", "output" };

	for (size_t i = 0; i < ARRAY_LEN(common); i++) {
		if (strcmp(word, common[i]) == 0)
			return true;
	}
	return false;
}

static void add_term(struct search *s, const char *word, size_t len)
{
	struct term *t = &s->terms[s->n_terms];

	if (s->n_terms == TERMS_MAX || len < 2 || len >= TERM_LEN_MAX)
		return;
	for (size_t i = 0; i < len; i++)
		t->text[i] = ascii_lower(word[i]);
	t->text[len] = '\0';
	t->len = len;
	for (size_t i = 0; i < s->n_terms; i++) {
		if (strcmp(s->terms[i].text, t->text) == 0)
			return;
	}
	s->starting[(unsigned char)t->text[0]] |= 1u << s->n_terms;
	s->n_terms++;
}

/* Common words count only where the question has no other. */
static void read_terms(struct search *s, const char *query)
{
	for (int common = 0; common < 2 && s->n_terms == 0; common++) {
		for (const char *q = query; *q;) {
			char word[TERM_LEN_MAX] = { 0 };
			size_t len = 0;

			while (is_word(q[len]))
				len++;
			for (size_t i = 0; i < len && i + 1 < sizeof(word); i++)
				word[i] = ascii_lower(q[i]);
			if (len && (common || !is_common(word)))
				add_term(s, q, len);
			q += len ? len : 1;
		}
	}
}

static bool stands_at(const struct term *t, const char *p, const char *end)
{
	if ((size_t)(end - p) < t->len)
		return false;
	for (size_t i = 1; i < t->len; i++) {
		if (ascii_lower(p[i]) != t->text[i])
			return false;
	}
	return true;
}

static uint32_t terms_in(const struct search *s, const char *line, const char *end)
{
	uint32_t found = 0;

	for (const char *p = line; p < end; p++) {
		uint32_t may = s->starting[(unsigned char)ascii_lower(*p)] & ~found;

		for (size_t i = 0; may; i++, may >>= 1) {
			if ((may & 1) && stands_at(&s->terms[i], p, end))
				found |= 1u << i;
		}
	}
	return found;
}

static void scan(struct arena *a, struct search *s, const struct find_text *t, size_t which,
		 size_t limit)
{
	const char *p = t->text, *end = p + (t->len < limit ? t->len : limit);

	for (size_t line = 1; p < end; line++) {
		const char *stop = memchr(p, '\n', (size_t)(end - p));
		uint32_t terms = terms_in(s, p, stop ? stop : end);

		for (size_t i = 0; i < s->n_terms; i++)
			s->terms[i].lines += terms >> i & 1;
		if (terms && s->n_hits < HITS_MAX)
			*ARENA_PUSH(a, s->hits, s->n_hits) =
				(struct hit){ which, line, (size_t)(p - t->text), terms };
		s->n_lines++;
		p = stop ? stop + 1 : end;
	}
}

/* The rarer, the heavier: about the logarithm of how many lines there are to one with the term. */
static void weigh(struct search *s)
{
	for (size_t i = 0; i < s->n_terms; i++) {
		struct term *t = &s->terms[i];

		t->weight = 2;
		for (size_t n = t->lines ? s->n_lines / t->lines : 0; n > 1; n /= 2)
			t->weight += 2;
	}
}

static unsigned score_of(const struct search *s, const struct hit *first, const struct hit *last)
{
	unsigned score = 0, best = 0;
	uint32_t all = 0;

	for (const struct hit *h = first; h <= last; h++) {
		unsigned line = 0;

		all |= h->terms;
		for (size_t i = 0; i < s->n_terms; i++)
			line += h->terms >> i & 1 ? s->terms[i].weight : 0;
		best = line > best ? line : best;
	}
	for (size_t i = 0; i < s->n_terms; i++)
		score += all >> i & 1 ? s->terms[i].weight : 0;
	/* words on one line mean more than the same words near each other */
	return 4 * score + 4 * best + (last - first < 3 ? (unsigned)(last - first) : 3);
}

/* The span of the hits with some lines around them. */
static void show(const struct find_text *t, const struct hit *first, const struct hit *last,
		 struct find_match *m)
{
	const char *start = t->text + first->offset, *end = t->text + last->offset;
	const char *stop = t->text + t->len;
	size_t lines = last->line - first->line + 1;

	m->line = first->line;
	for (size_t i = 0; i < AROUND_LINES && start > t->text; i++) {
		for (start--; start > t->text && start[-1] != '\n'; start--)
			;
		m->line--;
		lines++;
	}
	if (lines > PLACE_LINES_MAX) {
		end = start;
		for (size_t i = 1; i < PLACE_LINES_MAX && memchr(end, '\n', (size_t)(stop - end));
		     i++)
			end = (const char *)memchr(end, '\n', (size_t)(stop - end)) + 1;
	}
	for (size_t i = 0; i <= AROUND_LINES; i++) {
		const char *next = memchr(end, '\n', (size_t)(stop - end));

		end = next ? next : stop;
		if (end == stop || i == AROUND_LINES || lines + i >= PLACE_LINES_MAX)
			break;
		end++;
	}
	if (end > start && end[-1] == '\n')
		end--;
	m->text = start;
	m->len = (size_t)(end - start);
}

/* Keep the best, in order; among equals the earlier one. */
static void keep(struct find_matches *ret, size_t most, const struct find_match *m)
{
	size_t at = ret->n;

	while (at > 0 && ret->v[at - 1].score < m->score)
		at--;
	if (at >= most)
		return;
	if (ret->n < most)
		ret->n++;
	memmove(&ret->v[at + 1], &ret->v[at], (ret->n - 1 - at) * sizeof(*ret->v));
	ret->v[at] = *m;
}

void find_places(struct arena *a, const struct find_text *texts, size_t n, const char *query,
		 size_t most, struct find_matches *ret)
{
	struct search s = { 0 };
	size_t left = FIND_BYTES_MAX;

	*ret = (struct find_matches){ 0 };
	read_terms(&s, query);
	if (s.n_terms == 0 || most == 0)
		return;
	ret->v = arena_array(a, most, sizeof(*ret->v));
	for (size_t i = 0; i < n && left; i++) {
		scan(a, &s, &texts[i], i, left);
		left -= texts[i].len < left ? texts[i].len : left;
	}
	weigh(&s);
	for (size_t i = 0, last; i < s.n_hits; i = last + 1) {
		struct find_match m = { .which = s.hits[i].which };

		for (last = i; last + 1 < s.n_hits && s.hits[last + 1].which == m.which &&
			       s.hits[last + 1].line - s.hits[last].line <= NEAR_LINES &&
			       s.hits[last + 1].line - s.hits[i].line < PLACE_LINES_MAX;)
			last++;
		m.score = score_of(&s, &s.hits[i], &s.hits[last]);
		show(&texts[m.which], &s.hits[i], &s.hits[last], &m);
		keep(ret, most, &m);
	}
}
