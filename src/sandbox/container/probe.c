/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a container holds: one row per property. The engine's own work is believed as far as
 * ambit-enter can see it (enter.c); what nobody inside can be asked about is not held.
 */
#include <unistd.h>

#include "policy/inputs.h"
#include "sandbox/container/container.h"

#define PROBE_MS 10000

struct row {
	int abi; /* of Landlock that it needs; 0 = none */
	const char *name, *mechanism; /* NULL: not held by this backend */
	const char *lost;
};

static const struct row rows[] = {
	{ 0, "user-namespaces", "user namespace of the rootless engine, no capabilities",
	  "ids inside are those of the host, without capabilities" },
	{ 0, "files", "read-only image, bind mounts", NULL },
	{ 0, "attributes", "read-only image, bind mounts", NULL },
	{ 0, "hidden", "of the host only what is mounted", NULL },
	{ 0, "processes", "pid namespace of the container", NULL },
	{ 0, "devices", "devices of the container", NULL },
	{ 0, "network", "network namespace of the container", NULL },
	{ 0, "egress", NULL, "allowed domains: a container has no way to ambit-proxy" },
	{ 0, "ipc", "ipc and uts namespaces of the container", NULL },
	{ 1, "landlock", "Landlock, for what lies outside the container",
	  "files outside that are standard input or output can be opened anew for writing" },
	{ 6, "signal-scope", "Landlock scopes",
	  "the command can signal all that runs in its container" },
	{ 0, "seccomp", "system call filters, the engine's and ours", NULL },
	{ 0, "names", NULL,
	  "protected names that do not exist at the start, or lie below the top of a writable "
	  "directory, can be made and changed, and nothing is reported as denied" },
};

void container_properties(struct arena *a, const struct plan_facts *facts, struct properties *ret)
{
	*ret = (struct properties){ 0 };
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct row *r = &rows[i];
		struct property *p = ARENA_PUSH(a, ret->v, ret->n);
		bool rootless = facts->backend == BACKEND_PODMAN && facts->uid != 0;

		p->name = r->name;
		p->mechanism = r->mechanism;
		p->enforced = r->mechanism &&
			      (r->abi ? facts->landlock_abi >= r->abi : !r->lost || rootless);
		p->inherent = true;
		if (!p->enforced)
			p->missing = r->lost;
	}
}

static const char *engine_name(enum backend_choice choice)
{
	return choice == BACKEND_DOCKER ? "docker" : "podman";
}

void container_gather(struct arena *a, struct plan_facts *facts)
{
	facts->engine = inputs_find_program(a, facts->environ_in, engine_name(facts->backend));
	facts->enter = inputs_helper(a, "ambit-enter");
}

/*
 * Does the engine answer? Docker's is a service. podman is the program itself, and is not asked:
 * even for its version it makes a directory in /tmp, and for more it leaves a process behind.
 */
static bool engine_answers(const char *program, enum backend_choice choice)
{
	const char *const argv[] = { program, "info", NULL };

	return choice != BACKEND_DOCKER ||
	       container_ask((char *const *)(uintptr_t)argv, environ, PROBE_MS) == 0;
}

static int probe(struct arena *a, enum backend_choice choice, struct properties *ret)
{
	const char *name = engine_name(choice);
	struct plan_facts facts;
	const char *missing = NULL;

	plan_gather_facts(a, environ, &facts);
	facts.backend = choice;
	container_gather(a, &facts);
	container_properties(a, &facts, ret);
	if (!facts.engine)
		missing = arena_printf(a, "there is no program %s on PATH", name);
	else if (!engine_answers(facts.engine, choice))
		missing = arena_printf(a, "the engine does not answer: %s info says why", name);
	for (size_t i = 0; missing && i < ret->n; i++) {
		ret->v[i].enforced = ret->v[i].inherent = false;
		ret->v[i].missing = missing;
	}
	return 0;
}

static int podman_probe(struct arena *a, struct properties *ret, struct error *e)
{
	(void)e;
	return probe(a, BACKEND_PODMAN, ret);
}

static int docker_probe(struct arena *a, struct properties *ret, struct error *e)
{
	(void)e;
	return probe(a, BACKEND_DOCKER, ret);
}

const struct backend backend_podman = {
	.name = "podman",
	.choice = BACKEND_PODMAN,
	.hold = container_properties,
	.probe = podman_probe,
	.compile = plan_compile,
	.start = container_start,
};

const struct backend backend_docker = {
	.name = "docker",
	.choice = BACKEND_DOCKER,
	.hold = container_properties,
	.probe = docker_probe,
	.compile = plan_compile,
	.start = container_start,
};
