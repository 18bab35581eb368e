/* SPDX-License-Identifier: Apache-2.0 */
/* One more entry for a list in a settings file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/macros.h"
#include "policy/amend.h"

static const struct amendment what = { .group = "network",
				       .list = "allowedDomains",
				       .entry = "new.test" };

static const struct {
	const char *before, *after;
} cases[] = {
	{ "", "\"network\":\n  \"allowedDomains\": [\"new.test\"]\n" },
	{ "{}", "{\n  \"network\": { \"allowedDomains\": [\"new.test\"] }\n}" },
	{ "// mine\n{ \"enabled\": true }\n", "// mine\n{\n  \"network\": { \"allowedDomains\": "
					      "[\"new.test\"] }, \"enabled\": true }\n" },
	{ "{\"network\": {}}", "{\"network\": {\"allowedDomains\": [\"new.test\"]}}" },
	{ "{\"network\": {\"mode\": \"none\"}}",
	  "{\"network\": { \"allowedDomains\": [\"new.test\"],\"mode\": \"none\"}}" },
	{ "{\"network\": {\"allowedDomains\": []}}",
	  "{\"network\": {\"allowedDomains\": [\"new.test\"]}}" },
	{ "{\"network\": {\"allowedDomains\": [\"a\", // first\n \"b\"]}}",
	  "{\"network\": {\"allowedDomains\": [\"new.test\", \"a\", // first\n \"b\"]}}" },
	{ "{\"filesystem\": {\"allowWrite\": [\"\xc3\xa4\xc3\xb6\"]}, \"network\": "
	  "{\"allowedDomains\": [\"a\"]}}",
	  "{\"filesystem\": {\"allowWrite\": [\"\xc3\xa4\xc3\xb6\"]}, \"network\": "
	  "{\"allowedDomains\": [\"new.test\", \"a\"]}}" },
	{ "network: {allowedDomains: [ a ]}\n",
	  "network: {allowedDomains: [ \"new.test\", a ]}\n" },
	{ "{\"network\": {\"allowedDomains\": [\n  \"a\"\n]}}",
	  "{\"network\": {\"allowedDomains\": [\n  \"new.test\",\n  \"a\"\n]}}" },
	{ "enabled: true # on",
	  "enabled: true # on\n\"network\":\n  \"allowedDomains\": [\"new.test\"]\n" },
	{ "network:\n  mode: allowlist\n",
	  "network:\n  \"allowedDomains\": [\"new.test\"]\n  mode: allowlist\n" },
	{ "network:\n  allowedDomains:\n    - a # one\n    - b\n",
	  "network:\n  allowedDomains:\n    - \"new.test\"\n    - a # one\n    - b\n" },
	{ "network:\n  allowedDomains:\n  - a\n",
	  "network:\n  allowedDomains:\n  - \"new.test\"\n  - a\n" },
	{ "network: {allowedDomains: [new.test]}\n", "network: {allowedDomains: [new.test]}\n" },
};

static void test_cases(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		_cleanup_buf_ struct buf out = BUF_INIT(BUF_MAX_TEXT);
		struct error e = { 0 };

		assert_int_equal(
			amend_text("f", cases[i].before, strlen(cases[i].before), &what, &out, &e),
			0);
		assert_string_equal(buf_str(&out), cases[i].after);
	}
}

static void test_what_cannot_be_amended(void **state)
{
	static const char *const texts[] = {
		"network:\n", /* no place to put it */
		"network:\n  allowedDomains:\n",
		"network: none\n",
		"{\"network\": {\"allowedDomains\": \"a\"}}",
		"{ \"enabled\": ", /* not a settings file at all */
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		_cleanup_buf_ struct buf out = BUF_INIT(BUF_MAX_TEXT);
		struct error e = { 0 };

		assert_true(amend_text("f", texts[i], strlen(texts[i]), &what, &out, &e) < 0);
		assert_true(e.text[0] && out.len == 0);
	}
}

