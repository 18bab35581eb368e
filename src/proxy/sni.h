/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server name in a TLS ClientHello, which may be cut into records and reads
 * at any byte. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "policy/match_host.h"

#define SNI_HELLO_MAX ((size_t)16 << 10) /* bytes to wait for, record heads included */
#define SNI_MESSAGE_MAX ((size_t)12 << 10) /* the largest real ones have about 4 KiB */

enum sni_result {
	SNI_MORE, /* a proper prefix so far */
	SNI_NAME, /* *ret is the name asked for */
	SNI_NONE, /* a whole ClientHello that names no server */
	SNI_NOT_TLS, /* something else */
	SNI_BAD, /* broken, too long, or two names */
};

struct sni {
	struct host host; /* SNI_NAME only */
	bool ech; /* the encrypted_client_hello extension is there (often only as grease) */
};

enum sni_result sni_parse(const uint8_t *data, size_t len, struct sni *ret);
const char *sni_result_text(enum sni_result r);
