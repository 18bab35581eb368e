/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "policy/host_idn.h"
#include "policy/match_host.h"
#include "policy/punycode.h"

#define L10 "abcdefghij"
#define L60 L10 L10 L10 L10 L10 L10
#define L63 L60 "abc"

static struct host host_of(const char *text)
{
	struct error e = { 0 };
	struct host h;

	if (host_parse(text, strlen(text), &h, &e) < 0)
		fail_msg("%s: %s", text, e.text);
	return h;
}

static struct host_rule rule_of(const char *text)
{
	struct error e = { 0 };
	struct host_rule r;

	if (host_rule_parse(text, true, &r, &e) < 0)
		fail_msg("%s: %s", text, e.text);
	return r;
}

static void test_canonical(void **state)
{
	static const struct {
		const char *text, *name;
		enum host_kind kind;
	} cases[] = {
		{ "Example.COM", "example.com", HOST_NAME },
		{ "example.com.", "example.com", HOST_NAME },
		{ "localhost", "localhost", HOST_NAME },
		{ "LOCALHOST.", "localhost", HOST_NAME },
		{ "_dmarc.a-b.example", "_dmarc.a-b.example", HOST_NAME },
		{ "r3---sn-4g5e6nez.googlevideo.com", "r3---sn-4g5e6nez.googlevideo.com",
		  HOST_NAME },
		{ "1.2.3.4.example.com", "1.2.3.4.example.com", HOST_NAME },
		{ "0x7f.example", "0x7f.example", HOST_NAME },
		{ "1e3", "1e3", HOST_NAME },
		{ "0xg", "0xg", HOST_NAME },
		{ L63 "." L63 "." L63 "." L60 "a", L63 "." L63 "." L63 "." L60 "a", HOST_NAME },
		{ L63 "." L63 "." L63 "." L60 "a.", L63 "." L63 "." L63 "." L60 "a", HOST_NAME },
		/* IPv4 as inet_aton() reads it */
		{ "127.0.0.1", "127.0.0.1", HOST_IPV4 },
		{ "127.0.0.1.", "127.0.0.1", HOST_IPV4 },
		{ "127.1", "127.0.0.1", HOST_IPV4 },
		{ "127.0.1", "127.0.0.1", HOST_IPV4 },
		{ "0", "0.0.0.0", HOST_IPV4 },
		{ "1", "0.0.0.1", HOST_IPV4 },
		{ "2130706433", "127.0.0.1", HOST_IPV4 },
		{ "4294967295", "255.255.255.255", HOST_IPV4 },
		{ "0x7f000001", "127.0.0.1", HOST_IPV4 },
		{ "0X7F.1", "127.0.0.1", HOST_IPV4 },
		{ "0177.0.0.01", "127.0.0.1", HOST_IPV4 },
		{ "017700000001", "127.0.0.1", HOST_IPV4 },
		{ "0x7f.0.0x0.01", "127.0.0.1", HOST_IPV4 },
		{ "0000000000000000000000000177.1", "127.0.0.1", HOST_IPV4 },
		{ "169.16689662", "169.254.169.254", HOST_IPV4 },
		{ "169.254.43518", "169.254.169.254", HOST_IPV4 },
		{ "1.16777215", "1.255.255.255", HOST_IPV4 },
		{ "１２７．０．０．１", "127.0.0.1", HOST_IPV4 },
		{ "127。0。0。1", "127.0.0.1", HOST_IPV4 },
		/* IPv6 */
		{ "::1", "::1", HOST_IPV6 },
		{ "[::1]", "::1", HOST_IPV6 },
		{ "0:0:0:0:0:0:0:1", "::1", HOST_IPV6 },
		{ "[2001:DB8:0:0:1:0:0:1]", "2001:db8::1:0:0:1", HOST_IPV6 },
		{ "2001:db8::", "2001:db8::", HOST_IPV6 },
		{ "::", "::", HOST_IPV6 },
		{ "1::", "1::", HOST_IPV6 },
		{ "::1.2.3.4", "::102:304", HOST_IPV6 },
		{ "1:0:2:0:3:0:4:0", "1:0:2:0:3:0:4:0", HOST_IPV6 },
		{ "0:0:1:0:0:0:1:0", "0:0:1::1:0", HOST_IPV6 },
		{ "0:0:1:1:0:0:1:1", "::1:1:0:0:1:1", HOST_IPV6 },
		{ "1:2:3:4:5:6:7::", "1:2:3:4:5:6:7:0", HOST_IPV6 },
		{ "::2:3:4:5:6:7:8", "0:2:3:4:5:6:7:8", HOST_IPV6 },
		{ "1:2:3:4:5:6::", "1:2:3:4:5:6::", HOST_IPV6 },
		{ "64:ff9b::127.0.0.1", "64:ff9b::7f00:1", HOST_IPV6 },
		{ "::ffff:127.0.0.1", "127.0.0.1", HOST_IPV4 },
		{ "[::FFFF:7f00:1]", "127.0.0.1", HOST_IPV4 },
		{ "0:0:0:0:0:ffff:10.0.0.1", "10.0.0.1", HOST_IPV4 },
		/* IDN */
		{ "bücher.de", "xn--bcher-kva.de", HOST_NAME },
		{ "BÜCHER.de", "xn--bcher-kva.de", HOST_NAME },
		{ "XN--BCHER-KVA.DE", "xn--bcher-kva.de", HOST_NAME },
		{ "faß.de", "xn--fa-hia.de", HOST_NAME },
		{ "ПРИМЕР.рф", "xn--e1afmkfd.xn--p1ai", HOST_NAME },
		{ "ΠΑΡΆΔΕΙΓΜΑ.gr", "xn--hxajbheg2az3al.gr", HOST_NAME },
		{ "παράδειγμας.gr", "xn--hxajbheg2az3als.gr", HOST_NAME },
		{ "ÿŸ.fr", "xn--wdaa.fr", HOST_NAME },
		{ "ŁÓDŹ.pl", "xn--d-uga0v4h.pl", HOST_NAME },
		{ "例え。テスト", "xn--r8jz45g.xn--zckzah", HOST_NAME },
		{ "한국.kr", "xn--3e0b707e.kr", HOST_NAME },
		{ "ＥＸＡＭＰＬＥ．com", "example.com", HOST_NAME },
		{ "a．b｡c。", "a.b.c", HOST_NAME },
		{ "xn--i-7iq.ws", "xn--i-7iq.ws", HOST_NAME }, /* a heart: only as A-label */
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct host h = host_of(cases[i].text), again;

		if (strcmp(h.name, cases[i].name) != 0 || h.kind != cases[i].kind)
			fail_msg("%s became %s, kind %d", cases[i].text, h.name, (int)h.kind);
		again = host_of(h.name);
		assert_memory_equal(&again, &h, sizeof(h));
	}
}

