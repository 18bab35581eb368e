/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trust boundary: queries come from inside the sandbox. A name is taken apart
 * label by label; one with a dot, NUL or anything else inside a label that no
 * host name has gets NXDOMAIN and cannot be mistaken for another name.
 */
#include "proxy/dns.h"

#include <errno.h>
#include <string.h>

#include "base/text.h"

#define HEADER_LEN 12
#define CLASS_IN 1
#define NAME_WIRE_MAX 255

enum { FLAG_QR = 0x80, FLAG_OPCODE = 0x78, FLAG_RD = 0x01, FLAG_RA = 0x80 };

static uint16_t load16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

static void store16(uint16_t v, uint8_t *p)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

/*
 * The name at data as dotted text. Bytes on the wire, or 0 when it is cut off,
 * too long or compressed (nothing stands before a question to point at).
 */
static size_t parse_name(const uint8_t *data, size_t len, char text[NAME_WIRE_MAX + 1],
			 bool *ret_printable)
{
	size_t at = 0, n = 0;

	*ret_printable = true;
	while (at < len && at < NAME_WIRE_MAX) {
		size_t label = data[at++];

		if (label == 0) {
			text[n] = '\0';
			return at;
		}
		if (label > HOST_LABEL_MAX_LEN || label > len - at || at + label > NAME_WIRE_MAX)
			return 0;
		if (n > 0)
			text[n++] = '.';
		for (size_t i = 0; i < label; i++) {
			char c = (char)data[at + i];

			if (!ascii_alnum(c) && c != '-' && c != '_')
				*ret_printable = false;
			text[n++] = c;
		}
		at += label;
	}
	return 0;
}

/* 4.3.2.1.in-addr.arpa, or 32 nibbles under ip6.arpa: the address they stand for. */
static void parse_reverse(const char *name, struct host *ret)
{
	static const char arpa4[] = ".in-addr.arpa", arpa6[] = ".ip6.arpa";
	uint8_t addr[16] = { 0 };
	char forward[4 * 4 + 1] = "";
	size_t n = strlen(name);

	if (n == 63 + sizeof(arpa6) - 1 && strcmp(name + 63, arpa6) == 0) {
		for (size_t i = 0; i < 32; i++) {
			int v = ascii_hex(name[2 * i]);

			if (v < 0 || name[2 * i + 1] != '.')
				return;
			addr[15 - i / 2] |= (uint8_t)(i % 2 ? v << 4 : v);
		}
		host_from_addr(HOST_IPV6, addr, ret);
		return;
	}
	if (n < sizeof(arpa4) || n - (sizeof(arpa4) - 1) >= sizeof(forward) ||
	    strcmp(name + n - (sizeof(arpa4) - 1), arpa4) != 0)
		return;
	memcpy(forward, name, n - (sizeof(arpa4) - 1));
	if (host_parse(forward, strlen(forward), ret, NULL) < 0 || ret->kind != HOST_IPV4) {
		*ret = (struct host){ .kind = HOST_NAME };
		return;
	}
	for (size_t i = 0; i < 4; i++)
		addr[i] = ret->addr[3 - i];
	host_from_addr(HOST_IPV4, addr, ret);
}

int dns_parse(const uint8_t *data, size_t len, struct dns_query *ret)
{
	struct dns_query q = { .reverse = { .kind = HOST_NAME } };
	char text[NAME_WIRE_MAX + 1];
	size_t n;

	if (len < HEADER_LEN || (data[2] & FLAG_QR))
		return -EINVAL;
	q.id = load16(data);
	q.recursion_desired = data[2] & FLAG_RD;
	*ret = q;
	if (data[2] & FLAG_OPCODE)
		return -EOPNOTSUPP;
	/* one question; no answers or authorities; at most the EDNS record behind it */
	if (load16(data + 4) != 1 || load16(data + 6) || load16(data + 8) || load16(data + 10) > 1)
		return -EBADMSG;
	n = parse_name(data + HEADER_LEN, len - HEADER_LEN, text, &q.printable);
	if (n == 0 || len - HEADER_LEN - n < 4)
		return -EBADMSG;
	q.type = load16(data + HEADER_LEN + n);
	if (load16(data + HEADER_LEN + n + 2) != CLASS_IN)
		return -EOPNOTSUPP;
	q.question_len = n + 4;
	q.has_host = q.printable && host_parse(text, strlen(text), &q.host, NULL) == 0;
	if (q.has_host && q.type == DNS_PTR)
		parse_reverse(q.host.name, &q.reverse);
	*ret = q;
	return 0;
}

/* Canonical text to wire form; it fits, being at most HOST_NAME_MAX_LEN long. */
static size_t put_name(const char *name, uint8_t *out)
{
	size_t n = 0;

	while (*name) {
		size_t label = strcspn(name, ".");

		out[n++] = (uint8_t)label;
		memcpy(out + n, name, label);
		n += label;
		name += label + (name[label] == '.');
	}
	out[n++] = 0;
	return n;
}

static size_t put_record(const struct dns_query *q, const struct dns_answer *a, uint8_t *out)
{
	size_t data_len;

	store16(0xc000 | HEADER_LEN, out); /* the name of the question */
	store16(q->type, out + 2);
	store16(CLASS_IN, out + 4);
	store16(0, out + 6);
	store16(DNS_TTL_S, out + 8);
	if (a->name) {
		data_len = put_name(a->name, out + 12);
	} else {
		data_len = q->type == DNS_A ? 4 : 16;
		memcpy(out + 12, a->address, data_len);
	}
	store16((uint16_t)data_len, out + 10);
	return 12 + data_len;
}

size_t dns_reply(const struct dns_query *q, const uint8_t *query, const struct dns_answer *answer,
		 uint8_t ret[DNS_REPLY_MAX])
{
	bool record = answer->address || answer->name;
	size_t n = HEADER_LEN;

	memset(ret, 0, HEADER_LEN);
	store16(q->id, ret);
	ret[2] = (uint8_t)(FLAG_QR | (q->recursion_desired ? FLAG_RD : 0));
	ret[3] = (uint8_t)(FLAG_RA | answer->rcode);
	store16(q->question_len > 0, ret + 4);
	store16(record, ret + 6);
	memcpy(ret + n, query + HEADER_LEN, q->question_len);
	n += q->question_len;
	if (record)
		n += put_record(q, answer, ret + n);
	return n;
}
