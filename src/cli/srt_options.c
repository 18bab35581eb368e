/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The options of srt. Unlike sandbox-runtime's, they end where the command begins: in
 * `srt ls -d src` the -d is ls's.
 */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/text.h"
#include "cli/cli.h"
#include "cli/srt.h"

#define FIELD(name) offsetof(struct srt_options, name)

static const struct srt_option {
	char letter; /* 0 = none */
	const char *name; /* NULL = none */
	const char *argument; /* NULL = a flag */
	size_t offset;
	const char *help;
} options[] = {
	{ 'V', "version", NULL, FIELD(version), "print the version" },
	{ 'd', "debug", NULL, FIELD(debug),
	  "tell what is done, as [SandboxDebug] lines on stderr" },
	{ 's', "settings", "<path>", FIELD(settings),
	  "the settings (default: ~/.srt-settings.json)" },
	{ 'c', NULL, "<command>", FIELD(shell), "run a command line, as sh -c does" },
	{ 0, "control-fd", "<fd>", FIELD(control_fd),
	  "read changed settings from this descriptor, one JSON object a line" },
	{ 'h', "help", NULL, FIELD(help), "show this help" },
};

/* Of sandbox-runtime, and not here. */
static const struct {
	const char *word, *why;
} commands[] = {
	{ "windows-install", "that is for Windows" },
	{ "windows-uninstall", "that is for Windows" },
	{ "proxy", "the proxy does not run by itself here" },
};

void srt_help(struct buf *out)
{
	buf_puts(out, "Usage: srt [options] [--] [command...]\n\n"
		      "Run a command in a sandbox with restricted network and file access.\n"
		      "This is ambit as a drop-in for sandbox-runtime " SRT_VERSION
		      "; see ambit(1), srt(1).\n\nOptions:\n");
	for (size_t i = 0; i < ARRAY_LEN(options); i++) {
		const struct srt_option *o = &options[i];
		char letter[] = { '-', o->letter, '\0' };
		_cleanup_buf_ struct buf name = BUF_INIT(128);

		buf_printf(&name, "%s%s%s%s%s%s", o->letter ? letter : "",
			   o->letter && o->name ? ", " : "", o->name ? "--" : "",
			   o->name ? o->name : "", o->argument ? " " : "",
			   o->argument ? o->argument : "");
		buf_printf(out, "  %-24s %s\n", buf_str(&name), o->help);
	}
}

static const struct srt_option *find_long(const char *name, size_t len)
{
	for (size_t i = 0; i < ARRAY_LEN(options); i++) {
		const char *known = options[i].name;

		if (known && strlen(known) == len && memcmp(known, name, len) == 0)
			return &options[i];
	}
	return NULL;
}

static const struct srt_option *find_letter(char letter)
{
	for (size_t i = 0; i < ARRAY_LEN(options); i++) {
		if (options[i].letter == letter)
			return &options[i];
	}
	return NULL;
}

/* attached: the rest of the word, or NULL; next: the following words. */
static int take(struct srt_options *out, const struct srt_option *o, const char *attached,
		char *const **next, struct error *e)
{
	char *field = (char *)out + o->offset;
	const char *shown = o->name ? o->name : "c";

	if (!o->argument) {
		*(bool *)field = true;
		return 0;
	}
	if (!attached && !**next)
		return error_set(e, EINVAL, "option %s%s needs an argument: %s",
				 o->name ? "--" : "-", shown, o->argument);
	*(const char **)(void *)field = attached ? attached : *(*next)++;
	return 0;
}

static int parse_long(const char *text, char *const **next, struct srt_options *out,
		      struct error *e)
{
	size_t len = strcspn(text, "=");
	const struct srt_option *o = find_long(text, len);

	if (!o || (!o->argument && text[len]))
		return error_set(e, EINVAL, "unknown option '--%s'", text);
	return take(out, o, text[len] ? text + len + 1 : NULL, next, e);
}

static int parse_letters(const char *text, char *const **next, struct srt_options *out,
			 struct error *e)
{
	for (; *text; text++) {
		const struct srt_option *o = find_letter(*text);
		int r;

		if (!o)
			return error_set(e, EINVAL, "unknown option '-%s'", text);
		r = take(out, o, text[1] ? text + 1 : NULL, next, e);
		if (r < 0 || o->argument)
			return r;
	}
	return 0;
}

static int refuse_command(const char *word, struct error *e)
{
	for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
		if (strcmp(word, commands[i].word) == 0)
			return error_set(e, ENOTSUP,
					 "%s: %s (to run a program of this name: srt -- %s)", word,
					 commands[i].why, word);
	}
	return 0;
}

int srt_options_parse(struct arena *a, char *const *args, struct srt_options *ret, struct error *e)
{
	struct srt_options out = { 0 };
	int r = 0;

	while (r == 0 && *args && (*args)[0] == '-' && (*args)[1]) {
		const char *arg = *args++;

		if (strcmp(arg, "--") == 0) {
			out.words = args;
			break;
		}
		r = arg[1] == '-' ? parse_long(arg + 2, &args, &out, e)
				  : parse_letters(arg + 1, &args, &out, e);
		if (r < 0)
			(void)error_set(e, EINVAL, "%s", output_safe(a, e->text));
	}
	if (r == 0 && !out.words) {
		out.words = args;
		if (*args && !out.shell)
			r = refuse_command(*args, e);
	}
	if (r == 0)
		*ret = out;
	return r;
}

static bool is_command_line(const char *word)
{
	struct stat st;

	return word[strcspn(word, " \t\n")] && stat(word, &st) < 0;
}

int srt_command(struct arena *a, const struct srt_options *o, const char **ret, struct error *e)
{
	_cleanup_buf_ struct buf text = BUF_INIT(BUF_MAX_TEXT);

	if (o->shell && *o->shell && *o->words)
		return error_set(e, EINVAL, "either -c or a command, not both: '%s' is left over",
				 output_safe(a, *o->words));
	*ret = o->shell;
	if (o->shell && *o->shell)
		return 0;
	if (!*o->words)
		return error_set(e, EINVAL, "no command: srt <command...>, or srt -c <command>");
	*ret = o->words[0];
	if (!o->words[1] && is_command_line(o->words[0]))
		return 0;
	for (char *const *w = o->words; *w; w++) {
		buf_puts(&text, w == o->words ? "" : " ");
		text_append_shell(&text, *w);
	}
	*ret = arena_strdup(a, buf_str(&text));
	return 0;
}
