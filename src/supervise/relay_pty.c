/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pty in place of the caller's terminal. The line discipline is the pty's: it echoes, edits
 * lines, and turns keys into signals for the command; the terminal outside is raw
 * and only carries bytes. When we are stopped or in the background, the terminal outside is as
 * it was and its keys are not ours.
 *
 * For output only (stderr is a terminal, stdout is not) the pty passes bytes as they are,
 * and the terminal outside stays as it is.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/fd.h"
#include "supervise/relay_internal.h"

static void copy_size(const struct relay *s)
{
	struct winsize size;

	if (ioctl(s->tty, TIOCGWINSZ, &size) == 0)
		(void)ioctl(s->master, TIOCSWINSZ, &size);
}

static int open_pty(struct relay *s, struct error *e)
{
	s->master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
	if (s->master < 0 || grantpt(s->master) < 0 || unlockpt(s->master) < 0 ||
	    ptsname_r(s->master, s->path, sizeof(s->path)) != 0)
		return error_set(e, errno, "cannot make a terminal for the command: %s",
				 strerror(errno));
	s->slave = open(s->path, O_RDWR | O_NOCTTY | O_CLOEXEC);
	return s->slave < 0 ? error_set(e, errno, "cannot open %s: %s", s->path, strerror(errno))
			    : 0;
}

/* A description of our own of the terminal: what we set on it is nobody else's. */
static int open_terminal(struct relay *s, int fd, struct error *e)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	s->tty = open(path, O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
	if (s->tty < 0 && errno == EACCES) /* of another user, as after su */
		s->tty = open("/dev/tty", O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
	return s->tty < 0
		       ? error_set(e, errno, "cannot open the terminal again: %s", strerror(errno))
		       : 0;
}

int relay_make_pty(struct relay *s, int tty, bool full, struct error *e)
{
	struct flow *screen = &s->flows[FLOW_SCREEN], *keys = &s->flows[FLOW_KEYS];
	struct termios inner;
	int r = open_terminal(s, tty, e);

	if (r == 0)
		r = open_pty(s, e);
	if (r < 0)
		return r;
	s->full = full;
	if (tcgetattr(s->tty, &s->saved) < 0)
		return error_set(e, errno, "cannot ask the terminal: %s", strerror(errno));
	inner = s->saved;
	if (!full)
		cfmakeraw(&inner);
	(void)tcsetattr(s->slave, TCSANOW, &inner);
	copy_size(s);
	*screen = (struct flow){ .from = s->master,
				 .to = s->tty,
				 .from_way = FLOW_NONBLOCK,
				 .to_way = FLOW_NONBLOCK,
				 .stream = full ? SESLOG_TERMINAL : SESLOG_ERR,
				 .output = true };
	if (full)
		*keys = (struct flow){ .from = s->tty,
				       .to = s->master,
				       .from_way = FLOW_NONBLOCK,
				       .to_way = FLOW_NONBLOCK,
				       .stream = SESLOG_KEYS,
				       .paused = true };
	return 0;
}

static void set_raw(struct relay *s)
{
	struct termios raw = s->saved;

	cfmakeraw(&raw);
	s->raw = tcsetattr(s->tty, TCSANOW, &raw) == 0;
	s->flows[FLOW_KEYS].paused = !s->raw;
}

void relay_look_at_foreground(struct relay *s)
{
	/* before the command has its terminal, a key for a signal would be lost on it */
	s->begun = s->begun || (s->full && tcgetpgrp(s->master) > 0);
	if (!s->begun || s->raw || tcgetpgrp(s->tty) != getpgrp())
		return;
	/* a shell may have changed it while it was not ours */
	if (tcgetattr(s->tty, &s->saved) == 0)
		set_raw(s);
}

bool relay_is_hidden(const struct relay *s)
{
	struct termios inner;

	/* a shell that edits lines by itself turns off both, and echoes by itself */
	return tcgetattr(s->master, &inner) == 0 && (inner.c_lflag & ICANON) &&
	       !(inner.c_lflag & ECHO);
}

static void set_cooked(struct relay *s, const struct termios *to)
{
	if (s->raw)
		(void)tcsetattr(s->tty, TCSANOW, to);
	s->raw = false;
	s->flows[FLOW_KEYS].paused = true;
}

void relay_resize(struct relay *s)
{
	if (s->master >= 0)
		copy_size(s);
}

void relay_pause(struct relay *s)
{
	relay_pass_output(s); /* before the shell says that we are stopped */
	set_cooked(s, &s->saved);
}

void relay_resume(struct relay *s)
{
	relay_resize(s);
	relay_look_at_foreground(s);
}

void relay_begin_message(struct relay *s)
{
	if (s->raw)
		(void)tcsetattr(s->tty, TCSANOW, &s->saved);
}

void relay_end_message(struct relay *s)
{
	if (s->raw)
		set_raw(s);
}

void relay_close_pty(struct relay *s)
{
	struct flow *keys = &s->flows[FLOW_KEYS];
	struct termios raw;
	ssize_t n = 0;

	if (s->slave < 0)
		return;
	(void)tcgetattr(s->slave, &s->left);
	raw = s->left;
	cfmakeraw(&raw);
	raw.c_cc[VMIN] = 0; /* whatever there is, at once */
	if (s->raw && tcsetattr(s->slave, TCSANOW, &raw) == 0)
		n = read(s->slave, s->typed, sizeof(s->typed));
	s->n_typed = n > 0 ? (size_t)n : 0;
	if (keys->len > 0 && keys->len <= sizeof(s->typed) - s->n_typed) {
		memcpy(s->typed + s->n_typed, keys->buffer + keys->start, keys->len);
		s->n_typed += keys->len;
	}
	fd_close(TAKE_FD(s->slave));
}

/*
 * What was typed ahead was meant for the shell that comes next. These are the person's own keys: the
 * command cannot put any into a terminal. Kernels may refuse it; then they are lost.
 */
static void type_again(const struct relay *s)
{
	for (size_t i = 0; i < s->n_typed; i++) {
		if (ioctl(s->tty, TIOCSTI, &s->typed[i]) < 0)
			return;
	}
}

/* A command that was over before we had seen it begin may have changed its terminal too. */
void relay_restore(struct relay *s, bool as_left)
{
	bool ours = s->raw || (s->full && tcgetpgrp(s->tty) == getpgrp());

	if (!ours)
		return;
	s->raw = true;
	set_cooked(s, as_left && s->slave < 0 ? &s->left : &s->saved);
	type_again(s);
}
