/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP heads, authorities and chunked framing: what must not pass, and every prefix of what does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "proxy/http.h"

/* As the program does it: find the end, then parse. > 0, 0 or -errno. */
static int request(const char *text, size_t len, struct http_head *ret)
{
	size_t scanned = 0;
	int n = http_head_end(text, len, &scanned, NULL), r;

	if (n <= 0)
		return n;
	r = http_parse_request(text, (size_t)n, ret, NULL);
	return r < 0 ? r : n;
}

#define REQUEST(text, head) request((text), sizeof(text) - 1, (head))
#define LINE "POST http://a.test/ HTTP/1.1\r\nHost: a.test\r\n"

static void test_bad_requests(void **state UNUSED)
{
	static const struct {
		const char *text;
		size_t len;
	} cases[] = {
#define CASE(t) { t, sizeof(t) - 1 }
		/* two ends of the body */
		CASE(LINE "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n"),
		CASE(LINE "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n"),
		CASE(LINE "Content-Length: 3\r\nContent-Length: 3\r\n\r\n"),
		CASE(LINE "content-length: 3\r\nCONTENT-LENGTH: 4\r\n\r\n"),
		CASE(LINE "Content-Length: 3, 3\r\n\r\n"),
		CASE(LINE "Content-Length: +3\r\n\r\n"),
		CASE(LINE "Content-Length: -3\r\n\r\n"),
		CASE(LINE "Content-Length: 0x3\r\n\r\n"),
		CASE(LINE "Content-Length: 3 3\r\n\r\n"),
		CASE(LINE "Content-Length:\r\n\r\n"),
		CASE(LINE "Content-Length: 99999999999999999999\r\n\r\n"),
		CASE(LINE "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n"),
		CASE(LINE "Transfer-Encoding: chunked, identity\r\n\r\n"),
		CASE(LINE "Transfer-Encoding: xchunked\r\n\r\n"),
		CASE(LINE "Transfer-Encoding:\vchunked\r\n\r\n"),
		CASE("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"),
		/* two readings of the lines */
		CASE(LINE "Content-Length : 3\r\n\r\n"),
		CASE(LINE "X: a\r\n b\r\n\r\n"),
		CASE(LINE "X: a\r\n\tContent-Length: 3\r\n\r\n"),
		CASE(LINE ": empty\r\n\r\n"),
		CASE(LINE "no colon\r\n\r\n"),
		CASE(LINE "X: a\rY: b\r\n\r\n"),
		CASE(LINE "X: a\nY: b\r\n\r\n"),
		CASE("GET / HTTP/1.1\nHost: a\n\n"),
		CASE(LINE "X: \0\r\n\r\n"),
		CASE(LINE "X\0: a\r\n\r\n"),
		CASE(LINE "X(y): a\r\n\r\n"),
		CASE(LINE "X: \x7f\r\n\r\n"),
		CASE("\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"),
		CASE(" GET / HTTP/1.1\r\nHost: a\r\n\r\n"),
		/* two recipients */
		CASE(LINE "Host: a.test\r\n\r\n"),
		CASE("GET / HTTP/1.1\r\n\r\n"),
		CASE(LINE "Connection: Host\r\n\r\n"),
		CASE(LINE "Connection: close, Content-Length\r\n\r\n"),
		CASE(LINE "Connection: transfer-encoding\r\n\r\n"),
		/* request lines */
		CASE("GET / HTTP/1.2\r\nHost: a\r\n\r\n"),
		CASE("GET / HTTP/2.0\r\nHost: a\r\n\r\n"),
		CASE("GET / http/1.1\r\nHost: a\r\n\r\n"),
		CASE("GET /\r\nHost: a\r\n\r\n"),
		CASE("GET  / HTTP/1.1\r\nHost: a\r\n\r\n"),
		CASE("GET /  HTTP/1.1\r\nHost: a\r\n\r\n"),
		CASE("GET\t/ HTTP/1.1\r\nHost: a\r\n\r\n"),
		CASE("GET /a b HTTP/1.1\r\nHost: a\r\n\r\n"),
		CASE("GET /#f HTTP/1.1\r\nHost: a\r\n\r\n"),
		CASE("G(T / HTTP/1.1\r\nHost: a\r\n\r\n"),
		CASE(" / HTTP/1.1\r\nHost: a\r\n\r\n"),
		CASE("GET / HTTP/1.1 \r\nHost: a\r\n\r\n"),
#undef CASE
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct http_head head = { .status = 77 };

		if (request(cases[i].text, cases[i].len, &head) != -EINVAL)
			fail_msg("passed: %s", cases[i].text);
		assert_int_equal(head.status, 77); /* untouched on failure */
	}
}

