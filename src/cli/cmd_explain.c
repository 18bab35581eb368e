/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ambit explain: the policy's answer about one target, with the rule that
 * decides. A hint is given only where following it would change the answer.
 */
#include <errno.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "cli/cli.h"
#include "cli/explain.h"
#include "policy/excluded.h"
#include "policy/inputs.h"
#include "policy/match_path.h"
#include "policy/schema.h"
#include "supervise/hint.h"

#define JSON_INDENT 2

const char *explain_hint(struct arena *a, const char *option, const char *target)
{
	_cleanup_buf_ struct buf b = BUF_INIT(BUF_MAX_TEXT);

	buf_printf(&b, "%s ", option);
	text_append_shell(&b, target);
	return arena_strdup(a, buf_str(&b));
}

static const char *path_rule_key(const struct path_rule *r)
{
	static const char *const keys[][2] = {
		[ACCESS_READ] = { [VERDICT_DENY] = "filesystem.denyRead",
				  [VERDICT_ALLOW] = "filesystem.allowRead" },
		[ACCESS_WRITE] = { [VERDICT_DENY] = "filesystem.denyWrite",
				   [VERDICT_ALLOW] = "filesystem.allowWrite" },
	};

	return keys[r->access][r->verdict];
}

/* The target as the kernel would reach it from the command's directory. */
int explain_path_target(const struct question *q, const char **ret, struct error *e)
{
	struct arena *a = q->inv->arena;
	const char *path = q->target;
	struct view_entry entry;

	if (strcmp(path, "~") == 0 || text_starts(path, "~/"))
		path = arena_printf(a, "%s%s", q->policy->home, path + 1);
	path = path_absolute(a, q->policy->cwd, path);
	path_host_view.look(&path_host_view, a, path, &entry);
	if (entry.kind == FILE_UNKNOWN)
		return error_set(e, entry.err, "%s: %s", path, strerror(entry.err));
	*ret = entry.real;
	return 0;
}

void explain_protected(const struct question *q, const struct protected_name *n, struct answer *ret)
{
	struct arena *a = q->inv->arena;

	ret->name = n;
	ret->rule = "filesystem.protect";
	ret->entry = n->pattern;
	ret->source = origin_text(a, &n->origin);
	/* judged by what is written, not by the name alone */
	if (strcmp(protected_lifter(q->policy, n)->pattern, ".git/config") == 0) {
		ret->reason = GIT_CONFIG_REASON;
		ret->hint = hint_git_config(q->policy);
		return;
	}
	ret->hint = hint_unprotect(a, q->policy, n->pattern);
}

bool explain_rule(const struct question *q, const struct path_rule *r, struct answer *ret)
{
	ret->rule = path_rule_key(r);
	ret->entry = r->text;
	ret->source = origin_text(q->inv->arena, &r->origin);
	/* a deny of writing beats every allow, a managed deny is never re-opened */
	return !r->locked && (r->access != ACCESS_WRITE || r->verdict != VERDICT_DENY);
}

const char *explain_hint_read(struct arena *a, const char *path)
{
	return explain_hint(a, "--allow-read", pattern_escape(a, path));
}

static const char *hint_path(const struct question *q, enum access access, const char *path)
{
	struct arena *a = q->inv->arena;

	if (access == ACCESS_READ)
		return explain_hint_read(a, path);
	return hint_write(a, q->policy, path,
			  text_ends(q->target, "/") ? HINT_MAKE_DIRECTORY : HINT_WRITE);
}

static int explain_path(const struct question *q, enum access access, struct answer *ret,
			struct error *e)
{
	bool opens = true, decided = false;
	struct decision d;
	int r = explain_path_target(q, &ret->target, e);

	if (r < 0)
		return r;
	policy_decide_path(q->policy, access, ret->target, &d);
	ret->verdict = d.verdict;
	ret->reason = d.reason;
	ret->source = "default";
	if (d.protected)
		explain_protected(q, d.protected, ret);
	else if (d.rule)
		opens = explain_rule(q, d.rule, ret);
	else if (d.verdict == VERDICT_DENY)
		ret->rule =
			access == ACCESS_READ ? "filesystem.allowRead" : "filesystem.allowWrite";
	r = explain_by_plan(q, access, ret, &decided, e);
	if (r == 0 && !decided && !ret->name && d.verdict == VERDICT_DENY && opens)
		ret->hint = hint_path(q, access, ret->target);
	return r;
}

static int explain_read(const struct question *q, struct answer *ret, struct error *e)
{
	return explain_path(q, ACCESS_READ, ret, e);
}

static int explain_write(const struct question *q, struct answer *ret, struct error *e)
{
	return explain_path(q, ACCESS_WRITE, ret, e);
}

