/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SOCKS5 (RFC 1928, 1929) messages. Pure; > 0 = bytes consumed, 0 = more is
 * needed, -EPROTO = not this message, -EINVAL = a host that cannot be one.
 * SOCKS4 is recognised only to be refused in its own words.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "policy/match_host.h"

#define SOCKS_MESSAGE_MAX 515 /* user name and password of 255 bytes each */
#define SOCKS_VERSION4 4
#define SOCKS_VERSION5 5
#define SOCKS_REPLY_LEN 10

enum socks_method { SOCKS_NO_AUTH = 0x00, SOCKS_PASSWORD = 0x02, SOCKS_NO_METHOD = 0xff };

enum socks_status {
	SOCKS_OK = 0x00,
	SOCKS_FAILURE = 0x01,
	SOCKS_NOT_ALLOWED = 0x02,
	SOCKS_NET_UNREACHABLE = 0x03,
	SOCKS_HOST_UNREACHABLE = 0x04,
	SOCKS_REFUSED = 0x05,
	SOCKS_TIMED_OUT = 0x06,
	SOCKS_BAD_COMMAND = 0x07,
	SOCKS_BAD_ADDRESS_TYPE = 0x08,
};

struct socks_request {
	enum socks_status problem; /* SOCKS_OK, or what to answer at once */
	struct host host;
	uint16_t port;
};

int socks_parse_greeting(const uint8_t *data, size_t len, enum socks_method *ret) NODISCARD;
/* Any user name and password will do: who can reach the listener may use it. */
int socks_parse_password(const uint8_t *data, size_t len) NODISCARD;
int socks_parse_request(const uint8_t *data, size_t len, struct socks_request *ret, struct error *e)
	NODISCARD;
void socks_reply(enum socks_status status, uint8_t ret[SOCKS_REPLY_LEN]);
