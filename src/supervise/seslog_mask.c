/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hostile: the text is the command's. A secret is looked for in the text as it is read on the
 * screen: the sequences are taken out, the rest is masked by redact.h, and the sequences are
 * woven in again. What is written is always the masked text with sequences between its
 * characters; a wrong guess about where one belongs can misplace it, not uncover anything.
 *
 * What a begun line may still become is found by trying: it is masked with more text behind it.
 */
#include "supervise/seslog_mask.h"

#include <string.h>

#include "audit/redact.h"
#include "audit/redact_names.h"

#define MASKED_MAX ((size_t)256 << 10)
#define HOLD_MAX 2304 /* a word longer than this is cut; the first part of a JWT is shorter */
#define KNOWN_STEP 1024 /* in which the beginning of a secret is looked for */
#define TOKEN_MAX 256 /* that is not cut though it is none, for what stands before it */
#define STEP_BACK 64 /* about a token's length, up to where it is known for one */

#define ESC '\x1b'
#define BEL '\a'
#define CAN '\x18'
#define SUB '\x1a'
#define SO '\x0e' /* another character set, and back: colours of some terminals end with it */
#define SI '\x0f'

enum escape {
	ESCAPE_STYLE, /* stands between two characters */
	ESCAPE_MOVE, /* the next character is elsewhere */
	ESCAPE_PART, /* its end has not come */
};

enum moves {
	MOVES_NOTHING,
	MOVES_BLANK, /* what is moved over counts as a blank */
};

/* --- sequences -------------------------------------------------------------------------- */

static bool is_between(char c, char low, char high)
{
	return c >= low && c <= high;
}

/* ESC [ 01;31 m */
static size_t control_len(const char *s, size_t n, enum escape *ret)
{
	size_t i = 2;

	while (i < n && is_between(s[i], ' ', '?'))
		i++;
	if (i == n)
		*ret = ESCAPE_PART;
	else if (is_between(s[i], '@', '~'))
		*ret = strchr("ABCDEFGHIJSTZ`adefrsu", s[i++]) ? ESCAPE_MOVE : ESCAPE_STYLE;
	return i;
}

/* ESC ] title BEL: what is in it is no text. One without an end is not taken for such. */
static size_t string_len(const char *s, size_t n, enum escape *ret)
{
	size_t i = 2;

	while (i < n && s[i] != BEL && s[i] != ESC && s[i] != CAN && s[i] != SUB)
		i++;
	if (i == n || (s[i] == ESC && i + 1 == n))
		*ret = ESCAPE_PART;
	else if (s[i] != ESC)
		return i + 1;
	else if (s[i + 1] == '\\')
		return i + 2;
	return 2;
}

/* ESC ( B and the like: bytes in between, then the last one */
static size_t short_len(const char *s, size_t n, enum escape *ret)
{
	size_t i = s[1] == 'N' || s[1] == 'O' ? 2 : 1; /* ESC O A is a key */

	while (i < n && is_between(s[i], ' ', '/'))
		i++;
	if (i == n)
		*ret = ESCAPE_PART;
	else if (is_between(s[i], '0', '~'))
		i++;
	return i;
}

/* Length of the sequence that the text begins with; 0 = it is a character. */
static size_t escape_len(const char *s, size_t n, enum escape *ret)
{
	*ret = ESCAPE_STYLE;
	if (n == 0 || (s[0] != ESC && s[0] != SO && s[0] != SI))
		return 0;
	if (s[0] != ESC)
		return 1;
	if (n == 1) {
		*ret = ESCAPE_PART;
		return 1;
	}
	if (s[1] == '[')
		return control_len(s, n, ret);
	if (strchr("]PX^_", s[1]) && s[1])
		return string_len(s, n, ret);
	return short_len(s, n, ret);
}

static bool has_escapes(const char *s, size_t n)
{
	return n > 0 && (memchr(s, ESC, n) || memchr(s, SO, n) || memchr(s, SI, n));
}

/* True when some of the sequences were moves. */
static bool strip(const char *s, size_t n, enum moves moves, struct buf *out)
{
	bool moved = false;

	for (size_t i = 0; i < n;) {
		enum escape kind;
		size_t len = escape_len(s + i, n - i, &kind);

		if (len == 0)
			buf_putc(out, s[i]);
		else if (kind == ESCAPE_MOVE && moves == MOVES_BLANK)
			buf_putc(out, ' ');
		moved |= len > 0 && kind == ESCAPE_MOVE;
		i += len ? len : 1;
	}
	return moved;
}

