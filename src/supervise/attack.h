/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ambit check --attack: the built-in escape attempts. They are made twice, each
 * time in a small world of their own (a home with a secret, a project, listeners
 * and a process of the host): first without a sandbox, which shows that the
 * attempt works on this machine at all, then inside one with the default policy.
 *
 * Nothing is left behind, and no attempt harms the machine where it works:
 * kernel knobs and devices are opened, never written; the rest stays in the world.
 */
#pragma once

#include <stddef.h>

#include "base/arena.h"
#include "base/error.h"

/* `ambit --attack-probes ...` makes the attempts; for attack_run() only. */
#define ATTACK_PROBES_WORD "--attack-probes"

enum attack_said { ATTACK_SAID_NOTHING, ATTACK_SAID_FAILED, ATTACK_SAID_WORKED };
/* What is seen from outside afterwards: it cannot lie, so where there is one it decides. */
enum attack_canary { ATTACK_NO_CANARY, ATTACK_UNTOUCHED, ATTACK_TOUCHED };

struct attack_answer {
	enum attack_said said;
	const char *detail; /* NULL = nothing was said */
	enum attack_canary canary;
};

enum attack_outcome {
	ATTACK_HELD,
	ATTACK_ESCAPED,
	ATTACK_UNCLEAR, /* one of the two runs gave no answer: not held */
	ATTACK_NOT_HERE, /* does not work here even without a sandbox */
};

struct attack_result {
	const char *name, *what;
	struct attack_answer control, inside; /* without the sandbox, in it */
	enum attack_outcome outcome;
};

struct attack_results {
	struct attack_result *v;
	size_t n;
};

struct attack_request {
	const char *program; /* this program */
	const char *const
		*places; /* directories to make the world in, best first, NULL-terminated */
};

int attack_run(struct arena *a, const struct attack_request *req, struct attack_results *ret,
	       struct error *e) NODISCARD;

/* The attempts of this program, with no answers yet. */
void attack_list(struct arena *a, struct attack_results *ret);
/* Pure. The answer about `name` in the lines that the probes wrote. */
void attack_read_answer(struct arena *a, const char *lines, const char *name,
			struct attack_answer *ret);
/* Pure: the outcome of two answers. */
enum attack_outcome attack_judge(const struct attack_answer *control,
				 const struct attack_answer *inside);

/*
 * Main of the process that makes the attempts. argv: what follows the word.
 * Lines "name<TAB>worked|failed<TAB>detail" go to fd. Returns the exit status.
 */
int attack_probes(char *const *argv, int fd);
