// SPDX-License-Identifier: Apache-2.0
/*
 * The compiled filter against the rules (by an interpreter that shares nothing with the
 * compiler) and against a table of calls written by hand; t_seccomp_live.c asks the kernel.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <linux/audit.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>

#include "bpf_sim.h"
#include "sandbox/native/direct.h"
#include "sandbox/native/seccomp.h"
#include "seccomp_calls.h"

static const char *const names[] = {
#define SYSCALL(name, x86_64, aarch64) #name,
#include "sandbox/native/syscalls.def"
#undef SYSCALL
};

static const uint32_t arch_word[] = { AUDIT_ARCH_X86_64, AUDIT_ARCH_AARCH64 };

static const struct seccomp_options plain = { .allow_ptrace = true };
static const struct seccomp_options notify = { .allow_ptrace = true, .notify = true };
static const struct seccomp_options all_options[] = {
	{ .allow_ptrace = true },
	{ .allow_ptrace = false },
	{ .allow_ptrace = true, .notify = true },
	{ .allow_ptrace = true, .notify = true, .watch = true },
	{ .allow_ptrace = true, .notify = true, .no_listen = true },
	{ .allow_ptrace = false, .notify = true },
	{ .allow_ptrace = true, .notify = true, .no_openat2 = true },
	{ .allow_ptrace = true, .notify = true, .direct = true },
	{ .allow_ptrace = true, .notify = true, .pinned = true, .no_memfd = true },
	{ .allow_ptrace = true, .notify = true, .no_fallocate = true },
};

struct program {
	enum seccomp_arch arch;
	struct sock_filter code[SECCOMP_FILTER_MAX];
	size_t count;
};

static struct program build(enum seccomp_arch arch, const struct seccomp_options *options)
{
	struct program p = { .arch = arch };
	struct error e = { 0 };
	int n = seccomp_build(arch, options, p.code, ARRAY_LEN(p.code), &e);

	if (n < 0)
		fail_msg("%s", e.text);
	p.count = (size_t)n;
	assert_null(bpf_check(p.code, p.count));
	return p;
}

static struct bpf_result run(const struct program *p, uint32_t number, const uint64_t args[6])
{
	struct seccomp_data data = {
		.nr = (int)number,
		.arch = arch_word[p->arch],
		.instruction_pointer = 0x5a5a5a5a5a5a5a5a,
	};

	memcpy(data.args, args, sizeof(data.args));
	return bpf_run(p->code, &data);
}

static uint32_t run_call(const struct program *p, enum seccomp_call call, uint64_t a0, uint64_t a1,
			 uint64_t a2)
{
	/* a mode, where it is one, of which everything is set that may be */
	uint64_t args[6] = { a0, a1, a2, ~(uint64_t)(S_ISUID | S_ISGID), ~0ULL, ~0ULL };
	int number = seccomp_call_number(p->arch, call);

	assert_true(number >= 0);
	return run(p, (uint32_t)number, args).action;
}

/* --- the rules themselves ------------------------------------------------------------------ */

/* Each syscall is decided somewhere, so none is refused by having been forgotten. */
static void test_every_syscall_has_rows(void **state)
{
	struct seccomp_rules rules = seccomp_builtin_rules();
	size_t rows[CALL_COUNT] = { 0 };

	(void)state;
	for (size_t i = 0; i < rules.count; i++)
		rows[rules.rows[i].call]++;
	for (size_t c = 0; c < CALL_COUNT; c++)
		if (rows[c] == 0)
			fail_msg("%s has no rule", names[c]);
}

/* An excluded group has a reason and refuses; the others have none and do not. */
static void test_refusals_have_reasons(void **state)
{
	struct seccomp_rules rules = seccomp_builtin_rules();

	(void)state;
	for (size_t i = 0; i < rules.count; i++) {
		const struct seccomp_rule *r = &rules.rows[i];
		bool refuses = (r->action & SECCOMP_RET_ACTION_FULL) == SECCOMP_RET_ERRNO;

		if (refuses != (seccomp_group_reason(r->group) != NULL))
			fail_msg("%s and its group do not agree", names[r->call]);
		if (!refuses && r->action != OK && r->action != ASK &&
		    (r->action < SECCOMP_WATCH || r->action >= SECCOMP_CHOICE_END_))
			fail_msg("%s has a strange action", names[r->call]);
	}
}

/* The generated table against the headers that this test is compiled with. */
static void test_native_numbers(void **state)
{
	enum seccomp_arch arch = seccomp_native_arch();

	(void)state;
	assert_int_equal(seccomp_call_number(arch, CALL_read), SYS_read);
	assert_int_equal(seccomp_call_number(arch, CALL_openat), SYS_openat);
	assert_int_equal(seccomp_call_number(arch, CALL_mmap), SYS_mmap);
	assert_int_equal(seccomp_call_number(arch, CALL_clone), SYS_clone);
	assert_int_equal(seccomp_call_number(arch, CALL_ioctl), SYS_ioctl);
	assert_int_equal(seccomp_call_number(arch, CALL_socket), SYS_socket);
	assert_int_equal(seccomp_call_number(arch, CALL_umount2), SYS_umount2);
	assert_int_equal(seccomp_call_number(arch, CALL_newfstatat), SYS_newfstatat);
	assert_int_equal(seccomp_call_number(arch, CALL_kexec_file_load), SYS_kexec_file_load);
	assert_int_equal(seccomp_call_number(arch, CALL_clone3), SYS_clone3);
}

