/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel's classic BPF machine as seccomp uses it, written after its rules and not after
 * our generator, so that tests can run a filter for any architecture and any call.
 */
#pragma once

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bpf_result {
	uint32_t action;
	size_t steps; /* instructions executed */
	bool saw_arguments; /* then the kernel cannot skip the filter for this number */
};

/* What the kernel refuses to load: NULL if it would take the filter, else what is wrong. */
const char *bpf_check(const struct sock_filter *filter, size_t count);

/* The filter must have passed bpf_check(). */
struct bpf_result bpf_run(const struct sock_filter *filter, const struct seccomp_data *data);

/* The number of instructions that no path from the first one reaches. */
size_t bpf_count_dead(const struct sock_filter *filter, size_t count);
