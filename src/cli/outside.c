/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Running without a sandbox. The user can say so in one of three ways (enabled, backend,
 * AMBIT_NO_SANDBOX), or exclude single commands. It is never the outcome of a failure,
 * always said on stderr (-q does not silence it), and not for those inside a sandbox or
 * under managed settings that keep it on.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "cli/cli.h"
#include "policy/excluded.h"
#include "policy/inputs.h"
#include "policy/schema.h"
#include "sandbox/search.h"
#include "supervise/journal.h"

/* Who asked for no sandbox; NULL = nobody. */
static const char *unsandboxed_by(struct arena *a, const struct policy *p)
{
	const char *key = !p->enabled ? "enabled" : p->backend == BACKEND_NONE ? "backend" : NULL;

	return key ? origin_text(a, &p->value_origin[setting_find(key)]) : NULL;
}

static bool is_inside(const struct invocation *inv)
{
	/* AMBIT=1 proves nothing, but who sets it falsely only refuses himself */
	return inputs_variable(inv->environ_in, "AMBIT") != NULL;
}

static int check_may_be_unsandboxed(const struct invocation *inv, const char *by, struct error *e)
{
	const struct setting_text off = { "enabled", "false", by, LAYER_OPTION };
	const struct policy *p;
	int r;

	if (is_inside(inv))
		return error_set(e, EPERM, "no sandbox (%s): refused, this is inside a sandbox",
				 by);
	/* "backend": "none" is `enabled: false` by another name: what locks that locks this */
	r = invocation_policy(inv, &off, &p, e);
	return r < 0 ? error_wrap(e, "no sandbox") : 0;
}

/* The caller's own environment, with what was explicitly set for the command. */
static char **unsandboxed_environment(const struct invocation *inv, const struct policy *p)
{
	char **env = NULL;
	size_t n = 0;

	for (size_t i = 0; i < p->env.set.n; i++)
		*ARENA_PUSH(inv->arena, env, n) = arena_printf(
			inv->arena, "%s=%s", p->env.set.v[i].name, p->env.set.v[i].value);
	for (char *const *v = inv->environ_in; *v; v++) {
		size_t len = strcspn(*v, "=");
		bool replaced = false;

		for (size_t i = 0; i < p->env.set.n && !replaced; i++) {
			const char *name = p->env.set.v[i].name;

			replaced = strlen(name) == len && memcmp(name, *v, len) == 0;
		}
		if (!replaced)
			*ARENA_PUSH(inv->arena, env, n) = *v;
	}
	*ARENA_PUSH(inv->arena, env, n) = NULL;
	return env;
}

/* It ends as somebody else, so there is only a beginning of it in the log. */
static void record(const struct policy *p, char *const *argv)
{
	_cleanup_audit_ struct audit *log = audit_open_for(p);
	struct journal j;

	journal_init(&j, log);
	journal_start(&j, p, argv, "none");
	if (j.failed)
		log_error("the audit log cannot be written: %s; the run is not recorded",
			  j.error.text);
}

/* Becomes the command; comes back only when that fails. */
static int become(const struct policy *p, const char *program, char *const *argv, char **env,
		  struct error *e)
{
	if (chdir(p->cwd) < 0)
		return error_set(e, errno, "%s: %s", p->cwd, strerror(errno));
	record(p, argv);
	return sandbox_exec(program, argv, env, e);
}

/* What was judged is what runs: the words, not the text in a shell once more. */
static int run_excluded(const struct invocation *inv, const struct policy *p,
			const struct command_answer *answer, struct error *e)
{
	struct arena *a = inv->arena;
	const char *where = origin_text(a, &answer->rule->origin);
	const char *entry = output_safe(a, answer->rule->text);

	if (!answer->argv)
		return error_set(e, EPERM, "refused: a denied command: %s \"%s\" (%s)", answer->key,
				 entry, output_safe(a, where));
	if (answer->place == COMMAND_REFUSED)
		return error_set(
			e, EPERM,
			"%s: refused: excludedCommands \"%s\" (%s) says that it runs outside the "
			"sandbox, and allowUnsandboxedCommands is false; set that to true, or "
			"take the entry out to run it in the sandbox",
			output_safe(a, answer->argv[0]), entry, output_safe(a, where));
	log_error("%s runs outside the sandbox, with all your rights: excludedCommands \"%s\" (%s)",
		  output_safe(a, answer->program), entry, output_safe(a, where));
	return become(p, answer->program, answer->argv,
		      excluded_environment(p, a, unsandboxed_environment(inv, p)), e);
}

int outside_asked(const struct invocation *inv, const struct policy *p, const char **ret,
		  struct error *e)
{
	*ret = unsandboxed_by(inv->arena, p);
	return *ret ? check_may_be_unsandboxed(inv, *ret, e) : 0;
}

int outside_run(const struct invocation *inv, const struct policy *p, char *const *argv,
		struct error *e)
{
	const char *by;
	const char *path = inputs_variable(inv->environ_in, "PATH");
	struct command_answer answer;
	int r = outside_asked(inv, p, &by, e);

	if (r < 0)
		return r;
	if (by) {
		log_error("NO SANDBOX (%s): %s runs with all your rights; no rule and no limit "
			  "applies",
			  output_safe(inv->arena, by), output_safe(inv->arena, argv[0]));
		return become(p, argv[0], argv, unsandboxed_environment(inv, p), e);
	}
	if (p->excluded_commands.n == 0 && p->denied_commands.n == 0)
		return 0;
	if (inv->options.shell)
		command_decide_text(p, inv->arena, inv->options.shell, path, &answer);
	else
		command_decide_argv(p, inv->arena, argv, path, &answer);
	if (answer.place == COMMAND_REFUSED || (answer.place == COMMAND_OUTSIDE && !is_inside(inv)))
		return run_excluded(inv, p, &answer, e);
	if (answer.rule)
		log_warn("%s stays in the sandbox: %s", output_safe(inv->arena, answer.argv[0]),
			 output_safe(inv->arena,
				     is_inside(inv) ? "this is inside a sandbox" : answer.reason));
	return 0;
}
