/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Punycode (RFC 3492): one label between code points and ASCII, without the
 * "xn--" in front. No judgement on which code points belong in a name.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/macros.h"

/* Both return the number of elements written, or -EINVAL / -E2BIG (more than cap). */
int punycode_encode(const uint32_t *in, size_t n, char *ret, size_t cap) NODISCARD;
int punycode_decode(const char *in, size_t n, uint32_t *ret, size_t cap) NODISCARD;
