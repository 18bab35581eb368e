/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The policy: what a command may do. Words (options), files (settings, profiles)
 * and defaults are merged once into this struct; after policy_load() it is const
 * for everybody, and everything in it remembers where it came from.
 *
 * Layers, lowest first; a later one wins for single values, lists are merged:
 *   default, profile, profile of the managed file, managed, user, project | file (-s),
 *   environment, option
 * except that nothing may widen what the managed layers lock, and that an
 * untrusted project layer may only narrow. Deny beats allow:
 *   read   the most specific (deepest) matching rule decides; at equal depth the
 *          later layer, in one layer a literal path beats a pattern, then the
 *          deny. An allowWrite rule makes its path readable like an allowRead.
 *          A locked deny (managed, or ambit's own records) is never re-opened, and
 *          what is shut without the rules of an untrusted project is shut.
 *   write  allowed where an allowWrite rule matches and no denyWrite rule does,
 *          whatever the depth, and the path is readable and not a protected name.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/path.h"
#include "policy/rule.h"

enum network_mode { NETWORK_UNSET, NETWORK_NONE, NETWORK_ALLOWLIST, NETWORK_HOST };
enum protect_mode { PROTECT_EVERYWHERE, PROTECT_ANCHORS };
enum tmp_mode { TMP_PRIVATE, TMP_HOST, TMP_SHARED };
enum home_mode { HOME_REAL, HOME_PRIVATE };
enum env_inherit { ENV_NONE, ENV_SAFE, ENV_ALL };
enum backend_choice {
	BACKEND_AUTO,
	BACKEND_NATIVE,
	BACKEND_BWRAP,
	BACKEND_LANDLOCK,
	BACKEND_SEATBELT,
	BACKEND_PODMAN,
	BACKEND_DOCKER,
	BACKEND_NONE,
};
enum fallback_mode { FALLBACK_ENFORCE, FALLBACK_WARN };
enum log_format { LOG_FORMAT_AUTO, LOG_FORMAT_TEXT, LOG_FORMAT_JSONL }; /* AUTO: by the name */

struct policy_network {
	enum network_mode mode; /* never UNSET after policy_load() */
	struct host_rules allowed, denied;
	struct env_settings denied_reasons; /* as written; policy_load() copies them to `denied` */
	struct text_rules denied_resolved; /* deniedResolvedAddresses */
	struct text_rules unix_sockets; /* absolute paths */
	struct text_rules unix_links; /* those that lead through links, as they were before */
	bool allow_all_unix_sockets;
	bool allow_local_binding;
	bool allow_private_addresses;
	bool deny_own_addresses; /* though private ones are allowed: loopback, interfaces */
	bool strict_allowlist;
	bool require_sni;
	bool allow_ech;
	struct port_rules publish, host_ports;
	uint16_t http_proxy_port, socks_proxy_port; /* 0 = own proxy */
	const char *parent_http, *parent_https, *parent_no_proxy; /* NULL = unset */
};

struct policy_filesystem {
	struct path_rules rules;
	struct protected_name *protected;
	size_t n_protected;
	struct name_index *protected_index; /* match_name.h: over all of them, by their numbers */
	bool keep_named; /* a rule that names a protected place does not lift it (srt) */
	enum protect_mode protect;
	struct text_rules bulk;
	enum tmp_mode tmp;
	enum home_mode home;
	bool allow_git_config;
};

/* 0 = no limit */
struct policy_limits {
	uint64_t memory, disk, output; /* bytes */
	double cpu; /* cores */
	uint64_t pids;
	uint64_t timeout_ms;
};

/* The backends podman and docker. */
struct policy_container {
	const char *image; /* NULL = none was named */
	struct text_rules args; /* for the engine; container.h says which */
};

struct policy_environment {
	enum env_inherit inherit;
	struct text_rules pass, pass_prefix, deny;
	struct env_settings set;
};

struct policy {
	const char *home; /* absolute */
	const char *cwd; /* canonical working directory of the command */
	struct policy_network network;
	struct policy_filesystem fs;
	struct policy_limits limits;
	struct policy_environment env;
	struct policy_container container;
	struct text_rules excluded_commands, denied_commands;
	bool allow_unsandboxed_commands, auto_allow_bash;
	bool only_managed_outside; /* managed `enabled`: what others exclude stays inside */
	bool enabled;
	enum backend_choice backend;
	enum fallback_mode fallback;
	struct text_rules require; /* properties, see sandbox/backend.h */
	struct ignore_rules ignore;
	bool weaker_nested;
	bool claude_settings;
	struct text_rules profiles;
	/* the project's own files as they were read, as lines of the trust store */
	struct text_rules project_lines;
	struct text_rules widening; /* for `ambit trust`: "KEY: VALUE", what it would let in */
	bool project_trusted;
	const char *state_dir; /* canonical; what ambit remembers; NULL = nothing */
	const char *audit_path; /* as written; NULL = default place */
	const char *audit_file; /* canonical; NULL = there is to be no log */
	uint64_t audit_max_size, audit_max_files;
	bool audit_redact;
	enum log_format log_format; /* of the session log (--log) */
	uint64_t log_max_size, log_max_files;

	const bool *locked; /* by schema row: the managed file keeps others from setting it */
	/* where each single value came from, by schema row (schema.h) */
	const struct origin *value_origin;
	/* Things the user should know (ignored project settings, ...), one line each. */
	struct text_rules notes;
};

/* One setting by its dotted name, as an option or variable gives it. */
struct setting_text {
	const char *key; /* "filesystem.allowRead" */
	const char *value; /* list elements are added one by one */
	const char *source; /* "--allow-read", "AMBIT_BACKEND" */
	enum layer layer; /* LAYER_OPTION or LAYER_ENVIRONMENT */
};

struct claude_files;
struct srt_inputs;

/* All inputs of a policy; nothing else (no environment, no globals) is consulted. */
struct policy_inputs {
	const char *cwd; /* absolute */
	const char *home; /* absolute */
	/* the home directory of the account; asked for ~ in managed settings. NULL = `home` */
	const char *(*account_home)(struct arena *a);
	const char *managed_file; /* /etc/ambit/settings.json; NULL = none */
	const char *user_file; /* $XDG_CONFIG_HOME/ambit/settings.{json,yaml}; NULL = none */
	const char *project_file; /* found .ambit.json; NULL = none */
	const char *
		*outer_files; /* more of them above it, which may only narrow; outermost first */
	size_t n_outer_files;
	const char *trusted; /* the trust store's text (trust.h); NULL = nothing is trusted */
	const char *only_file; /* -s FILE: replaces user and project; missing is an error */
	const char *only_text; /* its content where that is in memory already; else NULL */
	size_t only_len;
	size_t only_lines_before; /* of the stream that it is a part of */
	const char *state_dir; /* $XDG_STATE_HOME/ambit: trust, audit log; NULL = none is kept */
	const struct claude_files *claude; /* claude.h; NULL = none */
	const struct srt_inputs *srt; /* srt.h: as sandbox-runtime has it; NULL = as we have it */
	const char *profile_dir; /* the shipped profiles */
	const char *const *profile_dirs_user; /* NULL-terminated further places; may be NULL */
	const struct setting_text *settings; /* environment first, then options, in order */
	size_t n_settings;
	const struct view *view;
	/* the caller's variables, asked for secrets that they moved elsewhere; NULL = none */
	char *const *environ_in;
	const char *grant_file; /* where an answer "always" is written; NULL = nowhere */
	bool trusting; /* for `ambit trust`: all files that the project names are looked at */
	bool live_network; /* the lists may change later: an empty one is an allow list too */
	/* the caller's own proxies, used where nobody wrote down others; text NULL = none */
	struct inputs_text {
		const char *text, *source; /* source: the variable */
	} parent_http, parent_https, parent_no_proxy;
};

/*
 * Load, merge, check. Missing managed/user/project files are fine (they are
 * tried, not required). Everything is allocated in `a`. On failure the error names
 * file:line:column and key.
 */
int policy_load(struct arena *a, const struct policy_inputs *in, const struct policy **ret,
		struct error *e) NODISCARD;

/* Names of the profiles that there are, the user's and ours: sorted, each once. How many. */
size_t policy_profiles(struct arena *a, const struct policy_inputs *in, const char ***ret);

/*
 * Another settings file while the command runs, from memory: `start` with other network
 * lists. What settings files gave is replaced, what profiles, the managed file, variables
 * and options gave stays. A key that cannot change (schema.h: live) must say what holds or
 * be left out. `in` are the inputs of `start`; ret points into both arenas.
 */
struct live_text {
	const char *name; /* for messages: "control fd 3" */
	const char *text;
	size_t len;
	size_t lines_before; /* for messages, too */
};
int policy_load_live(struct arena *a, const struct policy_inputs *in, const struct policy *start,
		     const struct live_text *line, const struct policy **ret, struct error *e)
	NODISCARD;

/*
 * Git's own names (but for info/attributes) are guarded in whatever is a git directory by its
 * content, not where it is called .git; git itself may change some of them.
 */
bool protected_by_content(const struct protected_name *name);
/* The entry of exactly this name, one that is not lifted if there is one; NULL = there is none. */
const struct protected_name *protected_find(const struct policy *p, const char *pattern);
/*
 * What lifts a name. Of git's own each kind is lifted as a whole, by the entry for .git itself:
 * ".git/hooks" for the hooks of submodules too. All others stand for themselves.
 */
const struct protected_name *protected_lifter(const struct policy *p,
					      const struct protected_name *name);

/*
 * The protected name that covers `path`, given that writing is allowed by a rule on its first
 * root_depth components, or NULL. A name may begin above them (rule ~/.claude, name
 * .claude/settings.json) but must end below: an allowWrite rule that names the very thing is
 * taken at its word, unless the name is locked.
 */
const struct protected_name *protect_match(const struct policy *p, unsigned root_depth,
					   const char *path);
/*
 * The same word inside a directory that is writable anyway, on its first root_depth components: does
 * an allowWrite rule name this very path, which is protected there? The name is lifted then at this
 * place, and nowhere else. Not by patterns and profiles, which speak of no place in particular, and
 * nowhere in .git.
 */
bool protected_is_named(const struct policy *p, unsigned root_depth, const char *path);
/* Is it such a rule: somebody's own word for one path? */
bool protected_may_name(const struct path_rule *rule);

/* Why git's configuration cannot be written, whoever says so. */
#define GIT_CONFIG_REASON                                                                          \
	"git runs programs named in its configuration; git itself may change it (git config), "    \
	"within harmless keys"

/* Does the managed file keep others from setting this key? */
bool policy_is_locked(const struct policy *p, const char *key);

struct decision {
	enum verdict verdict;
	const struct path_rule *rule; /* the deciding rule, or NULL */
	const struct protected_name *protected; /* set when a protected name decided */
	const char *reason; /* short text: "outside the writable directories", ... */
};

/*
 * The path rules as they are to be enforced now: what a rule names may have been made, removed or
 * replaced since the policy was loaded. For those who keep a policy for long.
 */
void policy_look_again(const struct policy *p, struct arena *a, const struct view *view,
		       struct path_rules *ret);

/* path must be canonical (view->look). Pure; judged by path_rule.real. */
void policy_decide_path(const struct policy *p, enum access access, const char *path,
			struct decision *ret);

/* Print for people (each rule with its origin) and as JSON (settings shape plus origins). */
void policy_print(const struct policy *p, struct buf *out);
void policy_print_json(const struct policy *p, struct buf *out);

/*
 * Environment for the command: name=value strings, NULL-terminated, built from
 * `environ` by the rules. `ret_dropped` (may be NULL) gets the names left out, the
 * reason in origin.name.
 */
char **policy_environment(const struct policy *p, struct arena *a, char *const *environ_in,
			  struct text_rules *ret_dropped);
