/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/macros.h"
#include "base/sha256.h"

/* From FIPS 180-4 and its examples. */
static void test_known(void **state)
{
	static const struct {
		const char *text, *hex;
	} known[] = {
		{ "", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" },
		{ "abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" },
		{ "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
		  "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1" },
	};
	char hex[SHA256_HEX_LEN + 1];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(known); i++) {
		sha256_hex(known[i].text, strlen(known[i].text), hex);
		assert_string_equal(hex, known[i].hex);
	}
}

static void test_million(void **state)
{
	static const uint8_t want[SHA256_LEN] = { 0xcd, 0xc7, 0x6e, 0x5c, 0x99, 0x14, 0xfb, 0x92,
						  0x81, 0xa1, 0xc7, 0xe2, 0x84, 0xd7, 0x3e, 0x67,
						  0xf1, 0x80, 0x9a, 0x48, 0xa4, 0x97, 0x20, 0x0e,
						  0x04, 0x6d, 0x39, 0xcc, 0xc7, 0x11, 0x2c, 0xd0 };
	uint8_t digest[SHA256_LEN];
	char part[1000];
	struct sha256 s;

	(void)state;
	memset(part, 'a', sizeof(part));
	sha256_init(&s);
	for (int i = 0; i < 1000; i++)
		sha256_update(&s, part, sizeof(part));
	sha256_final(&s, digest);
	assert_memory_equal(digest, want, sizeof(want));
}

/* However the bytes are dealt out, around every block border. */
static void test_pieces(void **state)
{
	char text[200], whole[SHA256_HEX_LEN + 1], hex[SHA256_HEX_LEN + 1];
	uint8_t digest[SHA256_LEN];
	struct sha256 s;

	(void)state;
	for (size_t i = 0; i < sizeof(text); i++)
		text[i] = (char)i;
	for (size_t len = 0; len <= sizeof(text); len++) {
		sha256_hex(text, len, whole);
		for (size_t cut = 0; cut <= len; cut += 7) {
			sha256_init(&s);
			sha256_update(&s, text, cut);
			sha256_update(&s, text + cut, len - cut);
			sha256_final(&s, digest);
			for (size_t i = 0; i < SHA256_LEN; i++) {
				static const char digits[] = "0123456789abcdef";

				hex[2 * i] = digits[digest[i] >> 4];
				hex[2 * i + 1] = digits[digest[i] & 15];
			}
			assert_memory_equal(hex, whole, SHA256_HEX_LEN);
		}
	}
	/* lengths at which the padding just fits, and needs a block of its own */
	memset(text, 0, sizeof(text));
	sha256_hex(text, 55, whole);
	assert_string_equal(whole,
			    "02779466cdec163811d078815c633f21901413081449002f24aa3e80f0b88ef7");
	sha256_hex(text, 64, whole);
	assert_string_equal(whole,
			    "f5a5fd42d16a20302798ef6ed309979b43003d2320d9f0e8ea9831a92759fb4b");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_known),
		cmocka_unit_test(test_million),
		cmocka_unit_test(test_pieces),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
