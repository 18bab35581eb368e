/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The race of path checks: one process flips a name between a good and a forbidden
 * directory, another keeps writing through that name. Who checks the name and then
 * uses it again loses within milliseconds; who resolves it once does not.
 *
 * The same with connect(): the address turns into that of a unix socket, or the descriptor
 * into one, behind the back of whoever looked at it.
 */
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "attack.h"

static void flip(const char *name, const char *good, const char *bad)
{
	char next[4096];

	snprintf(next, sizeof next, "%s.next", name);
	for (unsigned i = 0;; i++) {
		unlink(next);
		if (symlink(i % 2 ? good : bad, next) == 0)
			(void)!rename(next, name);
	}
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

int attack_swap(const char *name, const char *good, const char *bad, const char *ms)
{
	double end = now() + strtod(ms, NULL) / 1000;
	unsigned long tries = 0, wrote = 0;
	char path[4096];
	pid_t flipper = fork();

	if (flipper == 0)
		flip(name, good, bad);
	snprintf(path, sizeof path, "%s/file", name);
	while (now() < end) {
		int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

		tries++;
		if (fd < 0)
			continue;
		wrote += write(fd, "EVIL", 4) == 4;
		close(fd);
		if (rename(path, path) == 0)
			(void)!truncate(path, 4);
	}
	kill(flipper, SIGKILL);
	waitpid(flipper, NULL, 0);
	printf("%lu tries, %lu written\n", tries, wrote);
	return 0;
}

struct dialing {
	struct sockaddr_un addr;
	volatile int number; /* of the descriptor that changes; -1 = the address does */
	int local, inet;
};

static void *change(void *arg)
{
	struct dialing *d = arg;

	for (;;) {
		if (d->number >= 0) {
			dup2(d->inet, d->number);
			dup2(d->local, d->number);
			continue;
		}
		*(volatile sa_family_t *)&d->addr.sun_family = AF_INET;
		*(volatile sa_family_t *)&d->addr.sun_family = AF_UNIX;
	}
	return NULL;
}

int attack_dial(const char *path, const char *what, const char *ms)
{
	double end = now() + strtod(ms, NULL) / 1000;
	struct dialing d = { .addr = { .sun_family = AF_UNIX }, .number = -1 };
	unsigned long tries = 0, refused = 0;
	pthread_t thread;

	snprintf(d.addr.sun_path, sizeof d.addr.sun_path, "%s", path);
	d.inet = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	d.local = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (!strcmp(what, "descriptor"))
		d.number = dup(d.local);
	pthread_create(&thread, NULL, change, &d);
	while (now() < end) {
		int fd = d.number >= 0 ? d.number : socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

		tries++;
		if (connect(fd, (struct sockaddr *)&d.addr, sizeof d.addr) == 0)
			(void)!send(fd, "EVIL", 4, MSG_NOSIGNAL);
		else
			refused++;
		if (d.number < 0)
			close(fd);
	}
	printf("%lu tries, %lu refused\n", tries, refused);
	fflush(stdout);
	_exit(0);
}
