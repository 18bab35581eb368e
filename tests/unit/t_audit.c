/* SPDX-License-Identifier: Apache-2.0 */
/* Writing a log, damaging it in every way, and what verify says. */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "audit/audit.h"
#include "audit/chain.h"
#include "audit/lost.h"
#include "audit/verify.h"
#include "base/arena.h"
#include "base/fd.h"
#include "base/json_read.h"

#define FILE_MAX ((size_t)1 << 20)

struct world {
	char dir[64];
	struct arena *a;
	const char *path, *head, *other;
	struct audit_config config;
	struct verify_result v;
	struct error e;
};

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static int world_up(void **state)
{
	struct world *w = calloc(1, sizeof(*w));

	(void)strcpy(w->dir, "/dev/shm/ambit-audit-XXXXXX");
	if (!mkdtemp(w->dir))
		return -1;
	w->a = arena_new();
	w->path = arena_printf(w->a, "%s/state/ambit/audit.jsonl", w->dir);
	w->head = arena_printf(w->a, "%s.head", w->path);
	w->other = arena_printf(w->a, "%s/other", w->dir);
	if (mkdir(w->other, 0700) < 0)
		return -1;
	w->config = (struct audit_config){ .path = w->path, .state_dir = w->other, .redact = true };
	*state = w;
	return 0;
}