static void test_a_read_is_never_a_message(void **state UNUSED)
{
	static const char text[] =
		"POST http://a.test/x?y HTTP/1.1\r\nhOST:a.test\r\nX-Empty:\r\n"
		"Connection: keep-alive, X-Hop\r\nX-Hop: 1\r\nContent-Length: \t12 \r\n\r\nbody";
	const size_t head_len = sizeof(text) - 1 - 4;
	struct http_head head;
	size_t scanned = 0;

	for (size_t n = 0; n < head_len; n++) {
		assert_int_equal(request(text, n, &head), 0);
		assert_int_equal(http_head_end(text, n, &scanned, NULL), 0);
		assert_int_equal(scanned, n);
	}
	assert_int_equal(http_head_end(text, sizeof(text) - 1, &scanned, NULL), head_len);
	assert_int_equal(REQUEST(text, &head), head_len);
	assert_int_equal(head.body, HTTP_BODY_LENGTH);
	assert_int_equal(head.length, 12);
	assert_true(span_is(head.method, "post") && span_is(head.host, "a.test"));
	assert_false(head.close);
	assert_true(http_is_hop_by_hop(&head, (struct span){ "x-hop", 5 }));
	assert_true(http_is_hop_by_hop(&head, (struct span){ "Proxy-Connection", 16 }));
	assert_false(http_is_hop_by_hop(&head, (struct span){ "X-Empty", 7 }));
}

static void test_limits(void **state UNUSED)
{
	_cleanup_buf_ struct buf b = BUF_INIT(2 * HTTP_HEAD_MAX);
	struct http_head head;
	size_t scanned = 0;

	buf_puts(&b, LINE "X: ");
	while (b.len < HTTP_HEAD_MAX)
		buf_putc(&b, 'a');
	assert_int_equal(http_head_end(b.data, b.len, &scanned, NULL), -E2BIG);
	buf_done(&b);
	b = (struct buf)BUF_INIT(2 * HTTP_HEAD_MAX);
	buf_puts(&b, LINE);
	for (int i = 1; i < HTTP_FIELDS_MAX; i++)
		buf_puts(&b, "a:\r\n");
	buf_puts(&b, "\r\n");
	assert_true(request(b.data, b.len, &head) > 0);
	b.len -= 2;
	buf_puts(&b, "b:\r\n\r\n");
	assert_int_equal(request(b.data, b.len, &head), -EINVAL);
}

static void test_connection_and_upgrade(void **state UNUSED)
{
	static const char *const refused[] = {
		"h2c", "H2C",    "h2",       "TLS/1.0", "",
		"a b", "tcp, x", "HTTP/2.0", "a;b=c",   "abcdefghijklmnopqrstuvwxyz0123456"
	};
	struct http_head head;

	assert_true(REQUEST("GET / HTTP/1.0\r\n\r\n", &head) > 0 && head.close);
	assert_true(REQUEST(LINE "Connection: foo,close\r\n\r\n", &head) > 0 && head.close);
	assert_true(REQUEST(LINE "Connection: ,upgrade,\r\nUpgrade: WebSocket\r\n\r\n", &head) > 0);
	assert_true(span_is(head.upgrade, "websocket"));
	assert_true(REQUEST(LINE "Upgrade: websocket\r\n\r\n", &head) > 0 && !head.upgrade.ptr);
	assert_true(REQUEST(LINE "Connection: upgrade\r\nUpgrade: h2c\r\n\r\n", &head) > 0);
	assert_null(head.upgrade.ptr);
	/* others may be changed to as well, but not what has names of its own inside */
	assert_true(REQUEST(LINE "Connection: upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n", &head) > 0);
	assert_true(span_is(head.upgrade, "spdy/3.1"));
	for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
		char text[256];

		(void)snprintf(text, sizeof(text),
			       LINE "Connection: upgrade\r\nUpgrade: %s\r\n\r\n", refused[i]);
		assert_true(request(text, strlen(text), &head) > 0 && !head.upgrade.ptr);
	}
	assert_true(REQUEST(LINE "Content-Length: 0\r\n\r\n", &head) > 0);
	assert_int_equal(head.body, HTTP_BODY_NONE);
}

