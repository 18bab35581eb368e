/* SPDX-License-Identifier: Apache-2.0 */
/* guard_ask() on real directories. */
#include "policy_fixture.h"

#include <fcntl.h>
#include <sys/wait.h>

#include "supervise/broker/guard.h"

struct asked {
	struct fixture *f;
	struct plan *plan;
	struct guard *g;
	struct guard_answer a;
};

static void make_dir(struct fixture *f, const char *path)
{
	char *whole = arena_printf(f->a, "%s/%s", f->proj, path);

	for (char *s = whole + strlen(f->proj) + 1; (s = strchr(s, '/')); *s++ = '/') {
		*s = '\0';
		(void)mkdir(whole, 0755);
	}
	(void)mkdir(whole, 0755);
}

static void make_file(struct fixture *f, const char *path, const char *text)
{
	int fd = open(arena_printf(f->a, "%s/%s", f->proj, path), O_WRONLY | O_CREAT | O_TRUNC,
		      0644);

	assert_true(fd >= 0);
	assert_int_equal(fd_write_all(fd, text, strlen(text)), 0);
	fd_close(fd);
}

/* The question as the broker asks it: the parent by descriptor, the last name as text. */
static bool ask(struct asked *t, enum guard_op op, const char *path, bool directory, bool creates)
{
	char *whole = arena_printf(t->f->a, "%s/%s", t->f->proj, path);
	char *name = strrchr(whole, '/');
	struct guard_question q = { .op = op, .directory = directory, .creates = creates };

	*name++ = '\0';
	q.parent = open(whole, O_PATH | O_DIRECTORY);
	assert_true(q.parent >= 0);
	q.path = whole;
	q.name = name;
	q.root = t->f->proj;
	guard_ask(t->g, &q, &t->a);
	if (t->a.allowed && t->a.way == GUARD_BIRTH && guard_check_birth(t->g, &q))
		t->a.allowed = false;
	fd_close(q.parent);
	if (!t->a.allowed && t->a.way != GUARD_BIRTH)
		assert_true(t->a.reason && *t->a.reason);
	return t->a.allowed;
}

#define WRITE(path) ask(&t, GUARD_WRITE, path, false, true)
#define CHANGE(path) ask(&t, GUARD_WRITE, path, false, false)
#define MKDIR(path) ask(&t, GUARD_MAKE_DIR, path, true, false)
#define LINK(path) ask(&t, GUARD_MAKE_OTHER, path, false, false)
#define SYMLINK(path) ask(&t, GUARD_MAKE_OTHER, path, true, false)
#define MOVE_FILE(path) ask(&t, GUARD_RENAME_TO, path, false, false)
#define MOVE_DIR(path) ask(&t, GUARD_RENAME_TO, path, true, false)
#define AWAY(path) ask(&t, GUARD_RENAME_FROM, path, true, false)

static struct asked start(void **state)
{
	struct fixture *f = *state;
	struct plan *plan = arena_alloc(f->a, sizeof(*plan));

	fixture_load(f);
	return (struct asked){ .f = f, .plan = plan, .g = guard_new(f->a, f->p, plan) };
}

static void test_modules(void **state)
{
	struct asked t = start(state);
	int fd;

	make_dir(t.f, "src/half/refs");
	make_dir(t.f, "src/whole/refs");
	make_dir(t.f, "src/whole/objects");
	assert_false(WRITE("src/.gitmodules"));
	assert_false(LINK("src/.gitmodules"));
	assert_false(SYMLINK("src/.gitmodules"));
	assert_false(MKDIR("src/.gitmodules"));
	assert_false(MOVE_DIR("src/.gitmodules"));
	/* as git does it: with a look at what is in it */
	assert_true(MOVE_FILE("src/.gitmodules") && t.a.way == GUARD_CONFIG && t.a.protected);
	assert_true(MOVE_FILE("src/.GITmodules") && t.a.way == GUARD_CONFIG);

	fd = open(arena_printf(t.f->a, "%s/src/half", t.f->proj), O_PATH);
	assert_false(guard_may_be_git_dir(fd, ".git"));
	assert_false(guard_may_be_git_dir(fd, ".GIT"));
	assert_true(guard_may_be_git_dir(fd, "git"));
	fd_close(fd);
	fd = open(arena_printf(t.f->a, "%s/src/whole", t.f->proj), O_PATH);
	assert_true(guard_may_be_git_dir(fd, ".git"));
	fd_close(fd);
}

