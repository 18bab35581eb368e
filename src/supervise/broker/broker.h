/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The broker: performs the command's write-intent calls inside guarded
 * directories, so that protected names hold for names that do not exist yet, at
 * any depth, without a race and without a trace in the tree.
 *
 * The kernel denies by default: the command's Landlock domain has no right to
 * create or write in a guarded directory. The seccomp filter sends such calls
 * here; the broker opens the parent directory, asks the guard about (parent,
 * name), performs the call on exactly that pair and hands the result back. For
 * everything outside guarded directories it answers "continue", which is
 * always safe: the kernel resolves the path again and enforces its own rules.
 *
 * It runs as a process of its own, in the sandbox's user and mount namespace
 * (paths mean what the command means), outside its Landlock domain and in the outer
 * pid namespace (the command can neither see nor signal nor trace it), with no
 * capability but CAP_SYS_PTRACE over the sandbox's own processes.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "policy/policy.h"
#include "sandbox/plan.h"

struct broker_setup {
	const struct policy *policy;
	const struct plan *plan;
	int listener; /* seccomp notification descriptor */
	int user_ns, mount_ns; /* the sandbox's namespaces, to join */
	int reports; /* SOCK_SEQPACKET: a struct violation per denial */
	int lost; /* eventfd: reports that could not be sent */
	uint64_t *performed; /* shared memory: calls that were performed; NULL = not counted */
	int inquiries; /* SOCK_SEQPACKET to ambit-proxy (proxy/inquiry.h); -1 = nobody is asked */
	bool learns; /* tell what is used and wanted too: VIOLATION_USED and what follows it */
	bool redirects; /* connections only get to the proxy when the broker sends them there */
	bool asks; /* VIOLATION_ASK is answered */
	int lock; /* file locked around decisions on git directories; shared by sandboxes; -1 = none */
};

enum violation_kind {
	VIOLATION_WRITE,
	VIOLATION_CREATE,
	VIOLATION_MAKE_DIRECTORY,
	VIOLATION_RENAME,
	VIOLATION_DELETE,
	VIOLATION_MODE, /* chmod, chown, times, attributes */
	VIOLATION_READ,
	VIOLATION_EXEC,
	VIOLATION_CONNECT, /* from the egress proxy; path is host:port */
	VIOLATION_UNIX,
	VIOLATION_LISTEN, /* path is address:port */
	/* from here on no denials: */
	VIOLATION_LATER, /* a file was made or changed that runs later outside */
	VIOLATION_REMOVED, /* a protected name was removed */
	VIOLATION_ASK, /* may it be written to? The call waits for a struct violation_reply */
	VIOLATION_USED, /* a write outside the working directory was let happen */
	VIOLATION_MADE, /* the same, of a name that was not there */
	VIOLATION_WANTED_UNIX, /* a socket that is not seen inside */
	VIOLATION_WANTED_PORT, /* of the loopback, where nobody inside listens; path is the number */
	VIOLATION_KIND_MAX_,
};

#define VIOLATION_PATH_MAX 4096
#define PROCESS_NAME_MAX 16 /* the kernel's own limit, with its NUL */

/* What was refused, as it travels from the broker to the supervisor. */
struct violation {
	int32_t kind; /* enum violation_kind */
	int32_t pid; /* as the command sees it */
	uint32_t id; /* of a question */
	char process[PROCESS_NAME_MAX];
	char rule[64]; /* setting that decided: "filesystem.allowWrite", "protected name .envrc" */
	char source[256]; /* where the rule came from; of a lock file: its hosts before */
	char reason[160];
	char path[VIOLATION_PATH_MAX]; /* last: what is behind its end is not sent */
};

/* The other way, to VIOLATION_ASK; _RUN holds for this path until the end. */
enum violation_answer {
	VIOLATION_REFUSE,
	VIOLATION_REFUSE_RUN,
	VIOLATION_ALLOW_ONCE,
	VIOLATION_ALLOW_RUN,
};

struct violation_reply {
	uint32_t id;
	int32_t answer; /* enum violation_answer */
};

/* The file that all brokers of a user lock; -1 and errno. */
int broker_open_lock(const struct policy *p);

/*
 * Serve in this process, which is the sandbox's keeper (sandbox/landlock), until the pidfd
 * `until` is readable or nobody is left. All other descriptors above 2 are closed.
 */
void broker_serve(const struct broker_setup *setup, int until);

/* Start the broker process. The listener stays open here: close it after the call. */
int broker_start(const struct broker_setup *setup, pid_t *ret_pid, struct error *e) NODISCARD;
