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

enum init_event_type { INIT_STOPPED, INIT_EXITED };

struct init_event {
	int32_t type; /* enum init_event_type */
	int32_t value; /* signal, or wait status */
};

struct init_order {
	int32_t signal;
	int32_t group; /* to the command's process group, else to the command */
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
	NATIVE_DESCRIPTOR_MAX_,
};

/* Inside the child; all return -errno with the error set. */
int native_mounts(const struct plan *plan, struct error *e) NODISCARD;
int native_landlock(const struct plan *plan, struct error *e) NODISCARD;
int native_init(const struct plan *plan, const struct sandbox_command *cmd, int control, int errors,
		mode_t mask, struct error *e);
_Noreturn void native_exec(const struct plan *plan, const struct sandbox_command *cmd, int errors,
			   mode_t mask);

int native_probe(struct arena *a, struct properties *ret, struct error *e) NODISCARD;

/* Why namespaces cannot be made here, and what mends it; err is clone3's errno. */
int native_refused(int err, struct error *e);
