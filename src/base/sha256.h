/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256 (FIPS 180-4): for the trust store and the chain of the audit log. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define SHA256_LEN 32
#define SHA256_HEX_LEN 64
#define SHA256_BLOCK 64

struct sha256 {
	uint32_t state[8];
	uint64_t total; /* bytes so far */
	uint8_t block[SHA256_BLOCK];
};

void sha256_init(struct sha256 *s);
void sha256_update(struct sha256 *s, const void *data, size_t len);
void sha256_final(struct sha256 *s, uint8_t digest[SHA256_LEN]);
/* All at once, as lower-case text with NUL. */
void sha256_hex(const void *data, size_t len, char hex[SHA256_HEX_LEN + 1]);