static const struct protected_name *shell_name(const struct asked *t)
{
	size_t i = 0;

	while (strcmp(t->f->p->fs.protected[i].pattern, ".bashrc") != 0)
		i++;
	return &t->f->p->fs.protected[i];
}

/* What a link with a protected name leads to. */
static void hold(struct asked *t, const char *path)
{
	*ARENA_PUSH(t->f->a, t->plan->held, t->plan->n_held) =
		(struct held_path){ arena_printf(t->f->a, "%s/%s", t->f->proj, path), shell_name(t),
				    NULL };
}

static void test_held(void **state)
{
	struct asked t = start(state);

	make_dir(t.f, "dir/sub");
	make_dir(t.f, "other");
	make_file(t.f, "link", "");
	assert_true(WRITE("target"));
	hold(&t, "target");
	hold(&t, "dir/sub/target");
	hold(&t, "other/.");
	assert_false(WRITE("target"));
	assert_ptr_equal(t.a.protected, shell_name(&t));
	assert_false(CHANGE("target"));
	assert_false(MKDIR("target"));
	assert_false(LINK("target"));
	assert_false(SYMLINK("target"));
	assert_false(MOVE_FILE("target"));
	assert_false(MOVE_DIR("target"));
	assert_false(WRITE("TARGET"));
	assert_true(AWAY("target"));
	assert_true(WRITE("target2"));
	assert_true(WRITE("dir/target"));
	/* nothing that could hold it comes to stand above it */
	assert_false(WRITE("dir/sub/target"));
	assert_false(SYMLINK("dir/sub"));
	assert_false(MOVE_DIR("dir"));
	assert_true(MOVE_FILE("dir"));
	assert_true(MKDIR("dir"));
	/* the place of a directory, not what is in it */
	assert_false(SYMLINK("other"));
	assert_false(MOVE_DIR("other"));
	assert_true(WRITE("other/x"));
}

static bool in_git_dir(struct asked *t, const char *path, bool in_doubt)
{
	char *whole = arena_printf(t->f->a, "%s/%s", t->f->proj, path);
	int fd = open(whole, O_PATH | O_DIRECTORY);
	bool in = guard_in_git_dir(fd, whole, t->f->proj, in_doubt);

	fd_close(fd);
	return in;
}

static void test_in_git_dir(void **state)
{
	struct asked t = start(state);

	make_dir(t.f, "a/b/objects/x");
	make_dir(t.f, "a/b/logs/refs");
	make_dir(t.f, "a/.GIT/logs");
	assert_false(in_git_dir(&t, "a/b/logs", true));
	assert_true(in_git_dir(&t, "a/.GIT/logs", false));
	make_dir(t.f, "a/b/refs");
	assert_true(in_git_dir(&t, "a/b", false));
	assert_true(in_git_dir(&t, "a/b/objects/x", false));
	assert_true(in_git_dir(&t, "a/b/logs/refs", false));
	assert_false(in_git_dir(&t, "a", true));
}

/* A directory with links in it does not become a git directory, however deep they lie. */
static void test_birth_with_links(void **state)
{
	struct asked t = start(state);
	char *link = arena_printf(t.f->a, "%s/g/objects/a/b/link", t.f->proj);

	make_dir(t.f, "g/objects/a/b");
	make_file(t.f, "g/objects/a/file", "");
	assert_true(MKDIR("g/refs"));
	assert_int_equal(symlink("/nowhere", link), 0);
	assert_false(MKDIR("g/refs"));
	assert_int_equal(unlink(link), 0);
	assert_true(MKDIR("g/refs"));
}

