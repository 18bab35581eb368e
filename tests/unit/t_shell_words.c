/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/text.h"
#include "policy/shell_words.h"
#include "shell_lines.h"

#define LINES_LEAST 200

static void join(const struct shell_words *w, struct buf *out)
{
	for (size_t i = 0; i < w->n; i++) {
		buf_puts(out, i ? "|" : "");
		buf_puts(out, w->v[i]);
	}
}

static void check_line(struct arena *a, const struct shell_line *line)
{
	_cleanup_buf_ struct buf got = BUF_INIT(4096), shown = BUF_INIT(4096);
	struct shell_words w;

	text_append_safe(&shown, line->text);
	shell_words_parse(a, line->text, strlen(line->text), &w);
	assert_null(w.v[w.n]);
	join(&w, &got);
	if (line->words && w.reason)
		fail_msg("%s: %s", buf_str(&shown), w.reason);
	if (!line->words && !w.reason)
		fail_msg("%s: taken for one command: %s", buf_str(&shown), buf_str(&got));
	if (line->words && strcmp(line->words, buf_str(&got)) != 0)
		fail_msg("%s: words %s", buf_str(&shown), buf_str(&got));
	if (w.reason && w.offset > strlen(line->text))
		fail_msg("%s: offset %zu", buf_str(&shown), w.offset);
}

static void test_lines(void **state)
{
	_cleanup_arena_ struct arena *a = arena_new();

	(void)state;
	assert_true(ARRAY_LEN(shell_lines) >= LINES_LEAST);
	for (size_t i = 0; i < ARRAY_LEN(shell_lines); i++)
		check_line(a, &shell_lines[i]);
}

/* What was accepted, with anything that ends or splits a command put behind it, is not. */
static void test_tails(void **state)
{
	static const char *const tails[] = { ";id",   "&&id", "||id", "|id", "&id", "\nid",
					     "$(id)", "`id`", ">x",   "<x",  "(",   ")",
					     "{",     "$x",   "*",    "\001" };
	_cleanup_arena_ struct arena *a = arena_new();

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(shell_lines); i++) {
		/* a comment swallows what follows it */
		if (!shell_lines[i].words || strchr(shell_lines[i].text, '#'))
			continue;
		for (size_t t = 0; t < ARRAY_LEN(tails); t++) {
			const char *line = arena_printf(a, "%s%s", shell_lines[i].text, tails[t]);
			struct shell_words w;

			shell_words_parse(a, line, strlen(line), &w);
			/* a joined line stays joined */
			if (!w.reason && !text_ends(shell_lines[i].text, "\\\n"))
				fail_msg("taken for one command: %s", line);
		}
	}
}

/* Quoted by our own quoting, every text without control bytes comes back. */
static void test_round_trip(void **state)
{
	_cleanup_arena_ struct arena *a = arena_new();

	(void)state;
	for (unsigned first = 0x20; first < 0x100; first++) {
		for (unsigned second = 0x20; second < 0x100; second++) {
			char word[] = { (char)first, (char)second, '\0' };
			_cleanup_buf_ struct buf line = BUF_INIT(64);
			struct shell_words w;

			buf_puts(&line, "x ");
			text_append_shell(&line, word);
			shell_words_parse(a, buf_str(&line), line.len, &w);
			if (first == 0x7f || second == 0x7f) {
				assert_non_null(w.reason);
				continue;
			}
			assert_null(w.reason);
			assert_int_equal(w.n, 2);
			assert_string_equal(w.v[1], word);
		}
	}
}

static void test_limits(void **state)
{
	_cleanup_arena_ struct arena *a = arena_new();
	char *text = arena_alloc(a, SHELL_TEXT_MAX + 2);
	struct shell_words w;

	(void)state;
	memset(text, 'a', SHELL_TEXT_MAX + 1);
	shell_words_parse(a, text, SHELL_TEXT_MAX, &w);
	assert_null(w.reason);
	assert_int_equal(strlen(w.v[0]), SHELL_TEXT_MAX);
	shell_words_parse(a, text, SHELL_TEXT_MAX + 1, &w);
	assert_string_equal(w.reason, "the line is too long");
	for (size_t i = 1; i < SHELL_TEXT_MAX; i += 2)
		text[i] = ' ';
	shell_words_parse(a, text, SHELL_TEXT_MAX, &w);
	assert_string_equal(w.reason, "too many words");
	shell_words_parse(a, "a\0b", 3, &w);
	assert_string_equal(w.reason, "a NUL byte");
	/* the end of the text counts, not the NUL that may stand behind it */
	shell_words_parse(a, "a bcd;e", 3, &w);
	assert_null(w.reason);
	assert_string_equal(w.v[1], "b");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_tails),
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_limits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
