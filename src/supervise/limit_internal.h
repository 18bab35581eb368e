/* SPDX-License-Identifier: Apache-2.0 */
/* Between the files of supervise/limit*.c only. */
#pragma once

#include "supervise/cgroup.h"
#include "supervise/limit.h"

/* By what a limit is held. */
enum limit_means {
	MEANS_NONE, /* not set */
	MEANS_CGROUP1,
	MEANS_CGROUP2,
	MEANS_SCOPE, /* version 2, by systemd */
	MEANS_RLIMIT,
	MEANS_AFFINITY,
	MEANS_SAMPLED,
	MEANS_SEVERAL, /* disk */
	MEANS_COUNTED, /* output */
	MEANS_CLOCK, /* timeout */
	MEANS_MAX_,
};

const char *limit_means_text(enum limit_means means);
bool limit_means_is_cgroup(enum limit_means means);

/*
 * The means of every limit that is set, the strongest first; `note` for what is held less exactly
 * than asked (--fallback warn), else that is refused.
 */
int limits_choose(struct arena *a, const struct policy *p, const struct cgroup_places *places,
		  enum limit_means means[LIMIT_MAX_], const char **note, struct error *e) NODISCARD;
