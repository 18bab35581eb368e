// SPDX-License-Identifier: Apache-2.0
/*
 * The filter in the kernel: a child confines itself and looks what is left.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sandbox/native/seccomp.h"

#define HIGH (1ULL << 32)

static const struct seccomp_options notify = { .allow_ptrace = true, .notify = true };

struct program {
	struct sock_filter code[SECCOMP_FILTER_MAX];
	size_t count;
};

static struct program build(const struct seccomp_options *options)
{
	struct program p;
	struct error e = { 0 };
	int n = seccomp_build(seccomp_native_arch(), options, p.code, ARRAY_LEN(p.code), &e);

	if (n < 0)
		fail_msg("%s", e.text);
	p.count = (size_t)n;
	return p;
}

/* In the child, where cmocka cannot report. */
#define EXPECT(cond)                                                                               \
	do {                                                                                       \
		if (!(cond)) {                                                                     \
			fprintf(stderr, "line %d: %s (errno %d)\n", __LINE__, #cond, errno);       \
			_exit(1);                                                                  \
		}                                                                                  \
	} while (0)
#define REFUSED(call, err) (errno = 0, (call) == -1 && errno == (err))

static void confine(const struct program *p)
{
	EXPECT(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	EXPECT(seccomp_load(p->code, p->count, 0) == 0);
}

static int run_child(void (*body)(const struct program *p))
{
	struct program p = build(NULL);
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		alarm(10); /* a call that waits for a broker */
		body(&p);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void live_calls(const struct program *p)
{
	pid_t self = getpid();

	confine(p);
	EXPECT(syscall(SYS_getpid) == self);
	EXPECT(REFUSED(syscall(SYS_unshare, CLONE_NEWUSER), EPERM));
	EXPECT(syscall(SYS_unshare, CLONE_FS) == 0);
	EXPECT(REFUSED(syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0), EPERM));
	EXPECT(REFUSED(syscall(SYS_clone3, NULL, 0), ENOSYS));
	EXPECT(REFUSED(syscall(SYS_io_uring_setup, 1, NULL), ENOSYS));
	EXPECT(REFUSED(socket(AF_ALG, SOCK_SEQPACKET, 0), EAFNOSUPPORT));
	EXPECT(REFUSED(socket(AF_NETLINK, SOCK_RAW, 15), EAFNOSUPPORT));
	EXPECT(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0) >= 0);
	EXPECT(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0) >= 0);
	EXPECT(REFUSED(ioctl(-1, TIOCSTI, "x"), EPERM));
	EXPECT(REFUSED(syscall(SYS_ioctl, -1L, TIOCSTI | HIGH, "x"), EPERM));
	EXPECT(REFUSED(syscall(SYS_ioctl, -1L, TIOCLINUX | HIGH, "\2"), EPERM));
	EXPECT(REFUSED(syscall(SYS_ioctl, -1L, TIOCGWINSZ, NULL), EBADF));
	EXPECT(REFUSED(syscall(0x1ff), ENOSYS));
	EXPECT(REFUSED(syscall(SYS_mount, NULL, NULL, NULL, 0, NULL), EPERM));
	EXPECT(REFUSED(syscall(SYS_bpf, 0, NULL, 0), EPERM));
	EXPECT(REFUSED(syscall(SYS_personality, 0x0040000), EPERM));
	EXPECT(REFUSED(syscall(SYS_getpid | 0x40000000), ENOSYS)); /* x32 */
	EXPECT(REFUSED(syscall(-1L), ENOSYS));
	EXPECT(openat(AT_FDCWD, "/dev/null", O_RDWR | O_CLOEXEC) >= 0);

	/* A second filter may only add; threads and processes still start. */
	EXPECT(seccomp_load(p->code, p->count, 0) == 0);

	pid_t child = fork();

	EXPECT(child >= 0);
	if (child == 0)
		_exit(REFUSED(syscall(SYS_setns, -1, 0), EPERM) ? 7 : 1);

	int status;

	EXPECT(waitpid(child, &status, 0) == child);
	EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 7);
}

static void test_live(void **state)
{
	(void)state;
	assert_int_equal(run_child(live_calls), 0);
}

#define TAKEN 77 /* the tests run in a sandbox that has the one listener there can be */

static void live_listener(const struct program *p)
{
	struct program asking = build(&notify);

	(void)p;
	EXPECT(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);

	int fd = seccomp_load(asking.code, asking.count, SECCOMP_FILTER_FLAG_NEW_LISTENER);

	if (fd == -EBUSY)
		_exit(TAKEN);
	EXPECT(fd >= 0);
	EXPECT(openat(AT_FDCWD, "/dev/null", O_RDONLY | O_CLOEXEC) >= 0); /* nobody asked */
	EXPECT(seccomp_load(asking.code, asking.count, SECCOMP_FILTER_FLAG_NEW_LISTENER) == -EBUSY);
}

static void test_live_listener(void **state)
{
	int status = run_child(live_listener);

	(void)state;
	if (WIFEXITED(status) && WEXITSTATUS(status) == TAKEN)
		skip();
	assert_int_equal(status, 0);
}

static void live_bad_loads(const struct program *p)
{
	static const struct sock_filter broken[] = { { .code = BPF_JMP | BPF_JA, .k = 9 } };

	EXPECT(seccomp_load(p->code, 0, 0) == -EINVAL);
	EXPECT(seccomp_load(p->code, 0x10001, 0) == -EINVAL); /* not truncated to 1 */
	EXPECT(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	EXPECT(seccomp_load(broken, 1, 0) == -EINVAL);
	EXPECT(seccomp_load(p->code, p->count, 0x80000000) == -EINVAL);
	EXPECT(syscall(SYS_unshare, CLONE_FS) == 0);
}

static void test_live_bad_loads(void **state)
{
	(void)state;
	assert_int_equal(run_child(live_bad_loads), 0);
}

#ifdef __x86_64__
static void live_int80(const struct program *p)
{
	long r = 20; /* getpid of i386, writev of x86_64 */

	confine(p);
	__asm__ volatile("int $0x80" : "+a"(r) : : "memory", "r8", "r9", "r10", "r11");
}

/* SIGSYS, or SIGSEGV on kernels without 32-bit support. */
static void test_live_int80(void **state)
{
	int status = run_child(live_int80);

	(void)state;
	assert_true(WIFSIGNALED(status));
	assert_true(WTERMSIG(status) == SIGSYS || WTERMSIG(status) == SIGSEGV);
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_live),
		cmocka_unit_test(test_live_listener),
		cmocka_unit_test(test_live_bad_loads),
#ifdef __x86_64__
		cmocka_unit_test(test_live_int80),
#endif
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