struct refused {
	const char *text;
	size_t len; /* 0 = strlen */
	const char *reason;
};

static const struct refused refused_hosts[] = {
	{ "", 0, "empty host" },
	{ ".", 0, "empty label" },
	{ "..", 0, "empty label" },
	{ ".a", 0, "empty label" },
	{ "a..b", 0, "empty label" },
	{ "a..", 0, "empty label" },
	{ "a。.", 0, "empty label" },
	{ "evil.test\0.allowed.test", 23, "NUL" },
	{ "allowed.test\0", 13, "NUL" },
	{ "::1\0", 4, "IPv6" },
	{ "[::1\0]", 6, "IPv6" },
	{ "127.0.0.1\0", 10, "NUL" },
	{ "a\r\nb", 0, "carriage return" },
	{ "a\n", 0, "line feed" },
	{ " a", 0, "space" },
	{ "a ", 0, "space" },
	{ "127.0.0.1 ", 0, "space" },
	{ "a\tb", 0, "0x09" },
	{ "a\x7f", 0, "0x7f" },
	{ "%61.test", 0, "percent" },
	{ "allowed.test@evil.test", 0, "user name" },
	{ "a/b", 0, "path" },
	{ "a\\b", 0, "backslash" },
	{ "*.test", 0, "'*'" },
	{ "a,b", 0, "','" },
	{ "a?b", 0, "'?'" },
	{ "a#b", 0, "'#'" },
	{ "a]", 0, "']'" },
	{ "ａ％ｂ", 0, "percent" }, /* fullwidth forms are judged as ASCII */
	{ "ａ／ｂ", 0, "path" },
	{ "a\xff", 0, "UTF-8" },
	{ "a\xc0\xae"
	  "b",
	  0, "UTF-8" }, /* overlong dot */
	{ "a\xe3\x80", 0, "UTF-8" },
	{ "\xed\xa0\x80", 0, "UTF-8" },
	{ "-a.test", 0, "hyphen" },
	{ "a-.test", 0, "hyphen" },
	{ "a.-", 0, "hyphen" },
	{ "-ü", 0, "hyphen" },
	{ "ü-.de", 0, "hyphen" },
	{ L63 "d.test", 0, "longer than 63" },
	{ "üüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüü", 0, "longer than 63" },
	{ L63 "." L63 "." L63 "." L60 "ab", 0, "longer than 253" },
	/* numbers that are no address must not become names */
	{ "256.0.0.1", 0, "number" },
	{ "1.2.3.256", 0, "number" },
	{ "1.2.3.4.5", 0, "number" },
	{ "1.2.3", 0, NULL }, /* (fine: 1.2.0.3) */
	{ "1.2.65536", 0, "number" },
	{ "1.16777216", 0, "number" },
	{ "4294967296", 0, "number" },
	{ "99999999999999999999999", 0, "number" },
	{ "0x100000000", 0, "number" },
	{ "08", 0, "number" },
	{ "127.0.0.09", 0, "number" },
	{ "0x", 0, "number" },
	{ "1.0x", 0, "number" },
	{ "example.1", 0, "number" },
	{ "example.0x1f", 0, "number" },
	{ "a.1.2.3.4", 0, "number" },
	{ "1..2", 0, "empty label" },
	/* IPv6 */
	{ "fe80::1%eth0", 0, "zone" },
	{ "[fe80::1%25eth0]", 0, "zone" },
	{ "[::1", 0, "']'" },
	{ "[", 0, "']'" },
	{ "[]", 0, "IPv6" },
	{ "[::1].", 0, "']'" },
	{ "[127.0.0.1]", 0, "IPv6" },
	{ "[[::1]]", 0, "IPv6" },
	{ "::1]", 0, "IPv6" },
	{ ":::", 0, "IPv6" },
	{ "1::2::3", 0, "IPv6" },
	{ "1:2:3:4:5:6:7", 0, "IPv6" },
	{ "1:2:3:4:5:6:7:8:9", 0, "IPv6" },
	{ "12345::", 0, "IPv6" },
	{ "::ffff:127.1", 0, "IPv6" },
	{ "::ffff:256.0.0.1", 0, "IPv6" },
	{ "example.com:443", 0, "IPv6" },
	{ "0000000000000000000000000000000000000000000::1", 0, "IPv6" },
	/* IDN: refused, not guessed */
	{ "u\xcc\x88.de", 0, "U+0308" }, /* combining diaeresis: would need NFC */
	{ "a\xc2\xad"
	  "b",
	  0, "U+00AD" }, /* soft hyphen: invisible */
	{ "a\xe2\x80\x8d"
	  "b",
	  0, "U+200D" }, /* zero-width joiner */
	{ "a\xef\xbb\xbf", 0, "U+FEFF" },
	{ "\xe2\x84\xaa", 0, "U+212A" }, /* Kelvin sign folds to k */
	{ "i\xc5\xbf", 0, "U+017F" }, /* long s folds to s */
	{ "\xc4\xb0", 0, "U+0130" }, /* dotted capital I */
	{ "\xe2\x85\xa0", 0, "U+2160" }, /* roman numeral */
	{ "\xe2\x91\xa0", 0, "U+2460" }, /* circled one */
	{ "1\xe2\x84\x80", 0, "U+2100" }, /* a/c */
	{ "\xef\xac\x81", 0, "U+FB01" }, /* fi ligature */
	{ "\xf0\x9d\x90\x9a", 0, "U+1D41A" }, /* mathematical a */
	{ "\xc2\xb9.1", 0, "U+00B9" },
	{ "ab--ü", 0, "reserved" },
	{ "xn--ü", 0, "reserved" },
	{ "xn--", 0, "hyphen" },
	{ "xn--a", 0, "decode" }, /* U+0080 */
	{ "xn--b", 0, "decode" }, /* cut short */
	{ "xn--abc-", 0, "hyphen" },
	{ "xn--99999999", 0, "decode" }, /* overflow */
	{ "xn--a-b_c", 0, "decode" },
	{ "a.xn--0.com", 0, "decode" },
};

