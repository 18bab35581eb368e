/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"
#include "supervise/seslog_mask.h"

#define TOKEN "ghp_0123456789abcdefghijABCDEFGHIJ012345"
#define RED "\x1b[01;31m\x1b[K"
#define OFF "\x1b[m\x1b[K"

/* What goes in, what comes out; without a second text nothing changes. */
static const struct {
	const char *in, *out;
} texts[] = {
	{ "no colour at all", NULL },
	{ RED "word" OFF " and " RED "word" OFF, NULL },
	/* grep --color, and colours around a name */
	{ RED TOKEN OFF, RED "ghp_[redacted]" OFF },
	{ "a " RED TOKEN OFF " b", "a " RED "ghp_[redacted]" OFF " b" },
	{ "\x1b[1mpassword\x1b[0m: hunter4SECRET", "\x1b[1mpassword\x1b[0m: [redacted]" },
	{ "password=\x1b[1mhunter4\x1b[0m", "password=\x1b[1m[redacted]\x1b[0m" },
	{ "x\x1b(B\x1b[m " TOKEN "\x1b[m\x0f y", "x\x1b(B\x1b[m ghp_[redacted]\x1b[m\x0f y" },
	/* in the middle of a secret, or of a name */
	{ "ghp_0123456789" RED "abcdefghij" OFF "ABCDEFGHIJ012345 z", "ghp_[redacted] z" },
	{ "pass\x1b[7mword\x1b[m=hun\x1b[1mter2", "pass\x1b[7mword\x1b[m=[redacted]" },
	{ "ghp_0123456789\x1b]0;title\x07"
	  "abcdefghij z",
	  "ghp_[redacted] z" },
	{ "ghp_0123456789\x1b[1Cabcdefghij z", "ghp_[redacted] z" },
	/* two in one line: what is between them keeps its colours */
	{ "TOKEN=\x1b[1ma\x1b[m \x1b[2mPIN=b\x1b[m c\x1b[m",
	  "TOKEN=\x1b[1m[redacted]\x1b[m \x1b[2mPIN=[redacted]\x1b[m c\x1b[m" },
	/* moves are blanks, too */
	{ "Total\x1b[5;10H" TOKEN "\x1b[K", "Total\x1b[5;10Hghp_[redacted]\x1b[K" },
	{ "pin:\x1b[3C1234 end", "pin:\x1b[3C[redacted] end" },
	/* titles and links have secrets of their own */
	{ "\x1b]8;;https://me:pw@host/\x1b\\link\x1b]8;;\x1b\\",
	  "\x1b]8;;https://me:[redacted]@host/\x1b\\link\x1b]8;;\x1b\\" },
	{ "\x1b]0;" TOKEN "\x07$ ", "\x1b]0;ghp_[redacted]\x07$ " },
	/* without an end they are text */
	{ "\x1b]0;" TOKEN, "\x1b]0;ghp_[redacted]" },
	{ "\x1b]" RED TOKEN, "\x1b]" RED "ghp_[redacted]" },
	{ "a\x1b[", NULL },
	{ "a\x1b", NULL },
	{ "\x1b[31\x01x", NULL },
	/* keys */
	{ "\x1bOA\x1b[Bls \x1b[200~" TOKEN "\x1b[201~",
	  "\x1bOA\x1b[Bls \x1b[200~ghp_[redacted]\x1b[201~" },
	/* written as it would be by us */
	{ "\x1b[1m[redacted]\x1b[m password=\x1b[1m[redacted]\x1b[m", NULL },
	{ "", NULL },
};

static void test_texts(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		_cleanup_buf_ struct buf b = BUF_INIT(BUF_MAX_TEXT);

		seslog_mask(texts[i].in, strlen(texts[i].in), &b);
		assert_string_equal(buf_str(&b), texts[i].out ? texts[i].out : texts[i].in);
	}
}

/* Wherever one sequence stands, no part of the secret is left. */
static void test_everywhere(void **state)
{
	static const char text[] = "see " TOKEN " there";

	(void)state;
	for (size_t i = 0; i < sizeof(text); i++) {
		_cleanup_buf_ struct buf in = BUF_INIT(BUF_MAX_TEXT), out = BUF_INIT(BUF_MAX_TEXT);

		buf_append(&in, text, i);
		buf_puts(&in, "\x1b[38;5;1m");
		buf_puts(&in, text + i);
		seslog_mask(in.data, in.len, &out);
		assert_non_null(strstr(out.data, "[redacted]"));
		assert_null(strstr(out.data, "0123"));
		assert_null(strstr(out.data, "2345"));
	}
}

/* How much of a begun line is shown; the rest, after ^, may become a secret. */
static const char *const begun[] = {
	"$ ^",
	"Password: ^",
	"Password:^",
	"Continue? [y/N]^",
	"Building...^",
	"the token^",
	"see ^https://host",
	"see http://localhost:8888/tree^",
	"see ^https://me:hunt",
	"^ghp_012345",
	"b ^a,ghp_012345",
	"x ^\x1b[1mghp_012345",
	"gh^",
	"xghp_012345^",
	"password=hunt^",
	"password='a b^",
	"Authorization: Basic ^",
	"Bearer ^abc",
	"max_tokens: ^12",
	"^eyJhbGciOi",
	"^eyJhbGciOiJIUz.",
	"^eyJhbGciOiJIUz.e",
	"^eyJhbGciOiJIUz.ey",
	"eyJhbGciOiJIUz.eyJh^",
	"text^\x1b[3",
	"text^\x1b]0;title",
	"text\x1b]0;title\x07^",
	"^",
};

static void test_begun_lines(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(begun); i++) {
		const char *mark = strchr(begun[i], '^');
		_cleanup_buf_ struct buf b = BUF_INIT(BUF_MAX_TEXT);

		buf_append(&b, begun[i], (size_t)(mark - begun[i]));
		buf_puts(&b, mark + 1);
		if (seslog_settled(buf_str(&b), b.len) != (size_t)(mark - begun[i]))
			fail_msg("%s: %zu", begun[i], seslog_settled(b.data, b.len));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_texts),
		cmocka_unit_test(test_everywhere),
		cmocka_unit_test(test_begun_lines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
