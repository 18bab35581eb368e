/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Code comes as a model writes it: without a package clause, without `<?php`, with await at the
 * top. What is added stands on the first line of the code, wherever the language allows it,
 * so that the lines in error messages are the model's own.
 *
 * execute_file hands the path over in the environment (FILE_CONTENT_PATH): no path is ever
 * pasted into a program.
 */
#include "mcp/language.h"

#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/path.h"
#include "base/text.h"

#define LAUNCHERS_MAX 5
#define ARGS_MAX 6
#define INLINE_MAX ((size_t)96 << 10) /* the kernel takes 128 KiB in one argument */

/* A program and the words before and after the name of the file. */
struct launcher {
	const char *program;
	const char *before[ARGS_MAX];
	bool shell; /* the file and its arguments go to `sh -c`, as "$1" and following */
};

enum wrapping {
	WRAP_NONE,
	WRAP_SHELL,
	WRAP_SCRIPT,
	WRAP_MODULE,
	WRAP_GO,
	WRAP_RUST,
	WRAP_PHP,
	WRAP_CSHARP, /* not for dotnet-script, which takes statements */
};

struct language {
	const char *name;
	const char *aliases[4];
	const char *file;
	enum wrapping wrapping;
	struct launcher launchers[LAUNCHERS_MAX];
	const char *file_prologue; /* defines FILE_CONTENT; on the line of the code or before it */
};

#define JS_FILE                                                                                    \
	"const FILE_CONTENT_PATH=process.env.FILE_CONTENT_PATH,file_path=FILE_CONTENT_PATH,"       \
	"FILE_CONTENT=require('fs').readFileSync(FILE_CONTENT_PATH,'utf8');"

/* clang-format off */
static const struct language table[LANGUAGE_COUNT] = {
	{ "javascript", { "js", "node", "nodejs" }, "main.js", WRAP_SCRIPT,
	  { { .program = "bun", .before = { "run" } }, { .program = "node" },
	    { .program = "deno", .before = { "run", "-A" } } }, JS_FILE },
	{ "typescript", { "ts" }, "main.ts", WRAP_MODULE,
	  { { .program = "bun", .before = { "run" } },
	    { .program = "deno", .before = { "run", "-A" } },
	    { .program = "tsx" }, { .program = "ts-node" } },
	  JS_FILE },
	{ "python", { "py", "python3" }, "main.py", WRAP_NONE,
	  { { .program = "python3" }, { .program = "python" } },
	  "import os as _os\n"
	  "FILE_CONTENT_PATH = file_path = _os.environ['FILE_CONTENT_PATH']\n"
	  "with open(file_path, encoding='utf-8', errors='replace') as _f: FILE_CONTENT = _f.read()\n" },
	{ "shell", { "bash", "sh" }, "main.sh", WRAP_SHELL, { { .program = "bash" }, { .program = "sh" } },
	  "FILE_CONTENT=$(cat -- \"$FILE_CONTENT_PATH\") || exit; file_path=$FILE_CONTENT_PATH; " },
	{ "ruby", { "rb" }, "main.rb", WRAP_NONE, { { .program = "ruby" } },
	  "FILE_CONTENT_PATH = file_path = ENV.fetch('FILE_CONTENT_PATH'); "
	  "FILE_CONTENT = File.read(file_path, encoding: 'utf-8'); " },
	{ "go", { "golang" }, "main.go", WRAP_GO, { { .program = "go", .before = { "run" } } },
	  "var FILE_CONTENT_PATH = ambitos.Getenv(\"FILE_CONTENT_PATH\"); "
	  "var file_path = FILE_CONTENT_PATH; "
	  "var FILE_CONTENT = func() string { b, err := ambitos.ReadFile(file_path); "
	  "if err != nil { panic(err) }; return string(b) }(); " },
	{ "rust", { "rs" }, "main.rs", WRAP_RUST,
	  { { .program = "rustc", .before = { "d=$(mktemp -d) && rustc --edition 2021 -o \"$d/main\" \"$1\" && shift && "
			 "exec \"$d/main\" \"$@\"" }, .shell = true } },
	  "let file_path = std::env::var(\"FILE_CONTENT_PATH\").unwrap(); "
	  "let file_content = std::fs::read_to_string(&file_path).unwrap(); " },
	{ "php", { NULL }, "main.php", WRAP_PHP, { { .program = "php" } },
	  "$FILE_CONTENT_PATH = $file_path = getenv('FILE_CONTENT_PATH'); "
	  "$FILE_CONTENT = file_get_contents($file_path); " },
	{ "perl", { "pl" }, "main.pl", WRAP_NONE, { { .program = "perl" } },
	  "our ($FILE_CONTENT_PATH, $file_path, $FILE_CONTENT); "
	  "$FILE_CONTENT_PATH = $file_path = $ENV{FILE_CONTENT_PATH}; "
	  "$FILE_CONTENT = do { local $/; open my $f, '<', $file_path or die \"$file_path: $!\\n\"; "
	  "<$f> }; " },
	{ "r", { "rscript" }, "main.R", WRAP_NONE, { { .program = "Rscript" } },
	  "FILE_CONTENT_PATH <- file_path <- Sys.getenv('FILE_CONTENT_PATH'); FILE_CONTENT <- "
	  "paste(readLines(file_path, warn = FALSE), collapse = '\\n'); " },
	{ "elixir", { "exs" }, "main.exs", WRAP_NONE, { { .program = "elixir" } },
	  "file_path = System.get_env(\"FILE_CONTENT_PATH\"); "
	  "file_content = File.read!(file_path); _ = file_content; " },
	{ "csharp", { "cs", "c#" }, "main.csx", WRAP_CSHARP,
	  { { .program = "dotnet-script" },
	    { .program = "mcs", .before = { "d=$(mktemp -d) && mcs -nologo -warn:0 -debug -out:\"$d/main.exe\" \"$1\" && "
		"shift && exec mono --debug \"$d/main.exe\" \"$@\"" }, .shell = true } },
	  "var file_path = System.Environment.GetEnvironmentVariable(\"FILE_CONTENT_PATH\"); "
	  "var FILE_CONTENT_PATH = file_path; "
	  "var FILE_CONTENT = System.IO.File.ReadAllText(file_path); " },
};
/* clang-format on */

