/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probe list                      the names, one per line
 * probe run KEY=VALUE... NAME...  attempt each: "NAME<TAB>VERDICT<TAB>DETAIL" lines
 * probe attack DIR PATH OP...     change a file in every way there is (attack.c)
 * probe make BASE NAME...         make a name in every way there is (make.c)
 * probe swap NAME GOOD BAD MS     write through a name that changes (swap.c)
 * probe dial PATH WHAT MS         connect to a socket while the address, or the descriptor, changes
 * probe with-key TEXT PROG...     exec PROG with TEXT in the session keyring
 * probe handle PATH               the file handle of PATH: type and hex bytes
 * probe make-shm KEY TEXT         a System V segment holding TEXT, left behind
 * probe hold SECONDS              do nothing (a victim)
 *
 * VERDICT: open (it worked), denied, absent, hang, crash. Names may end in "*".
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/keyctl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "attack.h"
#include "probe.h"

#define DETAIL_MAX 512
#define PROBE_SECONDS 3

struct context {
	char *const *words;
	int n;
};

struct answer {
	int rc;
	char detail[DETAIL_MAX];
};

static const struct probe_table *const tables[] = {
	&file_probes,   &mount_probes,    &process_probes,
	&kernel_probes, &terminal_probes, &network_probes,
};

#define N_TABLES (sizeof tables / sizeof tables[0])

const char *context_get(const struct context *c, const char *key)
{
	size_t len = strlen(key);

	for (int i = 0; i < c->n; i++)
		if (!strncmp(c->words[i], key, len) && c->words[i][len] == '=')
			return c->words[i] + len + 1;
	fprintf(stderr, "probe: %s=... is missing\n", key);
	_exit(2);
}

int context_int(const struct context *c, const char *key)
{
	return (int)strtol(context_get(c, key), NULL, 10);
}

int attempt_read_fd(int fd, char *detail, size_t size)
{
	ssize_t n = read(fd, detail, size - 1);

	if (n < 0)
		return -errno;
	if (n == 0)
		return -ENODATA; /* an empty stand-in gives nothing away */
	detail[n] = '\0';
	return 0;
}

int attempt_read(const char *path, char *detail, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), rc;

	if (fd < 0)
		return -errno;
	rc = attempt_read_fd(fd, detail, size);
	close(fd);
	return rc;
}

int attempt_open_write(const char *path)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0)
		return -errno;
	close(fd);
	return 0;
}

int reached(long rc)
{
	if (rc >= 0)
		return 0;
	switch (errno) {
	case EFAULT:
	case EINVAL:
	case EBADF:
	case ENOENT:
	case ENOTDIR:
	case ENOEXEC:
	case ENOTBLK:
	case ENODEV:
		return 0;
	default:
		return -errno;
	}
}

static void print_line(const char *name, const char *verdict, const char *detail)
{
	printf("%s\t%s\t", name, verdict);
	for (const char *p = detail; *p; p++)
		putchar(*p == '\n' || *p == '\t' ? ' ' : *p);
	putchar('\n');
	fflush(stdout);
}

static void print_answer(const char *name, const struct answer *a)
{
	char detail[DETAIL_MAX + 64];

	if (a->rc == ABSENT) {
		print_line(name, "absent", a->detail);
	} else if (a->rc == 0) {
		print_line(name, "open", a->detail);
	} else {
		snprintf(detail, sizeof detail, "%s %s", strerrorname_np(-a->rc), a->detail);
		print_line(name, "denied", detail);
	}
}

static void print_death(const char *name, int status)
{
	char detail[32];
	const char *verdict = "crash";

	if (WIFEXITED(status)) {
		snprintf(detail, sizeof detail, "exit %d", WEXITSTATUS(status));
	} else {
		snprintf(detail, sizeof detail, "SIG%s", sigabbrev_np(WTERMSIG(status)));
		if (WTERMSIG(status) == SIGSYS)
			verdict = "denied"; /* seccomp kills */
		else if (WTERMSIG(status) == SIGALRM)
			verdict = "hang";
	}
	print_line(name, verdict, detail);
}