/* Known from elsewhere, since the other architecture's headers are not here. */
static void test_foreign_numbers(void **state)
{
	static const struct {
		enum seccomp_call call;
		int x86_64, aarch64;
	} known[] = {
		{ CALL_read, 0, 63 },         { CALL_open, 2, -1 },
		{ CALL_fcntl, 72, 25 },       { CALL_ioctl, 16, 29 },
		{ CALL_mount, 165, 40 },      { CALL_openat, 257, 56 },
		{ CALL_newfstatat, 262, 79 }, { CALL_unshare, 272, 97 },
		{ CALL_futex, 202, 98 },      { CALL_ptrace, 101, 117 },
		{ CALL_socket, 41, 198 },     { CALL_keyctl, 250, 219 },
		{ CALL_clone, 56, 220 },      { CALL_execve, 59, 221 },
		{ CALL_mmap, 9, 222 },        { CALL_renameat2, 316, 276 },
		{ CALL_bpf, 321, 280 },       { CALL_rseq, 334, 293 },
		{ CALL_clone3, 435, 435 },    { CALL_open_tree_attr, 467, 467 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(known); i++) {
		assert_int_equal(seccomp_call_number(SECCOMP_X86_64, known[i].call),
				 known[i].x86_64);
		assert_int_equal(seccomp_call_number(SECCOMP_AARCH64, known[i].call),
				 known[i].aarch64);
	}
}

/* --- calls by hand ------------------------------------------------------------------------- */

static void test_calls(void **state)
{
	(void)state;
	for (int arch = 0; arch < SECCOMP_ARCH_COUNT; arch++) {
		struct program without = build((enum seccomp_arch)arch, &plain);
		struct program with = build((enum seccomp_arch)arch, &notify);

		for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
			const uint64_t *a = calls[i].args;
			enum seccomp_call call = calls[i].call;
			uint32_t expected = calls[i].expected;

			if (run_call(&without, call, a[0], a[1], a[2]) != expected)
				fail_msg("call %zu (%s) on %d", i, names[call], arch);
			if (calls[i].with_broker)
				expected = calls[i].with_broker;
			if (run_call(&with, call, a[0], a[1], a[2]) != expected)
				fail_msg("call %zu (%s) on %d with broker", i, names[call], arch);
		}
	}
}

static uint32_t run_open(const struct program *p, uint64_t flags, uint64_t mode, uint64_t mark)
{
	uint64_t args[6] = { 0, 0, flags, mode, 0, mark };

	return run(p, (uint32_t)seccomp_call_number(p->arch, CALL_openat), args).action;
}

static uint32_t run_mkdir(const struct program *p, uint64_t mark)
{
	uint64_t args[6] = { 0, 0, 06755, 0, 0, mark };

	return run(p, (uint32_t)seccomp_call_number(p->arch, CALL_mkdirat), args).action;
}

/* Whoever does not want the broker to be asked says so with all 64 bits, where that is offered. */
static void test_direct(void **state)
{
	struct seccomp_options direct = notify;

	(void)state;
	direct.direct = true;
	for (int arch = 0; arch < SECCOMP_ARCH_COUNT; arch++) {
		struct program without = build((enum seccomp_arch)arch, &notify);
		struct program with = build((enum seccomp_arch)arch, &direct);

		assert_int_equal(run_open(&without, O_CREAT, 0644, DIRECT_MARK), ASK);
		assert_int_equal(run_mkdir(&without, DIRECT_MARK), ASK);
		assert_int_equal(run_open(&with, O_CREAT, 0644, DIRECT_MARK), OK);
		assert_int_equal(run_mkdir(&with, DIRECT_MARK), OK);
		for (int bit = 0; bit < 64; bit++) {
			assert_int_equal(run_open(&with, O_CREAT, 0644, DIRECT_MARK ^ 1ULL << bit),
					 ASK);
			assert_int_equal(run_mkdir(&with, DIRECT_MARK ^ 1ULL << bit), ASK);
		}
	}
}

/* No set-uid file is made by opening it without the broker, whatever the mark. */
static void test_no_setuid(void **state)
{
	const uint64_t unnamed = 020000000 | O_DIRECTORY | O_RDWR;

	(void)state;
	for (size_t o = 0; o < ARRAY_LEN(all_options); o++) {
		struct program p = build(SECCOMP_X86_64, &all_options[o]);
		uint32_t plain_file = all_options[o].notify ? ASK : OK;
		uint32_t special = all_options[o].notify ? ASK : ERR(EPERM);

		for (uint64_t mark = 0;; mark = DIRECT_MARK) {
			assert_int_equal(run_open(&p, O_CREAT, 04755, mark), special);
			assert_int_equal(run_open(&p, O_CREAT | O_WRONLY | HIGH, 02700, mark),
					 special);
			assert_int_equal(run_open(&p, unnamed, 04755, mark), special);
			assert_int_equal(run_open(&p, O_CREAT, 01777, mark),
					 mark && all_options[o].direct ? OK : plain_file);
			assert_int_equal(run_open(&p, O_RDONLY, 04755, mark),
					 all_options[o].watch ? ASK : OK);
			if (mark)
				break;
		}
		assert_int_equal(run_call(&p, CALL_creat, 0, 04755, 0), special);
		assert_int_equal(run_call(&p, CALL_open, 0, O_CREAT, 02755), special);
	}
}

