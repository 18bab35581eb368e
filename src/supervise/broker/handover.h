/* SPDX-License-Identifier: Apache-2.0 */
/* How open files are handed over (handover.c). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct broker;
struct call;
struct cpus;
struct seccomp_notif;

#define HANDOVER_TRIES 8

enum handover_phase { HANDOVER_CALM, HANDOVER_FREE, HANDOVER_KEPT, HANDOVER_STAY };

struct handover {
	enum handover_phase phase;
	bool kept; /* the caller is kept on our processor meanwhile */
	bool free_wins; /* when last both ways were tried */
	unsigned calls; /* of this phase */
	unsigned stay; /* how many before both ways are tried again */
	unsigned slow; /* of late, by more than those that were not */
	uint64_t last; /* nanoseconds */
	uint32_t took[HANDOVER_TRIES]; /* from one call to the next, in this phase */
	uint32_t usual[HANDOVER_STAY]; /* by phase */
	bool stays; /* the serving thread uses one processor only, */
	struct cpus *ours; /* of these */
	unsigned others; /* calls since the last that was given a file by it */
};

/* Hand a descriptor to the command as the answer: ANSWER_SENT, or -errno. */
int call_send_fd(const struct call *c, int fd, bool cloexec);
/* The same, from the serving thread: sooner, where possible; or its number, to be answered. */
int call_hand_over(const struct call *c, int fd, bool cloexec);

/* A call has come: is it still worth staying? */
void handover_turn(struct broker *b, const struct seccomp_notif *n);
/* The serving thread may use all its processors again: threads that it makes would stay, too. */
void handover_leave(struct broker *b);
