/* SPDX-License-Identifier: Apache-2.0 */
/* The proxy's configuration and decisions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "proxy/decide.h"

static struct config *load(const char *text)
{
	struct config *c = NULL;
	struct error e = { 0 };

	if (config_parse(text, strlen(text), &c, &e) < 0)
		fail_msg("%s", e.text);
	return c;
}

static struct host host(const char *text)
{
	struct host h;

	if (host_parse(text, strlen(text), &h, NULL) < 0)
		fail_msg("not a host: %s", text);
	return h;
}

static bool allows(const struct config *c, const char *name, uint16_t port)
{
	struct host h = host(name);
	struct verdict v;

	decide_host(c, &h, port, &v);
	assert_true(v.rule[0] != '\0' && v.allow == (v.reason[0] == '\0'));
	return v.allow;
}

static void test_config_errors(void **state UNUSED)
{
	static const char *const bad[] = {
		"nonsense 1\n",
		"allow\n",
		"allow *\n", /* only a deny list may hold everything */
		"allow http://a.test\n",
		"allow a.test\nallow *.com\n",
		"private yes\n",
		"private 2\n",
		"denyAddress a.test\n",
		"hosts a.test\n",
		"hosts a.test=b.test\n",
		"hosts =1.2.3.4\n",
		"parentHttp https://proxy.test\n",
		"parentHttp socks5://proxy.test:1080\n",
		"parentHttp http://proxy.test/path\n",
		"parentHttp http://:80\n",
		"Allow a.test\n",
	};
	struct config untouched, *c = &untouched;
	struct error e = { 0 };

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		if (config_parse(bad[i], strlen(bad[i]), &c, &e) != -EINVAL)
			fail_msg("accepted: %s", bad[i]);
		assert_ptr_equal(c, &untouched);
		assert_non_null(strstr(e.text, "line "));
	}
	assert_int_equal(config_parse("allow a.test\0.evil\n", 19, &c, &e), -EINVAL);
}

static void test_lists(void **state UNUSED)
{
	struct config *c = load("allow a.test\nallow *.b.test:443\nallow 10.0.0.0/8\n"
				"deny x.b.test\ndeny *:25\n\nallow xn--bcher-kva.de");

	assert_true(allows(c, "A.TEST.", 1));
	assert_false(allows(c, "sub.a.test", 1));
	assert_false(allows(c, "a.test.evil", 1));
	assert_false(allows(c, "a.test", 25)); /* deny before allow */
	assert_true(allows(c, "y.b.test", 443));
	assert_false(allows(c, "y.b.test", 80));
	assert_false(allows(c, "b.test", 443));
	assert_false(allows(c, "x.b.test", 443));
	assert_true(allows(c, "10.1.2.3", 80));
	assert_true(allows(c, "0xa010203", 80));
	assert_false(allows(c, "11.1.2.3", 80));
	assert_true(allows(c,
			   "b\xc3\xbc"
			   "cher.de",
			   80));
	config_free(c);
	c = load("");
	assert_false(allows(c, "a.test", 80));
	assert_false(allows(c, "127.0.0.1", 80));
	assert_true(c->require_sni && !c->allow_private);
	config_free(c);
}

/* A wide network does not mean the machine itself, or its neighbours. */
static void test_literals_of_special_classes(void **state UNUSED)
{
	struct config *c =
		load("allow 0.0.0.0/0\nallow ::/0\nallow 192.168.0.0/16\nallow 127.0.0.2\n"
		     "allow 169.254.0.0/16\n");

	assert_true(allows(c, "8.8.8.8", 53));
	assert_true(allows(c, "2606:4700::1", 53));
	assert_true(allows(c, "192.168.1.1", 80));
	assert_true(allows(c, "127.0.0.2", 80));
	assert_false(allows(c, "127.0.0.1", 80));
	assert_false(allows(c, "0.0.0.0", 80));
	assert_false(allows(c, "10.0.0.1", 80));
	assert_false(allows(c, "::1", 80));
	assert_false(allows(c, "::ffff:127.0.0.1", 80));
	assert_false(allows(c, "64:ff9b::7f00:1", 80));
	assert_false(allows(c, "fd00::1", 80));
	assert_true(allows(c, "169.254.1.1", 80));
	assert_false(allows(c, "169.254.169.254", 80)); /* metadata: only by its own rule */
	config_free(c);
	c = load("allow 169.254.169.254\n");
	assert_true(allows(c, "169.254.169.254", 80));
	config_free(c);
}

static bool dials(const struct config *c, const char *name, const char *address, uint16_t port)
{
	struct host own_host = host("93.184.216.34"), h = host(name), a = host(address);
	struct own_addresses own = { &own_host, 1 };
	struct verdict v;

	decide_address(c, &own, &h, &a, port, &v);
	return v.allow;
}

