/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command line on macOS: what is not ported is refused by its name, with the reason. The rest
 * of it is shared with Linux; which files make which program is in meson.build.
 */
#include <errno.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "base/text.h"
#include "cli/cli.h"
#include "cli/explain.h"
#include "cli/srt.h"
#include "policy/inputs.h"
#include "sandbox/plan.h"
#include "sandbox/seatbelt/seatbelt.h"

#define JSON_INDENT 2

bool own_word(char *const *argv, char *const *environ_in, int *ret_status)
{
	(void)ret_status;
	if (strcmp(argv[1], SEATBELT_ENTER_WORD) == 0)
		seatbelt_enter(argv + 2, environ_in);
	return false;
}

bool run_has_backend(enum backend_choice choice)
{
	return choice == BACKEND_SEATBELT;
}

/* A profile of Seatbelt is about paths alone. */
int explain_by_plan(const struct question *q, enum access access, struct answer *ret,
		    bool *ret_decided, struct error *e)
{
	(void)access;
	(void)ret;
	*ret_decided = false;
	return plan_check_prepare(q->policy, e);
}

int cmd_learn(const struct invocation *inv, int *ret_status, struct error *e)
{
	(void)inv;
	(void)ret_status;
	return error_set(e, ENOTSUP,
			 "ambit learn is not available on macOS: it watches system calls, which "
			 "only the Linux backends can");
}

int cmd_mcp(const struct invocation *inv, int *ret_status, struct error *e)
{
	(void)inv;
	(void)ret_status;
	return error_set(e, ENOTSUP,
			 "ambit mcp is not available on macOS: the server needs the supervisor of "
			 "the Linux backends; to sandbox another server: ambit wrap -- SERVER");
}

int srt_main(struct arena *a, char *const *argv, char *const *environ_in)
{
	(void)a;
	(void)argv;
	(void)environ_in;
	log_error("srt is not available on macOS: its settings ask for allowed domains, and "
		  "ambit-proxy is not ported; ambit run works");
	return EXIT_AMBIT;
}

int cmd_plan(const struct invocation *inv, int *ret_status, struct error *e)
{
	const struct policy *p;
	char *const *argv;
	int r = invocation_argv(inv, &argv, e);

	(void)ret_status;
	if (r == 0)
		r = invocation_policy(inv, NULL, &p, e);
	if (r != 0)
		return r;
	invocation_notes(inv, p);
	if (!p->enabled || p->backend == BACKEND_NONE)
		return error_set(e, EINVAL,
				 "there is nothing to plan: the policy asks for no sandbox");
	return plan_seatbelt(inv, p, e);
}

/* Found by trying: a command that does nothing, under the policy of this directory. */
static int try_sandbox(const struct invocation *inv, struct error *e)
{
	static char program[] = "/usr/bin/true";
	char *const argv[] = { program, NULL };
	struct seatbelt_request req = { .argv = argv,
					.environ_in = inv->environ_in,
					.program = SEATBELT_EXEC };
	struct seatbelt_result result;
	int r = invocation_policy(inv, NULL, &req.policy, e);

	if (r == 0)
		r = inputs_self(inv->arena, &req.self, e);
	if (r == 0)
		r = seatbelt_run(inv->arena, &req, &result, e);
	if (r == 0 && result.exit_code != 0)
		r = error_set(e, EIO, "%s ends with %d in the sandbox", program, result.exit_code);
	return r;
}

static void print_json(const struct properties *props, struct buf *out)
{
	struct json j = { .out = out, .indent = JSON_INDENT };

	json_begin_object(&j);
	json_kstring(&j, "backend", "seatbelt");
	json_kbool(&j, "complete", check_count(props) == props->n);
	check_print_json(props, &j);
	json_end_object(&j);
	buf_putc(out, '\n');
}

int cmd_check(const struct invocation *inv, int *ret_status, struct error *e)
{
	_cleanup_buf_ struct buf out = BUF_INIT(BUF_MAX_TEXT);
	struct error why = { 0 };
	struct properties props;
	int r = invocation_no_words(inv, e);

	if (r < 0)
		return r;
	if (inv->options.attack)
		return error_set(e, ENOTSUP,
				 "check --attack: the built-in attempts are those of Linux");
	seatbelt_properties(inv->arena, &props);
	if (try_sandbox(inv, &why) < 0) {
		for (size_t i = 0; i < props.n; i++) {
			if (props.v[i].enforced)
				props.v[i].missing = why.text;
			props.v[i].enforced = false;
		}
	}
	if (inv->options.json)
		print_json(&props, &out);
	else
		check_print_text(&props, &out);
	*ret_status = check_count(&props) == 0 ? EXIT_AMBIT : EXIT_DENIED;
	return output_write(&out, e);
}
