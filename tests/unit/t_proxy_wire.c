/* SPDX-License-Identifier: Apache-2.0 */
/* SOCKS, TLS ClientHello and DNS messages; the table of synthetic addresses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "proxy/dns.h"
#include "proxy/hellos.h"
#include "proxy/names.h"
#include "proxy/sni.h"
#include "proxy/socks.h"

#define BYTES(s) (const uint8_t *)(s), sizeof(s) - 1

/* --- SOCKS --- */

static void test_socks_greeting(void **state UNUSED)
{
	enum socks_method m;

	assert_int_equal(socks_parse_greeting(BYTES(""), &m), 0);
	assert_int_equal(socks_parse_greeting(BYTES("\x05"), &m), 0);
	assert_int_equal(socks_parse_greeting(BYTES("\x05\x02\x02"), &m), 0);
	assert_int_equal(socks_parse_greeting(BYTES("\x05\x02\x02\x00\x05"), &m), 4);
	assert_int_equal(m, SOCKS_NO_AUTH);
	assert_int_equal(socks_parse_greeting(BYTES("\x05\x01\x02"), &m), 3);
	assert_int_equal(m, SOCKS_PASSWORD);
	assert_int_equal(socks_parse_greeting(BYTES("\x05\x00"), &m), 2);
	assert_int_equal(m, SOCKS_NO_METHOD);
	assert_int_equal(socks_parse_greeting(BYTES("\x04\x01"), &m), -EPROTO);
	assert_int_equal(socks_parse_greeting(BYTES("GET"), &m), -EPROTO);
	assert_int_equal(socks_parse_password(BYTES("\x01\x02us")), 0);
	assert_int_equal(socks_parse_password(BYTES("\x01\x02us\x00x")), 5);
	assert_int_equal(socks_parse_password(BYTES("\x05\x01")), -EPROTO);
}

static void test_socks_requests(void **state UNUSED)
{
	static const struct {
		const char *data;
		size_t len;
		int result; /* of the whole; every proper prefix is 0 */
		enum socks_status problem;
		const char *host;
	} cases[] = {
#define CASE(d, ...) { d, sizeof(d) - 1, __VA_ARGS__ }
		CASE("\5\1\0\1\x7f\0\0\1\0\x50", 10, SOCKS_OK, "127.0.0.1"),
		CASE("\5\1\0\3\6A.test\1\xbb", 13, SOCKS_OK, "a.test"),
		CASE("\5\1\0\4\0\0\0\0\0\0\0\0\0\0\xff\xff\x7f\0\0\1\0\x50", 22, SOCKS_OK,
		     "127.0.0.1"),
		CASE("\5\1\0\3\0051.2.3\0\x50", 12, SOCKS_OK, "1.2.0.3"),
		CASE("\5\2\0\1\x7f\0\0\1\0\x50", 10, SOCKS_BAD_COMMAND, "127.0.0.1"),
		CASE("\5\1\0\3\6a.test\0\0", 13, SOCKS_FAILURE, "a.test"),
		CASE("\5\1\0\3\0\0\x50", -EINVAL, SOCKS_OK, NULL),
		CASE("\5\1\0\3\6a\0test\0\x50", -EINVAL, SOCKS_OK, NULL),
		CASE("\5\1\0\3\6a@test\0\x50", -EINVAL, SOCKS_OK, NULL),
		CASE("\5\1\0\3\6a test\0\x50", -EINVAL, SOCKS_OK, NULL),
		CASE("\5\1\0\3\6a..est\0\x50", -EINVAL, SOCKS_OK, NULL),
		CASE("\5\1\0\3\6[::1%1\0\x50", -EINVAL, SOCKS_OK, NULL),
#undef CASE
	};
	struct socks_request q;

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const uint8_t *data = (const uint8_t *)cases[i].data;

		for (size_t n = 0; n < cases[i].len; n++)
			assert_int_equal(socks_parse_request(data, n, &q, NULL), 0);
		assert_int_equal(socks_parse_request(data, cases[i].len, &q, NULL),
				 cases[i].result);
		if (cases[i].result > 0) {
			assert_int_equal(q.problem, cases[i].problem);
			assert_string_equal(q.host.name, cases[i].host);
		}
	}
	assert_int_equal(socks_parse_request(BYTES("\4\1\0"), &q, NULL), -EPROTO);
	assert_int_equal(socks_parse_request(BYTES("\5\1\1\1"), &q, NULL), -EPROTO);
	assert_int_equal(socks_parse_request(BYTES("\5\1\0\2"), &q, NULL), 4);
	assert_int_equal(q.problem, SOCKS_BAD_ADDRESS_TYPE);
}

