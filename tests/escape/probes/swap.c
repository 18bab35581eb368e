/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The race of path checks: one process flips a name between a good and a forbidden
 * directory, another keeps writing through that name. Who checks the name and then
 * uses it again loses within milliseconds; who resolves it once does not.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
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