/* node runs TypeScript by itself from 22.18 on (and 23.6, which never was a lasting version). */
static const struct launcher node_typescript = { "node", { "--no-warnings" }, false };
#define NODE_TYPESCRIPT_MAJOR 22
#define NODE_TYPESCRIPT_MINOR 18

/* --- finding ------------------------------------------------------------------------ */

static const char *find_program(struct arena *a, const char *path, const char *name)
{
	while (*path) {
		size_t n = strcspn(path, ":");
		struct stat st;

		if (path[0] == '/') {
			char *file = arena_printf(a, "%.*s/%s", (int)n, path, name);

			if (stat(file, &st) == 0 && S_ISREG(st.st_mode) && access(file, X_OK) == 0)
				return file;
		}
		path += n + (path[n] == ':');
	}
	return NULL;
}

void languages_find(struct arena *a, const char *path, struct languages *ret)
{
	*ret = (struct languages){ 0 };
	for (size_t i = 0; i < LANGUAGE_COUNT; i++) {
		struct language_found *f = &ret->v[i];

		for (size_t k = 0; k < LAUNCHERS_MAX && !f->program; k++) {
			const struct launcher *l = &table[i].launchers[k];

			if (!l->program)
				break;
			f->program = find_program(a, path, l->program);
			f->launcher = l;
		}
		if (f->program)
			f->language = &table[i];
	}
	if (!ret->v[1].language)
		ret->node_to_ask = find_program(a, path, "node");
}

void languages_add_node(struct languages *l, const char *version)
{
	uint64_t major, minor = 0;
	const char *dot = strchr(version, '.');

	if (version[0] != 'v' || !l->node_to_ask)
		return;
	major = text_leading_u64(version + 1);
	if (dot)
		minor = text_leading_u64(dot + 1);
	if (major > NODE_TYPESCRIPT_MAJOR ||
	    (major == NODE_TYPESCRIPT_MAJOR && minor >= NODE_TYPESCRIPT_MINOR))
		l->v[1] = (struct language_found){ &table[1], &node_typescript, l->node_to_ask };
	l->node_to_ask = NULL;
}

const char *language_name(const struct language *l)
{
	return l->name;
}

static bool same_word(const char *a, const char *b)
{
	for (; *a && ascii_lower(*a) == *b; a++)
		b++;
	return !*a && !*b;
}