void seslog_strip(const char *s, size_t n, struct buf *out)
{
	(void)strip(s, n, MOVES_NOTHING, out);
}

/* --- masking ---------------------------------------------------------------------------- */

/* The text with its sequences, as it is woven into the masked text. */
struct weave {
	const char *s;
	size_t n, i;
	enum moves moves;
	struct buf *out; /* NULL = what is passed is left out */
};

/* Titles and links are text of their own, with secrets of their own. */
static void pass_escapes(struct weave *w, struct buf *out)
{
	enum escape kind;
	size_t len;

	while ((len = escape_len(w->s + w->i, w->n - w->i, &kind)) > 0) {
		if (kind == ESCAPE_MOVE && w->moves == MOVES_BLANK)
			return;
		if (out)
			redact_text(w->s + w->i, len, out);
		w->i += len;
	}
}

/* One character of the text; where it is a move, that is written in place of the blank. */
static void pass_character(struct weave *w, char c, struct buf *out)
{
	enum escape kind;
	size_t len;

	pass_escapes(w, out);
	len = escape_len(w->s + w->i, w->n - w->i, &kind);
	if (out && len > 0 && c == ' ')
		buf_append(out, w->s + w->i, len);
	else if (out)
		buf_putc(out, c);
	if (w->i < w->n)
		w->i += len ? len : 1;
}

static bool is_mask(const struct buf *b, size_t i)
{
	return b->len >= i + strlen(REDACTED) &&
	       memcmp(b->data + i, REDACTED, strlen(REDACTED)) == 0;
}

/* Where the text goes on that follows the mask: what is between two masks is found again. */
static size_t find_again(const struct buf *text, size_t i, const struct buf *masked, size_t from)
{
	const char *next = from < masked->len ? memmem(masked->data + from, masked->len - from,
						       REDACTED, strlen(REDACTED))
					      : NULL;
	size_t len = next ? (size_t)(next - masked->data) - from : masked->len - from;
	const char *hit;

	if (!next)
		return text->len > i + len ? text->len - len : i;
	hit = i < text->len ? memmem(text->data + i, text->len - i, masked->data + from, len)
			    : NULL;
	return hit ? (size_t)(hit - text->data) : i;
}

static void weave(struct weave *w, const struct buf *text, const struct buf *masked)
{
	for (size_t i = 0, j = 0; j < masked->len;) {
		size_t to;

		if (!is_mask(masked, j) || is_mask(text, i)) {
			pass_character(w, masked->data[j++], w->out);
			i++;
			continue;
		}
		pass_escapes(w, w->out);
		buf_puts(w->out, REDACTED);
		j += strlen(REDACTED);
		for (to = find_again(text, i, masked, j); i < to; i++)
			pass_character(w, '\0', NULL);
	}
	pass_escapes(w, w->out);
}

/* Were there moves? */
static bool mask_around(const char *s, size_t n, enum moves moves, struct buf *out)
{
	_cleanup_buf_ struct buf text = BUF_INIT(MASKED_MAX), masked = BUF_INIT(MASKED_MAX);
	struct weave w = { .s = s, .n = n, .moves = moves, .out = out };
	bool moved = strip(s, n, moves, &text);

	redact_text(buf_str(&text), text.len, &masked);
	weave(&w, &text, &masked);
	return moved;
}

/* A move is a blank between two words, or nothing, in the middle of one: both are tried. */
void seslog_mask(const char *s, size_t n, struct buf *out)
{
	_cleanup_buf_ struct buf once = BUF_INIT(MASKED_MAX);

	if (!has_escapes(s, n))
		redact_text(s, n, out);
	else if (mask_around(s, n, MOVES_BLANK, &once))
		(void)mask_around(buf_str(&once), once.len, MOVES_NOTHING, out);
	else
		buf_append(out, buf_str(&once), once.len);
}

/* --- lines that go on --------------------------------------------------------------------- */

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

/* Where the last word begins; n = the text ends with a blank. */
static size_t last_word(const char *s, size_t n)
{
	while (n > 0 && !is_blank(s[n - 1]))
		n--;
	return n;
}

