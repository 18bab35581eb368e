/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Input: a command line. Whatever is taken for one simple command, the shells of this machine
 * must take for one too, with the same words. Bash is asked first, in two ways: as the
 * body of a function, which it prints as it understood it, without running it; and as the
 * arguments of printf. It is restricted, has no PATH and no dangerous builtins, so a line
 * that slips through does no harm and is not put before the others.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/fd.h"
#include "base/text.h"
#include "policy/shell_words.h"

#define ANSWER_MAX ((size_t)1 << 20)
#define LINE_MAX_ASKED 4096

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* How many commands: lines of the printed function between its braces. */
static const char script_count[] = "enable -n kill exec source . trap ulimit wait\n"
				   "eval \"f() {\n$1\n}\" || exit 9\n"
				   "declare -f f";
static const char script_words[] = "eval \"printf '%s\\\\0' $1\"";

static const struct shell {
	const char *program, *options[3];
} shells[] = {
	{ "/bin/bash", { "--norc", "--noprofile", "-r" } },
	{ "/bin/dash", { "-e", "-u", "-f" } },
	{ "/bin/zsh", { "-e", "-u", "-f" } },
};

static void require(bool holds, const char *what, const char *line)
{
	if (holds)
		return;
	fprintf(stderr, "%s: %s\n", what, line);
	abort();
}

static void become(const struct shell *shell, const char *script, const char *line, int out)
{
	const char *const argv[] = { shell->program,
				     shell->options[0],
				     shell->options[1],
				     shell->options[2],
				     "-c",
				     script,
				     shell->program,
				     line,
				     NULL };
	const char *const env[] = { "PATH=/nonexistent", "LC_ALL=C.UTF-8", NULL };
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (dup2(null, STDIN_FILENO) >= 0 && dup2(out, STDOUT_FILENO) >= 0 &&
	    dup2(null, STDERR_FILENO) >= 0)
		execve(shell->program, (char *const *)(uintptr_t)argv,
		       (char *const *)(uintptr_t)env);
	_exit(8);
}

/* What the shell prints, with the line as $1; its length. */
static size_t ask(const struct shell *shell, const char *script, const char *line, char *answer)
{
	int fds[2], status = 0;
	ssize_t n;
	pid_t pid;

	require(pipe2(fds, O_CLOEXEC) == 0, "pipe", line);
	pid = fork();
	require(pid >= 0, "fork", line);
	if (pid == 0)
		become(shell, script, line, fds[1]);
	fd_close(fds[1]);
	n = fd_read_full(fds[0], answer, ANSWER_MAX);
	fd_close(fds[0]);
	require(waitpid(pid, &status, 0) == pid && n >= 0, shell->program, line);
	require(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the shell fails", line);
	return (size_t)n;
}

/* A word that bash would not print as it stands in the text (it quotes nothing anew). */
static bool is_clean(const struct shell_words *w)
{
	for (size_t i = 0; i < w->n; i++) {
		if (strpbrk(w->v[i], "\n\\\"'"))
			return false;
	}
	return true;
}

/* "f () \n{ \n    COMMAND\n}\n" and nothing else: no separator, no second line. */
static void check_count(const char *line, char *answer)
{
	size_t n = ask(&shells[0], script_count, line, answer), lines = 0;

	for (size_t i = 0; i < n; i++)
		lines += answer[i] == '\n';
	require(lines == 4, "not one command", line);
	require(n > 3 && memcmp(answer + n - 3, ";\n}", 3) != 0, "a list of commands", line);
}

/* From the first word on: printf gets what the command would get. */
static void check_words(const struct shell *shell, const struct shell_words *w, const char *line,
			char *answer)
{
	size_t n = ask(shell, script_words, line, answer), at = 0;

	for (size_t i = 0; i < w->n; i++) {
		size_t len = strlen(w->v[i]) + 1;

		require(at + len <= n && memcmp(answer + at, w->v[i], len) == 0, "other words",
			line);
		at += len;
	}
	require(at == n, "more words", line);
}

static void ask_shells(const struct shell_words *w, const char *line, char *answer)
{
	if (is_clean(w) && access(shells[0].program, X_OK) == 0)
		check_count(line, answer);
	/* what stands before the first word must not come between printf and the line */
	line += strspn(line, " \t\n");
	if (*line == '#' || *line == '\\')
		return;
	for (size_t i = 0; i < ARRAY_LEN(shells); i++) {
		if (access(shells[i].program, X_OK) == 0)
			check_words(&shells[i], w, line, answer);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_arena_ struct arena *a = arena_new();
	_cleanup_buf_ struct buf quoted = BUF_INIT(BUF_MAX_TEXT);
	const char *line = arena_strndup(a, (const char *)data, size);
	struct shell_words w, again;

	shell_words_parse(a, (const char *)data, size, &w);
	require(w.v[w.n] == NULL && (w.reason || w.n > 0), "no end", line);
	if (w.reason)
		return 0;
	for (size_t i = 0; i < w.n; i++) {
		buf_puts(&quoted, i ? " " : "");
		text_append_shell(&quoted, w.v[i]);
	}
	shell_words_parse(a, buf_str(&quoted), quoted.len, &again);
	require(!again.reason && again.n == w.n, "not the same when quoted", line);
	for (size_t i = 0; i < w.n; i++)
		require(strcmp(w.v[i], again.v[i]) == 0, "another word when quoted", line);
	if (size <= LINE_MAX_ASKED)
		ask_shells(&w, line, arena_alloc(a, ANSWER_MAX));
	return 0;
}