static void test_authorities(void **state UNUSED)
{
	static const struct {
		const char *text, *host; /* host NULL = refused */
		uint16_t default_port, port;
	} cases[] = {
		{ "A.Test", "a.test", 80, 80 },
		{ "a.test.:8080", "a.test", 80, 8080 },
		{ "[::1]:443", "::1", 0, 443 },
		{ "[::ffff:127.0.0.1]", "127.0.0.1", 80, 80 },
		{ "0x7f.1:1", "127.0.0.1", 80, 1 },
		{ "a.test", NULL, 0, 0 },
		{ "a.test:", NULL, 80, 0 },
		{ "a.test:0", NULL, 80, 0 },
		{ "a.test:080", NULL, 80, 0 },
		{ "a.test:65536", NULL, 80, 0 },
		{ "a.test:80:80", NULL, 80, 0 },
		{ "a.test:+80", NULL, 80, 0 },
		{ "a.test:80 ", NULL, 80, 0 },
		{ "user@a.test", NULL, 80, 0 },
		{ "user:x@a.test:80", NULL, 80, 0 },
		{ "a.test\\@b.test", NULL, 80, 0 },
		{ "a.test/b", NULL, 80, 0 },
		{ "a%2etest", NULL, 80, 0 },
		{ "::1", NULL, 80, 0 },
		{ "::1:443", NULL, 80, 0 },
		{ "[::1", NULL, 80, 0 },
		{ "[::1]x:80", NULL, 80, 0 },
		{ "[fe80::1%eth0]:80", NULL, 80, 0 },
		{ "[a.test]:80", NULL, 80, 0 },
		{ "", NULL, 80, 0 },
		{ ":80", NULL, 80, 0 },
		{ "a..test", NULL, 80, 0 },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct host host = { .name = "untouched" };
		uint16_t port = 7;
		int r = http_parse_authority((struct span){ cases[i].text, strlen(cases[i].text) },
					     cases[i].default_port, &host, &port, NULL);

		if (cases[i].host ? r != 0 : r != -EINVAL)
			fail_msg("%s: %d", cases[i].text, r);
		assert_string_equal(host.name, cases[i].host ? cases[i].host : "untouched");
		assert_int_equal(port, cases[i].host ? cases[i].port : 7);
	}
	/* a NUL ends no name */
	assert_int_equal(http_parse_authority((struct span){ "a.test\0.evil", 12 }, 80,
					      &(struct host){ 0 }, &(uint16_t){ 0 }, NULL),
			 -EINVAL);
}

static void test_absolute_form(void **state UNUSED)
{
	static const struct {
		const char *target, *authority, *path;
	} cases[] = {
		{ "http://a.test/x?y", "a.test", "/x?y" },
		{ "HTTP://a.test", "a.test", "" },
		{ "http://a.test?q=/", "a.test", "?q=/" },
		{ "http:///x", "", "/x" },
		{ "https://a.test/", NULL, NULL },
		{ "http:/a.test/", NULL, NULL },
		{ "/", NULL, NULL },
		{ "*", NULL, NULL },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct span authority, path;
		int r = http_split_absolute(
			(struct span){ cases[i].target, strlen(cases[i].target) }, &authority,
			&path, NULL);

		assert_int_equal(r, cases[i].path ? 0 : -EINVAL);
		if (r < 0)
			continue;
		assert_true(span_is(authority, cases[i].authority));
		assert_true(span_is(path, cases[i].path));
	}
}

