/* SPDX-License-Identifier: Apache-2.0 */
/* What several commands make of their options: the policy, the command to run. */
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "cli/cli.h"
#include "policy/inputs.h"

/* -v and --debug: where the policy comes from. Values may be secrets and are not shown. */
static void tell_sources(const struct policy_inputs *in)
{
	if (in->managed_file)
		log_info("managed settings: %s", in->managed_file);
	if (in->user_file)
		log_info("user settings: %s", in->user_file);
	if (in->project_file)
		log_info("project settings: %s", in->project_file);
	for (size_t i = 0; i < in->n_outer_files; i++)
		log_info("settings above the project, which may only narrow: %s",
			 in->outer_files[i]);
	if (in->only_file)
		log_info("settings: %s", in->only_file);
	log_debug("directory %s, home %s, profiles in %s", in->cwd, in->home,
		  in->profile_dir ? in->profile_dir : "no place");
	for (size_t i = 0; i < in->n_settings; i++)
		log_debug("%s sets %s", in->settings[i].source, in->settings[i].key);
}

/* A setting by its option, or by --set. False when the option is neither. */
static bool setting_of(struct arena *a, const struct option_use *use, struct setting_text *ret)
{
	const struct option *o = use->option;
	size_t len;

	*ret = (struct setting_text){ .key = o->key,
				      .value = use->value ? use->value : o->value,
				      .source = arena_printf(a, "--%s", o->name),
				      .layer = LAYER_OPTION };
	if (o->effect != OPTION_SET)
		return o->effect == OPTION_SETTING;
	if (!use->value)
		return false;
	len = strcspn(use->value, "=");
	ret->key = arena_strndup(a, use->value, len);
	ret->value = use->value + len + 1;
	return true;
}

/* Nothing inside may change the session log, wherever it lies; nor those put aside. */
static int protect_log(const struct invocation *inv, struct setting_text *ret, struct error *e)
{
	char cwd[PATH_MAX];
	const char *path = inv->options.log;

	if (strpbrk(path, "*?[{"))
		return error_set(e, EINVAL, "--log %s: the name must not have * ? [ or { in it",
				 output_safe(inv->arena, path));
	if (!getcwd(cwd, sizeof(cwd)))
		return error_set(e, errno, "--log: no working directory: %s", strerror(errno));
	path = path_absolute(inv->arena, cwd, path);
	for (size_t i = 0; i < 2; i++)
		ret[i] = (struct setting_text){ .key = "filesystem.denyWrite",
						.value = i ? arena_printf(inv->arena, "%s.*", path)
							   : path,
						.source = "--log",
						.layer = LAYER_OPTION };
	return 2;
}

int invocation_inputs(const struct invocation *inv, struct policy_inputs *ret, struct error *e)
{
	const struct options *o = &inv->options;
	struct setting_text *settings = arena_array(inv->arena, o->n_uses + 3, sizeof(*settings));
	struct inputs_request req = { .settings = o->settings,
				      .chdir = o->chdir,
				      .chdir_by = inv->chdir_by,
				      .live_network = o->control_fd || o->ask,
				      .options = settings };
	int r = o->log ? protect_log(inv, settings, e) : 0;

	if (r < 0)
		return r;
	req.n_options = (size_t)r;
	for (size_t i = 0; i < o->n_uses; i++)
		req.n_options += setting_of(inv->arena, &o->uses[i], &settings[req.n_options]);
	r = inputs_gather(inv->arena, &req, inv->environ_in, ret, e);
	if (r == 0)
		tell_sources(ret);
	return r;
}

int invocation_policy(const struct invocation *inv, const struct setting_text *extra,
		      const struct policy **ret, struct error *e)
{
	struct policy_inputs in;
	int r = invocation_inputs(inv, &in, e);

	if (r < 0)
		return r;
	if (extra) {
		struct setting_text *v = arena_array(inv->arena, in.n_settings + 1, sizeof(*v));

		if (in.n_settings > 0)
			memcpy(v, in.settings, in.n_settings * sizeof(*v));
		v[in.n_settings++] = *extra;
		in.settings = v;
	}
	r = policy_load(inv->arena, &in, ret, e);
	if (r == 0 && (*ret)->project_lines.n)
		log_info("project settings: %s",
			 (*ret)->project_trusted ? "trusted" : "may only narrow");
	return r;
}

void invocation_notes(const struct invocation *inv, const struct policy *p)
{
	for (size_t i = 0; i < p->notes.n; i++)
		log_warn("%s", output_safe(inv->arena, p->notes.v[i].text));
}

int invocation_no_words(const struct invocation *inv, struct error *e)
{
	if (inv->options.n_words == 0)
		return 0;
	return error_set(e, EINVAL, "unexpected '%s' (see: ambit help %s)",
			 output_safe(inv->arena, inv->options.words[0]), inv->command->name);
}

int invocation_argv(const struct invocation *inv, char *const **ret, struct error *e)
{
	const struct options *o = &inv->options;
	char **argv;

	if (!o->shell) {
		*ret = o->words;
		if (o->n_words == 0)
			return error_set(
				e, EINVAL,
				"no command given: ambit %s [OPTIONS] -- COMMAND, or -c STRING",
				inv->command->name);
		return 0;
	}
	if (o->n_words > 0)
		return error_set(e, EINVAL,
				 "unexpected '%s' after -c STRING: quote the whole command line",
				 output_safe(inv->arena, o->words[0]));
	argv = arena_array(inv->arena, 4, sizeof(*argv));
	argv[0] = inputs_find_program(inv->arena, inv->environ_in, "bash");
	if (!argv[0])
		argv[0] = arena_strdup(inv->arena, "/bin/sh");
	argv[1] = arena_strdup(inv->arena, "-c");
	argv[2] = arena_strdup(inv->arena, o->shell);
	*ret = argv;
	return 0;
}