static void test_names(void **state)
{
	struct asked t = start(state);

	make_dir(t.f, "src/.vscode");
	make_dir(t.f, ".config");
	make_dir(t.f, ".claude");
	assert_true(WRITE("src/main.c"));
	assert_false(WRITE("src/.envrc"));
	assert_string_equal(t.a.protected->pattern, ".envrc");
	assert_false(WRITE(".envrc"));
	assert_true(WRITE("src/.envrc2"));
	assert_true(WRITE("src/x.envrc"));
	assert_false(WRITE("src/.vscode/tasks.json"));
	assert_false(MKDIR("src/.idea"));
	assert_false(LINK("src/.bashrc"));
	assert_false(MOVE_FILE("src/.bashrc"));
	assert_true(AWAY("src/.vscode"));
	assert_true(MKDIR("src/.claude"));
	assert_true(WRITE(".claude/CLAUDE.md"));
	assert_false(WRITE(".claude/settings.json"));
	assert_true(WRITE("src/settings.json"));
}

/* A directory, or a link to one, in the place of a pattern's beginning would complete it. */
static void test_begun_patterns(void **state)
{
	struct asked t = start(state);

	make_dir(t.f, ".config/systemd");
	make_dir(t.f, ".git/info");
	make_dir(t.f, "a");
	assert_false(MOVE_DIR(".claude"));
	assert_false(SYMLINK(".claude"));
	assert_false(MOVE_DIR("a/.claude"));
	assert_true(MOVE_FILE(".config")); /* a kernel's configuration */
	assert_true(LINK(".config"));
	assert_false(MOVE_DIR(".config"));
	assert_false(MOVE_DIR(".config/systemd"));
	assert_false(SYMLINK(".config/systemd"));
	assert_false(MOVE_DIR(".config/systemd/user"));
	assert_true(MOVE_DIR(".config/htop"));
	assert_true(MOVE_DIR("a/systemd"));
	assert_false(MOVE_DIR(".git/info"));
	assert_false(SYMLINK(".git/info"));
	assert_true(MOVE_DIR("a/info"));
	assert_false(MOVE_DIR(".git"));
	assert_false(SYMLINK("a/.git"));
	assert_false(WRITE("a/.git")); /* a file that leads git elsewhere */
	assert_false(MOVE_FILE("a/.git"));
	assert_true(MKDIR(".config/systemd"));
}

static void test_denied_below(void **state)
{
	struct fixture *f = *state;
	struct asked t;

	fixture_option(f, "filesystem.denyWrite", "conf/secret.yml");
	fixture_option(f, "filesystem.denyWrite", "**/*.pem");
	fixture_option(f, "filesystem.denyWrite", "**/keys/id");
	fixture_option(f, "filesystem.denyWrite", "etc/*/x");
	t = start(state);
	make_dir(f, "conf");
	make_dir(f, "etc/a");
	make_dir(f, "d");
	assert_false(WRITE("conf/secret.yml"));
	assert_string_equal(t.a.rule->text, "conf/secret.yml");
	assert_true(WRITE("conf/open.yml"));
	assert_false(MOVE_DIR("conf"));
	assert_false(SYMLINK("conf"));
	assert_true(MKDIR("conf"));
	assert_true(MOVE_DIR("conf/sub"));
	assert_false(WRITE("d/k.pem"));
	assert_true(MOVE_DIR("d/sub")); /* no .pem could be made there either */
	assert_false(MOVE_DIR("d/keys"));
	assert_false(MOVE_DIR("etc/b"));
	assert_true(MOVE_DIR("etc/a/b"));
}

static void make_repository(struct fixture *f, const char *path)
{
	make_dir(f, arena_printf(f->a, "%s/objects", path));
	make_dir(f, arena_printf(f->a, "%s/refs", path));
	make_dir(f, arena_printf(f->a, "%s/hooks", path));
	make_file(f, arena_printf(f->a, "%s/HEAD", path), "ref: refs/heads/x\n");
	make_file(f, arena_printf(f->a, "%s/config", path), "[core]\n");
}