static void test_responses(void **state UNUSED)
{
	static const struct {
		const char *text;
		bool to_head;
		int body; /* -1 = refused */
	} cases[] = {
		{ "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", false, HTTP_BODY_LENGTH },
		{ "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", true, HTTP_BODY_NONE },
		{ "HTTP/1.1 200\r\n\r\n", false, HTTP_BODY_TO_EOF },
		{ "HTTP/1.1 200 \r\nTransfer-Encoding: CHUNKED\r\n\r\n", false, HTTP_BODY_CHUNKED },
		{ "HTTP/1.1 204 No\r\nContent-Length: 5\r\n\r\n", false, HTTP_BODY_NONE },
		{ "HTTP/1.1 304 No\r\nContent-Length: 5\r\n\r\n", false, HTTP_BODY_NONE },
		{ "HTTP/1.1 100 Go\r\n\r\n", false, HTTP_BODY_NONE },
		{ "HTTP/1.1 2000 OK\r\n\r\n", false, -1 },
		{ "HTTP/1.1 20x OK\r\n\r\n", false, -1 },
		{ "HTTP/1.1 099 OK\r\n\r\n", false, -1 },
		{ "HTTP/1.1  200 OK\r\n\r\n", false, -1 },
		{ "HTTP/3.0 200 OK\r\n\r\n", false, -1 },
		{ "HTTP/1.1 200 \x01\r\n\r\n", false, -1 },
		{ "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
		  false, -1 },
		{ "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", false, -1 },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		size_t scanned = 0, len = strlen(cases[i].text);
		struct http_head head;
		int r;

		assert_int_equal(http_head_end(cases[i].text, len, &scanned, NULL), len);
		r = http_parse_response(cases[i].text, len, cases[i].to_head, &head, NULL);
		if (r == 0 ? cases[i].body != (int)head.body : cases[i].body != -1)
			fail_msg("%s", cases[i].text);
	}
}

/* Bytes of text that are body, fed in pieces of `piece`; -EINVAL when refused. */
static ssize_t feed(const char *text, size_t len, size_t piece)
{
	struct http_chunked c = { 0 };
	size_t at = 0;

	while (at < len && c.state != CHUNK_DONE) {
		size_t n = len - at < piece ? len - at : piece;
		ssize_t r = http_chunked_feed(&c, text + at, n);

		if (r < 0)
			return r;
		at += (size_t)r;
		assert_true((size_t)r == n || c.state == CHUNK_DONE);
	}
	return c.state == CHUNK_DONE ? (ssize_t)at : -EAGAIN;
}

static void test_chunked(void **state UNUSED)
{
	static const struct {
		const char *text;
		ssize_t body; /* length, -EINVAL, or -EAGAIN: not yet at its end */
	} cases[] = {
		{ "0\r\n\r\nGET", 5 },
		{ "3\r\nabc\r\n0\r\n\r\n", 13 },
		{ "0000000A\r\n0123456789\r\n0\r\n\r\nmore", 27 },
		{ "1;a=b;c=\"d\"\r\nx\r\n0;z\r\nTrailer: 1\r\nY: z\r\n\r\nmore", 41 },
		{ "3\r\nabc\r\n", -EAGAIN },
		{ "0\r\n", -EAGAIN },
		{ "ffffffffffffffff\r\n", -EINVAL }, /* 16 digits: too many */
		{ "fffffffffffffff\r\n", -EAGAIN },
		{ "\r\n", -EINVAL },
		{ ";x\r\n", -EINVAL },
		{ "0x1\r\na\r\n", -EINVAL },
		{ " 1\r\na\r\n", -EINVAL },
		{ "1 \r\na\r\n", -EINVAL },
		{ "-1\r\n", -EINVAL },
		{ "1\na\n0\n\n", -EINVAL },
		{ "1\r\nab\r\n", -EINVAL },
		{ "1\r\na0\r\n", -EINVAL },
		{ "1\r\na\n0\r\n\r\n", -EINVAL },
		{ "1;a\nb\r\nx", -EINVAL },
		{ "1\r\ra", -EINVAL },
		{ "0\r\nX: a\nY: b\r\n\r\n", -EINVAL },
		{ "0\r\n\rX", -EINVAL },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		for (size_t piece = 1; piece < 48; piece++) {
			ssize_t r = feed(cases[i].text, strlen(cases[i].text), piece);

			if (r != cases[i].body)
				fail_msg("%s in pieces of %zu: %zd", cases[i].text, piece, r);
		}
	}
	/* every proper prefix of a body is "not yet" */
	for (size_t n = 0; n < 41; n++)
		assert_int_equal(feed(cases[3].text, n, 5), -EAGAIN);
}

