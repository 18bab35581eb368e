/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A TLS server may ask the client to say hello again (HelloRetryRequest), and that hello, too, is
 * in the clear. It must be like the first (RFC 8446, 4.1.2), but not every server compares: some
 * take the name of the second.
 *
 * Nothing is held back for it. To the server a hello is nothing until it is whole, and the bytes
 * that would make it whole do not go on when it asks for another name.
 *
 * When is there none to come? Behind a record of application data: what it holds is encrypted,
 * and no server lets a hello follow. Only where the hello offered early data, which a server that
 * wants another hello passes over, we go on. And behind a change of the cipher and then a
 * handshake record, which is encrypted in TLS 1.2; clients of TLS 1.3 change the cipher for show,
 * also before a second hello, so what begins like one is taken for it. An encrypted message
 * begins so once in 256 times, by chance; then application data comes before the length is there
 * that it seems to have.
 *
 * Records of other kinds are stepped over, whatever their version says: servers ignore it.
 */
#include "proxy/hellos.h"

#include <stdlib.h>
#include <string.h>

static bool is_like_first(const struct hellos *h)
{
	return h->result == h->first_result && (!h->sni.ech || h->first.ech) &&
	       (h->result != SNI_NAME || strcmp(h->sni.host.name, h->first.host.name) == 0);
}

static void on_hello(struct hellos *h)
{
	h->sni = (struct sni){ .ech = false };
	h->result = sni_parse_message((const uint8_t *)h->message.data, h->message.len, &h->sni);
	h->early_data = h->sni.early_data;
	if (!h->is_second) {
		h->first_result = h->result;
		h->first = h->sni;
	}
	h->is_second = true;
	if (!is_like_first(h))
		h->found = HELLOS_CHANGED;
}

/* Of the present message, as far as its head is there. */
static size_t message_size(const struct hellos *h)
{
	const uint8_t *m = (const uint8_t *)h->message.data;

	if (h->message.len < TLS_MESSAGE_HEAD)
		return TLS_MESSAGE_HEAD;
	return TLS_MESSAGE_HEAD + ((size_t)m[1] << 16 | (size_t)m[2] << 8 | m[3]);
}

/* More of the present message is there, its first byte at least. */
static void on_message(struct hellos *h)
{
	bool hello = h->message.data[0] == TLS_CLIENT_HELLO;
	size_t size = message_size(h);

	if (!hello && h->cipher_changed) {
		h->found = HELLOS_OVER;
		return;
	}
	if (h->message.len < TLS_MESSAGE_HEAD)
		return;
	if (!hello) {
		h->skip = (uint32_t)(size - TLS_MESSAGE_HEAD);
	} else if (h->message.len == size) {
		on_hello(h);
	} else if (h->message.len == SNI_MESSAGE_MAX) { /* longer than any real one */
		h->result = SNI_BAD;
		h->found = HELLOS_CHANGED;
	} else {
		return;
	}
	buf_done(&h->message);
}

/* How many bytes the present message may take at once. */
static size_t wanted(const struct hellos *h)
{
	size_t size = message_size(h);

	return (size < SNI_MESSAGE_MAX ? size : SNI_MESSAGE_MAX) - h->message.len;
}

static size_t take_handshake(struct hellos *h, const char *data, size_t len)
{
	size_t n = h->skip ? h->skip : wanted(h);

	n = n < len ? n : len;
	if (h->skip) {
		h->skip -= (uint32_t)n;
	} else {
		buf_append(&h->message, data, n);
		on_message(h);
	}
	return n;
}

static void on_head(struct hellos *h)
{
	h->n_head = 0;
	h->left = (uint16_t)(h->head[3] << 8 | h->head[4]);
	if (h->head[0] == TLS_RECORD_CIPHER)
		h->cipher_changed = true;
	if (h->head[0] == TLS_RECORD_DATA && !h->early_data)
		h->found = HELLOS_OVER;
}

enum hellos_found hellos_feed(struct hellos *h, const char *data, size_t len)
{
	while (len > 0 && h->found == HELLOS_NONE) {
		size_t n = 1;

		if (h->left == 0) {
			h->head[h->n_head++] = (uint8_t)*data;
			if (h->n_head == sizeof(h->head))
				on_head(h);
		} else {
			n = h->left < len ? h->left : len;
			if (h->head[0] == TLS_RECORD_HANDSHAKE)
				n = take_handshake(h, data, n);
			h->left = (uint16_t)(h->left - n);
		}
		data += n;
		len -= n;
	}
	return h->found;
}

struct hellos *hellos_new(void)
{
	struct hellos *h = malloc(sizeof(*h));

	if (!h)
		abort();
	*h = (struct hellos)HELLOS_INIT;
	return h;
}

void hellos_free(struct hellos *h)
{
	if (h)
		buf_done(&h->message);
	free(h);
}
