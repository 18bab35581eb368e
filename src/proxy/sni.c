/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trust boundary: the hello is written by the program in the sandbox. The name
 * found here must be the one the server will see, so whatever a server might
 * read otherwise (two name extensions, two names, lengths that do not add up)
 * is SNI_BAD and not guessed at.
 *
 * Two layers: records are joined into one handshake message of bounded size,
 * then a cursor walks it; a read past its end makes the cursor fail for good.
 */
#include "proxy/sni.h"

#include <string.h>

enum { RECORD_FIRST = 20, RECORD_ALERT = 21, RECORD_LAST = 24 };
enum { EXTENSION_SERVER_NAME = 0, EXTENSION_EARLY_DATA = 42, EXTENSION_ECH = 0xfe0d };
enum { NAME_TYPE_HOST = 0 };

#define RECORD_MAX ((1u << 14) + 256)

struct cursor {
	const uint8_t *at;
	size_t left;
	bool failed;
};

static const uint8_t *take(struct cursor *c, size_t n)
{
	const uint8_t *p = c->at;

	if (c->failed || n > c->left) {
		c->failed = true;
		return NULL;
	}
	c->at += n;
	c->left -= n;
	return p;
}

/* A big-endian number of 1 to 3 bytes. */
static size_t take_number(struct cursor *c, size_t bytes)
{
	const uint8_t *p = take(c, bytes);
	size_t v = 0;

	for (size_t i = 0; p && i < bytes; i++)
		v = v << 8 | p[i];
	return v;
}

/* A vector with its length in front, as a cursor of its own. */
static struct cursor take_vector(struct cursor *c, size_t length_bytes)
{
	size_t n = take_number(c, length_bytes);
	const uint8_t *p = take(c, n);

	return (struct cursor){ .at = p, .left = p ? n : 0, .failed = !p };
}

static enum sni_result parse_server_name(struct cursor ext, struct sni *ret)
{
	struct cursor list = take_vector(&ext, 2), name;
	size_t type = take_number(&list, 1);

	name = take_vector(&list, 2);
	/* only one name was ever defined; a list of two is for confusing somebody */
	if (list.failed || name.failed || list.left || ext.left || type != NAME_TYPE_HOST)
		return SNI_BAD;
	if (host_parse((const char *)name.at, name.left, &ret->host, NULL) < 0)
		return SNI_BAD;
	return SNI_NAME;
}

static enum sni_result parse_extensions(struct cursor all, struct sni *ret)
{
	enum sni_result result = SNI_NONE;

	while (all.left > 0) {
		size_t type = take_number(&all, 2);
		struct cursor ext = take_vector(&all, 2);

		if (all.failed)
			return SNI_BAD;
		if (type == EXTENSION_ECH)
			ret->ech = true;
		if (type == EXTENSION_EARLY_DATA)
			ret->early_data = true;
		if (type != EXTENSION_SERVER_NAME)
			continue;
		if (result != SNI_NONE)
			return SNI_BAD;
		result = parse_server_name(ext, ret);
		if (result != SNI_NAME)
			return result;
	}
	return result;
}

static enum sni_result parse_hello(struct cursor c, struct sni *ret)
{
	struct cursor extensions;

	(void)take(&c, 2 + 32); /* version, random */
	(void)take_vector(&c, 1); /* session id */
	(void)take_vector(&c, 2); /* cipher suites */
	(void)take_vector(&c, 1); /* compression methods */
	if (c.failed)
		return SNI_BAD;
	if (c.left == 0)
		return SNI_NONE; /* extensions are optional before TLS 1.3 */
	extensions = take_vector(&c, 2);
	if (c.failed || c.left)
		return SNI_BAD;
	return parse_extensions(extensions, ret);
}

/*
 * The version of a record is to be ignored, and there are servers that do so below 16. What has
 * another than 3 may as well be another protocol: it is TLS (SNI_NAME) if it goes on as a hello or
 * a warning would.
 */
static enum sni_result check_odd_version(const uint8_t *data, size_t len)
{
	size_t n;

