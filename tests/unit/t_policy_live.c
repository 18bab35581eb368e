/* SPDX-License-Identifier: Apache-2.0 */
/* Another settings text while the command runs: which lists come out, what is refused. */
#include "policy/schema.h"
#include "policy_fixture.h"

static const struct policy *change(struct fixture *f, const char *text)
{
	const struct live_text line = { .name = "line", .text = text, .len = strlen(text) };
	const struct policy *p = NULL;

	memset(&f->e, 0, sizeof(f->e));
	if (policy_load_live(f->a, &f->in, f->p, &line, &p, &f->e) < 0)
		fail_msg("%s", f->e.text);
	return p;
}

static void refused(struct fixture *f, const char *text, const char *want)
{
	const struct live_text line = { .name = "line", .text = text, .len = strlen(text) };
	const struct policy *p = f->p;

	memset(&f->e, 0, sizeof(f->e));
	assert_true(policy_load_live(f->a, &f->in, f->p, &line, &p, &f->e) < 0);
	assert_string_equal(f->e.text, want);
	assert_ptr_equal(p, f->p);
}

/* The entries of a list, in order, separated by blanks. */
static const char *texts(struct fixture *f, const struct host_rules *list)
{
	char *all = arena_strdup(f->a, "");

	for (size_t i = 0; i < list->n; i++)
		all = arena_printf(f->a, "%s%s%s", all, i ? " " : "", list->v[i].text);
	return all;
}

/* The lines of the whole stream are counted, whoever finds the mistake. */
static void test_lines_are_counted(void **state)
{
	static const struct {
		const char *text, *want;
	} cases[] = {
		{ "{\"network\": [", "line:8:14: did not find expected node" },
		{ "{\"network\": {\"mode\": \"host\"}}", "line:8:22: network.mode cannot change" },
		{ "{\"network\": {\"allowedDomain\": []}}", "line:8:14: network.allowedDomain" },
		{ "[]", "line:8:1: settings must be" },
		{ "\xff", "line:8:1: " },
	};
	struct fixture *f = *state;

	fixture_user(f, "network: {allowedDomains: [a.example]}");
	fixture_load(f);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const struct live_text line = { "line", cases[i].text, strlen(cases[i].text), 7 };
		const struct policy *p = f->p;

		memset(&f->e, 0, sizeof(f->e));
		assert_true(policy_load_live(f->a, &f->in, f->p, &line, &p, &f->e) < 0);
		assert_true(text_starts(f->e.text, cases[i].want));
	}
}

static void test_lists_of_files_are_replaced(void **state)
{
	struct fixture *f = *state;
	const struct policy *p;

	fixture_managed(f, "network: {deniedDomains: [bad.example]}");
	fixture_user(f, "network: {allowedDomains: [a.example], deniedDomains: [x.example]}\n"
			"limits: {pids: 9}");
	fixture_option(f, "network.allowedDomains", "o.example");
	fixture_load(f);
	p = change(f, "{\"network\": {\"allowedDomains\": [\"b.example\"], "
		      "\"deniedResolvedAddresses\": [\"10.0.0.0/8\"]}}");
	assert_string_equal(texts(f, &p->network.allowed), "o.example b.example");
	assert_string_equal(texts(f, &p->network.denied), "bad.example");
	assert_int_equal(p->network.denied_resolved.n, 1);
	assert_int_equal(p->limits.pids, 9);
	assert_string_equal(origin_text(f->a, &p->network.allowed.v[1].origin), "line:1");
	/* always from the start, never from the line before */
	p = change(f, "{}");
	assert_string_equal(texts(f, &p->network.allowed), "o.example");
	/* and the start is what it was */
	assert_string_equal(texts(f, &f->p->network.allowed), "a.example o.example");
}

static void test_files_of_options_are_not_read_again(void **state)
{
	struct fixture *f = *state;
	const struct policy *p;

	f->in.profile_dir = fixture_mkdir(f, "profiles");
	fixture_write(f, "profiles/mine.json",
		      "{\"network\": {\"allowedDomains\": [\"p.example\"]}}");
	fixture_write(f, "home/proj/list", "a.example\n");
	fixture_option(f, "network.allowedDomains", "@list");
	fixture_option(f, "profiles", "mine");
	fixture_load(f);
	/* the command could have done this */
	fixture_write(f, "home/proj/list", "evil.example\n");
	fixture_write(f, "profiles/mine.json",
		      "{\"network\": {\"allowedDomains\": [\"evil.example\"]}}");
	p = change(f, "{\"network\": {\"allowedDomains\": [\"b.example\"]}}");
	assert_string_equal(texts(f, &p->network.allowed), "p.example a.example b.example");
}

