/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A scope of systemd, asked of a manager that this test plays itself: what is sent is taken apart
 * here by the rules of the protocol, not by the code that put it together; and everything that a
 * manager, a broken one too, may answer.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/fd.h"
#include "base/text.h"
#include "supervise/cgroup.h"

#define SECONDS_MAX 20 /* a manager that is never asked ends by itself */
#define GROUP "/user.slice/app.slice"

enum answer { ANSWER_YES, ANSWER_NO, ANSWER_SHUT, ANSWER_HANG_UP, ANSWER_NOISE, ANSWER_LIE };

struct world {
	char root[64];
	struct arena *a;
	const char *private, *bus;
	pid_t manager;
};

/* --- taking apart: values are aligned from the start of the message -------------------- */

struct message {
	char data[8192];
	size_t len, at;
	FILE *told; /* what was understood, a line each */
};

static void read_all(int fd, char *data, size_t n)
{
	for (size_t done = 0; done < n;) {
		ssize_t r = read(fd, data + done, n - done);

		if (r <= 0)
			_exit(3);
		done += (size_t)r;
	}
}

static void step_to(struct message *m, size_t align)
{
	for (; m->at % align; m->at++) {
		if (m->at >= m->len || m->data[m->at])
			_exit(4); /* padding is zero */
	}
}

static uint32_t take_u32(struct message *m)
{
	uint32_t v;

	step_to(m, 4);
	if (m->at + 4 > m->len)
		_exit(4);
	memcpy(&v, m->data + m->at, 4);
	m->at += 4;
	return v;
}

static uint64_t take_u64(struct message *m)
{
	uint64_t v;

	step_to(m, 8);
	if (m->at + 8 > m->len)
		_exit(4);
	memcpy(&v, m->data + m->at, 8);
	m->at += 8;
	return v;
}

static const char *take_text(struct message *m, size_t n)
{
	const char *s = m->data + m->at;

	if (m->at + n + 1 > m->len || memchr(s, '\0', n + 1) != s + n)
		_exit(4);
	m->at += n + 1;
	return s;
}

static const char *take_string(struct message *m)
{
	return take_text(m, take_u32(m));
}

static const char *take_signature(struct message *m)
{
	return take_text(m, (unsigned char)m->data[m->at++]);
}

static void take_value(struct message *m, const char *type)
{
	if (strcmp(type, "s") == 0 || strcmp(type, "o") == 0) {
		(void)fprintf(m->told, "%s\n", take_string(m));
	} else if (strcmp(type, "g") == 0) {
		(void)fprintf(m->told, "%s\n", take_signature(m));
	} else if (strcmp(type, "t") == 0) {
		(void)fprintf(m->told, "%llu\n", (unsigned long long)take_u64(m));
	} else if (strcmp(type, "au") == 0) {
		size_t end = take_u32(m);

		for (end += m->at; m->at < end;)
			(void)fprintf(m->told, "%u ", take_u32(m));
		(void)fprintf(m->told, "\n");
	} else {
		_exit(5);
	}
}

/* The fields of a header, or the properties of a unit. */
static void take_pairs(struct message *m, bool properties)
{
	size_t end = take_u32(m);

	step_to(m, 8);
	for (end += m->at; m->at < end;) {
		step_to(m, 8);
		if (properties)
			(void)fprintf(m->told, "%s=", take_string(m));
		else
			(void)fprintf(m->told, "%u=", (unsigned)m->data[m->at++]);
		take_value(m, take_signature(m));
	}
	if (m->at != end)
		_exit(4);
}

