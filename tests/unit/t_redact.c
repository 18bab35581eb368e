/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "audit/redact.h"
#include "base/text.h"

static const char *clean(struct buf *b, const char *text)
{
	buf_done(b);
	redact_text(text, strlen(text), b);
	return buf_str(b);
}

/* What goes in, what comes out; without a second text nothing changes. */
static const struct {
	const char *in, *out;
} texts[] = {
	/* URLs */
	{ "https://me:hunter2@host/x", "https://me:[redacted]@host/x" },
	{ "postgres://u:p@ss@db:5432/x", "postgres://u:[redacted]@db:5432/x" },
	{ "postgres://u:pa/ss@db/x", "postgres://u:[redacted]@db/x" },
	{ "redis://:pw@h", "redis://:[redacted]@h" },
	{ "https://x-access-token-0123456789@github.com/a", "https://[redacted]@github.com/a" },
	{ "ssh://git@github.com/a:b", NULL },
	{ "https://registry.example:443/@scope/pkg", NULL },
	{ "https://host/@scope/a:b@c", NULL },
	{ "git clone https://u:pw@h/r.git https://h2/r",
	  "git clone https://u:[redacted]@h/r.git https://h2/r" },
	{ "https://h/?a=1&token=abc&b=2", "https://h/?a=1&token=[redacted]&b=2" },
	{ "https://h/?X-Amz-Signature=abcd", "https://h/?X-Amz-Signature=[redacted]" },
	/* names */
	{ "PASSWORD=hunter2 make", "PASSWORD=[redacted] make" },
	{ "export DB_PASS='a b;c' x", "export DB_PASS='[redacted]' x" },
	{ "MYSQL_PWD=x y", "MYSQL_PWD=[redacted] y" },
	{ "AWS_SECRET_ACCESS_KEY=a/b+c x", "AWS_SECRET_ACCESS_KEY=[redacted] x" },
	{ "{\"apiKey\": \"abc\", \"n\": 1}", "{\"apiKey\": \"[redacted]\", \"n\": 1}" },
	{ "{\\\"password\\\":\\\"abc\\\"}", "{\\\"password\\\":\\\"[redacted]\\\"}" },
	{ "client_secret: abc", "client_secret: [redacted]" },
	{ "--token abc --x", "--token [redacted] --x" },
	{ "--password=abc", "--password=[redacted]" },
	{ "--password -x", NULL },
	{ "--password-stdin registry", NULL },
	{ "--password-file /run/x", NULL },
	{ "PWD=/home/me OLDPWD=/", NULL },
	{ "max_tokens: 1024", NULL },
	{ "refresh_tokens: abcdefghijkl", "refresh_tokens: [redacted]" },
	{ "PASSWORD= make", NULL },
	{ "the password is lost", NULL },
	{ "a token is a word", NULL },
	{ "secret://host/x", NULL },
	/* headers */
	{ "-H 'Authorization: Bearer abc.def' -v", "-H 'Authorization: Bearer [redacted]' -v" },
	{ "Authorization: abc def\nHost: x", "Authorization: [redacted]\nHost: x" },
	{ "cookie: a=b; c=d\r\nx", "cookie: [redacted]\r\nx" },
	{ "X-Api-Key: 1234", "X-Api-Key: [redacted]" },
	{ "got Bearer abcdef123456 here", "got Bearer [redacted] here" },
	{ "Basic authentication is on", NULL },
	{ "Basic dXNlcjpwYXNz=", "Basic [redacted]" },
	/* forms */
	{ "x ghp_0123456789abcdefghij y", "x ghp_[redacted] y" },
	{ "sk-ant-api03-abcdefghijklmnop", "sk-[redacted]" },
	{ "AKIAIOSFODNN7EXAMPLE", "AKIA[redacted]" },
	{ "xoxb-123456789012-abc", "xoxb-[redacted]" },
	{ "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc-_x", "eyJ[redacted]" },
	{ "task-0123456789abcdefghijklmn", NULL },
	{ "0123456789abcdef0123456789abcdef01234567", NULL },
	{ "-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----\nx",
	  "-----BEGIN [redacted]\nx" },
	{ "-----BEGIN CERTIFICATE-----\nabc", NULL },
	{ "-----BEGIN PRIVATE KEY-----\ncut", "-----BEGIN [redacted]" },
	/* commands */
	{ "curl -u me:pw https://h", "curl -u me:[redacted] https://h" },
	{ "curl --user 'me:p w' h", "curl --user 'me:[redacted]' h" },
	{ "sort -u a:b", NULL },
	{ "npm install left-pad@1.3.0 --save", NULL },
	{ "", NULL },
};

