/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ambit-init: pid 1 inside namespaces that another program made. A static program, started by
 * descriptor, so that nothing of it need be visible inside.
 *
 * Trust: whoever starts it owns its descriptors and decides everything; there is no environment
 * and no file that it reads but its orders. It is as free as its starter until
 * native_settle() has given up the last capability, and starts nothing before that.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/sys.h"
#include "sandbox/bwrap/bwrap.h"
#include "sandbox/bwrap/inner.h"
#include "sandbox/bwrap/inside.h"
#include "sandbox/native/native.h"

static _Noreturn void refuse_hand_start(void)
{
	static const char text[] = "ambit-init: started by ambit, inside a sandbox, and by nobody "
				   "else; see ambit(1)\n";

	(void)!write(STDERR_FILENO, text, sizeof(text) - 1);
	_exit(125);
}

static bool is_socket(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISSOCK(st.st_mode);
}

/* Tell the supervisor that bwrap has done its part; with it goes a pidfd of ours. */
static int report_ready(char word, struct error *e)
{
	_cleanup_fd_ int self = sys_pidfd_open(getpid());
	int r = self < 0 ? self : fd_send(BWRAP_FD_READY, &word, 1, self);

	return r < 0 ? error_set(e, -r, "cannot reach the supervisor: %s", strerror(-r)) : 0;
}

static int read_orders(struct arena *a, struct inner **ret, struct error *e)
{
	const void *data;
	struct stat st;

	if (fstat(BWRAP_FD_ORDERS, &st) < 0 || st.st_size <= 0 || st.st_size > (off_t)INNER_MAX)
		return error_set(e, EBADMSG, "ambit-init got no orders");
	data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, BWRAP_FD_ORDERS, 0);
	if (data == MAP_FAILED)
		return error_set(e, errno, "ambit-init cannot read its orders: %s",
				 strerror(errno));
	return inner_unpack(a, data, (size_t)st.st_size, ret, e);
}

/* The caller's own are at their numbers again, or closed if he had none. */
static void take_descriptors(struct inner *in)
{
	for (int i = 0; i <= 2; i++) {
		if (fcntl(BWRAP_FD_STDIN + i, F_GETFD) >= 0)
			in->cmd.stdio[i] = BWRAP_FD_STDIN + i;
		else
			fd_close(i);
	}
	if (in->has_tty)
		in->cmd.tty = BWRAP_FD_TTY;
}

static int enter_group(const struct inner *in, struct error *e)
{
	int r = in->has_group ? fd_write_all(BWRAP_FD_GROUP, "0", 1) : 0;

	return r < 0 ? error_set(e, -r, "cannot enter the cgroup: %s", strerror(-r)) : 0;
}

/* A helper of the supervisor's does what we may not; he answers with a byte, or an error. */
static int await_help(struct error *e)
{
	struct error said;
	ssize_t n;

	do {
		n = recv(BWRAP_FD_READY, &said, sizeof(said), 0);
	} while (n < 0 && errno == EINTR);
	if (n == 1)
		return 0;
	if (n == sizeof(said) && said.code > 0) {
		*e = said;
		return -e->code;
	}
	return error_set(e, EPERM,
			 "ambit-init may not change its own namespaces, and is not helped");
}

static int set_up(const struct inner *in, enum bwrap_word word, struct error *e)
{
	const struct plan *plan = &in->plan;
	int r = bwrap_check_mounts(plan, e);

	if (r == 0)
		r = word == BWRAP_POWERLESS ? await_help(e)
					    : bwrap_finish(plan, BWRAP_FD_ERRORS, e);
	fd_close(BWRAP_FD_READY);
	if (r == 0)
		r = enter_group(in, e);
	return r == 0 ? native_settle(plan, in->cmd.limits, BWRAP_FD_CONTROL, BWRAP_FD_ERRORS, e)
		      : r;
}

static int begin(struct inner *in, enum bwrap_word word, mode_t mask, struct error *e)
{
	const struct init_sockets sockets = { BWRAP_FD_CONTROL, BWRAP_FD_ERRORS,
					      .listener = BWRAP_FD_ERRORS, .keeper = -1 };
	int r;

	take_descriptors(in);
	r = set_up(in, word, e);
	return r < 0 ? r : native_init(&in->plan, &in->cmd, &sockets, mask, e);
}

/* `ambit check` wants to know what could be done here. */
static _Noreturn void probe(void)
{
	_cleanup_fd_ int self = sys_pidfd_open(getpid());
	int results[NATIVE_STEP_MAX_] = { 0 };
	bool powerless = bwrap_is_powerless();
	char byte;

	if (!powerless)
		native_try(results);
	results[NATIVE_STEP_USER] = powerless ? EPERM : 0;
	if (self >= 0)
		(void)!fd_send(BWRAP_FD_READY, results, sizeof(results), self);
	if (powerless)
		(void)!recv(BWRAP_FD_READY, &byte, 1, 0); /* until the helper is done */
	_exit(0);
}

int main(int argc, char **argv)
{
	struct arena *a = arena_new();
	struct error e = { 0 };
	struct inner *in = NULL;
	mode_t mask = umask(0);
	enum bwrap_word word;
	int r;

	if (getpid() == 1 && is_socket(BWRAP_FD_READY) && argc == 2 &&
	    strcmp(argv[1], "probe") == 0)
		probe();
	if (getpid() != 1 || !is_socket(BWRAP_FD_CONTROL) || !is_socket(BWRAP_FD_ERRORS) ||
	    !is_socket(BWRAP_FD_READY))
		refuse_hand_start();
	(void)prctl(PR_SET_NAME, "ambit-init", 0, 0, 0);
	fd_close(BWRAP_FD_PROGRAM);
	word = bwrap_is_powerless() ? BWRAP_POWERLESS : BWRAP_ABLE;
	r = report_ready((char)word, &e);
	if (r == 0)
		r = read_orders(a, &in, &e);
	if (r == 0)
		r = begin(in, word, mask, &e);
	if (r < 0)
		(void)!send(BWRAP_FD_ERRORS, &e, sizeof(e), MSG_NOSIGNAL);
	_exit(125);
}