const struct language *language_by_name(const char *name)
{
	for (size_t i = 0; i < LANGUAGE_COUNT; i++) {
		if (same_word(name, table[i].name))
			return &table[i];
		for (size_t k = 0; k < ARRAY_LEN(table[i].aliases) && table[i].aliases[k]; k++) {
			if (same_word(name, table[i].aliases[k]))
				return &table[i];
		}
	}
	return NULL;
}

const struct language_found *language_if_found(const struct languages *l,
					       const struct language *which)
{
	const struct language_found *f = &l->v[which - table];

	return f->language ? f : NULL;
}

const char *language_wants(const struct language *l)
{
	return l->launchers[0].program;
}

const char *languages_list(struct arena *a, const struct languages *l)
{
	_cleanup_buf_ struct buf b = BUF_INIT(BUF_MAX_TEXT);

	for (size_t i = 0; i < LANGUAGE_COUNT; i++) {
		if (!l->v[i].language)
			continue;
		buf_printf(&b, "%s%s", b.len ? ", " : "", l->v[i].language->name);
	}
	return arena_strdup(a, buf_str(&b));
}

/* --- wrapping ------------------------------------------------------------------------- */

static const char *skip_blanks(const char *s)
{
	return s + strspn(s, " \t\r\n");
}

/* Past this line. */
static const char *next_line(const char *s)
{
	s += strcspn(s, "\n");
	return s + (*s == '\n');
}

/* Does a line begin with `word`, followed by something that is not part of a word? */
static bool has_line(const char *code, const char *word)
{
	size_t n = strlen(word);

	for (; *code; code = next_line(code)) {
		const char *s = code + strspn(code, " \t");

		if (strncmp(s, word, n) == 0 && !ascii_alnum(s[n]) && s[n] != '_')
			return true;
	}
	return false;
}

/* `name` stands there as a word of its own. */
static bool holds_word(const char *code, const char *name)
{
	size_t n = strlen(name);

	for (const char *s = strstr(code, name); s; s = strstr(s + 1, name)) {
		bool begins = s == code || (!ascii_alnum(s[-1]) && s[-1] != '_' && s[-1] != '.');

		if (begins && (name[n - 1] == '.' || (!ascii_alnum(s[n]) && s[n] != '_')))
			return true;
	}
	return false;
}

/* import and export statements, not import(): then it is a module and cannot be wrapped. */
static bool is_module(const char *code)
{
	for (const char *s = code; *s; s = next_line(s)) {
		const char *after;

		if (strncmp(s, "export ", 7) == 0)
			return true;
		if (strncmp(s, "import", 6) != 0)
			continue;
		after = s + 6 + strspn(s + 6, " \t");
		if (*after != '(' && *after != '.' && (after > s + 6 || strchr("{*'\"", *after)))
			return *after != '\0';
	}
	return false;
}

/*
 * An async function around the code: await works at the top, and require() looks where the
 * program runs, not where its file lies.
 */
static void wrap_script(struct buf *b, const char *code, const char *prologue)
{
	buf_puts(b, "((require)=>(async()=>{");
	buf_puts(b, prologue);
	if (code[0] == '#' && code[1] == '!')
		buf_puts(b, "//");
	buf_puts(b, code);
	buf_puts(b, "\n})())(require('module').createRequire(process.cwd()+'/'))"
		    ".catch((e)=>{console.error(e);process.exitCode=1;});\n");
}

static const struct {
	const char *word, *import;
} go_packages[] = {
	{ "fmt.", "fmt" },
	{ "os.", "os" },
	{ "io.", "io" },
	{ "log.", "log" },
	{ "math.", "math" },
	{ "rand.", "math/rand" },
	{ "time.", "time" },
	{ "sort.", "sort" },
	{ "sync.", "sync" },
	{ "bytes.", "bytes" },
	{ "bufio.", "bufio" },
	{ "slices.", "slices" },
	{ "maps.", "maps" },
	{ "errors.", "errors" },
	{ "regexp.", "regexp" },
	{ "reflect.", "reflect" },
	{ "strings.", "strings" },
	{ "strconv.", "strconv" },
	{ "unicode.", "unicode" },
	{ "context.", "context" },
	{ "runtime.", "runtime" },
	{ "json.", "encoding/json" },
	{ "base64.", "encoding/base64" },
	{ "hex.", "encoding/hex" },
	{ "csv.", "encoding/csv" },
	{ "sha256.", "crypto/sha256" },
	{ "http.", "net/http" },
	{ "url.", "net/url" },
	{ "net.", "net" },
	{ "exec.", "os/exec" },
	{ "filepath.", "path/filepath" },
};