static void test_refused(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(refused_hosts); i++) {
		const struct refused *c = &refused_hosts[i];
		struct host h = { .name = "untouched" };
		struct error e = { 0 };
		size_t len = c->len > 0 ? c->len : strlen(c->text);
		int r = host_parse(c->text, len, &h, &e);

		if (!c->reason) {
			assert_int_equal(r, 0);
			continue;
		}
		if (r != -EINVAL)
			fail_msg("case %zu, %s: %d, %s", i, c->text, r, h.name);
		if (!strstr(e.text, c->reason))
			fail_msg("case %zu, %s: \"%s\" does not say \"%s\"", i, c->text, e.text,
				 c->reason);
		assert_string_equal(h.name, "untouched");
		assert_int_equal(host_parse(c->text, len, &h, NULL), -EINVAL);
	}
}

/* Every byte on its own place: nothing slips through by an unusual value. */
static void test_every_byte(void **state)
{
	(void)state;
	for (unsigned c = 0; c < 256; c++) {
		char text[] = { 'a', (char)c, 'b' };
		bool fine = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
			    (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
		struct host h;

		if ((host_parse(text, sizeof(text), &h, NULL) == 0) != fine)
			fail_msg("byte 0x%02x", c);
	}
}

static void test_long_input(void **state)
{
	static char text[100000];
	struct host h;

	(void)state;
	memset(text, 'a', sizeof(text));
	assert_int_equal(host_parse(text, sizeof(text), &h, NULL), -EINVAL);
	for (size_t i = 1; i < sizeof(text); i += 2)
		text[i] = '.';
	assert_int_equal(host_parse(text, sizeof(text), &h, NULL), -EINVAL);
	assert_int_equal(host_parse(text, 253, &h, NULL), 0);
	assert_int_equal(host_parse(text, 254, &h, NULL), 0); /* the root dot */
	assert_int_equal(host_parse(text, 255, &h, NULL), -EINVAL);
	text[0] = '[';
	assert_int_equal(host_parse(text, 1000, &h, NULL), -EINVAL);
}

static void test_punycode(void **state)
{
	/* RFC 3492 7.1 (B), (L), (R) and a few edges */
	static const struct {
		uint32_t points[16];
		size_t n;
		const char *ascii;
	} cases[] = {
		{ { 0x4ed6, 0x4eec, 0x4e3a, 0x4ec0, 0x4e48, 0x4e0d, 0x8bf4, 0x4e2d, 0x6587 },
		  9,
		  "ihqwcrb4cv8a8dqg056pqjye" },
		{ { '3', 0x5e74, 'B', 0x7d44, 0x91d1, 0x516b, 0x5148, 0x751f },
		  8,
		  "3B-ww4c5e180e575a65lsy2b" },
		{ { 0x305d, 0x306e, 0x30b9, 0x30d4, 0x30fc, 0x30c9, 0x3067 },
		  7,
		  "d9juau41awczczp" },
		{ { 'a', 'b' }, 2, "ab-" },
		{ { 0x10ffff }, 1, "dn32g" },
		{ { 0x80 }, 1, "a" },
		{ { '-', 0xfc }, 2, "--eha" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		uint32_t points[16];
		char ascii[64];
		int n = punycode_encode(cases[i].points, cases[i].n, ascii, sizeof(ascii));

		assert_int_equal(n, strlen(cases[i].ascii));
		assert_memory_equal(ascii, cases[i].ascii, (size_t)n);
		n = punycode_decode(cases[i].ascii, strlen(cases[i].ascii), points, 16);
		assert_int_equal(n, cases[i].n);
		assert_memory_equal(points, cases[i].points, (size_t)n * sizeof(points[0]));
		/* one too small */
		assert_int_equal(punycode_decode(cases[i].ascii, strlen(cases[i].ascii), points,
						 cases[i].n - 1),
				 -E2BIG);
		assert_int_equal(punycode_encode(cases[i].points, cases[i].n, ascii,
						 strlen(cases[i].ascii) - 1),
				 -E2BIG);
	}
}

static void test_punycode_refused(void **state)
{
	static const char *const bad[] = { "\xc3\xbc-a",   "!",      "b",    "99999999",
					   "zzzzzzzzzzzz", "a-\x80", "en32g" };
	const uint32_t too_high[] = { 0x110000 };
	uint32_t points[64];
	char ascii[64];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		if (punycode_decode(bad[i], strlen(bad[i]), points, 64) != -EINVAL)
			fail_msg("%s", bad[i]);
	}
	assert_int_equal(punycode_encode(too_high, 1, ascii, sizeof(ascii)), -EINVAL);
	assert_int_equal(punycode_decode("", 0, points, 64), 0);
}

/* A-labels that decode, but are not what encoding gives: a second spelling. */
static void test_alabel(void **state)
{
	static const char *const bad[] = {
		"xn--ab-", /* pure ASCII */
		"xn--", /* nothing */
		"xn--BCHER-kva", /* capitals: host_parse folds first */
		"xn---kva", /* delimiter without basic code points */
		"xn--tda9", /* cut short */
		"xn--wca", /* capital U with diaeresis */
		"xn--ab-yu3n", /* a full stop inside */
		"xn--ib9b", /* a surrogate half */
		"yn--bcher-kva",
	};

	(void)state;
	assert_true(idn_alabel_valid("xn--bcher-kva", 13));
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		if (idn_alabel_valid(bad[i], strlen(bad[i])))
			fail_msg("%s", bad[i]);
	}
}

