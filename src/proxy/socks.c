/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/socks.h"

#include <errno.h>
#include <string.h>

enum { COMMAND_CONNECT = 1 };
enum { ADDRESS_IPV4 = 1, ADDRESS_NAME = 3, ADDRESS_IPV6 = 4 };

#define REQUEST_HEAD 4 /* version, command, reserved, address type */

int socks_parse_greeting(const uint8_t *data, size_t len, enum socks_method *ret)
{
	size_t n;

	if (len > 0 && data[0] != SOCKS_VERSION5)
		return -EPROTO;
	if (len < 2)
		return 0;
	n = 2 + (size_t)data[1];
	if (len < n)
		return 0;
	if (memchr(data + 2, SOCKS_NO_AUTH, n - 2))
		*ret = SOCKS_NO_AUTH;
	else if (memchr(data + 2, SOCKS_PASSWORD, n - 2))
		*ret = SOCKS_PASSWORD;
	else
		*ret = SOCKS_NO_METHOD;
	return (int)n;
}

int socks_parse_password(const uint8_t *data, size_t len)
{
	size_t n;

	if (len > 0 && data[0] != 1)
		return -EPROTO;
	if (len < 2)
		return 0;
	n = 2 + (size_t)data[1];
	if (len <= n)
		return 0;
	n += 1 + (size_t)data[n];
	return len < n ? 0 : (int)n;
}

/* Bytes of the address after its type; 0 = the length byte is not there yet. */
static size_t address_len(const uint8_t *data, size_t len)
{
	switch (data[3]) {
	case ADDRESS_IPV4:
		return 4;
	case ADDRESS_IPV6:
		return 16;
	case ADDRESS_NAME:
		return len > REQUEST_HEAD ? 1 + (size_t)data[REQUEST_HEAD] : 0;
	default:
		return SIZE_MAX;
	}
}

int socks_parse_request(const uint8_t *data, size_t len, struct socks_request *ret, struct error *e)
{
	struct socks_request q = { .problem = SOCKS_OK };
	const uint8_t *address = data + REQUEST_HEAD;
	size_t n;

	if ((len > 0 && data[0] != SOCKS_VERSION5) || (len > 2 && data[2] != 0))
		return -EPROTO;
	if (len < REQUEST_HEAD)
		return 0;
	n = address_len(data, len);
	if (n == SIZE_MAX) {
		ret->problem = SOCKS_BAD_ADDRESS_TYPE;
		return REQUEST_HEAD;
	}
	if (n == 0 || len < REQUEST_HEAD + n + 2)
		return 0;
	if (data[3] != ADDRESS_NAME) {
		host_from_addr(data[3] == ADDRESS_IPV4 ? HOST_IPV4 : HOST_IPV6, address, &q.host);
	} else if (host_parse((const char *)address + 1, n - 1, &q.host, e) < 0) {
		return -EINVAL;
	}
	q.port = (uint16_t)(address[n] << 8 | address[n + 1]);
	if (data[1] != COMMAND_CONNECT)
		q.problem = SOCKS_BAD_COMMAND;
	else if (q.port == 0)
		q.problem = SOCKS_FAILURE;
	*ret = q;
	return (int)(REQUEST_HEAD + n + 2);
}

void socks_reply(enum socks_status status, uint8_t ret[SOCKS_REPLY_LEN])
{
	memset(ret, 0, SOCKS_REPLY_LEN);
	ret[0] = SOCKS_VERSION5;
	ret[1] = (uint8_t)status;
	ret[3] = ADDRESS_IPV4; /* 0.0.0.0:0: which address of ours was used is nobody's business */
}