static void run_probe(const struct probe *p, const struct context *c)
{
	struct answer a = { 0 };
	int fds[2], status;
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC) < 0)
		_exit(2);
	pid = fork();
	if (pid < 0)
		_exit(2);
	if (pid == 0) {
		close(fds[0]);
		alarm(PROBE_SECONDS);
		a.rc = p->run(c, a.detail, sizeof a.detail);
		_exit(write(fds[1], &a, sizeof a) == sizeof a ? 0 : 3);
	}
	close(fds[1]);
	if (read(fds[0], &a, sizeof a) == sizeof a) {
		waitpid(pid, &status, 0);
		print_answer(p->name, &a);
	} else {
		waitpid(pid, &status, 0);
		print_death(p->name, status);
	}
	close(fds[0]);
}

static bool wanted(const char *name, const char *pattern)
{
	size_t len = strlen(pattern);

	if (len > 0 && pattern[len - 1] == '*')
		return !strncmp(name, pattern, len - 1);
	return !strcmp(name, pattern);
}

static int run_named(const struct context *c, const char *pattern)
{
	int found = 0;

	for (size_t t = 0; t < N_TABLES; t++) {
		for (size_t i = 0; i < tables[t]->n; i++) {
			if (!wanted(tables[t]->v[i].name, pattern))
				continue;
			found++;
			if (c)
				run_probe(&tables[t]->v[i], c);
			else
				puts(tables[t]->v[i].name);
		}
	}
	return found;
}

static int command_run(int argc, char **argv)
{
	struct context c = { argv, 0 };

	while (c.n < argc && strchr(argv[c.n], '='))
		c.n++;
	for (int i = c.n; i < argc; i++) {
		if (!run_named(&c, argv[i])) {
			fprintf(stderr, "probe: no attempt is called %s\n", argv[i]);
			return 2;
		}
	}
	return 0;
}

static int command_with_key(char **argv)
{
	syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL);
	if (syscall(SYS_add_key, "user", "ambit-canary", argv[0], strlen(argv[0]),
		    KEY_SPEC_SESSION_KEYRING) < 0) {
		perror("add_key");
		return 2;
	}
	execvp(argv[1], argv + 1);
	perror(argv[1]);
	return 127;
}

static int command_handle(const char *path)
{
	struct {
		struct file_handle head;
		unsigned char bytes[MAX_HANDLE_SZ];
	} h = { .head = { .handle_bytes = MAX_HANDLE_SZ } };
	int mount;

	if (name_to_handle_at(AT_FDCWD, path, &h.head, &mount, 0) < 0) {
		perror(path);
		return 2;
	}
	printf("%d ", h.head.handle_type);
	for (unsigned i = 0; i < h.head.handle_bytes; i++)
		printf("%02x", h.head.f_handle[i]);
	putchar('\n');
	return 0;
}

static int command_make_shm(const char *key, const char *text)
{
	int id = shmget((key_t)strtol(key, NULL, 10), 4096, IPC_CREAT | 0666);
	char *p = id < 0 ? (char *)-1 : shmat(id, NULL, 0);

	if (p == (char *)-1) {
		perror("shmget");
		return 2;
	}
	snprintf(p, 4096, "%s", text);
	return 0;
}

int main(int argc, char **argv)
{
	const char *command = argc > 1 ? argv[1] : "";

	if (!strcmp(command, "list"))
		return run_named(NULL, "*") ? 0 : 2;
	if (!strcmp(command, "run"))
		return command_run(argc - 2, argv + 2);
	if (!strcmp(command, "attack") && argc > 4)
		return attack_path(argv[2], argv[3], argv + 4);
	if (!strcmp(command, "make") && argc > 3)
		return attack_make(argv[2], argv + 3);
	if (!strcmp(command, "swap") && argc > 5)
		return attack_swap(argv[2], argv[3], argv[4], argv[5]);
	if (!strcmp(command, "dial") && argc > 4)
		return attack_dial(argv[2], argv[3], argv[4]);
	if (!strcmp(command, "with-key") && argc > 3)
		return command_with_key(argv + 2);
	if (!strcmp(command, "handle") && argc > 2)
		return command_handle(argv[2]);
	if (!strcmp(command, "make-shm") && argc > 3)
		return command_make_shm(argv[2], argv[3]);
	if (!strcmp(command, "hold") && argc > 2) {
		sleep((unsigned)strtoul(argv[2], NULL, 10));
		return 0;
	}
	fputs("usage: probe list | run | attack | make | swap | dial | with-key | handle | "
	      "make-shm | "
	      "hold\n",
	      stderr);
	return 2;
}
