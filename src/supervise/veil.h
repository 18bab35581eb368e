/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps hidden what is hidden. What hides a file is a mount on it, and the kernel takes that mount
 * away, in all namespaces, when somebody outside puts another file in its place: as every program
 * does that saves by renaming. And what a rule hides may not exist yet when the command starts.
 *
 * So the directories on the way to hidden places are watched while a command runs, and what
 * appears there is hidden as well, from outside, in the sandbox's namespaces. Between the two there
 * is a moment in which it can be read: that cannot be helped, and is told.
 *
 * A command that is over soon pays nothing: the watch begins after a while, with a look at what
 * happened before. Only the descriptor for it is made while nothing of the command's runs, which
 * could use up all that the user may have.
 *
 *   veil_reserve()  that descriptor
 *   veil_new()      watch
 *   veil_fd()       readable when veil_step() has something to do
 *   veil_step()     look, and hide
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/arena.h"
#include "base/error.h"
#include "policy/policy.h"
#include "sandbox/plan.h"

#define VEIL_BEGIN_MS 50 /* after the start */
#define VEIL_LOOK_MS 20 /* between looks, where nothing can be watched */

struct veil;

/* Does any rule hide something? */
bool veil_is_needed(const struct policy *p);
/* A descriptor; -1 = this user may have no more. */
int veil_reserve(void);
/* started_ms: when the plan was made (sys_now_ms()). changes: from veil_reserve(), taken over. */
struct veil *veil_new(struct arena *a, const struct policy *p, const struct plan *plan,
		      uint64_t started_ms, int changes);
/* A child of ours that is about to end with what was watched; -1 = none. */
pid_t veil_free(struct veil *v);
/* -1 = there is none, or no more: veil_step() wants to be called every VEIL_LOOK_MS. */
int veil_fd(const struct veil *v);

/*
 * Hides what has appeared, in these namespaces; `told` hears of each path once. Fails when
 * something could not be hidden: then it can be read inside.
 */
int veil_step(struct veil *v, int user_ns, int mount_ns, void (*told)(void *ctx, const char *path),
	      void *ctx, struct error *e) NODISCARD;
