/* SPDX-License-Identifier: Apache-2.0 */
/* Which rule decides about a path. */
#include "policy/build.h"
#include "policy_fixture.h"

static void test_defaults(void **state)
{
	struct fixture *f = *state;

	fixture_load(f);
	assert_readable(f, "/usr/bin/env");
	assert_readable(f, "home/notes");
	assert_hidden(f, "home/.ssh");
	assert_hidden(f, "home/.ssh/id_ed25519");
	assert_readable(f, "home/.sshx");
	assert_hidden(f, "home/.config/gh/hosts.yml");
	assert_readable(f, "home/.config/htop");
	assert_hidden(f, "home/.claude/.credentials.json");
	assert_readable(f, "home/.claude/projects");
	assert_hidden(f, "/etc/shadow");
	assert_writable(f, "home/proj/src/x");
	assert_writable(f, "home/proj");
	assert_unwritable(f, "home/projx");
	assert_unwritable(f, "home/x");
	assert_unwritable(f, "/etc/hosts");
	/* private: written there is not written here */
	assert_writable(f, "/tmp/x");
	assert_hidden(f, "/tmp/x");
}

static void test_depth(void **state)
{
	struct fixture *f = *state;

	fixture_user(f, "filesystem:\n"
			"  denyRead: [~/d, ~/d/a/b/secret]\n"
			"  allowRead: [~/d/a]\n");
	fixture_load(f);
	assert_hidden(f, "home/d/x");
	assert_readable(f, "home/d/a");
	assert_readable(f, "home/d/a/b/x");
	assert_hidden(f, "home/d/a/b/secret/x");
	assert_hidden(f, "home/d/ab");
}

static void test_equal_depth(void **state)
{
	struct fixture *f = *state;

	/* in one layer the deny; a plain path over a pattern; a later layer over all */
	fixture_user(f, "filesystem:\n"
			"  denyRead: [~/same, '~/p*', ~/later]\n"
			"  allowRead: [~/same, ~/plain]\n");
	fixture_option(f, "filesystem.allowRead", "~/late*");
	fixture_load(f);
	assert_hidden(f, "home/same");
	assert_hidden(f, "home/pattern/x");
	assert_readable(f, "home/plain/x");
	assert_readable(f, "home/later");
}

static void test_allow_read_order_does_not_matter(void **state)
{
	struct fixture *f = *state;

	fixture_user(f, "filesystem:\n  allowRead: [~/same]\n  denyRead: [~/same]\n");
	fixture_load(f);
	assert_hidden(f, "home/same");
}

static void test_write(void **state)
{
	struct fixture *f = *state;
	struct decision d;

	fixture_user(f, "filesystem:\n"
			"  allowWrite: [~/w, ~/w/no/deep, ~/.aws/cli]\n"
			"  denyWrite: [~/w/no, '~/w/**/*.lock']\n"
			"  denyRead: [~/w/hidden]\n");
	fixture_load(f);
	assert_writable(f, "home/w/x");
	/* a denyWrite holds at any depth below it, deeper allows or not */
	assert_unwritable(f, "home/w/no/deep/x");
	assert_unwritable(f, "home/w/a/b/c.lock");
	assert_unwritable(f, "home/w/c.lock/below");
	assert_writable(f, "home/w/c.lockx");
	assert_unwritable(f, "home/w/hidden/x");
	/* an allowWrite inside a hidden place opens it for reading too */
	assert_readable(f, "home/.aws/cli/cache");
	assert_hidden(f, "home/.aws/credentials");
	policy_decide_path(f->p, ACCESS_WRITE, "/etc/hosts", &d);
	assert_string_equal(d.reason, "outside the writable directories");
	assert_null(d.rule);
	policy_decide_path(f->p, ACCESS_READ, arena_printf(f->a, "%s/.ssh/x", f->home), &d);
	assert_string_equal(d.reason, "private keys");
	assert_string_equal(d.rule->text, "~/.ssh");
}