static void test_other_keys_are_refused_by_name(void **state)
{
	struct fixture *f = *state;

	fixture_only(f, "{\"network\": {\"allowedDomains\": [\"a.example\"]},"
			" \"filesystem\": {\"allowWrite\": [\".\"], \"denyRead\": [\"/x\"]},"
			" \"limits\": {\"pids\": 9}}");
	fixture_load(f);
	/* the whole of it again, and parts of it */
	(void)change(f, "{\"network\": {\"allowedDomains\": []},"
			" \"filesystem\": {\"allowWrite\": [\".\"], \"denyRead\": [\"/x\"]},"
			" \"limits\": {\"pids\": 9}}");
	(void)change(f, "{\"filesystem\": {\"denyRead\": [\"/x\"]}, \"limits\": {}}");
	refused(f, "{\"filesystem\": {\"denyRead\": [\"/x\", \"/y\"]}}",
		"line:1:29: filesystem.denyRead cannot change while the command runs");
	refused(f, "{\"filesystem\": {\"denyRead\": []}}",
		"line:1:29: filesystem.denyRead cannot change while the command runs");
	refused(f, "{\"limits\": {\"pids\": 10}}",
		"line:1:21: limits.pids cannot change while the command runs");
	refused(f, "{\"network\": {\"allowPrivateAddresses\": true}}",
		"line:1:39: network.allowPrivateAddresses cannot change while the command runs");
	refused(f, "{\"network\": {\"mode\": \"host\"}}",
		"line:1:22: network.mode cannot change while the command runs");
	refused(f, "{\"network\": {\"alowedDomains\": []}}",
		"line:1:14: network.alowedDomains: unknown key (did you mean "
		"\"network.allowedDomains\"?)");
	refused(f, "{\"network\": {\"allowedDomains\": [\"http://a\"]}}",
		"line:1:33: network.allowedDomains: a URL: write only the host name");
}

static void test_options_stand_above_the_line(void **state)
{
	struct fixture *f = *state;

	fixture_only(f, "{\"limits\": {\"pids\": 9}, \"network\": {\"mode\": \"allowlist\"}}");
	fixture_option(f, "limits.pids", "5");
	fixture_load(f);
	assert_int_equal(change(f, "{\"limits\": {\"pids\": 9}}")->limits.pids, 5);
}

static void test_managed_locks_hold(void **state)
{
	struct fixture *f = *state;
	const struct policy *p;

	fixture_managed(f, "locked: [network.allowedDomains]\n"
			   "network: {allowedDomains: [m.example], deniedDomains: [bad.example]}");
	fixture_load(f);
	p = change(f, "{\"network\": {\"allowedDomains\": [\"b.example\"], "
		      "\"deniedDomains\": [\"c.example\"]}}");
	assert_string_equal(texts(f, &p->network.allowed), "m.example");
	assert_string_equal(texts(f, &p->network.denied), "bad.example c.example");
	assert_int_equal(p->notes.n, 1);
	assert_non_null(strstr(p->notes.v[0].text, "is fixed by the managed settings"));
}

static void test_no_network_stays_none(void **state)
{
	struct fixture *f = *state;

	fixture_option(f, "network.mode", "none");
	f->in.live_network = true;
	fixture_load(f);
	refused(f, "{\"network\": {\"allowedDomains\": [\"b.example\"]}}",
		"line: network.mode is none for the whole run (--option): there are no lists to "
		"change");
}

static void test_an_empty_list_can_be_filled(void **state)
{
	struct fixture *f = *state;

	fixture_load(f);
	assert_int_equal(f->p->network.mode, NETWORK_NONE);
	f->in.live_network = true;
	fixture_load(f);
	assert_int_equal(f->p->network.mode, NETWORK_ALLOWLIST);
	assert_int_equal(change(f, "{\"network\": {\"allowedDomains\": [\"b.example\"]}}")
				 ->network.allowed.n,
			 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		policy_test(test_lines_are_counted),
		policy_test(test_lists_of_files_are_replaced),
		policy_test(test_files_of_options_are_not_read_again),
		policy_test(test_other_keys_are_refused_by_name),
		policy_test(test_options_stand_above_the_line),
		policy_test(test_managed_locks_hold),
		policy_test(test_no_network_stays_none),
		policy_test(test_an_empty_list_can_be_filled),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
