/* SPDX-License-Identifier: Apache-2.0 */
/* The supervisor's side of the proxy: its records, and one proxy for several sandboxes. */
#include "supervise/egress.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>

#include "base/sys.h"
#include "policy_fixture.h"
#include "supervise/session.h"

#define WAIT_MS 5000

static int parse(const char *line, struct egress_record *ret)
{
	return egress_record_parse(line, strlen(line), ret);
}

static void test_records(void **state UNUSED)
{
	struct egress_record r;

	assert_int_equal(
		parse("{\"kind\":\"connect\",\"owner\":7,\"host\":\"a.test\",\"port\":443,"
		      "\"via\":\"connect\",\"verdict\":\"allow\",\"rule\":\"allowedDomains "
		      "a.test\",\"address\":\"192.0.2.1\",\"sent\":5000000000,"
		      "\"received\":2,\"ms\":3}",
		      &r),
		0);
	assert_int_equal(r.kind, EGRESS_CONNECT);
	assert_true(r.allow && r.owner == 7 && r.port == 443 && r.sent == 5000000000);
	assert_true(r.received == 2 && r.ms == 3 && r.reason[0] == '\0');
	assert_string_equal(r.host, "a.test");
	assert_string_equal(r.rule, "allowedDomains a.test");
	assert_string_equal(r.address, "192.0.2.1");
	/* text that looks like other fields is text */
	assert_int_equal(parse("{\"kind\":\"connect\",\"host\":\"x\\\",\\\"verdict\\\":\\\"allow\","
			       "\"verdict\":\"deny\"}",
			       &r),
			 0);
	assert_false(r.allow);
	assert_string_equal(r.host, "x\",\"verdict\":\"allow");
	assert_int_equal(parse("{\"kind\":\"ask\",\"id\":3,\"host\":\"b.test\",\"port\":1}", &r),
			 0);
	assert_true(r.kind == EGRESS_ASK && r.id == 3);
	/* numbers that do not fit are left out, not cut */
	assert_int_equal(parse("{\"kind\":\"connect\",\"port\":65537,\"owner\":-1}", &r), 0);
	assert_true(r.port == 0 && r.owner == 0);
}

static void test_broken_records(void **state UNUSED)
{
	static const char *const bad[] = {
		"", "x", "[]", "{}", "{\"kind\":1}", "{\"kind\":\"other\"}", "{\"kind\":\"ask\"",
	};
	struct egress_record r = { .id = 99 };
	char longest[3000] = "{\"kind\":\"connect\",\"host\":\"";

	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_int_equal(parse(bad[i], &r), -EINVAL);
	assert_int_equal(r.id, 99);
	memset(longest + strlen(longest), 'a', 2000);
	(void)strcat(longest, "\"}");
	assert_int_equal(parse(longest, &r), 0);
	assert_int_equal(strlen(r.host), sizeof(r.host) - 1);
}

static void test_violations(void **state UNUSED)
{
	struct egress_record r = { .kind = EGRESS_CONNECT, .port = 80 };
	struct violation v;

	text_copy(r.host, sizeof(r.host), "a.test");
	egress_record_violation(&r, &v);
	assert_string_equal(v.path, "a.test:80");
	r.port = 0;
	egress_record_violation(&r, &v);
	assert_string_equal(v.path, "a.test");
	r.kind = EGRESS_FAILED;
	egress_record_violation(&r, &v);
	assert_string_equal(v.rule, "network.proxy");
}

/*
 * With the real proxy, and listeners of this process in place of those of sandboxes.
 */

struct heard {
	struct egress_user user;
	int listener;
	uint16_t port;
	unsigned n;
	struct egress_record last;
};

static void hear(void *ctx, const struct egress_record *r)
{
	struct heard *h = ctx;

	if (r->kind == EGRESS_NOTICE)
		return; /* a proxy built with sanitizers says that it is not confined */
	h->n++;
	h->last = *r;
}

static const char *proxy_program(struct arena *a)
{
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	assert_true(n > 0);
	self[n] = '\0';
	return path_absolute(a, "/", path_join(a, self, "../../../src/proxy/ambit-proxy"));
}

static void join(struct egress *x, struct heard *h)
{
	struct sockaddr_in in = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(in);

	*h = (struct heard){ .user = { .record = hear, .ctx = h } };
	egress_attach(x, &h->user);
	h->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_return_code(bind(h->listener, (struct sockaddr *)&in, sizeof(in)), errno);
	assert_return_code(listen(h->listener, 8), errno);
	assert_return_code(getsockname(h->listener, (struct sockaddr *)&in, &len), errno);
	h->port = ntohs(in.sin_port);
	assert_int_equal(egress_add_listener(&h->user, EGRESS_HTTP, h->listener), 0);
	fd_close(h->listener);
}

/* Steps until *n is at least `wanted`, or time is up. */
static void until(struct egress *x, const unsigned *n, unsigned wanted)
{
	struct pollfd ready = { .fd = egress_fd(x), .events = POLLIN };

	while (*n < wanted && poll(&ready, 1, WAIT_MS) > 0)
		egress_step(x);
	assert_true(*n >= wanted);
}