/* Folding is idempotent and never lands outside of what it accepts. */
static void test_fold(void **state)
{
	unsigned accepted = 0;

	(void)state;
	for (uint32_t c = 0; c <= 0x10ffff; c++) {
		uint32_t once, twice;

		if (!idn_fold(c, &once))
			continue;
		accepted++;
		if (!idn_fold(once, &twice) || twice != once)
			fail_msg("U+%04X -> U+%04X", c, once);
		if (once < 0x80 && c >= 0x80 && !(c >= 0xff01 && c <= 0xff5e) && c != 0x3002 &&
		    c != 0xff61)
			fail_msg("U+%04X becomes ASCII", c);
		/* surrogates, private use, specials, tags */
		assert_false(c >= 0xd800 && c <= 0xf8ff);
		assert_false(c >= 0xe0000);
	}
	assert_true(accepted > 60000);
}

static void test_from_addr(void **state)
{
	static const uint8_t v4[] = { 10, 0, 0, 1 };
	static const uint8_t mapped[16] = { [10] = 0xff, 0xff, 192, 0, 2, 1 };
	static const uint8_t v6[16] = { 0x20, 0x01, 0x0d, 0xb8, [15] = 1 };
	struct host h, parsed;

	(void)state;
	host_from_addr(HOST_IPV4, v4, &h);
	parsed = host_of("10.0.0.1");
	assert_memory_equal(&h, &parsed, sizeof(h));
	host_from_addr(HOST_IPV6, mapped, &h);
	parsed = host_of("192.0.2.1");
	assert_memory_equal(&h, &parsed, sizeof(h));
	host_from_addr(HOST_IPV6, v6, &h);
	parsed = host_of("2001:db8::1");
	assert_memory_equal(&h, &parsed, sizeof(h));
}

