/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text is not written anew from the tree: the tree only says where to insert. What
 * comes out is parsed again and must hold the entry, or nothing is written.
 */
#include "policy/amend.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/json.h"
#include "base/path.h"
#include "base/text.h"
#include "policy/tree.h"

/* What to insert, where, and instead of how many bytes. */
struct insertion {
	size_t at; /* byte offset */
	size_t skip;
	struct buf text;
	bool single; /* a value, not an entry of a list */
	bool json; /* the text begins with '{' */
};

/* Columns are counted in characters. SIZE_MAX when there is no such place. */
static size_t offset_of(const char *text, size_t len, unsigned line, unsigned column)
{
	size_t at = 0;

	for (; line > 1; line--) {
		const char *end = memchr(text + at, '\n', len - at);

		if (!end)
			return SIZE_MAX;
		at = (size_t)(end - text) + 1;
	}
	for (; column > 1 && at < len; column--) {
		do
			at++;
		while (at < len && ((unsigned char)text[at] & 0xc0) == 0x80);
	}
	return at;
}

static void put_string(struct buf *b, const char *s)
{
	struct json j = { .out = b };

	json_string(&j, s);
}

static void put_entry(struct buf *b, const struct amendment *w)
{
	if (w->number)
		buf_puts(b, w->entry);
	else
		put_string(b, w->entry);
}

static void put_list(const struct insertion *in, struct buf *b, const struct amendment *w)
{
	put_string(b, w->list);
	buf_puts(b, in->single ? ": " : ": [");
	put_entry(b, w);
	buf_puts(b, in->single ? "" : "]");
}

static void put_spaces(struct buf *b, unsigned n)
{
	while (n-- > 0)
		buf_putc(b, ' ');
}

static void put_end(struct buf *b, const struct amendment *w)
{
	if (w->comment && *w->comment) {
		buf_puts(b, " # ");
		text_append_safe(b, w->comment);
	}
	buf_putc(b, '\n');
}

/* In brackets or braces the line ends with the comment, and what stood there goes to the next one. */
static void put_flow_comment(const char *text, size_t len, const struct amendment *w,
			     struct insertion *in, unsigned indent)
{
	if (!w->comment || !*w->comment)
		return;
	buf_puts(&in->text, in->json ? " // " : " # ");
	text_append_safe(&in->text, w->comment);
	if (in->at < len && (text[in->at] == '\n' || text[in->at] == '\r'))
		return;
	buf_putc(&in->text, '\n');
	put_spaces(&in->text, indent);
}

/* On lines of its own; with a comment the list has one for each entry. */
static void put_lines(const struct insertion *in, struct buf *b, unsigned indent,
		      const struct amendment *w)
{
	put_spaces(b, indent);
	if (in->single || !w->comment) {
		put_list(in, b, w);
	} else {
		put_string(b, w->list);
		buf_puts(b, ":\n");
		put_spaces(b, indent + 2);
		buf_puts(b, "- ");
		put_entry(b, w);
	}
	put_end(b, w);
}

/* At the start of the line, so that what follows keeps its place. */
static void insert_line(const char *text, size_t len, unsigned line, struct insertion *in)
{
	in->at = offset_of(text, len, line, 1);
}

/* Before the first of a list in brackets: on its line, or on one like it. */
static void into_brackets(const char *text, size_t len, const struct node *list,
			  const struct amendment *w, struct insertion *in)
{
	const struct node *first = list->n > 0 ? &list->v[0] : NULL;
	bool commented = w->comment && *w->comment;

	in->at = first ? offset_of(text, len, first->line, first->column)
		       : offset_of(text, len, list->line, list->column) + 1;
	put_entry(&in->text, w);
	if (!first) {
		put_flow_comment(text, len, w, in, list->column - 1);
		return;
	}
	buf_putc(&in->text, ',');
	put_flow_comment(text, len, w, in, first->column - 1);
	if (!commented && first->line != list->line) {
		buf_putc(&in->text, '\n');
		put_spaces(&in->text, first->column - 1);
	} else if (!commented) {
		buf_putc(&in->text, ' ');
	}
}

