/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/json_read.h"

static void test_valid(void **state)
{
	static const char *const valid[] = {
		"{}",
		"[]",
		" 1 ",
		"-0.5e+10",
		"\"\"",
		"true",
		"null",
		"[1, 2]",
		"{\"a\":1}",
		"{ \"a\" : [ { } ] }",
		"0",
		"\"\\u00e9\\n\\\"\"",
		"\"\xc3\xa9\"",
		"1E5",
	};
	static const char *const invalid[] = {
		"",     "{",     "[1,]",   "{\"a\"}", "{a:1}",     "01",       "1.",
		"+1",   "-",     "\"\n\"", "\"\\x\"", "\"\\u12\"", "\"abc",    "tru",
		"nul",  "[1 2]", "{} x",   "1 2",     "'a'",       "\"\xff\"", "{\"a\":1,}",
		"[,1]", "\"\\",  ".5",     "1e",      "nan",
	};
	struct json_span v;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(valid); i++)
		assert_int_equal(json_parse(valid[i], strlen(valid[i]), &v), 0);
	for (size_t i = 0; i < ARRAY_LEN(invalid); i++)
		assert_int_equal(json_parse(invalid[i], strlen(invalid[i]), &v), -EINVAL);
}

static void test_depth(void **state)
{
	char text[2 * JSON_DEPTH_MAX + 8];
	struct json_span v;

	(void)state;
	memset(text, '[', JSON_DEPTH_MAX + 1);
	memset(text + JSON_DEPTH_MAX + 1, ']', JSON_DEPTH_MAX + 1);
	assert_int_equal(json_parse(text, 2 * (JSON_DEPTH_MAX + 1), &v), 0);
	memset(text, '[', JSON_DEPTH_MAX + 2);
	memset(text + JSON_DEPTH_MAX + 2, ']', JSON_DEPTH_MAX + 2);
	assert_int_equal(json_parse(text, 2 * (JSON_DEPTH_MAX + 2), &v), -EINVAL);
}

static void test_walk(void **state)
{
	static const char text[] =
		" { \"a\" : \"x,}]\\\"\" , \"b\" : [1 , {\"c\":2}] ,\"n\":42, \"\\u0061b\":null } ";
	struct json_span v, key, m;
	struct json_walk w;
	uint64_t n;

	(void)state;
	assert_int_equal(json_parse(text, strlen(text), &v), 0);
	assert_int_equal(v.kind, JSON_OBJECT);
	assert_true(json_find(&v, "a", &m));
	assert_true(json_equals(&m, "x,}]\""));
	assert_true(json_find(&v, "b", &m));
	assert_int_equal(m.kind, JSON_ARRAY);
	w = json_walk(&m);
	assert_true(json_next_member(&w, NULL, &key));
	assert_int_equal(key.len, 1);
	assert_true(json_next_member(&w, NULL, &key));
	assert_int_equal(key.kind, JSON_OBJECT);
	assert_int_equal(key.len, strlen("{\"c\":2}"));
	assert_false(json_next_member(&w, NULL, &key));
	assert_true(json_find(&v, "n", &m));
	assert_int_equal(json_to_u64(&m, UINT64_MAX, &n), 0);
	assert_int_equal(n, 42);
	assert_int_equal(json_to_u64(&m, 41, &n), -ERANGE);
	assert_true(json_find(&v, "ab", &m));
	assert_int_equal(m.kind, JSON_NULL);
	assert_false(json_find(&v, "c", &m));
	assert_int_equal(json_parse("[]", 2, &v), 0);
	w = json_walk(&v);
	assert_false(json_next_member(&w, &key, &m));
	assert_false(json_find(&v, "a", &m));
}

static void test_unquote(void **state)
{
	static const struct {
		const char *in, *out;
	} cases[] = {
		{ "\"\\b\\f\\n\\r\\t\\/\\\\\\\"\"", "\b\f\n\r\t/\\\"" },
		{ "\"\\u00e9\\u20ac\\ud83d\\ude00\"", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80" },
		{ "\"\\ud83d\"", "\xef\xbf\xbd" },
		{ "\"\\ud83d\\u0041\"", "\xef\xbf\xbd"
					"A" },
		{ "\"a\\u0000b\"", "a\xef\xbf\xbd"
				   "b" },
		{ "12", "12" },
	};
	_cleanup_buf_ struct buf b = BUF_INIT(BUF_MAX_TEXT);
	struct json_span v;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		buf_done(&b);
		assert_int_equal(json_parse(cases[i].in, strlen(cases[i].in), &v), 0);
		json_unquote(&v, &b);
		assert_string_equal(buf_str(&b), cases[i].out);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_valid),
		cmocka_unit_test(test_depth),
		cmocka_unit_test(test_walk),
		cmocka_unit_test(test_unquote),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