static void test_rule_parse(void **state)
{
	static const struct {
		const char *text;
		int type;
		const char *name;
		unsigned prefix_len, port;
	} cases[] = {
		{ "Example.com", HOST_RULE_EXACT, "example.com", 0, 0 },
		{ "example.com.", HOST_RULE_EXACT, "example.com", 0, 0 },
		{ "example.com:443", HOST_RULE_EXACT, "example.com", 0, 443 },
		{ "example.com.:1", HOST_RULE_EXACT, "example.com", 0, 1 },
		{ "intranet:65535", HOST_RULE_EXACT, "intranet", 0, 65535 },
		{ "localhost", HOST_RULE_EXACT, "localhost", 0, 0 },
		{ "bücher.de:80", HOST_RULE_EXACT, "xn--bcher-kva.de", 0, 80 },
		{ "127.1", HOST_RULE_EXACT, "127.0.0.1", 0, 0 },
		{ "10.1.2.3:22", HOST_RULE_EXACT, "10.1.2.3", 0, 22 },
		{ "::1", HOST_RULE_EXACT, "::1", 0, 0 },
		{ "[::1]", HOST_RULE_EXACT, "::1", 0, 0 },
		{ "[::1]:8080", HOST_RULE_EXACT, "::1", 0, 8080 },
		{ "::1:8080", HOST_RULE_EXACT, "::1:8080", 0, 0 }, /* an address, no port */
		{ "[::ffff:1.2.3.4]:5", HOST_RULE_EXACT, "1.2.3.4", 0, 5 },
		{ "*.npmjs.org", HOST_RULE_SUBDOMAINS, "npmjs.org", 0, 0 },
		{ "*.NPMJS.org.:443", HOST_RULE_SUBDOMAINS, "npmjs.org", 0, 443 },
		{ "*.bücher.de", HOST_RULE_SUBDOMAINS, "xn--bcher-kva.de", 0, 0 },
		{ "10.0.0.0/8", HOST_RULE_CIDR, "10.0.0.0", 8, 0 },
		{ "10.1.2.3/8:80", HOST_RULE_CIDR, "10.0.0.0", 8, 80 },
		{ "10.1.2.3/32", HOST_RULE_CIDR, "10.1.2.3", 32, 0 },
		{ "10.255.255.255/9", HOST_RULE_CIDR, "10.128.0.0", 9, 0 },
		{ "1.2.3.4/0", HOST_RULE_CIDR, "0.0.0.0", 0, 0 },
		{ "fd00::/8", HOST_RULE_CIDR, "fd00::", 8, 0 },
		{ "fdff::1/9", HOST_RULE_CIDR, "fd80::", 9, 0 },
		{ "[fd00::/8]:443", HOST_RULE_CIDR, "fd00::", 8, 443 },
		{ "[fd00::]/8:443", HOST_RULE_CIDR, "fd00::", 8, 443 },
		{ "[fd00::1]/128", HOST_RULE_CIDR, "fd00::1", 128, 0 },
		{ "::ffff:10.1.2.3/104", HOST_RULE_CIDR, "10.0.0.0", 8, 0 },
		{ "::ffff:0:0/96", HOST_RULE_CIDR, "0.0.0.0", 0, 0 },
		{ "*", HOST_RULE_ANY, "", 0, 0 },
		{ "*:25", HOST_RULE_ANY, "", 0, 25 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct host_rule r = rule_of(cases[i].text);

		if ((int)r.type != cases[i].type || strcmp(r.host.name, cases[i].name) != 0 ||
		    r.prefix_len != cases[i].prefix_len || r.port != cases[i].port)
			fail_msg("%s: type %d, %s/%u, port %u", cases[i].text, (int)r.type,
				 r.host.name, r.prefix_len, r.port);
	}
}

static void test_rule_refused(void **state)
{
	static const struct {
		const char *text, *reason;
	} cases[] = {
		{ "", "empty" },
		{ "*", "deny list" },
		{ "*:443", "deny list" },
		{ ":443", "empty" },
		{ "https://example.com", "URL" },
		{ "https://example.com/x", "URL" },
		{ "example.com/", "paths" },
		{ "example.com/path", "paths" },
		{ "example.com/24", "paths" },
		{ "*.com", "two labels" },
		{ "*.localhost", "two labels" },
		{ "*.", "empty" },
		{ "*..com", "empty label" },
		{ "**.example.com", "'*'" },
		{ "*.*.example.com", "'*'" },
		{ "a.*.example.com", "'*'" },
		{ "*example.com", "'*'" },
		{ "example.*", "'*'" },
		{ "*/8", "'*'" },
		{ "*.1.2.3.4", "IP address" },
		{ "*.[::1]", "IP address" },
		{ "*.10.0.0.0/8", "IP address" },
		{ "*.example.com/8", "paths" },
		{ "a..b", "empty label" },
		{ ".example.com", "empty label" },
		{ "exa mple.com", "space" },
		{ " example.com", "space" },
		{ "user@example.com", "user name" },
		{ "example.com:", "port" },
		{ "example.com:0", "port" },
		{ "example.com:080", "port" },
		{ "example.com:65536", "port" },
		{ "example.com:99999999999", "port" },
		{ "example.com:+1", "port" },
		{ "example.com:-1", "port" },
		{ "example.com:*", "port" },
		{ "example.com:80 ", "port" },
		{ "example.com:80-90", "port" },
		{ "example.com:https", "port" },
		{ "[::1]:", "port" },
		{ "[::1]:0", "port" },
		{ "[::1]x", "follow" },
		{ "[::1", "']'" },
		{ "[example.com]", "brackets" },
		{ "[1.2.3.4]:5", "brackets" },
		{ "[fe80::1%eth0]", "zone" },
		{ "10/8", "four" },
		{ "10.0/16", "four" },
		{ "0xa000000/8", "four" },
		{ "10.0.0.0/", "prefix" },
		{ "10.0.0.0/33", "prefix" },
		{ "10.0.0.0/08", "prefix" },
		{ "10.0.0.0/-1", "prefix" },
		{ "10.0.0.0/8/8", "prefix" },
		{ "10.0.0.0/255.0.0.0", "prefix" },
		{ "fd00::/129", "prefix" },
		{ "[fd00::/8]/8", "follow" },
		{ "::ffff:10.0.0.0/95", "mapped" },
		{ "1.2.3.4.5", "number" },
		{ "u\xcc\x88.de", "U+0308" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct host_rule r = { .port = 7 };
		struct error e = { 0 };

		if (host_rule_parse(cases[i].text, false, &r, &e) != -EINVAL)
			fail_msg("%s was accepted", cases[i].text);
		if (!strstr(e.text, cases[i].reason))
			fail_msg("%s: \"%s\" does not say \"%s\"", cases[i].text, e.text,
				 cases[i].reason);
		assert_int_equal(r.port, 7);
	}
}

static void test_rule_matches(void **state)
{
	static const struct {
		const char *rule, *host;
		uint16_t port;
		bool expected;
	} cases[] = {
		{ "allowed.test", "ALLOWED.TEST.", 443, true },
		{ "allowed.test", "allowed.test.evil.test", 443, false },
		{ "allowed.test", "www.allowed.test", 443, false },
		{ "allowed.test:443", "allowed.test", 443, true },
		{ "allowed.test:443", "allowed.test", 22, false },
		{ "*.allowed.test", "allowed.test", 443, false },
		{ "*.allowed.test", "a.allowed.test", 443, true },
		{ "*.allowed.test", "a.b.allowed.test", 443, true },
		{ "*.allowed.test", "notallowed.test", 443, false },
		{ "*.allowed.test", "a.allowed.test.evil.test", 443, false },
		{ "*.allowed.test:443", "a.allowed.test", 80, false },
		{ "bücher.de", "xn--bcher-kva.de", 443, true },
		{ "xn--bcher-kva.de", "BÜCHER.DE", 443, true },
		{ "*.bücher.de", "www.xn--bcher-kva.de", 443, true },
		{ "127.0.0.1", "0x7f000001", 1, true },
		{ "127.0.0.1", "[::ffff:127.0.0.1]", 1, true },
		{ "127.0.0.1", "::7f00:1", 1, false },
		{ "2130706433", "127.1", 1, true },
		{ "[::1]", "0:0:0:0:0:0:0:1", 1, true },
		{ "::1", "::2", 1, false },
		{ "10.0.0.0/8", "10.255.0.1", 1, true },
		{ "10.0.0.0/8", "11.0.0.0", 1, false },
		{ "10.0.0.0/8", "::ffff:10.0.0.1", 1, true },
		{ "10.0.0.0/8", "a00::", 1, false }, /* same first byte, other family */
		{ "10.0.0.0/9", "10.128.0.0", 1, false },
		{ "10.0.0.0/8:80", "10.0.0.1", 81, false },
		{ "0.0.0.0/0", "255.255.255.255", 1, true },
		{ "0.0.0.0/0", "::1", 1, false },
		{ "0.0.0.0/0", "example.com", 1, false },
		{ "::/0", "1.2.3.4", 1, false },
		{ "::/0", "ff02::1", 1, true },
		{ "fd00::/8", "fdab::1", 1, true },
		{ "fd00::/8", "fc00::1", 1, false },
		{ "fd00::/12", "fd0f::1", 1, true },
		{ "fd00::/12", "fd10::1", 1, false },
		{ "*", "anything", 1, true },
		{ "*", "10.0.0.1", 1, true },
		{ "*", "::1", 1, true },
		{ "*:25", "anything", 26, false },
		{ "*:25", "anything", 25, true },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct host_rule r = rule_of(cases[i].rule);
		struct host h = host_of(cases[i].host);

		if (host_rule_matches(&r, &h, cases[i].port) != cases[i].expected)
			fail_msg("%s on %s:%u", cases[i].rule, cases[i].host, cases[i].port);
	}
}

/*
 * covers() against its definition, over every pair of a set of rules: if it
 * says yes, no witness may contradict; if it says no, there must be one.
 */
static void test_rule_covers(void **state)
{
	static const char *const rules[] = {
		"a.test",
		"a.test:80",
		"b.a.test",
		"b.a.test:80",
		"*.a.test",
		"*.a.test:80",
		"*.b.a.test",
		"ba.test",
		"10.0.0.1",
		"10.0.0.1:80",
		"10.0.0.1/32",
		"10.0.0.0/24",
		"10.0.0.0/24:443",
		"10.0.0.0/8",
		"0.0.0.0/0",
		"::1",
		"::1/128",
		"fd00::/8",
		"fd00::/64",
		"fd00::1",
		"::/0",
		"*",
		"*:80",
	};
	static const char *const hosts[] = {
		"a.test",   "b.a.test", "c.b.a.test",    "x.a.test", "ba.test", "other.test",
		"10.0.0.1", "10.0.0.2", "10.9.9.9",      "11.0.0.1", "::1",     "::2",
		"fd00::1",  "fd00::2",  "fd00:0:0:1::1", "fe80::1",
	};
	static const uint16_t ports[] = { 80, 443, 8080 };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rules); i++) {
		for (size_t j = 0; j < ARRAY_LEN(rules); j++) {
			struct host_rule outer = rule_of(rules[i]), inner = rule_of(rules[j]);
			bool witness = false;

			for (size_t k = 0; k < ARRAY_LEN(hosts) * ARRAY_LEN(ports); k++) {
				struct host h = host_of(hosts[k / ARRAY_LEN(ports)]);
				uint16_t port = ports[k % ARRAY_LEN(ports)];

				witness = witness || (host_rule_matches(&inner, &h, port) &&
						      !host_rule_matches(&outer, &h, port));
			}
			if (host_rule_covers(&outer, &inner) == witness)
				fail_msg("%s %s %s", rules[i],
					 witness ? "covers" : "does not cover", rules[j]);
		}
	}
}