/* The calls that only x86_64 has. */
static void test_old_calls(void **state)
{
	struct program p = build(SECCOMP_X86_64, &notify);

	(void)state;
	assert_int_equal(run_call(&p, CALL_open, 0, O_RDONLY | O_CLOEXEC, O_CREAT), OK);
	assert_int_equal(run_call(&p, CALL_open, 0, O_WRONLY, 0), ASK);
	assert_int_equal(run_call(&p, CALL_open, 0, O_CREAT | HIGH, 0), ASK);
	assert_int_equal(run_call(&p, CALL_creat, 0, 0, 0), ASK);
	assert_int_equal(run_call(&p, CALL_mkdir, 0, 0, 0), ASK);
	assert_int_equal(run_call(&p, CALL_mknod, 0, 0, 0), ASK);
	assert_int_equal(run_call(&p, CALL_symlink, 0, 0, 0), ASK);
	assert_int_equal(run_call(&p, CALL_link, 0, 0, 0), ASK);
	assert_int_equal(run_call(&p, CALL_rename, 0, 0, 0), ASK);
	assert_int_equal(run_call(&p, CALL_unlink, 0, 0, 0), ASK);
	assert_int_equal(run_call(&p, CALL_chmod, 0, 0, 0), ASK);
	assert_int_equal(run_call(&p, CALL_stat, 0, 0, 0), OK);
	assert_int_equal(run_call(&p, CALL_modify_ldt, 0, 0, 0), OK);
	assert_int_equal(run_call(&p, CALL_iopl, 3, 0, 0), ERR(EPERM));
	assert_int_equal(run_call(&p, CALL_uselib, 0, 0, 0), ERR(ENOSYS));
}

static void test_clone_namespaces(void **state)
{
	static const uint64_t flags[] = { CLONE_NEWNS,  CLONE_NEWCGROUP, CLONE_NEWUTS,
					  CLONE_NEWIPC, CLONE_NEWUSER,   CLONE_NEWPID,
					  CLONE_NEWNET };

	(void)state;
	for (int arch = 0; arch < SECCOMP_ARCH_COUNT; arch++) {
		struct program p = build((enum seccomp_arch)arch, &plain);

		for (size_t i = 0; i < ARRAY_LEN(flags); i++) {
			uint64_t among = flags[i] | CLONE_VM | CLONE_THREAD | SIGCHLD;

			assert_int_equal(run_call(&p, CALL_clone, flags[i], 0, 0), ERR(EPERM));
			assert_int_equal(run_call(&p, CALL_clone, among, 0, 0), ERR(EPERM));
			assert_int_equal(run_call(&p, CALL_clone, among | HIGH, 0, 0), ERR(EPERM));
			assert_int_equal(run_call(&p, CALL_unshare, flags[i], 0, 0), ERR(EPERM));
			assert_int_equal(run_call(&p, CALL_clone, flags[i] << 32, 0, 0), OK);
		}
	}
}

static void test_socket_families(void **state)
{
	(void)state;
	for (int arch = 0; arch < SECCOMP_ARCH_COUNT; arch++) {
		struct program p = build((enum seccomp_arch)arch, &plain);

		for (uint64_t family = 0; family <= 45; family++) {
			bool known = family == AF_UNIX || family == AF_INET || family == AF_INET6 ||
				     family == AF_NETLINK;
			uint32_t expected = known ? OK : ERR(EAFNOSUPPORT);

			assert_int_equal(run_call(&p, CALL_socket, family, SOCK_DGRAM, 0),
					 expected);
			assert_int_equal(run_call(&p, CALL_socket, family | HIGH, SOCK_DGRAM, 0),
					 expected);
		}
		assert_int_equal(run_call(&p, CALL_socket, 0xffffffff, SOCK_DGRAM, 0),
				 ERR(EAFNOSUPPORT));
	}
}

/* Nobody but the filter keeps set-uid files from being made where there is no broker. */
static void test_alone(void **state)
{
	const struct seccomp_options both[] = { { .alone = true },
						{ .alone = true, .bare = true } };
	const uint64_t temporary = 020000000 | O_DIRECTORY;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(both); i++) {
		struct program p = build(SECCOMP_X86_64, &both[i]);

		assert_int_equal(run_call(&p, CALL_open, 0, O_CREAT | O_WRONLY, 04755), ERR(EPERM));
		assert_int_equal(run_call(&p, CALL_open, 0, O_CREAT | HIGH, 02755), ERR(EPERM));
		assert_int_equal(run_call(&p, CALL_open, 0, temporary | O_RDWR, 04700), ERR(EPERM));
		assert_int_equal(run_call(&p, CALL_open, 0, O_CREAT, 01777), OK);
		assert_int_equal(run_call(&p, CALL_open, 0, O_RDONLY, 04755), OK);
		assert_int_equal(run_call(&p, CALL_creat, 0, 04755, 0), ERR(EPERM));
		assert_int_equal(run_call(&p, CALL_creat, 0, 0755, 0), OK);
		assert_int_equal(run_call(&p, CALL_mknod, 0, S_IFREG | 02755, 0), ERR(EPERM));
		assert_int_equal(run_call(&p, CALL_mknodat, 0, 0, S_IFREG | 04755), ERR(EPERM));
		assert_int_equal(run_call(&p, CALL_mknodat, 0, 0, S_IFIFO | 0600), OK);
		assert_int_equal(run_call(&p, CALL_openat2, 0, 0, 0), ERR(ENOSYS));
	}
}

