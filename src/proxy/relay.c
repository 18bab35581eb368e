/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/relay.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/sys.h"

void buf_drop(struct buf *b, size_t n)
{
	if (n >= b->len) {
		size_t max = b->max;

		buf_done(b);
		*b = (struct buf)BUF_INIT(max);
		return;
	}
	memmove(b->data, b->data + n, b->len - n);
	b->len -= n;
	b->data[b->len] = '\0';
}

/* Bytes taken, 0 = not now, or -errno. */
static ssize_t send_some(int fd, const char *data, size_t len)
{
	ssize_t n;

	do {
		n = send(fd, data, len, MSG_DONTWAIT | MSG_NOSIGNAL);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return errno == EAGAIN ? 0 : -errno;
	return n;
}

int relay_flush(struct side *side)
{
	ssize_t n;

	if (side->out.len == 0)
		return 0;
	n = send_some(side->fd, side->out.data, side->out.len);
	if (n < 0)
		return (int)n;
	buf_drop(&side->out, (size_t)n);
	return 0;
}

/* > 0 bytes read, 0 = nothing now (or end: side->eof), or -errno. */
static ssize_t receive_some(struct side *side, char *data, size_t len)
{
	ssize_t n;

	do {
		n = recv(side->fd, data, len, MSG_DONTWAIT);
	} while (n < 0 && errno == EINTR);
	if (n < 0) {
		side->readable = false;
		return errno == EAGAIN ? 0 : -errno;
	}
	if (n == 0) {
		side->eof = true;
		side->readable = false;
	} else if ((size_t)n < len) {
		side->readable = false; /* most likely; if not, epoll will say so */
	}
	return n;
}

int relay_fill(struct relay *r, struct side *side, size_t max)
{
	while (side->readable && !side->eof && side->in.len < max) {
		size_t room = max - side->in.len;
		ssize_t n =
			receive_some(side, r->buffer, room < RELAY_BUFFER ? room : RELAY_BUFFER);

		if (n <= 0)
			return (int)n;
		buf_append(&side->in, r->buffer, (size_t)n);
	}
	return 0;
}

static struct relay_pipe *pipe_new(struct relay *r)
{
	struct relay_pipe *pipe;

	if (r->n_pipes >= RELAY_PIPES_MAX)
		return NULL;
	pipe = calloc(1, sizeof(*pipe));
	if (!pipe || pipe2(pipe->fd, O_CLOEXEC | O_NONBLOCK) < 0) {
		free(pipe);
		return NULL;
	}
	/* the kernel may have a lower limit: then it stays as it is */
	(void)fcntl(pipe->fd[1], F_SETPIPE_SZ, RELAY_PIPE_SIZE);
	r->n_pipes++;
	return pipe;
}

static void pipe_free(struct relay *r, struct relay_pipe *pipe)
{
	fd_close(pipe->fd[0]);
	fd_close(pipe->fd[1]);
	free(pipe);
	r->n_pipes--;
}

static void borrow_pipe(struct relay *r, struct flow *f)
{
	f->pipe = r->idle;
	if (f->pipe) {
		r->idle = f->pipe->next;
		r->n_idle--;
	} else {
		f->pipe = pipe_new(r);
	}
}

void relay_release(struct relay *r, struct flow *f)
{
	struct relay_pipe *pipe = f->pipe;

	f->pipe = NULL;
	if (!pipe)
		return;
	/* one that still holds somebody's bytes must not reach another connection */
	if (pipe->fill > 0 || r->n_idle >= RELAY_PIPES_KEPT) {
		pipe_free(r, pipe);
		return;
	}
	pipe->next = r->idle;
	r->idle = pipe;
	r->n_idle++;
}

void relay_share(struct relay *r, size_t connections)
{
	size_t share = RELAY_KEPT_MAX / (connections ? connections : 1);

	r->chunk = share < RELAY_BUFFER ? share : RELAY_BUFFER;
}

void relay_done(struct relay *r)
{
	while (r->idle) {
		struct relay_pipe *next = r->idle->next;

		pipe_free(r, r->idle);
		r->idle = next;
	}
	free(r->buffer);
	r->buffer = NULL;
}

static ssize_t watch_http(struct flow *f, const char *data, size_t len)
{
	enum http_sniffed is = http_sniff_feed(&f->sniff, data, len);

	if (is == HTTP_SNIFF_YES)
		return -EILSEQ;
	if (is == HTTP_SNIFF_NO)
		f->mode = FLOW_FREE;
	return (ssize_t)len;
}

static ssize_t watch_hellos(struct flow *f, const char *data, size_t len)
{
	enum hellos_found found = hellos_feed(f->hellos, data, len);

	if (found == HELLOS_CHANGED)
		return -EILSEQ;
	if (found == HELLOS_OVER) {
		f->mode = FLOW_FREE;
		hellos_free(f->hellos);
		f->hellos = NULL;
	}
	return (ssize_t)len;
}

/* How many of the bytes belong to the flow; ends it where it ends. -errno: see relay_pump(). */
static ssize_t flow_take(struct flow *f, const char *data, size_t len)
{
	ssize_t n = (ssize_t)len;

	switch (f->mode) {
	case FLOW_FREE:
	case FLOW_TO_EOF:
		return n;
	case FLOW_WATCHED:
		return watch_http(f, data, len);
	case FLOW_HELLOS:
		return watch_hellos(f, data, len);
	case FLOW_LENGTH:
		if (len > f->left)
			n = (ssize_t)f->left;
		f->left -= (uint64_t)n;
		if (f->left == 0)
			f->mode = FLOW_DONE;
		return n;
	case FLOW_CHUNKED:
		n = http_chunked_feed(&f->chunked, data, len);
		if (n < 0)
			return -EBADMSG;
		if (f->chunked.state == CHUNK_DONE)
			f->mode = FLOW_DONE;
		return n;
	case FLOW_NONE:
	case FLOW_DONE:
		break;
	}
	return 0;
}

/* Write to side; what it does not take now waits in side->out. */
static int deliver(struct side *to, const char *data, size_t len)
{
	ssize_t n = send_some(to->fd, data, len);

	if (n < 0)
		return (int)n;
	if ((size_t)n < len)
		buf_append(&to->out, data + n, len - (size_t)n);
	return 0;
}

/* A TLS record: the ends encrypt and decrypt it. */
static bool is_sealed(const char *data, size_t len)
{
	return len >= 2 && data[0] == 0x16 && data[1] == 0x03;
}

static void account(struct conn *c, unsigned s, size_t n)
{
	c->bytes[s] += n;
	c->flow[!s].run = 0;
	c->flow[s].run =
		c->flow[s].run + n > RELAY_BULK ? RELAY_BULK : c->flow[s].run + (uint32_t)n;
}

/* Bytes that were read before the flow began, with a head or a hello. */
static int pump_kept(struct conn *c, unsigned s)
{
	struct side *from = &c->side[s], *to = &c->side[!s];
	ssize_t n = flow_take(&c->flow[s], from->in.data, from->in.len);
	int r = 0;

	if (n < 0)
		return (int)n;
	if (c->bytes[s] == 0)
		c->flow[s].sealed = is_sealed(from->in.data, (size_t)n);
	account(c, s, (size_t)n);
	if (to->out.len > 0) /* a head is waiting to go: with it */
		buf_append(&to->out, from->in.data, (size_t)n);
	else
		r = deliver(to, from->in.data, (size_t)n);
	buf_drop(&from->in, (size_t)n);
	return r;
}

/*
 * Where the ends compute and there are not enough processors for all three, more comes at a time if
 * they go first: a tenth more in all. Who has to share them with others too would wait
 * for those each time, and does not.
 */
static void let_others(struct relay *rl)
{
	uint64_t start;

	if (rl->stay > 0) {
		rl->stay--;
		return;
	}
	start = sys_now_ns();
	(void)sched_yield();
	if (sys_now_ns() - start > RELAY_YIELD_NS)
		rl->stay = RELAY_STAY;
}

/* One read and write; bytes moved, 0 = wait, or -errno. */
static ssize_t pump_copy(struct relay *rl, struct conn *c, unsigned s)
{
	struct side *from = &c->side[s];
	ssize_t n, take;
	int r;

	n = receive_some(from, rl->buffer, rl->chunk);
	if (n <= 0)
		return n;
	take = flow_take(&c->flow[s], rl->buffer, (size_t)n);
	if (take < 0)
		return take;
	if (take < n) /* the beginning of the next message */
		buf_append(&from->in, rl->buffer + take, (size_t)(n - take));
	if (c->bytes[s] == 0)
		c->flow[s].sealed = is_sealed(rl->buffer, (size_t)take);
	account(c, s, (size_t)take);
	r = deliver(&c->side[!s], rl->buffer, (size_t)take);
	if (c->flow[s].sealed && c->flow[s].run >= RELAY_BULK)
		let_others(rl);
	return r < 0 ? r : n;
}

static ssize_t splice_some(int from, int to, size_t len)
{
	ssize_t n;

	do {
		n = splice(from, NULL, to, NULL, len, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
	} while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

/* Empty the pipe. > 0 progress, 0 = wait, or -errno. */
static ssize_t pump_pipe_out(struct conn *c, unsigned s)
{
	struct relay_pipe *pipe = c->flow[s].pipe;
	ssize_t n = splice_some(pipe->fd[0], c->side[!s].fd, pipe->fill);

	if (n == -EAGAIN)
		return 0;
	if (n > 0)
		pipe->fill -= (size_t)n;
	return n;
}

static ssize_t pump_pipe_in(struct relay *rl, struct conn *c, unsigned s)
{
	struct side *from = &c->side[s];
	struct flow *f = &c->flow[s];
	size_t want = RELAY_PIPE_SIZE;
	ssize_t n;

	if (f->mode == FLOW_LENGTH && f->left < want)
		want = (size_t)f->left;
	n = splice_some(from->fd, f->pipe->fd[1], want);
	if (n > 0) {
		f->pipe->fill += (size_t)n;
		account(c, s, (size_t)n);
		(void)flow_take(f, NULL, (size_t)n);
		return n;
	}
	from->readable = false;
	from->eof = n == 0;
	relay_release(rl, f);
	return n == -EAGAIN ? 0 : n;
}

static bool may_splice(const struct flow *f)
{
	return f->run >= RELAY_BULK && !f->sealed &&
	       (f->mode == FLOW_FREE || f->mode == FLOW_TO_EOF ||
		(f->mode == FLOW_LENGTH && f->left > RELAY_BUFFER));
}

bool relay_finished(const struct conn *c, unsigned s)
{
	const struct flow *f = &c->flow[s];

	return f->mode == FLOW_DONE && c->side[!s].out.len == 0 && (!f->pipe || f->pipe->fill == 0);
}

/* The sender is at its end and everything has been delivered. */
static int finish(struct conn *c, unsigned s)
{
	struct flow *f = &c->flow[s];
	struct side *to = &c->side[!s];

	if (f->mode == FLOW_LENGTH || f->mode == FLOW_CHUNKED)
		return -EBADMSG; /* cut short: must not look complete to the receiver */
	/* when the other direction has ended too, closing says the same */
	if ((f->mode == FLOW_FREE || f->mode == FLOW_WATCHED || f->mode == FLOW_HELLOS) &&
	    !to->shut && !relay_finished(c, !s)) {
		to->shut = true;
		if (shutdown(to->fd, SHUT_WR) < 0)
			return -errno;
	}
	f->mode = FLOW_DONE;
	return 0;
}

/* What waits to be written, together with what was read behind it. */
static int push_waiting(struct conn *c, unsigned s)
{
	struct side *from = &c->side[s], *to = &c->side[!s];
	enum flow_mode mode = c->flow[s].mode;
	int r = 0;

	if (to->out.len == 0)
		return 0;
	if (to->out.len < RELAY_TOGETHER && from->in.len > 0 && mode != FLOW_NONE &&
	    mode != FLOW_DONE)
		r = pump_kept(c, s);
	return r < 0 ? r : relay_flush(to);
}

/* What we hold already, before anything more is read: 1 = go on, 0 or -errno = enough. */
static int pump_held(struct relay *rl, struct conn *c, unsigned s, bool *ret_moved)
{
	struct side *from = &c->side[s], *to = &c->side[!s];
	struct flow *f = &c->flow[s];
	ssize_t n = push_waiting(c, s);

	*ret_moved = true;
	if (n < 0 || to->out.len > 0)
		return (int)n;
	if (f->pipe && f->pipe->fill > 0) {
		n = pump_pipe_out(c, s);
		return n <= 0 ? (int)n : 1;
	}
	if (f->mode == FLOW_NONE || f->mode == FLOW_DONE) {
		relay_release(rl, f);
		return 0;
	}
	if (from->in.len > 0) {
		n = pump_kept(c, s);
		return n < 0 ? (int)n : 1;
	}
	*ret_moved = false;
	return 1;
}

int relay_pump(struct relay *rl, struct conn *c, unsigned s)
{
	struct side *from = &c->side[s];
	struct flow *f = &c->flow[s];

	for (size_t moved = 0; moved < RELAY_TURN;) {
		bool held;
		ssize_t n = pump_held(rl, c, s, &held);

		if (n <= 0)
			return (int)n;
		if (held)
			continue;
		if (from->eof)
			return finish(c, s);
		if (!from->readable)
			return 0;
		if (!f->pipe && may_splice(f))
			borrow_pipe(rl, f);
		n = f->pipe ? pump_pipe_in(rl, c, s) : pump_copy(rl, c, s);
		if (n < 0)
			return (int)n;
		moved += (size_t)n;
	}
	return 0;
}