/* One call: its serial. The name of the unit, if it is that call, goes to ret_unit. */
static uint32_t take_call(int fd, FILE *told, char ret_unit[128])
{
	static const char begin[] = { 'l', 1, 0, 1 };
	struct message m = { .len = 16, .at = 4, .told = told };
	uint32_t body, serial;
	size_t fields;

	read_all(fd, m.data, 16);
	if (memcmp(m.data, begin, 4) != 0)
		_exit(6);
	body = take_u32(&m);
	serial = take_u32(&m);
	fields = take_u32(&m);
	m.at -= 4;
	m.len = (16 + fields + 7) / 8 * 8 + body;
	if (m.len > sizeof(m.data))
		_exit(6);
	read_all(fd, m.data + 16, m.len - 16);
	take_pairs(&m, false);
	step_to(&m, 8);
	*ret_unit = '\0';
	if (!body)
		return serial;
	text_copy(ret_unit, 128, take_string(&m));
	(void)fprintf(told, "mode=%s\n", take_string(&m));
	take_pairs(&m, true);
	(void)fprintf(told, "more=%u\n", take_u32(&m));
	step_to(&m, 8);
	if (m.at != m.len)
		_exit(6);
	return serial;
}

/* --- the manager ------------------------------------------------------------------------ */

static void make(const struct world *w, const char *path, const char *text)
{
	char full[512];
	int fd;

	(void)snprintf(full, sizeof(full), "%s%s", w->root, path);
	for (char *s = full + strlen(w->root) + 1; (s = strchr(s, '/')); *s++ = '/') {
		*s = '\0';
		(void)mkdir(full, 0755);
		*s = '/';
	}
	if (!text)
		return;
	fd = open(full, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (fd < 0 || fd_write_all(fd, text, strlen(text)) < 0)
		_exit(7);
	fd_close(fd);
}

/* type 2: a return, 3: an error with text, 4: a signal, which answers nothing */
static void send_message(int fd, char type, uint32_t serial, const char *text)
{
	char m[512] = { 'l', type, 1, 1 };
	uint32_t n = (uint32_t)strlen(text), body = *text ? n + 5 : 0, fields = 16 + 8;

	/* a name, which has to be skipped, stands before the serial that is answered: 6=":1.7" */
	memcpy(m + 4, &body, 4);
	memcpy(m + 8, &(uint32_t){ 77 }, 4);
	memcpy(m + 16, (const char[]){ 6, 1, 's', 0, 4, 0, 0, 0, ':', '1', '.', '7', 0, 0, 0, 0 },
	       16);
	memcpy(m + 12, &fields, 4);
	memcpy(m + 32, (const char[]){ type == 4 ? 9 : 5, 1, 'u', 0 }, 4);
	memcpy(m + 36, &serial, 4);
	if (body) {
		memcpy(m + 40, &n, 4);
		memcpy(m + 44, text, n + 1);
	}
	if (fd_write_all(fd, m, 40 + body) < 0)
		_exit(8);
}

/* Where the kernel would say that the process is from now on. */
static void move(const struct world *w, const char *unit, pid_t child)
{
	make(w, arena_printf(w->a, "/sys/fs/cgroup" GROUP "/%s/memory.events", unit),
	     "oom_kill 2\n");
	make(w, arena_printf(w->a, "/proc/%d/cgroup", child),
	     arena_printf(w->a, "4:memory:/\n0::" GROUP "/%s\n", unit));
}

static void say(int fd, const char *data, size_t n)
{
	if (fd_write_all(fd, data, n) < 0)
		_exit(8);
}

static void serve(const struct world *w, int fd, bool bus, enum answer answer, pid_t child)
{
	FILE *told = fopen(arena_printf(w->a, "%s/told", w->root), "we");
	char word[128], unit[128];
	uint32_t serial;
	size_t n = 0;

	while (told && n + 1 < sizeof(word) && (n < 7 || memcmp(word + n - 7, "BEGIN\r\n", 7) != 0))
		read_all(fd, word + n++, 1);
	word[n] = '\0';
	(void)fprintf(told, "%s", word + 1); /* after the NUL */
	if (answer == ANSWER_SHUT) {
		say(fd, "REJECTED EXTERNAL\r\n", 19);
		_exit(0);
	}
	say(fd, "OK 0123456789abcdef\r\n", 21);
	serial = take_call(fd, told, unit);
	if (bus) { /* the greeting was one */
		send_message(fd, 2, serial, ":1.9");
		send_message(fd, 4, serial + 1, "");
		serial = take_call(fd, told, unit);
	}
	(void)fprintf(told, "unit=%s\n", unit);
	(void)fclose(told);
	if (answer == ANSWER_HANG_UP)
		_exit(0);
	if (answer == ANSWER_NOISE)
		say(fd, "l\2\1\1\377\377\377\377\377\377\377\377\377\377\377\377", 16);
	else
		send_message(fd, answer == ANSWER_NO ? 3 : 2, serial,
			     answer == ANSWER_NO ? "not today" : "/job/1");
	if (answer == ANSWER_YES)
		move(w, unit, child);
}

static void start_manager(struct world *w, const char *path, enum answer answer)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	pid_t child = getpid();

	make(w, path, NULL);
	(void)snprintf(at.sun_path, sizeof(at.sun_path), "%.40s%.60s", w->root, path);
	assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(fd, 1), 0);
	w->manager = fork();
	if (w->manager == 0) {
		int peer;
		char end;

		(void)alarm(SECONDS_MAX);
		peer = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
		serve(w, peer, path == w->bus, answer, child);
		(void)!read(peer, &end, 1);
		_exit(0);
	}
	assert_true(w->manager > 0);
	fd_close(fd);
}