static void test_addresses_of_names(void **state UNUSED)
{
	static const char *const special[] = {
		"127.0.0.1",       "10.0.0.1",      "192.168.1.1", "169.254.1.1",
		"169.254.169.254", "0.0.0.0",       "::1",         "fd00::1",
		"fe80::1",         "100.64.0.1",    "224.0.0.1",   "255.255.255.255",
		"64:ff9b::a00:1",  "2002:7f00:1::", "::",
	};
	struct config *c = load("allow a.test\ndenyAddress 8.8.8.0/24\ndeny 9.9.9.9\n");

	assert_true(dials(c, "a.test", "8.8.4.4", 80));
	assert_false(dials(c, "a.test", "8.8.8.8", 80));
	assert_false(dials(c, "a.test", "9.9.9.9", 80));
	assert_false(dials(c, "a.test", "93.184.216.34", 80)); /* this machine's own */
	for (size_t i = 0; i < ARRAY_LEN(special); i++) {
		if (dials(c, "a.test", special[i], 80))
			fail_msg("dials %s", special[i]);
	}
	assert_true(dials(c, "localhost", "127.0.0.1", 80));
	assert_true(dials(c, "x.localhost", "::1", 80));
	assert_false(dials(c, "localhost", "10.0.0.1", 80));
	config_free(c);

	c = load("allow a.test\nallow 10.1.2.3:80\nprivate 0\n");
	assert_true(dials(c, "a.test", "10.1.2.3", 80)); /* allowed as an address too */
	assert_false(dials(c, "a.test", "10.1.2.3", 81));
	config_free(c);

	c = load("allow a.test\nprivate 1\ndenyAddress 10.9.0.0/16\n");
	assert_true(dials(c, "a.test", "10.1.2.3", 80));
	assert_true(dials(c, "a.test", "127.0.0.1", 80));
	assert_true(dials(c, "a.test", "93.184.216.34", 80));
	assert_false(dials(c, "a.test", "10.9.2.3", 80));
	assert_false(dials(c, "a.test", "169.254.169.254", 80));
	assert_false(dials(c, "a.test", "fd00:ec2::254", 80));
	assert_false(dials(c, "a.test", "0.0.0.0", 80));
	config_free(c);
}

static void test_names_for_the_resolver(void **state UNUSED)
{
	struct config *c =
		load("allow *.a.test:443\nallow b.test\ndeny no.a.test\ndeny b.test:25\n");
	static const struct {
		const char *name;
		bool known;
	} cases[] = {
		{ "x.a.test", true }, { "a.test", false },     { "no.a.test", false },
		{ "b.test", true },   { "sub.b.test", false }, { "localhost", false },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct host h = host(cases[i].name);
		struct verdict v;

		assert_int_equal(decide_name(c, &h, &v), cases[i].known);
	}
	config_free(c);
}

static bool goes_direct(const struct config *c, const char *name, uint16_t port)
{
	struct host h = host(name);

	return decide_parent(c, &h, port, true) == NULL;
}

static void test_parent(void **state UNUSED)
{
	struct config *c =
		load("parentHttp http://u%73er:p%40:s@proxy.test:3128/\n"
		     "noProxy intern.test,.dot.test *.star.test, 10.0.0.0/8,p.test:8080,,\n");
	struct host h = host("a.test");

	assert_string_equal(c->parent_http.host.name, "proxy.test");
	assert_int_equal(c->parent_http.port, 3128);
	assert_string_equal(c->parent_http.authorization, "Basic dXNlcjpwQDpz");
	assert_null(decide_parent(c, &h, 443, false)); /* only the other one is set */
	assert_false(goes_direct(c, "a.test", 80));
	assert_true(goes_direct(c, "intern.test", 80));
	assert_true(goes_direct(c, "x.intern.test", 80));
	assert_false(goes_direct(c, "xintern.test", 80));
	assert_true(goes_direct(c, "x.dot.test", 80));
	assert_true(goes_direct(c, "a.b.star.test", 80));
	assert_true(goes_direct(c, "10.2.3.4", 80));
	assert_false(goes_direct(c, "11.2.3.4", 80));
	assert_true(goes_direct(c, "p.test", 8080));
	assert_false(goes_direct(c, "p.test", 80));
	assert_true(goes_direct(c, "localhost", 80));
	assert_true(goes_direct(c, "127.0.0.1", 80));
	config_free(c);
	c = load("parentHttp http://us%65r@proxy.test\n");
	assert_string_equal(c->parent_http.authorization, "Basic dXNlcjo="); /* "user:" */
	config_free(c);
	c = load("parentHttp proxy.test:1\nnoProxy *\n");
	assert_true(goes_direct(c, "a.test", 80));
	config_free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_config_errors),
		cmocka_unit_test(test_lists),
		cmocka_unit_test(test_literals_of_special_classes),
		cmocka_unit_test(test_addresses_of_names),
		cmocka_unit_test(test_names_for_the_resolver),
		cmocka_unit_test(test_parent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