/* A process that confines itself has nobody who would judge its unix sockets. */
static void test_no_unix(void **state)
{
	const struct seccomp_options both[] = {
		{ .bare = true, .no_unix = true },
		{ .bare = true, .no_unix = true, .no_network = true }
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(both); i++) {
		struct program p = build(SECCOMP_X86_64, &both[i]);

		assert_int_equal(run_call(&p, CALL_socket, AF_UNIX, SOCK_STREAM, 0),
				 ERR(EAFNOSUPPORT));
		assert_int_equal(run_call(&p, CALL_socket, AF_UNIX, SOCK_SEQPACKET, 0),
				 ERR(EAFNOSUPPORT));
		assert_int_equal(run_call(&p, CALL_socket, AF_UNIX, SOCK_DGRAM, 0),
				 ERR(EPROTONOSUPPORT));
		assert_int_equal(run_call(&p, CALL_socketpair, AF_UNIX, SOCK_STREAM, 0), OK);
		assert_int_equal(run_call(&p, CALL_socketpair, AF_UNIX, SOCK_DGRAM, 0),
				 ERR(EPROTONOSUPPORT));
	}
}

/* Processors that were chosen as a limit are not taken back. */
static void test_pinned(void **state)
{
	const struct seccomp_options options[] = { { .pinned = true },
						   { .pinned = true, .bare = true } };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(options); i++) {
		struct program p = build(SECCOMP_X86_64, &options[i]);

		assert_int_equal(run_call(&p, CALL_sched_setaffinity, 0, 8, 0), ERR(EPERM));
		assert_int_equal(run_call(&p, CALL_sched_setaffinity, 77, 8, 0), ERR(EPERM));
	}
}