static void test_root(void **state)
{
	struct fixture *f = *state;

	fixture_user(f, "filesystem: {denyRead: [/], allowRead: [/usr, .]}");
	fixture_load(f);
	assert_hidden(f, "/");
	assert_hidden(f, "/etc/passwd");
	assert_readable(f, "/usr");
	assert_readable(f, "home/proj/x");
	fixture_user(f, "filesystem: {allowWrite: [/**]}");
	fixture_load(f);
	assert_writable(f, "/etc/hosts");
	assert_unwritable(f, "home/.ssh/authorized_keys");
	assert_unwritable(f, "home/.bashrc");
}

static void test_patterns(void **state)
{
	struct fixture *f = *state;

	fixture_user(f, "filesystem:\n"
			"  denyRead: ['**/.env', '~/k[0-9]', ~/t/**, 'a\\*b']\n"
			"  allowRead: [~/t/open]\n");
	fixture_load(f);
	/* relative patterns start at the working directory */
	assert_hidden(f, "home/proj/.env");
	assert_hidden(f, "home/proj/a/b/.env/x");
	assert_readable(f, "home/proj/a/b/.envx");
	assert_readable(f, "home/.env");
	assert_hidden(f, "home/k1/x");
	assert_readable(f, "home/kx");
	assert_hidden(f, "home/t");
	assert_readable(f, "home/t/open/x");
	assert_hidden(f, "home/proj/a*b");
	assert_readable(f, "home/proj/axb");
}

/* Characters of patterns in the names around a pattern are only names. */
static void test_pattern_in_odd_directory(void **state)
{
	struct fixture *f = *state;

	f->in.cwd = fixture_mkdir(f, "home/[a-z]*");
	fixture_option(f, "filesystem.denyRead", "*.key");
	fixture_option(f, "filesystem.denyWrite", "plain");
	fixture_load(f);
	assert_hidden(f, "home/[a-z]*/x.key");
	assert_readable(f, "home/b/x.key");
	assert_unwritable(f, "home/[a-z]*/plain");
	assert_writable(f, "home/[a-z]*/other");
}

/* Secrets lie where the caller's own variables lead programs to. */
static void test_moved_secrets(void **state)
{
	struct fixture *f = *state;
	char *const variables[] = {
		arena_printf(f->a, "XDG_CONFIG_HOME=%s/conf/", f->dir),
		arena_printf(f->a, "GNUPGHOME=%s/keys", f->dir),
		arena_strdup(f->a, "CARGO_HOME=~/.cargo"),
		arena_printf(f->a, "DOCKER_CONFIG=%s/docker", f->dir),
		arena_printf(f->a, "CLAUDE_CONFIG_DIR=%s/agent", f->dir),
		arena_printf(f->a, "KUBECONFIG=%s/k1:/dev/null:~/k2", f->dir),
		arena_printf(f->a, "NETRC=%s", f->home), /* not all of it */
		arena_strdup(f->a, "NPM_CONFIG_USERCONFIG=relative"),
		NULL,
	};
	static const char *const secret[] = { "conf/gh/hosts.yml",
					      "keys/trustdb.gpg",
					      "docker/config.json",
					      "agent/.credentials.json",
					      "agent/.claude.json",
					      "k1",
					      "home/k2",
					      NULL };
	size_t before = fixture_load(f)->fs.rules.n;

	for (size_t i = 0; secret[i]; i++)
		assert_readable(f, secret[i]);
	f->in.environ_in = variables;
	fixture_load(f);
	for (size_t i = 0; secret[i]; i++)
		assert_hidden(f, secret[i]);
	assert_hidden(f, "home/.gnupg");
	assert_readable(f, "docker/other");
	assert_readable(f, "conf/nvim");
	assert_readable(f, "home/x");
	assert_readable(f, "/dev/null");
	assert_string_equal(f->p->fs.rules.v[f->p->fs.rules.n - 1].origin.name, "KUBECONFIG");
	/* an option's word counts more, as for the usual places */
	fixture_option(f, "filesystem.allowRead", arena_printf(f->a, "%s/k1", f->dir));
	fixture_load(f);
	assert_readable(f, "k1");
	f->in.environ_in = NULL;
	assert_int_equal(fixture_load(f)->fs.rules.n, before + 1);
}

