/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The native Linux backend: carries out a plan.
 *
 *   start   clone3 with all namespaces; the child sets up the mounts, becomes init (pid 1
 *           inside) and starts the command as pid 2.
 *
 * The supervisor talks to init over `control` (SOCK_SEQPACKET): orders go in,
 * events come out. When the supervisor dies the socket reports end of file and
 * init leaves, which ends everything inside. `errors` (also SOCK_SEQPACKET) carries
 * a struct error when set-up failed, and the notification descriptor of the
 * system call filter when names are guarded (a byte with SCM_RIGHTS); end of file
 * means that the command was executed.
 */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "sandbox/backend.h"
#include "sandbox/plan.h"

enum init_event_type {
	INIT_STOPPED,
	INIT_EXITED,
	INIT_FROZEN, /* an order to stop all was carried out */
	INIT_OUT_OF_MEMORY, /* a container's: the kernel ended a process */
	INIT_OUT_OF_PIDS, /* the same: it refused one */
};

/* What processes used; no struct of the C library's, which ambit and ambit-init need not share. */
struct init_usage {
	uint64_t cpu_ms, max_rss_kb;
};

struct init_event {
	int32_t type; /* enum init_event_type */
	int32_t value; /* signal, or wait status */
	/* with INIT_EXITED: nobody else is left inside, and this is what they used all together */
	bool alone;
	struct init_usage usage;
};

enum init_target {
	INIT_COMMAND,
	INIT_GROUP, /* the command's process group */
	INIT_ALL, /* whatever runs inside; without a pid namespace SIGKILL is the only order */
};

struct init_order {
	int32_t signal;
	int32_t target; /* enum init_target */
};

/*
 * Descriptors from inside, on the errors socket, with SCM_RIGHTS. Those of the egress proxy
 * come one by one with a struct egress_message; those for the broker together, with one byte
 * and last of all.
 */
enum native_descriptor {
	NATIVE_LISTENER, /* of the system call filter */
	NATIVE_USER_NS,
	NATIVE_MOUNT_NS,
	NATIVE_ROOT, /* "/" as it is inside, O_PATH; only while the command is still to come */
	NATIVE_DESCRIPTOR_MAX_,
};

/* Before them, where use is measured: these, with NATIVE_USAGE_LEN bytes. */
enum native_usage {
	NATIVE_PROC, /* /proc as it is inside, open */
	NATIVE_SCRATCH, /* the file system of all private directories, O_PATH */
	NATIVE_SHM, /* the list of System V memory; may be missing */
	NATIVE_USAGE_MAX_,
};
#define NATIVE_USAGE_LEN 2
/* And before those, where private directories are file systems of their own: each, O_PATH. */
#define NATIVE_PRIVATE_LEN 3
#define NATIVE_PRIVATE_MAX 16

/* What init has; all but control, keeper and lock are gone when the command runs. */
struct init_sockets {
	int control, errors;
	int listener; /* where the notification descriptor goes: errors, or the keeper */
	int keeper; /* pidfd of it; -1 = there is none */
	int lock; /* on the private directory of a bare plan; -1 = none */
};

struct rusage;
struct init_usage native_usage(const struct rusage *usage);

/* The devices of the host that are in every /dev; those that are missing there are left out. */
#define NATIVE_DEVICES 6
extern const char *const native_devices[NATIVE_DEVICES];

/* Inside the child; all return -errno with the error set. */
int native_mounts(const struct plan *plan, struct error *e) NODISCARD;
/* A descriptor (O_PATH) of exactly this path, no link in it. */
int native_open_exact(const char *path);
/*
 * Outside: enters the namespaces and hides there what is at these paths of the host and can be seen
 * inside; ret_hidden says which that were. For a process that does nothing else.
 */
int native_mask(int user_ns, int mount_ns, const char *const *paths, size_t n, bool *ret_hidden,
		struct error *e) NODISCARD;
/* Files of /proc that are nobody's business inside, one by one; NULL after the last. */
const char *native_proc_secret(const struct plan *plan, size_t i);
/* Limits: before the mounts; and after them, before privileges are dropped. NULL = none. */
int native_limits_begin(const struct sandbox_limits *l, struct error *e) NODISCARD;
int native_limits_enter(const struct plan *plan, const struct sandbox_limits *l, int control,
			int errors, struct error *e) NODISCARD;
int native_landlock(const struct plan *plan, struct error *e) NODISCARD;
/* All Landlock rights to change files that this ABI knows. */
uint64_t native_write_rights(int abi);
int native_lower_loopback(struct error *e) NODISCARD;
/* lo, the proxy's listeners, seeds of published ports: before the mounts, with all rights. */
int native_network(const struct plan *plan, int errors, struct error *e) NODISCARD;
int native_drop_privileges(const struct plan *plan, struct error *e) NODISCARD;
/* After the mounts: the working directory, limits, no privileges any more. */
int native_settle(const struct plan *plan, const struct sandbox_limits *limits, int control,
		  int errors, struct error *e) NODISCARD;
int native_init(const struct plan *plan, const struct sandbox_command *cmd,
		const struct init_sockets *sockets, mode_t mask, struct error *e);
_Noreturn void native_exec(const struct plan *plan, const struct sandbox_command *cmd, int errors,
			   int listener, mode_t mask);

/*
 * A sandbox that stands ready: everything is set up, the filter loaded, and the process that will
 * be the command waits for it on the errors socket.
 */
#define NATIVE_COMMAND_MAX ((size_t)64 << 10) /* bytes of all words together */
struct native_command {
	const char *cwd;
	char *const *argv, *const *env;
	int stdio[3];
};
/* To it, once. -E2BIG when it is too long to be told this way: nothing was sent. */
int native_send_command(int errors, const struct native_command *c) NODISCARD;
/* In it, once: waits, takes stdio and working directory, gives the words. */
int native_take_command(int errors, char ***ret_argv, char ***ret_env, struct error *e) NODISCARD;

/* What the probe tries. */
enum native_step {
	NATIVE_STEP_USER,
	NATIVE_STEP_MOUNT,
	NATIVE_STEP_PROC,
	NATIVE_STEP_DEV,
	NATIVE_STEP_NET,
	NATIVE_STEP_CAPTURE,
	NATIVE_STEP_OTHER, /* pid, ipc, uts, cgroup: made together with the user namespace */
	NATIVE_STEP_NOTIFY,
	NATIVE_STEP_SECCOMP,
	NATIVE_STEP_MAX_
};

/* In namespaces made for this, whose user namespace works: 0 or an errno per step. */
void native_try(int results[NATIVE_STEP_MAX_]);
/* What is held, by what the steps gave; cause and remedy explain why there are no namespaces. */
void native_judge(struct arena *a, const struct plan_facts *facts, const int *results,
		  const char *cause, const char *remedy, struct properties *ret);
void native_properties(struct arena *a, const struct plan_facts *facts, struct properties *ret);
int native_probe(struct arena *a, struct properties *ret, struct error *e) NODISCARD;

/* A reason, known without trying, why namespaces may be refused. */
bool native_is_doubtful(void);
/*
 * Why namespaces cannot be made here, and what mends it; err is that of clone3, or of the maps of
 * ids. The uid is the one outside.
 */
enum native_refusal { NATIVE_NO_NAMESPACE, NATIVE_NO_IDS };
int native_refused(int err, uint32_t uid, enum native_refusal what, struct error *e);
