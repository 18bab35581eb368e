/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The proxy gives up everything it does not need, for good.
 */
#pragma once

#include <linux/filter.h>
#include <stddef.h>

#include "base/error.h"

#define CONFINE_MISSING_MAX 3
#define CONFINE_FILTER_MAX 320

struct confinement {
	const char *missing[CONFINE_MISSING_MAX]; /* what this machine cannot do */
	size_t n_missing;
};

/* First of all, before anything is opened: only the control socket and stderr were meant for us. */
int confine_inherited(struct error *e) NODISCARD;
/* 0, or -errno when a stage that every kernel has fails. */
int confine(struct confinement *ret, struct error *e) NODISCARD;

/* The system call filter; number of instructions. For confine() and its test. */
size_t confine_filter(struct sock_filter ret[CONFINE_FILTER_MAX]);