/* Rules are enforced where the path really is. */
static void test_symlinks(void **state)
{
	struct fixture *f = *state;

	fixture_mkdir(f, "keys");
	fixture_mkdir(f, "home/real");
	assert_int_equal(symlink("../keys", arena_printf(f->a, "%s/.ssh", f->home)), 0);
	assert_int_equal(symlink("real", arena_printf(f->a, "%s/link", f->home)), 0);
	assert_int_equal(symlink("real", arena_printf(f->a, "%s/.config", f->home)), 0);
	fixture_user(f, "filesystem: {allowWrite: [~/link/new], denyRead: ['~/link/*.key']}");
	fixture_load(f);
	assert_hidden(f, "keys/id");
	assert_writable(f, "home/real/new/x");
	assert_hidden(f, "home/real/a.key");
	/* absent below a link */
	assert_hidden(f, "home/real/gh/hosts.yml");
}

static void test_cwd_through_link(void **state)
{
	struct fixture *f = *state;
	const char *link = arena_printf(f->a, "%s/link", f->dir);

	assert_int_equal(symlink("home/proj", link), 0);
	f->in.cwd = link;
	fixture_load(f);
	assert_string_equal(f->p->cwd, f->proj);
	assert_writable(f, "home/proj/x");
}

static void test_private_home(void **state)
{
	struct fixture *f = *state;

	fixture_user(f, "filesystem: {home: private, allowRead: [/, ~/shown]}");
	fixture_load(f);
	assert_hidden(f, "home/notes");
	assert_writable(f, "home/notes");
	assert_readable(f, "home/shown/x");
	assert_unwritable(f, "home/shown/x");
	assert_readable(f, "home/proj/x");
	assert_writable(f, "home/proj/x");
}

static void test_protected_names(void **state)
{
	struct fixture *f = *state;
	struct decision d;

	fixture_load(f);
	assert_unwritable(f, "home/proj/.git/hooks/pre-commit");
	assert_unwritable(f, "home/proj/.git/hooks");
	assert_unwritable(f, "home/proj/a/b/.git/config");
	assert_writable(f, "home/proj/.git/index");
	assert_writable(f, "home/proj/.git/config.lock");
	assert_writable(f, "home/proj/hooks/x");
	assert_unwritable(f, "home/proj/.git/modules/sub/config");
	assert_writable(f, "home/proj/.git/modules/sub/index");
	assert_unwritable(f, "home/proj/x/.vscode/tasks.json");
	assert_unwritable(f, "home/proj/.env");
	assert_writable(f, "home/proj/.env.example");
	assert_unwritable(f, "home/proj/.claude/settings.json");
	assert_writable(f, "home/proj/.claude/notes.md");
	assert_unwritable(f, "home/proj/.ambit.json");
	/* reading is not touched */
	assert_readable(f, "home/proj/.git/hooks/pre-commit");
	policy_decide_path(f->p, ACCESS_WRITE, arena_printf(f->a, "%s/a/.bashrc", f->proj), &d);
	assert_non_null(d.protected);
	assert_string_equal(d.protected->pattern, ".bashrc");
	assert_string_equal(d.reason, "a shell runs it");
}

