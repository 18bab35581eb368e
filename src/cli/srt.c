/* SPDX-License-Identifier: Apache-2.0 */
/*
 * srt: sandbox-runtime's command line over our sandbox. Its settings file, its environment,
 * its exit codes (1 where ours is 125). The policy differs from ours in what holds by
 * default (policy/srt.h) and not in how it is enforced.
 *
 * The caller's environment is believed, as everywhere. /tmp is not: /tmp/claude is used
 * only if it is ours.
 */
#include "cli/srt.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/text.h"
#include "cli/cli.h"
#include "policy/inputs.h"
#include "policy/srt.h"
#include "policy/tree.h"
#include "supervise/run.h"

#define SETTINGS_NAME ".srt-settings.json"
#define TMP_NAME "/tmp/claude"
#define SAFE_DIRECTORIES_MAX 8 /* from here on all are */
#define GIT_COUNT_MAX 10000

struct srt {
	struct arena *a;
	char *const *environ_in;
	struct srt_options options;
	struct policy_inputs in;
	struct srt_inputs srt;
	char **env; /* what is set besides */
	size_t n_env;
	char *text; /* of the settings file, NULL = there is none */
	size_t len;
};

static const char *variable(const struct srt *s, const char *name)
{
	return inputs_variable(s->environ_in, name);
}

static void PRINTF_LIKE(2, 3) set_variable(struct srt *s, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	*ARENA_PUSH(s->a, s->env, s->n_env) = arena_vprintf(s->a, fmt, ap);
	va_end(ap);
}

/*
 * Temporary files.
 */

/* Made if need be, ours, and nobody else's to write to. */
static bool is_own_directory(const char *path)
{
	struct stat st;

	if (mkdir(path, 0700) == 0)
		return true;
	return lstat(path, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid() &&
	       !(st.st_mode & 022);
}

static int choose_tmpdir(struct srt *s, struct error *e)
{
	const char *given = variable(s, "CLAUDE_CODE_TMPDIR"), *own;
	struct stat st;
	int r;

	if (!given)
		given = variable(s, "CLAUDE_TMPDIR");
	if (given) {
		r = inputs_caller_path(s->a, given, &s->srt.tmpdir, e);
		if (r < 0)
			return r;
		(void)!mkdir(s->srt.tmpdir, 0700);
		if (stat(s->srt.tmpdir, &st) < 0 || !S_ISDIR(st.st_mode))
			return error_set(e, ENOTDIR, "%s, for temporary files, is no directory",
					 given);
		s->srt.tmpdir = path_absolute(s->a, "/", s->srt.tmpdir);
		set_variable(s, "TMPDIR=%s", given);
		return 0;
	}
	own = arena_printf(s->a, TMP_NAME "-%u", geteuid());
	s->srt.tmpdir = is_own_directory(TMP_NAME) ? TMP_NAME : own;
	if (s->srt.tmpdir == own && !is_own_directory(own))
		return error_set(e, EEXIST,
				 "%s and %s belong to somebody else: set CLAUDE_TMPDIR to a "
				 "directory for temporary files",
				 TMP_NAME, own);
	set_variable(s, "TMPDIR=%s", s->srt.tmpdir);
	return 0;
}

/*
 * Environment.
 */

/* What sandbox-runtime sets beyond our own proxy variables. */
static void set_proxy_variables(struct srt *s)
{
	static const char *const entries[] = {
		"ALL_PROXY=http://localhost:3128",
		"all_proxy=http://localhost:3128",
		"DOCKER_HTTP_PROXY=http://localhost:3128",
		"DOCKER_HTTPS_PROXY=http://localhost:3128",
		"RSYNC_PROXY=localhost:3128",
		"CLOUDSDK_PROXY_TYPE=http",
		"CLOUDSDK_PROXY_ADDRESS=localhost",
		"CLOUDSDK_PROXY_PORT=3128",
	};

	for (size_t i = 0; i < ARRAY_LEN(entries); i++)
		set_variable(s, "%s", entries[i]);
}

static void add_safe_directory(struct srt *s, uint64_t *count, const char *value)
{
	set_variable(s, "GIT_CONFIG_KEY_%llu=safe.directory", (unsigned long long)*count);
	set_variable(s, "GIT_CONFIG_VALUE_%llu=%s", (unsigned long long)*count, value);
	++*count;
}

/* git.safeDirectories, behind whatever the caller has configured this way already. */
static int set_safe_directories(struct srt *s, const struct node *root, struct error *e)
{
	const struct node *git = tree_get(root, "git");
	const struct node *list =
		git && git->kind == NODE_MAP ? tree_get(git, "safeDirectories") : NULL;
	const char *before = variable(s, "GIT_CONFIG_COUNT");
	uint64_t count = 0;

	if (!list || list->kind == NODE_NULL)
		return 0;
	if (list->kind != NODE_LIST)
		return error_set(e, EINVAL, "git.safeDirectories: must be a list");
	if (before && text_parse_u64(before, GIT_COUNT_MAX, &count) < 0)
		count = 0;
	for (size_t i = 0; i < list->n; i++) {
		if (list->v[i].kind != NODE_STRING || !*list->v[i].text)
			return error_set(e, EINVAL, "git.safeDirectories.%zu: must be a path", i);
		if (list->n > SAFE_DIRECTORIES_MAX)
			continue;
		add_safe_directory(s, &count, list->v[i].text);
		add_safe_directory(s, &count, arena_printf(s->a, "%s/*", list->v[i].text));
	}
	if (list->n > SAFE_DIRECTORIES_MAX)
		add_safe_directory(s, &count, "*");
	if (list->n > 0)
		set_variable(s, "GIT_CONFIG_COUNT=%llu", (unsigned long long)count);
	return 0;
}

/*
 * Settings.
 */

static bool is_blank(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (!strchr(" \t\r\n", text[i]) || !text[i])
			return false;
	}
	return true;
}

