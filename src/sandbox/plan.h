/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plan: what a backend will do, as data. plan_compile() makes it
 * purely from a policy and a view of the file system; it can be printed
 * (`ambit plan`) and compared (tests/plan) without privileges. The executor
 * (native/, landlock/) carries it out and decides nothing.
 *
 * A *bare* plan has no namespaces: the mounts then only say how each place is to look, and
 * Landlock rules that add up to the same are in `grants` (landlock/compile.c).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/path.h"
#include "policy/policy.h"

/*
 * One mount, at `path`. Applied in order: a parent always stands before its
 * children.
 */
enum mount_kind {
	MOUNT_RW, /* the host's own tree at this path, writable */
	MOUNT_RO, /* the same, read-only */
	MOUNT_PIN, /* writable self-bind: the directory cannot be renamed or removed */
	MOUNT_HIDE_DIR, /* an empty, unwritable directory (may hold mount points) */
	MOUNT_HIDE_FILE, /* a file that cannot be opened */
	MOUNT_PRIVATE, /* an empty writable directory of this sandbox's own, gone at the end */
	MOUNT_TEXT, /* a file with text of ours, read-only */
	MOUNT_FOLDER, /* no mount: a directory made in the private directory around it */
	MOUNT_DEV, /* minimal /dev */
	MOUNT_PROC, /* /proc of the new pid namespace, read-only */
	MOUNT_KIND_MAX_,
};

struct mount_step {
	enum mount_kind kind;
	const char *path; /* canonical */
	bool directory; /* what stands there; a file is mounted on a file */
	bool direct; /* MOUNT_RW: not guarded */
	bool closed; /* hidden from the caller already, by the sandbox around it */
	bool make_point; /* the mount point is made: it lies in a PRIVATE or HIDE_DIR tree */
	uint32_t mode; /* MOUNT_PRIVATE: permissions */
	uint64_t dev,
		ino; /* the host object that was judged; the executor refuses another (0 = any) */
	const char *text; /* MOUNT_TEXT: the content */
	const char *why; /* the rule and where it came from */
	const struct path_rule *alias; /* it hides a second place of what this rule is about */
	size_t order; /* in which plan_compile() found it */
};

struct plan_port {
	uint16_t host, inside;
};

/* One Landlock rule of a bare plan: what may be done at `path` and below. */
enum grant_rights {
	GRANT_READ = 1, /* read, list, execute */
	GRANT_LIST = 2, /* see the names in directories, nothing else */
	GRANT_WRITE = 4, /* change, make, remove; implies GRANT_READ */
	GRANT_DEVICE = 8, /* read, write and control one device */
};

struct grant {
	const char *path; /* canonical */
	unsigned rights;
};

/* How a container engine is called; what it is to run is told to ambit-enter, inside. */
struct plan_engine {
	const char *name; /* "podman" */
	const char **argv; /* NULL-terminated; argv[0] is the program's path */
	size_t n_argv;
	char *const *env; /* of the engine itself: of the caller's what it needs */
	enum engine_landlock { ENGINE_NO_LANDLOCK, ENGINE_LANDLOCK, ENGINE_TRY_LANDLOCK } landlock;
	const char *container; /* its name */
	const char *directory, *socket; /* of this run: made at the start, removed when it runs */
	const char *image;
	/* Limits that the engine was told to hold; looked at before the command starts. 0 = none. */
	uint64_t memory, pids;
	double cpu;
};

/* A text file that is put into the sandbox, below /run. */
struct plan_file {
	const char *path; /* absolute, clean */
	const char *text;
};

struct held_path {
	const char *path; /* canonical */
	const struct protected_name *name; /* what lifts this */
	const char *why; /* what leads here; NULL = a link with that name */
};

struct plan {
	enum backend_choice backend;
	bool bare; /* no namespaces */
	bool contained; /* in a container: of the host only what has a mount is seen */
	const struct plan_engine *engine; /* contained only */
	uint32_t uid, gid;
	bool new_net; /* a network namespace of its own, with nothing but lo */
	uint16_t *host_ports; /* of 127.0.0.1 outside, reachable at the same place inside */
	size_t n_host_ports;
	uint16_t http_proxy, socks_proxy; /* of the host, in place of ambit-proxy's; 0 = none */
	struct plan_port *publish; /* ports inside, reachable on loopback outside */
	size_t n_publish;
	bool egress; /* everything that leaves ends at ambit-proxy */
	bool loopback; /* lo is up */
	int landlock_abi; /* what the rules are made for */
	bool landlock; /* the second layer; the executor fails when the kernel has none */
	bool all_unix; /* network.allowAllUnixSockets */
	const struct text_rules *unix_sockets; /* of the host, that may be connected to */
	bool no_listen; /* network.allowLocalBinding is false */
	/*
	 * Landlock before ABI 3: the kernel would let a guarded file be emptied, so no call that
	 * can do that goes on unperformed, and openat2(2), whose flags can change, does not exist.
	 */
	bool cut_unguarded;
	bool wait_killable; /* the kernel does not interrupt performed calls (Linux 5.19) */
	bool broker; /* somebody answers notified calls: names are guarded, or connections judged */
	bool outer_proc; /* /proc as it is out here, because a fresh one cannot be mounted */
	bool watch; /* opens for reading and execs are watched too */
	const char *tty; /* the caller's terminal, shown as /dev/console; NULL = none */
	const char *cwd;
	char **env; /* NULL-terminated */