static void test_classify(void **state)
{
	static const struct {
		const char *host;
		enum host_class class;
	} cases[] = {
		{ "8.8.8.8", HOST_CLASS_PUBLIC },
		{ "1.0.0.0", HOST_CLASS_PUBLIC },
		{ "0.0.0.0", HOST_CLASS_UNSPECIFIED },
		{ "0.255.255.255", HOST_CLASS_UNSPECIFIED },
		{ "9.255.255.255", HOST_CLASS_PUBLIC },
		{ "10.0.0.0", HOST_CLASS_PRIVATE },
		{ "11.0.0.0", HOST_CLASS_PUBLIC },
		{ "100.63.255.255", HOST_CLASS_PUBLIC },
		{ "100.64.0.0", HOST_CLASS_PRIVATE },
		{ "100.127.255.255", HOST_CLASS_PRIVATE },
		{ "100.128.0.0", HOST_CLASS_PUBLIC },
		{ "127.0.0.1", HOST_CLASS_LOOPBACK },
		{ "127.255.255.255", HOST_CLASS_LOOPBACK },
		{ "128.0.0.0", HOST_CLASS_PUBLIC },
		{ "169.253.255.255", HOST_CLASS_PUBLIC },
		{ "169.254.0.1", HOST_CLASS_LINK_LOCAL },
		{ "172.15.255.255", HOST_CLASS_PUBLIC },
		{ "172.16.0.0", HOST_CLASS_PRIVATE },
		{ "172.31.255.255", HOST_CLASS_PRIVATE },
		{ "172.32.0.0", HOST_CLASS_PUBLIC },
		{ "192.0.0.1", HOST_CLASS_PRIVATE },
		{ "192.0.1.0", HOST_CLASS_PUBLIC },
		{ "192.168.255.255", HOST_CLASS_PRIVATE },
		{ "192.169.0.0", HOST_CLASS_PUBLIC },
		{ "198.17.255.255", HOST_CLASS_PUBLIC },
		{ "198.18.0.0", HOST_CLASS_PRIVATE },
		{ "198.19.255.255", HOST_CLASS_PRIVATE },
		{ "198.20.0.0", HOST_CLASS_PUBLIC },
		{ "223.255.255.255", HOST_CLASS_PUBLIC },
		{ "224.0.0.1", HOST_CLASS_MULTICAST },
		{ "239.255.255.255", HOST_CLASS_MULTICAST },
		{ "240.0.0.1", HOST_CLASS_MULTICAST },
		{ "255.255.255.255", HOST_CLASS_MULTICAST },
		/* metadata services */
		{ "169.254.169.254", HOST_CLASS_METADATA },
		{ "169.254.170.2", HOST_CLASS_METADATA },
		{ "169.254.170.23", HOST_CLASS_METADATA },
		{ "100.100.100.200", HOST_CLASS_METADATA },
		{ "168.63.129.16", HOST_CLASS_METADATA },
		{ "192.0.0.192", HOST_CLASS_METADATA },
		{ "fd00:ec2::254", HOST_CLASS_METADATA },
		{ "fd00:ec2:1::", HOST_CLASS_METADATA },
		{ "fd20:ce::254", HOST_CLASS_METADATA },
		{ "fd00:c1::a9fe:a9fe", HOST_CLASS_METADATA },
		{ "fd00:42::42", HOST_CLASS_METADATA },
		{ "fd00:a9fe:a9fe::1", HOST_CLASS_METADATA },
		{ "fd00:100::100:200", HOST_CLASS_METADATA },
		{ "fd20:ce::255", HOST_CLASS_PRIVATE },
		/* IPv6 */
		{ "2606:4700::1111", HOST_CLASS_PUBLIC },
		{ "3fff:ffff::1", HOST_CLASS_PUBLIC },
		{ "::", HOST_CLASS_UNSPECIFIED },
		{ "::1", HOST_CLASS_LOOPBACK },
		{ "fe80::1", HOST_CLASS_LINK_LOCAL },
		{ "febf::1", HOST_CLASS_LINK_LOCAL },
		{ "fec0::1", HOST_CLASS_PRIVATE },
		{ "fc00::1", HOST_CLASS_PRIVATE },
		{ "fdff::1", HOST_CLASS_PRIVATE },
		{ "ff02::1", HOST_CLASS_MULTICAST },
		{ "100::1", HOST_CLASS_MULTICAST },
		{ "4000::1", HOST_CLASS_MULTICAST },
		{ "1fff::1", HOST_CLASS_MULTICAST },
		/* IPv4 inside IPv6 */
		{ "::ffff:169.254.169.254", HOST_CLASS_METADATA },
		{ "::127.0.0.1", HOST_CLASS_LOOPBACK },
		{ "::2", HOST_CLASS_UNSPECIFIED }, /* 0.0.0.2 */
		{ "::8.8.8.8", HOST_CLASS_PUBLIC },
		{ "::ffff:0:10.0.0.1", HOST_CLASS_PRIVATE },
		{ "64:ff9b::127.0.0.1", HOST_CLASS_LOOPBACK },
		{ "64:ff9b::a9fe:a9fe", HOST_CLASS_METADATA },
		{ "64:ff9b::8.8.8.8", HOST_CLASS_PUBLIC },
		{ "64:ff9b:1::8.8.8.8", HOST_CLASS_PRIVATE },
		{ "64:ff9b:0:0:1::8.8.8.8", HOST_CLASS_MULTICAST }, /* not NAT64, not assigned */
		{ "2002:7f00:1::1", HOST_CLASS_LOOPBACK },
		{ "2002:a9fe:a9fe::", HOST_CLASS_METADATA },
		{ "2002:808:808::1", HOST_CLASS_PUBLIC },
		{ "2001:0:808:808::80ff:fffe", HOST_CLASS_LOOPBACK }, /* Teredo client 127.0.0.1 */
		{ "2001:0:a00:1::f7f7:f7f7", HOST_CLASS_PRIVATE }, /* Teredo server 10.0.0.1 */
		{ "2001:0:808:808::f7f7:f7f7", HOST_CLASS_PUBLIC },
		/* a name is not an address, and never public */
		{ "example.com", HOST_CLASS_UNSPECIFIED },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct host h = host_of(cases[i].host);

		if (host_classify(&h) != cases[i].class)
			fail_msg("%s is %s", cases[i].host, host_class_name(host_classify(&h)));
	}
}

