/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The policy as sandbox-runtime has it, for the drop-in: what holds without settings, which
 * keys a settings file must have, and where its rules mean something else than ours.
 *
 *   defaults  everything readable, nothing writable but a directory for temporary files;
 *             the whole environment; network through the proxy, no host allowed
 *   file      ~/.srt-settings.json or -s FILE, in place of all files but the managed
 */
#pragma once

#include "base/error.h"
#include "policy/policy.h"

/* What the caller's environment decides. */
struct srt_inputs {
	const char *tmpdir; /* an existing directory */
	char *const *environment; /* NAME=VALUE to set, NULL-terminated */
};

/* For policy_load(). */
struct builder;
struct node;
struct source;
void srt_add_defaults(struct builder *b);
int srt_check_file(const struct source *s, const struct node *root, struct error *e) NODISCARD;
void srt_finish(struct builder *b);
