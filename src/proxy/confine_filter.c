/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The proxy's system calls: an allow-list, some with a look at their arguments.
 * Arguments are compared by their lower 32 bits, which is all the kernel looks
 * at in these. Everything else is refused with EPERM, a foreign architecture is
 * killed. Emitted rule by rule without jumps beyond a rule: the kernel turns
 * the plain ones into a bitmap anyway.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "base/macros.h"
#include "proxy/confine.h"

#if defined(__x86_64__)
#define FILTER_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define FILTER_ARCH AUDIT_ARCH_AARCH64
#elif defined(__riscv)
#define FILTER_ARCH AUDIT_ARCH_RISCV64
#else
#error "add the architecture's audit constant"
#endif

static const uint16_t plain_calls[] = {
	/* sockets and pipes */
	SYS_read,
	SYS_write,
	SYS_readv,
	SYS_writev,
	SYS_recvfrom,
	SYS_recvmsg,
	SYS_recvmmsg,
	SYS_sendto,
	SYS_sendmsg,
	SYS_sendmmsg,
	SYS_accept4,
	SYS_connect,
	SYS_bind, /* the C library binds its netlink sockets; TCP is Landlock's */
	SYS_shutdown,
	SYS_getsockname,
	SYS_getpeername,
	SYS_getsockopt,
	SYS_setsockopt,
	SYS_splice,
	SYS_pipe2,
	SYS_fcntl,
	SYS_close,
	SYS_epoll_ctl,
	SYS_epoll_pwait,
	SYS_ppoll,
#ifdef SYS_epoll_wait
	SYS_epoll_wait,
#endif
#ifdef SYS_poll
	SYS_poll,
#endif
	/* files, read only: see Landlock */
	SYS_pread64,
	SYS_lseek,
	SYS_fstat,
	SYS_newfstatat,
	SYS_statx,
	SYS_faccessat,
	SYS_getdents64,
	SYS_readlinkat,
#ifdef SYS_access
	SYS_access,
#endif
#ifdef SYS_stat
	SYS_stat,
	SYS_lstat,
#endif
#ifdef SYS_readlink
	SYS_readlink,
#endif
	/* memory and threads */
	SYS_brk,
	SYS_munmap,
	SYS_mremap,
	SYS_madvise,
	SYS_futex,
	SYS_set_robust_list,
#ifdef SYS_rseq
	SYS_rseq,
#endif
	SYS_sched_yield,
	SYS_sched_getaffinity,
	SYS_exit,
	SYS_exit_group,
	/* signals, to abort() and to be stopped */
	SYS_rt_sigaction,
	SYS_rt_sigprocmask,
	SYS_rt_sigreturn,
	SYS_sigaltstack,
	SYS_restart_syscall,
	SYS_tgkill,
	/* time and identity */
	SYS_clock_gettime,
	SYS_clock_nanosleep,
	SYS_nanosleep,
	SYS_gettimeofday,
	SYS_getrandom,
	SYS_getpid,
	SYS_gettid,
	SYS_getuid,
	SYS_geteuid,
	SYS_getgid,
	SYS_getegid,
	SYS_uname,
	SYS_sysinfo,
};

enum test { TEST_EQUAL, TEST_ANY_BIT, TEST_ALL_BITS };

/* A call whose argument passes the test gets `then`. Rows are tried in order; arg -1: no test. */
struct argument_rule {
	uint16_t call;
	int8_t arg;
	enum test test;
	uint32_t value;
	uint32_t then;
};

#define ALLOW SECCOMP_RET_ALLOW
#define REFUSE(code) (SECCOMP_RET_ERRNO | (code))

