/* SPDX-License-Identifier: Apache-2.0 */
/* The pure parts of the MCP server: lines, messages, arguments, excerpts, search, languages. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/fd.h"
#include "base/text.h"
#include "mcp/arguments.h"
#include "mcp/excerpt.h"
#include "mcp/find.h"
#include "mcp/frame.h"
#include "mcp/language.h"
#include "mcp/rpc.h"

/* --- lines ------------------------------------------------------------------------------ */

/* The lines that come out, joined by "|"; '!' stands for one that was too long. */
static void feed(struct frame_in *in, const char *text, size_t piece, char *ret, size_t size)
{
	struct buf out = BUF_INIT(4096);
	size_t len = strlen(text);

	for (size_t at = 0; at <= len; at += piece) {
		size_t n = len - at < piece ? len - at : piece;
		const char *line;
		size_t line_len;
		enum frame_event event;

		frame_feed(in, text + at, n);
		while ((event = frame_next(in, at + n == len && n < piece, &line, &line_len)) !=
		       FRAME_NONE) {
			if (event == FRAME_LINE)
				buf_append(&out, line, line_len);
			buf_putc(&out, event == FRAME_LINE ? '|' : '!');
		}
	}
	text_copy(ret, size, buf_str(&out));
	buf_done(&out);
}

static void test_frame(void **state)
{
	static const struct {
		const char *in, *lines;
	} cases[] = {
		{ "", "" },
		{ "a\nb\n", "a|b|" },
		{ "a\r\n\n \t\n\r\nbb\n", "a|bb|" },
		{ "a\nlast", "a|last|" },
		{ "\n\n\n", "" },
		{ "x", "x|" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		for (size_t piece = 1; piece < 9; piece++) {
			struct frame_in in = FRAME_IN_INIT;
			char got[64];

			feed(&in, cases[i].in, piece, got, sizeof(got));
			/* a piece that ends with the text leaves nothing to be called the last */
			if (strchr(cases[i].lines, 'l') == NULL || strlen(cases[i].in) % piece)
				assert_string_equal(got, cases[i].lines);
			frame_in_done(&in);
		}
	}
}

static void test_frame_long_lines(void **state)
{
	struct frame_in in = FRAME_IN_INIT;
	_cleanup_free_ char *much = malloc(FRAME_LINE_MAX + 10);
	unsigned long_lines = 0, lines = 0;
	const char *line;
	size_t len;

	(void)state;
	assert_non_null(much);
	memset(much, 'x', FRAME_LINE_MAX + 10);
	for (unsigned i = 0; i < 3; i++) {
		enum frame_event event;

		frame_feed(&in, much, FRAME_LINE_MAX);
		assert_int_equal(frame_next(&in, false, &line, &len), FRAME_NONE);
		frame_feed(&in, much, 10);
		frame_feed(&in, "yy\nshort\n", 9);
		while ((event = frame_next(&in, false, &line, &len)) != FRAME_NONE) {
			long_lines += event == FRAME_TOO_LONG;
			lines += event == FRAME_LINE;
		}
		assert_true(in.bytes.cap <= 4 * FRAME_LINE_MAX);
	}
	assert_int_equal(long_lines, 3);
	assert_int_equal(lines, 3);
	frame_in_done(&in);
}

/* --- messages ----------------------------------------------------------------------------- */

static int read_message(const char *text, struct rpc_message *m)
{
	struct json_span value;
	const char *why = NULL;
	int code;

	assert_int_equal(json_parse(text, strlen(text), &value), 0);
	code = rpc_read(&value, m, &why);
	assert_true(!code == !why);
	return code;
}

static void test_rpc(void **state)
{
	static const struct {
		const char *text;
		int code;
		enum rpc_kind kind;
	} cases[] = {
		{ "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x\"}", 0, RPC_REQUEST },
		{ "{\"jsonrpc\":\"2.0\",\"method\":\"x\",\"params\":{}}", 0, RPC_NOTIFICATION },
		{ "{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"result\":1}", 0, RPC_RESPONSE },
		{ "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{}}", 0, RPC_RESPONSE },
		{ "{\"jsonrpc\":\"2.0\",\"id\":1}", RPC_INVALID_REQUEST, 0 },
		{ "{\"jsonrpc\":\"2.0\",\"id\":1,\"id\":1,\"method\":\"x\"}", RPC_INVALID_REQUEST,
		  0 },
		{ "{\"jsonrpc\":\"2.0\",\"\\u0069d\":1,\"id\":1,\"method\":\"x\"}",
		  RPC_INVALID_REQUEST, 0 },
		{ "{\"jsonrpc\":2.0,\"id\":1,\"method\":\"x\"}", RPC_INVALID_REQUEST, 0 },
		{ "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x\",\"params\":[]}",
		  RPC_INVALID_PARAMS, 0 },
		{ "[]", RPC_INVALID_REQUEST, 0 },
	};
	struct rpc_message m;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		assert_int_equal(read_message(cases[i].text, &m), cases[i].code);
		if (!cases[i].code)
			assert_int_equal(m.kind, cases[i].kind);
	}
}

