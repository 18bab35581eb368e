/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names to addresses by getaddrinfo() in a few threads, so that nsswitch, split
 * DNS and /etc/hosts mean here what they mean to everybody else. Nothing is
 * cached: one answer is vetted and dialled, the next dial asks again, so that
 * there is no moment between check and use (rebinding, N6).
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policy/match_host.h"

#define RESOLVE_ADDRESSES_MAX 8
#define RESOLVE_THREADS_MAX 4

struct address {
	enum host_kind kind;
	uint8_t bytes[16];
};

struct resolve_job {
	struct resolve_job *next, **at; /* at: what points here; NULL = not in the queue any more */
	void *owner; /* NULL = cancelled. Only the event loop's thread touches it. */
	struct address address[RESOLVE_ADDRESSES_MAX];
	size_t n;
	int error; /* EAI_*, 0 = answered */
	char name[HOST_NAME_MAX_LEN + 1];
};

struct resolver {
	int event_fd; /* readable when something is done */
	pthread_mutex_t lock; /* of all below */
	pthread_cond_t wanted;
	struct resolve_job *queue, **queue_tail, *done;
	unsigned threads, idle, waiting; /* waiting = length of queue */
};

int resolver_init(struct resolver *r) NODISCARD; /* 0 or -errno; starts no thread yet */
/* NULL when no thread can be had. */
struct resolve_job *resolver_submit(struct resolver *r, const char *name, void *owner);
/* Nobody waits for it any more: it leaves the queue, or its answer will be for nobody. */
void resolver_cancel(struct resolver *r, struct resolve_job *job);
/* All finished jobs, cancelled ones too, as a list for the caller to free. */
struct resolve_job *resolver_collect(struct resolver *r);