/* --- TLS --- */

static void put16(struct buf *b, size_t v)
{
	buf_putc(b, (char)(v >> 8));
	buf_putc(b, (char)v);
}

static void put_extension(struct buf *b, unsigned type, const char *data, size_t len)
{
	put16(b, type);
	put16(b, len);
	buf_append(b, data, len);
}

static void put_server_name(struct buf *b, const char *name)
{
	struct buf ext = BUF_INIT(1024);
	size_t n = strlen(name);

	put16(&ext, n + 3);
	buf_putc(&ext, 0);
	put16(&ext, n);
	buf_append(&ext, name, n);
	put_extension(b, 0, ext.data, ext.len);
	buf_done(&ext);
}

/* A ClientHello with these extensions, cut into records of `record` bytes. */
static struct buf make_hello(const struct buf *extensions, size_t record)
{
	struct buf body = BUF_INIT(65536), message = BUF_INIT(65536), out = BUF_INIT(65536);

	buf_append(&body, "\3\3", 2);
	for (int i = 0; i < 32; i++)
		buf_putc(&body, (char)i);
	buf_append(&body, "\x04sess\0\4\x13\1\x13\2\1\0", 13);
	if (extensions) {
		put16(&body, extensions->len);
		buf_append(&body, buf_str(extensions), extensions->len);
	}
	buf_append(&message, "\1\0", 2);
	put16(&message, body.len);
	buf_append(&message, body.data, body.len);
	for (size_t at = 0; at < message.len; at += record) {
		size_t n = message.len - at < record ? message.len - at : record;

		buf_append(&out, "\x16\3\1", 3);
		put16(&out, n);
		buf_append(&out, message.data + at, n);
	}
	buf_done(&body);
	buf_done(&message);
	return out;
}

static enum sni_result parse(const struct buf *b, size_t n, struct sni *ret)
{
	/* a copy of the exact size, so that a read past it is seen by the sanitizer */
	uint8_t *copy = malloc(n ? n : 1);
	enum sni_result r;

	assert_non_null(copy);
	memcpy(copy, b->data, n);
	r = sni_parse(copy, n, ret);
	free(copy);
	return r;
}

static void test_sni_in_any_cut(void **state UNUSED)
{
	static const size_t records[] = { 1, 3, 7, 64, 16384 };
	_cleanup_buf_ struct buf ext = BUF_INIT(4096);

	put_extension(&ext, 43, "\2\3\4", 3);
	put_server_name(&ext, "WWW.Example.COM");
	put_extension(&ext, 0xfe0d, "grease", 6);
	for (size_t i = 0; i < ARRAY_LEN(records); i++) {
		_cleanup_buf_ struct buf hello = make_hello(&ext, records[i]);
		struct sni sni;

		for (size_t n = 0; n < hello.len; n++)
			assert_int_equal(parse(&hello, n, &sni), SNI_MORE);
		assert_int_equal(parse(&hello, hello.len, &sni), SNI_NAME);
		assert_string_equal(sni.host.name, "www.example.com");
		assert_true(sni.ech);
		hello.data[1] = 4; /* of the record */
		assert_int_equal(parse(&hello, hello.len, &sni), SNI_NAME);
		hello.data[1] = 3;
		buf_puts(&hello, "early data");
		assert_int_equal(parse(&hello, hello.len, &sni), SNI_NAME);
	}
}

static void expect_sni(struct buf *extensions, enum sni_result wanted)
{
	_cleanup_buf_ struct buf hello = make_hello(extensions, 16384);
	struct sni sni;

	assert_int_equal(parse(&hello, hello.len, &sni), wanted);
	if (extensions)
		buf_done(extensions);
}