/* Without namespaces the filter is the wall: what may be asked of whom. */
static void test_bare(void **state)
{
	const struct seccomp_options brokered = { .notify = true,
						  .bare = true,
						  .no_network = true };
	const struct seccomp_options alone = { .bare = true, .no_network = true };
	const struct seccomp_options host = { .notify = true, .bare = true };
	const struct {
		enum seccomp_call call;
		uint64_t args[4];
		uint32_t brokered, alone, host;
	} cases[] = {
		{ CALL_socket, { AF_INET, SOCK_STREAM, 0 }, OK, ERR(EAFNOSUPPORT), OK },
		{ CALL_socket,
		  { AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, IPPROTO_TCP },
		  OK,
		  ERR(EAFNOSUPPORT),
		  OK },
		{ CALL_socket,
		  { AF_INET, SOCK_DGRAM, 0 },
		  ERR(EAFNOSUPPORT),
		  ERR(EAFNOSUPPORT),
		  OK },
		{ CALL_socket,
		  { AF_INET, SOCK_STREAM, 262 },
		  ERR(EAFNOSUPPORT),
		  ERR(EAFNOSUPPORT),
		  OK },
		{ CALL_socket,
		  { AF_NETLINK, SOCK_RAW, 0 },
		  ERR(EAFNOSUPPORT),
		  ERR(EAFNOSUPPORT),
		  OK },
		{ CALL_socket,
		  { AF_PACKET, SOCK_RAW, 0 },
		  ERR(EAFNOSUPPORT),
		  ERR(EAFNOSUPPORT),
		  ERR(EAFNOSUPPORT) },
		{ CALL_socket, { AF_UNIX, SOCK_STREAM, 0 }, OK, OK, OK },
		{ CALL_connect, { 3, 0, 0 }, ASK, OK, ASK },
		{ CALL_listen, { 3, 1, 0 }, ASK, OK, OK },
		{ CALL_sendto, { 3, 0, 0, 0x20000000 }, ERR(EOPNOTSUPP), ERR(EOPNOTSUPP), OK },
		{ CALL_sendto, { 3, 0, 0, 0x4000 }, OK, OK, OK },
		{ CALL_sendmsg, { 3, 0, 0x20000040 }, ERR(EOPNOTSUPP), ERR(EOPNOTSUPP), OK },
		{ CALL_setsockopt, { 3, SOL_SOCKET, SO_KEEPALIVE }, OK, OK, OK },
		{ CALL_setsockopt, { 3, SOL_SOCKET, SO_BINDTODEVICE }, ERR(EPERM), ERR(EPERM), OK },
		{ CALL_setsockopt, { 3, SOL_SOCKET, 62 }, ERR(EPERM), ERR(EPERM), OK },
		{ CALL_setsockopt,
		  { 3, HIGH | SOL_SOCKET, HIGH | 62 },
		  ERR(EPERM),
		  ERR(EPERM),
		  OK },
		{ CALL_setsockopt, { 3, IPPROTO_TCP, 1 /* TCP_NODELAY */ }, OK, OK, OK },
		{ CALL_setsockopt,
		  { 3, IPPROTO_TCP, 30 /* TCP_FASTOPEN_CONNECT */ },
		  ERR(EOPNOTSUPP),
		  ERR(EOPNOTSUPP),
		  OK },
		{ CALL_setsockopt, { 3, IPPROTO_IP, IP_TOS }, OK, OK, OK },
		{ CALL_setsockopt,
		  { 3, IPPROTO_IP, IP_OPTIONS },
		  ERR(ENOPROTOOPT),
		  ERR(ENOPROTOOPT),
		  OK },
		{ CALL_setsockopt, { 3, IPPROTO_IPV6, IPV6_V6ONLY }, OK, OK, OK },
		{ CALL_setsockopt,
		  { 3, IPPROTO_IPV6, IPV6_RTHDR },
		  ERR(ENOPROTOOPT),
		  ERR(ENOPROTOOPT),
		  OK },
		{ CALL_ioctl,
		  { 3, 0x40086602 /* FS_IOC_SETFLAGS */ },
		  ERR(ENOTTY),
		  ERR(ENOTTY),
		  ERR(ENOTTY) },
		{ CALL_ioctl,
		  { 3, 0x5000940f /* BTRFS_IOC_SUBVOL_CREATE */ },
		  ERR(ENOTTY),
		  ERR(ENOTTY),
		  ERR(ENOTTY) },
		{ CALL_ioctl, { 3, 0x5401 /* TCGETS */ }, OK, OK, OK },
		{ CALL_ioctl, { 3, 0x5412 /* TIOCSTI */ }, ERR(EPERM), ERR(EPERM), ERR(EPERM) },
		{ CALL_ioctl, { 3, 0x100005412 }, ERR(EPERM), ERR(EPERM), ERR(EPERM) },
		{ CALL_prlimit64, { 0, 7 }, OK, OK, OK },
		{ CALL_prlimit64, { 77, 7 }, ERR(EPERM), ERR(EPERM), ERR(EPERM) },
		{ CALL_setpriority, { 0, 0, 5 }, OK, OK, OK },
		{ CALL_setpriority, { 2, 0, 5 }, ERR(EPERM), ERR(EPERM), ERR(EPERM) },
		{ CALL_sched_setaffinity, { 77, 0 }, ERR(EPERM), ERR(EPERM), ERR(EPERM) },
		{ CALL_shmget, { 1, 2 }, ERR(ENOSYS), ERR(ENOSYS), ERR(ENOSYS) },
		{ CALL_mq_open, { 1, 2 }, ERR(ENOSYS), ERR(ENOSYS), ERR(ENOSYS) },
		{ CALL_fchownat, { 1, 2 }, ASK, OK, ASK },
		{ CALL_utimensat, { 1, 0 }, ASK, OK, ASK },
		{ CALL_fsetxattr, { 1, 0 }, ASK, OK, ASK },
		{ CALL_setxattrat, { 1, 0 }, ERR(ENOSYS), ERR(ENOSYS), ERR(ENOSYS) },
		{ CALL_clone,
		  { 0x10000000 /* CLONE_NEWUSER */ },
		  ERR(EPERM),
		  ERR(EPERM),
		  ERR(EPERM) },
	};

	(void)state;
	for (enum seccomp_arch arch = 0; arch < SECCOMP_ARCH_COUNT; arch++) {
		struct program p[] = { build(arch, &brokered), build(arch, &alone),
				       build(arch, &host) };

		for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
			const uint32_t want[] = { cases[i].brokered, cases[i].alone,
						  cases[i].host };
			uint64_t args[6] = { 0 };
			int number = seccomp_call_number(arch, cases[i].call);

			memcpy(args, cases[i].args, sizeof(cases[i].args));
			for (size_t k = 0; k < ARRAY_LEN(p); k++) {
				uint32_t got = run(&p[k], (uint32_t)number, args).action;

				if (got != want[k])
					fail_msg("%s, case %zu, program %zu: %x instead of %x",
						 names[cases[i].call], i, k, got, want[k]);
			}
		}
	}
}

static void test_without_ptrace(void **state)
{
	static const struct seccomp_options options = { .allow_ptrace = false };

	(void)state;
	for (int arch = 0; arch < SECCOMP_ARCH_COUNT; arch++) {
		struct program p = build((enum seccomp_arch)arch, &options);

		assert_int_equal(run_call(&p, CALL_ptrace, 0, 0, 0), ERR(EPERM));
		assert_int_equal(run_call(&p, CALL_process_vm_writev, 0, 0, 0), ERR(EPERM));
		assert_int_equal(run_call(&p, CALL_pidfd_getfd, 0, 0, 0), ERR(EPERM));
		assert_int_equal(run_call(&p, CALL_pidfd_open, 0, 0, 0), OK);
	}
}

/* --- numbers and architectures ------------------------------------------------------------- */

static void test_unknown_numbers(void **state)
{
	static const uint64_t args[6] = { 0 };
	static const uint32_t odd[] = { 0x1ff,      0x200,      0x40000000, 0x40000027,
					0x400001ff, 0x7fffffff, 0x80000000, 0xffffffff };

	(void)state;
	for (int arch = 0; arch < SECCOMP_ARCH_COUNT; arch++) {
		struct program p = build((enum seccomp_arch)arch, &plain);

		for (uint32_t number = 470; number <= 600; number++)
			assert_int_equal(run(&p, number, args).action, ERR(ENOSYS));
		for (size_t i = 0; i < ARRAY_LEN(odd); i++)
			assert_int_equal(run(&p, odd[i], args).action, ERR(ENOSYS));
		/* x32: no number with its bit, whatever the number would be without it. */
		for (uint32_t number = 0; number < 600; number++)
			assert_int_equal(run(&p, number | 0x40000000, args).action, ERR(ENOSYS));
	}
}