static void into_list(const char *text, size_t len, const struct node *list,
		      const struct amendment *w, struct insertion *in)
{
	size_t at = offset_of(text, len, list->line, list->column);

	if (at < len && text[at] == '[') {
		into_brackets(text, len, list, w, in);
	} else if (list->n > 0) {
		insert_line(text, len, list->line, in);
		put_spaces(&in->text, list->column - 1);
		buf_puts(&in->text, "- ");
		put_entry(&in->text, w);
		put_end(&in->text, w);
	}
}

/* Past a single value that begins at p. */
static const char *value_end(const char *p, const char *end)
{
	const char *start = p;

	if (*p == '"' || *p == '\'') {
		for (p++; p < end && *p != *start; p++)
			p += *p == '\\' && p + 1 < end;
		return p < end ? p + 1 : end;
	}
	while (p < end && !strchr(",}\r\n", *p) && !(*p == '#' && p > start && p[-1] == ' '))
		p++;
	while (p > start && p[-1] == ' ')
		p--;
	return p;
}

static void over_value(const char *text, size_t len, const struct node *value,
		       const struct amendment *w, struct insertion *in)
{
	size_t at = offset_of(text, len, value->line, value->column);

	if (at >= len || value->kind == NODE_LIST || value->kind == NODE_MAP)
		return;
	in->at = at;
	in->skip = (size_t)(value_end(text + at, text + len) - (text + at));
	put_entry(&in->text, w);
}

static void into_group(const char *text, size_t len, const struct node *group,
		       const struct amendment *w, struct insertion *in)
{
	size_t at = offset_of(text, len, group->line, group->column);

	if (at < len && text[at] == '{') {
		in->at = at + 1;
		buf_puts(&in->text, group->n > 0 ? " " : "");
		put_list(in, &in->text, w);
		if (group->n > 0)
			buf_putc(&in->text, ',');
		put_flow_comment(text, len, w, in, group->column - 1);
	} else if (group->n > 0) {
		insert_line(text, len, group->v[0].key_line, in);
		put_lines(in, &in->text, group->v[0].key_column - 1, w);
	}
}

static void into_root(const char *text, size_t len, const struct node *root,
		      const struct amendment *w, struct insertion *in)
{
	size_t at = root->line ? offset_of(text, len, root->line, root->column) : len;

	if (at < len && text[at] == '{') {
		in->at = at + 1;
		buf_puts(&in->text, "\n  ");
		put_string(&in->text, w->group);
		buf_puts(&in->text, ": { ");
		put_list(in, &in->text, w);
		buf_puts(&in->text, root->n > 0 ? " }," : " }");
		put_flow_comment(text, len, w, in, root->column - 1);
		if (root->n == 0 && !(w->comment && *w->comment))
			buf_putc(&in->text, '\n');
		return;
	}
	in->at = len;
	if (len > 0 && text[len - 1] != '\n')
		buf_putc(&in->text, '\n');
	put_string(&in->text, w->group);
	buf_puts(&in->text, ":\n");
	put_lines(in, &in->text, 2, w);
}

static const struct node *find_node(const struct node *root, const struct amendment *w)
{
	const struct node *group = tree_get(root, w->group);

	return group && group->kind == NODE_MAP ? tree_get(group, w->list) : NULL;
}

static bool holds(const struct node *root, const struct amendment *w, bool single)
{
	const struct node *list = find_node(root, w);

	if (single)
		return list && list->text && strcmp(list->text, w->entry) == 0;
	for (size_t i = 0; list && list->kind == NODE_LIST && i < list->n; i++) {
		if (list->v[i].text && strcmp(list->v[i].text, w->entry) == 0)
			return true;
	}
	return false;
}

