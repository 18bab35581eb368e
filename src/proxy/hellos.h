/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hellos of a TLS client, in whatever pieces its bytes come: the first, which was judged
 * before, and those that may follow it in the clear. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "proxy/sni.h"

enum hellos_found {
	HELLOS_NONE, /* nothing wrong so far; another may follow */
	HELLOS_OVER, /* these two are final: none can follow in the clear */
	HELLOS_CHANGED, /* one is not for the name of the first: see result and sni */
};

/* Zero-initialise, but for the buffer: HELLOS_INIT. */
struct hellos {
	enum hellos_found found;
	uint8_t head[TLS_RECORD_HEAD]; /* of the present record, */
	uint8_t n_head; /* so many bytes of it */
	uint16_t left; /* bytes of its content to come */
	uint32_t skip; /* bytes to come of a message that is no hello */
	struct buf message; /* the present one, as far as it is there */
	bool cipher_changed, early_data, is_second;
	enum sni_result first_result, result;
	struct sni first, sni; /* of the first hello, of the last */
};

#define HELLOS_INIT                                                                                \
	{                                                                                          \
		.message = BUF_INIT(SNI_MESSAGE_MAX)                                               \
	}

/* Bytes from the flow's very first on. CHANGED: these must not go on, or the hello is whole. */
enum hellos_found hellos_feed(struct hellos *h, const char *data, size_t len);
struct hellos *hellos_new(void);
void hellos_free(struct hellos *h);
