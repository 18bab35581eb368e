/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one table of settings. A row yields: the loader (JSON, YAML, --set), the
 * default, `ambit policy --json`, the JSON Schema file, the docs check.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/error.h"

enum setting_type {
	SETTING_BOOL,
	SETTING_ENUM, /* values[] gives the words, by the number of the C enum; "" cannot be written */
	SETTING_STRING,
	SETTING_PORT, /* 0-65535 */
	SETTING_SIZE, /* "512m" or a number of bytes */
	SETTING_DURATION, /* "30m" or a number of seconds */
	SETTING_NUMBER,
	SETTING_COUNT,
	SETTING_PATHS, /* list of path rules; also {path, literal} entries */
	SETTING_HOSTS, /* list of host rules */
	SETTING_STRINGS,
	SETTING_SOCKETS, /* list of unix socket paths: ~ and relative paths expanded */
	SETTING_PORTS, /* list of ports; also "HOSTPORT:PORT" for PORTS_MAPPED */
	SETTING_ENV, /* map name -> value */
	SETTING_IGNORE, /* map command -> list */
	SETTING_NAMES, /* list of protected names to add or lift */
	SETTING_REASONS, /* map entry of deniedDomains -> text shown when it refuses */
	SETTING_PROFILES, /* list of profiles: loaded before everything else */
	SETTING_LOCKED, /* managed file only: list of keys nobody below may touch */
	SETTING_REFUSED, /* a key of sandbox-runtime that cannot be honoured: refused by name */
	SETTING_ACCEPTED, /* a key of sandbox-runtime without meaning here (macOS, Windows): accepted */
};

/* What a value in an untrusted project file, or below a managed lock, may do. */
enum setting_widening {
	WIDEN_ADDING, /* list: each added entry widens (unless already covered) */
	WIDEN_NEVER, /* list of denies: adding only narrows */
	WIDEN_HIGHER, /* a higher value (index, number, true) widens; no limit (0) is the highest */
	WIDEN_LOWER, /* scalar: a lower value widens (true -> false) */
	WIDEN_ALWAYS, /* any change counts as widening */
	WIDEN_NEUTRAL,
};

struct setting {
	const char *key;
	enum setting_type type;
	enum setting_widening widening;
	size_t offset; /* into struct policy */
	const char *const
		*values; /* ENUM; STRINGS of which there are only these. NULL-terminated */
	const char *def; /* default for scalars, as text; NULL = zero */
	const char *help; /* SETTING_REFUSED: why, and what to use instead */
	unsigned variant; /* tells rows apart that share one place in the policy, below */
	bool live; /* may change while the command runs (live.c) */
	/* STRING, STRINGS: is the text acceptable? */
	int (*check)(const char *text, struct error *e);
};

/* variant of SETTING_PATHS: which of the four lists */
#define PATHS_VARIANT(access, verdict) ((unsigned)(access) << 1 | (unsigned)(verdict))
#define PATHS_ACCESS(variant) ((enum access)((variant) >> 1))
#define PATHS_VERDICT(variant) ((enum verdict)((variant)&1))
/* variant of SETTING_NAMES */
enum { NAMES_ADD, NAMES_LIFT };
/* variant of SETTING_REFUSED: does an empty object ask for it already? */
enum { REFUSED_UNLESS_EMPTY, REFUSED_WHEN_THERE };
/* variant of SETTING_HOSTS */
enum { HOSTS_ALLOWED, HOSTS_DENIED };
/* variant of SETTING_PORTS */
enum { PORTS_SAME, PORTS_MAPPED };

extern const struct setting settings_table[];
extern const size_t settings_count;

/* Row index, or -1. */
int setting_find(const char *key);
/* Nearest known key for "did you mean", or NULL. */
const char *setting_suggest(const char *key);
/* Is this the name of an object that holds settings ("network")? */
bool setting_is_group(const char *key);

/* Walk the table as the tree of objects that a settings file is. */
struct setting_visitor {
	void (*open)(void *ctx, const char *name);
	void (*leaf)(void *ctx, const char *name, size_t row);
	void (*close)(void *ctx);
	void *ctx;
};
void settings_walk(const struct setting_visitor *v);

/* The JSON Schema of the settings file. */
void settings_print_schema(struct buf *out);
