/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The backend that lets bubblewrap make the namespaces and the mounts, for machines where
 * bwrap may and we may not (an AppArmor profile for it alone).
 *
 *   supervisor ─▶ bwrap ─▶ ambit-init (pid 1 inside) ─▶ the command
 *
 * The plan is the native one, written as bwrap's arguments. bwrap starts ambit-init, by
 * descriptor, with the few capabilities over the new namespaces that are needed to finish:
 * it looks whether what bwrap mounted is what was judged, does what bwrap cannot say, and
 * goes on as the native backend's child does: listeners, limits, Landlock, filter, init.
 */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "sandbox/backend.h"
#include "sandbox/plan.h"

struct compiler;

/* What ambit-init finds open; bwrap passes everything on. 0 and 1 are nobody's, 2 is bwrap's. */
enum bwrap_fd {
	BWRAP_FD_CONTROL = 3,
	BWRAP_FD_ERRORS,
	BWRAP_FD_READY, /* one message from ambit-init: bwrap's part is done */
	BWRAP_FD_ORDERS, /* inner.h */
	BWRAP_FD_PROGRAM, /* ambit-init itself */
	BWRAP_FD_STDIN,
	BWRAP_FD_STDOUT,
	BWRAP_FD_STDERR,
	BWRAP_FD_TTY, /* the terminal to give to the command; if there is one */
	BWRAP_FD_GROUP, /* cgroup.procs of the cgroup to enter; if there is one */
	BWRAP_FD_ARGUMENTS, /* closed by bwrap, as the next */
	BWRAP_FD_TEXT, /* the first of the texts to mount, in the plan's order */
};

#define BWRAP_TEXTS_MAX 64
#define BWRAP_WORDS_MAX 9000 /* bwrap itself takes no more */
#define BWRAP_COMMAND "/proc/self/fd/7"
_Static_assert(BWRAP_FD_PROGRAM == 7, "BWRAP_COMMAND names it");

/* The last step of plan_compile(): plan->bwrap, bwrap's arguments, from the mounts. Pure. */
int bwrap_compile(struct compiler *c) NODISCARD;

/* The program, where only root can have put it; else what to do about it. */
int bwrap_find(struct arena *a, const char **ret, struct error *e) NODISCARD;

/* A bwrap with these arguments, and descriptors as they are to be inside. */
struct bwrap_launch {
	const char *program;
	const char *const *words;
	size_t n_words;
	const char *mode; /* a word for ambit-init, or NULL */
	int fds[BWRAP_FD_TEXT + BWRAP_TEXTS_MAX]; /* -1 = none; [0..2] are not used */
	int said; /* becomes its standard error */
	int ready; /* out: the other end of BWRAP_FD_READY; the caller's to close */
};

/* Whether ambit-init needs help, in the byte that it sends when bwrap has done its part. */
enum bwrap_word { BWRAP_ABLE, BWRAP_POWERLESS };

/*
 * Start it and wait for ambit-init's answer, of `len` bytes and perhaps with a descriptor. Without
 * one, nothing is left running.
 */
int bwrap_run(struct bwrap_launch *l, const struct sandbox_limits *limits, void *answer, size_t len,
	      pid_t *ret_pid, int *ret_fd, struct error *e) NODISCARD;

/*
 * Finish the sandbox in the place of a powerless ambit-init, which waits for the answer on the
 * other end of `ready`: a byte, or a struct error. Nobody here waits for it.
 */
int bwrap_help(const struct plan *plan, int pidfd, int ready, int errors, struct error *e)
	NODISCARD;
/* In its place, try the steps of the native probe. 0 or -errno. */
int bwrap_help_try(int pidfd, int *results) NODISCARD;

int bwrap_probe(struct arena *a, struct properties *ret, struct error *e) NODISCARD;
