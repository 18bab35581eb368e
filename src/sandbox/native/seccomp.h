/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The seccomp filter: which kernel calls the command may make, and which go to
 * the broker. The rules are data (seccomp_rules.c); seccomp_build() is pure and
 * compiles them for either architecture on either, so that tests can run the
 * result in a simulator; seccomp_load() is the only thing here with an effect.
 */
#pragma once

#include <linux/filter.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum seccomp_arch { SECCOMP_X86_64, SECCOMP_AARCH64, SECCOMP_ARCH_COUNT };

/* CALL_read, CALL_write, ...: one per known syscall, the same on every architecture. */
enum seccomp_call {
#define SYSCALL(name, x86_64, aarch64) CALL_##name,
#include "sandbox/native/syscalls.def"
#undef SYSCALL
	CALL_COUNT
};

/* Up to GROUP_TRACE what the command may use, the others are knowingly excluded. */
enum seccomp_group {
	GROUP_IO, /* on descriptors */
	GROUP_PATHS, /* on names of files */
	GROUP_MEMORY,
	GROUP_PROCESS,
	GROUP_IDENTITY, /* users, groups, sessions, limits */
	GROUP_SIGNALS,
	GROUP_TIME,
	GROUP_SCHEDULING,
	GROUP_NETWORK,
	GROUP_IPC,
	GROUP_EVENTS,
	GROUP_CONFINE, /* by which a program restricts itself further */
	GROUP_SYSTEM, /* questions about the machine */
	GROUP_TRACE,
	GROUP_TERMINAL,
	GROUP_HARDENING,
	GROUP_FAMILIES, /* of sockets */
	GROUP_ATTRIBUTES, /* of files, by ioctl */
	GROUP_SHARED_IPC, /* where there is no ipc namespace */
	GROUP_OTHERS, /* processes that may not be the sandbox's */
	GROUP_MOUNTS,
	GROUP_NAMESPACES,
	GROUP_OPAQUE, /* the filter cannot see what they would do */
	GROUP_HANDLES,
	GROUP_KERNEL,
	GROUP_OBSERVE,
	GROUP_KEYS,
	GROUP_CLOCK,
	GROUP_HOST,
	GROUP_OBSOLETE,
	GROUP_COUNT
};

/*
 * (argument & mask) == value. A 32-bit half whose mask is 0 is not looked at, which is
 * how a rule says "the kernel truncates this argument to int"; mask 0 is no test.
 */
struct seccomp_test {
	uint64_t mask;
	uint64_t value;
	uint8_t arg;
};

#define SECCOMP_TESTS_MAX 3

/* Not actions of the kernel's: what they become depends on the options. */
enum seccomp_choice {
	SECCOMP_WATCH = 0x7fffff00, /* SECCOMP_RET_USER_NOTIF with `watch`, else ALLOW */
	/* EPROTONOSUPPORT where the broker judges unix sockets, else ALLOW */
	SECCOMP_NO_DATAGRAMS,
	SECCOMP_LISTEN, /* SECCOMP_RET_USER_NOTIF with `no_listen`, else ALLOW */
	SECCOMP_PINNED, /* EPERM where the processors were chosen as a limit, else ALLOW */
	/* ENOSYS with `no_openat2` or `alone`, else SECCOMP_RET_USER_NOTIF (ALLOW without a broker) */
	SECCOMP_OPENAT2,
	SECCOMP_MEMFD, /* ENOSYS where memory must be seen to be limited, else ALLOW */
	SECCOMP_RESERVE, /* EOPNOTSUPP with `no_fallocate`, else ALLOW */
	SECCOMP_UNIX, /* EAFNOSUPPORT with `no_unix`, else ALLOW */
	SECCOMP_BROKERED, /* ALLOW where there is a broker, else EAFNOSUPPORT */
	SECCOMP_DIRECT, /* ALLOW with `direct`, else SECCOMP_RET_USER_NOTIF (ALLOW without a broker) */
	SECCOMP_SPECIAL, /* SECCOMP_RET_USER_NOTIF where there is a broker, else EPERM */
	SECCOMP_CHOICE_END_
};

/*
 * The rows of one syscall stand together; the first whose tests all hold decides, and the
 * last has none. An action is a SECCOMP_RET_* word with its data; SECCOMP_RET_USER_NOTIF
 * means SECCOMP_RET_ALLOW where there is no broker.
 */
struct seccomp_rule {
	uint16_t call; /* enum seccomp_call */
	uint8_t group; /* enum seccomp_group */
	uint32_t action;
	struct seccomp_test tests[SECCOMP_TESTS_MAX];
};

struct seccomp_rules {
	const struct seccomp_rule *rows;
	size_t count;
};

struct seccomp_options {
	bool notify; /* there is a broker behind SECCOMP_FILTER_FLAG_NEW_LISTENER */
	bool watch; /* it also wants to see opens for reading and execs (--report-reads) */
	bool all_unix; /* the broker lets every unix socket be connected to: datagrams too */
	bool no_listen; /* it wants to see listen(), to refuse it for the internet families */
	bool no_openat2; /* its flags can change after the broker looked at them */
	bool direct; /* what makes files may say that the broker is not to be asked (direct.h) */
	bool no_memfd; /* memory must be in processes or in files */
	bool no_fallocate; /* room in files must be written to be had */
	bool pinned; /* the command may not choose its processors */
	bool bare; /* there are no namespaces: seccomp_bare.c */
	bool alone; /* no broker looks at the mode that openat2() has behind a pointer */
	bool no_unix; /* nobody judges unix sockets: there are none, but pairs */
	bool no_network; /* with `bare`: no connection leaves but by the broker */
	bool allow_ptrace; /* GROUP_TRACE: tracing and reading each other, within the sandbox */
};

#define SECCOMP_OPTIONS_DEFAULT ((struct seccomp_options){ .allow_ptrace = true })

/* More than enough for every filter made of the built-in rules. */
#define SECCOMP_FILTER_MAX 512

struct seccomp_rules seccomp_builtin_rules(void);
/* In place of the rules for the same calls, with `bare` and with `no_network`. */
struct seccomp_rules seccomp_bare_file_rules(void);
struct seccomp_rules seccomp_bare_network_rules(void);

/* Why a group is excluded, in words for a user; NULL for the groups that are not. */
const char *seccomp_group_reason(enum seccomp_group group);

/* The syscall's number, -1 where the architecture does not have it. */
int seccomp_call_number(enum seccomp_arch arch, enum seccomp_call call);

enum seccomp_arch seccomp_native_arch(void);

/* Return the number of instructions in `out`, or -errno. NULL options are the default. */
int seccomp_build(enum seccomp_arch arch, const struct seccomp_options *options,
		  struct sock_filter *out, size_t max, struct error *e);
int seccomp_compile(enum seccomp_arch arch, struct seccomp_rules rules,
		    const struct seccomp_options *options, struct sock_filter *out, size_t max,
		    struct error *e);

/*
 * Put the filter on the calling thread, for good (no_new_privs must be set). Returns 0, the
 * listener's fd if SECCOMP_FILTER_FLAG_NEW_LISTENER is in `flags`, or -errno.
 */
int seccomp_load(const struct sock_filter *filter, size_t count, unsigned int flags);
