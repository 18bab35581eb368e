/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Seatbelt profiles: the text for some policies against tests/plan/seatbelt*.sb, and the decisions of several against the policy's own. The small
 * interpreter here knows single-line file rules; the last that matches decides.
 */
#include "policy_fixture.h"

#include <fcntl.h>
#include <regex.h>

#include "sandbox/seatbelt/seatbelt.h"

#define TMP "/private/tmp/ambit-run"

static const struct seatbelt_facts facts = { .tmp = TMP, .http_port = 4128, .socks_port = 4080 };

/* --- strings and patterns ---------------------------------------------------------- */

static void test_quote(void **state)
{
	static const struct {
		const char *in, *out;
	} cases[] = {
		{ "/a b", "\"/a b\"" },
		{ "/a\"b", "\"/a\\\"b\"" },
		{ "/a\\", "\"/a\\\\\"" },
		{ "/a\")) (allow default)", "\"/a\\\")) (allow default)\"" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		_cleanup_buf_ struct buf b = BUF_INIT(BUF_MAX_TEXT);

		assert_int_equal(seatbelt_quote(cases[i].in, &b), 0);
		assert_string_equal(buf_str(&b), cases[i].out);
	}
	for (int c = 1; c < 32; c++) {
		_cleanup_buf_ struct buf b = BUF_INIT(BUF_MAX_TEXT);
		const char s[] = { '/', (char)c, '\0' };

		assert_int_equal(seatbelt_quote(s, &b), -EINVAL);
		assert_int_equal(b.len, 0);
	}
}

static bool regex_matches(const char *pattern, const char *path)
{
	regex_t re;
	bool matches;

	assert_int_equal(regcomp(&re, pattern, REG_EXTENDED | REG_NOSUB), 0);
	matches = regexec(&re, path, 0, NULL, 0) == 0;
	regfree(&re);
	return matches;
}

static void test_patterns(void **state)
{
	static const struct {
		const char *pattern, *path;
		bool covers;
	} cases[] = {
		{ "/a/*.c", "/a/x.c", true },
		{ "/a/*.c", "/a/b/x.c", false },
		{ "/a/*.c", "/a/x.c/below", true },
		{ "/a/**/.env", "/a/.env", true },
		{ "/a/**/.env", "/a/b/c/.env", true },
		{ "/a/**/.env", "/a/b/c.env", false },
		{ "/a/?", "/a/b", true },
		{ "/a/?", "/a/bc", false },
		{ "/a/[b-d]", "/a/c", true },
		{ "/a/[!b-d]", "/a/c", false },
		{ "/a/[!b]x", "/a//x", false },
		{ "/a/x+(y)", "/a/x+(y)", true },
		{ "/a/x+(y)", "/a/xxy", false },
		{ "/a/\\*", "/a/*", true },
		{ "/a/\\*", "/a/b", false },
		{ "/a/b.c", "/a/bxc", false },
		{ "/*", "/", false },
		{ "/*", "/a", true },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		_cleanup_buf_ struct buf b = BUF_INIT(BUF_MAX_TEXT);

		assert_int_equal(seatbelt_regex(cases[i].pattern, SIZE_MAX, &b), 0);
		if (regex_matches(buf_str(&b), cases[i].path) != cases[i].covers)
			fail_msg("%s (%s) and %s", cases[i].pattern, buf_str(&b), cases[i].path);
	}
}

/* How they are read there is not known: refused. */
static void test_odd_sets(void **state)
{
	static const char *const odd[] = { "/a/[\\]]", "/a/[]]",  "/a/[[]",   "/a/[a^]", "/a/[+-9]",
					   "/a/[A-z]", "/a/[a-]", "/a/[b-a]", "/a/[",    "/a/[a" };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(odd); i++) {
		_cleanup_buf_ struct buf b = BUF_INIT(BUF_MAX_TEXT);

		if (seatbelt_regex(odd[i], SIZE_MAX, &b) != -EINVAL)
			fail_msg("%s becomes %s", odd[i], buf_str(&b));
	}
}

/* --- an interpreter ---------------------------------------------------------------- */

static void unquote(const char *s, char *out)
{
	for (s++; *s && *s != '"'; s++) {
		if (*s == '\\')
			s++;
		*out++ = *s;
	}
	*out = '\0';
}

/* Does the line's one filter match? */
static bool applies(const char *filter, const char *path)
{
	char text[8192];
	const char *open = strchr(filter, '"');

	if (!open || strlen(filter) >= sizeof(text))
		return false;
	unquote(open, text);
	if (text_starts(filter, "(subpath "))
		return path_within(path, text);
	if (text_starts(filter, "(literal "))
		return strcmp(path, text) == 0;
	return text_starts(filter, "(regex ") && regex_matches(text, path);
}

