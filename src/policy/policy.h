/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The policy: what a command may do. Words (options), files (settings, profiles)
 * and defaults are merged once into this struct; after policy_load() it is const
 * for everybody, and everything in it remembers where it came from.
 *
 * Layers, lowest first; a later one wins for single values, lists are merged:
 *   default, profile, managed, user, project | file (-s), environment, option
 * except that nothing may widen what the managed layer locks, and that an
 * untrusted project layer may only narrow. Deny beats allow:
 *   read   the most specific (deepest) matching rule decides; at equal depth the
 *          later layer, in one layer a literal path beats a pattern, then the
 *          deny. An allowWrite rule makes its path readable like an allowRead.
 *          A locked (managed) deny is never re-opened.
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
#include "policy/match_host.h"

enum layer {
	LAYER_DEFAULT,
	LAYER_PROFILE,
	LAYER_MANAGED,
	LAYER_USER,
	LAYER_PROJECT,
	LAYER_FILE, /* -s FILE */
	LAYER_ENVIRONMENT,
	LAYER_OPTION,
	LAYER_MAX_,
};

/* Where a rule or value was written. */
struct origin {
	enum layer layer;
	const char *name; /* file, profile, option ("--allow-read"), variable; "default" */
	unsigned line, column; /* 0 = no position */
};

/* "default", "profile npm:3", "/home/u/.config/ambit/settings.json:12", "--allow-read" */
const char *origin_text(struct arena *a, const struct origin *o);

enum access { ACCESS_READ, ACCESS_WRITE };
enum verdict { VERDICT_DENY, VERDICT_ALLOW };

/* One entry of allowRead, denyRead, allowWrite or denyWrite. */
struct path_rule {
	enum access access;
	enum verdict verdict;
	bool glob; /* path is a pattern (match_path.h) */
	bool optional; /* a missing path is skipped (profiles) */
	bool absent; /* not there when the policy was loaded */
	bool locked; /* managed deny: lower layers cannot re-open it */
	const char *text; /* as written */
	const char *path; /* absolute and clean, ~ expanded, symlinks kept */
	const char *real; /* canonical (the fixed part of a pattern is); what is enforced */
	const char *why; /* for built-in rules: the reason, e.g. "SSH keys"; else NULL */
	struct origin origin;
};

struct path_rules {
	struct path_rule *v;
	size_t n;
};

/*
 * A name that must not be created or changed anywhere below a writable
 * directory because it runs later outside the sandbox (hooks, start-up files,
 * editor and agent configuration). Data in protect.c; settings can add and lift.
 */
struct protected_name {
	const char *pattern; /* relative, components between "/": ".git/hooks", ".bashrc" */
	const char *reason;
	struct origin origin;
	bool locked; /* nobody may lift it, and naming it in allowWrite does not help either */
	bool lifted; /* settings lifted it; kept so that `policy` can show it */
	struct origin lifted_by;
};

struct text_rule { /* an entry of a plain string list */
	const char *text;
	struct origin origin;
};

struct text_rules {
	struct text_rule *v;
	size_t n;
};

struct port_rule { /* publish, allowHostPorts */
	uint16_t port; /* inside; for allowHostPorts the same outside */
	uint16_t host_port; /* publish: on the host's loopback */
	struct origin origin;
};

struct port_rules {
	struct port_rule *v;
	size_t n;
};

const char *port_rule_text(struct arena *a, const struct port_rule *r);

struct env_setting { /* environment.set */
	const char *name, *value;
	struct origin origin;
};

struct env_settings {
	struct env_setting *v;
	size_t n;
};

struct ignore_rule { /* ignoreViolations: command pattern -> paths */
	const char *command, *target;
	struct origin origin;
};

struct ignore_rules {
	struct ignore_rule *v;
	size_t n;
};