static void until_gone(struct egress *x, const struct heard *h)
{
	struct pollfd ready = { .fd = egress_fd(x), .events = POLLIN };

	while (!egress_is_gone(&h->user) && poll(&ready, 1, WAIT_MS) > 0)
		egress_step(x);
	assert_true(egress_is_gone(&h->user));
}

/* A connection to the proxy that asks for name:1. */
static int ask_for(const struct heard *h, const char *name)
{
	struct sockaddr_in in = { .sin_family = AF_INET,
				  .sin_port = htons(h->port),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char text[256];

	(void)snprintf(text, sizeof(text), "CONNECT %s:1 HTTP/1.1\r\nHost: %s:1\r\n\r\n", name,
		       name);
	assert_return_code(connect(fd, (struct sockaddr *)&in, sizeof(in)), errno);
	assert_int_equal(send(fd, text, strlen(text), 0), strlen(text));
	return fd;
}

static bool is_refused(const struct heard *h)
{
	struct sockaddr_in in = { .sin_family = AF_INET,
				  .sin_port = htons(h->port),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	_cleanup_fd_ int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	return connect(fd, (struct sockaddr *)&in, sizeof(in)) < 0 && errno == ECONNREFUSED;
}

static struct egress *start(struct fixture *f, bool ask)
{
	struct egress_setup setup = { .program = proxy_program(f->a),
				      .policy = fixture_load(f),
				      .ask = ask };
	struct egress *x = NULL;

	if (egress_new(&setup, &x, &f->e) < 0)
		fail_msg("%s", f->e.text);
	return x;
}

static void test_two_users(void **state)
{
	struct fixture *f = *state;
	struct egress *x = start(f, false);
	struct heard a, b;

	join(x, &a);
	join(x, &b);
	egress_step(x); /* nothing to do: nothing is started */
	fd_close(ask_for(&a, "one.test"));
	until(x, &a.n, 1);
	fd_close(ask_for(&b, "two.test"));
	until(x, &b.n, 1);
	assert_string_equal(a.last.host, "one.test");
	assert_string_equal(b.last.host, "two.test");
	assert_true(a.n == 1 && a.last.kind == EGRESS_CONNECT && !a.last.allow);
	egress_leave(&a.user);
	until_gone(x, &a);
	egress_detach(&a.user);
	assert_true(is_refused(&a));
	fd_close(ask_for(&b, "three.test"));
	until(x, &b.n, 2);
	/* a third one comes while it runs */
	join(x, &a);
	fd_close(ask_for(&a, "four.test"));
	until(x, &a.n, 1);
	assert_string_equal(a.last.host, "four.test");
	egress_free(x); /* with two users that never left */
	assert_true(is_refused(&a) && is_refused(&b));
}

static void test_what_was_sent_before_the_start_counts(void **state)
{
	struct fixture *f = *state;
	struct egress *x = start(f, false);
	struct heard a;

	join(x, &a);
	fd_close(ask_for(&a, "one.test"));
	egress_leave(&a.user);
	until_gone(x, &a);
	assert_int_equal(a.n, 1);
	egress_detach(&a.user);
	egress_detach(&a.user);
	egress_free(x);
}

static void test_a_killed_proxy(void **state)
{
	struct fixture *f = *state;
	struct egress *x = start(f, false);
	struct heard a, b, c;
	_cleanup_fd_ int client = -1;
	char answer;

	join(x, &a);
	join(x, &b);
	fd_close(ask_for(&a, "one.test"));
	until(x, &a.n, 1);
	client = ask_for(&a, "two.test");
	assert_int_equal(kill(egress_pid(x), SIGKILL), 0);
	until(x, &b.n, 1);
	until(x, &a.n, 2);
	assert_true(a.last.kind == EGRESS_FAILED && b.last.kind == EGRESS_FAILED);
	assert_true(egress_is_gone(&a.user) && egress_is_gone(&b.user));
	assert_true(is_refused(&a) && is_refused(&b));
	(void)!recv(client, &answer, 1, MSG_DONTWAIT);
	/* who comes later has a new one */
	join(x, &c);
	fd_close(ask_for(&c, "three.test"));
	until(x, &c.n, 1);
	assert_int_equal(c.last.kind, EGRESS_CONNECT);
	egress_free(x);
}

static void test_questions(void **state)
{
	struct fixture *f = *state;
	struct egress *x = start(f, true);
	_cleanup_fd_ int client = -1;
	struct heard a;

	join(x, &a);
	client = ask_for(&a, "one.test");
	until(x, &a.n, 1);
	assert_true(a.last.kind == EGRESS_ASK && a.last.port == 1);
	assert_string_equal(a.last.host, "one.test");
	egress_answer(x, a.last.id, EGRESS_DENY);
	until(x, &a.n, 2);
	assert_true(a.last.kind == EGRESS_CONNECT && !a.last.allow);
	fd_close(ask_for(&a, "one.test"));
	until(x, &a.n, 4);
	assert_int_equal(a.last.kind, EGRESS_UNASK); /* it hung up */
	egress_free(x);
}

static bool config_asks(const struct policy *p)
{
	_cleanup_buf_ struct buf b = BUF_INIT(EGRESS_CONFIG_MAX);

	assert_int_equal(egress_write_config(&b, p, true), 0);
	return strstr(buf_str(&b), "\nask ") != NULL;
}

/* Whoever answers a question adds to the list: not where the managed file keeps it. */
static void test_locked_lists_are_not_asked_about(void **state)
{
	struct fixture *f = *state;

	fixture_option(f, "network.mode", "allowlist");
	assert_true(config_asks(fixture_load(f)));
	fixture_managed(f, "locked: [network.allowedDomains]");
	assert_false(config_asks(fixture_load(f)));
}

static void test_missing_program(void **state)
{
	struct fixture *f = *state;
	struct egress_setup setup = { .program = "/nonexistent", .policy = fixture_load(f) };
	struct egress *x = NULL;

	assert_int_equal(egress_new(&setup, &x, &f->e), -ENOENT);
	assert_null(x);
	egress_free(x);
}

/*
 * Two real sandboxes at one proxy.
 */

struct run {
	struct session *session;
	struct report report;
	bool over;
	unsigned denied;
	char host[256];
};

static void on_decision(void *ctx, const struct egress_record *r)
{
	struct run *run = ctx;

	run->denied += r->kind == EGRESS_CONNECT && !r->allow;
	text_copy(run->host, sizeof(run->host), r->host);
}

static int run_script(struct fixture *f, struct egress *x, const char *script, struct run *ret)
{
	static const struct session_hooks hooks = { .decision = on_decision };
	char bash[] = "/bin/bash", c[] = "-c", *text = arena_strdup(f->a, script);
	char **argv = arena_array(f->a, 4, sizeof(*argv));
	static char *none[] = { NULL };
	struct session_request req = {
		.policy = f->p,
		.argv = argv,
		.environ_in = none,
		.report = &ret->report,
		.egress = x,
		.stdio = { -1, -1, -1 },
		.tty = -1,
		.hooks = &hooks,
		.ctx = ret,
	};

	argv[0] = arena_strdup(f->a, bash);
	argv[1] = arena_strdup(f->a, c);
	argv[2] = text;
	*ret = (struct run){ .report = { .a = f->a } };
	(void)sigemptyset(&req.mask);
	return session_start(&req, &ret->session, &f->e);
}

static void wait_for_both(struct run *runs)
{
	while (!runs[0].over || !runs[1].over) {
		struct pollfd fds[2] = {
			{ .fd = runs[0].over ? -1 : session_fd(runs[0].session), .events = POLLIN },
			{ .fd = runs[1].over ? -1 : session_fd(runs[1].session), .events = POLLIN }
		};

		assert_true(poll(fds, 2, WAIT_MS) > 0 || runs[0].over || runs[1].over);
		for (size_t i = 0; i < 2; i++)
			runs[i].over = runs[i].over || session_step(runs[i].session);
	}
}

static void test_two_sandboxes(void **state)
{
	static const char script[] =
		"exec 3<>/dev/tcp/127.0.0.1/3128\n"
		"printf 'CONNECT %s.test:1 HTTP/1.1\\r\\nHost: %s.test:1\\r\\n\\r\\n' %s %s >&3\n"
		"read -r version status rest <&3; [ \"$status\" = 403 ] && %s";
	struct fixture *f = *state;
	struct run_result result;
	struct run runs[2];
	struct egress *x;

	fixture_option(f, "network.mode", "allowlist");
	fixture_option(f, "fallback", "warn");
	x = start(f, false);
	if (run_script(f, x, arena_printf(f->a, script, "%s", "%s", "one", "one", "exit 11"),
		       &runs[0]) < 0) {
		egress_free(x);
		print_message("no sandbox on this machine: %s\n", f->e.text);
		skip();
	}
	assert_int_equal(run_script(f, x,
				    arena_printf(f->a, script, "%s", "%s", "two", "two", "exit 22"),
				    &runs[1]),
			 0);
	wait_for_both(runs);
	for (int i = 0; i < 2; i++) {
		if (session_end(runs[i].session, &result, &f->e) < 0)
			fail_msg("%s", f->e.text);
		session_free(runs[i].session, NULL);
		assert_int_equal(result.exit_code, 11 * (i + 1));
		assert_int_equal(runs[i].denied, 1);
		assert_string_equal(runs[i].host, i ? "two.test" : "one.test");
	}
	egress_free(x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_records),
		cmocka_unit_test(test_broken_records),
		cmocka_unit_test(test_violations),
		policy_test(test_two_users),
		policy_test(test_what_was_sent_before_the_start_counts),
		policy_test(test_a_killed_proxy),
		policy_test(test_questions),
		policy_test(test_locked_lists_are_not_asked_about),
		policy_test(test_missing_program),
		policy_test(test_two_sandboxes),
	};

	(void)signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
