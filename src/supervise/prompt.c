/* SPDX-License-Identifier: Apache-2.0 */
#include "supervise/prompt.h"

#include <poll.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/text.h"

#define LINE_BYTES 256

static char read_key(int tty, int signals, const char *keys, int timeout_ms)
{
	struct pollfd fds[] = { { .fd = tty, .events = POLLIN },
				{ .fd = signals, .events = POLLIN } };
	char line[LINE_BYTES];
	size_t blank;
	ssize_t n;

	if (poll(fds, ARRAY_LEN(fds), timeout_ms) <= 0 || fds[1].revents)
		return 0;
	n = read(tty, line, sizeof(line) - 1);
	if (n <= 0)
		return 0;
	line[n] = '\0';
	blank = strspn(line, " \t");
	if (line[blank] >= 'A' && line[blank] <= 'Z')
		line[blank] = (char)(line[blank] - 'A' + 'a');
	return line[blank] && strchr(keys, line[blank]) ? line[blank] : 0;
}

char prompt_ask(int tty, int signals, const char *question, const char *keys, int timeout_ms)
{
	struct termios old, plain;
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
		key = read_key(tty, signals, keys, timeout_ms);
	(void)tcsetattr(tty, TCSADRAIN, &old);
	return key;
}