static int set_up(void **state)
{
	struct world *w = calloc(1, sizeof(*w));
	uid_t uid = geteuid();

	(void)strcpy(w->root, "/tmp/t_scope.XXXXXX");
	if (!mkdtemp(w->root))
		return -1;
	w->a = arena_new();
	w->private = uid ? arena_printf(w->a, "/run/user/%u/systemd/private", uid)
			 : "/run/systemd/private";
	w->bus = uid ? arena_printf(w->a, "/run/user/%u/bus", uid) : "/run/dbus/system_bus_socket";
	*state = w;
	return 0;
}

static int tear_down(void **state)
{
	struct world *w = *state;
	char *const argv[] = { (char[]){ "rm" }, (char[]){ "-rf" }, w->root, NULL };
	pid_t pid = fork();

	if (pid == 0) {
		(void)execv("/bin/rm", argv);
		_exit(127);
	}
	(void)waitpid(pid, NULL, 0);
	arena_free(w->a);
	free(w);
	return 0;
}

/* --- ambit -------------------------------------------------------------------------------- */

/* The scope for a child that is us; 0 or -errno. */
static int begin(struct world *w, struct cgroup **ret, struct error *e)
{
	const struct cgroup_limits limits = { .memory = 64 << 20, .pids = 20, .cpu = 1.5 };
	struct cgroup_places places = { 0 };
	struct sandbox_child child = { .init = getpid(), .pidfd = -1 };
	int pair[2], r;
	char word;

	for (size_t i = 0; i < CGROUP_CONTROLLER_MAX_; i++)
		places.by[i].kind = CGROUP_SCOPE;
	assert_int_equal(cgroup_new(w->root, &places, &limits, ret, e), 0);
	assert_int_equal(cgroup_born_in(*ret), -1);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	child.control = pair[0];
	r = cgroup_start(*ret, &child, e);
	/* the child may go on exactly when the scope stands */
	assert_int_equal(recv(pair[1], &word, 1, MSG_DONTWAIT), r == 0 ? 1 : -1);
	fd_close(pair[0]);
	fd_close(pair[1]);
	return r;
}

static void end(struct world *w, struct cgroup *g)
{
	int status = 0;

	/* no guard: systemd removes it */
	assert_int_equal(cgroup_free(g), 0);
	assert_int_equal(waitpid(w->manager, &status, 0), w->manager);
	assert_int_equal(status, 0);
}

