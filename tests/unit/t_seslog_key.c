/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"
#include "supervise/seslog_key.h"

#define BEGIN "-----BEGIN RSA PRIVATE KEY-----"
#define END "-----END RSA PRIVATE KEY-----"
#define B64 "MIIEpAIBAAKCAQEA7bq2Zg1x"

#define LINES_MAX 12

/* Lines, and what becomes of each: s is shown, x is the key's. */
static const struct {
	const char *lines[LINES_MAX], *want;
} files[] = {
	{ { BEGIN, B64, B64, "AAAA==", END, "after" }, "sxxxxs" },
	{ { BEGIN, "Proc-Type: 4,ENCRYPTED", "DEK-Info: AES-128-CBC,00", "", B64, END, "" },
	  "sxxxxxs" },
	{ { "-----BEGIN PGP PRIVATE KEY BLOCK-----", "", B64, "AAAA", "=abcd",
	    "-----END PGP PRIVATE KEY BLOCK-----", "x" },
	  "sxxxxxs" },
	{ { "-----BEGIN CERTIFICATE-----", B64, "-----END CERTIFICATE-----" }, "sss" },
	/* the end does not come */
	{ { BEGIN, B64, B64, "some words", B64 }, "sxxss" },
	{ { BEGIN, B64, "AAAA", "BBBB" }, "sxxs" },
	{ { BEGIN, B64, B64 "AA" }, "sxs" },
	{ { BEGIN, B64, BEGIN, B64, END, "x" }, "sxsxxs" },
	{ { BEGIN, "after", "words" }, "sss" },
	/* with something in front */
	{ { "+" BEGIN, "+" B64, "+AAAA", "+" END, "+x" }, "sxxxs" },
	{ { "-" BEGIN, "-" B64, "-AAAA", "-" END, "-x" }, "sxxxs" },
	{ { "  1\t" BEGIN, "  2\t" B64, " 10\tAAAA", " 11\t" END, " 12\tx" }, "sxxxs" },
	{ { "    " BEGIN "\r", "    " B64 "\r", "    " END "\r", "x" }, "sxxs" },
	{ { "KEY=\"" BEGIN, B64, B64, END "\"", "x" }, "sxxxs" },
	{ { "char k[] = \"" BEGIN "\\n\"", "  \"" B64 "\\n\"", "  \"" END "\\n\";", "x" }, "sxxs" },
	/* only a mention */
	{ { "see " BEGIN " there", B64 }, "ss" },
	{ { "see " BEGIN, "line1", "line2" }, "sss" },
	{ { "if (strstr(s, \"" BEGIN "\"))", "	return;", "}" }, "sss" },
	{ { BEGIN " abc " END, B64 }, "ss" },
	{ { "-----BEGIN ", B64 }, "ss" },
	{ { "-----BEGIN PRIVATE KEY", B64 }, "ss" },
};

static void test_files(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		struct seslog_key k = { 0 };
		char got[LINES_MAX + 1] = "";

		for (size_t j = 0; j < LINES_MAX && files[i].lines[j]; j++) {
			const char *s = files[i].lines[j];
			bool hides = k.inside && seslog_key_line(&k, s, strlen(s));

			got[j] = hides ? 'x' : 's';
			if (!hides)
				(void)seslog_key_begins(&k, s, strlen(s));
		}
		if (strcmp(got, files[i].want) != 0)
			fail_msg("%zu: %s, not %s", i, got, files[i].want);
	}
}

static void test_begun_lines(void **state)
{
	static const char *const may[] = { "",        "MII", "Proc-Ty", "DEK-Info: a,b",
					   "-----EN", END,   "+MII",    " 12\tMII" };
	static const char *const may_not[] = { "$ ", "me@host:~$ ", "(gdb) ", "Really?" };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(may); i++)
		assert_true(seslog_key_may_go_on(may[i], strlen(may[i])));
	for (size_t i = 0; i < ARRAY_LEN(may_not); i++)
		assert_false(seslog_key_may_go_on(may_not[i], strlen(may_not[i])));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_files),
		cmocka_unit_test(test_begun_lines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