/* Without a sequence of which the end is still to come. */
static size_t whole_escapes(const char *s, size_t n)
{
	if (!has_escapes(s, n))
		return n;
	for (size_t i = 0; i < n;) {
		enum escape kind;
		size_t len = escape_len(s + i, n - i, &kind);

		if (len > 0 && kind == ESCAPE_PART && n - i <= HOLD_MAX)
			return i;
		i += len ? len : 1;
	}
	return n;
}

static bool begins_with(const struct buf *b, const struct buf *start)
{
	return b->len >= start->len && memcmp(buf_str(b), buf_str(start), start->len) == 0;
}

/* Would more of the same word make a secret of what is there? */
static bool is_begun_secret(const char *s, size_t n)
{
	static const char *const more[] = {
		"00000000000000000000000000000000000000000000000000@0", /* tokens, URLs */
		"0000000000.eyJ0",
		".eyJ0",
		"eyJ0",
		"yJ0",
		"J0", /* JWTs */
	};
	_cleanup_buf_ struct buf now = BUF_INIT(MASKED_MAX);
	bool jwt = memmem(s, n, "eyJ", 3) != NULL;

	seslog_mask(s, n, &now);
	for (size_t i = 0; i < (jwt ? ARRAY_LEN(more) : 1); i++) {
		_cleanup_buf_ struct buf grown = BUF_INIT(MASKED_MAX),
					 masked = BUF_INIT(MASKED_MAX);

		buf_append(&grown, s, n);
		buf_puts(&grown, more[i]);
		seslog_mask(grown.data, grown.len, &masked);
		if (!begins_with(&masked, &now))
			return true;
	}
	return false;
}

/* Does a token reach over the place? Whatever stands before it: a cut makes no two halves. */
static size_t before_token(const char *s, size_t at, size_t n)
{
	size_t far = at > TOKEN_MAX ? at - TOKEN_MAX : 0, prefix;

	for (size_t i = at; i > far; i--) {
		if (redact_known_token(s + i - 1, n - i + 1, &prefix) > at - i + 1)
			at = i - 1;
	}
	return at;
}

/* Is what stands before the place masked alike, whether the rest is there or not? */
static bool is_place(const char *s, size_t at, size_t n)
{
	_cleanup_buf_ struct buf all = BUF_INIT(MASKED_MAX), start = BUF_INIT(MASKED_MAX);
	size_t from = at > HOLD_MAX ? at - HOLD_MAX : 0; /* no further is looked from one place */

	seslog_mask(s + from, n - from, &all);
	seslog_mask(s + from, at - from, &start);
	return begins_with(&all, &start);
}

/* One long word: far enough before its end that every token which begins there is known. */
static size_t cut_word(const char *s, size_t shown, size_t n)
{
	size_t last = n - shown > HOLD_MAX ? n - HOLD_MAX : n, at = last;

	while (at > shown + STEP_BACK && last - at < HOLD_MAX) {
		at = before_token(s, at, n);
		if (at > shown && is_place(s, at, n))
			return at;
		at -= at > STEP_BACK ? STEP_BACK : at;
	}
	return last;
}

size_t seslog_settled(const char *s, size_t n)
{
	size_t whole = whole_escapes(s, n), word = last_word(s, whole);
	size_t from = whole > HOLD_MAX ? whole - HOLD_MAX : 0;

	if (word == whole || !is_begun_secret(s + from, whole - from))
		return whole;
	return whole - word <= HOLD_MAX ? word : cut_word(s, word, whole);
}

size_t seslog_cut(const char *s, size_t shown, size_t n)
{
	size_t word = last_word(s, n);

	return word > shown + (n - shown) / 2 ? word : cut_word(s, shown, n);
}

size_t seslog_secret_known(const char *s, size_t n)
{
	_cleanup_buf_ struct buf all = BUF_INIT(MASKED_MAX);

	seslog_mask(s, n, &all);
	for (size_t len = KNOWN_STEP; len < n; len += KNOWN_STEP) {
		_cleanup_buf_ struct buf masked = BUF_INIT(MASKED_MAX);

		seslog_mask(s, len, &masked);
		if (masked.len == all.len && begins_with(&all, &masked))
			return len;
	}
	return n;
}