static void assert_told(struct world *w, bool bus)
{
	_cleanup_free_ char *text = NULL;
	_cleanup_buf_ struct buf uid = BUF_INIT(64);
	const char *const lines[] = {
		arena_printf(w->a, "PIDs=%d \n", getpid()),
		"mode=fail\n",
		"Description=a command in an ambit sandbox\n",
		"CollectMode=inactive-or-failed\n",
		"MemoryMax=67108864\n",
		"MemorySwapMax=0\n",
		"TasksMax=21\n", /* and init */
		"CPUQuotaPerSecUSec=1500000\n",
		"more=0\n",
		"1=/org/freedesktop/systemd1\n",
		"2=org.freedesktop.systemd1.Manager\n",
		"3=StartTransientUnit\n",
		"8=ssa(sv)a(sa(sv))\n",
		arena_printf(w->a, "unit=ambit-run-%d-", getpid()),
		".scope\n",
	};

	assert_int_equal(
		fd_read_file(AT_FDCWD, arena_printf(w->a, "%s/told", w->root), 65536, &text, NULL),
		0);
	for (const char *c = arena_printf(w->a, "%u", geteuid()); *c; c++)
		buf_printf(&uid, "%02x", (unsigned)*c);
	assert_non_null(
		strstr(text, arena_printf(w->a, "AUTH EXTERNAL %s\r\nBEGIN\r\n", buf_str(&uid))));
	for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
		if (!strstr(text, lines[i]))
			fail_msg("not told: %s in %s", lines[i], text);
	}
	assert_int_equal(strstr(text, "3=Hello\n") != NULL, bus);
}

static void check_scope(struct world *w, const char *path)
{
	struct cgroup *g = NULL;
	struct error e = { 0 };

	start_manager(w, path, ANSWER_YES);
	if (begin(w, &g, &e) < 0)
		fail_msg("%s", e.text);
	assert_told(w, path == w->bus);
	/* its counters are looked at in the group that the kernel names */
	assert_int_equal(cgroup_memory_kills(g), 2);
	end(w, g);
}

static void test_private_socket(void **state)
{
	struct world *w = *state;

	check_scope(w, w->private);
}

/* Greeted first; signals and answers to other calls may come in between. */
static void test_bus(void **state)
{
	struct world *w = *state;

	check_scope(w, w->bus);
}

static void check_failure(struct world *w, enum answer answer, int code, const char *text)
{
	struct cgroup *g = NULL;
	struct error e = { 0 };

	start_manager(w, w->private, answer);
	assert_int_equal(begin(w, &g, &e), -code);
	if (!strstr(e.text, text))
		fail_msg("%s: not in: %s", text, e.text);
	end(w, g);
}

static void test_refused(void **state)
{
	check_failure(*state, ANSWER_NO, EPERM, "systemd refused: not today");
}

static void test_not_let_in(void **state)
{
	check_failure(*state, ANSWER_SHUT, EACCES, "does not let us in");
}

static void test_hung_up(void **state)
{
	check_failure(*state, ANSWER_HANG_UP, ECONNRESET, "does not answer");
}

static void test_noise(void **state)
{
	check_failure(*state, ANSWER_NOISE, EPROTO, "in an unknown way");
}

/* It says yes, but the kernel does not: nothing runs without its limits. */
static void test_lie(void **state)
{
	struct world *w = *state;

	make(w, arena_printf(w->a, "/proc/%d/cgroup", getpid()), "0::/user.slice\n");
	check_failure(w, ANSWER_LIE, ETIMEDOUT, "made no scope");
}

static void test_nobody(void **state)
{
	struct world *w = *state;
	struct cgroup *g = NULL;
	struct error e = { 0 };

	assert_int_equal(begin(w, &g, &e), -ENOENT);
	assert_non_null(strstr(e.text, "cannot reach systemd"));
	assert_int_equal(cgroup_free(g), 0);
}

#define SCOPE_TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		SCOPE_TEST(test_private_socket),
		SCOPE_TEST(test_bus),
		SCOPE_TEST(test_refused),
		SCOPE_TEST(test_not_let_in),
		SCOPE_TEST(test_hung_up),
		SCOPE_TEST(test_noise),
		SCOPE_TEST(test_lie),
		SCOPE_TEST(test_nobody),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
