/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ambit mcp serve: the policy of the server, then the server.
 *
 * The policy is that of `ambit run` in the project, with the profile `mcp-serve` (environment by
 * allow-list), limits on memory and processes, caches of its own for interpreters and package
 * managers, and some hosts that developers need, unless anybody has said something else. Everybody who may speak on `ambit run` may
 * speak here: options, settings, the managed file above all.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "audit/audit.h"
#include "base/log.h"
#include "base/sha256.h"
#include "cli/cli.h"
#include "mcp/serve.h"
#include "policy/inputs.h"
#include "policy/schema.h"

#define PROFILE "mcp-serve"
#define SOURCE "mcp serve"
#define CACHE_HASH_LEN 12 /* hexadecimal digits */
#define MEMORY_LEAST ((uint64_t)512 << 20)
#define PIDS_DEFAULT "1024"

/* Where tools keep what they fetch, below the cache of this project. */
static const struct {
	const char *name, *below;
} cache_variables[] = {
	{ "XDG_CACHE_HOME", "" },
	{ "npm_config_cache", "/npm" },
	{ "GOMODCACHE", "/go-mod" },
	{ "CARGO_HOME", "/cargo" },
	{ "BUN_INSTALL_CACHE_DIR", "/bun" },
	{ "MIX_HOME", "/mix" },
	{ "HEX_HOME", "/hex" },
	{ "NUGET_PACKAGES", "/nuget" },
	{ "DOTNET_CLI_HOME", "/dotnet" },
};

static const char *const default_domains[] = { "github.com", "api.github.com", "registry.npmjs.org",
					       "pypi.org", "files.pythonhosted.org" };

/* Settings that are added to those of the invocation. */
struct extras {
	struct arena *arena;
	struct setting_text *v;
	size_t n;
};

static void add(struct extras *x, const char *key, const char *value, const char *source)
{
	*ARENA_PUSH(x->arena, x->v, x->n) =
		(struct setting_text){ key, value, source, LAYER_ENVIRONMENT };
}

static int load(const struct policy_inputs *in, const struct extras *x, const struct policy **ret,
		struct error *e)
{
	struct policy_inputs with = *in;
	struct setting_text *v = arena_array(x->arena, in->n_settings + x->n, sizeof(*v));

	/* before the options, which are the last word */
	if (x->n)
		memcpy(v, x->v, x->n * sizeof(*v));
	if (in->n_settings)
		memcpy(v + x->n, in->settings, in->n_settings * sizeof(*v));
	with.settings = v;
	with.n_settings += x->n;
	return policy_load(x->arena, &with, ret, e);
}

/* --- caches ------------------------------------------------------------------------------- */

static int make_directories(char *path)
{
	for (char *s = path + 1; (s = strchr(s, '/')); *s++ = '/') {
		*s = '\0';
		if (mkdir(path, 0700) < 0 && errno != EEXIST)
			return -errno;
	}
	return mkdir(path, 0700) < 0 && errno != EEXIST ? -errno : 0;
}

/* ~/.cache/ambit/mcp/NAME-HASH: of this project only, so that one cannot poison another's. */
static const char *cache_directory(const struct invocation *inv, const struct policy_inputs *in)
{
	const char *cache = inputs_variable(inv->environ_in, "XDG_CACHE_HOME");
	const char *name = strrchr(in->cwd, '/');
	char hex[SHA256_HEX_LEN + 1], clean[32] = "";

	sha256_hex(in->cwd, strlen(in->cwd), hex);
	for (size_t i = 0; name && name[1 + i] && i + 1 < sizeof(clean); i++)
		clean[i] = strchr(" \t\n\"'\\,", name[1 + i]) ? '_' : name[1 + i];
	if (!cache || cache[0] != '/')
		cache = path_join(inv->arena, in->home, ".cache");
	return arena_printf(inv->arena, "%s/ambit/mcp/%s-%.*s", cache, clean, CACHE_HASH_LEN, hex);
}

static void add_caches(const struct invocation *inv, const struct policy_inputs *in,
		       struct extras *x)
{
	char *dir = arena_strdup(inv->arena, cache_directory(inv, in));
	int r = make_directories(dir);

	if (r < 0) {
		log_warn("%s: %s: package managers have no cache", dir, strerror(-r));
		return;
	}
	add(x, "filesystem.allowWrite", dir, SOURCE);
	for (size_t i = 0; i < ARRAY_LEN(cache_variables); i++)
		add(x, "environment.set",
		    arena_printf(inv->arena, "%s=%s%s", cache_variables[i].name, dir,
				 cache_variables[i].below),
		    SOURCE);
}

/* --- network ------------------------------------------------------------------------------ */

static void add_variables(const struct invocation *inv, struct extras *x)
{
	const char *domains = inputs_variable(inv->environ_in, "CONTEXT_MODE_ALLOWED_DOMAINS");
	const char *off = inputs_variable(inv->environ_in, "CONTEXT_MODE_NO_SANDBOX");

	if (domains)
		add(x, "network.allowedDomains", domains, "CONTEXT_MODE_ALLOWED_DOMAINS");
	if (off && strcmp(off, "1") == 0)
		add(x, "enabled", "false", "CONTEXT_MODE_NO_SANDBOX");
}

/*
 * Nobody has said anything about the network, but for options that allow more: a hint that is
 * followed must not take away what was allowed before. Those who want their own domains only say
 * --network allowlist.
 */