static void test_other_architectures(void **state)
{
	static const uint32_t others[] = { AUDIT_ARCH_I386, AUDIT_ARCH_ARM, AUDIT_ARCH_ARMEB, 0,
					   0xffffffff };

	(void)state;
	for (int arch = 0; arch < SECCOMP_ARCH_COUNT; arch++) {
		struct program p = build((enum seccomp_arch)arch, &plain);
		struct seccomp_data data = { 0 };

		for (data.nr = -1; data.nr < 500; data.nr++) {
			for (size_t i = 0; i < ARRAY_LEN(others); i++) {
				data.arch = others[i];
				assert_int_equal(bpf_run(p.code, &data).action, KILL);
			}
			data.arch = arch_word[1 - arch];
			assert_int_equal(bpf_run(p.code, &data).action, KILL);
		}
	}
}

/* --- the compiler against an interpreter of the rules -------------------------------------- */

static bool rule_holds(const struct seccomp_rule *r, const uint64_t args[6])
{
	for (size_t t = 0; t < SECCOMP_TESTS_MAX; t++)
		if ((args[r->tests[t].arg] & r->tests[t].mask) != r->tests[t].value)
			return false;
	return true;
}

static uint32_t interpret(struct seccomp_rules rules, enum seccomp_arch arch,
			  const struct seccomp_options *options, uint32_t number,
			  const uint64_t args[6])
{
	for (size_t i = 0; i < rules.count; i++) {
		const struct seccomp_rule *r = &rules.rows[i];
		int of_rule = seccomp_call_number(arch, r->call);

		if (of_rule < 0 || (uint32_t)of_rule != number || !rule_holds(r, args))
			continue;
		if (r->group == GROUP_TRACE && !options->allow_ptrace)
			return ERR(EPERM);
		if (r->action == SECCOMP_NO_DATAGRAMS)
			return options->notify || options->no_unix ? ERR(EPROTONOSUPPORT) : OK;
		if (r->action == SECCOMP_UNIX)
			return options->no_unix ? ERR(EAFNOSUPPORT) : OK;
		if (r->action == SECCOMP_OPENAT2)
			return !options->notify ? OK : options->no_openat2 ? ERR(ENOSYS) : ASK;
		if (r->action == SECCOMP_RESERVE)
			return options->no_fallocate ? ERR(EOPNOTSUPP) : OK;
		if (r->action == SECCOMP_MEMFD)
			return options->no_memfd ? ERR(ENOSYS) : OK;
		if (r->action == SECCOMP_PINNED)
			return options->pinned ? ERR(EPERM) : OK;
		if (r->action == SECCOMP_WATCH)
			return options->notify && options->watch ? ASK : OK;
		if (r->action == SECCOMP_SPECIAL)
			return options->notify ? ASK : ERR(EPERM);
		if (r->action == SECCOMP_DIRECT)
			return options->notify && !options->direct ? ASK : OK;
		if (r->action == SECCOMP_LISTEN)
			return options->notify && options->no_listen ? ASK : OK;
		if (r->action == ASK && !options->notify)
			return OK;
		return r->action;
	}
	return ERR(ENOSYS);
}

static uint64_t next_random(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed;
}

/* Values near those in the rules: they themselves, one bit off, with bits in the high half. */
static uint64_t pick_argument(struct seccomp_rules rules, uint64_t *seed)
{
	const struct seccomp_rule *r = &rules.rows[next_random(seed) % rules.count];
	uint64_t value = r->tests[next_random(seed) % SECCOMP_TESTS_MAX].value;

	switch (next_random(seed) % 6) {
	case 0:
		return next_random(seed);
	case 1:
		return value ^ 1ULL << next_random(seed) % 64;
	case 2:
		return value | next_random(seed) << 32;
	case 3:
		return 1ULL << next_random(seed) % 64;
	case 4:
		return next_random(seed) % 48;
	default:
		return value;
	}
}

static void compare(const struct program *p, struct seccomp_rules rules,
		    const struct seccomp_options *options, uint32_t patterns, uint64_t *seed)
{
	for (uint32_t number = 0; number < 520; number++) {
		for (uint32_t i = 0; i < patterns; i++) {
			uint64_t args[6] = { 0 };

			for (size_t a = 0; i > 0 && a < ARRAY_LEN(args); a++)
				args[a] = i == 1 ? ~0ULL : pick_argument(rules, seed);

			uint32_t expected = interpret(rules, p->arch, options, number, args);
			uint32_t found = run(p, number, args).action;

			if (found != expected)
				fail_msg("arch %d number %u: %x instead of %x", (int)p->arch,
					 number, found, expected);
		}
	}
}

static void test_against_rules(void **state)
{
	uint64_t seed = 0x9e3779b97f4a7c15;

	(void)state;
	for (int arch = 0; arch < SECCOMP_ARCH_COUNT; arch++) {
		for (size_t o = 0; o < ARRAY_LEN(all_options); o++) {
			struct program p = build((enum seccomp_arch)arch, &all_options[o]);

			compare(&p, seccomp_builtin_rules(), &all_options[o], 50, &seed);
		}
	}
}