struct host_rule_entry { /* allowedDomains, deniedDomains */
	struct host_rule rule; /* parsed once (match_host.h) */
	const char *text;
	const char *reason; /* deniedDomainReasons, or NULL */
	bool locked;
	struct origin origin;
};

struct host_rules {
	struct host_rule_entry *v;
	size_t n;
};

enum network_mode { NETWORK_UNSET, NETWORK_NONE, NETWORK_ALLOWLIST, NETWORK_HOST };
enum protect_mode { PROTECT_EVERYWHERE, PROTECT_ANCHORS };
enum tmp_mode { TMP_PRIVATE, TMP_SHARED };
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

struct policy_network {
	enum network_mode mode; /* never UNSET after policy_load() */
	struct host_rules allowed, denied;
	struct env_settings denied_reasons; /* as written; policy_load() copies them to `denied` */
	struct text_rules denied_resolved; /* deniedResolvedAddresses */
	struct text_rules unix_sockets; /* absolute paths */
	bool allow_all_unix_sockets;
	bool allow_local_binding;
	bool allow_private_addresses;
	bool strict_allowlist;
	struct port_rules publish, host_ports;
	uint16_t http_proxy_port, socks_proxy_port; /* 0 = own proxy */
	const char *parent_http, *parent_https, *parent_no_proxy; /* NULL = unset */
};

struct policy_filesystem {
	struct path_rules rules;
	struct protected_name *protected;
	size_t n_protected;
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

struct policy_environment {
	enum env_inherit inherit;
	struct text_rules pass, pass_prefix;
	struct env_settings set;
};

struct policy {
	const char *home; /* absolute */
	const char *cwd; /* canonical working directory of the command */
	struct policy_network network;
	struct policy_filesystem fs;
	struct policy_limits limits;
	struct policy_environment env;
	struct text_rules excluded_commands;
	bool allow_unsandboxed_commands, auto_allow_bash;
	bool only_managed_outside; /* managed `enabled`: what others exclude stays inside */
	bool enabled;
	enum backend_choice backend;
	enum fallback_mode fallback;
	struct text_rules require; /* properties, see sandbox/backend.h */
	struct ignore_rules ignore;
	bool weaker_nested;
	struct text_rules profiles;
	const char *audit_path; /* NULL = default place */
	bool audit_redact;

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

/* All inputs of a policy; nothing else (no environment, no globals) is consulted. */
struct policy_inputs {
	const char *cwd; /* absolute */
	const char *home; /* absolute */
	const char *managed_file; /* /etc/ambit/settings.json; NULL = none */
	const char *user_file; /* $XDG_CONFIG_HOME/ambit/settings.{json,yaml}; NULL = none */
	const char *project_file; /* found .ambit.json; NULL = none */
	bool project_trusted;
	const char *only_file; /* -s FILE: replaces user and project; missing is an error */
	const char *only_text; /* its content where that is in memory already; else NULL */
	size_t only_len;
	const char *profile_dir; /* the shipped profiles */
	const char *const *profile_dirs_user; /* NULL-terminated further places; may be NULL */
	const struct setting_text *settings; /* environment first, then options, in order */
	size_t n_settings;
	const struct view *view;
	bool live_network; /* the lists may change later: an empty one is an allow list too */
};

/*
 * Load, merge, check. Missing managed/user/project files are fine (they are
 * tried, not required). Everything is allocated in `a`. On failure the error names
 * file:line:column and key.
 */
int policy_load(struct arena *a, const struct policy_inputs *in, const struct policy **ret,
		struct error *e) NODISCARD;

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
};
int policy_load_live(struct arena *a, const struct policy_inputs *in, const struct policy *start,
		     const struct live_text *line, const struct policy **ret, struct error *e)
	NODISCARD;

struct decision {
	enum verdict verdict;
	const struct path_rule *rule; /* the deciding rule, or NULL */
	const struct protected_name *protected; /* set when a protected name decided */
	const char *reason; /* short text: "outside the writable directories", ... */
};

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
