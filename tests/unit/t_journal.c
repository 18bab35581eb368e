/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A run in the audit log: a command that does very much of one thing neither fills the log nor
 * keeps anything else out of it.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "supervise/egress_record.h"
#include "supervise/journal.h"
#include "supervise/report.h"
#include "supervise/session.h"

#define TEXT_MAX ((size_t)16 << 20)

struct world {
	char dir[64], path[96], head[96];
	struct audit *log;
	struct journal *j;
	struct report report;
};

static int set_up(void **state)
{
	struct world *w = calloc(1, sizeof(*w));
	const struct audit_config config = { .path = w->path };
	struct error e = { 0 };

	w->j = calloc(1, sizeof(*w->j));
	(void)strcpy(w->dir, "/dev/shm/ambit-journal-XXXXXX");
	if (!mkdtemp(w->dir))
		return -1;
	(void)snprintf(w->path, sizeof(w->path), "%s/log", w->dir);
	(void)snprintf(w->head, sizeof(w->head), "%s/log.head", w->dir);
	if (audit_open(&config, &w->log, &e) < 0)
		return -1;
	journal_init(w->j, w->log);
	*state = w;
	return 0;
}

static int tear_down(void **state)
{
	struct world *w = *state;

	audit_close(w->log);
	(void)unlink(w->path);
	(void)unlink(w->head);
	(void)rmdir(w->dir);
	free(w->j);
	free(w);
	return 0;
}

static void connect_to(struct world *w, const char *host, bool allow)
{
	struct egress_record r = { .kind = EGRESS_CONNECT, .port = 443, .allow = allow };

	(void)snprintf(r.host, sizeof(r.host), "%s", host);
	journal_decision(w->j, &r);
}

static size_t count(const char *text, const char *word)
{
	size_t n = 0;

	for (; (text = strstr(text, word)); text++)
		n++;
	return n;
}

/* Everything in it, at the end. */
static char *end(struct world *w)
{
	const struct run_result result = { .limit = -1 };
	char *text = NULL;

	journal_end(w->j, &result, &w->report, NULL);
	assert_int_equal(w->j->failed, 0);
	assert_int_equal(fd_read_file(AT_FDCWD, w->path, TEXT_MAX, &text, NULL), 0);
	return text;
}

static void test_flood_hides_nothing_else(void **state)
{
	struct world *w = *state;
	const struct report_entry entry = { .kind = "write",
					    .target = "/etc/hosts",
					    .rule = "",
					    .source = "",
					    .reason = "",
					    .process = "",
					    .count = 1 };
	_cleanup_free_ char *text = NULL;

	for (unsigned i = 0; i < 3 * JOURNAL_LINES_MAX; i++) {
		char host[32];

		(void)snprintf(host, sizeof(host), "h%u.test", i);
		connect_to(w, host, false);
	}
	connect_to(w, "allowed.test", true);
	journal_denied(w->j, &entry);
	journal_change(w->j, &(struct audit_policy_change){ .by = "ask",
							    .action = "allow",
							    .setting = "network.allowedDomains",
							    .value = "granted.test" });
	w->report.dropped = 5;
	text = end(w);
	assert_int_equal(count(text, "\"verdict\":\"deny\""), JOURNAL_LINES_MAX);
	assert_non_null(
		strstr(text, "\"host\":\"allowed.test\",\"port\":443,\"verdict\":\"allow\""));
	assert_non_null(strstr(text, "/etc/hosts"));
	assert_non_null(strstr(text, "granted.test"));
	/* what is not there is counted */
	assert_non_null(strstr(text, "\"connectionsAllowed\":1,\"connectionsDenied\":3000"));
	assert_non_null(strstr(text, "\"recordsLeftOut\":2005"));
}

static void test_each_place_once(void **state)
{
	struct world *w = *state;
	_cleanup_free_ char *text = NULL;

	for (unsigned i = 0; i < 50; i++) {
		connect_to(w, "one.test", true);
		connect_to(w, "one.test", false);
		connect_to(w, "two.test", true);
	}
	text = end(w);
	assert_int_equal(count(text, "\"event\":\"network\""), 3);
	assert_non_null(strstr(text, "\"connectionsAllowed\":100,\"connectionsDenied\":50"));
}

/* What the proxy could not tell us is said. */
static void test_lost(void **state)
{
	struct world *w = *state;
	_cleanup_free_ char *text = NULL;

	journal_decision(w->j, &(struct egress_record){ .kind = EGRESS_LOST, .count = 7 });
	journal_decision(w->j, &(struct egress_record){ .kind = EGRESS_LOST, .count = 2 });
	text = end(w);
	assert_int_equal(count(text, "\"event\":\"network\""), 0);
	assert_non_null(strstr(text, "\"connectionsNotTold\":9"));
}

#define JOURNAL_TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		JOURNAL_TEST(test_flood_hides_nothing_else),
		JOURNAL_TEST(test_each_place_once),
		JOURNAL_TEST(test_lost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