static void check_git_directory(struct asked *known, const char *d)
{
	struct asked t = *known;
	struct arena *a = t.f->a;

	make_dir(t.f, arena_printf(a, "%s/hooks/deep", d));
	make_dir(t.f, arena_printf(a, "%s/worktrees/w", d));
	assert_false(CHANGE(arena_printf(a, "%s/config", d)));
	assert_true(t.a.git_config);
	assert_true(MOVE_FILE(arena_printf(a, "%s/config", d)));
	assert_int_equal(t.a.way, GUARD_CONFIG);
	assert_false(MOVE_DIR(arena_printf(a, "%s/config", d)));
	assert_false(LINK(arena_printf(a, "%s/config", d)));
	assert_true(WRITE(arena_printf(a, "%s/config.lock", d)));
	assert_false(WRITE(arena_printf(a, "%s/config.worktree", d)));
	assert_false(WRITE(arena_printf(a, "%s/hooks/pre-commit", d)));
	assert_false(WRITE(arena_printf(a, "%s/hooks/deep/x", d)));
	assert_true(WRITE(arena_printf(a, "%s/hooks/x.sample", d)));
	assert_false(MOVE_FILE(arena_printf(a, "%s/hooks/x.sample", d)));
	assert_false(SYMLINK(arena_printf(a, "%s/hooks/x.sample", d)));
	assert_false(MOVE_DIR(arena_printf(a, "%s/hooks", d)));
	assert_false(SYMLINK(arena_printf(a, "%s/hooks", d)));
	assert_true(MKDIR(arena_printf(a, "%s/hooks", d)));
	assert_false(WRITE(arena_printf(a, "%s/commondir", d)));
	assert_false(MOVE_FILE(arena_printf(a, "%s/commondir", d)));
	assert_true(WRITE(arena_printf(a, "%s/HEAD", d)));
	assert_true(WRITE(arena_printf(a, "%s/refs/heads", d)));
	assert_true(WRITE(arena_printf(a, "%s/worktrees/w/commondir", d)));
	assert_int_equal(t.a.way, GUARD_COMMONDIR);
	assert_false(CHANGE(arena_printf(a, "%s/worktrees/w/commondir", d)));
	assert_false(MOVE_FILE(arena_printf(a, "%s/worktrees/w/commondir", d)));
	make_file(t.f, arena_printf(a, "%s/worktrees/w/commondir", d), "../..\n");
	assert_false(WRITE(arena_printf(a, "%s/worktrees/w/commondir", d)));
	/* its HEAD may change, but not come to life beside a commondir */
	assert_false(WRITE(arena_printf(a, "%s/worktrees/w/HEAD", d)));
	make_file(t.f, arena_printf(a, "%s/worktrees/w/HEAD", d), "x\n");
	assert_true(MOVE_FILE(arena_printf(a, "%s/worktrees/w/HEAD", d)));
}

static void test_git_directory(void **state)
{
	struct asked t = start(state);

	make_repository(t.f, ".git");
	make_repository(t.f, "docs/plant");
	make_repository(t.f, ".git/modules/m");
	check_git_directory(&t, ".git");
	check_git_directory(&t, "docs/plant");
	check_git_directory(&t, ".git/modules/m");
	/* the same names elsewhere are names like any other */
	make_dir(t.f, "src/hooks");
	assert_true(WRITE("src/hooks/pre-commit"));
	assert_true(WRITE("src/config"));
	assert_true(MOVE_DIR("src/hooks"));
	assert_true(WRITE("src/commondir"));
	assert_true(WRITE("src/HEAD"));
	assert_false(WRITE("src/config.worktree"));
}

/* Half a repository that is called .git: `git init` outside would bring it to life. */
static void test_half_a_repository(void **state)
{
	struct asked t = start(state);

	make_dir(t.f, ".git/hooks");
	assert_false(WRITE(".git/config"));
	assert_false(WRITE(".git/hooks/pre-commit"));
	assert_true(MOVE_FILE(".git/config"));
	assert_int_equal(t.a.way, GUARD_CONFIG);
}

static void test_birth(void **state)
{
	struct asked t = start(state);

	make_dir(t.f, "b/refs");
	assert_true(MKDIR("b/objects"));
	assert_int_equal(t.a.way, GUARD_BIRTH);
	/* only a directory made there, and checked, may do it */
	assert_false(SYMLINK("b/objects"));
	assert_false(LINK("b/objects"));
	assert_false(WRITE("b/objects"));
	assert_false(MOVE_DIR("b/objects"));
	assert_true(AWAY("b/refs"));
	make_dir(t.f, "b/hooks");
	make_file(t.f, "b/hooks/x.sample", "");
	assert_true(MKDIR("b/objects"));
	make_file(t.f, "b/hooks/pre-commit", "");
	assert_false(MKDIR("b/objects"));
	make_dir(t.f, "c/objects");
	make_file(t.f, "c/commondir", "x");
	assert_false(MKDIR("c/refs"));
	make_dir(t.f, "d/objects");
	assert_int_equal(symlink("../b/hooks", arena_printf(t.f->a, "%s/d/hooks", t.f->proj)), 0);
	assert_false(MKDIR("d/refs"));
}

