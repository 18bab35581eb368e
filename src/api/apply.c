/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ambit_apply: the calling process goes into the sandbox itself. The policy is that of a
 * run; what cannot be held without another process is refused before anything is done.
 */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/internal.h"
#include "base/buf.h"
#include "sandbox/backend.h"
#include "sandbox/landlock/landlock.h"
#include "sandbox/plan.h"

#define NO_BROKER "nobody answers the calls of a process that confines itself"
#define TRUNCATE_ABI 3 /* below, files elsewhere could be emptied */

static int count_threads(struct error *e)
{
	DIR *tasks = opendir("/proc/self/task");
	const struct dirent *entry;
	int n = 0;

	if (!tasks)
		return error_set(e, errno, "cannot count threads: /proc/self/task: %s",
				 strerror(errno));
	while ((entry = readdir(tasks)))
		n += entry->d_name[0] != '.';
	(void)closedir(tasks);
	return n;
}

static int refuse(struct error *e, const char *what)
{
	return error_set(e, ENOTSUP, "%s cannot be held for the calling process itself: %s", what,
			 NO_BROKER);
}

static int refuse_names(struct arena *a, const struct policy *p, struct error *e)
{
	for (size_t i = 0; i < p->fs.n_protected; i++) {
		const struct protected_name *name = &p->fs.protected[i];

		if (!name->lifted && name->origin.layer != LAYER_DEFAULT)
			return refuse(e, arena_printf(a, "protectNames %s (%s)", name->pattern,
						      origin_text(a, &name->origin)));
	}
	return 0;
}

static int refuse_unknown(struct arena *a, const struct policy *p, struct error *e)
{
	const struct policy_network *net = &p->network;
	const struct policy_limits *l = &p->limits;

	if (!p->enabled || p->backend == BACKEND_NONE)
		return error_set(e, EINVAL, "the policy asks for no sandbox");
	if (l->memory || l->pids || l->disk || l->output || l->timeout_ms || l->cpu > 0)
		return refuse(e, "limits");
	if (p->fs.home == HOME_PRIVATE)
		return error_set(e, ENOTSUP, "filesystem.home private: nobody would remove it");
	if (net->mode == NETWORK_ALLOWLIST)
		return refuse(e, "network allowlist");
	if (net->publish.n || net->host_ports.n)
		return refuse(e, "network.publish and network.allowHostPorts");
	if (net->unix_sockets.n && !net->allow_all_unix_sockets)
		return refuse(e, "network.allowUnixSockets");
	if (net->mode == NETWORK_HOST && !net->allow_local_binding)
		return refuse(e, "network.allowLocalBinding false");
	return refuse_names(a, p, e);
}

/* As for a run of the landlock backend, without a broker. Missing directories are made. */
static int compile(struct arena *a, const struct policy *p, struct plan_facts *facts,
		   const struct plan **ret, struct error *e)
{
	int r;

	facts->dry = true;
	r = plan_compile(a, p, facts, &path_host_view, ret, e);
	if (r < 0 || !plan_must_prepare(p))
		return r;
	r = plan_prepare(a, p, facts, e);
	facts->dry = false;
	return r < 0 ? r : plan_compile(a, p, facts, &path_host_view, ret, e);
}

/* What a full sandbox would hold besides. */
static char *list_unenforced(struct arena *a, const struct plan_facts *facts,
			     const struct plan *plan)
{
	_cleanup_buf_ struct buf b = BUF_INIT(BUF_MAX_TEXT);
	struct properties props;

	landlock_properties(a, facts, &props);
	for (size_t i = 0; i < props.n; i++) {
		const struct property *v = &props.v[i];

		/* without unix sockets nobody need judge them */
		if (v->enforced || (strcmp(v->name, "network") == 0 && !plan->all_unix))
			continue;
		buf_printf(&b, "not enforced: %s: %s\n", v->name, v->missing);
	}
	for (size_t i = 0; i < plan->notes.n; i++)
		buf_printf(&b, "%s\n", plan->notes.v[i].text);
	return strdup(buf_str(&b));
}

static int apply(const struct ambit_config *c, struct arena *a, char **ret_text, struct error *e)
{
	const struct plan *plan = NULL;
	const struct policy *p = NULL;
	struct plan_facts facts;
	int r = count_threads(e);

	if (r < 0)
		return r;
	if (r != 1)
		return error_set(e, EBUSY,
				 "the process has %d threads: it can confine itself only while it "
				 "has one",
				 r);
	r = api_policy(c, a, NULL, &p, e);
	if (r < 0 || !p)
		return r;
	plan_gather_facts(a, environ, &facts);
	facts.backend = BACKEND_LANDLOCK;
	facts.no_listener = NO_BROKER;
	facts.private_tmp = NULL; /* nobody would remove it */
	if (facts.landlock_abi < TRUNCATE_ABI)
		return error_set(e, ENOTSUP,
				 "a process can confine itself with Landlock ABI %d (Linux 6.2), "
				 "this kernel has %d",
				 TRUNCATE_ABI, facts.landlock_abi);
	r = refuse_unknown(a, p, e);
	if (r < 0)
		return r;
	r = compile(a, p, &facts, &plan, e);
	if (r < 0) /* whatever it is about, it cannot be held */
		return error_set(e, ENOTSUP, "%s", arena_strdup(a, e->text));
	*ret_text = list_unenforced(a, &facts, plan);
	return landlock_apply_self(plan, e);
}

int ambit_apply(const struct ambit_config *c, char **ret_unenforced, struct ambit_error *e)
{
	_cleanup_arena_ struct arena *a = arena_new();
	struct error err = { 0 };
	char *text = NULL;
	int r = apply(c, a, &text, &err);

	if (r == 0 && ret_unenforced)
		*ret_unenforced = text;
	else
		free(text);
	return r < 0 ? api_fail(e, &err) : 0;
}
