/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Secrets out of what goes to a terminal, for the session log. Pure. As redact.h, but it is the
 * text that counts, not the escape sequences (colours, titles) in it; and a line may be
 * looked at before its end has come.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

/* Sequences stay where they are, but for those inside what is masked. */
void seslog_mask(const char *s, size_t n, struct buf *out);
/* The text without the sequences. */
void seslog_strip(const char *s, size_t n, struct buf *out);
/* Of a begun line, as much as stays as it is whatever comes next. */
size_t seslog_settled(const char *s, size_t n);
/* Where a long line of which `shown` bytes are written can be cut: in no word, or in no token. */
size_t seslog_cut(const char *s, size_t shown, size_t n);
/*
 * A text that ends in a secret is masked alike from some length on, by which the secret is known.
 * n = that began not long ago.
 */
size_t seslog_secret_known(const char *s, size_t n);
