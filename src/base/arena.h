/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arena: everything that a policy or a plan points to is allocated here and
 * freed at once. Memory is zeroed. Running out of memory aborts: there is no
 * sensible way to go on setting up a sandbox without it.
 */
#pragma once

#include <stdarg.h>
#include <stddef.h>

#include "base/macros.h"

struct arena;

struct arena *arena_new(void);
void arena_free(struct arena *a); /* NULL is fine */
/* Everything in it is gone; memory for the next is kept. */
void arena_reset(struct arena *a);
void *arena_alloc(struct arena *a, size_t size);
/* Array of n elements; overflow aborts. */
void *arena_array(struct arena *a, size_t n, size_t size);
char *arena_strdup(struct arena *a, const char *s);
char *arena_strndup(struct arena *a, const char *s, size_t n);
char *arena_printf(struct arena *a, const char *fmt, ...) PRINTF_LIKE(2, 3);
char *arena_vprintf(struct arena *a, const char *fmt, va_list ap) PRINTF_LIKE(2, 0);

/*
 * Grow an arena-owned array by one zeroed element and return it:
 *   struct rule *r = ARENA_PUSH(a, list->v, list->n);
 * Capacity is implied by n (powers of two), the old copy stays in the arena.
 */
#define ARENA_PUSH(a, v, n) ((v) = arena_grow((a), (v), (n), sizeof(*(v))), &(v)[(n)++])
void *arena_grow(struct arena *a, const void *v, size_t n, size_t size);

static inline void arena_free_p(struct arena **a)
{
	arena_free(*a);
}
#define _cleanup_arena_ __attribute__((cleanup(arena_free_p)))