static int world_down(void **state)
{
	struct world *w = *state;

	(void)nftw(w->dir, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
	arena_free(w->a);
	free(w);
	return 0;
}

static void write_one(struct world *w, struct audit *log, const char *text)
{
	struct audit_record r;

	audit_begin(log, &r, "test", "run1");
	json_kstring(&r.json, "text", text);
	if (audit_commit(log, &r, &w->e) < 0)
		fail_msg("%s", w->e.text);
}

static struct audit *open_log(struct world *w)
{
	struct audit *log = NULL;

	if (audit_open(&w->config, &log, &w->e) < 0)
		fail_msg("%s", w->e.text);
	return log;
}

static void write_lines(struct world *w, unsigned n)
{
	struct audit *log = open_log(w);

	for (unsigned i = 0; i < n; i++)
		write_one(w, log, "some text");
	audit_close(log);
}

/* The number of problems; w->v tells more. */
static size_t verify(struct world *w)
{
	struct audit_files f = AUDIT_FILES_INIT;
	struct snapshot s = { 0 };

	lost_choose_place(w->path, w->other, f.place);
	if (files_open(w->path, FILES_READ, &f, &w->e) < 0 || snapshot_take(&f, 0, &s, &w->e) < 0 ||
	    audit_verify(w->a, &s, &w->v, &w->e) < 0)
		fail_msg("%s", w->e.text);
	snapshot_done(&s);
	files_close(&f);
	return w->v.n_problems;
}

static void assert_intact(struct world *w, uint64_t records)
{
	if (verify(w) > 0)
		fail_msg("%s:%u: %s: %s", w->v.problems[0].file, (unsigned)w->v.problems[0].line,
			 verify_kind_name(w->v.problems[0].kind), w->v.problems[0].text);
	assert_int_equal(w->v.records, records);
}

static void assert_problem(struct world *w, enum verify_kind kind, uint64_t line)
{
	assert_true(verify(w) > 0);
	if (w->v.problems[0].kind != kind || w->v.problems[0].line != line)
		fail_msg("line %u, %s: %s", (unsigned)w->v.problems[0].line,
			 verify_kind_name(w->v.problems[0].kind), w->v.problems[0].text);
}

static char *slurp(const char *path, size_t *ret_len)
{
	char *text = NULL;

	assert_int_equal(fd_read_file(AT_FDCWD, path, FILE_MAX, &text, ret_len), 0);
	return text;
}

static void spill(const char *path, const char *text, size_t len)
{
	int fd = open(path, O_WRONLY | O_TRUNC | O_CREAT | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(fd_write_all(fd, text, len), 0);
	(void)close(fd);
}

/* Offset of line n (from 1). */
static size_t line_at(const char *text, unsigned n)
{
	const char *p = text;

	while (--n)
		p = strchr(p, '\n') + 1;
	return (size_t)(p - text);
}

static void test_lines(void **state)
{
	struct world *w = *state;
	_cleanup_free_ char *text = NULL;
	struct json_span object, value;
	struct stat st;
	size_t len;

	write_lines(w, 3);
	assert_intact(w, 3);
	assert_int_equal(w->v.first, 1);
	assert_int_equal(w->v.last, 3);
	assert_int_equal(w->v.n_notes, 0);
	text = slurp(w->path, &len);
	assert_int_equal(json_parse(text, strcspn(text, "\n"), &object), 0);
	assert_true(json_find(&object, "event", &value) && json_equals(&value, "test"));
	assert_true(json_find(&object, "run", &value) && json_equals(&value, "run1"));
	assert_true(json_find(&object, "text", &value) && json_equals(&value, "some text"));
	assert_int_equal(stat(w->path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(stat(w->head, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(stat(arena_printf(w->a, "%s/state/ambit", w->dir), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	/* goes on where another process left off */
	write_lines(w, 2);
	assert_intact(w, 5);
}

/* Every byte of every file, every bit pattern that is near: always found, at the right line. */
static void test_each_byte(void **state)
{
	struct world *w = *state;
	_cleanup_free_ char *text = NULL, *head = NULL;
	size_t len, head_len;
	unsigned line = 1;

	write_lines(w, 4);
	text = slurp(w->path, &len);
	head = slurp(w->head, &head_len);
	for (size_t i = 0; i < len; i++) {
		for (unsigned bit = 0; bit < 8; bit += 3) {
			text[i] = (char)(text[i] ^ (1 << bit));
			spill(w->path, text, len);
			text[i] = (char)(text[i] ^ (1 << bit));
			if (verify(w) == 0)
				fail_msg("byte %zu, bit %u was not found", i, bit);
			if (w->v.problems[0].line != line)
				fail_msg("byte %zu is in line %u, said is %u: %s", i, line,
					 (unsigned)w->v.problems[0].line, w->v.problems[0].text);
		}
		line += text[i] == '\n';
	}
	spill(w->path, text, len);
	for (size_t i = 0; i < head_len; i++) {
		head[i] = (char)(head[i] ^ 1);
		spill(w->head, head, head_len);
		head[i] = (char)(head[i] ^ 1);
		assert_problem(w, VERIFY_HEAD, 0);
	}
	spill(w->head, head, head_len);
	assert_intact(w, 4);
}

static void test_line_removed(void **state)
{
	struct world *w = *state;
	_cleanup_free_ char *text = NULL;
	size_t len, at2, at3;

	write_lines(w, 4);
	text = slurp(w->path, &len);
	at2 = line_at(text, 2);
	at3 = line_at(text, 3);
	memmove(text + at2, text + at3, len - at3);
	spill(w->path, text, len - (at3 - at2));
	assert_problem(w, VERIFY_MISSING, 2);
	assert_non_null(strstr(w->v.problems[0].text, "record 2 "));
	/* going on does not hide it, and says what was found */
	write_lines(w, 1);
	assert_problem(w, VERIFY_MISSING, 2);
	assert_int_equal(w->v.n_notes, 1);
	assert_non_null(strstr(w->v.notes[0], "shortened"));
}

static void test_first_removed(void **state)
{
	struct world *w = *state;
	_cleanup_free_ char *text = NULL;
	size_t len, at2;

	write_lines(w, 3);
	text = slurp(w->path, &len);
	at2 = line_at(text, 2);
	spill(w->path, text + at2, len - at2);
	assert_problem(w, VERIFY_MISSING, 1);
}

static void test_lines_swapped(void **state)
{
	struct world *w = *state;
	_cleanup_free_ char *text = NULL;
	_cleanup_buf_ struct buf b = BUF_INIT(FILE_MAX);
	size_t len, at2, at3, at4;

	write_lines(w, 5);
	text = slurp(w->path, &len);
	at2 = line_at(text, 2);
	at3 = line_at(text, 3);
	at4 = line_at(text, 4);
	buf_append(&b, text, at2);
	buf_append(&b, text + at3, at4 - at3);
	buf_append(&b, text + at2, at3 - at2);
	buf_append(&b, text + at4, len - at4);
	spill(w->path, b.data, b.len);
	assert_problem(w, VERIFY_ORDER, 2);
	/* and one twice */
	buf_done(&b);
	buf_append(&b, text, at3);
	buf_append(&b, text + at2, len - at2);
	spill(w->path, b.data, b.len);
	assert_problem(w, VERIFY_ORDER, 3);
}

static void test_cut_at_a_line(void **state)
{
	struct world *w = *state;
	_cleanup_free_ char *text = NULL;
	size_t len;

	write_lines(w, 4);
	text = slurp(w->path, &len);
	spill(w->path, text, line_at(text, 3));
	assert_problem(w, VERIFY_TRUNCATED, 0);
	/* the next record does not take the number of a lost one */
	write_lines(w, 1);
	assert_problem(w, VERIFY_MISSING, 3);
	assert_non_null(strstr(w->v.problems[0].text, "records 3 to 4"));
	/* nothing left at all */
	spill(w->path, "", 0);
	assert_problem(w, VERIFY_TRUNCATED, 0);
}

/* A writer that died after its line, before the head. */
static void test_head_behind(void **state)
{
	struct world *w = *state;
	_cleanup_free_ char *head = NULL;
	size_t len;

	write_lines(w, 2);
	head = slurp(w->head, &len);
	write_lines(w, 1);
	spill(w->head, head, len);
	assert_intact(w, 3);
	assert_int_equal(w->v.n_notes, 1);
	write_lines(w, 1);
	assert_intact(w, 4);
	assert_int_equal(w->v.n_notes, 0);
}

/* A writer that died within its line, at every byte. */
static void test_torn(void **state)
{
	struct world *w = *state;
	_cleanup_free_ char *text = NULL, *head = NULL;
	size_t len, head_len, at;

	write_lines(w, 2);
	head = slurp(w->head, &head_len);
	write_lines(w, 1);
	text = slurp(w->path, &len);
	at = line_at(text, 3);
	for (size_t cut = at + 1; cut < len; cut++) {
		spill(w->path, text, cut);
		spill(w->head, head, head_len);
		assert_problem(w, VERIFY_TORN, 3);
		write_lines(w, 1);
		assert_intact(w, 4);
		assert_int_equal(w->v.n_notes, 1);
		assert_non_null(strstr(w->v.notes[0], "cut short"));
	}
}

/* Torn, and somebody takes bytes off that the head knows: not the same thing. */
static void test_cut_in_a_line(void **state)
{
	struct world *w = *state;
	_cleanup_free_ char *text = NULL;
	size_t len;

	write_lines(w, 3);
	text = slurp(w->path, &len);
	spill(w->path, text, len - 10);
	assert_problem(w, VERIFY_CHANGED, 3);
	write_lines(w, 1);
	assert_problem(w, VERIFY_MISSING, 3);
	assert_true(w->v.n_notes > 0);
}

static void test_foreign_lines(void **state)
{
	struct world *w = *state;
	_cleanup_free_ char *text = NULL;
	_cleanup_buf_ struct buf b = BUF_INIT(FILE_MAX);
	size_t len;

	write_lines(w, 2);
	text = slurp(w->path, &len);
	buf_append(&b, text, len);
	buf_puts(&b, "{\"hello\":1}\n");
	spill(w->path, b.data, b.len);
	assert_problem(w, VERIFY_CHANGED, 3);
	write_lines(w, 1);
	assert_problem(w, VERIFY_CHANGED, 3);
	assert_non_null(strstr(w->v.notes[0], "foreign"));
}

static void test_head_gone(void **state)
{
	struct world *w = *state;

	write_lines(w, 3);
	assert_int_equal(unlink(w->head), 0);
	assert_problem(w, VERIFY_HEAD, 0);
	/* going on does not make it whole: nobody knows what the head knew */
	write_lines(w, 1);
	assert_problem(w, VERIFY_HEAD, 4);
	write_lines(w, 2);
	assert_problem(w, VERIFY_HEAD, 4);
	assert_int_equal(w->v.n_problems, 1);
	assert_int_equal(w->v.records, 7);
	/* emptied */
	spill(w->head, "", 0);
	assert_int_equal(verify(w), 2);
	write_lines(w, 1);
	assert_int_equal(verify(w), 2);
	assert_int_equal(w->v.problems[1].line, 8);
	/* the log alone, too */
	assert_int_equal(unlink(w->path), 0);
	assert_problem(w, VERIFY_TRUNCATED, 0);
	write_lines(w, 1);
	assert_problem(w, VERIFY_MISSING, 1);
}

/* The end cut off and the head with it: however much is left, and whatever of the head. */
static void test_cut_with_the_head(void **state)
{
	struct world *w = *state;
	_cleanup_free_ char *text = NULL;
	size_t len;

	write_lines(w, 4);
	text = slurp(w->path, &len);
	for (unsigned left = 1; left <= 4; left++) {
		for (unsigned how = 0; how < 3; how++) {
			spill(w->path, text, left < 4 ? line_at(text, left + 1) : len);
			if (how == 0)
				assert_int_equal(unlink(w->head), 0);
			else
				spill(w->head, how == 1 ? "" : "x", how - 1);
			assert_problem(w, VERIFY_HEAD, 0);
			write_lines(w, 1);
			assert_problem(w, VERIFY_HEAD, left + 1);
			write_lines(w, 1);
			assert_problem(w, VERIFY_HEAD, left + 1);
		}
	}
	/* no line left, but files that were put aside */
	spill(arena_printf(w->a, "%s.%020d", w->path, 4), text, len);
	assert_int_equal(unlink(w->path), 0);
	assert_int_equal(unlink(w->head), 0);
	write_lines(w, 1);
	assert_problem(w, VERIFY_HEAD, 1);
}

/* The first writer of all, killed at each step. */
static void test_first_writer(void **state)
{
	struct chain_head none = { .first = 1 };
	struct world *w = *state;
	char head[CHAIN_HEAD_LEN + 1];
	_cleanup_free_ char *text = NULL;
	size_t len;

	audit_close(open_log(w));
	assert_intact(w, 0);
	write_lines(w, 1);
	assert_intact(w, 1);
	text = slurp(w->path, &len);
	memcpy(none.hash, chain_origin, sizeof(none.hash));
	chain_head_print(&none, head);
	spill(w->head, head, CHAIN_HEAD_LEN);
	assert_int_equal(unlink(w->path), 0);
	assert_intact(w, 0);
	spill(w->path, "", 0);
	write_lines(w, 1);
	assert_intact(w, 1);
	assert_int_equal(w->v.n_notes, 0);
	spill(w->head, head, CHAIN_HEAD_LEN);
	spill(w->path, text, 9);
	assert_problem(w, VERIFY_TORN, 1);
	write_lines(w, 1);
	assert_intact(w, 2);
	spill(w->head, head, CHAIN_HEAD_LEN);
	spill(w->path, text, len);
	assert_intact(w, 1);
	write_lines(w, 1);
	assert_intact(w, 2);
	assert_int_equal(w->v.n_notes, 0);
}

static size_t count_files(const struct world *w)
{
	struct audit_files f = AUDIT_FILES_INIT;
	_cleanup_free_ uint64_t *old = NULL;
	size_t n = 0;

	assert_int_equal(files_open(w->path, FILES_READ, &f, NULL), 0);
	assert_int_equal(files_list_old(&f, &old, &n), 0);
	files_close(&f);
	return n;
}

static void test_rotation(void **state)
{
	struct world *w = *state;
	char name[FILES_NAME_MAX];
	struct audit_files f = AUDIT_FILES_INIT;

	w->config.max_bytes = 1000;
	w->config.max_files = 3;
	write_lines(w, 8);
	assert_true(count_files(w) >= 1);
	assert_intact(w, 8);
	write_lines(w, 50);
	assert_int_equal(count_files(w), 3);
	assert_true(verify(w) == 0);
	assert_int_equal(w->v.last, 58);
	assert_true(w->v.first > 20);
	/* the oldest that is kept goes */
	assert_int_equal(files_open(w->path, FILES_READ, &f, NULL), 0);
	for (uint64_t seq = 1; seq <= 58; seq++) {
		files_old_name(&f, seq, name);
		if (unlinkat(f.dir, name, 0) == 0)
			break;
	}
	files_close(&f);
	assert_problem(w, VERIFY_MISSING, 1);
}

/* Changed, taken out or put in, in whichever file: a byte is never missed. */
static void test_each_byte_of_all_files(void **state)
{
	struct world *w = *state;
	struct audit_files f = AUDIT_FILES_INIT;
	_cleanup_free_ uint64_t *old = NULL;
	char name[FILES_NAME_MAX];
	size_t n = 0;

	w->config.max_bytes = 600;
	write_lines(w, 7);
	assert_int_equal(files_open(w->path, FILES_READ, &f, NULL), 0);
	assert_int_equal(files_list_old(&f, &old, &n), 0);
	assert_true(n >= 2);
	for (size_t k = 0; k <= n; k++) {
		const char *path = w->path;
		_cleanup_free_ char *text = NULL;
		char copy[4096];
		size_t len;

		if (k < n) {
			files_old_name(&f, old[k], name);
			path = arena_printf(w->a, "%s/state/ambit/%s", w->dir, name);
		}
		text = slurp(path, &len);
		assert_true(len + 1 < sizeof(copy));
		for (size_t i = 0; i < len; i++) {
			memcpy(copy, text, len);
			copy[i] = (char)(copy[i] ^ (1 << i % 8));
			spill(path, copy, len);
			if (verify(w) == 0)
				fail_msg("%s: byte %zu, changed", path, i);
			memcpy(copy + i, text + i + 1, len - i - 1);
			spill(path, copy, len - 1);
			if (verify(w) == 0)
				fail_msg("%s: byte %zu, taken out", path, i);
			copy[i] = (char)(i % 2 ? ' ' : text[i]);
			memcpy(copy + i + 1, text + i, len - i);
			spill(path, copy, len + 1);
			if (verify(w) == 0)
				fail_msg("%s: byte %zu, put in", path, i);
		}
		spill(path, text, len);
		assert_intact(w, 7);
	}
	files_close(&f);
}

/* Killed between putting the file aside and the first line of the new one, and after that line. */
static void test_rotation_interrupted(void **state)
{
	struct world *w = *state;
	_cleanup_free_ char *head = NULL;
	struct audit_files f = AUDIT_FILES_INIT;
	char name[FILES_NAME_MAX];
	size_t len;

	write_lines(w, 3);
	assert_int_equal(files_open(w->path, FILES_READ, &f, NULL), 0);
	files_old_name(&f, 3, name);
	assert_int_equal(renameat(f.dir, f.name, f.dir, name), 0);
	assert_intact(w, 3);
	head = slurp(w->head, &len);
	write_lines(w, 1);
	assert_intact(w, 4);
	assert_int_equal(w->v.n_notes, 0);
	spill(w->head, head, len);
	assert_intact(w, 4);
	write_lines(w, 1);
	assert_intact(w, 5);
	assert_int_equal(w->v.n_notes, 0);
	files_close(&f);
}

#define WRITERS 50
#define LINES_EACH 20

static void test_many_writers(void **state)
{
	struct world *w = *state;
	pid_t pids[WRITERS];

	w->config.max_bytes = 50000; /* files are put aside meanwhile */
	w->config.max_files = 100;
	for (unsigned i = 0; i < WRITERS; i++) {
		pids[i] = fork();
		if (pids[i] == 0) {
			write_lines(w, LINES_EACH);
			_exit(0);
		}
		assert_true(pids[i] > 0);
	}
	for (unsigned i = 0; i < WRITERS; i++) {
		int status;

		assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
		assert_int_equal(status, 0);
	}
	assert_intact(w, (uint64_t)WRITERS * LINES_EACH);
	assert_true(count_files(w) > 2);
}

/* The sum of what the records about losses tell. */
static uint64_t count_lost(const struct world *w)
{
	_cleanup_free_ char *text = NULL;
	uint64_t sum = 0;
	size_t len;

	text = slurp(w->path, &len);
	for (const char *s = text; (s = strstr(s, "\"event\":\"lost\",\"count\":")); s++)
		sum += strtoull(s + 23, NULL, 10);
	return sum;
}

/* What does not fit is not written at all, and said later. */
static void test_size_limit(void **state)
{
	struct world *w = *state;
	struct rlimit old, small;
	struct audit_record r;
	struct audit *log;

	write_lines(w, 3);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	small = old;
	small.rlim_cur = 600;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	log = open_log(w);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	for (unsigned i = 0; i < 2; i++) {
		audit_begin(log, &r, "test", NULL);
		assert_int_equal(audit_commit(log, &r, &w->e), -EFBIG);
	}
	audit_close(log);
	assert_intact(w, 3);
	/* another process knows of it */
	assert_int_equal(w->v.n_notes, 1);
	write_lines(w, 1);
	assert_intact(w, 5);
	assert_int_equal(count_lost(w), 2);
	assert_non_null(strstr(w->v.notes[0], "2 records could not be written: File too large"));
	write_lines(w, 1);
	assert_intact(w, 6);
}

/* A writer of n records that are lost; tells how the first one failed. */
static int lose_lines(struct world *w, unsigned n)
{
	struct audit *log = audit_open_or_lose(&w->config);
	int first = 0;

	for (unsigned i = 0; i < n; i++) {
		struct audit_record r;
		int err;

		audit_begin(log, &r, "test", NULL);
		err = audit_commit(log, &r, &w->e);
		assert_true(err < 0);
		first = first ? first : err;
	}
	audit_close(log);
	return first;
}

static const char *parent(struct world *w)
{
	return arena_printf(w->a, "%s/state/ambit", w->dir);
}

/* Where the directory is not safe, the head that is there keeps the number. */
static void test_lost_in_the_head(void **state)
{
	struct world *w = *state;
	_cleanup_free_ char *head = NULL, *plain = NULL;
	size_t len, plain_len;

	write_lines(w, 2);
	plain = slurp(w->head, &plain_len);
	assert_int_equal(chmod(parent(w), 0777), 0);
	assert_int_equal(lose_lines(w, 2), -EPERM);
	assert_int_equal(lose_lines(w, 3), -EPERM);
	assert_int_equal(chmod(parent(w), 0700), 0);
	assert_intact(w, 2);
	assert_int_equal(w->v.n_notes, 1);
	assert_non_null(strstr(w->v.notes[0], "after record 2"));
	assert_non_null(strstr(w->v.notes[0], " 5 records could not be written"));
	assert_int_equal(rmdir(w->other), 0); /* nothing was needed there */
	assert_int_equal(mkdir(w->other, 0700), 0);
	/* every byte of it counts */
	head = slurp(w->head, &len);
	assert_true(len > plain_len);
	assert_memory_equal(head, plain, plain_len);
	for (size_t i = 0; i < len; i++) {
		head[i] = (char)(head[i] ^ 1);
		spill(w->head, head, len);
		head[i] = (char)(head[i] ^ 1);
		assert_problem(w, VERIFY_HEAD, 0);
	}
	spill(w->head, head, len - 1);
	assert_problem(w, VERIFY_HEAD, 0);
	spill(w->head, head, len);
	write_lines(w, 2);
	assert_intact(w, 5);
	assert_int_equal(count_lost(w), 5);
	free(slurp(w->head, &len));
	assert_int_equal(len, plain_len);
}

/* A head that nothing is known of is not written to: what was done to it must stay visible. */
static void test_lost_beside_a_strange_head(void **state)
{
	static const char *const strange[] = { "", "x", "some other file of this user\n" };
	struct world *w = *state;

	for (size_t i = 0; i < ARRAY_LEN(strange); i++) {
		_cleanup_free_ char *after = NULL;
		size_t len;

		write_lines(w, 2);
		spill(w->head, strange[i], strlen(strange[i]));
		assert_int_equal(chmod(parent(w), 0777), 0);
		assert_int_equal(lose_lines(w, 2), -EPERM);
		assert_int_equal(chmod(parent(w), 0700), 0);
		after = slurp(w->head, &len);
		assert_int_equal(len, strlen(strange[i]));
		assert_memory_equal(after, strange[i], len);
		write_lines(w, 1);
		assert_true(verify(w) > 0);
		assert_int_equal(count_lost(w), 2 * (i + 1));
	}
}

/* No head that could be opened: the second place keeps the number. */
static void test_lost_elsewhere(void **state)
{
	struct world *w = *state;
	char place[FILES_PATH_MAX];

	write_lines(w, 2);
	assert_int_equal(rename(w->head, arena_printf(w->a, "%s/head", w->dir)), 0);
	assert_int_equal(symlink("nowhere", w->head), 0);
	assert_int_equal(lose_lines(w, 2), -ELOOP);
	assert_int_equal(lose_lines(w, 3), -ELOOP);
	assert_int_equal(rename(arena_printf(w->a, "%s/head", w->dir), w->head), 0);
	assert_intact(w, 2);
	assert_non_null(strstr(w->v.notes[0], " 5 records could not be written"));
	write_lines(w, 2);
	assert_intact(w, 5);
	assert_int_equal(count_lost(w), 5);
	lost_choose_place(w->path, w->other, place);
	assert_int_equal(access(place, F_OK), -1);
	/* not where others can write, and through no link; then the process alone knows */
	assert_int_equal(symlink(w->head, place), 0);
	assert_int_equal(chmod(parent(w), 0777), 0);
	assert_int_equal(rename(w->head, arena_printf(w->a, "%s/head", w->dir)), 0);
	assert_int_equal(lose_lines(w, 1), -EPERM);
	assert_int_equal(unlink(place), 0);
	assert_int_equal(chmod(w->other, 0777), 0);
	assert_int_equal(lose_lines(w, 1), -EPERM);
	assert_int_equal(access(place, F_OK), -1);
}

/* Whatever stands there: what is told is never less than one. */
static void test_lost_place_damaged(void **state)
{
	struct world *w = *state;
	char place[FILES_PATH_MAX];

	lost_choose_place(w->path, w->other, place);
	spill(place, "", 0);
	assert_int_equal(chmod(place, 0600), 0);
	write_lines(w, 1);
	assert_intact(w, 1);
	spill(place, "ambit-lost-1 x", 14);
	assert_int_equal(chmod(place, 0600), 0);
	assert_intact(w, 1);
	assert_int_equal(w->v.n_notes, 1);
	write_lines(w, 1);
	assert_intact(w, 3);
	assert_int_equal(count_lost(w), 1);
}

#define LOSERS 20
#define LOST_EACH 10

/* Half of them lose all they write, half of them write: each loss is told once. */
static void test_many_losers(void **state)
{
	struct world *w = *state;
	struct rlimit small = { .rlim_cur = 300, .rlim_max = RLIM_INFINITY };
	pid_t pids[LOSERS];

	write_lines(w, 2);
	for (unsigned i = 0; i < LOSERS; i++) {
		pids[i] = fork();
		if (pids[i] == 0) {
			if (i % 2) {
				(void)setrlimit(RLIMIT_FSIZE, &small);
				(void)lose_lines(w, LOST_EACH);
			} else {
				for (unsigned k = 0; k < LOST_EACH; k++)
					write_lines(w, 1);
			}
			_exit(0);
		}
		assert_true(pids[i] > 0);
	}
	for (unsigned i = 0; i < LOSERS; i++) {
		int status;

		assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
		assert_int_equal(status, 0);
	}
	write_lines(w, 1);
	assert_int_equal(verify(w), 0);
	assert_int_equal(count_lost(w), LOSERS / 2 * LOST_EACH);
}

/* The second place by itself: many add while others tell and forget. */
static void test_many_at_the_place(void **state)
{
	struct world *w = *state;
	char place[FILES_PATH_MAX];
	pid_t pids[LOSERS];

	lost_choose_place(w->path, w->other, place);
	for (unsigned i = 0; i < LOSERS; i++) {
		pids[i] = fork();
		if (pids[i] == 0) {
			const struct chain_lost one = { .count = 1,
							.code = ENOSPC,
							.since = "2026-01-31T12:00:00.000Z" };
			int r = 0;

			for (unsigned k = 0; k < LOST_EACH && r == 0; k++) {
				if (i % 2)
					r = lost_add_to_place(place, &one);
				else
					write_lines(w, 1);
			}
			_exit(r < 0);
		}
		assert_true(pids[i] > 0);
	}
	for (unsigned i = 0; i < LOSERS; i++) {
		int status;

		assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
		assert_int_equal(status, 0);
	}
	write_lines(w, 1);
	assert_int_equal(verify(w), 0);
	assert_int_equal(count_lost(w), LOSERS / 2 * LOST_EACH);
	assert_int_equal(access(place, F_OK), -1);
}

static void test_oversize(void **state)
{
	struct world *w = *state;
	_cleanup_free_ char *big = malloc(AUDIT_RECORD_MAX * 2);
	_cleanup_free_ char *text = NULL;
	struct audit *log = open_log(w);
	struct audit_record r;
	size_t len;

	memset(big, 'x', AUDIT_RECORD_MAX * 2 - 1);
	big[AUDIT_RECORD_MAX * 2 - 1] = '\0';
	audit_begin(log, &r, "test", "run1");
	json_kstring(&r.json, "text", big);
	assert_int_equal(audit_commit(log, &r, &w->e), 0);
	/* texts that may be long are cut instead */
	audit_begin(log, &r, "test", "run1");
	audit_put_text(log, &r, "text", big);
	assert_int_equal(audit_commit(log, &r, &w->e), 0);
	audit_close(log);
	assert_intact(w, 2);
	text = slurp(w->path, &len);
	assert_non_null(strstr(text, "\"oversize\":true"));
	assert_non_null(strstr(text, "bytes more]"));
}

static void test_places(void **state)
{
	struct world *w = *state;
	const char *dir = arena_printf(w->a, "%s/open", w->dir), *elsewhere;
	struct audit *log = NULL;

	assert_int_equal(mkdir(dir, 0700), 0);
	assert_int_equal(chmod(dir, 0777), 0);
	w->config.path = arena_printf(w->a, "%s/log", dir);
	assert_int_equal(audit_open(&w->config, &log, &w->e), -EPERM);
	assert_int_equal(chmod(dir, 0700), 0);
	/* no link is followed, no second name accepted */
	elsewhere = arena_printf(w->a, "%s/elsewhere", w->dir);
	spill(elsewhere, "", 0);
	assert_int_equal(symlink(elsewhere, arena_printf(w->a, "%s/log.head", dir)), 0);
	assert_int_equal(audit_open(&w->config, &log, &w->e), -ELOOP);
	assert_int_equal(unlink(arena_printf(w->a, "%s/log.head", dir)), 0);
	assert_int_equal(link(elsewhere, arena_printf(w->a, "%s/log.head", dir)), 0);
	assert_int_equal(audit_open(&w->config, &log, &w->e), -EPERM);
	w->config.path = "/dev/shm/";
	assert_int_equal(audit_open(&w->config, &log, &w->e), -EINVAL);
}

static void test_fields(void **state)
{
	struct world *w = *state;
	_cleanup_free_ char *text = NULL;
	char word0[] = "x", word1[] = "--token", word2[] = "abc";
	char *argv[] = { word0, word1, word2, NULL };
	const struct audit_mcp_call call = {
		.run = "r",
		.request_id = "1",
		.server_name = "fs",
		.tool_name = "read",
		.arguments = "{\"password\":\"x\",\"n\":1.50}",
		.arguments_len = 25,
		.policy_decision = "allow",
		.result = "success",
		.duration_ms = 7,
		.sandboxed = true,
	};
	struct audit *log = open_log(w);
	struct audit_record r;
	size_t len;

	audit_begin(log, &r, "test", "r");
	audit_put_argv(log, &r, "argv", argv);
	assert_int_equal(audit_commit(log, &r, &w->e), 0);
	assert_int_equal(audit_mcp_call(log, &call, &w->e), 0);
	audit_close(log);
	text = slurp(w->path, &len);
	assert_non_null(strstr(text, "\"argv\":[\"x\",\"--token\",\"[redacted]\"]}\n"));
	assert_non_null(strstr(
		text,
		"\"event\":\"mcp-call\",\"run\":\"r\",\"requestId\":\"1\",\"serverName\":\"fs\","
		"\"toolName\":\"read\",\"arguments\":{\"password\":\"[redacted]\",\"n\":1.50},"
		"\"policyDecision\":{\"status\":\"allow\"},\"result\":{\"status\":\"success\"},"
		"\"durationMs\":7,\"sandboxed\":true}\n"));
}

static void test_time(void **state)
{
	char text[CHAIN_TIME_LEN + 1];

	(void)state;
	chain_time(1769860800123, text);
	assert_string_equal(text, "2026-01-31T12:00:00.123Z");
	assert_int_equal(chain_time_ms(text), 1769860800123);
	assert_int_equal(chain_time_ms("2026-01-31T12:00:00.123"), -1);
	/* each day of 800 years, at another time, is the one that it came from */
	for (int64_t day = 0; day < 292194; day++) {
		int64_t ms = day * 86400000 + day * 7919 % 86400000;

		chain_time(ms, text);
		assert_int_equal(chain_time_ms(text), ms);
	}
}

#define world_test(name) cmocka_unit_test_setup_teardown(name, world_up, world_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		world_test(test_lines),
		world_test(test_each_byte),
		world_test(test_line_removed),
		world_test(test_first_removed),
		world_test(test_lines_swapped),
		world_test(test_cut_at_a_line),
		world_test(test_head_behind),
		world_test(test_torn),
		world_test(test_cut_in_a_line),
		world_test(test_foreign_lines),
		world_test(test_head_gone),
		world_test(test_cut_with_the_head),
		world_test(test_first_writer),
		world_test(test_rotation),
		world_test(test_each_byte_of_all_files),
		world_test(test_rotation_interrupted),
		world_test(test_many_writers),
		world_test(test_size_limit),
		world_test(test_lost_in_the_head),
		world_test(test_lost_beside_a_strange_head),
		world_test(test_lost_elsewhere),
		world_test(test_lost_place_damaged),
		world_test(test_many_losers),
		world_test(test_many_at_the_place),
		world_test(test_oversize),
		world_test(test_places),
		world_test(test_fields),
		cmocka_unit_test(test_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