	if (data[1] >= 16 || (data[0] != TLS_RECORD_HANDSHAKE && data[0] != RECORD_ALERT))
		return SNI_NOT_TLS;
	if (len <= TLS_RECORD_HEAD)
		return SNI_MORE;
	n = (size_t)data[3] << 8 | data[4];
	if (data[0] == RECORD_ALERT ? n != 2 : n == 0)
		return SNI_NOT_TLS;
	return data[5] == 1 ? SNI_NAME : SNI_NOT_TLS; /* of a warning, of a hello */
}

/* The record that data begins with: SNI_NAME and the length of its content, or the result. */
static enum sni_result parse_record(const uint8_t *data, size_t len, size_t *ret)
{
	enum sni_result r = SNI_NAME;
	size_t n;

	if (len > 0 && (data[0] < RECORD_FIRST || data[0] > RECORD_LAST))
		return SNI_NOT_TLS;
	if (len > 1 && data[1] != 3)
		r = check_odd_version(data, len);
	if (r != SNI_NAME)
		return r;
	if (len < TLS_RECORD_HEAD)
		return SNI_MORE;
	/* servers pass over a warning and read the hello behind it: so it is TLS, and no hello */
	if (data[0] != TLS_RECORD_HANDSHAKE)
		return SNI_BAD;
	n = (size_t)data[3] << 8 | data[4];
	*ret = n;
	return n == 0 || n > RECORD_MAX ? SNI_BAD : SNI_NAME;
}

/* Length of the handshake message, as far as its head is there; 0 = it is no ClientHello. */
static size_t message_len(const uint8_t *message, size_t have)
{
	size_t n = TLS_MESSAGE_HEAD;

	if (message[0] != TLS_CLIENT_HELLO)
		return 0;
	if (have >= TLS_MESSAGE_HEAD)
		n += (size_t)message[1] << 16 | (size_t)message[2] << 8 | message[3];
	return n <= SNI_MESSAGE_MAX ? n : 0;
}

/*
 * Join the records at data into message until it is whole. SNI_NAME stands for
 * "whole"; anything else is the result.
 */
static enum sni_result join_records(const uint8_t *data, size_t len, uint8_t *message,
				    size_t *ret_len)
{
	size_t have = 0, want = TLS_MESSAGE_HEAD;

	while (have < want) {
		size_t n = 0, part;
		enum sni_result r = parse_record(data, len, &n);

		if (r != SNI_NAME)
			return r == SNI_NOT_TLS && have > 0 ? SNI_BAD : r;
		part = n < len - TLS_RECORD_HEAD ? n : len - TLS_RECORD_HEAD;
		if (part == 0)
			return SNI_MORE;
		if (have + part > SNI_MESSAGE_MAX)
			return SNI_BAD;
		memcpy(message + have, data + TLS_RECORD_HEAD, part);
		have += part;
		want = message_len(message, have);
		if (want == 0)
			return SNI_BAD;
		if (have < want && part < n)
			return SNI_MORE;
		data += TLS_RECORD_HEAD + part;
		len -= TLS_RECORD_HEAD + part;
	}
	*ret_len = want;
	return SNI_NAME;
}

enum sni_result sni_parse_message(const uint8_t *message, size_t len, struct sni *ret)
{
	struct cursor c = { .at = message, .left = len };
	struct sni sni = { .ech = false };
	enum sni_result r;

	(void)take(&c, TLS_MESSAGE_HEAD);
	r = parse_hello(c, &sni);
	*ret = sni;
	return r;
}

enum sni_result sni_parse(const uint8_t *data, size_t len, struct sni *ret)
{
	uint8_t message[SNI_MESSAGE_MAX];
	size_t n = 0;
	enum sni_result r = join_records(data, len, message, &n);

	return r == SNI_NAME ? sni_parse_message(message, n, ret) : r;
}

const char *sni_result_text(enum sni_result r)
{
	switch (r) {
	case SNI_MORE:
		return "the TLS ClientHello did not come whole in time";
	case SNI_NAME:
		return "the TLS ClientHello names another server";
	case SNI_NONE:
		return "the TLS ClientHello names no server";
	case SNI_NOT_TLS:
		return "not TLS, on a port that is for TLS";
	case SNI_BAD:
		return "the TLS ClientHello is malformed";
	}
	return "";
}