/* Past the comments and import declarations at the start. */
static const char *past_go_imports(const char *code)
{
	for (;;) {
		const char *s = skip_blanks(code);

		if (strncmp(s, "//", 2) == 0)
			code = next_line(s);
		else if (strncmp(s, "import", 6) == 0 && *skip_blanks(s + 6) == '(' &&
			 strchr(s, ')'))
			code = next_line(strchr(s, ')'));
		else if (strncmp(s, "import ", 7) == 0)
			code = next_line(s);
		else
			return code;
	}
}

/* Up to and with the package clause, and imports for what is used. */
static const char *put_go_head(struct buf *b, const char *code)
{
	if (has_line(code, "package")) {
		const char *end = strstr(code, "package");

		end += strcspn(end, "\n;");
		buf_append(b, code, (size_t)(end - code));
		return end;
	}
	buf_puts(b, "package main");
	for (size_t i = 0; !has_line(code, "import") && i < ARRAY_LEN(go_packages); i++) {
		if (holds_word(code, go_packages[i].word))
			buf_printf(b, "; import \"%s\"", go_packages[i].import);
	}
	return code;
}

static void wrap_go(struct buf *b, const char *code, const char *prologue)
{
	const char *body;

	code = put_go_head(b, code);
	buf_puts(b, *prologue ? "; import ambitos \"os\"; " : "; ");
	body = past_go_imports(code);
	buf_append(b, code, (size_t)(body - code));
	buf_puts(b, prologue);
	if (holds_word(body, "func main")) {
		buf_puts(b, body);
		return;
	}
	buf_puts(b, "func main() { ");
	buf_puts(b, body);
	buf_puts(b, "\n}\n");
}

static void wrap_rust(struct buf *b, const char *code, const char *prologue)
{
	if (holds_word(code, "fn main")) {
		buf_puts(b, code);
		return;
	}
	buf_puts(b, "fn main() { ");
	buf_puts(b, prologue);
	buf_puts(b, code);
	buf_puts(b, "\n}\n");
}

/* The same for every C# program that is no whole one: what dotnet-script imports by itself. */
#define CSHARP_USING                                                                               \
	"using System; using System.Collections.Generic; using System.Diagnostics; using "         \
	"System.IO; using System.Linq; using System.Text; using System.Threading; using "          \
	"System.Threading.Tasks; "

/* Past the comments and using directives at the start. */
static const char *past_using(const char *code)
{
	for (;;) {
		const char *s = skip_blanks(code);

		if (strncmp(s, "//", 2) != 0 &&
		    (strncmp(s, "using ", 6) != 0 || s[6 + strspn(s + 6, " \t")] == '('))
			return code;
		code = next_line(s);
	}
}

/* Statements for a compiler that wants a class. */
static void wrap_csharp(struct buf *b, const char *code, const char *prologue)
{
	const char *body = past_using(code);

	buf_puts(b, CSHARP_USING);
	buf_append(b, code, (size_t)(body - code));
	if (holds_word(body, "Main") && holds_word(body, "class")) {
		buf_puts(b, body);
		return;
	}
	buf_puts(b, "static class Program { ");
	if (holds_word(body, "await"))
		buf_puts(b, "static void Main(string[] a) { Run(a).GetAwaiter().GetResult(); } "
			    "static async Task Run(string[] Args) { ");
	else
		buf_puts(b, "static void Main(string[] Args) { ");
	buf_puts(b, prologue);
	buf_puts(b, body);
	buf_puts(b, "\n} }\n");
}

static void wrap_php(struct buf *b, const char *code, const char *prologue)
{
	const char *start = skip_blanks(code);

	if (strncmp(start, "<?php", 5) == 0)
		code = start + 5;
	buf_puts(b, "<?php ");
	buf_puts(b, prologue);
	buf_puts(b, code);
}