static bool network_is_open_question(const struct policy_inputs *in, const struct policy *p)
{
	const struct host_rules *allowed = &p->network.allowed;
	enum layer mode = p->value_origin[setting_find("network.mode")].layer;

	for (size_t i = 0; i < allowed->n; i++) {
		if (allowed->v[i].origin.layer != LAYER_OPTION)
			return false;
	}
	for (size_t i = 0; i < in->n_settings; i++) {
		if (strcmp(in->settings[i].key, "network.mode") == 0)
			return false;
	}
	/* a mode that nobody has named comes from the first domain */
	return mode == LAYER_DEFAULT || (mode == LAYER_OPTION && allowed->n);
}

/* --- limits ------------------------------------------------------------------------------- */

/* Half of the machine's memory, if nobody has set a limit: one call must not take all of it. */
static void add_limits(const struct invocation *inv, const struct policy *p, struct extras *x)
{
	uint64_t total = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);

	if (!p->limits.memory && total >= 2 * MEMORY_LEAST)
		add(x, "limits.memory", arena_printf(inv->arena, "%" PRIu64 "m", total / 2 >> 20),
		    SOURCE);
	/* there it cannot be held without a cgroup, and would refuse every call */
	if (!p->limits.pids && !(p->backend == BACKEND_LANDLOCK && geteuid() == 0))
		add(x, "limits.pids", PIDS_DEFAULT, SOURCE);
}

/* --- together ------------------------------------------------------------------------------ */

/*
 * The policy of the server. What is added here as a convenience gives way to managed settings that
 * do not allow it.
 */
static int server_policy(const struct invocation *inv, const struct policy_inputs *in,
			 const struct policy **ret, struct error *e)
{
	struct extras x = { .arena = inv->arena };
	struct error ignored = { 0 };
	const struct policy *better;
	size_t plain;
	int r;

	add(&x, "profiles", PROFILE, SOURCE);
	add_variables(inv, &x);
	r = load(in, &x, ret, e);
	if (r < 0)
		return r;
	plain = x.n;
	add_limits(inv, *ret, &x);
	add_caches(inv, in, &x);
	if (network_is_open_question(in, *ret)) {
		for (size_t i = 0; i < ARRAY_LEN(default_domains); i++)
			add(&x, "network.allowedDomains", default_domains[i], SOURCE);
	}
	if (x.n == plain)
		return 0;
	if (load(in, &x, &better, &ignored) == 0)
		*ret = better;
	else
		log_warn("without limits, caches and domains by default: %s",
			 output_safe(inv->arena, ignored.text));
	return 0;
}

static void warn(const char *text)
{
	log_error("%s", text);
}

/* A server whose log cannot be written would refuse every call: better not to start. */
static int open_log(const struct policy *p, struct audit **ret, struct error *e)
{
	struct audit_config config;

	*ret = NULL;
	return audit_config_of(p, &config) ? audit_open(&config, ret, e) : 0;
}

static int serve(const struct invocation *inv, struct error *e)
{
	struct mcp_serve req = { .environ_in = inv->environ_in,
				 .version = AMBIT_VERSION,
				 .in = STDIN_FILENO,
				 .out = STDOUT_FILENO,
				 .report_reads = inv->options.report_reads,
				 .warn = warn };
	struct policy_inputs in;
	int r = invocation_inputs(inv, &in, e);

	if (r == 0)
		r = server_policy(inv, &in, &req.policy, e);
	if (r == 0)
		r = outside_asked(inv, req.policy, &req.unsandboxed, e);
	if (r == 0)
		r = inputs_self(inv->arena, &req.self, e);
	if (r == 0)
		r = open_log(req.policy, &req.audit, e);
	if (r < 0 || !req.policy)
		return r;
	invocation_notes(inv, req.policy);
	if (req.unsandboxed)
		log_error("NO SANDBOX (%s): all calls run with all your rights",
			  output_safe(inv->arena, req.unsandboxed));
	req.proxy_program = inputs_helper(inv->arena, "ambit-proxy");
	req.spool_dir = path_join(inv->arena, in.home, ".cache");
	r = mcp_serve(&req, e);
	audit_close(req.audit);
	return r;
}

static int check_words(const struct invocation *inv, struct error *e)
{
	const struct options *o = &inv->options;

	if (o->n_words == 0)
		return error_set(e, EINVAL, "which one? There is: ambit mcp serve [OPTIONS]");
	if (strcmp(o->words[0], "serve") != 0)
		return error_set(e, EINVAL, "unknown: mcp %s; there is: ambit mcp serve [OPTIONS]",
				 output_safe(inv->arena, o->words[0]));
	if (o->n_words > 1)
		return error_set(e, EINVAL, "unexpected '%s' after ambit mcp serve [OPTIONS]",
				 output_safe(inv->arena, o->words[1]));
	return 0;
}

int cmd_mcp(const struct invocation *inv, int *ret_status, struct error *e)
{
	struct invocation with = *inv;
	const char *project = inputs_variable(inv->environ_in, "CLAUDE_PROJECT_DIR");
	int r;

	*ret_status = 0;
	r = check_words(inv, e);
	if (r < 0)
		return r;
	if (project && !inv->options.chdir) {
		with.options.chdir = project;
		with.chdir_by = "CLAUDE_PROJECT_DIR";
	}
	return serve(&with, e);
}