static void test_entry_is_quoted(void **state)
{
	const struct amendment odd = { .group = "network",
				       .list = "allowedDomains",
				       .entry = "a\"], \"enabled\": false" };
	_cleanup_buf_ struct buf out = BUF_INIT(BUF_MAX_TEXT);
	struct error e = { 0 };

	(void)state;
	assert_int_equal(amend_text("f", "{}", 2, &odd, &out, &e), 0);
	assert_non_null(strstr(buf_str(&out), "[\"a\\\"], \\\"enabled\\\": false\"]"));
}

/* With a comment each entry has a line of its own, where the layout allows it. */
static void test_comment(void **state)
{
	static const struct {
		const char *before, *after;
	} texts[] = {
		{ "", "\"network\":\n  \"publish\":\n    - 80 # why\n" },
		{ "network:\n  mode: none\n",
		  "network:\n  \"publish\":\n    - 80 # why\n  mode: none\n" },
		{ "network:\n  publish:\n    - 1\n",
		  "network:\n  publish:\n    - 80 # why\n    - 1\n" },
		{ "{\"network\": {\"publish\": [1]}}", "{\"network\": {\"publish\": [80, // why\n"
						       "                         1]}}" },
		{ "{\"network\": {\"publish\": []}}", "{\"network\": {\"publish\": [80 // why\n"
						      "                        ]}}" },
		{ "{\n  \"network\": {\n    \"publish\": [\n      1\n    ]\n  }\n}\n",
		  "{\n  \"network\": {\n    \"publish\": [\n      80, // why\n      1\n    ]\n  "
		  "}\n}\n" },
		{ "network:\n  publish: [ 1, 2 ]\n",
		  "network:\n  publish: [ 80, # why\n             1, 2 ]\n" },
		{ "network: {publish: []}\n",
		  "network: {publish: [80 # why\n                   ]}\n" },
		{ "{\"network\": {\"mode\": \"none\"}}",
		  "{\"network\": { \"publish\": [80], // why\n            \"mode\": \"none\"}}" },
		{ "{\n  \"enabled\": true\n}\n",
		  "{\n  \"network\": { \"publish\": [80] }, // why\n  \"enabled\": true\n}\n" },
		{ "{}\n", "{\n  \"network\": { \"publish\": [80] } // why\n}\n" },
	};
	const struct amendment port = { .group = "network",
					.list = "publish",
					.entry = "80",
					.comment = "why",
					.number = true };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		_cleanup_buf_ struct buf out = BUF_INIT(BUF_MAX_TEXT);
		struct error e = { 0 };

		assert_int_equal(
			amend_text("f", texts[i].before, strlen(texts[i].before), &port, &out, &e),
			0);
		assert_string_equal(buf_str(&out), texts[i].after);
	}
}

static void test_value(void **state)
{
	static const struct {
		const char *before, *after;
	} texts[] = {
		{ "", "\"limits\":\n  \"memory\": \"1g\" # why\n" },
		{ "limits:\n  memory: 512m # old\n  pids: 3\n",
		  "limits:\n  memory: \"1g\" # old\n  pids: 3\n" },
		{ "limits: {memory: '5 # m', pids: 3}\n", "limits: {memory: \"1g\", pids: 3}\n" },
		{ "{\"limits\": {\"memory\": \"a\\\"b\"}}", "{\"limits\": {\"memory\": \"1g\"}}" },
		{ "limits:\n  pids: 3\n", "limits:\n  \"memory\": \"1g\" # why\n  pids: 3\n" },
		{ "limits: {memory: 1g}\n", "limits: {memory: 1g}\n" },
	};
	const struct amendment memory = {
		.group = "limits", .list = "memory", .entry = "1g", .comment = "why"
	};
	_cleanup_buf_ struct buf out = BUF_INIT(BUF_MAX_TEXT);
	struct error e = { 0 };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		buf_done(&out);
		assert_int_equal(amend_value("f", texts[i].before, strlen(texts[i].before), &memory,
					     &out, &e),
				 0);
		assert_string_equal(buf_str(&out), texts[i].after);
	}
	buf_done(&out);
	assert_true(amend_value("f", "limits: {memory: [1]}", 21, &memory, &out, &e) < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cases),
		cmocka_unit_test(test_what_cannot_be_amended),
		cmocka_unit_test(test_entry_is_quoted),
		cmocka_unit_test(test_comment),
		cmocka_unit_test(test_value),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
