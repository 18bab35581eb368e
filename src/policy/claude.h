/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Claude Code's own settings as a source of the policy: its `sandbox` object and the
 * path, domain and command rules of `permissions`. Read when `claudeSettings` is true
 * (profile claude, mcp serve, agent).
 *
 *   managed  /etc/claude-code: like our managed file, below it
 *   user     ~/.claude/settings.json: like our user file, below it
 *   project  .claude/settings.json, settings.local.json: may only narrow, trusted or not
 *
 * The files are another program's: keys that mean nothing here are passed over, keys of
 * the wrong kind are errors with their place. A deny that cannot be enforced is an error,
 * an allow that cannot be expressed is left out with a note.
 */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "policy/policy.h"

/* Each may be NULL. */
struct claude_files {
	const char *managed;
	const char *managed_dir; /* *.json, in the order of their names, over `managed` */
	const char *user;
	const char *cwd, *top; /* the project's .claude is looked for from cwd up to top */
};

/* The domains that the managed and the user's files allow, with their places. */
int claude_domains(struct arena *a, const struct claude_files *files, struct text_rules *ret,
		   struct error *e) NODISCARD;

/* For policy_load(). */
struct builder;
enum claude_part { CLAUDE_MANAGED, CLAUDE_USER, CLAUDE_PROJECT };
int claude_apply(struct builder *b, enum claude_part part, struct error *e) NODISCARD;

/*
 * claude_rules.c: one rule of permissions, "Tool(spec)"; without a spec it is OTHER.
 */
struct claude_rule {
	enum claude_tool { CLAUDE_OTHER, CLAUDE_READ, CLAUDE_EDIT, CLAUDE_FETCH, CLAUDE_BASH } tool;
	const char *spec;
};
int claude_rule_parse(struct arena *a, const char *text, struct claude_rule *ret, struct error *e)
	NODISCARD;
/*
 * A path of Read() or Edit() in our syntax, relative to `*ret_of_root` ? the directory of the
 * settings : the working directory. A name without slash is meant at any depth: then
 * ret_deep is the pattern for that.
 */
const char *claude_rule_path(struct arena *a, const char *spec, bool *ret_of_root,
			     const char **ret_deep);