static bool allowed(struct arena *a, const char *profile, const char *operation, const char *path)
{
	bool verdict = false;
	char *copy = arena_strdup(a, profile), *rest = copy, *line;

	while ((line = strsep(&rest, "\n"))) {
		bool allow = text_starts(line, "(allow ");
		const char *op = line + (allow ? strlen("(allow ") : strlen("(deny "));
		size_t n = strlen(operation);

		if ((!allow && !text_starts(line, "(deny ")) || strncmp(op, operation, n) != 0)
			continue;
		if (op[n] == ')' || (op[n] == ' ' && applies(op + n + 1, path)))
			verdict = allow;
	}
	return verdict;
}

/* --- policies ---------------------------------------------------------------------- */

static void load(struct fixture *f, const char *settings)
{
	f->in.only_file = fixture_write(f, "settings.yaml", settings);
	if (policy_load(f->a, &f->in, &f->p, &f->e) < 0)
		fail_msg("%s", f->e.text);
}

static const char *profile_of(struct fixture *f)
{
	_cleanup_buf_ struct buf b = BUF_INIT(BUF_MAX_TEXT);

	if (seatbelt_profile(f->a, f->p, &facts, &b, &f->e) < 0)
		fail_msg("%s", f->e.text);
	return arena_strdup(f->a, buf_str(&b));
}

static void test_decisions(void **state)
{
	static const char *const policies[] = {
		"{}\n",
		"filesystem:\n  denyRead: [\"~/secret\"]\n  allowRead: [\"~/secret/open\"]\n",
		"filesystem:\n  denyRead: [\"~\"]\n  allowRead: [\"~/proj\"]\n",
		"filesystem:\n  allowWrite: [\"~\"]\n  denyWrite: [\"~/proj/locked\"]\n",
		"filesystem:\n  denyWrite: [\"**/*.pem\"]\n  denyRead: [\"~/proj/*.key\"]\n",
	};
	static const char *const names[] = {
		"a",
		"sub/a",
		".env",
		"sub/.env",
		".envrc",
		".bashrc",
		"x.pem",
		"sub/x.pem",
		"x.key",
		"locked",
		"locked/file",
		".vscode/tasks.json",
		".vscode",
		".git/index",
		"../secret",
		"../secret/open/file",
		"../secret/file",
		"../other",
		"../.ssh/id",
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_LEN(policies); i++) {
		const char *profile;

		load(f, policies[i]);
		profile = profile_of(f);
		for (size_t k = 0; k < ARRAY_LEN(names); k++) {
			const char *path = path_absolute(f->a, f->proj, names[k]);
			struct decision d;

			policy_decide_path(f->p, ACCESS_READ, path, &d);
			if (allowed(f->a, profile, "file-read*", path) !=
			    (d.verdict == VERDICT_ALLOW))
				fail_msg("policy %zu, reading %s: %s", i, path, d.reason);
			policy_decide_path(f->p, ACCESS_WRITE, path, &d);
			if (allowed(f->a, profile, "file-write*", path) !=
			    (d.verdict == VERDICT_ALLOW))
				fail_msg("policy %zu, writing %s: %s", i, path, d.reason);
		}
	}
}

static void test_git_is_closed(void **state)
{
	struct fixture *f = *state;
	const char *profile, *open;

	load(f, "{}\n");
	profile = profile_of(f);
	load(f, "filesystem: { allowGitConfig: true }\n");
	open = profile_of(f);
	for (int deep = 0; deep < 2; deep++) {
		const char *base = deep ? path_join(f->a, f->proj, "a/b") : f->proj;
		const char *hook = path_join(f->a, base, ".git/hooks/pre-commit");
		const char *config = path_join(f->a, base, ".git/config");

		assert_false(allowed(f->a, profile, "file-write*", hook));
		assert_false(allowed(f->a, profile, "file-write*",
				     path_join(f->a, base, ".GIT/Hooks/pre-commit")));
		assert_false(allowed(f->a, open, "file-write*", hook));
		assert_false(allowed(f->a, profile, "file-write*", config));
		assert_true(allowed(f->a, open, "file-write*", config));
		assert_true(
			allowed(f->a, profile, "file-write*", path_join(f->a, base, ".git/index")));
	}
}

static void test_network(void **state)
{
	struct fixture *f = *state;
	const char *profile;

	load(f, "{}\n");
	assert_null(strstr(profile_of(f), "remote ip"));
	load(f, "network: { allowedDomains: [a.test] }\n");
	profile = profile_of(f);
	assert_non_null(strstr(profile, "(remote ip \"localhost:4128\")"));
	assert_non_null(strstr(profile, "(remote ip \"localhost:4080\")"));
	load(f, "network: { mode: host }\n");
	assert_non_null(strstr(profile_of(f), "(allow network* system-socket)"));
}