/* The text; none is fine at the usual place. */
static int read_file(struct srt *s, const char *file, struct error *e)
{
	int r = fd_read_file(AT_FDCWD, file, TREE_TEXT_MAX, &s->text, &s->len);

	if (r == -ENOENT && !s->options.settings) {
		log_debug("no settings in %s: built-in defaults", file);
		return 0;
	}
	if (r == -ENOENT)
		return error_set(e, ENOENT, "%s does not exist.", file);
	if (r < 0)
		return error_set(e, -r, "%s could not be read (%s).", file, strerror(-r));
	if (is_blank(s->text, s->len))
		return error_set(e, EINVAL, "%s is empty: delete it, or write settings into it.",
				 file);
	return 0;
}

static int load(struct srt *s, const char *file, const struct policy **ret, struct error *e)
{
	const struct node *root;
	int r = read_file(s, file, e);

	if (r < 0)
		return r;
	if (s->text) {
		r = tree_parse(s->a, file, s->text, s->len, &root, e);
		if (r < 0)
			return error_wrap(e, "%s is not valid JSON", file);
		r = set_safe_directories(s, root, e);
		if (r < 0)
			return error_wrap(e, "%s does not hold a valid config", file);
		s->in.only_file = file;
		s->in.only_text = s->text;
		s->in.only_len = s->len;
	}
	*ARENA_PUSH(s->a, s->env, s->n_env) = NULL;
	s->srt.environment = s->env;
	s->in.srt = &s->srt;
	r = policy_load(s->a, &s->in, ret, e);
	return r < 0 && s->text ? error_wrap(e, "%s does not hold a valid config", file) : r;
}

