/* SPDX-License-Identifier: Apache-2.0 */
/* What the proxy can still do once it has confined itself: tried, in a child. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "proxy/confine.h"

static int fails_with(long r, int wanted)
{
	return r < 0 && errno == wanted ? 0 : 1;
}

static int try_exec(void)
{
	char *argv[] = { NULL };

	return fails_with(execve("/bin/true", argv, argv), EPERM);
}

static int try_fork(void)
{
	return fails_with(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0), EPERM);
}

static int try_write(void)
{
	return fails_with(open("/tmp/proxy-was-here", O_WRONLY | O_CREAT | O_CLOEXEC, 0600),
			  EACCES);
}

static int try_read_elsewhere(void)
{
	return fails_with(open("/proc/self/status", O_RDONLY | O_CLOEXEC), EACCES) |
	       fails_with(open("/root", O_RDONLY | O_DIRECTORY | O_CLOEXEC), EACCES);
}

static int try_unix_socket(void)
{
	return fails_with(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), EAFNOSUPPORT) |
	       fails_with(socket(AF_VSOCK, SOCK_STREAM | SOCK_CLOEXEC, 0), EAFNOSUPPORT);
}

static int try_listen(void)
{
	_cleanup_fd_ int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	return fd < 0 || fails_with(listen(fd, 1), EPERM);
}

static int try_signal(void)
{
	return fails_with(kill(getppid(), 0), EPERM);
}

static int try_ptrace(void)
{
	return fails_with(syscall(SYS_ptrace, 0, 0, 0, 0), EPERM) |
	       fails_with(syscall(SYS_process_vm_readv, 1, 0, 0, 0, 0, 0), EPERM);
}

static int try_code(void)
{
	size_t size = 4096;
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED || mprotect(p, size, PROT_READ | PROT_EXEC) == 0)
		return 1;
	return mmap(NULL, size, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		    0) != MAP_FAILED;
}

static void *resolve(void *arg)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *list = NULL;

	*(int *)arg = getaddrinfo("localhost", NULL, &hints, &list);
	if (list)
		freeaddrinfo(list);
	return NULL;
}

/* Must go on working: a thread, /etc/hosts, netlink. */
static int try_resolve(void)
{
	pthread_t thread;
	int result = -1;

	if (pthread_create(&thread, NULL, resolve, &result) != 0)
		return 1;
	(void)pthread_join(thread, NULL);
	return result != 0;
}

static int in_child(int (*attempt)(void))
{
	pid_t pid = fork();
	int status = 0;

	assert_true(pid >= 0);
	if (pid == 0) {
		struct confinement c;

		if (confine(&c, NULL) < 0)
			_exit(98);
		_exit(c.n_missing ? 99 : attempt());
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static void test_confined(void **state UNUSED)
{
	static const struct {
		const char *what;
		int (*attempt)(void);
	} attempts[] = {
		{ "exec", try_exec },        { "fork", try_fork },
		{ "write", try_write },      { "read", try_read_elsewhere },
		{ "unix", try_unix_socket }, { "listen", try_listen },
		{ "signal", try_signal },    { "ptrace", try_ptrace },
		{ "code", try_code },        { "resolve", try_resolve },
	};

	for (size_t i = 0; i < ARRAY_LEN(attempts); i++) {
		int r = in_child(attempts[i].attempt);

		if (r == 99) {
			print_message("# skip: not confined: a sanitizer build, or no Landlock or "
				      "seccomp here\n");
			skip();
		}
		if (r != 0)
			fail_msg("%s: %d", attempts[i].what, r);
	}
}

static void test_filter_is_sound(void **state UNUSED)
{
	struct sock_filter filter[CONFINE_FILTER_MAX];
	size_t n = confine_filter(filter);

	assert_in_range(n, 50, CONFINE_FILTER_MAX);
	assert_int_equal(filter[n - 1].code, BPF_RET | BPF_K);
	assert_int_equal(filter[n - 1].k >> 16, 5); /* refused, not allowed */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_filter_is_sound),
		cmocka_unit_test(test_confined),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
