/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Input: "outer rule\ninner rule\nhost", the host with any bytes. Besides the
 * sanitizers, what must hold for every input: a canonical name is a fixed
 * point; a name is nothing that a C library would read as an address, and an
 * address is what it reads; rules mean what covers() says about them.
 */
#include <arpa/inet.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "policy/match_host.h"

#define TEXT_MAX 1200

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
	if (!holds)
		abort();
}

static bool same_host(const struct host *a, const struct host *b)
{
	return a->kind == b->kind && memcmp(a->addr, b->addr, sizeof(a->addr)) == 0 &&
	       strcmp(a->name, b->name) == 0;
}

static void require_parses_to(const char *text, const struct host *expected)
{
	struct host h;

	require(host_parse(text, strlen(text), &h, NULL) == 0);
	require(same_host(&h, expected));
}

static void check_rule_of_host(const struct host *h)
{
	bool v6 = h->kind == HOST_IPV6;
	char text[TEXT_MAX];
	struct host_rule rule;

	(void)snprintf(text, sizeof(text), v6 ? "[%s]:443" : "%s:443", h->name);
	require(host_rule_parse(text, false, &rule, NULL) == 0);
	require(host_rule_matches(&rule, h, 443) && !host_rule_matches(&rule, h, 80));
	require(host_rule_covers(&rule, &rule));

	(void)snprintf(text, sizeof(text), "%s/%d", h->name, v6 ? 128 : 32);
	require((host_rule_parse(text, false, &rule, NULL) == 0) == (h->kind != HOST_NAME));
	require(h->kind == HOST_NAME || host_rule_matches(&rule, h, 1));

	(void)snprintf(text, sizeof(text), "*.%s", h->name);
	if (host_rule_parse(text, false, &rule, NULL) < 0)
		return;
	require(h->kind == HOST_NAME && !host_rule_matches(&rule, h, 1));
	text[0] = 'x';
	if (strlen(text) <= HOST_NAME_MAX_LEN) {
		struct host below;

		require(host_parse(text, strlen(text), &below, NULL) == 0);
		require(host_rule_matches(&rule, &below, 1));
	}
}

static void check_name(const struct host *h)
{
	char text[TEXT_MAX];
	struct in6_addr addr;

	require(h->name[0] && strlen(h->name) <= HOST_NAME_MAX_LEN);
	require(h->name[strspn(h->name, "abcdefghijklmnopqrstuvwxyz0123456789-_.")] == '\0');
	require(!inet_aton(h->name, (struct in_addr *)&addr));
	require(inet_pton(AF_INET6, h->name, &addr) != 1);
	for (size_t i = 0; i <= strlen(h->name); i++)
		text[i] = h->name[i] >= 'a' && h->name[i] <= 'z' ? (char)(h->name[i] - 32)
								 : h->name[i];
	require_parses_to(text, h);
	(void)snprintf(text, sizeof(text), "%s.", h->name);
	require_parses_to(text, h);
}

/* What the C library takes for an address is that address for us. */
static void check_against_libc(const char *text, size_t len)
{
	struct host h, expected;
	struct in6_addr v6;
	struct in_addr v4;

	if (strlen(text) != len)
		return;
	if (inet_pton(AF_INET6, text, &v6) == 1) {
		host_from_addr(HOST_IPV6, v6.s6_addr, &expected);
		require_parses_to(text, &expected);
	}
	/* inet_aton() also takes labels of any length, and anything after a space: refused here */
	if (!inet_aton(text, &v4))
		return;
	host_from_addr(HOST_IPV4, (const uint8_t *)&v4.s_addr, &expected);
	if (host_parse(text, len, &h, NULL) == 0)
		require(same_host(&h, &expected));
	else
		require(len > HOST_LABEL_MAX_LEN || text[strcspn(text, " \t\n\v\f\r")]);
}

static void check_embedded(const struct host *h)
{
	struct host outer = { .kind = HOST_IPV6, .addr = { 0, 0x64, 0xff, 0x9b } };

	memcpy(outer.addr + 12, h->addr, 4);
	require(host_classify(&outer) == host_classify(h));
	outer = (struct host){ .kind = HOST_IPV6, .addr = { 0x20, 0x02 } };
	memcpy(outer.addr + 2, h->addr, 4);
	require(host_classify(&outer) == host_classify(h));
}

static void check_host(const struct host *h)
{
	require_parses_to(h->name, h);
	check_rule_of_host(h);
	(void)host_class_name(host_classify(h));
	if (h->kind == HOST_NAME)
		check_name(h);
	if (h->kind == HOST_IPV4)
		check_embedded(h);
}

static bool parse_rule(const char *text, struct host_rule *ret)
{
	struct error e = { 0 };
	struct host_rule strict;

	if (host_rule_parse(text, true, ret, &e) < 0) {
		require(e.code != 0 && e.text[0]);
		return false;
	}
	require(host_rule_covers(ret, ret));
	require((host_rule_parse(text, false, &strict, NULL) < 0) == (ret->type == HOST_RULE_ANY));
	if (ret->type == HOST_RULE_EXACT || ret->type == HOST_RULE_CIDR)
		require(host_rule_matches(ret, &ret->host, ret->port));
	return true;
}

/* One line of the input, NUL-terminated; returns what is left. */
static const uint8_t *take_line(const uint8_t *data, const uint8_t *end, char *ret, size_t *ret_len)
{
	const uint8_t *stop = memchr(data, '\n', (size_t)(end - data));

	if (!stop)
		stop = end;
	*ret_len = (size_t)(stop - data);
	memcpy(ret, data, *ret_len);
	ret[*ret_len] = '\0';
	return stop < end ? stop + 1 : end;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char line[3][TEXT_MAX + 1];
	const uint8_t *end = data + size;
	struct host_rule outer, inner;
	struct host h;
	size_t len;

	if (size > TEXT_MAX)
		return 0;
	data = take_line(data, end, line[0], &len);
	data = take_line(data, end, line[1], &len);
	len = (size_t)(end - data);
	memcpy(line[2], data, len);
	line[2][len] = '\0';

	check_against_libc(line[2], len);
	bool host_ok = host_parse(line[2], len, &h, NULL) == 0;
	if (host_ok)
		check_host(&h);
	bool outer_ok = parse_rule(line[0], &outer), inner_ok = parse_rule(line[1], &inner);
	if (host_ok && outer_ok && inner_ok && host_rule_covers(&outer, &inner) &&
	    host_rule_matches(&inner, &h, inner.port))
		require(host_rule_matches(&outer, &h, inner.port));
	return 0;
}
