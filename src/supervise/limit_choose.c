/* SPDX-License-Identifier: Apache-2.0 */
/* What holds each limit on this machine. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "supervise/limit_internal.h"

static const char *const means_texts[] = {
	[MEANS_NONE] = NULL,
	[MEANS_CGROUP1] = "cgroup v1",
	[MEANS_CGROUP2] = "cgroup v2",
	[MEANS_SCOPE] = "cgroup v2, a scope of systemd",
	[MEANS_RLIMIT] = "RLIMIT_NPROC in the sandbox's own user namespace",
	[MEANS_AFFINITY] = "processor affinity, whole processors only",
	[MEANS_SAMPLED] = "samples of the sandbox's processes by the supervisor",
	[MEANS_SEVERAL] = "size of the private file system, RLIMIT_FSIZE, counts and samples",
	[MEANS_COUNTED] = "counted by the supervisor, who passes it on",
	[MEANS_CLOCK] = "the supervisor's clock",
};
_Static_assert(ARRAY_LEN(means_texts) == MEANS_MAX_, "a text for each means");

const char *limit_means_text(enum limit_means means)
{
	return means_texts[means];
}

bool limit_means_is_cgroup(enum limit_means means)
{
	return means == MEANS_CGROUP1 || means == MEANS_CGROUP2 || means == MEANS_SCOPE;
}

static enum limit_means group_means(const struct cgroup_place *place)
{
	switch (place->kind) {
	case CGROUP_V1:
		return MEANS_CGROUP1;
	case CGROUP_V2:
		return MEANS_CGROUP2;
	case CGROUP_SCOPE:
		return MEANS_SCOPE;
	case CGROUP_NONE:
		break;
	}
	return MEANS_NONE;
}

/* A part of a processor, where only whole ones can be given out. */
static int choose_part(struct arena *a, const struct policy *p, const struct cgroup_place *place,
		       const char **note, struct error *e)
{
	double whole = (double)(uint64_t)p->limits.cpu;
	double up = whole < p->limits.cpu ? whole + 1 : whole;

	if (up <= p->limits.cpu)
		return 0;
	if (p->fallback != FALLBACK_WARN)
		return error_set(e, ENOTSUP,
				 "limits.cpu %g: without a cgroup only whole processors can be "
				 "given out here (%s): use --cpu %g, or --fallback warn, or see "
				 "ambit check",
				 p->limits.cpu, place->missing, up);
	*note = arena_printf(a, "limits.cpu: %g processors instead of %g (%s)", up, p->limits.cpu,
			     place->missing);
	return 0;
}

/* For a plain user RLIMIT_NPROC is as exact as a cgroup and costs nothing; root is exempt. */
static enum limit_means choose_pids(const struct policy_limits *l, enum limit_means group)
{
	bool grouped = group == MEANS_CGROUP1 || group == MEANS_CGROUP2;

	if (geteuid() == 0)
		return group ? group : MEANS_SAMPLED;
	return grouped || (group && (l->memory || l->cpu > 0)) ? group : MEANS_RLIMIT;
}

int limits_choose(struct arena *a, const struct policy *p, const struct cgroup_places *places,
		  enum limit_means means[LIMIT_MAX_], const char **note, struct error *e)
{
	const struct policy_limits *l = &p->limits;
	const struct cgroup_place *by = places->by;
	int r = 0;

	if (l->memory) {
		means[LIMIT_MEMORY] = group_means(&by[CGROUP_MEMORY]);
		if (!means[LIMIT_MEMORY])
			means[LIMIT_MEMORY] = MEANS_SAMPLED;
	}
	if (l->cpu > 0) {
		means[LIMIT_CPU] = group_means(&by[CGROUP_CPU]);
		if (!means[LIMIT_CPU]) {
			means[LIMIT_CPU] = MEANS_AFFINITY;
			r = choose_part(a, p, &by[CGROUP_CPU], note, e);
		}
	}
	if (l->pids)
		means[LIMIT_PIDS] = choose_pids(l, group_means(&by[CGROUP_PIDS]));
	if (l->disk)
		means[LIMIT_DISK] = MEANS_SEVERAL;
	if (l->output)
		means[LIMIT_OUTPUT] = MEANS_COUNTED;
	if (l->timeout_ms)
		means[LIMIT_TIMEOUT] = MEANS_CLOCK;
	return r;
}

void limits_probe(struct arena *a, struct properties *ret)
{
	const struct policy p = { .limits = { .memory = 1,
					      .cpu = 1,
					      .pids = 1,
					      .disk = 1,
					      .output = 1,
					      .timeout_ms = 1 } };
	const struct cgroup_place *by;
	enum limit_means means[LIMIT_MAX_] = { 0 };
	struct cgroup_places places;
	const char *note = NULL;

	cgroup_find(a, "", (const bool[]){ true, true, true }, &places);
	if (limits_choose(a, &p, &places, means, &note, NULL) < 0)
		return; /* cannot be: whole processors are always to be had */
	by = places.by;
	for (size_t i = 0; i < LIMIT_MAX_; i++) {
		struct property *row = ARENA_PUSH(a, ret->v, ret->n);
		const struct cgroup_place *place = i == LIMIT_MEMORY ? &by[CGROUP_MEMORY]
						   : i == LIMIT_CPU  ? &by[CGROUP_CPU]
								     : NULL;

		row->name = arena_printf(a, "limit-%s", limit_name((enum limit)i));
		row->enforced = true;
		row->mechanism = limit_means_text(means[i]);
		if (place && place->kind == CGROUP_NONE) {
			row->missing = place->missing;
			row->remedy = place->remedy;
		}
	}
}
