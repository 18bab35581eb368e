/* SPDX-License-Identifier: Apache-2.0 */
/* Single values: from nodes, into and out of the policy, and which way is wider. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/text.h"
#include "policy/build.h"

#define CPU_MAX 65536.0
#define COUNT_MAX ((uint64_t)1 << 32)

bool setting_is_scalar(const struct setting *row)
{
	return row->type <= SETTING_COUNT;
}

int node_string(const struct source *s, const char *key, const struct node *n, const char **ret,
		struct error *e)
{
	switch (n->kind) {
	case NODE_STRING:
	case NODE_TEXT:
		break;
	case NODE_BOOL:
	case NODE_NUMBER:
		return source_fail(s, n, key, e, "must be a string: put %s in quotes", n->text);
	case NODE_NULL:
	case NODE_LIST:
	case NODE_MAP:
		return source_fail(s, n, key, e, "must be a string");
	}
	if (!*n->text)
		return source_fail(s, n, key, e, "must not be empty");
	*ret = n->text;
	return 0;
}

static int parse_bool(const struct source *s, const struct setting *row, const struct node *n,
		      struct value *ret, struct error *e)
{
	bool written = (n->kind == NODE_TEXT || n->kind == NODE_STRING) &&
		       (strcmp(n->text, "true") == 0 || strcmp(n->text, "false") == 0);

	if (n->kind != NODE_BOOL && !(n->kind == NODE_TEXT && written))
		return source_fail(s, n, row->key, e, "must be true or false%s",
				   written ? ", without quotes" : "");
	ret->u = ascii_lower(*n->text) == 't';
	return 0;
}

int value_find_word(const struct source *s, const struct setting *row, const struct node *n,
		    uint64_t *ret, struct error *e)
{
	_cleanup_buf_ struct buf words = BUF_INIT(256);
	const char *text, *near = NULL;
	int r = node_string(s, row->key, n, &text, e);

	if (r < 0)
		return r;
	for (size_t i = 0; row->values[i]; i++) {
		const char *word = row->values[i];

		if (!*word)
			continue;
		if (strcmp(word, text) == 0) {
			*ret = i;
			return 0;
		}
		if (text_distance(word, text) <= 2 && strlen(text) > 2)
			near = word;
		buf_printf(&words, "%s%s", words.len ? ", " : "", word);
	}
	if (near)
		return source_fail(s, n, row->key, e, "\"%s\" is none of %s (did you mean \"%s\"?)",
				   text, buf_str(&words), near);
	return source_fail(s, n, row->key, e, "\"%s\" is none of %s", text, buf_str(&words));
}

struct quantity {
	const char *what;
	bool words; /* units: a string will do */
};

static struct quantity quantity_of(enum setting_type type)
{
	if (type == SETTING_SIZE)
		return (struct quantity){ "a size like \"512m\" or a number of bytes", true };
	if (type == SETTING_DURATION)
		return (struct quantity){ "a time like \"30m\" or a number of seconds", true };
	if (type == SETTING_PORT)
		return (struct quantity){ "a port from 0 to 65535", false };
	if (type == SETTING_NUMBER)
		return (struct quantity){ "a number that is not negative", false };
	return (struct quantity){ "a whole number that is not negative", false };
}

static int parse_quantity(const struct source *s, const struct setting *row, const struct node *n,
			  struct value *ret, struct error *e)
{
	struct quantity q = quantity_of(row->type);
	int r = -EINVAL;

	if (n->kind == NODE_NUMBER || n->kind == NODE_TEXT || (n->kind == NODE_STRING && q.words)) {
		if (row->type == SETTING_SIZE)
			r = text_parse_size(n->text, &ret->u);
		else if (row->type == SETTING_DURATION)
			r = text_parse_duration(n->text, &ret->u);
		else if (row->type == SETTING_NUMBER)
			r = text_parse_double(n->text, CPU_MAX, &ret->d);
		else
			r = text_parse_u64(n->text,
					   row->type == SETTING_PORT ? UINT16_MAX : COUNT_MAX,
					   &ret->u);
	}
	if (r == -ERANGE)
		return source_fail(s, n, row->key, e, "%s is too large", n->text);
	if (r < 0)
		return source_fail(s, n, row->key, e, "must be %s", q.what);
	return 0;
}

static int parse_string(const struct source *s, const struct setting *row, const struct node *n,
			struct value *ret, struct error *e)
{
	int r = node_string(s, row->key, n, &ret->s, e);

	if (r < 0)
		return r;
	if (row->check && row->check(ret->s, e) < 0)
		return source_wrap(s, n, row->key, e);
	return 0;
}