/* The calls with tests have little room among 520 numbers: many more patterns for them. */
static void test_against_rules_with_tests(void **state)
{
	struct seccomp_rules rules = seccomp_builtin_rules();
	struct program p = build(SECCOMP_X86_64, &notify);
	uint64_t seed = 42;

	(void)state;
	for (size_t i = 0; i < rules.count; i++) {
		uint32_t number = (uint32_t)seccomp_call_number(p.arch, rules.rows[i].call);

		for (int n = 0; rules.rows[i].tests[0].mask && n < 5000; n++) {
			uint64_t args[6];

			for (size_t a = 0; a < ARRAY_LEN(args); a++)
				args[a] = pick_argument(rules, &seed);
			/* Reach rows with two tests. */
			for (size_t t = 0; n % 2 && t < SECCOMP_TESTS_MAX; t++)
				if (rules.rows[i].tests[t].mask)
					args[rules.rows[i].tests[t].arg] =
						rules.rows[i].tests[t].value | (uint64_t)n << 32;
			assert_int_equal(run(&p, number, args).action,
					 interpret(rules, p.arch, &notify, number, args));
		}
	}
}

/*
 * Rules as nobody would write them: most calls with long chains of 64-bit tests, so that
 * hundreds of jumps are longer than a branch reaches, and more actions than are remembered.
 */
static size_t make_odd_rules(struct seccomp_rule *rows, size_t max, uint64_t *seed)
{
	size_t n = 0;
	size_t density = 2 + next_random(seed) % 30;

	for (uint16_t call = 0; call < CALL_COUNT; call++) {
		size_t chain = next_random(seed) % density == 0 ? next_random(seed) % 12 : 0;

		if (next_random(seed) % 8 == 0 || n + chain + 1 > max)
			continue;
		for (size_t i = 0; i <= chain; i++) {
			struct seccomp_rule *r = &rows[n++];

			*r = (struct seccomp_rule){ .call = call, .group = GROUP_IO };
			r->action = ERR(next_random(seed) % 20);
			for (size_t t = 0; i < chain && t <= next_random(seed) % 2; t++) {
				uint64_t value = next_random(seed) % 4 * 0x100000001;
				uint64_t mask =
					next_random(seed) % 2 ? ~0ULL : next_random(seed) | 1;

				r->tests[t].arg = (uint8_t)(next_random(seed) % 6);
				r->tests[t].mask = mask;
				r->tests[t].value = value & mask;
			}
		}
	}
	return n;
}

static void test_far_jumps(void **state)
{
	enum { ROWS = 1500, CODE = 4096 };
	struct seccomp_rule *rows = calloc(ROWS, sizeof(*rows));
	struct sock_filter *code = calloc(CODE, sizeof(*code));
	uint64_t seed = 7;
	size_t longest = 0;
	size_t hops = 0;

	(void)state;
	for (int round = 0; round < 60; round++) {
		struct seccomp_rules rules = { rows, make_odd_rules(rows, ROWS, &seed) };
		enum seccomp_arch arch = round % 2 ? SECCOMP_X86_64 : SECCOMP_AARCH64;
		int n = seccomp_compile(arch, rules, &plain, code, CODE, NULL);

		if (n == -E2BIG)
			continue;
		assert_true(n > 0);
		assert_null(bpf_check(code, (size_t)n));
		longest = (size_t)n > longest ? (size_t)n : longest;
		for (int i = 0; i < n; i++)
			hops += code[i].code == (BPF_JMP | BPF_JA);
		for (uint32_t k = 0; k < 6000; k++) {
			uint32_t number = k % 500;
			struct seccomp_data data = { .nr = (int)number, .arch = arch_word[arch] };

			for (size_t a = 0; a < 6; a++)
				data.args[a] = next_random(&seed) % 2
						       ? next_random(&seed) % 4 * 0x100000001
						       : next_random(&seed);
			uint64_t args[6];

			memcpy(args, data.args, sizeof(args));
			assert_int_equal(bpf_run(code, &data).action,
					 interpret(rules, arch, &plain, number, args));
		}
	}
	assert_true(longest > 1500);
	assert_true(hops > 50);
	free(code);
	free(rows);
}

/* --- refusals of the compiler -------------------------------------------------------------- */

static void test_bad_rules(void **state)
{
	static const struct seccomp_rule twice[] = {
		{ .call = CALL_read, .action = OK },
		{ .call = CALL_write, .action = OK },
		{ .call = CALL_read, .action = OK },
	};
	static const struct seccomp_rule endless[] = {
		{ .call = CALL_read, .action = OK },
		{ .call = CALL_write, .action = OK, .tests = { { .mask = 1 } } },
	};
	static const struct seccomp_rule torn[] = {
		{ .call = CALL_write, .action = OK, .tests = { { .mask = 1 } } },
		{ .call = CALL_read, .action = OK },
	};
	struct sock_filter code[64];
	struct error e = { 0 };

	(void)state;
	assert_int_equal(seccomp_compile(SECCOMP_X86_64, (struct seccomp_rules){ twice, 3 }, NULL,
					 code, 64, &e),
			 -EINVAL);
	assert_int_equal(seccomp_compile(SECCOMP_X86_64, (struct seccomp_rules){ endless, 2 }, NULL,
					 code, 64, &e),
			 -EINVAL);
	assert_int_equal(seccomp_compile(SECCOMP_X86_64, (struct seccomp_rules){ torn, 2 }, NULL,
					 code, 64, &e),
			 -EINVAL);
	assert_int_equal(e.code, EINVAL);
}