static char **make_argv(struct arena *a, const struct language_found *l, const char *file)
{
	char **argv = NULL;
	size_t n = 0;

	if (l->launcher->shell) {
		*ARENA_PUSH(a, argv, n) = arena_strdup(a, "/bin/sh");
		*ARENA_PUSH(a, argv, n) = arena_strdup(a, "-c");
		*ARENA_PUSH(a, argv, n) = arena_strdup(a, l->launcher->before[0]);
		*ARENA_PUSH(a, argv, n) = arena_strdup(a, l->language->name);
	} else {
		*ARENA_PUSH(a, argv, n) = arena_strdup(a, l->program);
		for (size_t i = 0; i < ARGS_MAX && l->launcher->before[i]; i++)
			*ARENA_PUSH(a, argv, n) = arena_strdup(a, l->launcher->before[i]);
	}
	*ARENA_PUSH(a, argv, n) = arena_strdup(a, file);
	*ARENA_PUSH(a, argv, n) = NULL;
	return argv;
}

/*
 * node looks for the packages of a module where the module lies; given as an argument, the
 * module lies in the working directory.
 */
static bool prepare_inline(struct arena *a, const struct language_found *l, const char *code,
			   struct language_code *ret)
{
	char **argv;

	if (strcmp(l->launcher->program, "node") != 0 || strlen(code) > INLINE_MAX)
		return false;
	argv = arena_array(a, 6, sizeof(*argv));
	argv[0] = arena_strdup(a, l->program);
	argv[1] = arena_strdup(a, l->language == &table[1] ? "--input-type=module-typescript"
							   : "--input-type=module");
	argv[2] = arena_strdup(a, "--no-warnings");
	argv[3] = arena_strdup(a, "-e");
	argv[4] = arena_strdup(a, code);
	*ret = (struct language_code){ .inline_only = true, .argv = argv };
	return true;
}

/* A shell takes its program as an argument too: nothing is to be put anywhere. */
static bool prepare_shell(struct arena *a, const struct language_found *l, const char *code,
			  struct language_code *ret)
{
	char **argv;

	if (strlen(code) > INLINE_MAX)
		return false;
	argv = arena_array(a, 5, sizeof(*argv));
	argv[0] = arena_strdup(a, l->program);
	argv[1] = arena_strdup(a, "-c");
	argv[2] = arena_strdup(a, code);
	argv[3] = arena_strdup(a, l->language->file); /* $0, for its messages */
	*ret = (struct language_code){ .inline_only = true, .argv = argv };
	return true;
}

static const char *module_prologue(bool with_file)
{
	return with_file ? "import {readFileSync as ambit_read} from 'node:fs';"
			   "const FILE_CONTENT_PATH=process.env.FILE_CONTENT_PATH,"
			   "file_path=FILE_CONTENT_PATH,"
			   "FILE_CONTENT=ambit_read(FILE_CONTENT_PATH,'utf8');"
			 : "";
}

void language_prepare(struct arena *a, const struct language_found *l,
		      const struct language_source *source, struct language_code *ret)
{
	_cleanup_buf_ struct buf b = BUF_INIT(BUF_MAX_TEXT);
	const char *prologue = source->with_file ? l->language->file_prologue : "";
	const char *file = l->language->file, *code = source->code;
	enum wrapping how = l->language->wrapping;

	if ((how == WRAP_SCRIPT || how == WRAP_MODULE) && is_module(code)) {
		buf_puts(&b, module_prologue(source->with_file));
		buf_puts(&b, code);
		if (prepare_inline(a, l, buf_str(&b), ret))
			return;
		file = how == WRAP_SCRIPT ? "main.mjs" : "main.mts";
	} else if (how == WRAP_SCRIPT || how == WRAP_MODULE) {
		wrap_script(&b, code, prologue);
		file = how == WRAP_SCRIPT ? "main.cjs" : "main.cts";
	} else if (how == WRAP_GO) {
		wrap_go(&b, code, prologue);
	} else if (how == WRAP_RUST) {
		wrap_rust(&b, code, prologue);
	} else if (how == WRAP_CSHARP && l->launcher->shell) {
		wrap_csharp(&b, code, prologue);
		file = "main.cs";
	} else if (how == WRAP_PHP) {
		wrap_php(&b, code, prologue);
	} else {
		buf_puts(&b, prologue);
		buf_puts(&b, code);
		if (how == WRAP_SHELL && prepare_shell(a, l, buf_str(&b), ret))
			return;
	}
	ret->file = file;
	ret->text = arena_strdup(a, buf_str(&b));
	ret->inline_only = false;
	ret->argv = make_argv(a, l, path_join(a, source->stage, file));
}
