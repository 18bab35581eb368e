/* SPDX-License-Identifier: Apache-2.0 */
/* Questions about commands, and commands as text: nothing is run here. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/internal.h"
#include "base/buf.h"
#include "base/path.h"
#include "base/text.h"
#include "policy/excluded.h"
#include "sandbox/backend.h"
#include "sandbox/plan.h"

const char *ambit_version(void)
{
	return AMBIT_VERSION;
}

bool ambit_is_supported(void)
{
	return true; /* libambit is built for Linux only */
}

bool ambit_is_available(struct ambit_error *e)
{
	_cleanup_arena_ struct arena *a = arena_new();
	struct backend_decision chosen;
	struct plan_facts facts;
	const struct policy *p;
	struct ambit_config plain = { 0 };
	struct error err = { 0 };
	int r = api_policy(&plain, a, "/", &p, &err);

	plan_gather_facts(a, environ, &facts);
	if (r == 0)
		r = backend_choose(a, p, NULL, &facts, &chosen, &err);
	if (r == 0)
		r = backend_try(a, chosen.backend, &err);
	if (r < 0)
		(void)api_fail(e, &err);
	return r == 0;
}

/* Compiled as for a run, but nothing is made or started. */
static int check(const struct ambit_config *c, struct arena *a, const struct policy **ret,
		 const struct plan **ret_plan, struct error *e)
{
	struct backend_decision chosen = { 0 };
	struct plan_facts facts;
	int r = api_policy(c, a, NULL, ret, e);

	plan_gather_facts(a, environ, &facts);
	facts.dry = true;
	if (r == 0)
		r = backend_choose(a, *ret, NULL, &facts, &chosen, e);
	if (r < 0 || !chosen.backend)
		return r;
	return chosen.backend->compile(a, *ret, &facts, &path_host_view, ret_plan, e);
}

int ambit_config_check(const struct ambit_config *c, struct ambit_error *e)
{
	_cleanup_arena_ struct arena *a = arena_new();
	const struct policy *p;
	const struct plan *plan;
	struct error err = { 0 };
	int r = check(c, a, &p, &plan, &err);

	return r < 0 ? api_fail(e, &err) : 0;
}

static void append_option(struct buf *b, const char *option, const char *value)
{
	buf_printf(b, " %s ", option);
	text_append_shell(b, value);
}

int ambit_wrap_command(const struct ambit_config *c, const char *command, char **ret,
		       struct ambit_error *e)
{
	_cleanup_arena_ struct arena *a = arena_new();
	_cleanup_buf_ struct buf b = BUF_INIT(BUF_MAX_TEXT);
	const struct policy *p = NULL;
	const char *program = NULL, *file = NULL;
	struct error err = { 0 };
	int r = command && ret ? api_program(c, a, &program, &err)
			       : error_set(&err, EINVAL, "there is no command");

	/* a line that would be refused is refused now */
	if (r == 0)
		r = api_policy(c, a, NULL, &p, &err);
	if (r == 0 && c->file)
		r = inputs_caller_path(a, c->file, &file, &err);
	if (r < 0 || !p || !program)
		return api_fail(e, &err);
	text_append_shell(&b, program);
	buf_puts(&b, " run");
	append_option(&b, "--chdir", p->cwd);
	if (file)
		append_option(&b, "-s", file);
	for (size_t i = 0; i < c->n_settings; i++)
		append_option(&b, "--set",
			      arena_printf(a, "%s=%s", c->settings[i].key, c->settings[i].value));
	append_option(&b, "-c", command);
	if (b.overflow) {
		(void)error_set(&err, E2BIG, "the command line is too long");
		return api_fail(e, &err);
	}
	*ret = strdup(buf_str(&b));
	return *ret ? 0 : -ENOMEM;
}

int ambit_environment(const struct ambit_config *c, char *const *env, char ***ret,
		      struct ambit_error *e)
{
	_cleanup_arena_ struct arena *a = arena_new();
	const struct policy *p = NULL;
	struct error err = { 0 };
	char **inside, **copy;
	size_t n = 0;
	int r = api_policy(c, a, NULL, &p, &err);

	if (r < 0 || !p)
		return api_fail(e, &err);
	inside = policy_environment(p, a, env ? env : environ, NULL);
	while (inside[n])
		n++;
	copy = calloc(n + 1, sizeof(*copy));
	for (size_t i = 0; copy && i < n; i++) {
		copy[i] = strdup(inside[i]);
		if (!copy[i]) {
			ambit_environment_free(copy);
			return -ENOMEM;
		}
	}
	*ret = copy;
	return copy ? 0 : -ENOMEM;
}

void ambit_environment_free(char **env)
{
	for (char **v = env; v && *v; v++)
		free(*v);
	free(env);
}

bool ambit_should_auto_allow_shell(const struct ambit_config *c, const char *command)
{
	_cleanup_arena_ struct arena *a = arena_new();
	struct command_answer answer;
	const struct policy *p;
	const struct plan *plan;
	struct error err = { 0 };

	/* without a sandbox there is nothing that would make it safe */
	if (!command || check(c, a, &p, &plan, &err) < 0)
		return false;
	command_decide_text(p, a, command, getenv("PATH"), &answer);
	return command_auto_allowed(p, &answer);
}

bool ambit_can_bypass(const struct ambit_config *c, const char *command, struct ambit_error *e)
{
	_cleanup_arena_ struct arena *a = arena_new();
	struct command_answer answer = { .place = COMMAND_SANDBOXED };
	const struct policy *p;
	struct error err = { 0 };
	int r = command ? api_policy(c, a, NULL, &p, &err)
			: error_set(&err, EINVAL, "there is no command");

	if (r == 0) {
		command_decide_text(p, a, command, getenv("PATH"), &answer);
		if (answer.place != COMMAND_OUTSIDE)
			r = error_set(&err, EPERM, "%s", answer.reason);
	}
	if (r < 0)
		(void)api_fail(e, &err);
	return r == 0;
}
