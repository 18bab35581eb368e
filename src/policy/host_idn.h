/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Internationalised labels. The mapping is a subset of UTS 46 (non-transitional)
 * that can be written down in a page: what is outside of it is refused, never
 * guessed, and can always be written as its A-label.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/macros.h"

/*
 * Lower case of c, '.' for every kind of full stop; false when c is not covered.
 * ASCII is only folded, not judged.
 */
bool idn_fold(uint32_t c, uint32_t *ret);

/*
 * Does the ASCII label (with its "xn--") decode to folded text beyond ASCII,
 * and that encode back to the label?
 */
bool idn_alabel_valid(const char *label, size_t n);

/* The A-label of folded code points. Its length, or -errno as punycode_encode(). */
int idn_alabel_encode(const uint32_t *label, size_t n, char *ret, size_t cap) NODISCARD;
