/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Escape attempts as functions. Each runs in a child of its own, and answers
 *
 *   0        it worked: this is a hole (or, without a sandbox, a good control run)
 *   -errno   the kernel refused
 *   ABSENT   there is nothing here to attack (no such device, feature, file)
 *
 * An attempt never does harm where it works: knobs are opened, not written; calls
 * that would change the machine get arguments that fail right after the permission
 * check, and this "reached" counts as having worked.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define ABSENT 1

struct context; /* the key=value words of the command line */

/* Value of a key; a missing one ends the program: the test is wrong, not the sandbox. */
const char *context_get(const struct context *c, const char *key);
int context_int(const struct context *c, const char *key);

struct probe {
	const char *name;
	int (*run)(const struct context *c, char *detail, size_t size);
};

struct probe_table {
	const struct probe *v;
	size_t n;
};

extern const struct probe_table file_probes, mount_probes, process_probes, kernel_probes,
	terminal_probes, network_probes;

/* --- helpers, all 0 or -errno --- */

/* Read a file and put its first line into detail: the test looks for its secret there. */
int attempt_read(const char *path, char *detail, size_t size);
/* The same from an open file. */
int attempt_read_fd(int fd, char *detail, size_t size);
/* Open for writing without writing. */
int attempt_open_write(const char *path);
/* rc of a raw system call (-1 and errno): arguments refused counts as reached. */
int reached(long rc);
