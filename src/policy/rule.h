/* SPDX-License-Identifier: Apache-2.0 */
/* What a policy is made of: rules of each kind, and where each was written. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "policy/match_host.h"

enum layer {
	LAYER_DEFAULT,
	LAYER_PROFILE,
	LAYER_MANAGED_PROFILE, /* one that the managed file asks for */
	LAYER_MANAGED,
	LAYER_USER,
	LAYER_PROJECT,
	LAYER_FILE, /* -s FILE */
	LAYER_ENVIRONMENT,
	LAYER_OPTION,
	LAYER_MAX_,
};

/* The managed file and what it asks for: nothing else may go beyond them. */
static inline bool layer_is_managed(enum layer layer)
{
	return layer == LAYER_MANAGED || layer == LAYER_MANAGED_PROFILE;
}

static inline bool layer_is_profile(enum layer layer)
{
	return layer == LAYER_PROFILE || layer == LAYER_MANAGED_PROFILE;
}

/* Where a rule or value was written. */
struct origin {
	enum layer layer;
	bool untrusted; /* a project that may only narrow: it opens nothing that others shut */
	const char *name; /* file, profile, option ("--allow-read"), variable; "default" */
	unsigned line, column; /* 0 = no position */
};

/*
 * "default", "profile npm:3", "profile strict:7 (managed)",
 * "/home/u/.config/ambit/settings.json:12", "--allow-read"
 */
const char *origin_text(struct arena *a, const struct origin *o);

enum access { ACCESS_READ, ACCESS_WRITE };
enum verdict { VERDICT_DENY, VERDICT_ALLOW };

/* One entry of allowRead, denyRead, allowWrite or denyWrite. */
struct path_rule {
	enum access access;
	enum verdict verdict;
	bool glob; /* path is a pattern (match_path.h) */
	bool optional; /* a missing path is skipped (profiles) */
	bool spare; /* but made if it can be: a profile's, written with a slash at its end */
	bool absent; /* not there when the policy was loaded */
	bool locked; /* managed deny, or of ambit's own places: others cannot re-open it */
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
	bool by_content; /* see protected_by_content() */
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