/* What cannot be looked at is a git directory: its owner can take the right away and give it back. */
static void test_unreadable(void **state)
{
	struct asked t = start(state);
	const char *d = arena_printf(t.f->a, "%s/u", t.f->proj);
	struct guard_question q = {
		.op = GUARD_WRITE, .path = d, .name = "config", .root = t.f->proj
	};
	int status;
	pid_t pid;

	make_repository(t.f, "u");
	q.parent = open(d, O_PATH | O_DIRECTORY);
	assert_int_equal(chmod(d, 0), 0);
	pid = fork();
	if (pid == 0) {
		/* root would see through it */
		if (geteuid() == 0 && setuid(65534) < 0)
			_exit(2);
		guard_ask(t.g, &q, &t.a);
		_exit(t.a.allowed);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(chmod(d, 0755), 0);
	fd_close(q.parent);
	assert_int_equal(status, 0);
}

static void test_new_territory(void **state)
{
	struct asked t = start(state);
	int proj = open(t.f->proj, O_PATH | O_DIRECTORY);

	make_dir(t.f, "old/sub");
	make_dir(t.f, "new/.claude");
	make_dir(t.f, "new/sub");
	guard_note_directory(t.g, proj, "new");
	assert_true(WRITE("new/.envrc"));
	assert_non_null(t.a.new_territory);
	assert_true(WRITE("new/.claude/settings.json"));
	assert_true(MKDIR("new/.vscode"));
	assert_true(WRITE("new/.git")); /* of a worktree or submodule */
	assert_false(SYMLINK("new/.git")); /* to half of one, which `git init` would complete */
	assert_false(WRITE("new/sub/.envrc")); /* not made in this run */
	assert_false(WRITE("old/.envrc"));
	/* made new is the directory that holds the first part, not one on the way */
	make_dir(t.f, "old/.claude");
	guard_note_directory(t.g, proj, "old/.claude");
	assert_false(WRITE("old/.claude/settings.json"));
	/* an old directory in a new one that has a protected name; the same for beginnings */
	make_dir(t.f, "new/.envrc/old");
	make_dir(t.f, "new/.claude/agents/old");
	guard_note_directory(t.g, proj, "new/.envrc");
	assert_true(WRITE("new/.envrc/file"));
	assert_true(WRITE("new/.envrc/.envrc"));
	assert_true(WRITE("new/.envrc/old/file"));
	assert_false(WRITE("new/.envrc/old/.envrc"));
	assert_false(MOVE_FILE("new/.envrc/old/.envrc"));
	assert_false(MOVE_DIR("new/.claude/agents/old/.claude"));
	/* the project itself is never new, and git's rules hold everywhere */
	guard_note_directory(t.g, AT_FDCWD, t.f->proj);
	assert_false(WRITE(".envrc"));
	make_repository(t.f, "new/.git");
	assert_false(WRITE("new/.git/hooks/pre-commit"));
	assert_false(WRITE("new/.git/config"));
	/* another directory of the same name is another one */
	assert_int_equal(rename(arena_printf(t.f->a, "%s/new", t.f->proj),
				arena_printf(t.f->a, "%s/newer", t.f->proj)),
			 0);
	make_dir(t.f, "new");
	assert_false(WRITE("new/.envrc"));
	assert_true(WRITE("newer/.envrc"));
	fd_close(proj);
}

static void test_many_new_directories(void **state)
{
	struct asked t = start(state);
	int proj = open(t.f->proj, O_PATH | O_DIRECTORY);
	char name[16];

	for (int i = 0; i < 1000; i++) {
		(void)snprintf(name, sizeof(name), "n%d", i);
		assert_int_equal(mkdirat(proj, name, 0755), 0);
		guard_note_directory(t.g, proj, name);
	}
	for (int i = 0; i < 1000; i += 37) {
		char path[32];

		(void)snprintf(path, sizeof(path), "n%d/.envrc", i);
		assert_true(WRITE(path));
	}
	fd_close(proj);
}

static void test_lifted(void **state)
{
	struct fixture *f = *state;
	struct asked t;

	fixture_option(f, "filesystem.unprotect", ".git/hooks");
	fixture_option(f, "filesystem.unprotect", ".envrc");
	fixture_option(f, "filesystem.allowGitConfig", "true");
	t = start(state);
	make_repository(f, ".git");
	assert_true(WRITE(".git/hooks/pre-commit"));
	assert_true(WRITE(".git/config"));
	assert_true(WRITE(".envrc"));
	assert_false(WRITE(".git/commondir"));
	assert_false(WRITE(".bashrc"));
}

/* Of two names that cover a path the one that nobody may lift is told: it is not asked about. */
static void test_locked(void **state)
{
	struct fixture *f = *state;
	struct asked t;

	fixture_managed(f, "filesystem: {protectNames: [.vscode, deploy/key]}");
	fixture_user(f, "filesystem: {protectNames: ['a/*/key']}");
	t = start(state);
	make_dir(f, "a/deploy");
	assert_false(WRITE(".vscode"));
	assert_true(t.a.protected->locked);
	assert_false(WRITE("a/deploy/key"));
	assert_true(t.a.protected->locked);
	assert_false(WRITE(".idea"));
	assert_false(t.a.protected->locked);
}

/* What the managed file protects once more stays so, though somebody lifts the default's. */
static void test_locked_git(void **state)
{
	struct fixture *f = *state;
	struct asked t;

	fixture_managed(f, "filesystem: {protectNames: [.git/hooks, .git/commondir, .git/config]}");
	fixture_user(f, "filesystem: {unprotect: [.git/hooks, .git/commondir, .git/config]}");
	t = start(state);
	make_dir(f, "a/.git/objects");
	make_dir(f, "a/.git/refs");
	make_dir(f, "a/.git/hooks");
	assert_false(WRITE("a/.git/hooks/pre-commit"));
	assert_false(WRITE("a/.git/commondir"));
	assert_false(WRITE("a/.git/config"));
}

/* Names of the settings in .git, which no content tells, are guarded by name. */
static void test_user_git(void **state)
{
	struct fixture *f = *state;
	struct asked t;

	fixture_user(f, "filesystem: {protectNames: ['.git/info/*', .git/description]}");
	t = start(state);
	make_dir(f, "a/.git/objects");
	make_dir(f, "a/.git/refs");
	make_dir(f, "a/.git/info");
	assert_false(WRITE("a/.git/info/exclude"));
	assert_false(WRITE("a/.git/description"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_held, fixture_up, fixture_down),
		cmocka_unit_test_setup_teardown(test_user_git, fixture_up, fixture_down),
		cmocka_unit_test_setup_teardown(test_locked_git, fixture_up, fixture_down),
		cmocka_unit_test_setup_teardown(test_in_git_dir, fixture_up, fixture_down),
		cmocka_unit_test_setup_teardown(test_birth_with_links, fixture_up, fixture_down),
		cmocka_unit_test_setup_teardown(test_names, fixture_up, fixture_down),
		cmocka_unit_test_setup_teardown(test_modules, fixture_up, fixture_down),
		cmocka_unit_test_setup_teardown(test_begun_patterns, fixture_up, fixture_down),
		cmocka_unit_test_setup_teardown(test_denied_below, fixture_up, fixture_down),
		cmocka_unit_test_setup_teardown(test_git_directory, fixture_up, fixture_down),
		cmocka_unit_test_setup_teardown(test_half_a_repository, fixture_up, fixture_down),
		cmocka_unit_test_setup_teardown(test_birth, fixture_up, fixture_down),
		cmocka_unit_test_setup_teardown(test_unreadable, fixture_up, fixture_down),
		cmocka_unit_test_setup_teardown(test_new_territory, fixture_up, fixture_down),
		cmocka_unit_test_setup_teardown(test_many_new_directories, fixture_up,
						fixture_down),
		cmocka_unit_test_setup_teardown(test_locked, fixture_up, fixture_down),
		cmocka_unit_test_setup_teardown(test_lifted, fixture_up, fixture_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