static void test_chunked_limits(void **state UNUSED)
{
	struct http_chunked c = { 0 };
	char line[HTTP_TRAILER_MAX + 1];

	memset(line, 'x', sizeof(line));
	assert_int_equal(http_chunked_feed(&c, "1;", 2), 2);
	assert_int_equal(http_chunked_feed(&c, line, HTTP_CHUNK_LINE_MAX), HTTP_CHUNK_LINE_MAX);
	assert_int_equal(http_chunked_feed(&c, line, 1), -EINVAL);
	c = (struct http_chunked){ 0 };
	assert_int_equal(http_chunked_feed(&c, "0\r\n", 3), 3);
	assert_int_equal(http_chunked_feed(&c, line, sizeof(line)), -EINVAL);
}

static void test_sniff(void **state UNUSED)
{
	static const struct {
		const char *text;
		enum http_sniffed is;
	} cases[] = {
		{ "", HTTP_SNIFF_NOTHING },
		{ " \t\r\n", HTTP_SNIFF_NOTHING },
		{ "GET", HTTP_SNIFF_WORD },
		{ "\r\nGET", HTTP_SNIFF_WORD },
		{ "GET ", HTTP_SNIFF_LINE },
		{ "GET /http/ HTTP", HTTP_SNIFF_LINE },
		{ "GET / HTTP/", HTTP_SNIFF_YES },
		{ "GET / HTTP/1.1\r\nHost: a\r\n", HTTP_SNIFF_YES },
		{ "\n \rx  \xff\t\thttp/9", HTTP_SNIFF_YES },
		{ "GET HTTP/", HTTP_SNIFF_YES },
		{ "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", HTTP_SNIFF_YES },
		{ "PRI * HTTP/1.1", HTTP_SNIFF_YES },
		{ " PRI * HTTP/2.0\r\n", HTTP_SNIFF_YES },
		{ "PING\r\nGET / HTTP/1.1\r\n", HTTP_SNIFF_NO },
		{ "PING\nGET / HTTP/1.1\r\n", HTTP_SNIFF_NO },
		{ "GET /\r\n", HTTP_SNIFF_FIELDS },
		{ "GET /\r\nHost: b\r\n", HTTP_SNIFF_YES },
		{ "GET x\nA: b\n \thOsT \t: b\n", HTTP_SNIFF_YES },
		{ "GET / X\r\nA: b\rHost: b\r\n", HTTP_SNIFF_YES },
		{ "OPTIONS * RTSP/1.1\r\n\r\nGET / HTTP/1.1\r\nHost:", HTTP_SNIFF_YES },
		{ "P x X\nContent-Length: 6\n\nPING\nGET / HTTP/1.1\nHost:", HTTP_SNIFF_YES },
		{ "P x X\nContent-Length: 1\n\nxGET http://b/ HTTP/", HTTP_SNIFF_YES },
		{ "P x X\nContent-Length: 1\n\nxGET /a HTTP/1.0\n\n", HTTP_SNIFF_FIELDS },
		{ "GET http://b/\r\n", HTTP_SNIFF_YES },
		{ "GET a:/:://b/\r\n", HTTP_SNIFF_YES },
		{ "get http://b/\r\n", HTTP_SNIFF_FIELDS },
		{ "get http://b/\r\nHost:", HTTP_SNIFF_YES },
		{ "get http://b/ HTTP/", HTTP_SNIFF_YES },
		{ "set hosts 0 0 5\r\nhosts\r\nGhost: a\r\nhost a:\r\n", HTTP_SNIFF_FIELDS },
		{ "SETUP sip:b SIP/2.0\r\nVia: x\r\n", HTTP_SNIFF_FIELDS },
		{ "\x1cGET /\xa0HTTP/1.1\r\n", HTTP_SNIFF_YES },
		{ "GET\x85/ HTTP/1.1\r\n", HTTP_SNIFF_YES },
		{ "GET /\1", HTTP_SNIFF_LINE },
		{ "GET /\1 HTTP/1.1\r\n", HTTP_SNIFF_YES },
		{ "GET /\x7f\1\x80 HTTP/1.1\r\n", HTTP_SNIFF_YES },
		{ "G\1T / HTTP/1.1\r\n", HTTP_SNIFF_YES },
		{ "G\xc9T / HTTP/1.1\r\n", HTTP_SNIFF_YES },
		{ "G{T / HTTP/1.1\r\n", HTTP_SNIFF_NO },
		{ "\1GET / HTTP/1.1\r\n", HTTP_SNIFF_NO },
		{ "{GET / HTTP/1.1\r\n", HTTP_SNIFF_NO },
		{ "\x16\3\1", HTTP_SNIFF_NO },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		for (size_t piece = 1; piece < 8; piece++) {
			struct http_sniff s = { .is = HTTP_SNIFF_NOTHING };
			size_t len = strlen(cases[i].text);

			for (size_t at = 0; at < len; at += piece)
				(void)http_sniff_feed(&s, cases[i].text + at,
						      len - at < piece ? len - at : piece);
			if (s.is != cases[i].is)
				fail_msg("%s: %d", cases[i].text, (int)s.is);
		}
	}
}

