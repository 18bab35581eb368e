/* SPDX-License-Identifier: Apache-2.0 */
/* Between the files of the broker only. */
#pragma once

#include <limits.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/un.h>

#include "base/buf.h"
#include "supervise/broker/broker.h"
#include "supervise/broker/guard.h"
#include "supervise/broker/handover.h"
#include "supervise/broker/lockfile.h"
#include "supervise/broker/place.h"

/* A task that called before (task.c). */
struct task {
	pid_t tid; /* 0 = none */
	int dir; /* its directory in /proc */
	int pidfd; /* -1 = not needed yet */
	bool no_pidfd; /* the kernel gives none for this thread */
	uint64_t answered; /* the last call during which it was seen alive, by its id */
	uint64_t used;
	bool umask_known;
	bool changing; /* its last call was umask(2): it may not have come to that yet */
	mode_t umask;
};

#define TASKS_MAX 16

struct tasks {
	struct task v[TASKS_MAX];
	uint64_t clock;
};

void tasks_start(struct tasks *all);

/* Mounts of the sandbox that open files were found on (change.c). */
#define OWN_MOUNTS_MAX 8

struct own_mounts {
	uint64_t id[OWN_MOUNTS_MAX];
	size_t n;
};

/* A path that was read for a call: it is not read twice. */
struct path_read {
	uint64_t id, address;
	char text[PATH_MAX];
};

struct broker {
	struct arena *a; /* of the whole run */
	const struct policy *policy;
	const struct plan *plan;
	struct guard *guard;
	const struct mount_step *
		*covers; /* the plan's mounts on the way to writable places, and in them */
	size_t n_covers;
	int listener, reports, lost, lock;
	bool behind; /* the supervisor did not take the last report */
	struct buf deferred; /* reports, one behind the other */
	uint64_t *performed; /* NULL = nobody counts */
	int inquiries_fd;
	bool redirects;
	bool learns;
	uint64_t *seen; /* hashes of what was told to who learns */
	bool *taken; /* by the command's own mkdir: plan->fresh, see take_fresh() */
	struct domains
		*domains; /* of those that confine themselves (domain.c); NULL = nobody does */
	struct inquiries *inquiries; /* NULL = nobody is asked about connections */
	int proc; /* the outer /proc, opened before the mount namespace was joined */
	int root; /* the sandbox's root directory */
	pid_t supervisor;
	int *bulk; /* the plan's bulk directories as they were at the start, O_PATH */
	struct tasks tasks;
	struct own_mounts own_mounts;
	struct recent recent;
	struct path_read read;
	bool sync_wake; /* who is answered is woken on our processor */
	struct handover handover;
	bool umask_used; /* the command has called umask(2) */
	mode_t initial_umask, own_umask;
	struct later *later; /* what was told as running later */
	size_t n_later;
	bool later_full; /* and that was told */
	struct before *before;
	size_t n_before;
	struct moved *moved; /* of notes.c */
	size_t n_moved;
	const char **made; /* protected names that were not there before a person allowed them */
	size_t n_made;
	bool asks; /* somebody answers VIOLATION_ASK */
	uint32_t questions;
	struct answer *answers; /* that hold for the run */
	size_t n_answers;
	struct arena *scratch; /* of one call */
	char reason[160]; /* of the last refused configuration, for its report */
	unsigned dials; /* connections that wait in threads of their own; atomic */
	struct modules *modules; /* what submodules' configurations said (modules.c) */
};

struct answer {
	char *path;
	enum violation_answer answer;
};

struct later {
	char *path;
	const char *reason;
	char *origin; /* where it was before the run; NULL = nowhere */
};

#define LATER_MAX 999 /* one less than a report takes, for the word that there are more */

/* A lock file as it was before the command first touched it. */
struct before {
	char *path;
	char hosts[LOCKFILE_HOSTS_MAX];
};

enum move_way {
	MOVE_AWAY,
	MOVE_EXCHANGE,
};

#define MADE_MAX 1000 /* answers of a person */
#define BEFORE_MAX 64 /* files; of the others every host is new */