static void test_sni_odd_hellos(void **state UNUSED)
{
	struct buf ext = BUF_INIT(8192);

	expect_sni(NULL, SNI_NONE);
	put_extension(&ext, 43, "\2\3\4", 3);
	expect_sni(&ext, SNI_NONE);
	put_server_name(&ext, "a.test");
	put_server_name(&ext, "b.test"); /* which one will the server take? */
	expect_sni(&ext, SNI_BAD);
	put_extension(&ext, 0, "\0\x12\0\0\6a.test\0\0\6b.test", 20); /* two in one list */
	expect_sni(&ext, SNI_BAD);
	put_extension(&ext, 0, "\0\x09\0\0\6a.test!", 12); /* more than the list says */
	expect_sni(&ext, SNI_BAD);
	put_extension(&ext, 0, "\0\x09\1\0\6a.test", 11); /* not a host name type */
	expect_sni(&ext, SNI_BAD);
	put_extension(&ext, 0, "", 0);
	expect_sni(&ext, SNI_BAD);
	put_server_name(&ext, "");
	expect_sni(&ext, SNI_BAD);
	put_server_name(&ext, "a test");
	expect_sni(&ext, SNI_BAD);
	put_extension(&ext, 0, "\0\x0a\0\0\7a\0.test", 12);
	expect_sni(&ext, SNI_BAD);
	buf_append(&ext, "\0", 1); /* half an extension */
	expect_sni(&ext, SNI_BAD);
}

static void test_sni_not_tls(void **state UNUSED)
{
	struct sni sni;

	assert_int_equal(sni_parse(BYTES("GET / HTTP/1.1\r\n"), &sni), SNI_NOT_TLS);
	assert_int_equal(sni_parse(BYTES("\x16\x10\1"), &sni), SNI_NOT_TLS);
	assert_int_equal(sni_parse(BYTES("\x80\x2e\1\0\2"), &sni), SNI_NOT_TLS); /* SSL 2 */
	assert_int_equal(sni_parse(BYTES("\x16"), &sni), SNI_MORE);
	assert_int_equal(sni_parse(BYTES("\x16\3\1\0\0"), &sni), SNI_BAD); /* empty record */
	assert_int_equal(sni_parse(BYTES("\x16\3\1\xff\xff"), &sni), SNI_BAD);
	assert_int_equal(sni_parse(BYTES("\x16\3\1\0\4\2\0\0\0"), &sni),
			 SNI_BAD); /* a ServerHello */
	assert_int_equal(sni_parse(BYTES("\x16\3\1\0\4\1\xff\xff\xff"), &sni), SNI_BAD); /* 16 MB */
	assert_int_equal(sni_parse(BYTES("\x16\3\1\0\2\1\0\x17\3\1\0\1x"), &sni), SNI_BAD);
	/* a warning in front, which servers pass over */
	assert_int_equal(sni_parse(BYTES("\x15"), &sni), SNI_MORE);
	assert_int_equal(sni_parse(BYTES("\x15\3\1\0"), &sni), SNI_MORE);
	assert_int_equal(sni_parse(BYTES("\x15\3\1\0\2\1\x5a\x16\3\1"), &sni), SNI_BAD);
	/* the version of a record is ignored by some, but not all that begins so is TLS */
	assert_int_equal(sni_parse(BYTES("\x16\0\0\0\2"), &sni), SNI_MORE);
	assert_int_equal(sni_parse(BYTES("\x16\0\0\0\2\2"), &sni), SNI_NOT_TLS);
	assert_int_equal(sni_parse(BYTES("\x16\0\0\0\0\1"), &sni), SNI_NOT_TLS);
	assert_int_equal(sni_parse(BYTES("\x15\4\1\0\2\1"), &sni), SNI_BAD);
	assert_int_equal(sni_parse(BYTES("\x15\4\1\0\x12\1"), &sni), SNI_NOT_TLS);
	assert_int_equal(sni_parse(BYTES("\x17\4\1\0\2\1"), &sni), SNI_NOT_TLS);
	assert_int_equal(sni_parse(BYTES("\x13\3\1\0\2"), &sni), SNI_NOT_TLS);
	assert_int_equal(sni_parse(BYTES("\x19\3\1\0\2"), &sni), SNI_NOT_TLS);
}