static void test_rpc_member_once(void **state)
{
	static const char text[] = "{\"a\":1,\"b\":2,\"\\u0062\":3}";
	struct json_span object, value;
	bool twice;

	(void)state;
	assert_int_equal(json_parse(text, strlen(text), &object), 0);
	assert_true(rpc_member(&object, "a", &value, &twice));
	assert_false(twice);
	assert_false(rpc_member(&object, "b", &value, &twice));
	assert_true(twice);
	assert_false(rpc_member(&object, "c", &value, &twice));
	assert_false(twice);
	object = (struct json_span){ 0 };
	assert_false(rpc_member(&object, "a", &value, NULL));
}

/* --- arguments ------------------------------------------------------------------------------ */

static int read_arguments(struct arena *a, enum argument_set set, const char *text,
			  struct arguments *ret, struct error *e)
{
	struct json_span object;

	assert_int_equal(json_parse(text, strlen(text), &object), 0);
	return arguments_read(a, set, &object, ret, e);
}

static void test_arguments(void **state)
{
	_cleanup_arena_ struct arena *a = arena_new();
	struct error e = { 0 };
	struct arguments args;

	(void)state;
	assert_int_equal(
		read_arguments(a, TAKES_EXECUTE,
			       "{\"language\":\"JS\",\"code\":\"x\\u0000\\ud800y\","
			       "\"timeout\":\"2500\",\"readOnly\":\"TRUE\",\"network\":false,"
			       "\"args\":\"[\\\"a\\\",2]\",\"env\":{\"A\":\"1\",\"B\":2},"
			       "\"files\":{\"f\":\"t\"},\"stdin\":null}",
			       &args, &e),
		0);
	assert_string_equal(language_name(args.language), "javascript");
	assert_string_equal(args.code, "x\xef\xbf\xbd\xef\xbf\xbdy");
	assert_int_equal(args.timeout_ms, 2500);
	assert_true(args.read_only && args.no_network && !args.background && !args.input);
	assert_int_equal(args.args.n, 2);
	assert_string_equal(args.args.v[1], "2");
	assert_null(args.args.v[2]);
	assert_string_equal(args.env.v[1], "B=2");
	assert_string_equal(args.files, "[{\"path\":\"f\",\"content\":\"t\"}]");
}

static void test_arguments_refused(void **state)
{
	static const char *const bad[] = {
		"{}",
		"[]",
		"{\"language\":\"shell\"}",
		"{\"language\":\"shell\",\"code\":\"x\",\"code\":\"y\"}",
		"{\"language\":\"shell\",\"code\":\"x\",\"sandbox\":false}",
		"{\"language\":\"shell\",\"code\":\"x\",\"timeout\":0}",
		"{\"language\":\"shell\",\"code\":\"x\",\"timeout\":\"\"}",
		"{\"language\":\"shell\",\"code\":\"x\",\"timeout\":99999999999999999999}",
		"{\"language\":\"shell\",\"code\":{}}",
		"{\"language\":\"shell\",\"code\":\"x\",\"env\":[\"=x\"]}",
		"{\"language\":\"shell\",\"code\":\"x\",\"env\":{\"a b\":\"x\"}}",
		"{\"language\":\"shell\",\"code\":\"x\",\"files\":[1]}",
		"{\"language\":\"shell\",\"code\":\"x\",\"commands\":[]}",
	};
	_cleanup_arena_ struct arena *a = arena_new();
	struct arguments args;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct error e = { 0 };

		assert_int_not_equal(read_arguments(a, TAKES_EXECUTE, bad[i], &args, &e), 0);
		assert_true(e.text[0]);
	}
}