/* No rules: everything is ENOSYS. */
static void test_no_rules(void **state)
{
	static const uint64_t args[6] = { 0 };
	struct program p = { .arch = SECCOMP_AARCH64 };
	int n = seccomp_compile(p.arch, (struct seccomp_rules){ NULL, 0 }, NULL, p.code,
				ARRAY_LEN(p.code), NULL);

	(void)state;
	assert_true(n > 0);
	assert_null(bpf_check(p.code, (size_t)n));
	assert_int_equal(run(&p, 0, args).action, ERR(ENOSYS));
	assert_int_equal(run(&p, 0xffffffff, args).action, ERR(ENOSYS));
}

/* A buffer that is too small is an error at every size, and nothing is written outside. */
static void test_small_buffers(void **state)
{
	struct program whole = build(SECCOMP_X86_64, &notify);
	struct sock_filter *code;
	struct error e = { 0 };

	(void)state;
	for (size_t max = 0; max < whole.count; max++) {
		code = malloc(max * sizeof(*code) + 1);
		assert_int_equal(seccomp_build(SECCOMP_X86_64, &notify, code, max, &e), -E2BIG);
		free(code);
	}
	code = malloc(whole.count * sizeof(*code));
	assert_int_equal(seccomp_build(SECCOMP_X86_64, &notify, code, whole.count, &e),
			 whole.count);
	assert_memory_equal(code, whole.code, whole.count * sizeof(*code));
	free(code);
}

/* --- size and speed ------------------------------------------------------------------------ */

static void test_hot_calls_are_short(void **state)
{
	static const enum seccomp_call hot[] = { CALL_read,   CALL_write,        CALL_openat,
						 CALL_futex,  CALL_mmap,         CALL_close,
						 CALL_fstat,  CALL_newfstatat,   CALL_munmap,
						 CALL_statx,  CALL_ioctl,        CALL_epoll_pwait,
						 CALL_sendto, CALL_clock_gettime };
	static const uint64_t args[6] = { 0 }, terminal[6] = { 0, 0x5401 };

	(void)state;
	for (int arch = 0; arch < SECCOMP_ARCH_COUNT; arch++) {
		for (size_t o = 0; o < ARRAY_LEN(all_options); o++) {
			struct program p = build((enum seccomp_arch)arch, &all_options[o]);

			assert_true(p.count < 400);
			assert_int_equal(bpf_count_dead(p.code, p.count), 0);
			for (size_t i = 0; i < ARRAY_LEN(hot); i++) {
				int number = seccomp_call_number(p.arch, hot[i]);
				struct bpf_result r = run(&p, (uint32_t)number,
							  hot[i] == CALL_ioctl ? terminal : args);
				bool watched = hot[i] == CALL_openat && all_options[o].watch;
				bool tested = hot[i] == CALL_ioctl || hot[i] == CALL_openat;

				if (r.steps > 20)
					fail_msg("%s takes %zu steps", names[hot[i]], r.steps);
				/* Then the kernel answers from its bitmap. */
				assert_int_equal(r.saw_arguments, tested && !watched);
				assert_int_equal(r.action, watched ? ASK : OK);
			}
		}
	}
}

static void test_build_is_fast(void **state)
{
	struct sock_filter code[SECCOMP_FILTER_MAX];
	long best = 1000000000;

	(void)state;
	for (int i = 0; i < 200; i++) { /* the best of many, as the machine may be busy */
		struct timespec a, b;

		clock_gettime(CLOCK_MONOTONIC, &a);
		seccomp_build(SECCOMP_X86_64, &notify, code, ARRAY_LEN(code), NULL);
		clock_gettime(CLOCK_MONOTONIC, &b);

		long ns = (b.tv_sec - a.tv_sec) * 1000000000 + b.tv_nsec - a.tv_nsec;

		best = ns < best ? ns : best;
	}
	print_message("seccomp_build: %ld ns\n", best);
	assert_true(best < 100000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_syscall_has_rows),
		cmocka_unit_test(test_refusals_have_reasons),
		cmocka_unit_test(test_native_numbers),
		cmocka_unit_test(test_foreign_numbers),
		cmocka_unit_test(test_calls),
		cmocka_unit_test(test_direct),
		cmocka_unit_test(test_no_setuid),
		cmocka_unit_test(test_old_calls),
		cmocka_unit_test(test_clone_namespaces),
		cmocka_unit_test(test_socket_families),
		cmocka_unit_test(test_pinned),
		cmocka_unit_test(test_bare),
		cmocka_unit_test(test_no_unix),
		cmocka_unit_test(test_alone),
		cmocka_unit_test(test_without_ptrace),
		cmocka_unit_test(test_unknown_numbers),
		cmocka_unit_test(test_other_architectures),
		cmocka_unit_test(test_against_rules),
		cmocka_unit_test(test_against_rules_with_tests),
		cmocka_unit_test(test_far_jumps),
		cmocka_unit_test(test_bad_rules),
		cmocka_unit_test(test_no_rules),
		cmocka_unit_test(test_small_buffers),
		cmocka_unit_test(test_hot_calls_are_short),
		cmocka_unit_test(test_build_is_fast),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
