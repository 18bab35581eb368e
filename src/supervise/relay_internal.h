/* SPDX-License-Identifier: Apache-2.0 */
/* Between the files of supervise/relay*.c only. */
#pragma once

#include <termios.h>

#include "supervise/relay.h"

#define FLOW_BUFFER ((size_t)64 << 10)
#define FLOW_SMALL ((size_t)4096) /* what a pipe that is ready takes for certain: PIPE_BUF */

/* How bytes go in or out without our waiting, though the descriptor may be somebody else's too. */
enum flow_way {
	FLOW_NONBLOCK, /* a description of our own, with O_NONBLOCK */
	FLOW_SOCKET, /* MSG_DONTWAIT */
	FLOW_READY, /* only when poll() says so, and in small pieces */
	FLOW_FILE, /* never waits */
};

/* One direction. */
struct flow {
	int from, to; /* -1 = closed; owned where `owns` says so */
	bool owns_from, owns_to;
	enum flow_way from_way, to_way;
	enum seslog_stream stream;
	bool output; /* is counted */
	bool paused; /* nothing is read: the keys of a terminal in whose background we are */
	char *buffer;
	size_t start, len; /* what waits in it */
};

enum {
	FLOW_IN,
	FLOW_OUT,
	FLOW_ERR,
	FLOW_KEYS, /* terminal to pty */
	FLOW_SCREEN, /* pty to terminal */
	FLOW_MAX_,
};

struct relay {
	struct seslog *log;
	uint64_t output_max, output;
	bool over;
	struct flow flows[FLOW_MAX_];
	int inner[3]; /* the command's, until it has them */
	int unread; /* end of its stdin that a file was fed into, to give back the rest; -1 = none */
	/* the terminal and the pty in its place */
	int tty; /* own description of the caller's terminal, -1 = none */
	int master, slave; /* slave: held open so that the master never hangs up */
	char path[64]; /* of the slave */
	bool full; /* the pty is the command's terminal; else only its output */
	bool begun; /* the command has taken it */
	bool raw; /* the caller's terminal is set so that every key comes through */
	struct termios saved, left; /* of the terminal; of the pty in the end */
	char typed[FLOW_SMALL]; /* keys that the command did not read */
	size_t n_typed;
	void (*pipe_signal)(int); /* what SIGPIPE did before */
};

/* A description of our own of what fd is, or fd itself with another way. */
void flow_open_outside(struct flow *f, int fd, int flags);
int relay_pair(int ret[2], struct error *e) NODISCARD;

/* relay_pty.c */
int relay_make_pty(struct relay *s, int tty, bool full, struct error *e) NODISCARD;
/* In the foreground: raw, and keys are read; else not. */
void relay_look_at_foreground(struct relay *s);
bool relay_is_hidden(const struct relay *s); /* nothing that is typed is shown: a password */
/* Nobody is left inside: keep what was typed ahead, and let the pty end. */
void relay_close_pty(struct relay *s);
/* What has been printed so far goes out, as far as it is taken at once. */
void relay_pass_output(struct relay *s);
void relay_restore(struct relay *s, bool as_left);