#define DUMMY_CIPHER "\x14\3\3\0\1\1"
#define WARNING "\x15\3\3\0\2\1\x5a"
#define DATA "\x17\3\3\0\3\1\2\3"
#define KEY_EXCHANGE "\x16\3\3\0\6\x10\0\0\2ab"

/* Adds a hello to b; extras: e = early data, h = an encrypted hello, r = in small records. */
static void put_hello(struct buf *b, const char *name, const char *extras)
{
	_cleanup_buf_ struct buf ext = BUF_INIT(1024);
	struct buf hello;

	put_extension(&ext, 43, "\2\3\4", 3);
	if (name)
		put_server_name(&ext, name);
	if (strchr(extras, 'e'))
		put_extension(&ext, 42, "", 0);
	if (strchr(extras, 'h'))
		put_extension(&ext, 0xfe0d, "grease", 6);
	hello = make_hello(&ext, strchr(extras, 'r') ? 3 : 16384);
	buf_append(b, hello.data, hello.len);
	buf_done(&hello);
}

/* In any pieces the same; and what is CHANGED is so with the byte that makes it whole, not after. */
static void expect_hellos(struct buf *bytes, enum hellos_found wanted)
{
	static const size_t pieces[] = { 1, 2, 5, 7, 100, 1 << 16 };

	for (size_t i = 0; i < ARRAY_LEN(pieces); i++) {
		struct hellos *h = hellos_new();

		for (size_t at = 0; at < bytes->len; at += pieces[i]) {
			size_t left = bytes->len - at;
			/* a copy of the exact size, so that a read past it is seen */
			size_t n = left < pieces[i] ? left : pieces[i];
			char *copy = malloc(n);

			assert_non_null(copy);
			memcpy(copy, bytes->data + at, n);
			(void)hellos_feed(h, copy, n);
			free(copy);
		}
		assert_int_equal(h->found, wanted);
		hellos_free(h);
	}
	buf_done(bytes);
}

#define ADD(b, s) buf_append(b, s, sizeof(s) - 1)

static void test_hellos_that_are_alike(void **state UNUSED)
{
	static const char *const extras[] = { "", "r", "e", "h", "er" };
	struct buf b = BUF_INIT(65536);

	put_hello(&b, "a.test", "");
	expect_hellos(&b, HELLOS_NONE);
	for (size_t i = 0; i < ARRAY_LEN(extras); i++) {
		put_hello(&b, "a.test", extras[i]);
		ADD(&b, DUMMY_CIPHER);
		put_hello(&b, "A.TEST", extras[i]);
		expect_hellos(&b, HELLOS_NONE);
	}
	put_hello(&b, NULL, "");
	put_hello(&b, NULL, "");
	ADD(&b, DUMMY_CIPHER DATA);
	expect_hellos(&b, HELLOS_OVER);
}

static void test_hellos_that_differ(void **state UNUSED)
{
	static const struct {
		const char *first, *extras, *between, *second, *more;
		size_t n_between;
	} cases[] = {
#define CASE(f, e, b, s, m) { f, e, b, s, m, sizeof(b) - 1 }
		CASE("a.test", "", "", "b.test", ""),
		CASE("a.test", "r", DUMMY_CIPHER, "b.test", "r"),
		CASE("a.test", "", DUMMY_CIPHER WARNING DUMMY_CIPHER, "b.test", ""),
		CASE("a.test", "", DUMMY_CIPHER, NULL, ""),
		CASE(NULL, "", DUMMY_CIPHER, "b.test", ""),
		CASE("a.test", "", "", "a.test", "h"), /* another may be inside */
		CASE("a.test", "e", DATA DATA DUMMY_CIPHER DATA, "b.test", "r"),
		CASE("a.test", "", KEY_EXCHANGE "\x16\3\3\0\4\x0f\0\0\0", "b.test", ""),
		CASE("a.test", "", "\x16\3\3\0\0\x16\5\5\0\0", "b.test", ""), /* empty ones */
		CASE("a.test", "", "\x63\0\0\0\2xy", "b.test", ""), /* of no known kind */
#undef CASE
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct buf b = BUF_INIT(65536);

		put_hello(&b, cases[i].first, cases[i].extras);
		buf_append(&b, cases[i].between, cases[i].n_between);
		put_hello(&b, cases[i].second, cases[i].more);
		expect_hellos(&b, HELLOS_CHANGED);
	}
}

