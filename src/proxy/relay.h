/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Moving bytes. Every flow begins with reads and writes through one shared 64
 * KiB buffer; one that has carried RELAY_BULK bytes without an answer from the
 * other side borrows a pipe and is spliced, unless it is TLS: where both ends
 * compute on every byte, pieces that stay in the processor's cache are faster
 * than pages that are passed on (docs/COSTS.md). What the receiver does not take is
 * kept (at most one read), and the sender is not read until it has gone:
 * back-pressure reaches the other end through TCP.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proxy/conn.h"

#define RELAY_BUFFER ((size_t)64 << 10)
#define RELAY_TOGETHER ((size_t)16 << 10) /* a head, and what was read behind it, in one piece */
#define RELAY_BULK ((uint32_t)256 << 10)
#define RELAY_PIPE_SIZE (1 << 20)
#define RELAY_PIPES_MAX 64 /* at work */
#define RELAY_PIPES_KEPT 8 /* idle */
#define RELAY_KEPT_MAX ((size_t)64 << 20) /* bytes kept by all connections in one direction */
#define RELAY_YIELD_NS 2000000u /* longer: somebody else computes here as well */
#define RELAY_STAY 256 /* pieces, then */
#define RELAY_TURN ((size_t)4 << 20) /* bytes of one flow in one turn of the loop */

struct relay_pipe {
	struct relay_pipe *next;
	int fd[2];
	size_t fill;
};

struct relay {
	char *buffer; /* RELAY_BUFFER bytes */
	uint32_t stay; /* pieces of TLS until the processor is left to others again */
	size_t chunk; /* as many of them are read at once: what a connection may have to keep */
	struct relay_pipe *idle;
	unsigned n_pipes, n_idle;
};

/*
 * Move what can be moved of flow[s]. 0, or -errno when a side has failed, the framing is
 * broken (-EBADMSG), or what is watched must not go on (-EILSEQ). The flow's end is FLOW_DONE.
 */
int relay_pump(struct relay *r, struct conn *c, unsigned s) NODISCARD;
/* flow[s] is at its end and all of it has been delivered. */
bool relay_finished(const struct conn *c, unsigned s);
int relay_flush(struct side *side) NODISCARD; /* 0 or -errno; side->out may stay */
/* Read into side->in up to max bytes in all. 0 or -errno; end of file sets eof. */
int relay_fill(struct relay *r, struct side *side, size_t max) NODISCARD;
void relay_release(struct relay *r, struct flow *f); /* give the pipe back */
void relay_share(struct relay *r, size_t connections); /* sets chunk for so many */
void relay_done(struct relay *r);
void buf_drop(struct buf *b, size_t n); /* the first n bytes; frees the memory when none is left */
