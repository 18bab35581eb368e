/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waits at a pipe that nobody reads, until something else happens: waits WAY PATH
 * alarm: a signal is handled; restart: the same, and the call goes on, until a second handler
 * lets somebody read; cancel, cancel-at: another thread cancels it.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const char *path;
static int handled;

static void alarm_soon(void)
{
	struct itimerval soon = { .it_value.tv_usec = 100000 };

	(void)setitimer(ITIMER_REAL, &soon, NULL);
}

static void handle(int sig)
{
	(void)sig;
	if (++handled < 3)
		alarm_soon();
	else
		(void)!open(path, O_RDONLY | O_NONBLOCK);
}

static void *wait_open(void *arg)
{
	(void)!open(arg, O_WRONLY | O_CREAT, 0600);
	return NULL;
}

static void *wait_openat(void *arg)
{
	(void)!openat(open(".", O_PATH), arg, O_WRONLY);
	return NULL;
}

static const char *cancel(void *(*how)(void *))
{
	struct timespec until;
	pthread_t t;
	void *result = NULL;

	(void)pthread_create(&t, NULL, how, (void *)path);
	(void)usleep(200000);
	(void)pthread_cancel(t);
	(void)clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += 5;
	if (pthread_timedjoin_np(t, &result, &until))
		return "waits";
	return result == PTHREAD_CANCELED ? "cancelled" : "returned";
}

int main(int argc, char **argv)
{
	const char *way = argc > 2 ? argv[1] : "";
	struct sigaction sa = { .sa_handler = handle,
				.sa_flags = strcmp(way, "restart") == 0 ? SA_RESTART : 0 };

	path = argv[2];
	if (mkfifo(path, 0600) < 0)
		return 2;
	(void)sigaction(SIGALRM, &sa, NULL);
	if (strcmp(way, "cancel") == 0) {
		puts(cancel(wait_open));
	} else if (strcmp(way, "cancel-at") == 0) {
		puts(cancel(wait_openat));
	} else {
		alarm_soon();
		printf("%s\n",
		       open(path, O_WRONLY | O_CREAT, 0600) < 0 ? strerror(errno) : "opened");
		printf("%d\n", handled);
	}
	fflush(stdout);
	_exit(0);
}
