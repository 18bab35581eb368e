/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which backend. The native one is believed to work and simply started, because finding out
 * takes as long as a start does; only when it was refused, when there is a known reason for
 * doubt, or when the policy accepts less than everything, are the backends probed.
 *
 * Never weaker in silence: what the chosen backend does not hold is refused, unless the policy
 * says `fallback: warn`, and is told line by line then. Two exceptions, both told all the same:
 * the user named the backend, so what it never holds is known; and inside another sandbox
 * of ours the outer one holds what the inner one cannot.
 */
#include "sandbox/backend.h"

#include <string.h>

#include "policy/schema.h"
#include "sandbox/bwrap/bwrap.h"
#include "sandbox/container/container.h"
#include "sandbox/landlock/landlock.h"
#include "sandbox/native/native.h"

const struct backend *const backends_table[] = { &backend_native, &backend_bwrap, &backend_landlock,
						 &backend_podman, &backend_docker };
const size_t backends_count = ARRAY_LEN(backends_table);

const struct backend *backend_find(enum backend_choice choice)
{
	for (size_t i = 0; i < backends_count; i++) {
		if (backends_table[i]->choice == choice)
			return backends_table[i];
	}
	return NULL;
}

static const struct property *find_property(const struct properties *props, const char *name)
{
	for (size_t i = 0; i < props->n; i++) {
		if (strcmp(props->v[i].name, name) == 0)
			return &props->v[i];
	}
	return NULL;
}

int backend_try(struct arena *a, const struct backend *b, struct error *e)
{
	const struct property *files;
	struct properties props;
	int r = b->probe(a, &props, e);

	if (r < 0)
		return r;
	files = find_property(&props, "files");
	return files && files->enforced
		       ? 0
		       : error_set(e, ENOTSUP, "the %s backend does not work here: %s", b->name,
				   files ? files->missing : "no files");
}

int backend_check_required(struct arena *a, const struct policy *p, const struct plan_facts *facts,
			   struct error *e)
{
	const struct backend *b = backend_find(facts->backend);
	struct properties props;

	if (!p->require.n)
		return 0;
	b = b ? b : &backend_native;
	b->hold(a, facts, &props);
	for (size_t i = 0; i < p->require.n; i++) {
		const struct property *found = find_property(&props, p->require.v[i].text);

		if (!found || !found->enforced)
			return error_set(e, ENOTSUP,
					 "require: %s is not enforced here by the %s backend: %s",
					 p->require.v[i].text, b->name,
					 found ? found->missing : "it has nothing of the kind");
	}
	return 0;
}

static void tell(struct arena *a, struct backend_decision *d, const char *text)
{
	ARENA_PUSH(a, d->lost.v, d->lost.n)->text = text;
}

enum which { WHICH_ALL, WHICH_NOT_INHERENT };

/* What is not held, as lines for the user. */
static void tell_lost(struct arena *a, const struct properties *props, enum which which,
		      struct backend_decision *d)
{
	for (size_t i = 0; i < props->n; i++) {
		const struct property *p = &props->v[i];

		if (!p->enforced && (which == WHICH_ALL || !p->inherent))
			tell(a, d, arena_printf(a, "not enforced: %s: %s", p->name, p->missing));
	}
}

static int choose_landlock(struct arena *a, const struct policy *p, struct plan_facts *facts,
			   struct backend_decision *d, struct error *e)
{
	struct properties props;

	d->backend = &backend_landlock;
	facts->backend = BACKEND_LANDLOCK;
	landlock_gather(facts);
	landlock_properties(a, facts, &props);
	if (facts->landlock_abi == 0)
		return error_set(e, ENOTSUP, "the kernel has no Landlock (or it is not enabled)");
	if (facts->nested) {
		tell(a, d,
		     "inside another sandbox, which watches the calls: protected names, modes and "
		     "times of files, and unix sockets are held by its policy, not by this one");
		return 0;
	}
	tell_lost(a, &props, WHICH_NOT_INHERENT, d);
	if (d->lost.n == 0 || p->fallback == FALLBACK_WARN)
		return 0;
	return error_set(e, ENOTSUP, "%s; accept it with --fallback warn", d->lost.v[0].text);
}

/* What it never holds does not keep it from being used, but is told each time. */
static void choose_container(struct arena *a, struct plan_facts *facts, struct backend_decision *d)
{
	const struct property *names;
	struct properties props;

	container_gather(a, facts);
	container_properties(a, facts, &props);
	names = find_property(&props, "names");
	if (names)
		tell(a, d, arena_printf(a, "not enforced: %s: %s", names->name, names->missing));
}

static int choose_named(struct arena *a, const struct policy *p, struct plan_facts *facts,
			struct backend_decision *d, struct error *e)
{
	const char *name = settings_table[setting_find("backend")].values[p->backend];