static void test_hellos_are_cut_before_they_are_whole(void **state UNUSED)
{
	_cleanup_buf_ struct buf b = BUF_INIT(65536);
	struct hellos h = HELLOS_INIT;

	put_hello(&b, "a.test", "");
	ADD(&b, DUMMY_CIPHER);
	put_hello(&b, "b.test", "");
	assert_int_equal(hellos_feed(&h, b.data, b.len - 1), HELLOS_NONE);
	assert_int_equal(hellos_feed(&h, b.data + b.len - 1, 1), HELLOS_CHANGED);
	assert_int_equal(h.result, SNI_NAME);
	assert_string_equal(h.sni.host.name, "b.test");
	buf_done(&h.message);
}

/* One too long for us to keep is not waited for to its end. */
static void test_hellos_without_end(void **state UNUSED)
{
	struct buf b = BUF_INIT(65536);

	put_hello(&b, "a.test", "");
	ADD(&b, "\x16\3\3\x40\0\1\0\x3f\xff");
	while (b.len < 13000)
		buf_putc(&b, 3);
	expect_hellos(&b, HELLOS_CHANGED);
}

/* Behind these no hello in the clear is possible, and an encrypted one must not be guessed at. */
static void test_hellos_are_over(void **state UNUSED)
{
	struct buf b = BUF_INIT(65536);

	put_hello(&b, "a.test", "");
	ADD(&b, DATA);
	expect_hellos(&b, HELLOS_OVER);
	put_hello(&b, "a.test", "");
	ADD(&b, DUMMY_CIPHER "\x16\3\3\0\x28\xa7"); /* encrypted: TLS 1.2, resumed */
	expect_hellos(&b, HELLOS_OVER);
	put_hello(&b, "a.test", "");
	ADD(&b, KEY_EXCHANGE DUMMY_CIPHER "\x16\3\3\0\x28\0\0\0");
	expect_hellos(&b, HELLOS_OVER);
	put_hello(&b, "a.test", ""); /* by chance it begins as a hello does */
	ADD(&b, KEY_EXCHANGE DUMMY_CIPHER "\x16\3\3\0\x18\1\x9c\3\3aaaaaaaaaaaaaaaaaaaa" DATA);
	expect_hellos(&b, HELLOS_OVER);
	put_hello(&b, "a.test", "e"); /* early data, and the second hello offers none any more */
	ADD(&b, DATA DATA);
	put_hello(&b, "a.test", "");
	ADD(&b, DATA);
	expect_hellos(&b, HELLOS_OVER);
	put_hello(&b, "a.test", "e");
	ADD(&b, DATA DUMMY_CIPHER DATA);
	expect_hellos(&b, HELLOS_NONE);
}

/* --- DNS --- */

/* Header and question for a name in wire form (as a literal with its own lengths). */
static size_t make_query(uint8_t *out, const char *name, size_t len, unsigned type)
{
	static const uint8_t header[12] = { 0xab, 0xcd, 1, 0, 0, 1 };

	memcpy(out, header, 12);
	memcpy(out + 12, name, len);
	memcpy(out + 12 + len, (uint8_t[]){ (uint8_t)(type >> 8), (uint8_t)type, 0, 1 }, 4);
	return 12 + len + 4;
}

