/* SPDX-License-Identifier: Apache-2.0 */
#include "base/arena.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* enough for one policy and its plan; what is not touched costs nothing */
#define ARENA_CHUNK ((size_t)128 * 1024 - 64)

struct chunk {
	struct chunk *next;
	size_t used, size;
	_Alignas(max_align_t) unsigned char data[];
};

struct arena {
	struct chunk *head;
};

struct arena *arena_new(void)
{
	struct arena *a = calloc(1, sizeof(*a));

	if (!a)
		abort();
	return a;
}

static void free_chunks(struct chunk *c)
{
	while (c) {
		struct chunk *next = c->next;

		free(c);
		c = next;
	}
}

void arena_free(struct arena *a)
{
	if (!a)
		return;
	free_chunks(a->head);
	free(a);
}

void arena_reset(struct arena *a)
{
	struct chunk *c = a->head;

	if (!c)
		return;
	free_chunks(c->next);
	c->next = NULL;
	c->used = 0;
}

static size_t aligned(size_t size)
{
	const size_t align = _Alignof(max_align_t);

	return (size + align - 1) / align * align;
}

void *arena_alloc(struct arena *a, size_t size)
{
	size_t need;
	struct chunk *c = a->head;

	if (size > SIZE_MAX / 2)
		abort();
	need = aligned(size);
	if (!c || c->size - c->used < need) {
		size_t room = need > ARENA_CHUNK ? need : ARENA_CHUNK;

		c = malloc(sizeof(*c) + room);
		if (!c)
			abort();
		*c = (struct chunk){ .size = room, .next = a->head };
		a->head = c;
	}
	c->used += need;
	/* here, not the whole chunk at once: pages that are never used cost nothing */
	return memset(c->data + c->used - need, 0, need);
}

void *arena_array(struct arena *a, size_t n, size_t size)
{
	size_t total;

	if (__builtin_mul_overflow(n, size, &total))
		abort();
	return arena_alloc(a, total);
}

char *arena_strndup(struct arena *a, const char *s, size_t n)
{
	char *copy = arena_alloc(a, n + 1);

	memcpy(copy, s, n);
	return copy;
}

char *arena_strdup(struct arena *a, const char *s)
{
	return arena_strndup(a, s, strlen(s));
}

char *arena_vprintf(struct arena *a, const char *fmt, va_list ap)
{
	struct chunk *c = a->head;
	size_t room = c ? c->size - c->used : 0;
	va_list again;
	char *s;
	int n;

	/* nearly always it fits where the next allocation will lie */
	va_copy(again, ap);
	n = vsnprintf(c ? (char *)c->data + c->used : NULL, room, fmt, again);
	va_end(again);
	if (n < 0)
		abort();
	if (c && (size_t)n < room) {
		s = (char *)c->data + c->used;
		c->used += aligned((size_t)n + 1) < room ? aligned((size_t)n + 1) : room;
		return s;
	}
	s = arena_alloc(a, (size_t)n + 1);
	(void)vsnprintf(s, (size_t)n + 1, fmt, ap);
	return s;
}

char *arena_printf(struct arena *a, const char *fmt, ...)
{
	va_list ap;
	char *s;

	va_start(ap, fmt);
	s = arena_vprintf(a, fmt, ap);
	va_end(ap);
	return s;
}

void *arena_grow(struct arena *a, const void *v, size_t n, size_t size)
{
	unsigned char *bigger;

	/* capacity is 4, then the powers of two: full exactly when n is one of them */
	if (n != 0 && (n < 4 || (n & (n - 1)) != 0)) {
		unsigned char *slot = (unsigned char *)(uintptr_t)v + n * size;

		memset(slot, 0, size);
		return (void *)(uintptr_t)v;
	}
	bigger = arena_array(a, n ? n * 2 : 4, size);
	if (n)
		memcpy(bigger, v, n * size);
	return bigger;
}
