/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ambit wrap: one line for a POSIX shell that does what `ambit run` would do
 * here and now, wherever it is run. The words come back exactly as they were
 * given, whatever bytes they hold.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "cli/cli.h"
#include "policy/inputs.h"

static bool has_control(const char *s)
{
	for (; *s; s++) {
		if ((unsigned char)*s < 0x20 || *s == 0x7f)
			return true;
	}
	return false;
}

/*
 * A command with newlines or other control bytes in its words, still on one line:
 * everything doubtful becomes an octal escape for printf %b, and the shell reads
 * what comes out of it. $'...' would be shorter, but dash has none.
 */
static void fold(struct buf *b)
{
	_cleanup_buf_ struct buf line = BUF_INIT(BUF_MAX_TEXT);

	if (!has_control(buf_str(b)))
		return;
	buf_puts(&line, "eval \"$(printf %b '");
	for (const char *s = buf_str(b); *s; s++) {
		if (ascii_alnum(*s) || strchr(" _./:@+,-=", *s))
			buf_putc(&line, *s);
		else
			buf_printf(&line, "\\0%03o", (unsigned)(unsigned char)*s);
	}
	buf_puts(&line, "')\"");
	b->len = 0;
	buf_append(b, buf_str(&line), line.len);
}

static void append_option(struct buf *b, const char *name, const char *value)
{
	buf_printf(b, " --%s", name);
	if (!value)
		return;
	buf_putc(b, ' ');
	text_append_shell(b, value);
}

/* Rules and profiles are relative to --chdir, other files to where the caller is. */
static int portable_value(struct arena *a, const struct option_use *use, const char **ret,
			  struct error *e)
{
	*ret = use->value;
	if (!use->option->file || strcmp(use->value, "-") == 0 || strcmp(use->value, "none") == 0)
		return 0;
	return inputs_caller_path(a, use->value, ret, e);
}

static int append_options(const struct invocation *inv, const struct policy *p, struct buf *b,
			  struct error *e)
{
	append_option(b, "chdir", p->cwd);
	for (size_t i = 0; i < inv->options.n_uses; i++) {
		const struct option_use *use = &inv->options.uses[i];
		const char *value = NULL;

		if (strcmp(use->option->name, "chdir") == 0)
			continue;
		if (use->value) {
			int r = portable_value(inv->arena, use, &value, e);
			if (r < 0)
				return r;
		}
		append_option(b, use->option->name, value);
	}
	return 0;
}

int cmd_wrap(const struct invocation *inv, int *ret_status, struct error *e)
{
	_cleanup_buf_ struct buf b = BUF_INIT(BUF_MAX_TEXT);
	const struct policy *p;
	char *const *argv;
	const char *self;
	int r = invocation_argv(inv, &argv, e);

	(void)ret_status;
	if (r == 0)
		r = inputs_self(inv->arena, &self, e);
	/* a line that would be refused is refused now */
	if (r == 0)
		r = invocation_policy(inv, NULL, &p, e);
	if (r == 0 && p->backend != BACKEND_NONE && p->backend != BACKEND_AUTO &&
	    !run_has_backend(p->backend))
		r = error_set(e, ENOTSUP, "this backend is not available here");
	if (r != 0)
		return r;
	if (access(self, X_OK) < 0)
		return error_set(e, errno, "%s: %s", self, strerror(errno));
	text_append_shell(&b, self);
	buf_puts(&b, " run");
	r = append_options(inv, p, &b, e);
	if (r < 0)
		return r;
	if (!inv->options.shell) {
		buf_puts(&b, " --");
		for (; *argv; argv++) {
			buf_putc(&b, ' ');
			text_append_shell(&b, *argv);
		}
	}
	fold(&b);
	buf_putc(&b, '\n');
	return output_write(&b, e);
}