int value_parse(const struct source *s, const struct setting *row, const struct node *n,
		struct value *ret, struct error *e)
{
	*ret = (struct value){ 0 };
	if (row->type == SETTING_BOOL)
		return parse_bool(s, row, n, ret, e);
	if (row->type == SETTING_ENUM)
		return value_find_word(s, row, n, &ret->u, e);
	if (row->type == SETTING_STRING)
		return parse_string(s, row, n, ret, e);
	return parse_quantity(s, row, n, ret, e);
}

/* The enums of policy.h are all of one size; memcpy keeps this free of casts between them. */
_Static_assert(sizeof(enum network_mode) == sizeof(unsigned), "enums are unsigned ints");

struct value value_get(const struct policy *p, const struct setting *row)
{
	const char *at = (const char *)p + row->offset;
	struct value v = { 0 };
	unsigned word;
	uint16_t port;

	if (row->type == SETTING_BOOL) {
		v.u = *(const bool *)at;
	} else if (row->type == SETTING_ENUM) {
		memcpy(&word, at, sizeof(word));
		v.u = word;
	} else if (row->type == SETTING_PORT) {
		memcpy(&port, at, sizeof(port));
		v.u = port;
	} else if (row->type == SETTING_NUMBER) {
		memcpy(&v.d, at, sizeof(v.d));
	} else if (row->type == SETTING_STRING) {
		memcpy(&v.s, at, sizeof(v.s));
	} else {
		memcpy(&v.u, at, sizeof(v.u));
	}
	return v;
}

void value_put(struct policy *p, const struct setting *row, struct value v)
{
	char *at = (char *)p + row->offset;
	unsigned word = (unsigned)v.u;
	uint16_t port = (uint16_t)v.u;

	if (row->type == SETTING_BOOL)
		*(bool *)at = v.u != 0;
	else if (row->type == SETTING_ENUM)
		memcpy(at, &word, sizeof(word));
	else if (row->type == SETTING_PORT)
		memcpy(at, &port, sizeof(port));
	else if (row->type == SETTING_NUMBER)
		memcpy(at, &v.d, sizeof(v.d));
	else if (row->type == SETTING_STRING)
		memcpy(at, &v.s, sizeof(v.s));
	else
		memcpy(at, &v.u, sizeof(v.u));
}

bool value_equal(const struct setting *row, struct value a, struct value b)
{
	if (row->type == SETTING_STRING)
		return a.s == b.s || (a.s && b.s && strcmp(a.s, b.s) == 0);
	return a.u == b.u && !(a.d < b.d || a.d > b.d);
}

/* Position on the line from little to much. */
static double rank(const struct setting *row, struct value v)
{
	double amount = row->type == SETTING_NUMBER ? v.d : (double)v.u;

	switch (row->type) {
	case SETTING_SIZE:
	case SETTING_DURATION:
	case SETTING_NUMBER:
	case SETTING_COUNT:
		/* no limit at all is the most */
		return amount > 0 ? amount : HUGE_VAL;
	case SETTING_ENUM:
		/*
		 * An unset mode follows from the allowed domains, which are judged by
		 * themselves: saying "allowlist" then adds nothing.
		 */
		if (row->offset == offsetof(struct policy, network.mode) && v.u == NETWORK_UNSET)
			return NETWORK_ALLOWLIST;
		return amount;
	case SETTING_BOOL:
	case SETTING_STRING:
	case SETTING_PORT:
	case SETTING_PATHS:
	case SETTING_HOSTS:
	case SETTING_STRINGS:
	case SETTING_SOCKETS:
	case SETTING_PORTS:
	case SETTING_ENV:
	case SETTING_IGNORE:
	case SETTING_NAMES:
	case SETTING_REASONS:
	case SETTING_PROFILES:
	case SETTING_LOCKED:
	case SETTING_REFUSED:
	case SETTING_ACCEPTED:
		break;
	}
	return amount;
}

bool value_widens(const struct setting *row, struct value from, struct value to)
{
	if (row->widening == WIDEN_HIGHER)
		return rank(row, to) > rank(row, from);
	if (row->widening == WIDEN_LOWER)
		return rank(row, to) < rank(row, from);
	return row->widening == WIDEN_ALWAYS && !value_equal(row, from, to);
}

bool value_narrows(const struct setting *row, struct value from, struct value to)
{
	if (row->widening == WIDEN_HIGHER)
		return rank(row, to) < rank(row, from);
	return row->widening == WIDEN_LOWER && rank(row, to) > rank(row, from);
}
