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

#define TLS_RECORD_HEAD 5
#define TLS_MESSAGE_HEAD 4

enum { TLS_RECORD_CIPHER = 20, TLS_RECORD_HANDSHAKE = 22, TLS_RECORD_DATA = 23 };
enum { TLS_CLIENT_HELLO = 1 };

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
	bool early_data; /* data of the client's may follow at once */
};

/* A whole handshake message, without the heads of records. Never SNI_MORE or SNI_NOT_TLS. */
enum sni_result sni_parse_message(const uint8_t *message, size_t len, struct sni *ret);
enum sni_result sni_parse(const uint8_t *data, size_t len, struct sni *ret);
const char *sni_result_text(enum sni_result r);
