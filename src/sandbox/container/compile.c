/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a policy means in a container. The rules for paths give the same places as ever (plan.c),
 * only that the tree they stand in is the image's: of the host nothing is seen but what a
 * rule names, and the working directory.
 *
 * Nobody watches the calls inside. So what needs that is refused by name, except for the built-in
 * protected names, without which no policy could be used: those that exist at the top of a
 * writable directory are mounted read-only, and of the others the user is told.
 */
#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "policy/excluded.h"
#include "policy/match_path.h"
#include "sandbox/container/container.h"

#define NAME_OF_ENGINE(c) ((c)->plan->backend == BACKEND_PODMAN ? "podman" : "docker")

static int refuse(struct compiler *c, const char *what, const char *why)
{
	return error_set(c->e, ENOTSUP, "%s: not with the %s backend, %s", what, NAME_OF_ENGINE(c),
			 why);
}

static int refuse_network(struct compiler *c)
{
	const struct policy_network *net = &c->p->network;
	const char *why = "whose containers have no way to ambit-proxy: use --network none or "
			  "--network host, or another backend";

	if (net->mode == NETWORK_ALLOWLIST)
		return refuse(c, "network allowlist", why);
	if (net->mode != NETWORK_HOST && net->host_ports.n)
		return refuse(c, "network.allowHostPorts", why);
	if (net->mode != NETWORK_HOST && net->publish.n)
		return refuse(c, "network.publish", why);
	if (!net->allow_local_binding)
		return refuse(c, "network.allowLocalBinding false",
			      "where nobody watches who listens");
	return 0;
}

static int refuse_unknown(struct compiler *c)
{
	const char *name = NAME_OF_ENGINE(c);

	if (!c->facts->engine)
		return error_set(c->e, ENOENT, "there is no program %s on PATH: install %s", name,
				 name);
	if (!c->p->container.image)
		return error_set(c->e, EINVAL,
				 "the %s backend needs an image: --image NAME, or the setting "
				 "container.image (%s images lists those on this machine)",
				 name, name);
	if (c->plan->root_writable)
		return refuse(c, "allowWrite /", "whose root is an image: name directories");
	if (c->facts->n_files)
		return refuse(c, "files that only the sandbox sees", "which mounts the host's");
	if (c->p->limits.disk)
		return refuse(c, "limits.disk", "whose engine counts no files");
	if (c->facts->watch)
		return refuse(c, "--report-reads", "where nobody watches the calls");
	return refuse_network(c);
}

/* A program that the command can write to would be run by us, outside. */
static int check_engine(struct compiler *c)
{
	struct view_entry at;
	struct decision d;

	c->view->look(c->view, c->a, c->facts->engine, &at);
	policy_decide_path(c->p, ACCESS_WRITE, at.real, &d);
	return d.verdict == VERDICT_ALLOW
		       ? error_set(c->e, EPERM,
				   "%s lies in a writable directory: a command could have put it "
				   "there",
				   c->facts->engine)
		       : 0;
}

static bool reaches_writable(const struct plan *plan, const struct path_rule *r)
{
	for (size_t i = 0; i < plan->n_mounts; i++) {
		if (plan->mounts[i].kind == MOUNT_RW &&
		    (r->glob ? pattern_may_match_below(r->real, plan->mounts[i].path)
			     : path_within(r->real, plan->mounts[i].path)))
			return true;
	}
	return false;
}

static void note(struct compiler *c, const char *text)
{
	ARENA_PUSH(c->a, c->plan->notes.v, c->plan->notes.n)->text = text;
}

static int lose(struct compiler *c, const char *what)
{
	if (c->p->fallback != FALLBACK_WARN)
		return error_set(c->e, ENOTSUP,
				 "%s: in a container nobody watches the calls, so names that do "
				 "not exist yet cannot be held; accept that with --fallback warn",
				 what);
	note(c, arena_printf(c->a, "not enforced: %s, for names that do not exist at the start",
			     what));
	return 0;
}

/* What somebody wrote down about names, beyond the defaults. */
static int judge_names(struct compiler *c)
{
	int r = 0;

	for (size_t i = 0; i < c->p->fs.rules.n && r == 0; i++) {
		const struct path_rule *rule = &c->p->fs.rules.v[i];

		if (rule->verdict == VERDICT_DENY && rule->glob &&
		    rule->origin.layer != LAYER_DEFAULT && reaches_writable(c->plan, rule))
			r = lose(c, plan_rule_text(c, rule));
	}
	for (size_t i = 0; i < c->p->fs.n_protected && r == 0; i++) {
		const struct protected_name *name = &c->p->fs.protected[i];

		if (!name->lifted && name->origin.layer != LAYER_DEFAULT)
			r = lose(c, arena_printf(c->a, "protectNames %s (%s)", name->pattern,
						 origin_text(c->a, &name->origin)));
	}
	return r;
}