/* --- excerpts -------------------------------------------------------------------------------- */

static void check_excerpt(const char *text, size_t len, size_t max)
{
	struct spool s = SPOOL_INIT;
	struct buf out = BUF_INIT(1 << 20);
	struct excerpt x;

	assert_int_equal(spool_append(&s, "/tmp", text, len), 0);
	x = excerpt_append(&s, max, "elsewhere", &out);
	assert_int_equal(x.truncated, len > max);
	assert_true(excerpt_is_text(buf_str(&out), out.len));
	if (!x.truncated)
		assert_memory_equal(buf_str(&out), text, len);
	else
		assert_non_null(strstr(buf_str(&out), "elsewhere"));
	buf_done(&out);
	spool_done(&s);
}

static void test_excerpt(void **state)
{
	char lines[4000], wide[4000];

	(void)state;
	for (size_t i = 0; i < sizeof(lines); i++)
		lines[i] = i % 7 == 6 ? '\n' : 'x';
	for (size_t i = 0; i + 3 < sizeof(wide); i += 4)
		memcpy(wide + i, "\xf0\x9f\x98\x80", 4);
	for (size_t max = 10; max < 5000; max += 37) {
		check_excerpt(lines, sizeof(lines), max);
		check_excerpt(wide, sizeof(wide), max);
	}
	assert_int_equal(excerpt_whole("a\xe2\x82", 3), 1);
	assert_int_equal(excerpt_whole("a\xe2\x82\xac", 4), 4);
	assert_int_equal(excerpt_whole("\x80\x80\x80\x80\x80", 5), 5);
	assert_false(excerpt_is_text("a\0b", 3));
	assert_false(excerpt_is_text("\xff", 1));
}

static void test_base64(void **state)
{
	static const char *const cases[][2] = {
		{ "", "" },        { "f", "Zg==" },          { "fo", "Zm8=" },
		{ "foo", "Zm9v" }, { "foobar", "Zm9vYmFy" }, { "\xff\xfe\xfd", "//79" }
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct buf b = BUF_INIT(100);

		excerpt_base64(&b, cases[i][0], strlen(cases[i][0]));
		assert_string_equal(buf_str(&b), cases[i][1]);
		buf_done(&b);
	}
}

static void test_spool_in_a_file(void **state)
{
	struct spool s = SPOOL_INIT;
	char piece[1000], back[1000];

	(void)state;
	for (unsigned i = 0; i < 100; i++) {
		memset(piece, 'a' + (int)(i % 26), sizeof(piece));
		assert_int_equal(spool_append(&s, "/no/such/directory", piece, sizeof(piece)), 0);
	}
	assert_true(s.file >= 0); /* memory without a name, since the directory is none */
	assert_int_equal(s.size, 100000);
	assert_int_equal(spool_read(&s, 99500, back, sizeof(back)), 500);
	assert_int_equal(back[0], 'a' + 99 % 26);
	assert_int_equal(spool_read(&s, 100000, back, sizeof(back)), 0);
	spool_done(&s);
}

/* --- search ------------------------------------------------------------------------------------ */

static void test_find(void **state)
{
	static const char one[] =
		"alpha\nbeta\ngamma\nThe Database Connection failed\nepsilon\nzeta\n";
	static const char two[] = "database\n1\n2\n3\n4\n5\n6\n7\n8\nconnection\n";
	const struct find_text texts[] = { { "two", two, strlen(two) },
					   { "one", one, strlen(one) } };
	_cleanup_arena_ struct arena *a = arena_new();
	struct find_matches m;

	(void)state;
	find_places(a, texts, 2, "why did the database connection fail?", 5, &m);
	assert_int_equal(m.n, 3);
	assert_int_equal(m.v[0].which, 1); /* both words on one line come first */
	assert_int_equal(m.v[0].line, 2);
	assert_memory_equal(m.v[0].text, "beta\ngamma\nThe Database", 22);
	assert_int_equal(m.v[0].text[m.v[0].len - 1], 'a'); /* ...zeta, without its newline */
	find_places(a, texts, 2, "nowhere", 5, &m);
	assert_int_equal(m.n, 0);
	find_places(a, texts, 2, "?! -", 5, &m);
	assert_int_equal(m.n, 0);
	find_places(a, texts, 2, "the", 5, &m); /* nothing but a common word */
	assert_int_equal(m.n, 1);
	find_places(a, texts, 2, "database connection", 1, &m);
	assert_int_equal(m.n, 1);
}

