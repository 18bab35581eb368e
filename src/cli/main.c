/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/sys.h"
#include "cli/cli.h"
#include "cli/srt.h"

/*
 * With 0, 1 or 2 closed, the next file opened would take the place, and a
 * message meant for stderr could end up in it.
 */
static int hold_standard_fds(struct error *e)
{
	for (int fd = 0; fd <= STDERR_FILENO; fd++) {
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR | O_CLOEXEC) != fd)
			return error_set(e, EBADF, "/dev/null cannot be opened");
	}
	return 0;
}

/* `ambit --version` and the like: answers that need no command. */
static bool answer_at_once(struct arena *a, char *const *env, const char *word, struct buf *out)
{
	if (strcmp(word, "--version") == 0)
		buf_puts(out, "ambit " AMBIT_VERSION "\n");
	else if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)
		help_overview(out);
	else if (strcmp(word, "--list-options") == 0)
		help_list_options(out);
	else if (strcmp(word, "--list-settings") == 0)
		help_list_settings(out);
	else if (strcmp(word, "--list-profiles") == 0)
		help_list_profiles(a, env, out);
	else
		return false;
	return true;
}

static void set_log_level(const struct options *o)
{
	if (o->debug)
		log_level = LOG_DEBUG;
	else if (o->verbose)
		log_level = LOG_VERBOSE;
	else if (o->quiet)
		log_level = LOG_QUIET;
}

static int run_named_command(struct arena *a, char *const *argv, char *const *env, int *ret_status,
			     struct error *e)
{
	struct invocation inv = { .arena = a, .environ_in = env };
	struct option_scope scope;
	int r;

	inv.command = command_find(argv[0]);
	if (!inv.command)
		return command_refuse(a, env, argv, e);
	if (!inv.command->run)
		return error_set(e, ENOTSUP, "%s is not available in this version", argv[0]);
	scope = (struct option_scope){ .command = inv.command->name,
				       .groups = inv.command->groups,
				       .words_end_options = inv.command->takes_command };
	r = options_parse(a, &scope, argv + 1, &inv.options, e);
	if (r < 0)
		return r;
	set_log_level(&inv.options);
	if (inv.options.help) {
		_cleanup_buf_ struct buf out = BUF_INIT(BUF_MAX_TEXT);

		help_command(inv.command, &out);
		return output_write(&out, e);
	}
	return inv.command->run(&inv, ret_status, e);
}

static int ambit(struct arena *a, char *const *argv, char *const *env, int *ret_status,
		 struct error *e)
{
	_cleanup_buf_ struct buf out = BUF_INIT(BUF_MAX_TEXT);
	int r = hold_standard_fds(e);

	if (r < 0)
		return r;
	if (!argv[0] || !argv[1]) {
		help_usage(&out);
		*ret_status = EXIT_AMBIT;
		return fd_write_all(STDERR_FILENO, buf_str(&out), out.len);
	}
	if (answer_at_once(a, env, argv[1], &out))
		return output_write(&out, e);
	if (own_word(argv, env, ret_status))
		return 0;
	return run_named_command(a, argv + 1, env, ret_status, e);
}

/* By which link we were called. */
static bool is_called(const char *argv0, const char *name)
{
	const char *slash = argv0 ? strrchr(argv0, '/') : NULL;

	return argv0 && strcmp(slash ? slash + 1 : argv0, name) == 0;
}

/* The words as they lie in memory are what /proc shows of us; init takes them away inside. */
static char **copy_words(struct arena *a, int n, char *const *words)
{
	char **copy = arena_array(a, (size_t)n + 1, sizeof(*copy));

	for (int i = 0; i < n; i++)
		copy[i] = arena_strdup(a, words[i]);
	return copy;
}

int main(int argc, char **words, char **env)
{
	_cleanup_arena_ struct arena *a = arena_new();
	char **argv = copy_words(a, argc, words);
	struct error e = { 0 };
	int status = 0;

	sys_seal_relocated();
	if (is_called(argv[0], "srt") && hold_standard_fds(&e) == 0)
		return srt_main(a, argv, env);
	if (is_called(argv[0], "claude-sandbox")) {
		log_error("claude-sandbox runs whole agents, which this version does not do yet; "
			  "for one command of an agent: ambit run");
		return EXIT_AMBIT;
	}
	if (ambit(a, argv, env, &status, &e) == 0)
		exit(status); /* the kernel is quicker to free what is left */
	/* names in it may hold newlines: one error is one line */
	log_error("%s", output_safe(a, e.text));
	return e.exit_code ? e.exit_code : EXIT_AMBIT;
}
