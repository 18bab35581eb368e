/* SPDX-License-Identifier: Apache-2.0 */
/*
 * macOS: a Seatbelt profile, from the policy alone. The profile is text, so it can be made,
 * printed (`ambit plan --backend seatbelt`) and compared on any machine. There is no run
 * path: the rest of the program is not ported to macOS, and no profile of ours has been
 * loaded on one. Who wants to try gives the text to sandbox-exec -f.
 *
 * What Seatbelt holds that Linux needs a broker for: protected names are patterns in the
 * profile, whether the file exists or not. What it does not hold: processes see each other,
 * and limits are those of setrlimit().
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "policy/policy.h"

struct seatbelt_facts {
	const char *tmp; /* the private temporary directory of the run, canonical */
	uint16_t http_port, socks_port; /* where the proxy listens on 127.0.0.1; 0 = no proxy */
};

/* Pure. Fails when a path or pattern cannot be written down, or a rule cannot be held. */
int seatbelt_profile(struct arena *a, const struct policy *p, const struct seatbelt_facts *facts,
		     struct buf *out, struct error *e) NODISCARD;

/* A string literal of the profile language, with its quotes. -EINVAL for control bytes. */
int seatbelt_quote(const char *s, struct buf *out) NODISCARD;
/*
 * The regular expression for what a path pattern (match_path.h) covers, anchored, unquoted. Letters
 * from `fold` on match in either case: file systems of macOS usually do not tell them apart.
 */
void seatbelt_regex(const char *pattern, size_t fold, struct buf *out);
