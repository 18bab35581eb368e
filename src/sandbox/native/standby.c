/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a sandbox that stands ready is told its command: one message on the errors socket, with the
 * three descriptors. The one who waits is behind the filter already, so nothing here makes a call
 * that the broker would be asked about.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "sandbox/native/native.h"

#define WORDS_MAX (NATIVE_COMMAND_MAX / 8)

struct header {
	uint32_t n_argv, n_env;
};

static size_t put_words(struct buf *b, char *const *words)
{
	size_t n = 0;

	for (; words[n]; n++)
		buf_append(b, words[n], strlen(words[n]) + 1);
	return n;
}

int native_send_command(int errors, const struct native_command *c)
{
	_cleanup_buf_ struct buf b = BUF_INIT(NATIVE_COMMAND_MAX);
	struct header h = { 0 };

	buf_append(&b, &h, sizeof(h));
	buf_append(&b, c->cwd, strlen(c->cwd) + 1);
	h.n_argv = (uint32_t)put_words(&b, c->argv);
	h.n_env = (uint32_t)put_words(&b, c->env);
	if (b.overflow || b.len > NATIVE_COMMAND_MAX || (size_t)h.n_argv + h.n_env + 2 > WORDS_MAX)
		return -E2BIG;
	memcpy(b.data, &h, sizeof(h));
	return fd_send_many(errors, b.data, b.len, c->stdio, ARRAY_LEN(c->stdio));
}

/* `n` words from `at` on, with a NULL behind them. */
static char **split(char **at, const char *end, char **list, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		char *stop = memchr(*at, '\0', (size_t)(end - *at));

		if (!stop)
			return NULL;
		list[i] = *at;
		*at = stop + 1;
	}
	list[n] = NULL;
	return list;
}

static int receive(int errors, char text[NATIVE_COMMAND_MAX], int fds[3])
{
	struct pollfd told = { .fd = errors, .events = POLLIN };
	ssize_t n;

	do {
		(void)poll(&told, 1, -1);
		n = fd_receive_many(errors, text, NATIVE_COMMAND_MAX, fds, 3);
	} while (n == -EINTR || n == -EAGAIN);
	if (n == 0)
		_exit(125); /* nobody is left who could tell us */
	return (int)n;
}

int native_take_command(int errors, char ***ret_argv, char ***ret_env, struct error *e)
{
	static char text[NATIVE_COMMAND_MAX], *list[WORDS_MAX]; /* too large for the stack */
	int fds[3], n = receive(errors, text, fds);
	char *at = text + sizeof(struct header), *cwd[2];
	const char *end = text + n;
	struct header h;

	if (n < (int)sizeof(h) || fds[2] < 0)
		return error_set(e, n < 0 ? -n : EPROTO, "cannot hear the command: %s",
				 strerror(n < 0 ? -n : EPROTO));
	memcpy(&h, text, sizeof(h));
	if (!h.n_argv || (size_t)h.n_argv + h.n_env + 2 > WORDS_MAX || !split(&at, end, cwd, 1))
		return error_set(e, EPROTO, "cannot hear the command: %s", strerror(EPROTO));
	*ret_argv = split(&at, end, list, h.n_argv);
	*ret_env = *ret_argv ? split(&at, end, list + h.n_argv + 1, h.n_env) : NULL;
	if (!*ret_env)
		return error_set(e, EPROTO, "cannot hear the command: %s", strerror(EPROTO));
	for (int i = 0; i < 3; i++) {
		if (dup2(fds[i], i) < 0)
			return error_set(e, errno, "cannot take descriptor %d: %s", i,
					 strerror(errno));
	}
	if (chdir(cwd[0]) < 0)
		return error_set(e, errno, "cannot enter %s inside the sandbox: %s", cwd[0],
				 strerror(errno));
	return 0;
}