/* Where the server has spoken it can only be HTTP/2. */
static void test_sniff_server_first(void **state UNUSED)
{
	static const struct {
		const char *text;
		enum http_sniffed is;
	} cases[] = {
		{ "", HTTP_SNIFF_NOTHING },
		{ "PRI", HTTP_SNIFF_WORD },
		{ "PRI * HTTP", HTTP_SNIFF_LINE },
		{ "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", HTTP_SNIFF_YES },
		{ " PRI * HTTP/2.0\r\n", HTTP_SNIFF_NO },
		{ "PRI /", HTTP_SNIFF_NO },
		{ "EHLO web.test\r\n", HTTP_SNIFF_NO },
		{ "GET / HTTP/1.1\r\n", HTTP_SNIFF_NO },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct http_sniff s = { .server_first = true };

		for (const char *c = cases[i].text; *c; c++)
			(void)http_sniff_feed(&s, c, 1);
		assert_int_equal(s.is, cases[i].is);
	}
}

static void test_preface(void **state UNUSED)
{
	static const char whole[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
	size_t scanned = 0;
	int n = http_head_end(whole, sizeof(whole) - 1, &scanned, NULL);

	assert_true(n > 0 && http_is_preface(whole, (size_t)n));
	assert_false(http_is_preface(whole, (size_t)n - 1));
	assert_false(http_is_preface("PRI * HTTP/2.1\r\n\r\n", (size_t)n));
}

static void test_sniff_limits(void **state UNUSED)
{
	struct http_sniff s = { .is = HTTP_SNIFF_NOTHING };

	for (size_t i = 0; i < 100000; i++)
		assert_int_equal(http_sniff_feed(&s, "\r\n", 2), HTTP_SNIFF_NOTHING);
	for (size_t i = 0; i < 100000; i++)
		assert_int_equal(http_sniff_feed(&s, "A", 1), HTTP_SNIFF_WORD);
	for (size_t i = 0; i < 100000; i++)
		assert_int_equal(http_sniff_feed(&s, " /", 2), HTTP_SNIFF_LINE);
	assert_int_equal(http_sniff_feed(&s, " HTTP/1", 7), HTTP_SNIFF_YES);
	s = (struct http_sniff){ .is = HTTP_SNIFF_NOTHING };
	assert_int_equal(http_sniff_feed(&s, "A\0 / HTTP/1", 12), HTTP_SNIFF_YES);
	assert_true(s.odd); /* nobody waits for the end of such a line */
	s = (struct http_sniff){ .is = HTTP_SNIFF_NOTHING };
	assert_int_equal(http_sniff_feed(&s, "0032git-upload-pack /a\0host=b", 30),
			 HTTP_SNIFF_LINE);
	assert_true(s.odd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bad_requests),
		cmocka_unit_test(test_a_read_is_never_a_message),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_connection_and_upgrade),
		cmocka_unit_test(test_authorities),
		cmocka_unit_test(test_absolute_form),
		cmocka_unit_test(test_responses),
		cmocka_unit_test(test_chunked),
		cmocka_unit_test(test_chunked_limits),
		cmocka_unit_test(test_sniff),
		cmocka_unit_test(test_sniff_server_first),
		cmocka_unit_test(test_preface),
		cmocka_unit_test(test_sniff_limits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
