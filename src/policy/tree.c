/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Settings text to tree, by libyaml's events. The text may come from a hostile
 * project: what YAML offers to make a small text large or its meaning hidden
 * (anchors, aliases, tags, several documents, duplicate keys) is refused, depth
 * and size are bounded.
 *
 * JSON is close enough to YAML's flow style. Its comments are not: in a text that begins
 * with '{' they are overwritten with spaces first, so that positions stay right.
 */
#include "policy/tree.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <yaml.h>

#include "base/text.h"

#define STAR_NEEDS_QUOTES "aliases are not accepted: what begins with * must be quoted"

struct reader {
	struct arena *a;
	const char *name;
	const char *text;
	size_t len;
	size_t lines_before; /* of the stream that the text is a part of */
	yaml_parser_t yaml;
	yaml_event_t event; /* the current one; ours to delete */
	struct error *e;
};

static int fail(const struct reader *r, yaml_mark_t at, const char *what)
{
	return error_set(r->e, EINVAL, "%s:%zu:%zu: %s", r->name, at.line + 1, at.column + 1, what);
}

static yaml_mark_t mark_of_offset(const struct reader *r, size_t offset)
{
	yaml_mark_t m = { .line = r->lines_before };

	for (size_t i = 0; i < offset && i < r->len; i++) {
		m.column++;
		if (r->text[i] == '\n') {
			m.line++;
			m.column = 0;
		}
	}
	return m;
}

/* libyaml ends the last line if the text does not: what is missing there is not in the next one. */
static yaml_mark_t in_text(const struct reader *r, yaml_mark_t at)
{
	yaml_mark_t end = mark_of_offset(r, r->len);
	size_t characters = 0;

	for (size_t i = 0; i < r->len; i++)
		characters += ((unsigned char)r->text[i] & 0xc0) != 0x80;
	return at.index >= characters && at.line > end.line ? end : at;
}

static int fail_yaml(const struct reader *r)
{
	const yaml_parser_t *y = &r->yaml;
	const char *what = y->problem ? y->problem : "cannot be read";
	yaml_mark_t at = in_text(r, y->problem_mark);

	if (y->error == YAML_READER_ERROR)
		return fail(r, mark_of_offset(r, y->problem_offset), what);
	/* *.example.com */
	if (y->context && strstr(y->context, "alias"))
		return fail(r, y->context_mark, STAR_NEEDS_QUOTES);
	if (!y->context)
		return fail(r, at, what);
	return error_set(r->e, EINVAL, "%s:%zu:%zu: %s (%s that begins in line %zu)", r->name,
			 at.line + 1, at.column + 1, what, y->context,
			 in_text(r, y->context_mark).line + 1);
}

static int next_event(struct reader *r)
{
	yaml_event_delete(&r->event);
	return yaml_parser_parse(&r->yaml, &r->event) ? 0 : fail_yaml(r);
}

static bool one_of(const char *text, const char *a, const char *b, const char *c)
{
	return strcmp(text, a) == 0 || strcmp(text, b) == 0 || strcmp(text, c) == 0;
}

static bool is_number(const char *s)
{
	size_t digits;

	if (*s == '-')
		s++;
	digits = strspn(s, "0123456789");
	s += digits;
	if (*s == '.') {
		size_t more = strspn(s + 1, "0123456789");

		digits += more;
		s += 1 + more;
	}
	if (digits && (*s == 'e' || *s == 'E')) {
		s++;
		if (*s == '+' || *s == '-')
			s++;
		digits = strspn(s, "0123456789");
		s += digits;
	}
	return digits > 0 && *s == '\0';
}

/* "~" is null in YAML, but here it is a path. */
static enum node_kind kind_of_plain(const char *text)
{
	if (one_of(text, "", "null", "Null"))
		return NODE_NULL;
	if (one_of(text, "true", "True", "TRUE") || one_of(text, "false", "False", "FALSE"))
		return NODE_BOOL;
	return is_number(text) ? NODE_NUMBER : NODE_STRING;
}