static void test_dns_names(void **state UNUSED)
{
	static const struct {
		const char *wire;
		size_t len;
		int result;
		const char *host; /* NULL = no host name */
	} cases[] = {
#define CASE(w, ...) { w, sizeof(w) - 1, __VA_ARGS__ }
		CASE("\1A\4test\0", 0, "a.test"),
		CASE("\6a.test\0", 0, NULL), /* a dot inside a label */
		CASE("\6a\0test\0", 0, NULL),
		CASE("\1a\4te t\0", 0, NULL),
		CASE("\0", 0, NULL),
		CASE("\1a\xc0\x0c", -EBADMSG, NULL), /* compression */
		CASE("\x40"
		     "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\0",
		     -EBADMSG, NULL),
		CASE("\5a\0", -EBADMSG, NULL),
#undef CASE
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		uint8_t data[512];
		struct dns_query q;
		size_t len = make_query(data, cases[i].wire, cases[i].len, DNS_A);

		for (size_t n = 0; n < len && cases[i].host; n++)
			assert_int_equal(dns_parse(data, n, &q), n < 12 ? -EINVAL : -EBADMSG);
		assert_int_equal(dns_parse(data, len, &q), cases[i].result);
		assert_int_equal(q.id, 0xabcd);
		if (cases[i].result == 0) {
			assert_int_equal(q.has_host, cases[i].host != NULL);
			if (cases[i].host)
				assert_string_equal(q.host.name, cases[i].host);
		}
	}
}

static void test_dns_headers(void **state UNUSED)
{
	struct dns_query q;
	uint8_t data[64];
	size_t len = make_query(data, "\1a\4test\0", 8, DNS_A);

	data[2] = 0x81; /* an answer: talking back would make a loop */
	assert_int_equal(dns_parse(data, len, &q), -EINVAL);
	data[2] = 5 << 3;
	assert_int_equal(dns_parse(data, len, &q), -EOPNOTSUPP);
	data[2] = 1;
	data[5] = 2;
	assert_int_equal(dns_parse(data, len, &q), -EBADMSG);
	data[5] = 1;
	data[7] = 1;
	assert_int_equal(dns_parse(data, len, &q), -EBADMSG);
	data[7] = 0;
	data[11] = 1; /* EDNS */
	assert_int_equal(dns_parse(data, len, &q), 0);
	data[len - 1] = 3; /* class CHAOS */
	assert_int_equal(dns_parse(data, len, &q), -EOPNOTSUPP);
}

static void test_dns_reverse(void **state UNUSED)
{
	static const char v6[] =
		"\1b\1a\0019\0018\0017\0016\0015\0014\0013\0012\0011\0010\1f\1e\1d\1c\1b\1a\0019"
		"\0018"
		"\0017\0016\0015\0014\0013\0012\0011\0010\0011\0010\1d\1f\3ip6\4arpa\0";
	struct dns_query q;
	uint8_t data[512];
	size_t len;

	len = make_query(data, "\0011\0012\00218\003198\7in-addr\4arpa\0", 25, DNS_PTR);
	assert_int_equal(dns_parse(data, len, &q), 0);
	assert_string_equal(q.reverse.name, "198.18.2.1");
	len = make_query(data, v6, sizeof(v6) - 1, DNS_PTR);
	assert_int_equal(dns_parse(data, len, &q), 0);
	assert_int_equal(q.reverse.kind, HOST_IPV6);
	assert_string_equal(q.reverse.name, "fd01:123:4567:89ab:cdef:123:4567:89ab");
	len = make_query(data, "\1x\7in-addr\4arpa\0", 16, DNS_PTR);
	assert_int_equal(dns_parse(data, len, &q), 0);
	assert_int_equal(q.reverse.kind, HOST_NAME);
}

static void test_dns_replies_fit(void **state UNUSED)
{
	uint8_t data[512], reply[DNS_REPLY_MAX];
	char longest[HOST_NAME_MAX_LEN + 1];
	struct dns_query q;
	size_t len = make_query(data, "\1A\4test\0", 8, DNS_A), n;

	assert_int_equal(dns_parse(data, len, &q), 0);
	n = dns_reply(&q, data, &(struct dns_answer){ .address = (const uint8_t *)"\x0a\1\2\3" },
		      reply);
	assert_int_equal(n, len + 16);
	assert_memory_equal(reply + 12, data + 12, len - 12); /* the question with its spelling */
	assert_memory_equal(reply + n - 4, "\x0a\1\2\3", 4);
	assert_int_equal(reply[7], 1);
	for (size_t i = 0; i < sizeof(longest); i++)
		longest[i] = i % 64 == 63 ? '.' : 'a';
	longest[HOST_NAME_MAX_LEN] = '\0';
	q.type = DNS_PTR;
	n = dns_reply(&q, data, &(struct dns_answer){ .name = longest }, reply);
	assert_int_equal(n, len + 12 + HOST_NAME_MAX_LEN + 2);
	assert_int_equal(reply[n - 1], 0);
}