/* Running on without the file's rules would be the opposite of what it is for. */
static int load_or_refuse(struct srt *s, const struct policy **ret, struct error *e)
{
	const char *file = s->options.settings ? s->options.settings
					       : path_join(s->a, s->in.home, SETTINGS_NAME);
	int r = load(s, file, ret, e);

	if (r < 0)
		(void)error_set(e, -r,
				"%s\nRefusing to run with the built-in defaults: the rules of the "
				"file would be lost.",
				output_safe(s->a, arena_strdup(s->a, e->text)));
	return r;
}

/*
 * The run.
 */

static int gather(struct srt *s, struct error *e)
{
	const struct inputs_request req = { .machine_only = true, .live_network = true };
	int r = inputs_gather(s->a, &req, s->environ_in, &s->in, e);

	if (r == 0)
		r = choose_tmpdir(s, e);
	set_proxy_variables(s);
	return r;
}

static int open_control(const struct srt *s, struct control *c, struct error *e)
{
	const char *text = s->options.control_fd;
	uint64_t fd;

	if (!text)
		return 0;
	if (text_parse_u64(text, INT_MAX, &fd) < 0 || fd < 3)
		return error_set(e, EINVAL,
				 "--control-fd wants the number of a descriptor, 3 or more");
	return control_open(c, (int)fd, e);
}

static int run(struct srt *s, struct control *control, int *ret_status, struct error *e)
{
	struct invocation inv = { .arena = s->a, .environ_in = s->environ_in, .srt = true };
	struct run_request req = { .environ_in = s->environ_in, .control = control };
	int r = srt_command(s->a, &s->options, &inv.options.shell, e);

	if (r == 0)
		r = gather(s, e);
	if (r == 0)
		r = load_or_refuse(s, &req.policy, e);
	if (r < 0)
		return r;
	invocation_notes(&inv, req.policy);
	inv.options.words = (char *[]){ NULL };
	r = invocation_argv(&inv, &req.argv, e);
	if (r == 0)
		r = outside_run(&inv, req.policy, req.argv, e);
	if (r < 0)
		return r;
	log_debug("directory %s, temporary files in %s, network %s", req.policy->cwd, s->srt.tmpdir,
		  req.policy->network.allowed.n ? "by the allow list" : "shut");
	control->inputs = &s->in;
	control->start = req.policy;
	r = run_sandboxed(&inv, &req, NULL, ret_status, e);
	log_debug("exit status %d", *ret_status);
	return r;
}

static int srt(struct srt *s, char *const *args, int *ret_status, struct error *e)
{
	struct control control = { .fd = -1 };
	int r = srt_options_parse(s->a, args, &s->options, e);

	if (r == 0 && (s->options.version || s->options.help)) {
		_cleanup_buf_ struct buf out = BUF_INIT(BUF_MAX_TEXT);

		if (s->options.version)
			buf_puts(&out, SRT_VERSION " (ambit " AMBIT_VERSION ")\n");
		else
			srt_help(&out);
		return output_write(&out, e);
	}
	/* before anything else is opened */
	if (r == 0)
		r = open_control(s, &control, e);
	if (r == 0 && (s->options.debug || variable(s, "SRT_DEBUG")))
		log_level = LOG_DEBUG;
	if (r == 0)
		r = run(s, &control, ret_status, e);
	control_close(&control);
	return r;
}

int srt_main(struct arena *a, char *const *argv, char *const *environ_in)
{
	struct srt s = { .a = a, .environ_in = environ_in };
	_cleanup_buf_ struct buf text = BUF_INIT(BUF_MAX_TEXT);
	struct error e = { 0 };
	int status = 0, r;

	log_prefix = (struct log_prefix){ "srt: ", "[SandboxDebug] " };
	r = srt(&s, argv + 1, &status, &e);
	free(s.text);
	if (r == 0)
		return status;
	buf_printf(&text, "Error: %s\n", e.text);
	(void)!fd_write_all(STDERR_FILENO, buf_str(&text), text.len);
	return e.exit_code == EXIT_NOT_FOUND || e.exit_code == EXIT_NOT_EXECUTABLE ? e.exit_code
										   : SRT_EXIT_ERROR;
}