	d->why = arena_printf(a, "asked for by %s",
			      origin_text(a, &p->value_origin[setting_find("backend")]));
	d->backend = backend_find(p->backend);
	if (!d->backend)
		return error_set(e, ENOTSUP,
				 "this version has no backend %s; there are native, bwrap, "
				 "landlock, podman, "
				 "docker and none",
				 name);
	facts->backend = p->backend;
	if (p->backend == BACKEND_PODMAN || p->backend == BACKEND_DOCKER)
		choose_container(a, facts, d);
	return p->backend == BACKEND_LANDLOCK ? choose_landlock(a, p, facts, d, e) : 0;
}

/* Everything but what older kernels lack; of /proc less, where the policy accepts that. */
static bool is_complete(const struct policy *p, const struct properties *props,
			struct plan_facts *facts)
{
	bool complete = true;

	for (size_t i = 0; i < props->n; i++) {
		const struct property *v = &props->v[i];

		if (v->enforced || strcmp(v->name, "landlock") == 0 ||
		    strcmp(v->name, "signal-scope") == 0 || strcmp(v->name, "names") == 0)
			continue;
		if (strcmp(v->name, "processes") == 0 && p->weaker_nested)
			facts->weaker_proc = true;
		else
			complete = false;
	}
	return complete;
}

static const struct property *first_missing(const struct properties *props)
{
	for (size_t i = 0; i < props->n; i++) {
		if (!props->v[i].enforced)
			return &props->v[i];
	}
	return NULL;
}

static void tell_weaker_proc(struct arena *a, const struct plan_facts *facts,
			     struct backend_decision *d)
{
	if (facts->weaker_proc)
		tell(a, d,
		     "not enforced: processes: /proc is the container's, its processes can be seen "
		     "(enableWeakerNestedSandbox)");
}

/* Where we may make no namespaces, bwrap may still: an AppArmor profile can be for it alone. */
static bool can_use_bwrap(struct arena *a, const struct policy *p, struct plan_facts *facts)
{
	struct plan_facts here = *facts;
	struct properties props;
	struct error e;

	landlock_gather(&here);
	if (here.nested || bwrap_probe(a, &props, &e) < 0)
		return false;
	return is_complete(p, &props, facts);
}

/* Namespaces cannot be had: inside another sandbox, or as the second best, or not at all. */
static int choose_without(struct arena *a, const struct policy *p, const char *because,
			  struct plan_facts *facts, struct backend_decision *d, struct error *e)
{
	struct backend_decision less = { 0 };
	struct error why = { 0 };
	struct properties props;
	int r;

	if (can_use_bwrap(a, p, facts)) {
		facts->backend = BACKEND_BWRAP;
		d->backend = &backend_bwrap;
		d->why = arena_printf(a, "bwrap may make namespaces here; %s", because);
		tell_weaker_proc(a, facts, d);
		return 0;
	}
	r = choose_landlock(a, p, facts, &less, &why);
	if (facts->nested && r == 0) {
		*d = less;
		d->why = "inside another sandbox, whose rules hold as well";
		return 0;
	}
	if (p->fallback != FALLBACK_WARN)
		return error_set(e, EPERM,
				 "%s. To run with less (Landlock and system call filter, no "
				 "namespaces) and be told what is not enforced: --fallback warn",
				 because);
	if (r < 0)
		return error_set(e, why.code, "%s; and without namespaces: %s", because, why.text);
	*d = less;
	d->lost = (struct text_rules){ 0 };
	d->why = "namespaces cannot be made here, and fallback is warn";
	tell(a, d, arena_printf(a, "%s; running without namespaces (landlock backend)", because));
	landlock_properties(a, facts, &props);
	tell_lost(a, &props, WHICH_ALL, d);
	return 0;
}

static int choose_best(struct arena *a, const struct policy *p, const struct error *refused,
		       struct plan_facts *facts, struct backend_decision *d, struct error *e)
{
	const struct property *missing;
	struct properties props;
	int r;

	d->backend = &backend_native;
	facts->backend = BACKEND_NATIVE;
	d->why = "the strongest, and nothing speaks against it";
	if (refused)
		return choose_without(a, p, arena_strdup(a, refused->text), facts, d, e);
	if (p->fallback != FALLBACK_WARN && !p->weaker_nested && !native_is_doubtful())
		return 0;
	r = native_probe(a, &props, e);
	if (r < 0)
		return r;
	if (is_complete(p, &props, facts)) {
		d->why = "the strongest, and it works here";
		tell_weaker_proc(a, facts, d);
		return 0;
	}
	missing = first_missing(&props);
	if (!missing)
		return error_set(e, ENOTSUP, "the native sandbox cannot hold this policy here");
	return choose_without(a, p,
			      arena_printf(a, "cannot make the sandbox: %s: %s%s%s", missing->name,
					   missing->missing,
					   missing->remedy ? "; to mend it: " : "",
					   missing->remedy ? missing->remedy : ""),
			      facts, d, e);
}

int backend_choose(struct arena *a, const struct policy *p, const struct error *refused,
		   struct plan_facts *facts, struct backend_decision *ret, struct error *e)
{
	*ret = (struct backend_decision){ 0 };
	return p->backend == BACKEND_AUTO ? choose_best(a, p, refused, facts, ret, e)
					  : choose_named(a, p, facts, ret, e);
}