/* --- names --- */

static void test_names(void **state UNUSED)
{
	struct names t = { 0 };
	struct host a;
	uint8_t v4[4], v6[16];
	uint32_t first;

	assert_int_equal(names_set_networks(&t, "10.0.0.0/33", "fd00::/96", NULL), -EINVAL);
	assert_int_equal(names_set_networks(&t, "10.0.0.0/8", "fd00::/64", NULL), -EINVAL);
	assert_int_equal(names_set_networks(&t, "a.test", "fd00::/96", NULL), -EINVAL);
	assert_int_equal(names_set_networks(&t, "198.18.0.0/15", "fd53:ab17::/96", NULL), 0);
	first = names_number(&t, "a.test");
	assert_int_equal(names_number(&t, "b.test"), first + 1);
	assert_int_equal(names_number(&t, "a.test"), first);
	names_address4(&t, first, v4);
	host_from_addr(HOST_IPV4, v4, &a);
	assert_string_equal(a.name, "198.18.0.1");
	assert_string_equal(names_find(&t, &a), "a.test");
	names_address6(&t, first + 1, v6);
	host_from_addr(HOST_IPV6, v6, &a);
	assert_string_equal(names_find(&t, &a), "b.test");
	assert_int_equal(host_parse("198.18.0.0", 10, &a, NULL), 0);
	assert_true(names_is_synthetic(&t, &a) && !names_find(&t, &a));
	assert_int_equal(host_parse("198.20.0.1", 10, &a, NULL), 0);
	assert_false(names_is_synthetic(&t, &a));
	/* the same networks keep the names, others forget them */
	assert_int_equal(names_set_networks(&t, "198.18.0.0/15", "fd53:ab17::/96", NULL), 0);
	assert_int_equal(names_number(&t, "b.test"), first + 1);
	assert_int_equal(names_set_networks(&t, "198.18.0.0/16", "fd53:ab17::/96", NULL), 0);
	assert_int_equal(names_number(&t, "b.test"), 0);
	names_done(&t);
}

/* A small network wraps; no address ever means two names. */
static void test_names_do_not_mix(void **state UNUSED)
{
	struct names t = { 0 };
	char name[32];

	assert_int_equal(names_set_networks(&t, "10.9.8.0/24", "fd00::/96", NULL), 0);
	for (unsigned i = 0; i < 1000; i++) {
		struct host a;
		uint8_t v4[4];
		uint32_t number;

		(void)snprintf(name, sizeof(name), "n%u.test", i);
		number = names_number(&t, name);
		names_address4(&t, number, v4);
		assert_true(v4[2] == 8 && v4[3] > 0 && v4[3] < 255);
		host_from_addr(HOST_IPV4, v4, &a);
		assert_string_equal(names_find(&t, &a), name);
	}
	names_done(&t);
	assert_int_equal(names_set_networks(&t, "198.18.0.0/15", "fd00::/96", NULL), 0);
	for (unsigned i = 0; i < 2 * NAMES_MAX; i++) {
		(void)snprintf(name, sizeof(name), "n%u.test", i);
		assert_int_equal(names_number(&t, name), i); /* not given out again */
	}
	names_done(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_socks_greeting),
		cmocka_unit_test(test_socks_requests),
		cmocka_unit_test(test_sni_in_any_cut),
		cmocka_unit_test(test_sni_odd_hellos),
		cmocka_unit_test(test_sni_not_tls),
		cmocka_unit_test(test_hellos_that_are_alike),
		cmocka_unit_test(test_hellos_that_differ),
		cmocka_unit_test(test_hellos_are_cut_before_they_are_whole),
		cmocka_unit_test(test_hellos_without_end),
		cmocka_unit_test(test_hellos_are_over),
		cmocka_unit_test(test_dns_names),
		cmocka_unit_test(test_dns_headers),
		cmocka_unit_test(test_dns_reverse),
		cmocka_unit_test(test_dns_replies_fit),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_names_do_not_mix),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