/* One call that waits for its answer. */
struct call {
	struct broker *b;
	const struct seccomp_notif *n;
	pid_t tid;
	const uint64_t *args;
	bool defers; /* what it tells is sent when the lock is free again */
};

/* What to answer: >= 0 result, -errno, or one of these. */
#define ANSWER_CONTINUE (-4096) /* let the kernel do it */
#define ANSWER_SENT (-4097) /* answered already, or somebody else will */
#define ANSWER_OTHER (-4098) /* of bare_answer(), broker_change(): not one of their calls */

/* Memory of the command: 0 or -errno. Strings longer than PATH_MAX are -ENAMETOOLONG. */
int call_read(const struct call *c, uint64_t address, void *buf, size_t len);
int call_read_path(const struct call *c, uint64_t address, char *buf);

/* The directory a relative path starts from. */
int call_open_base(const struct call *c, int dirfd, const char *path);
/* The same as text, PATH_MAX bytes; "" when nobody knows. For reports: it may be another by now. */
void call_base_text(const struct call *c, int dirfd, char *ret);

/* A copy of a descriptor of the command. */
int call_take_fd(const struct call *c, int fd);
/* What it refers to, as a descriptor of ours with O_PATH. */
int call_open_fd(const struct call *c, int fd);
/* /proc/self/fd/N, /dev/stdout and the like: the command's own descriptor N, or -1. */
int call_magic_fd(const struct call *c, const char *path);

mode_t call_umask(const struct call *c);
/* umask(2) is about to be performed. */
void call_note_umask(const struct call *c, mode_t mask);
bool call_is_valid(const struct call *c);

/* The task's pid as the command sees it and its name, PROCESS_NAME_MAX bytes. */
void call_describe(const struct call *c, int32_t *ret_pid, char *ret_process);
/* Fill in path and process, and send it to the supervisor. */
void call_send(const struct call *c, struct violation *v, const char *path);
/* Send what the call has deferred. */
void call_send_deferred(const struct call *c);
/* v->source: where the value of the setting came from. */
void call_set_source(struct violation *v, const char *key, const struct policy *p);
void call_explain(enum violation_kind kind, const struct guard_answer *why, struct violation *ret);
/* A write outside the guarded directories: tell it when the policy denies it. */
void call_report_outside(const struct call *c, enum violation_kind kind, const struct place *p);

void call_report_read(const struct call *c, const char *path, const struct path_rule *rule,
		      const char *reason);
void call_report_exec(const struct call *c, const struct place *p);
/* It is about to be changed, replaced or removed: look at it first, if it is a lock file. */
void call_note_before(const struct call *c, const struct place *p);
/* It is about to be removed or moved away: tell it, if it was protected before this run. */
void call_note_removal(const struct call *c, const struct place *p);
/* It is in a directory of this run, or was made where a person allowed that. */
bool call_is_of_this_run(const struct call *c, const struct place *p);
/* It is about to be written to: if it is not there, this run makes it. */
void call_note_made(const struct call *c, const struct place *p);
/* Tell that a file was made or changed that runs later outside, if it is one. */
void call_note_later(const struct call *c, const struct place *p, const struct guard_answer *how);
/* The same, for a reason of its own. */
void call_tell_later(const struct call *c, const struct place *p, const char *reason);

void call_report_unix(const struct call *c, const char *path);
/* A move of a socket of the host's to a place that the policy names. */
void call_report_socket(const struct call *c, enum violation_kind kind, const char *path,
			const struct text_rule *named);

/* For who learns (used.c): a write that was let happen; a socket that is not there. */
void call_note_used(const struct call *c, const struct place *p);
void call_note_wanted_socket(const struct call *c, int base, const char *name);

/* It is a directory, and was not made in this run. */
bool call_is_old_directory(const struct call *c, const struct place *p);
/* One that was went away; was moved from there to here, with all that lies in it. */
void call_note_gone(const struct call *c, const struct place *p);
void call_note_moved(const struct call *c, const struct place *from, const struct place *to);
/* The last word on such moves: from now on what lies there counts as what it was before the run. */
void call_note_origin(const struct call *c, const struct place *from, const struct place *to,
		      enum move_way way);