static void find_place(const char *text, size_t len, const struct node *root,
		       const struct amendment *w, struct insertion *in)
{
	const struct node *group = tree_get(root, w->group), *list = find_node(root, w);

	if (list && in->single)
		over_value(text, len, list, w, in);
	else if (list && list->kind == NODE_LIST)
		into_list(text, len, list, w, in);
	else if (!list && group && group->kind == NODE_MAP)
		into_group(text, len, group, w, in);
	else if (!group)
		into_root(text, len, root, w, in);
}

static int amend(const char *name, const char *text, size_t len, const struct amendment *what,
		 bool single, struct buf *out, struct error *e)
{
	_cleanup_arena_ struct arena *a = arena_new();
	struct insertion in = { .at = SIZE_MAX, .text = BUF_INIT(BUF_MAX_TEXT), .single = single };
	_cleanup_buf_ struct buf result = BUF_INIT(TREE_TEXT_MAX);
	const struct node *root;
	int r = tree_parse(a, name, text, len, &root, e);

	if (r < 0)
		return r;
	if (holds(root, what, single)) {
		buf_append(out, text, len);
		return 0;
	}
	if (root->line) {
		size_t at = offset_of(text, len, root->line, root->column);

		in.json = at < len && text[at] == '{';
	}
	find_place(text, len, root, what, &in);
	if (in.at <= len) {
		buf_append(&result, text, in.at);
		buf_append(&result, buf_str(&in.text), in.text.len);
		buf_append(&result, text + in.at + in.skip, len - in.at - in.skip);
	}
	buf_done(&in.text);
	if (in.at > len || result.overflow ||
	    tree_parse(a, name, buf_str(&result), result.len, &root, e) < 0 ||
	    !holds(root, what, single))
		return error_set(e, EINVAL,
				 "%s: cannot be amended by a program: %s \"%s\" %s "
				 "%s.%s yourself",
				 name, single ? "set" : "add", what->entry, single ? "as" : "to",
				 what->group, what->list);
	buf_append(out, buf_str(&result), result.len);
	return 0;
}

int amend_text(const char *name, const char *text, size_t len, const struct amendment *what,
	       struct buf *out, struct error *e)
{
	return amend(name, text, len, what, false, out, e);
}

int amend_value(const char *name, const char *text, size_t len, const struct amendment *what,
		struct buf *out, struct error *e)
{
	return amend(name, text, len, what, true, out, e);
}

static void make_directories(struct arena *a, const char *path)
{
	char *dir = arena_strdup(a, path);

	for (char *s = dir + 1; (s = strchr(s, '/')); *s++ = '/') {
		*s = '\0';
		(void)mkdir(dir, 0700);
	}
}

int amend_file(const char *path, const struct amendment *what, struct error *e)
{
	_cleanup_arena_ struct arena *a = arena_new();
	_cleanup_buf_ struct buf out = BUF_INIT(TREE_TEXT_MAX);
	_cleanup_free_ char *text = NULL;
	char real[PATH_MAX];
	struct stat st = { .st_mode = 0600 };
	size_t len = 0;
	int r;

	if (realpath(path, real))
		path = real;
	else if (errno == ENOENT)
		make_directories(a, path);
	r = fd_read_file(AT_FDCWD, path, TREE_TEXT_MAX, &text, &len);
	if (r < 0 && r != -ENOENT)
		return error_set(e, -r, "%s: %s", path, strerror(-r));
	if (r == 0 && stat(path, &st) < 0)
		return error_set(e, errno, "%s: %s", path, strerror(errno));
	if (r == -ENOENT)
		text = strdup(text_ends(path, ".json") ? "{\n}\n" : "");
	if (!text)
		return error_set(e, ENOMEM, "out of memory");
	r = amend_text(path, text, strlen(text), what, &out, e);
	if (r < 0)
		return r;
	r = fd_replace_file(path, out.data, out.len, st.st_mode & 0777);
	return r < 0 ? error_set(e, -r, "%s: %s", path, strerror(-r)) : 0;
}
