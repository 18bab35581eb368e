/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The relay. Five flows at most, each with one buffer: bytes are read when it is empty and
 * written when there is something in it, so that a slow reader slows the writer down as a
 * pipe would. Nothing here waits: a terminal or a reader that is stuck must not keep the
 * supervisor from its limits. Descriptors that others share are never set to O_NONBLOCK;
 * they are opened again where that is possible.
 *
 * When the reader outside goes away, the command's pipe is closed and its next write
 * fails as it would have; when the command closes its input, no more is read for it.
 */
#include "supervise/relay.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "supervise/relay_internal.h"

/* Between two looks whether the command has its terminal, whether we are in the foreground now. */
#define BEGIN_MS 5
#define FOREGROUND_MS 200
#define PASS_MS 5
#define PASS_ROUNDS 64

/* --- one flow ------------------------------------------------------------------------ */

void flow_open_outside(struct flow *f, int fd, int flags)
{
	bool reading = (flags & O_ACCMODE) == O_RDONLY;
	int *own = reading ? &f->from : &f->to;
	enum flow_way *way = reading ? &f->from_way : &f->to_way;
	char path[64];
	struct stat st;

	*own = fd;
	*way = FLOW_READY;
	if (fstat(fd, &st) < 0)
		return;
	if (S_ISREG(st.st_mode)) {
		*way = FLOW_FILE; /* opened again it would have another offset */
	} else if (S_ISSOCK(st.st_mode)) {
		*way = FLOW_SOCKET;
	} else {
		(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		fd = open(path, flags | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
		if (fd < 0)
			return; /* somebody else's pipe */
		*own = fd;
		*way = FLOW_NONBLOCK;
		*(reading ? &f->owns_from : &f->owns_to) = true;
	}
}

static void close_from(struct flow *f)
{
	if (f->owns_from)
		fd_close(f->from);
	f->from = -1;
}

static void close_to(struct flow *f)
{
	if (f->owns_to)
		fd_close(f->to);
	f->to = -1;
}

/* The reader is gone: what waits has nowhere to go, and the writer must feel it. */
static void break_flow(struct flow *f)
{
	close_to(f);
	close_from(f);
	f->len = 0;
}

static bool is_again(int err)
{
	return err == EAGAIN || err == EINTR;
}

static ssize_t read_flow(const struct flow *f, char *data, size_t n)
{
	if (f->from_way == FLOW_SOCKET)
		return recv(f->from, data, n, MSG_DONTWAIT);
	return read(f->from, data, n);
}

/* Count, note down, and keep no more than may be passed on. */
static void take_in(struct relay *s, struct flow *f, size_t n)
{
	if (f->output) {
		if (s->output_max && s->output + n > s->output_max) {
			n = (size_t)(s->output_max - s->output);
			s->over = true;
		}
		s->output += n;
	}
	f->start = 0;
	f->len = n;
	if (!s->log || n == 0)
		return;
	if (f->stream == SESLOG_KEYS && relay_is_hidden(s))
		seslog_hide(s->log, f->stream);
	else
		seslog_add(s->log, f->stream, f->buffer, n);
}

/* False when there is nothing (more) to be had now. */
static bool fill(struct relay *s, struct flow *f)
{
	ssize_t n;

	if (f->from < 0 || f->len > 0 || f->paused || s->over)
		return false;
	n = read_flow(f, f->buffer, FLOW_BUFFER);
	if (n > 0) {
		take_in(s, f, (size_t)n);
		return true;
	}
	if (n < 0 && is_again(errno))
		return false;
	close_from(f); /* the end; a pty says EIO */
	return false;
}

/* What we cannot open again might make us wait: only a piece that it takes for certain. */
static bool may_pour(const struct flow *f)
{
	struct pollfd ready = { .fd = f->to, .events = POLLOUT };

	return f->to_way != FLOW_READY || (poll(&ready, 1, 0) == 1 && (ready.revents & POLLOUT));
}

static void pour(struct flow *f)
{
	while (f->to >= 0 && f->len > 0 && may_pour(f)) {
		size_t n = f->to_way == FLOW_READY && f->len > FLOW_SMALL ? FLOW_SMALL : f->len;
		ssize_t done = f->to_way == FLOW_SOCKET ? send(f->to, f->buffer + f->start, n,
							       MSG_DONTWAIT | MSG_NOSIGNAL)
							: write(f->to, f->buffer + f->start, n);

		if (done < 0 && is_again(errno))
			return;
		if (done < 0) {
			break_flow(f);
			return;
		}
		f->start += (size_t)done;
		f->len -= (size_t)done;
	}
}

/* All that was to be read is through: the command sees the end of its input. */
static void end_input(struct relay *s)
{
	struct flow *f = &s->flows[FLOW_IN];

	if (f->from < 0 && f->len == 0)
		close_to(f);
}

/* --- set-up ------------------------------------------------------------------------------ */

/* A pipe whose both ends are above 2. */
int relay_pair(int ret[2], struct error *e)
{
	if (pipe2(ret, O_CLOEXEC) < 0)
		return error_set(e, errno, "cannot make a pipe: %s", strerror(errno));
	for (size_t i = 0; i < 2; i++) {
		int fd = ret[i];

		if (fd > 2)
			continue;
		ret[i] = fcntl(fd, F_DUPFD_CLOEXEC, 3);
		fd_close(fd);
		if (ret[i] < 0)
			return error_set(e, errno, "cannot make a pipe: %s", strerror(errno));
	}
	return 0;
}

static int make_output(struct relay *s, int fd, struct error *e)
{
	struct flow *f = &s->flows[fd == 1 ? FLOW_OUT : FLOW_ERR];
	int pair[2], r = relay_pair(pair, e);

	if (r < 0)
		return r;
	(void)fcntl(pair[0], F_SETFL, O_NONBLOCK);
	f->from = pair[0];
	f->owns_from = true;
	f->from_way = FLOW_NONBLOCK;
	f->stream = fd == 1 ? SESLOG_OUT : SESLOG_ERR;
	f->output = true;
	flow_open_outside(f, fd, O_WRONLY);
	s->inner[fd] = pair[1];
	return 0;
}

static int make_input(struct relay *s, const struct stat *st, struct error *e)
{
	struct flow *f = &s->flows[FLOW_IN];
	int pair[2], r = relay_pair(pair, e);

	if (r < 0)
		return r;
	(void)fcntl(pair[1], F_SETFL, O_NONBLOCK);
	flow_open_outside(f, 0, O_RDONLY);
	f->to = pair[1];
	f->owns_to = true;
	f->to_way = FLOW_NONBLOCK;
	f->stream = SESLOG_IN;
	s->inner[0] = pair[0];
	/* what the command leaves of a file is for who reads it next */
	if (S_ISREG(st->st_mode))
		s->unread = fcntl(pair[0], F_DUPFD_CLOEXEC, 3);
	return 0;
}

/* The descriptor is the terminal whose keys and screen we stand in for. */
static bool is_same_terminal(int fd, int tty)
{
	struct stat a, b;

	return isatty(fd) && fstat(fd, &a) == 0 && fstat(tty, &b) == 0 &&
	       (a.st_rdev == b.st_rdev || tcgetpgrp(fd) >= 0); /* /dev/tty is another device */
}

static int set_up_terminal(struct relay *s, int tty, bool terminal[3], struct error *e)
{
	bool full = terminal[1] && tty >= 0 && is_same_terminal(1, tty);
	int from = terminal[1] ? 1 : 2, r;

	if (!terminal[1] && !terminal[2])
		return 0;
	r = relay_make_pty(s, from, full, e);
	for (int fd = full ? 0 : 1; fd <= 2 && r == 0; fd++) {
		if (terminal[fd])
			s->inner[fd] = fcntl(s->slave, F_DUPFD_CLOEXEC, 3);
	}
	return r;
}

static int set_up(struct relay *s, int tty, struct error *e)
{
	bool terminal[3];
	struct stat st;
	int r;

	for (int fd = 0; fd <= 2; fd++)
		terminal[fd] = isatty(fd);
	r = set_up_terminal(s, tty, terminal, e);
	for (int fd = 1; fd <= 2 && r == 0; fd++) {
		if (!terminal[fd] && fstat(fd, &st) == 0 && !S_ISDIR(st.st_mode))
			r = make_output(s, fd, e);
	}
	/* input is passed through for the log only; a device has no end to be told of */
	if (r == 0 && s->log && !terminal[0] && fstat(0, &st) == 0 &&
	    (S_ISREG(st.st_mode) || S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode)))
		r = make_input(s, &st, e);
	for (size_t i = 0; i < FLOW_MAX_ && r == 0; i++) {
		struct flow *f = &s->flows[i];

		if (f->from < 0)
			continue;
		f->buffer = malloc(FLOW_BUFFER);
		if (!f->buffer)
			abort();
	}
	return r;
}

static bool has_terminal(void)
{
	return isatty(0) || isatty(1) || isatty(2);
}

int relay_new(const struct relay_setup *setup, struct relay **ret, struct error *e)
{
	struct relay *s;
	int r;

	*ret = NULL;
	if (!setup->log && !setup->output_max &&
	    !(setup->own_terminal && setup->tty >= 0 && has_terminal()))
		return 0;
	s = calloc(1, sizeof(*s));
	if (!s)
		abort();
	s->log = setup->log;
	s->output_max = setup->output_max;
	s->tty = s->master = s->slave = s->unread = -1;
	s->pipe_signal = SIG_DFL;
	for (size_t i = 0; i < ARRAY_LEN(s->inner); i++)
		s->inner[i] = -1;
	for (size_t i = 0; i < FLOW_MAX_; i++)
		s->flows[i].from = s->flows[i].to = -1;
	r = set_up(s, setup->tty, e);
	if (r < 0)
		(void)relay_free(s, RELAY_KILLED);
	else
		*ret = s;
	return r;
}

const int *relay_inner(const struct relay *s)
{
	return s->inner;
}

int relay_terminal(const struct relay *s)
{
	return s->full ? s->slave : -1;
}

const char *relay_terminal_path(const struct relay *s)
{
	return s->full ? s->path : NULL;
}

void relay_started(struct relay *s)
{
	for (size_t i = 0; i < ARRAY_LEN(s->inner); i++)
		fd_close(TAKE_FD(s->inner[i]));
	/* who reads our output may leave: that is the command's business, not our end */
	s->pipe_signal = signal(SIGPIPE, SIG_IGN);
	relay_look_at_foreground(s);
}

static void hang_up(struct relay *s)
{
	break_flow(&s->flows[FLOW_KEYS]);
	break_flow(&s->flows[FLOW_SCREEN]);
	fd_close(TAKE_FD(s->master));
}

/* --- while it runs ------------------------------------------------------------------------- */

size_t relay_poll(struct relay *s, struct pollfd fds[RELAY_POLL_MAX])
{
	for (size_t i = 0; i < FLOW_MAX_; i++) {
		const struct flow *f = &s->flows[i];
		bool reads = f->len == 0 && !f->paused && !s->over;
		/* a file is always ready, also to be asked for errors */
		bool asks = f->to_way != FLOW_FILE;

		fds[2 * i] =
			(struct pollfd){ .fd = reads ? f->from : -1, .events = reads ? POLLIN : 0 };
		fds[2 * i + 1] = (struct pollfd){ .fd = f->len || asks ? f->to : -1,
						  .events = f->len ? POLLOUT : 0 };
	}
	return (size_t)2 * FLOW_MAX_;
}
_Static_assert(2 * FLOW_MAX_ == RELAY_POLL_MAX, "two descriptors per flow");

int relay_wait_ms(const struct relay *s)
{
	int wait = s->log ? seslog_wait_ms(s->log) : -1;
	int look = !s->full || s->raw ? -1 : s->begun ? FOREGROUND_MS : BEGIN_MS;

	return look >= 0 && (wait < 0 || look < wait) ? look : wait;
}

void relay_step(struct relay *s, const struct pollfd *fds, size_t n)
{
	for (size_t i = 0; i < FLOW_MAX_ && 2 * i + 1 < n; i++) {
		struct flow *f = &s->flows[i];

		if (fds[2 * i].revents && fill(s, f))
			pour(f);
		else if (fds[2 * i + 1].revents & POLLOUT)
			pour(f);
		/* nobody reads there any more; a terminal that hung up says the same */
		if (fds[2 * i + 1].revents & (POLLERR | POLLNVAL))
			break_flow(f);
	}
	/* the terminal hung up: so does the pty, and who writes to it is told */
	if (s->master >= 0 && s->flows[FLOW_SCREEN].to < 0)
		hang_up(s);
	end_input(s);
	if (s->full && !s->raw)
		relay_look_at_foreground(s);
	if (s->log)
		seslog_flush(s->log);
}

bool relay_is_over(const struct relay *s)
{
	return s->over;
}

void relay_pass_output(struct relay *s)
{
	struct pollfd printed = { .fd = s->master, .events = POLLIN };
	bool more = true;

	(void)poll(&printed, 1, PASS_MS); /* a terminal's bytes need a moment to arrive */
	for (unsigned round = 0; more && round < PASS_ROUNDS; round++) {
		more = false;
		for (size_t i = 0; i < FLOW_MAX_; i++) {
			struct flow *f = &s->flows[i];

			if (i == FLOW_IN || i == FLOW_KEYS)
				continue;
			pour(f);
			more |= fill(s, f);
			pour(f);
		}
	}
}

bool relay_drain(struct relay *s)
{
	bool done = true;

	relay_close_pty(s);
	for (size_t i = 0; i < FLOW_MAX_; i++) {
		struct flow *f = &s->flows[i];

		if (i == FLOW_IN || i == FLOW_KEYS) {
			close_from(f);
			close_to(f); /* what waits is given back */
			continue;
		}
		do
			pour(f);
		while (fill(s, f));
		done &= f->to < 0 || (f->len == 0 && (f->from < 0 || s->over));
	}
	return done;
}

/* What we read of a file for the command, and it did not: as if we had never read it. */
static void give_back(struct relay *s)
{
	const struct flow *f = &s->flows[FLOW_IN];
	int waiting = 0;

	if (s->unread < 0 || ioctl(s->unread, FIONREAD, &waiting) < 0)
		return;
	(void)lseek(0, -(off_t)((size_t)waiting + f->len), SEEK_CUR);
}

uint64_t relay_free(struct relay *s, enum relay_end how)
{
	uint64_t output;

	if (!s)
		return 0;
	give_back(s);
	relay_restore(s, how == RELAY_ENDED);
	for (size_t i = 0; i < FLOW_MAX_; i++) {
		break_flow(&s->flows[i]);
		free(s->flows[i].buffer);
	}
	for (size_t i = 0; i < ARRAY_LEN(s->inner); i++)
		fd_close(s->inner[i]);
	fd_close(s->unread);
	fd_close(s->slave);
	fd_close(s->master);
	fd_close(s->tty);
	(void)signal(SIGPIPE, s->pipe_signal);
	output = s->output;
	free(s);
	return output;
}
