/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Secrets out of text, before it is kept. Pure, and by form alone: what looks like a secret is
 * replaced by "[redacted]", with as much left around it as is needed to see what it was.
 *
 *   passwords in URLs                  https://me:[redacted]@host/
 *   values under telling names         PASSWORD=[redacted], --token [redacted], "apiKey": "[redacted]"
 *   what a program takes for one       mysql -p[redacted], curl -u me:[redacted]
 *   authorization and cookie headers   Authorization: Bearer [redacted]
 *   tokens of well-known forms         ghp_[redacted], sk-[redacted], AKIA[redacted], JWTs
 *   private keys                       -----BEGIN [redacted]
 *
 * A secret without any such mark is not found. What a shell would run behind one is kept: nobody
 * can hide a command so, but inside the value itself (TOKEN='rm x'; eval "$TOKEN").
 */
#pragma once

#include <stddef.h>

#include "base/buf.h"

#define REDACTED "[redacted]"

void redact_text(const char *s, size_t n, struct buf *out);
/*
 * argv[i], in the light of the words before it: "--password" makes the next word a secret.
 */
void redact_argument(char *const *argv, size_t i, struct buf *out);
/* JSON in, JSON out: members under telling names, and what is in strings. -EINVAL: no JSON. */
int redact_json(const char *s, size_t n, struct buf *out) NODISCARD;