/* Paths of the fixture differ from run to run: the golden one has a home of its own. */
static const char *with_fixed_paths(struct fixture *f, const char *text)
{
	_cleanup_buf_ struct buf b = BUF_INIT(BUF_MAX_TEXT);

	while (*text) {
		if (text_starts(text, f->dir)) {
			buf_puts(&b, "/Users/me");
			text += strlen(f->dir);
		} else {
			buf_putc(&b, *text++);
		}
	}
	return arena_strdup(f->a, buf_str(&b));
}

/* The file is rewritten with UPDATE_GOLDEN=1. */
static void compare(struct fixture *f, const char *file, const char *settings,
		    const struct seatbelt_facts *with)
{
	_cleanup_buf_ struct buf b = BUF_INIT(BUF_MAX_TEXT);
	_cleanup_free_ char *want = NULL;
	const char *got;

	load(f, settings);
	if (seatbelt_profile(f->a, f->p, with, &b, &f->e) < 0)
		fail_msg("%s", f->e.text);
	got = with_fixed_paths(f, buf_str(&b));
	if (getenv("UPDATE_GOLDEN")) {
		_cleanup_fd_ int fd = open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

		assert_int_equal(fd_write_all(fd, got, strlen(got)), 0);
	}
	assert_int_equal(fd_read_file(AT_FDCWD, file, (size_t)1 << 20, &want, NULL), 0);
	assert_string_equal(got, want);
}

static void test_golden(void **state)
{
	const struct seatbelt_facts private = { .tmp = TMP, .home = "/private/tmp/ambit-home" };
	const struct seatbelt_facts shared = { .shared_tmp = "/private/var/folders/x/T",
					       .self = "/usr/local/bin/ambit" };
	struct fixture *f = *state;

	compare(f, "tests/plan/seatbelt.sb",
		"network: { allowedDomains: [a.test], allowUnixSockets: [/var/run/x.sock] }\n"
		"filesystem: { denyRead: [\"~/secret\"], denyWrite: [locked/deep, \"**/*.pem\"] "
		"}\n",
		&facts);
	compare(f, "tests/plan/seatbelt-default.sb", "{}\n", &facts);
	compare(f, "tests/plan/seatbelt-private-home.sb",
		"filesystem: { home: private, allowRead: [\"~/.gitconfig\"], denyRead: "
		"[\"a*[0-9]\"] }\n"
		"network: { mode: host }\n",
		&private);
	compare(f, "tests/plan/seatbelt-shared.sb",
		"filesystem: { tmp: shared, protect: anchors, allowGitConfig: true }\n"
		"network: { allowHostPorts: [5432], allowLocalBinding: false }\n",
		&shared);
}

static void test_hold(void **state)
{
	static const struct {
		const char *settings, *why; /* NULL: held */
	} cases[] = {
		{ "{}\n", NULL },
		{ "limits: { timeout: 1m }\n", NULL },
		{ "network: { mode: host }\n", NULL },
		{ "require: [files, names, network]\n", NULL },
		{ "network: { allowedDomains: [a.test] }\n", "ambit-proxy" },
		{ "limits: { memory: 1g }\n", "limits.memory" },
		{ "backend: landlock\n", "no backend landlock" },
		{ "require: [landlock]\n", "landlock is not enforced" },
		{ "fallback: warn\nnetwork: { allowedDomains: [a.test] }\n", "ambit-proxy" },
	};
	struct fixture *f = *state;
	struct text_rules lost;

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		int r;

		load(f, cases[i].settings);
		r = seatbelt_hold(f->a, f->p, &lost, &f->e);
		if ((r == 0) != !cases[i].why || (r < 0 && !strstr(f->e.text, cases[i].why)))
			fail_msg("%s: %d %s", cases[i].settings, r, f->e.text);
	}
	load(f, "fallback: warn\nlimits: { memory: 1g, cpu: 2 }\n");
	assert_int_equal(seatbelt_hold(f->a, f->p, &lost, &f->e), 0);
	assert_int_equal(lost.n, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_quote),
		cmocka_unit_test(test_patterns),
		cmocka_unit_test(test_odd_sets),
		cmocka_unit_test_setup_teardown(test_decisions, fixture_up, fixture_down),
		cmocka_unit_test_setup_teardown(test_git_is_closed, fixture_up, fixture_down),
		cmocka_unit_test_setup_teardown(test_network, fixture_up, fixture_down),
		cmocka_unit_test_setup_teardown(test_golden, fixture_up, fixture_down),
		cmocka_unit_test_setup_teardown(test_hold, fixture_up, fixture_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
