/* SPDX-License-Identifier: Apache-2.0 */
#include "base/gitconfig.h"

#include <errno.h>
#include <string.h>

#include "base/text.h"

struct parser {
	struct arena *a;
	const char *p;
	/* canonical, with the trailing dot; empty before the first header */
	char section[GITCONFIG_KEY_MAX + 1];
	size_t section_len;
	char *room; /* for values, which never get longer than they are written */
	struct gitconfig_entries *out;
	gitconfig_wanted *wanted;
	bool skip; /* the section is of no interest */
};

static bool is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

static void skip_space(struct parser *ps)
{
	while (is_space(*ps->p))
		ps->p++;
}

/* here, since it is asked of most of the text */
static bool is_name_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '-';
}

/* Longer ones overflow, which is found at the end. */
static void add_to_section(struct parser *ps, char c)
{
	if (ps->section_len < GITCONFIG_KEY_MAX)
		ps->section[ps->section_len] = c;
	ps->section_len++;
}

/* [section], [section "sub\"section"], [section.sub] */
static int parse_header(struct parser *ps)
{
	ps->p++;
	ps->section_len = 0;
	while (is_name_char(*ps->p) || *ps->p == '.')
		add_to_section(ps, ascii_lower(*ps->p++));
	if (ps->section_len == 0)
		return -EINVAL;
	if (is_space(*ps->p)) {
		skip_space(ps);
		if (*ps->p++ != '"')
			return -EINVAL;
		add_to_section(ps, '.');
		while (*ps->p && *ps->p != '"' && *ps->p != '\n') {
			if (*ps->p == '\\' && ps->p[1] && ps->p[1] != '\n')
				ps->p++;
			add_to_section(ps, *ps->p++);
		}
		if (*ps->p++ != '"')
			return -EINVAL;
	}
	add_to_section(ps, '.');
	if (*ps->p++ != ']' || ps->section_len > GITCONFIG_KEY_MAX)
		return -EINVAL;
	ps->section[ps->section_len] = '\0';
	ps->skip = ps->wanted && !ps->wanted(ps->section);
	return 0;
}

/* What an escape stands for; 0 = the end of a line, which goes on in the next; -EINVAL. */
static int parse_escape(struct parser *ps)
{
	switch (*ps->p++) {
	case '\r':
		return *ps->p++ == '\n' ? 0 : -EINVAL;
	case '\n':
		return 0;
	case 't':
		return '\t';
	case 'b':
		return '\b';
	case 'n':
		return '\n';
	case '\\':
		return '\\';
	case '"':
		return '"';
	default:
		return -EINVAL;
	}
}

/*
 * As git reads it, to the letter: what we take for another value was not judged. Blanks count from
 * the first character on, so not after "" or a line that goes on; and to the last one, for which
 * these two stand as well.
 */
static int parse_value(struct parser *ps, const char **ret)
{
	char *start = ps->room, *end = start, *keep = start; /* keep: without trailing blanks */
	bool quoted = false;

	while (*ps->p && *ps->p != '\n') {
		char c = *ps->p++;

		if (!quoted && (c == '#' || c == ';')) {
			ps->p += strcspn(ps->p, "\n");
			break;
		}
		if (!quoted && is_space(c)) {
			if (end > start)
				*end++ = c;
			continue;
		}
		if (c == '"') {
			quoted = !quoted;
		} else if (c == '\\') {
			int escaped = parse_escape(ps);

			if (escaped < 0)
				return escaped;
			if (escaped)
				*end++ = (char)escaped;
		} else {
			*end++ = c;
		}
		keep = end;
	}
	if (quoted)
		return -EINVAL;
	*keep = '\0';
	*ret = start;
	if (!ps->skip)
		ps->room = keep + 1;
	return 0;
}

static const char *make_key(const struct parser *ps, const char *name, size_t len)
{
	char *key = arena_alloc(ps->a, ps->section_len + len + 1);

	memcpy(key, ps->section, ps->section_len);
	for (size_t i = 0; i < len; i++)
		key[ps->section_len + i] = ascii_lower(name[i]);
	return key;
}

/* Of most entries that nobody wants, only where they end matters. */
static bool pass_line(struct parser *ps)
{
	size_t n = strcspn(ps->p, "\n");

	if (memchr(ps->p, '\\', n) || memchr(ps->p, '"', n))
		return false; /* it may go on in the next line */
	ps->p += n;
	return true;
}

static int parse_entry(struct parser *ps)
{
	struct gitconfig_entry passed, *e = &passed;
	const char *name = ps->p;
	size_t len;

	if (!ps->section_len || !ascii_alpha(*name))
		return -EINVAL;
	if (ps->skip && pass_line(ps))
		return 0;
	while (is_name_char(*ps->p))
		ps->p++;
	len = (size_t)(ps->p - name);
	if (ps->section_len + len > GITCONFIG_KEY_MAX)
		return -EINVAL;
	if (!ps->skip) {
		e = ARENA_PUSH(ps->a, ps->out->v, ps->out->n);
		e->key = make_key(ps, name, len);
	}
	skip_space(ps);
	if (*ps->p == '=') {
		ps->p++;
		return parse_value(ps, &e->value);
	}
	if (*ps->p == '#' || *ps->p == ';')
		ps->p += strcspn(ps->p, "\n");
	return *ps->p == '\n' || *ps->p == '\0' ? 0 : -EINVAL;
}

int gitconfig_parse(struct arena *a, const char *text, gitconfig_wanted *wanted,
		    struct gitconfig_entries *ret)
{
	struct parser ps = { .a = a, .p = text, .out = ret, .wanted = wanted };
	int r = 0;

	ps.room = arena_alloc(a, strlen(text) + 1);
	if (strncmp(text, "\xef\xbb\xbf", 3) == 0)
		ps.p += 3;
	while (r == 0 && *ps.p) {
		if (is_space(*ps.p) || *ps.p == '\n')
			ps.p++;
		else if (*ps.p == '#' || *ps.p == ';')
			ps.p += strcspn(ps.p, "\n");
		else
			r = *ps.p == '[' ? parse_header(&ps) : parse_entry(&ps);
	}
	return r;
}

/* Of short lists: a search for the text would cost more than looking at each. */
static bool is_listed(const char *names, const char *name)
{
	for (const char *s = names; *s; s++) {
		const char *n = name;

		while (*n && *s == *n) {
			s++;
			n++;
		}
		if (!*n && *s == ' ')
			return true;
		while (*s != ' ')
			s++;
	}
	return false;
}

/* The section is before the first dot, the name after the last; between: subsection. */
bool gitconfig_key_is(const char *key, const char *section, const char *names)
{
	const char *last;
	size_t n = 0;
	bool any;

	while (section[n] && section[n] != '.' && section[n] == key[n])
		n++;
	any = section[n] == '.';
	if (key[n] != '.' || (section[n] && !any))
		return false;
	last = strrchr(key, '.');
	return any == (last != key + n) && (!names || is_listed(names, last + 1));
}