/* What is run or followed by programs that are started there; and what only looks like it. */
static void test_names_of_tools(void **state)
{
	static const char *const held[] = {
		".pdbrc",
		".Rprofile",
		".irbrc",
		".hgrc",
		".hg/hgrc",
		".gdbearlyinit",
		".gvimrc",
		".vim/plugin/a.vim",
		".direnvrc",
		".config/direnv/direnvrc",
		".helix/languages.toml",
		".agents/a",
		".qwen/settings.json",
		".amp/settings.json",
		"crush.json",
		".crush.json",
		".junie/mcp",
		".factory/mcp.json",
		".augment/a",
		".trae/mcp.json",
		".goose/config",
	};
	static const char *const ordinary[] = {
		"bin/run",         "vim/a.vim",   ".hg/store/data", ".hg/dirstate",
		"src/factory/a.c", "crush.jsonc", "agents/a.py",    ".config/direnvx",
		"Rprofile.R",      ".vimdir/a",   "helix/a",        "trae/a",
	};
	struct fixture *f = *state;

	fixture_load(f);
	for (size_t i = 0; i < ARRAY_LEN(held); i++) {
		assert_unwritable(f, arena_printf(f->a, "home/proj/%s", held[i]));
		assert_unwritable(f, arena_printf(f->a, "home/proj/a/b/%s", held[i]));
	}
	for (size_t i = 0; i < ARRAY_LEN(ordinary); i++)
		assert_writable(f, arena_printf(f->a, "home/proj/%s", ordinary[i]));
}

/* A name may begin above the writable directory, but a directory named outright is meant. */
static void test_protected_names_and_roots(void **state)
{
	struct fixture *f = *state;

	fixture_user(f, "filesystem: {allowWrite: [~/.claude, ~/.idea, '~/x/*/.vscode']}");
	fixture_load(f);
	assert_unwritable(f, "home/.claude/settings.json");
	assert_writable(f, "home/.claude/todos/x");
	assert_writable(f, "home/.idea/x");
	assert_unwritable(f, "home/.idea/.bashrc");
	assert_writable(f, "home/x/y/.vscode/tasks.json");
	assert_unwritable(f, "home/proj/.idea/x");
	assert_non_null(protect_match(f->p, path_depth("/w"), "/w/.git/hooks"));
	assert_null(protect_match(f->p, path_depth("/w/.git/hooks"), "/w/.git/hooks/x"));
	assert_non_null(protect_match(f->p, path_depth("/w/.git"), "/w/.git/hooks/x"));
	assert_null(protect_match(f->p, path_depth("/"), "/"));
}

static void test_lifting(void **state)
{
	struct fixture *f = *state;

	fixture_user(f, "filesystem:\n"
			"  allowGitConfig: true\n"
			"  protectNames: [gen/*/key, dist/]\n"
			"  unprotect: [.envrc]\n");
	fixture_load(f);
	assert_writable(f, "home/proj/.git/config");
	assert_unwritable(f, "home/proj/.git/config.worktree");
	assert_unwritable(f, "home/proj/.git/hooks/x");
	assert_writable(f, "home/proj/.envrc");
	assert_unwritable(f, "home/proj/gen/a/key");
	assert_writable(f, "home/proj/gen/a/b/key");
	assert_unwritable(f, "home/proj/dist/x");
	for (size_t i = 0; i < f->p->fs.n_protected; i++) {
		const struct protected_name *n = &f->p->fs.protected[i];

		if (strcmp(n->pattern, ".git/config") == 0)
			assert_int_equal(n->lifted_by.line, 2);
		else
			assert_int_equal(n->lifted, strcmp(n->pattern, ".envrc") == 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		policy_test(test_defaults),
		policy_test(test_depth),
		policy_test(test_equal_depth),
		policy_test(test_allow_read_order_does_not_matter),
		policy_test(test_write),
		policy_test(test_root),
		policy_test(test_patterns),
		policy_test(test_pattern_in_odd_directory),
		policy_test(test_moved_secrets),
		policy_test(test_symlinks),
		policy_test(test_cwd_through_link),
		policy_test(test_private_home),
		policy_test(test_protected_names),
		policy_test(test_names_of_tools),
		policy_test(test_protected_names_and_roots),
		policy_test(test_lifting),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