static const struct argument_rule argument_rules[] = {
	{ SYS_openat, 2, TEST_ANY_BIT, O_WRONLY | O_RDWR | O_CREAT | O_TRUNC, REFUSE(EACCES) },
	{ SYS_openat, -1, 0, 0, ALLOW },
#ifdef SYS_open
	{ SYS_open, 1, TEST_ANY_BIT, O_WRONLY | O_RDWR | O_CREAT | O_TRUNC, REFUSE(EACCES) },
	{ SYS_open, -1, 0, 0, ALLOW },
#endif
	{ SYS_socket, 0, TEST_EQUAL, AF_INET, ALLOW },
	{ SYS_socket, 0, TEST_EQUAL, AF_INET6, ALLOW },
	{ SYS_socket, 0, TEST_EQUAL, AF_NETLINK, ALLOW },
	{ SYS_socket, -1, 0, 0, REFUSE(EAFNOSUPPORT) },
	{ SYS_clone, 0, TEST_ANY_BIT, CLONE_THREAD, ALLOW },
	{ SYS_clone, -1, 0, 0, REFUSE(EPERM) },
	/* its flags are in memory, out of sight: the C library falls back to clone */
	{ SYS_clone3, -1, 0, 0, REFUSE(ENOSYS) },
	{ SYS_mmap, 2, TEST_ALL_BITS, PROT_WRITE | PROT_EXEC, REFUSE(EACCES) },
	{ SYS_mmap, -1, 0, 0, ALLOW },
	{ SYS_mprotect, 2, TEST_ANY_BIT, PROT_EXEC, REFUSE(EACCES) },
	{ SYS_mprotect, -1, 0, 0, ALLOW },
	{ SYS_ioctl, 1, TEST_EQUAL, FIONREAD, ALLOW },
	{ SYS_ioctl, -1, 0, 0, REFUSE(ENOTTY) },
};

struct emitter {
	struct sock_filter *at;
	size_t n;
};

static void emit(struct emitter *e, struct sock_filter insn)
{
	if (e->n < CONFINE_FILTER_MAX)
		e->at[e->n] = insn;
	e->n++;
}

static void emit_load(struct emitter *e, size_t offset)
{
	emit(e, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset));
}

static void emit_return(struct emitter *e, uint32_t action)
{
	emit(e, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, action));
}

/* The next n instructions only if the accumulator compares. */
static void emit_only_if(struct emitter *e, unsigned compare, uint32_t value, uint8_t n)
{
	emit(e, (struct sock_filter)BPF_JUMP((uint16_t)(BPF_JMP | compare | BPF_K), value, 0, n));
}

static size_t low_word(int arg)
{
	size_t offset = offsetof(struct seccomp_data, args) + (size_t)arg * sizeof(uint64_t);

	return offset + (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? sizeof(uint32_t) : 0);
}

static void emit_argument_rule(struct emitter *e, const struct argument_rule *r)
{
	bool masked = r->test == TEST_ALL_BITS;

	if (r->arg < 0) {
		emit_only_if(e, BPF_JEQ, r->call, 1);
		emit_return(e, r->then);
		return;
	}
	emit_only_if(e, BPF_JEQ, r->call, (uint8_t)(4 + masked));
	emit_load(e, low_word(r->arg));
	if (masked)
		emit(e, (struct sock_filter)BPF_STMT(BPF_ALU | BPF_AND | BPF_K, r->value));
	emit_only_if(e, r->test == TEST_ANY_BIT ? BPF_JSET : BPF_JEQ, r->value, 1);
	emit_return(e, r->then);
	emit_load(e, offsetof(struct seccomp_data, nr));
}

size_t confine_filter(struct sock_filter ret[CONFINE_FILTER_MAX])
{
	struct emitter e = { .at = ret };

	_Static_assert(8 + 2 * ARRAY_LEN(plain_calls) + 6 * ARRAY_LEN(argument_rules) <=
			       CONFINE_FILTER_MAX,
		       "the filter fits");
	emit_load(&e, offsetof(struct seccomp_data, arch));
	emit(&e, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, FILTER_ARCH, 1, 0));
	emit_return(&e, SECCOMP_RET_KILL_PROCESS);
	emit_load(&e, offsetof(struct seccomp_data, nr));
	for (size_t i = 0; i < ARRAY_LEN(plain_calls); i++) {
		emit_only_if(&e, BPF_JEQ, plain_calls[i], 1);
		emit_return(&e, ALLOW);
	}
	for (size_t i = 0; i < ARRAY_LEN(argument_rules); i++)
		emit_argument_rule(&e, &argument_rules[i]);
	emit_return(&e, REFUSE(EPERM));
	return e.n;
}
