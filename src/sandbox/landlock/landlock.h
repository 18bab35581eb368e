/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The backend without namespaces: Landlock, a narrower system call filter and the broker, for
 * machines where nobody may make user namespaces, and inside other sandboxes.
 *
 *   supervisor ─▶ keeper ─▶ init ─▶ the command
 *
 * The keeper answers the command's notified calls (it runs the broker) and is an ancestor of
 * all its processes, so that it may read their memory where Yama allows that to ancestors
 * only. It and init are in a Landlock domain that lets them change nothing outside the
 * writable directories; the command's own domain lies within that one. Init is the
 * nearest reaper of everything inside: whatever is orphaned becomes its child, and when the
 * command, the keeper or the supervisor ends it kills all of them and removes the private
 * temporary directory (private.c says who does when init cannot).
 */
#pragma once

#include "base/error.h"
#include "sandbox/backend.h"
#include "sandbox/plan.h"

struct compiler;

/* The last step of plan_compile() for a bare plan: Landlock rules from its places. Pure. */
int landlock_compile(struct compiler *c) NODISCARD;

/* Enter the keeper's domain, then the command's within it. For good. */
int landlock_enter_keeper(const struct plan *plan, struct error *e) NODISCARD;
int landlock_enter_command(const struct plan *plan, struct error *e) NODISCARD;

/*
 * The calling process itself, by a plan without a broker: no privileges, the command's domain, the
 * filter. For good; after a failure it may be done in part.
 */
int landlock_apply_self(const struct plan *plan, struct error *e) NODISCARD;

/* How calls can be watched here: facts->no_listener and ->nested. */
void landlock_gather(struct plan_facts *facts);
/* What is held with these facts. Pure. */
void landlock_properties(struct arena *a, const struct plan_facts *facts, struct properties *ret);
int landlock_probe(struct arena *a, struct properties *ret, struct error *e) NODISCARD;

/*
 * The private directory (private.c): ret_lock is to be held as long as it is used. NULL = none. Those
 * of runs that nobody is left of are removed.
 */
int landlock_make_private(const char *path, int *ret_lock, struct error *e) NODISCARD;
int landlock_fill_private(const struct plan *plan, struct error *e) NODISCARD;
void landlock_remove_private(const struct plan *plan);

/* In init: kill everything inside and remove what was made for this run. */
void landlock_end_all(const struct plan *plan);
