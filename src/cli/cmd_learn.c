/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ambit learn: run a command in a sandbox that is wide where that can be borne, watch what it
 * uses, and write that down as a policy (docs/decisions/0010-learn.md):
 *
 *   writes    performed and recorded anywhere below the home directory, and where options
 *             allow more; elsewhere refused
 *   network   every public host, through the proxy, recorded
 *   never     secrets, protected names, private addresses, sockets and ports of the host: what
 *             an option does not give is refused, and listed for the user to decide
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "audit/redact.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/text.h"
#include "cli/cli.h"
#include "policy/inputs.h"
#include "policy/schema.h"
#include "policy/tree.h"
#include "supervise/learn.h"
#include "supervise/run.h"

#define SOURCE "ambit learn"

struct lesson {
	const struct invocation *inv;
	const char *file; /* what is written, absolute; NULL = standard output */
	const char *old; /* --update: what is in it now; else NULL */
	const struct policy *base;
	struct learn *learn;
	struct learned learned;
	bool ended;
	int exit_code;
};

/* ---- where it goes ---- */

static int check_name(const struct invocation *inv, const char *file, struct error *e)
{
	if (text_ends(file, ".json") && !inv->options.update)
		return error_set(e, EINVAL, "%s: a new file is written in YAML: call it .yaml",
				 output_safe(inv->arena, file));
	if (!inv->options.update && access(file, F_OK) == 0)
		return error_set(e, EEXIST, "%s exists: use --update to add to it",
				 output_safe(inv->arena, file));
	return 0;
}

static int open_lesson(struct lesson *l, struct error *e)
{
	const struct options *o = &l->inv->options;
	const char *file = o->update ? o->update : o->out;
	_cleanup_free_ char *text = NULL;
	size_t len = 0;
	int r;

	if (o->update && (o->out || o->settings))
		return error_set(e, EINVAL, "--update goes without -o and without -s");
	if (!file)
		return 0;
	r = inputs_caller_path(l->inv->arena, file, &l->file, e);
	if (r == 0)
		r = check_name(l->inv, l->file, e);
	if (r < 0 || !o->update)
		return r;
	r = fd_read_file(AT_FDCWD, l->file, TREE_TEXT_MAX, &text, &len);
	/* of a wrong name nobody wants a lesson that knows nothing of the right file */
	if (r == -ENOENT)
		return error_set(e, ENOENT, "%s does not exist: use -o FILE for a new one",
				 output_safe(l->inv->arena, l->file));
	if (r == 0 && strlen(text) != len)
		r = -EINVAL;
	if (r < 0)
		return error_set(e, -r, "%s: %s", l->file, strerror(-r));
	l->old = arena_strdup(l->inv->arena, text);
	return 0;
}

static int write_file(const char *file, const struct buf *text, struct error *e)
{
	int r = fd_replace_file(file, buf_str(text), text->len, 0600);

	return r < 0 ? error_set(e, -r, "%s: %s", file, strerror(-r)) : 0;
}

static const char *title(struct lesson *l, char *const *argv)
{
	_cleanup_buf_ struct buf b = BUF_INIT(BUF_MAX_TEXT);
	time_t now = time(NULL);
	struct tm tm = { 0 };

	(void)localtime_r(&now, &tm);
	buf_printf(&b, "Learned by ambit on %04d-%02d-%02d from:", tm.tm_year + 1900, tm.tm_mon + 1,
		   tm.tm_mday);
	for (size_t i = 0; argv[i]; i++) {
		_cleanup_buf_ struct buf word = BUF_INIT(BUF_MAX_TEXT);

		/* a policy is kept and shown around */
		redact_argument(argv, i, &word);
		buf_putc(&b, ' ');
		text_append_shell(&b, buf_str(&word));
	}
	return arena_strdup(l->inv->arena, buf_str(&b));
}

static int write_lesson(struct lesson *l, char *const *argv, struct error *e)
{
	_cleanup_buf_ struct buf out = BUF_INIT(BUF_MAX_TEXT);
	int r = 0;

	if (l->old)
		r = learn_update(l->file, l->old, &l->learned, &out, e);
	else
		learn_print(&l->learned, title(l, argv), &out);
	if (r < 0)
		return r;
	return l->file ? write_file(l->file, &out, e) : output_write(&out, e);
}

/* ---- what is allowed meanwhile ---- */

static void push(struct arena *a, struct policy_inputs *in, const char *key, const char *value)
{
	struct setting_text *v = arena_array(a, in->n_settings + 1, sizeof(*v));

	if (in->n_settings > 0)
		memcpy(v, in->settings, in->n_settings * sizeof(*v));
	v[in->n_settings++] = (struct setting_text){ key, value, SOURCE, LAYER_OPTION };
	in->settings = v;
}

static bool is_set(const struct policy_inputs *in, const char *key)
{
	for (size_t i = 0; i < in->n_settings; i++) {
		if (strcmp(in->settings[i].key, key) == 0)
			return true;
	}
	return false;
}

