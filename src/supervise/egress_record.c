/* SPDX-License-Identifier: Apache-2.0 */
/* Trust: the line comes from a process of ours that may have been taken over. */
#include "supervise/egress_record.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/json_read.h"
#include "base/text.h"

#define AT(name) offsetof(struct egress_record, name), sizeof(((struct egress_record *)0)->name)

static const struct {
	const char *key;
	size_t offset, size;
	uint64_t max; /* of a number; 0 = it is a text */
} fields[] = {
	{ "owner", AT(owner), UINT32_MAX },
	{ "id", AT(id), UINT32_MAX },
	{ "port", AT(port), UINT16_MAX },
	{ "sent", AT(sent), INT64_MAX },
	{ "received", AT(received), INT64_MAX },
	{ "ms", AT(ms), INT64_MAX },
	{ "count", AT(count), INT64_MAX },
	{ "pid", AT(pid), INT32_MAX },
	{ "via", AT(via), 0 },
	{ "process", AT(process), 0 },
	{ "host", AT(host), 0 },
	{ "address", AT(address), 0 },
	{ "rule", AT(rule), 0 },
	{ "reason", AT(reason), 0 },
};

static const struct {
	const char *word;
	enum egress_kind kind;
} kinds[] = {
	{ "connect", EGRESS_CONNECT }, { "ask", EGRESS_ASK },      { "unask", EGRESS_UNASK },
	{ "warning", EGRESS_NOTICE },  { "error", EGRESS_NOTICE }, { "dropped", EGRESS_LOST },
	{ "ready", EGRESS_READY },     { "gone", EGRESS_GONE },
};

static void take_text(const struct json_span *value, char *at, size_t size)
{
	_cleanup_buf_ struct buf b = BUF_INIT(8192);

	if (value->kind == JSON_STRING)
		json_unquote(value, &b);
	text_copy(at, size, buf_str(&b));
}

static void take_number(const struct json_span *value, uint64_t max, char *at, size_t size)
{
	uint64_t v = 0;
	uint32_t v32;
	uint16_t v16;

	if (value->kind != JSON_NUMBER || json_to_u64(value, max, &v) < 0)
		return;
	v32 = (uint32_t)v;
	v16 = (uint16_t)v;
	memcpy(at,
	       size == sizeof(v)     ? (void *)&v
	       : size == sizeof(v32) ? (void *)&v32
				     : &v16,
	       size);
}

static void take_field(const struct json_span *key, const struct json_span *value,
		       struct egress_record *r)
{
	for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
		char *at = (char *)r + fields[i].offset;

		if (!json_equals(key, fields[i].key))
			continue;
		if (fields[i].max)
			take_number(value, fields[i].max, at, fields[i].size);
		else
			take_text(value, at, fields[i].size);
		return;
	}
}

int egress_record_parse(const char *line, size_t len, struct egress_record *ret)
{
	struct egress_record r = { .kind = EGRESS_KIND_MAX_ };
	struct json_span all, key, value;
	struct json_walk w;

	if (json_parse(line, len, &all) < 0 || all.kind != JSON_OBJECT ||
	    !json_find(&all, "kind", &value))
		return -EINVAL;
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		if (json_equals(&value, kinds[i].word))
			r.kind = kinds[i].kind;
	}
	if (r.kind == EGRESS_KIND_MAX_)
		return -EINVAL;
	r.allow = json_find(&all, "verdict", &value) && json_equals(&value, "allow");
	w = json_walk(&all);
	while (json_next_member(&w, &key, &value))
		take_field(&key, &value, &r);
	*ret = r;
	return 0;
}

void egress_record_violation(const struct egress_record *r, struct violation *ret)
{
	*ret = (struct violation){ .kind = VIOLATION_CONNECT };
	text_copy(ret->rule, sizeof(ret->rule),
		  r->kind == EGRESS_FAILED ? "network.proxy" : r->rule);
	text_copy(ret->reason, sizeof(ret->reason), r->reason);
	text_copy(ret->source, sizeof(ret->source), "network");
	text_copy(ret->process, sizeof(ret->process), r->process);
	ret->pid = (int32_t)r->pid;
	if (r->kind == EGRESS_FAILED)
		text_copy(ret->path, sizeof(ret->path), "anything");
	else if (r->port)
		(void)snprintf(ret->path, sizeof(ret->path),
			       strchr(r->host, ':') ? "[%s]:%u" : "%s:%u", r->host, r->port);
	else
		text_copy(ret->path, sizeof(ret->path), r->host);
}