static void test_texts(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(BUF_MAX_TEXT), again = BUF_INIT(BUF_MAX_TEXT);

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		const char *want = texts[i].out ? texts[i].out : texts[i].in;

		assert_string_equal(clean(&b, texts[i].in), want);
		/* what is clean stays as it is */
		assert_string_equal(clean(&again, buf_str(&b)), want);
	}
}

#define WORDS_MAX 8

/* Words with | between them. */
static void check_words(const char *in, const char *want)
{
	_cleanup_buf_ struct buf b = BUF_INIT(BUF_MAX_TEXT);
	char text[256], *argv[WORDS_MAX + 1] = { NULL }, *rest = text;
	size_t n = 0;

	text_copy(text, sizeof(text), in);
	while (rest && n < WORDS_MAX)
		argv[n++] = strsep(&rest, "|");
	for (size_t i = 0; i < n; i++) {
		if (i)
			buf_putc(&b, '|');
		redact_argument(argv, i, &b);
	}
	assert_string_equal(buf_str(&b), want);
}

static void test_words(void **state)
{
	(void)state;
	check_words("x|--password|a b|c", "x|--password|[redacted]|c");
	check_words("x|--password|--verbose", "x|--password|--verbose");
	check_words("env|API_TOKEN=a;b(c) d|ls", "env|API_TOKEN=[redacted]|ls");
	check_words("/usr/bin/mysql|-psecret|db", "/usr/bin/mysql|-p[redacted]|db");
	check_words("mkdir|-pv|db", "mkdir|-pv|db");
	check_words("sshpass|-p|x y|ssh", "sshpass|-p|[redacted]|ssh");
	check_words("env|A=1|curl|-u|me:x:y", "env|A=1|curl|-u|me:[redacted]");
	check_words("curl|-H|Authorization: Bearer x|h",
		    "curl|-H|Authorization: Bearer [redacted]|h");
	check_words("sh|-c|TOKEN=abc make && echo ok", "sh|-c|TOKEN=[redacted] make && echo ok");
}

static void test_json(void **state)
{
	static const struct {
		const char *in, *out;
	} cases[] = {
		{ "{\"password\":\"a\\\"b\",\"n\":12345678901234567890123}",
		  "{\"password\":\"[redacted]\",\"n\":12345678901234567890123}" },
		{ "{\"pass\\u0077ord\" : \"x\"}", "{\"password\":\"[redacted]\"}" },
		{ "{\"auth\":{\"user\":\"u\",\"n\":[1,\"x\",true,null]}}",
		  "{\"auth\":{\"user\":\"[redacted]\",\"n\":[\"[redacted]\",\"[redacted]\",true,"
		  "null]}}" },
		{ "[\"https://u:p@h\", {\"cmd\":\"TOKEN=abc\"}]",
		  "[\"https://u:[redacted]@h\",{\"cmd\":\"TOKEN=[redacted]\"}]" },
		{ "{\"token\":\"\"}", "{\"token\":\"\"}" },
		{ "{\"max_tokens\":100}", "{\"max_tokens\":100}" },
		{ "\"AKIAIOSFODNN7EXAMPLE\"", "\"AKIA[redacted]\"" },
		{ " {} ", "{}" },
	};
	_cleanup_buf_ struct buf b = BUF_INIT(BUF_MAX_TEXT);

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		buf_done(&b);
		assert_int_equal(redact_json(cases[i].in, strlen(cases[i].in), &b), 0);
		assert_string_equal(buf_str(&b), cases[i].out);
	}
	buf_done(&b);
	assert_int_equal(redact_json("{", 1, &b), -22);
	assert_int_equal(b.len, 0);
}

/* Texts in which a match may begin everywhere; each took many seconds once, now a part of one. */
static void test_takes_no_long(void **state)
{
	static const char *const parts[] = { "://",         "://a:b/", "eyJ-",   "-u ",
					     "-----BEGIN ", "token=",  "basic ", "password: " };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		_cleanup_buf_ struct buf in = BUF_INIT(BUF_MAX_TEXT), out = BUF_INIT(BUF_MAX_TEXT);
		clock_t start = clock();

		while (in.len < (size_t)128 << 10)
			buf_puts(&in, parts[i]);
		redact_text(in.data, in.len, &out);
		assert_true(clock() - start < (clock_t)4 * CLOCKS_PER_SEC);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_texts),
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_json),
		cmocka_unit_test(test_takes_no_long),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
