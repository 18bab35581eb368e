/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one table of settings. A row yields: the loader (JSON, YAML, --set), the
 * default, `ambit policy --json`, the JSON Schema file, the docs check.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

enum setting_type {
	SETTING_BOOL,
	SETTING_ENUM, /* values[] gives the words, narrowest first */
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
	SETTING_PORTS,
	SETTING_ENV, /* map name -> value */
	SETTING_IGNORE, /* map command -> list */
	SETTING_NAMES, /* list of protected names to add or lift */
	SETTING_REFUSED, /* a key of sandbox-runtime that cannot be honoured: refused by name */
	SETTING_ACCEPTED, /* a key of sandbox-runtime without meaning here (macOS, Windows): accepted */
};

/* What a value in an untrusted project file, or below a managed lock, may do. */
enum setting_widening {
	WIDEN_ADDING, /* list: each added entry widens (unless already covered) */
	WIDEN_NEVER, /* list of denies: adding only narrows */
	WIDEN_HIGHER, /* scalar: a higher value (enum index, number, true) widens; 0 = unlimited is highest for limits */
	WIDEN_LOWER, /* scalar: a lower value widens (true -> false) */
	WIDEN_ALWAYS, /* any change counts as widening */
	WIDEN_NEUTRAL,
};

struct setting {
	const char *key;
	enum setting_type type;
	enum setting_widening widening;
	size_t offset; /* into struct policy */
	const char *const *values; /* SETTING_ENUM, NULL-terminated */
	const char *def; /* default for scalars, as text; NULL = zero */
	const char *help;
};

extern const struct setting settings_table[];
extern const size_t settings_count;

/* Row index, or -1. */
int setting_find(const char *key);
/* Nearest known key for "did you mean", or NULL. */
const char *setting_suggest(const char *key);
/* The JSON Schema of the settings file. */
void settings_print_schema(struct buf *out);
