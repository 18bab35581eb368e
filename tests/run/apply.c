/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Confines itself with ambit_apply(), then tries things, a line each: "NAME ok" or "NAME ERRNO".
 * apply DIRECTORY SECRET OUTSIDE SOCKET VICTIM [SETTING=VALUE]...; "control" in front of them:
 * without confining itself.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ambit.h"

static void tell(const char *name, int r)
{
	printf("%s %s\n", name, r < 0 ? strerrorname_np(errno) : "ok");
}

static int open_close(const char *path, int flags)
{
	int fd = open(path, flags, 0600);

	if (fd >= 0)
		close(fd);
	return fd;
}

static int reach_unix(const char *path)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", path);
	return fd < 0 ? -1 : connect(fd, (struct sockaddr *)&addr, sizeof(addr));
}

static void try_all(char **paths)
{
	char inside[4096], link_path[4096];
	int pair[2];
	pid_t victim = (pid_t)atoi(paths[4]);

	snprintf(inside, sizeof(inside), "%s/made-%d", paths[0], getpid());
	snprintf(link_path, sizeof(link_path), "%s/link", paths[0]);
	tell("write-inside", open_close(inside, O_WRONLY | O_CREAT));
	snprintf(inside, sizeof(inside), "%s/suid-%d", paths[0], getpid());
	tell("set-uid", open(inside, O_WRONLY | O_CREAT, 04755));
	tell("read-secret", open_close(paths[1], O_RDONLY));
	unlink(link_path);
	if (symlink(paths[1], link_path) < 0)
		perror("symlink");
	tell("read-link", open_close(link_path, O_RDONLY));
	tell("write-outside", open_close(paths[2], O_WRONLY));
	tell("truncate-outside", truncate(paths[2], 3));
	tell("create-outside", open_close("/etc/ambit-apply", O_WRONLY | O_CREAT));
	tell("socket-inet", socket(AF_INET, SOCK_STREAM, 0));
	tell("socket-inet6-udp", socket(AF_INET6, SOCK_DGRAM, 0));
	tell("unix", reach_unix(paths[3]));
	tell("pair", socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	tell("signal", kill(victim, 0));
	tell("trace", (int)ptrace(PTRACE_SEIZE, victim, 0, 0));
	tell("namespace", unshare(CLONE_NEWUSER));
	tell("mount", mount("none", paths[0], "tmpfs", 0, NULL));
	fflush(stdout);
}

static void *wait_for_ever(void *arg)
{
	pause();
	return arg;
}

static int confine(const char *directory, char **settings)
{
	struct ambit_config *c = ambit_config_new();
	struct ambit_error e = { 0 };
	char *text = NULL;
	int r;

	ambit_config_directory(c, directory);
	for (; *settings; settings++) {
		char *value = strchr(*settings, '=');

		*value++ = '\0';
		if (strcmp(*settings, "threads") == 0) {
			pthread_t t;

			pthread_create(&t, NULL, wait_for_ever, NULL);
		} else if (ambit_config_set(c, *settings, value) < 0) {
			return 2;
		}
	}
	r = ambit_apply(c, &text, &e);
	ambit_config_free(c);
	if (r < 0) {
		printf("refused %s: %s\n", strerrorname_np(-r), e.text);
		return 1;
	}
	printf("%s---\n", text);
	free(text);
	return 0;
}

int main(int argc, char **argv)
{
	int control = argc > 1 && strcmp(argv[1], "control") == 0;
	int r;

	argv += 1 + control;
	r = control ? 0 : confine(argv[0], argv + 5);
	if (r != 1 || argc < 0)
		try_all(argv);
	else
		return 1;
	/* what it starts is confined too */
	r = fork();
	if (r == 0) {
		execl("/bin/sh", "sh", "-c", "cat \"$1\"; echo x > \"$2\"; echo child", "sh",
		      argv[1], argv[2], (char *)NULL);
		_exit(9);
	}
	return waitpid(r, NULL, 0) == r ? 0 : 9;
}