static int read_scalar(const struct reader *r, struct node *n)
{
	const yaml_event_t *ev = &r->event;
	const char *text = (const char *)ev->data.scalar.value;
	size_t len = ev->data.scalar.length;

	if (ev->data.scalar.anchor || ev->data.scalar.tag)
		return fail(r, ev->start_mark, "anchors and tags are not accepted");
	if (memchr(text, '\0', len))
		return fail(r, ev->start_mark, "a NUL byte in a string");
	n->text = arena_strndup(r->a, text, len);
	n->kind = ev->data.scalar.style == YAML_PLAIN_SCALAR_STYLE ? kind_of_plain(n->text)
								   : NODE_STRING;
	return 0;
}

static int read_node(struct reader *r, unsigned depth, struct node *n);

static int read_key(struct reader *r, const struct node *map, struct node *n)
{
	struct node key = { 0 };
	int q;

	if (r->event.type != YAML_SCALAR_EVENT)
		return fail(r, r->event.start_mark, "a key must be a word");
	q = read_scalar(r, &key);
	if (q < 0)
		return q;
	if (map->n >= TREE_KEYS_MAX)
		return fail(r, r->event.start_mark, "too many keys in one object");
	for (size_t i = 0; i < map->n; i++) {
		if (strcmp(map->v[i].key, key.text) == 0)
			return error_set(
				r->e, EINVAL, "%s:%zu:%zu: %s: given twice (first in line %u)",
				r->name, r->event.start_mark.line + 1,
				r->event.start_mark.column + 1, key.text, map->v[i].key_line);
	}
	n->key = key.text;
	n->key_line = (unsigned)r->event.start_mark.line + 1;
	n->key_column = (unsigned)r->event.start_mark.column + 1;
	return 0;
}

/* Elements up to the end event, each after its key in a mapping. */
static int read_children(struct reader *r, unsigned depth, struct node *n)
{
	yaml_event_type_t end =
		n->kind == NODE_MAP ? YAML_MAPPING_END_EVENT : YAML_SEQUENCE_END_EVENT;

	if (depth >= TREE_DEPTH_MAX)
		return fail(r, r->event.start_mark, "nested too deeply");
	for (;;) {
		struct node child = { 0 };
		int q = next_event(r);

		if (q < 0)
			return q;
		if (r->event.type == end)
			return 0;
		if (n->kind == NODE_MAP) {
			q = read_key(r, n, &child);
			if (q >= 0)
				q = next_event(r);
			if (q < 0)
				return q;
		}
		q = read_node(r, depth + 1, &child);
		if (q < 0)
			return q;
		*ARENA_PUSH(r->a, n->v, n->n) = child;
	}
}

/* The node that the current event begins. */
static int read_node(struct reader *r, unsigned depth, struct node *n)
{
	const yaml_event_t *ev = &r->event;
	bool marked;

	n->line = (unsigned)ev->start_mark.line + 1;
	n->column = (unsigned)ev->start_mark.column + 1;
	if (ev->type == YAML_SCALAR_EVENT)
		return read_scalar(r, n);
	if (ev->type == YAML_SEQUENCE_START_EVENT) {
		n->kind = NODE_LIST;
		marked = ev->data.sequence_start.anchor || ev->data.sequence_start.tag;
	} else if (ev->type == YAML_MAPPING_START_EVENT) {
		n->kind = NODE_MAP;
		marked = ev->data.mapping_start.anchor || ev->data.mapping_start.tag;
	} else {
		return fail(r, ev->start_mark, STAR_NEEDS_QUOTES);
	}
	if (marked)
		return fail(r, ev->start_mark, "anchors and tags are not accepted");
	return read_children(r, depth, n);
}

static int read_document(struct reader *r, struct node *root)
{
	int q;

	do {
		q = next_event(r);
		if (q < 0)
			return q;
	} while (r->event.type == YAML_STREAM_START_EVENT);
	root->kind = NODE_MAP;
	if (r->event.type == YAML_STREAM_END_EVENT)
		return 0;
	q = next_event(r); /* past the start of the document */
	if (q >= 0)
		q = read_node(r, 0, root);
	if (q < 0)
		return q;
	if (root->kind == NODE_NULL)
		*root = (struct node){ .kind = NODE_MAP };
	if (root->kind != NODE_MAP)
		return error_set(r->e, EINVAL,
				 "%s:%u:%u: settings must be an object ({...} or key: value)",
				 r->name, root->line, root->column);
	q = next_event(r); /* the end of the document */
	if (q >= 0)
		q = next_event(r);
	if (q < 0)
		return q;
	if (r->event.type != YAML_STREAM_END_EVENT)
		return fail(r, r->event.start_mark, "more than one document");
	return 0;
}