	uint64_t scratch_size; /* of the file system of all private directories; 0 = the kernel's */

	bool root_writable; /* allowWrite "/": the tree is not made read-only as a whole */
	struct mount_step *mounts;
	size_t n_mounts;

	/* Landlock: what may be written to directly below these, everything else is refused */
	const char **writable;
	size_t n_writable;
	/*
	 * Writable directories whose names are guarded: the kernel grants only removal,
	 * everything else is performed by the broker (supervise/broker).
	 */
	const char **guarded;
	size_t n_guarded;
	/*
	 * Private directories with a guarded one below: a Landlock rule on them would reach
	 * down to it, so the broker performs what is done there too, freely. And a shared /tmp
	 * with a unix socket in it that may be connected to: but for sockets that are moved there.
	 */
	const char **relayed;
	size_t n_relayed;
	/*
	 * What protected names that are symbolic links lead to, or git's configuration (hooks,
	 * included files, programs), there or not, and the links on the way: guarded as the name is.
	 * "DIR/." only keeps others from taking the place of DIR.
	 */
	struct held_path *held;
	size_t n_held;
	/* Parts of guarded directories that are granted directly (node_modules, ...). */
	const char **bulk;
	size_t n_bulk;
	/* Programs make files there without asking the broker, by way of ambit-direct.so. */
	bool direct;

	/* Bare only. */
	struct grant *grants;
	size_t n_grants;
	const char *private_tmp; /* made at the start, removed at the end; NULL = none */
	const char *private_home; /* in it; NULL = none */
	struct plan_file *files; /* in it, by their paths there */
	size_t n_files;

	/* Backend bwrap only: its arguments. */
	const char **bwrap;
	size_t n_bwrap;

	/* Writable directories that were made for this run. */
	const char **fresh;
	size_t n_fresh;

	struct text_rules notes; /* what the user should know, one line each */
};

/* Facts about the caller that compile() needs; tests set them by hand. */
struct plan_facts {
	uint32_t uid, gid;
	const char *tty;
	char *const *environ_in;
	enum backend_choice backend; /* BACKEND_AUTO counts as native */
	int landlock_abi; /* 0 = the kernel has no Landlock */
	bool landlock_off; /* it has, but was started without */
	bool too_old; /* before Linux 5.12: neither we nor bwrap can make a tree read-only */
	bool wait_killable; /* SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV */
	const char
		*no_listener; /* why nobody can watch the calls: there is no broker; NULL = can */
	bool nested; /* in another sandbox, which watches them */
	bool weaker_proc; /* enableWeakerNestedSandbox, and /proc cannot be mounted here */
	const char *private_tmp; /* of a bare plan, or a container: a name that nobody else has */
	const char *engine; /* the container engine's program; NULL = there is none */
	const char *enter; /* ambit-enter */
	const char *direct_library; /* ambit-direct.so; NULL = none for this processor */
	bool watch; /* --report-reads */
	bool asks; /* somebody can allow writes to protected names during the run */
	const struct plan_file *files;
	size_t n_files;
	uint64_t memory; /* of the machine, bytes */
	const char **fresh; /* plan_prepare() made them */
	size_t n_fresh;
	bool dry; /* nothing will be run: a missing allowWrite directory counts as made */
};

/* Pure. Fails when a rule cannot be enforced. */
int plan_compile(struct arena *a, const struct policy *p, const struct plan_facts *facts,
		 const struct view *view, const struct plan **ret, struct error *e) NODISCARD;

/* The facts of this process. */
void plan_gather_facts(struct arena *a, char *const *environ_in, struct plan_facts *ret);

/*
 * The one thing done on the host before compiling: missing allowWrite directories are made,
 * and told in facts->fresh.
 */
int plan_prepare(struct arena *a, const struct policy *p, struct plan_facts *facts, struct error *e)
	NODISCARD;
/* Fails as plan_prepare() would, as far as can be said before; nothing is made. */
int plan_check_prepare(const struct policy *p, struct error *e) NODISCARD;
/* Is there anything to create? */
bool plan_must_prepare(const struct policy *p);

/* True when both make the same sandbox; where the command starts, and its environment, may differ. */
bool plan_same_sandbox(const struct plan *a, const struct plan *b);

/* Where else a path, there or not, would be seen through other mounts of its file system; how many. */
size_t plan_seen_elsewhere(struct arena *a, const struct view_mount *mounts, size_t n,
			   const char *path, const char *const **ret);

/* The first of plan->held that covers a path, or NULL. */
const struct held_path *plan_held_over(const struct plan *plan, const char *path);
/* Why it is guarded, for a message. */
const char *plan_held_reason(const struct held_path *held);

void plan_print(const struct plan *plan, struct buf *out);
void plan_print_json(const struct plan *plan, struct buf *out);
