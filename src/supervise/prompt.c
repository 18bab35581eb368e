/* SPDX-License-Identifier: Apache-2.0 */
#include "supervise/prompt.h"

#include <poll.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/sys.h"
#include "base/text.h"

#define LINE_BYTES 256
#define LOOK_MS 200 /* whether the question still matters */

/* Until there is something to read. False when nothing will be. */
static bool wait_for_line(const struct prompt *p, uint64_t end)
{
	struct pollfd fds[] = { { .fd = p->tty, .events = POLLIN },
				{ .fd = p->signals, .events = POLLIN } };

	while (sys_now_ms() < end) {
		int wait = p->wait_ms(p->ctx);

		if (wait < 0 || wait > LOOK_MS)
			wait = LOOK_MS;
		if (poll(fds, ARRAY_LEN(fds), wait) < 0)
			continue; /* EINTR */
		if (fds[1].revents || !p->look(p->ctx))
			return false;
		if (fds[0].revents)
			return true;
	}
	return false;
}

/* The first letter of a line; '\n' when there is none, 0 at the end of all lines. */
static char read_letter(const struct prompt *p, uint64_t end)
{
	char line[LINE_BYTES], *s = line;
	ssize_t n;

	if (!wait_for_line(p, end))
		return 0;
	n = read(p->tty, line, sizeof(line) - 1);
	if (n <= 0)
		return 0;
	line[n] = '\0';
	if (n == sizeof(line) - 1)
		(void)tcflush(p->tty, TCIFLUSH); /* the rest of a long line is no answer */
	s += strspn(s, " \t");
	return *s ? ascii_lower(*s) : '\n';
}

/* A slip of the finger is no refusal: what is not an answer is asked for again. */
static char read_key(const struct prompt *p, const char *again, const char *keys)
{
	uint64_t end = sys_now_ms() + (uint64_t)p->timeout_ms;
	char letter;

	while ((letter = read_letter(p, end)) && !strchr(keys, letter)) {
		if (fd_write_all(p->tty, again, strlen(again)) < 0)
			return 0;
	}
	return letter;
}

char prompt_ask(const struct prompt *p, const char *question, const char *again, const char *keys)
{
	struct termios old, plain;
	int tty = p->tty;
	char key = 0;

	if (tcgetattr(tty, &old) < 0)
		return 0;
	(void)tcflow(tty, TCOON); /* the command may have stopped it: we would wait for ever */
	plain = old;
	plain.c_iflag |= ICRNL;
	plain.c_oflag |= OPOST | ONLCR;
	plain.c_lflag |= ICANON | ECHO | ECHOE | ISIG | TOSTOP;
	if (tcsetattr(tty, TCSAFLUSH, &plain) < 0)
		return 0;
	if (fd_write_all(tty, question, strlen(question)) == 0)
		key = read_key(p, again, keys);
	(void)tcsetattr(tty, TCSADRAIN, &old);
	return key;
}