static bool is_named(const struct policy_environment *env, const char *name, size_t len)
{
	for (size_t i = 0; i < env->pass.n; i++) {
		if (strncmp(env->pass.v[i].text, name, len) == 0 && !env->pass.v[i].text[len])
			return true;
	}
	for (size_t i = 0; i < env->set.n; i++) {
		if (strncmp(env->set.v[i].name, name, len) == 0 && !env->set.v[i].name[len])
			return true;
	}
	return false;
}

/* What only means something on the host is left to the image, unless somebody asked for it. */
static void choose_environment(struct compiler *c)
{
	static const char *const of_the_host[] = { "PATH", "XDG_RUNTIME_DIR" };
	char **to = c->plan->env;

	for (char **v = c->plan->env; *v; v++) {
		size_t len = strcspn(*v, "=");
		bool keep = true;

		for (size_t i = 0; i < ARRAY_LEN(of_the_host); i++) {
			if (strlen(of_the_host[i]) == len && strncmp(*v, of_the_host[i], len) == 0)
				keep = is_named(&c->p->env, *v, len);
		}
		if (keep)
			*to++ = *v;
	}
	*to = NULL;
}

/*
 * The engine runs outside, with the caller's rights: of the caller's variables it gets those that
 * engines know, and of PATH what the command cannot have written to. A hook of the
 * loader that leads into the project would be a way out.
 */
static bool is_for_engine(const char *entry)
{
	static const char *const beginnings[] = { "HOME=",
						  "USER=",
						  "LOGNAME=",
						  "PATH=",
						  "TMPDIR=",
						  "LANG=",
						  "LC_",
						  "TZ=",
						  "XDG_",
						  "CONTAINER",
						  "STORAGE_",
						  "DOCKER_",
						  "REGISTRY_AUTH_FILE=",
						  "DBUS_SESSION_BUS_ADDRESS=",
						  "SSH_AUTH_SOCK=" };

	for (size_t i = 0; i < ARRAY_LEN(beginnings); i++) {
		if (text_starts(entry, beginnings[i]))
			return true;
	}
	return false;
}

static char *const *engine_environment(struct compiler *c)
{
	char **env = NULL;
	size_t n = 0;

	for (char *const *v = c->facts->environ_in; v && *v; v++) {
		if (is_for_engine(*v))
			*ARENA_PUSH(c->a, env, n) = *v;
	}
	*ARENA_PUSH(c->a, env, n) = NULL;
	return excluded_environment(c->p, c->a, env);
}

/* Against descriptors that lead outside: standard input may be a file that is not to be changed. */
static enum engine_landlock choose_landlock(const struct compiler *c)
{
	if (c->facts->landlock_abi < 1)
		return ENGINE_NO_LANDLOCK;
	return c->p->fallback == FALLBACK_WARN ? ENGINE_TRY_LANDLOCK : ENGINE_LANDLOCK;
}

int container_compile(struct compiler *c)
{
	struct plan_engine *engine = arena_alloc(c->a, sizeof(*engine));
	const char *slash;
	int r = refuse_unknown(c);

	if (r == 0)
		r = check_engine(c);
	if (r == 0)
		r = judge_names(c);
	if (r < 0)
		return r;
	slash = strrchr(c->facts->private_tmp, '/');
	*engine = (struct plan_engine){
		.name = NAME_OF_ENGINE(c),
		.env = engine_environment(c),
		.landlock = choose_landlock(c),
		.container = slash + 1,
		.directory = c->facts->private_tmp,
		.socket = arena_printf(c->a, "%s/socket", c->facts->private_tmp),
		.image = c->p->container.image,
		.memory = c->p->limits.memory,
		.pids = c->p->limits.pids,
		.cpu = c->p->limits.cpu,
	};
	choose_environment(c);
	r = container_argv(c, engine);
	if (r < 0)
		return r;
	if (!c->plan->all_unix)
		note(c, "not enforced: unix sockets that lie in mounted directories can be "
			"connected to");
	c->plan->engine = engine;
	return 0;
}