/* base: what `ambit run -s FILE` would allow without any rule in FILE, or with those of now. */
static int load_policies(struct lesson *l, const struct policy **ret, struct error *e)
{
	struct policy_inputs in, base;
	struct arena *a = l->inv->arena;
	int r = invocation_inputs(l->inv, &in, e);

	if (r < 0)
		return r;
	base = in;
	base.user_file = base.project_file = NULL;
	base.only_file = l->file ? l->file : SOURCE;
	base.only_text = l->old ? l->old : "";
	base.only_len = strlen(base.only_text);
	base.n_settings = 0;
	r = policy_load(a, &base, &l->base, e);
	if (r < 0)
		return r;
	if (l->old)
		in = (struct policy_inputs){ base.cwd,
					     .home = base.home,
					     .managed_file = base.managed_file,
					     .only_file = base.only_file,
					     .only_text = base.only_text,
					     .only_len = base.only_len,
					     .state_dir = base.state_dir,
					     .profile_dir = base.profile_dir,
					     .profile_dirs_user = base.profile_dirs_user,
					     .settings = in.settings,
					     .n_settings = in.n_settings,
					     .view = base.view };
	push(a, &in, "filesystem.allowWrite", "~");
	if (!is_set(&in, "network.mode"))
		push(a, &in, "network.mode", "allowlist");
	in.live_network = true;
	r = policy_load(a, &in, ret, e);
	if (r == 0 && (*ret)->network.mode == NETWORK_HOST)
		return error_set(
			e, EINVAL,
			"in the host's network (network.mode) connections are not seen, so "
			"that no host could be learned: leave it out");
	return r;
}

/* Options that the command may have needed become rules of the policy. */
static void take_given(struct lesson *l, const struct setting_text *s)
{
	struct arena *a = l->inv->arena;
	const char *value = s->value;
	int row = setting_find(s->key);

	/* what is used of these is seen; the values of variables may be secrets */
	if (row < 0 || !l->base || strcmp(s->key, "filesystem.allowWrite") == 0 ||
	    strcmp(s->key, "network.allowedDomains") == 0 ||
	    strcmp(s->key, "environment.set") == 0 || strcmp(s->key, "network.mode") == 0)
		return;
	if ((text_starts(s->key, "filesystem.") && settings_table[row].type == SETTING_PATHS) ||
	    settings_table[row].type == SETTING_SOCKETS)
		value = *value == '~' || *value == '@' ? value
						       : path_absolute(a, l->base->cwd, value);
	learn_given(l->learn, s->key, value, arena_printf(a, "given to learn: %s", s->source));
}

static int take_options(struct lesson *l, struct error *e)
{
	struct policy_inputs in;
	int r = invocation_inputs(l->inv, &in, e);

	for (size_t i = 0; r == 0 && i < in.n_settings; i++) {
		const struct setting_text *s = &in.settings[i];

		if (s->layer != LAYER_OPTION)
			continue;
		if (!strchr(s->key, '.') && l->old)
			return error_set(e, EINVAL,
					 "%s: --update takes no %s; put it into the file yourself",
					 l->file, s->source);
		take_given(l, s);
	}
	return r;
}

/* ---- the run ---- */

static void on_used(void *ctx, const struct violation *v)
{
	const struct lesson *l = ctx;

	learn_used(l->learn, v);
}

static void on_decision(void *ctx, const struct egress_record *r)
{
	const struct lesson *l = ctx;

	learn_decision(l->learn, r);
}

static void on_look(void *ctx, pid_t init)
{
	const struct lesson *l = ctx;

	learn_look(l->learn, init);
}

static void on_end(void *ctx, const struct report *report, const struct run_result *result)
{
	struct lesson *l = ctx;

	learn_finish(l->learn, report, result, &l->learned);
	l->ended = true;
	l->exit_code = result->exit_code;
}

static void tell_scope(const struct lesson *l, const struct policy *p)
{
	log_error("LEARNING: the command may change everything in %s but protected names, and "
		  "%s; secrets stay hidden. Learn only from what you trust",
		  output_safe(l->inv->arena, p->home),
		  p->network.mode == NETWORK_ALLOWLIST ? "reach every public host"
						       : "has no network");
}

static void tell_lesson(const struct lesson *l)
{
	_cleanup_buf_ struct buf b = BUF_INIT(BUF_MAX_TEXT);

	if (l->exit_code)
		log_warn("the command failed with status %d: what it would have done next is not "
			 "learned",
			 l->exit_code);
	if (l->file) {
		text_append_shell(&b, l->file);
		log_warn("learned %zu rules; use them with: ambit run -s %s -- COMMAND",
			 l->learned.rules.n, output_safe(l->inv->arena, buf_str(&b)));
		buf_done(&b);
	}
	/* a new file has them as comments */
	if (l->old && l->learned.refused.n) {
		buf_puts(&b, "not learned, because it was refused or a rule would be too wide:\n");
		learn_print_refused(&l->learned, "  ", &b);
		log_warn("%.*s", (int)b.len - 1, buf_str(&b));
	}
}

static int run_lesson(struct lesson *l, struct run_request *req, int *ret_status, struct error *e)
{
	const struct run_observer observer = {
		.used = on_used, .decision = on_decision, .look = on_look, .ended = on_end, .ctx = l
	};
	_cleanup_fd_ int out = -1;
	int r;

	/* the policy goes to standard output: what the command prints goes to the other */
	if (!l->file)
		out = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
	req->out = out;
	req->observer = &observer;
	tell_scope(l, req->policy);
	r = run_sandboxed(l->inv, req, NULL, ret_status, e);
	req->observer = NULL;
	return r;
}

int cmd_learn(const struct invocation *inv, int *ret_status, struct error *e)
{
	struct lesson l = { .inv = inv };
	struct run_request req = { .environ_in = inv->environ_in };
	int r = invocation_argv(inv, &req.argv, e);

	if (r == 0)
		r = open_lesson(&l, e);
	if (r == 0)
		r = load_policies(&l, &req.policy, e);
	if (r < 0)
		return r;
	l.learn = learn_new(inv->arena, l.base, &path_host_view);
	r = take_options(&l, e);
	if (r == 0)
		r = run_lesson(&l, &req, ret_status, e);
	if (l.ended) {
		struct error late = { 0 };

		/* also when the report could not be written: the lesson is worth keeping */
		if (write_lesson(&l, req.argv, r == 0 ? e : &late) < 0)
			return r == 0 ? -e->code : r;
		tell_lesson(&l);
	}
	return r;
}
