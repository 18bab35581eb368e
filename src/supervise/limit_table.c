/* SPDX-License-Identifier: Apache-2.0 */
/* The table of limits: what they are called, and their values as users write them. */
#include <stddef.h>

#include "supervise/limit.h"

enum unit { UNIT_BYTES, UNIT_COUNT, UNIT_PROCESSORS, UNIT_TIME };

static const struct row {
	const char *name, *key;
	enum unit unit;
	size_t offset;
} rows[] = {
	[LIMIT_MEMORY] = { "memory", "limits.memory", UNIT_BYTES,
			   offsetof(struct policy_limits, memory) },
	[LIMIT_CPU] = { "cpu", "limits.cpu", UNIT_PROCESSORS, offsetof(struct policy_limits, cpu) },
	[LIMIT_PIDS] = { "pids", "limits.pids", UNIT_COUNT, offsetof(struct policy_limits, pids) },
	[LIMIT_DISK] = { "disk", "limits.disk", UNIT_BYTES, offsetof(struct policy_limits, disk) },
	[LIMIT_OUTPUT] = { "output", "limits.output", UNIT_BYTES,
			   offsetof(struct policy_limits, output) },
	[LIMIT_TIMEOUT] = { "timeout", "limits.timeout", UNIT_TIME,
			    offsetof(struct policy_limits, timeout_ms) },
};
_Static_assert(ARRAY_LEN(rows) == LIMIT_MAX_, "a row for each limit");

const char *limit_name(enum limit which)
{
	return rows[which].name;
}

const char *limit_key(enum limit which)
{
	return rows[which].key;
}

static uint64_t whole_value(const struct policy_limits *l, enum limit which)
{
	return *(const uint64_t *)((const char *)l + rows[which].offset);
}

bool limit_is_set(const struct policy_limits *l, enum limit which)
{
	return which == LIMIT_CPU ? l->cpu > 0 : whole_value(l, which) > 0;
}

/* In the largest unit that needs no fraction. */
static void put_scaled(struct buf *out, uint64_t value, const char *const *units,
		       const uint64_t *sizes, size_t n)
{
	size_t i = n - 1;

	while (i > 0 && (value < sizes[i] || value % sizes[i]))
		i--;
	buf_printf(out, "%llu%s", (unsigned long long)(value / sizes[i]), units[i]);
}

void limit_value(const struct policy_limits *l, enum limit which, unsigned times, struct buf *out)
{
	static const char *const size_units[] = { "", "k", "m", "g", "t" };
	static const uint64_t sizes[] = { 1, 1ULL << 10, 1ULL << 20, 1ULL << 30, 1ULL << 40 };
	static const char *const time_units[] = { "ms", "s", "m", "h", "d" };
	static const uint64_t spans[] = { 1, 1000, 60000, 3600000, 86400000 };

	switch (rows[which].unit) {
	case UNIT_BYTES:
		put_scaled(out, whole_value(l, which) * times, size_units, sizes, ARRAY_LEN(sizes));
		return;
	case UNIT_TIME:
		put_scaled(out, whole_value(l, which) * times, time_units, spans, ARRAY_LEN(spans));
		return;
	case UNIT_COUNT:
		buf_printf(out, "%llu", (unsigned long long)whole_value(l, which) * times);
		return;
	case UNIT_PROCESSORS:
		buf_printf(out, "%g", l->cpu * times);
		return;
	}
}
