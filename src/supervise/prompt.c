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
static bool wait_for_line(const struct prompt *p)
{
	struct pollfd fds[] = { { .fd = p->tty, .events = POLLIN },
				{ .fd = p->signals, .events = POLLIN } };
	uint64_t now = sys_now_ms(), end = now + (uint64_t)p->timeout_ms;

	for (; now < end; now = sys_now_ms()) {
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

static char read_key(const struct prompt *p, const char *keys)
{
	char line[LINE_BYTES];
	size_t blank;
	ssize_t n;

	if (!wait_for_line(p))
		return 0;
	n = read(p->tty, line, sizeof(line) - 1);
	if (n <= 0)
		return 0;
	line[n] = '\0';
	blank = strspn(line, " \t");
	if (line[blank] >= 'A' && line[blank] <= 'Z')
		line[blank] = (char)(line[blank] - 'A' + 'a');
	return line[blank] && strchr(keys, line[blank]) ? line[blank] : 0;
}

char prompt_ask(const struct prompt *p, const char *question, const char *keys)
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
		key = read_key(p, keys);
	(void)tcsetattr(tty, TCSADRAIN, &old);
	return key;
}
