/* SPDX-License-Identifier: Apache-2.0 */
/*
 * macOS: a Seatbelt profile from the policy, and the run path around it.
 *
 *   seatbelt_hold()     what the profile does not hold of this policy: refused, or told
 *   seatbelt_profile()  the policy as text, purely: can be made and compared on any machine
 *   seatbelt_run()      sandbox-exec with that profile, supervised until it ends
 *   seatbelt_enter()    inside: becomes the command, or says why not
 *
 * All of it is POSIX and built everywhere; the tests run it on Linux with a stand-in for
 * sandbox-exec. No profile of ours has been loaded on a Mac.
 *
 * What Seatbelt holds that Linux needs a broker for: protected names are patterns in the
 * profile, whether the file exists or not. What it does not hold: processes see each other,
 * and a process that leaves the command's group outlives it (as confined as before).
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "policy/policy.h"
#include "sandbox/property.h"

#ifndef SEATBELT_EXEC /* tests have a stand-in */
#define SEATBELT_EXEC "/usr/bin/sandbox-exec"
#endif
#define SEATBELT_ENTER_WORD "__seatbelt-enter"

struct seatbelt_facts {
	const char *tmp; /* the private temporary directory of the run, canonical; NULL = none */
	const char *home; /* the private home; NULL = none */
	const char *shared_tmp; /* with filesystem.tmp shared: the user's own, canonical */
	const char *self; /* ambit's own file, which starts the command; NULL = not read */
	uint16_t http_port, socks_port; /* where the proxy listens on 127.0.0.1; 0 = no proxy */
};

/* Pure. Fails when a path or pattern cannot be written down, or a rule cannot be held. */
int seatbelt_profile(struct arena *a, const struct policy *p, const struct seatbelt_facts *facts,
		     struct buf *out, struct error *e) NODISCARD;

/* A string literal of the profile language, with its quotes. -EINVAL for control bytes. */
int seatbelt_quote(const char *s, struct buf *out) NODISCARD;
/*
 * The regular expression for what a path pattern (match_path.h) covers, anchored, unquoted. Letters
 * from `fold` on match in either case: file systems of macOS usually do not tell them apart.
 * -EINVAL for a set in brackets of more than letters, digits and ranges of them.
 */
int seatbelt_regex(const char *pattern, size_t fold, struct buf *out) NODISCARD;

/* The rows of `ambit check` and `require`. Pure: whether sandbox-exec works is not tried. */
void seatbelt_properties(struct arena *a, struct properties *ret);

/*
 * What the policy asks for and macOS does not hold, a line each. An error instead, with
 * fallback: enforce; and in any case for what nobody can do without (`require`, allowed domains).
 */
int seatbelt_hold(struct arena *a, const struct policy *p, struct text_rules *ret_lost,
		  struct error *e) NODISCARD;

struct seatbelt_request {
	const struct policy *policy;
	char *const *argv; /* argv[0] is looked up on PATH of the command's environment */
	char *const *environ_in;
	const char *program; /* SEATBELT_EXEC */
	const char *self; /* ambit's own file, or whoever calls seatbelt_enter() */
};

struct seatbelt_result {
	int exit_code; /* what ambit exits with (CONTRACT 4) */
	int signal; /* the command died of it, else 0 */
	bool timed_out;
	uint64_t wall_ms;
};

/*
 * 0 when the command was started (whatever became of it). Otherwise nothing was run;
 * e->exit_code says how ambit exits (125, 126 or 127). Waits with sigwait(): for a process
 * of one thread, which does nothing else meanwhile.
 */
int seatbelt_run(struct arena *a, const struct seatbelt_request *req, struct seatbelt_result *ret,
		 struct error *e) NODISCARD;

/* words: what follows SEATBELT_ENTER_WORD. */
_Noreturn void seatbelt_enter(char *const *words, char *const *env);

/* --- scratch.c: the directory of one run, which nobody else may look into --------------- */

struct seatbelt_scratch {
	const char *dir; /* canonical; NULL = not made */
	const char *tmp; /* the command's, writable inside */
	const char *home; /* the same, with filesystem.home private; else NULL */
	const char *profile; /* where the profile is put when it is too long for an argument */
};

/* base: an absolute directory to make it in. */
int scratch_make(struct arena *a, const char *base, const struct policy *p,
		 struct seatbelt_scratch *ret, struct error *e) NODISCARD;
/* With all that the command made in it. */
void scratch_remove(const struct seatbelt_scratch *s);
