/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Typing into the caller's terminal. The filter sees the request as 64 bits, the kernel
 * uses 32: the upper half must not make a difference. Keys: none; standard input is
 * the terminal. The test looks whether the letter arrived.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <termios.h>
#include <unistd.h>

#include <asm/ioctls.h>

#include "probe.h"

#define PROBE(name) static int name(const struct context *c, char *detail, size_t size)
#define UNUSED_ARGS ((void)c, (void)detail, (void)size)
#define HIGH(n) (1ULL << (n))
#define TIOCLINUX_REQUEST 0x541cU

static int request(int fd, uint64_t number, const char *letters)
{
	for (; *letters; letters++)
		if (syscall(SYS_ioctl, fd, number, letters) < 0)
			return -errno;
	return 0;
}

PROBE(tty_sti)
{
	UNUSED_ARGS;
	return request(0, TIOCSTI, "INJ");
}

PROBE(tty_sti_high)
{
	UNUSED_ARGS;
	return request(0, HIGH(32) | TIOCSTI, "INJ");
}

PROBE(tty_sti_top)
{
	UNUSED_ARGS;
	return request(0, HIGH(63) | TIOCSTI, "INJ");
}

PROBE(tty_sti_dev)
{
	int fd = open("/dev/tty", O_RDWR | O_CLOEXEC);

	UNUSED_ARGS;
	return fd < 0 ? -errno : request(fd, TIOCSTI, "INJ");
}

/* Sub-code 6 asks for the shift keys; 2 and 3 (select, paste) go through the same door. */
static int ask_console(uint64_t number)
{
	char code = 6;

	return syscall(SYS_ioctl, 0, number, &code) < 0 ? -errno : 0;
}

PROBE(tty_linux)
{
	UNUSED_ARGS;
	return ask_console(TIOCLINUX_REQUEST);
}

PROBE(tty_linux_high)
{
	UNUSED_ARGS;
	return ask_console(HIGH(32) | TIOCLINUX_REQUEST);
}

static const struct probe table[] = {
	{ "tty-sti", tty_sti },         { "tty-sti-high", tty_sti_high },
	{ "tty-sti-top", tty_sti_top }, { "tty-sti-dev", tty_sti_dev },
	{ "tty-linux", tty_linux },     { "tty-linux-high", tty_linux_high },
};

const struct probe_table terminal_probes = { table, sizeof table / sizeof table[0] };