/* A resolver may hand over a mapped address without going through host_parse(). */
static void test_classify_raw_mapped(void **state)
{
	struct host h = { .kind = HOST_IPV6, .addr = { [10] = 0xff, 0xff, 127, 0, 0, 1 } };

	(void)state;
	assert_int_equal(host_classify(&h), HOST_CLASS_LOOPBACK);
}

static void test_class_names(void **state)
{
	(void)state;
	for (int c = HOST_CLASS_PUBLIC; c <= HOST_CLASS_MULTICAST; c++) {
		assert_string_not_equal(host_class_name((enum host_class)c), "unknown");
		for (int d = HOST_CLASS_PUBLIC; d < c; d++)
			assert_string_not_equal(host_class_name((enum host_class)c),
						host_class_name((enum host_class)d));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_canonical),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_every_byte),
		cmocka_unit_test(test_long_input),
		cmocka_unit_test(test_punycode),
		cmocka_unit_test(test_punycode_refused),
		cmocka_unit_test(test_alabel),
		cmocka_unit_test(test_fold),
		cmocka_unit_test(test_from_addr),
		cmocka_unit_test(test_rule_parse),
		cmocka_unit_test(test_rule_refused),
		cmocka_unit_test(test_rule_matches),
		cmocka_unit_test(test_rule_covers),
		cmocka_unit_test(test_classify),
		cmocka_unit_test(test_classify_raw_mapped),
		cmocka_unit_test(test_class_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