/* A directory was renamed: what lies in it and was told is told again by its new path. */
void call_move_later(const struct call *c, const struct place *from, const struct place *to);

/* Is what lies at the place this very file (open.c)? */
bool place_is_file(const struct place *p, const struct stat *st);
/* Is the open file, which has that path, on a mount that is not the sandbox's own (change.c)? */
bool file_is_foreign(struct broker *b, int file, const char *path);
/* Modes, owners, attributes, times (change.c); ANSWER_OTHER when it is not such a call. */
int broker_change(struct call *c);

/* The policy lets the socket at this path be connected to (sockets.c). */
bool socket_is_named(const struct policy *p, const char *path);
/* connect(2) (connect.c). */
int broker_connect(struct call *c);
struct inquiries *inquiries_new(struct broker *b);
/* Only where network.allowLocalBinding is false; ANSWER_CONTINUE: not a matter of ports. */
int broker_listen(struct call *c);
int broker_bind_port(struct call *c);

/* Ask, and bind a socket to a file at p. */
int call_bind_at(struct call *c, const struct place *p, int sock);

/* Where there are no namespaces (bare.c): an answer, or ANSWER_OTHER. */
int bare_answer(struct call *c);
/* 0 when the mode and the like of what is at `path` may be changed. */
int bare_judge_change(const struct broker *b, const char *path);
/* What the plan's mounts would do, where there are none: false in all other sandboxes. */
bool bare_is_read_only(const struct broker *b, const char *path);
/* It may not be removed or moved away, because of what it is or holds. */
bool bare_is_kept(const struct broker *b, const char *path);
/* On different mounts. */
bool bare_is_apart(const struct broker *b, const char *one, const char *other);

/* Calls that are only watched (watch.c). */
void watch_prepare(struct broker *b);
void broker_watch(struct call *c);

/*
 * The answer to one call, by the thread that has the caller's Landlock domain, if it has one
 * of its own (domain.c).
 */
int domains_answer(struct call *c);
/* This thread is in a Landlock domain that the caller has entered by itself. */
bool domain_is_entered(const struct call *c);
/* Run something that looks into the calling task, where that is allowed. */
int domain_errand(const struct call *c, int (*errand)(void *arg), void *arg);

/* The answer to one call (calls.c). */
int broker_answer(struct call *c);

/* Ask about one place: 0 or -EACCES. */
int call_judge(const struct call *c, const struct place *p, enum guard_op op, bool directory,
	       enum violation_kind kind, struct guard_answer *ret);
/* Tell the refusal. */
void call_refuse(const struct call *c, const struct place *p, enum violation_kind kind,
		 const struct guard_answer *why);
/* ask.c: the same, unless a person says that it may be done after all: 0 or -EACCES. */
int call_plead(const struct call *c, struct place *p, enum violation_kind kind,
	       struct guard_answer *why);
/* Both. */
int call_ask(const struct call *c, const struct place *p, enum guard_op op, bool directory,
	     enum violation_kind kind, struct guard_answer *ret);
/* Set the umask of the caller for a call that creates something. */
void call_adopt_umask(const struct call *c);
/* Wait until no other sandbox acts; p is brought up to date. 0, or ANSWER_CONTINUE. */
int call_alone(const struct call *c, struct place *p);

/* Left to the kernel, as the call before (direct.c). */
bool call_is_direct(const struct call *c);
/* The place is not guarded, and the call was left to the kernel. */
void call_note_direct(const struct call *c, const struct place *p);

/* Opening (open.c). */
/* the same test as in the filter */
#define OPEN_WRITE_INTENT (O_ACCMODE | O_CREAT | O_TRUNC | (O_TMPFILE & ~O_DIRECTORY))

struct opening {
	int flags;
	mode_t mode;
	uint64_t resolve; /* RESOLVE_* of openat2() */
};

bool call_only_reads(const struct call *c); /* an open that can change nothing */
int call_open(struct call *c, int dirfd, uint64_t address, struct opening o);
int call_openat2(struct call *c);
int call_truncate(struct call *c);