/* --- languages ---------------------------------------------------------------------------------- */

static void prepare(struct arena *a, const char *language, const char *code, bool with_file,
		    struct language_code *ret)
{
	struct languages found;
	struct language_found f;
	struct language_source source = { code, "/run/ambit", with_file };

	languages_find(a, "/usr/bin:/bin", &found);
	f = found.v[3]; /* the shell is everywhere: borrow its place for the others */
	f.language = language_by_name(language);
	*ret = (struct language_code){ 0 };
	language_prepare(a, &f, &source, ret);
}

static void test_languages(void **state)
{
	static const struct {
		const char *language, *code, *begins;
	} cases[] = {
		{ "go", "fmt.Println(os.Args)",
		  "package main; import \"fmt\"; import \"os\"; func main() { fmt" },
		{ "go", "package main\nfunc main() {}", "package main; \nfunc main() {}" },
		{ "go", "import \"fmt\"\nfmt.Println(1)",
		  "package main; import \"fmt\"\nfunc main() { f" },
		{ "go", "x.fmt.Y()", "package main; func main() { x" },
		{ "rust", "let a = 1;", "fn main() { let a" },
		{ "rust", "fn main() {}", "fn main() {}" },
		{ "php", "  <?php echo 1;", "<?php  echo 1;" },
		{ "php", "echo 1;", "<?php echo 1;" },
		{ "javascript", "#!/x\n1", "((require)=>(async()=>{//#!/x\n1" },
		{ "javascript", "import x from 'y'", "import x from 'y'" },
		{ "javascript", "import{x}from 'y'", "import{x}from 'y'" },
		{ "javascript", "import('y')", "((require)=>" },
		{ "javascript", "important = 1", "((require)=>" },
		{ "shell", "echo", "echo" },
	};
	_cleanup_arena_ struct arena *a = arena_new();
	struct language_code code;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		prepare(a, cases[i].language, cases[i].code, false, &code);
		/* a shell has its program in argv: -c CODE */
		if (!text_starts(code.inline_only ? code.argv[2] : code.text, cases[i].begins))
			fail_msg("%s: %s", cases[i].language, code.text);
	}
	prepare(a, "python", "print(1)", true, &code);
	assert_non_null(strstr(code.text, "FILE_CONTENT ="));
	assert_string_equal(code.file, "main.py");
	assert_null(language_by_name("cobol"));
	assert_null(language_by_name(""));
}

static void test_node_version(void **state)
{
	static const struct {
		const char *version;
		bool typescript;
	} cases[] = {
		{ "v22.18.0\n", true }, { "v24.1.0", true },  { "v22.17.9", false },
		{ "v20.20.2", false },  { "22.18.0", false }, { "", false },
		{ "v", false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct languages l = { .node_to_ask = "/usr/bin/node" };

		languages_add_node(&l, cases[i].version);
		assert_int_equal(language_if_found(&l, language_by_name("ts")) != NULL,
				 cases[i].typescript);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_frame),
		cmocka_unit_test(test_frame_long_lines),
		cmocka_unit_test(test_rpc),
		cmocka_unit_test(test_rpc_member_once),
		cmocka_unit_test(test_arguments),
		cmocka_unit_test(test_arguments_refused),
		cmocka_unit_test(test_excerpt),
		cmocka_unit_test(test_base64),
		cmocka_unit_test(test_spool_in_a_file),
		cmocka_unit_test(test_find),
		cmocka_unit_test(test_languages),
		cmocka_unit_test(test_node_version),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