/* Where a comment that starts at p ends; p itself when none starts there. */
static const char *comment_end(const char *p, const char *end)
{
	const char *stop = NULL;

	if (end - p >= 2 && p[0] == '/' && p[1] == '*') {
		stop = memmem(p + 2, (size_t)(end - p - 2), "*/", 2);
		return stop ? stop + 2 : end;
	}
	if (*p == '#' || (end - p >= 2 && p[0] == '/' && p[1] == '/')) {
		stop = memchr(p, '\n', (size_t)(end - p));
		return stop ? stop : end;
	}
	return p;
}

static const char *skip_blank(const char *p, const char *end)
{
	while (p < end) {
		const char *after = comment_end(p, end);

		if (after > p)
			p = after;
		else if (strchr(" \t\r\n", *p))
			p++;
		else
			break;
	}
	return p;
}

/* Past a string in quotes, or to the end. */
static char *skip_string(char *p, const char *end)
{
	char quote = *p++;

	for (; p < end; p++) {
		if (*p == '\\' && quote == '"' && p + 1 < end)
			p++;
		else if (*p == quote)
			return p + 1;
	}
	return p;
}

static void blank_comments(char *text, const char *end)
{
	for (char *p = text; p < end;) {
		const char *after = p;

		if (*p == '"' || *p == '\'') {
			p = skip_string(p, end);
			continue;
		}
		/* http://x without quotes, a#b: not comments */
		if (p == text || (*p == '#' ? strchr(" \t\r\n,", p[-1]) != NULL : p[-1] != ':'))
			after = comment_end(p, end);
		if (after == p) {
			p++;
			continue;
		}
		for (; p < after; p++) {
			if (*p != '\n' && *p != '\r')
				*p = ' ';
		}
	}
}

static int parse_clean(struct reader *r, struct node *root)
{
	int q;

	if (!yaml_parser_initialize(&r->yaml))
		return error_set(r->e, ENOMEM, "%s: out of memory", r->name);
	yaml_parser_set_encoding(&r->yaml, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&r->yaml, (const unsigned char *)r->text, r->len);
	r->yaml.mark.line = r->lines_before; /* it counts on from there */
	q = read_document(r, root);
	yaml_event_delete(&r->event);
	yaml_parser_delete(&r->yaml);
	return q;
}

int tree_parse_part(struct arena *a, const char *name, const char *text, size_t len,
		    size_t lines_before, const struct node **ret, struct error *e)
{
	struct reader r = {
		.a = a, .name = name, .text = text, .len = len, .lines_before = lines_before, .e = e
	};
	struct node *root = arena_alloc(a, sizeof(*root));
	const char *first, *nul = memchr(text, '\0', len);
	int q;

	if (len > TREE_TEXT_MAX)
		return error_set(e, EFBIG, "%s: larger than %zu MiB", name, TREE_TEXT_MAX >> 20);
	if (nul)
		return fail(&r, mark_of_offset(&r, (size_t)(nul - text)), "a NUL byte");
	root->kind = NODE_MAP;
	*ret = root;
	if (len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) {
		r.text += 3;
		r.len -= 3;
	}
	first = skip_blank(r.text, r.text + r.len);
	if (first == r.text + r.len)
		return 0;
	if (*first == '{') {
		char *copy = arena_strndup(a, r.text, r.len);

		blank_comments(copy, copy + r.len);
		r.text = copy;
	}
	q = parse_clean(&r, root);
	return q;
}

int tree_parse(struct arena *a, const char *name, const char *text, size_t len,
	       const struct node **ret, struct error *e)
{
	return tree_parse_part(a, name, text, len, 0, ret, e);
}

const struct node *tree_get(const struct node *map, const char *key)
{
	for (size_t i = 0; i < map->n; i++) {
		if (strcmp(map->v[i].key, key) == 0)
			return &map->v[i];
	}
	return NULL;
}
