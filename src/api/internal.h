/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of libambit share: the config, and the way from it to a policy. */
#pragma once

#include <stddef.h>

#include "ambit.h"
#include "base/arena.h"
#include "base/error.h"
#include "policy/inputs.h"
#include "policy/policy.h"

struct api_setting {
	char *key, *value;
};

struct ambit_config {
	char *directory, *file, *program; /* each may be NULL */
	struct api_setting *settings;
	size_t n_settings;
};

/* Into the caller's structure; returns -code. */
int api_fail(struct ambit_error *ret, const struct error *e);

/* The ambit program that belongs to this library. */
int api_program(const struct ambit_config *c, struct arena *a, const char **ret, struct error *e)
	NODISCARD;
/* The policy as `ambit run` would have it in `directory` (NULL = the config's). */
int api_policy(const struct ambit_config *c, struct arena *a, const char *directory,
	       const struct policy **ret, struct error *e) NODISCARD;