static int explain_command(const struct question *q, struct answer *ret, struct error *e)
{
	const struct policy *p = q->policy;
	struct arena *a = q->inv->arena;
	struct command_answer answer;

	(void)e;
	command_decide_text(p, a, q->target, inputs_variable(q->inv->environ_in, "PATH"), &answer);
	ret->target = q->target;
	ret->verdict = answer.place == COMMAND_OUTSIDE ? VERDICT_ALLOW : VERDICT_DENY;
	ret->word = command_place_text(answer.place);
	ret->reason = answer.reason;
	ret->rule = answer.key;
	ret->source = "default";
	ret->auto_allowed = command_auto_allowed(p, &answer);
	if (!p->enabled || p->backend == BACKEND_NONE) {
		ret->rule = p->enabled ? "backend" : "enabled";
		ret->source = origin_text(a, &p->value_origin[setting_find(ret->rule)]);
		ret->verdict = VERDICT_ALLOW;
		ret->word = command_place_text(COMMAND_OUTSIDE);
		ret->reason = "there is no sandbox";
	} else if (answer.rule) {
		ret->entry = answer.rule->text;
		ret->source = origin_text(a, &answer.rule->origin);
	}
	if (answer.place == COMMAND_REFUSED && answer.argv && ret->entry)
		ret->hint = "--set allowUnsandboxedCommands=true";
	return 0;
}

static const struct {
	const char *access;
	int (*explain)(const struct question *q, struct answer *ret, struct error *e);
} questions[] = {
	{ "read", explain_read }, { "write", explain_write },     { "connect", explain_connect },
	{ "unix", explain_unix }, { "command", explain_command },
};

static const char *verdict_word(const struct answer *n)
{
	if (n->word)
		return n->word;
	return n->verdict == VERDICT_ALLOW ? "allowed" : "denied";
}

static void print_text(const struct question *q, const struct answer *n, struct buf *out)
{
	bool allowed = n->verdict == VERDICT_ALLOW;

	buf_printf(out, "%s: %s ", verdict_word(n), q->access);
	text_append_safe(out, n->target);
	buf_puts(out, " — ");
	text_append_safe(out, n->reason ? n->reason
			      : allowed ? "no rule denies it"
					: "not allowed");
	if (n->entry) {
		buf_printf(out, ": %s ", n->rule);
		text_append_safe(out, n->entry);
	}
	if (n->entry || allowed) {
		buf_puts(out, " (");
		text_append_safe(out, n->source);
		buf_putc(out, ')');
	}
	if (n->hint && text_is_safe(n->hint)) {
		buf_puts(out, " (allow with: ");
		text_append_safe(out, n->hint);
		buf_putc(out, ')');
	}
	buf_putc(out, '\n');
}

static void print_json(const struct question *q, const struct answer *n, struct buf *out)
{
	struct json j = { .out = out, .indent = JSON_INDENT };

	json_begin_object(&j);
	json_kstring(&j, "verdict", verdict_word(n));
	json_kstring(&j, "access", q->access);
	json_kstring(&j, "target", n->target);
	json_kstring(&j, "rule", n->rule);
	json_kstring(&j, "entry", n->entry);
	json_kstring(&j, "source", n->source);
	json_kstring(&j, "reason", n->reason);
	json_kstring(&j, "hint", n->hint);
	if (n->word)
		json_kbool(&j, "autoAllowed", n->auto_allowed);
	json_end_object(&j);
	buf_putc(out, '\n');
}

int cmd_explain(const struct invocation *inv, int *ret_status, struct error *e)
{
	_cleanup_buf_ struct buf out = BUF_INIT(BUF_MAX_TEXT);
	struct question q = { .inv = inv };
	struct answer answer = { .verdict = VERDICT_DENY };
	size_t kind = 0;
	int r;

	if (inv->options.n_words != 2)
		return error_set(e, EINVAL, "usage: ambit explain %s", inv->command->usage);
	q.access = inv->options.words[0];
	q.target = inv->options.words[1];
	while (kind < ARRAY_LEN(questions) && strcmp(questions[kind].access, q.access) != 0)
		kind++;
	if (kind == ARRAY_LEN(questions))
		return error_set(e, EINVAL,
				 "explain: '%s' is not one of read, write, connect, unix, command",
				 output_safe(inv->arena, q.access));
	if (!*q.target)
		return error_set(e, EINVAL, "explain: the target is empty");
	r = invocation_policy(inv, NULL, &q.policy, e);
	if (r == 0)
		r = questions[kind].explain(&q, &answer, e);
	if (r < 0)
		return r;
	if (inv->options.json)
		print_json(&q, &answer, &out);
	else
		print_text(&q, &answer, &out);
	*ret_status = answer.verdict == VERDICT_ALLOW ? 0 : EXIT_DENIED;
	return output_write(&out, e);
}
