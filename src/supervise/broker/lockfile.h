/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a lock file says that packages come from: the hosts named in it. A file is looked at
 * before the command changes it and when the run is over; hosts that were not in it before
 * are told.
 *
 * The text is hostile. It is not parsed as what it claims to be, only searched for the places
 * where package managers write an address; what stands there and cannot be read plainly
 * counts as a host of its own, "?", so that it is told and never taken for harmless.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define LOCKFILE_MAX ((size_t)32 << 20) /* bytes that are looked at */
#define LOCKFILE_HOSTS_MAX 256 /* bytes of a list of hosts; what does not fit is "?" */

/* By the last component of its path. */
bool lockfile_is_one(const char *name);
/* The hosts, each once, with a space between; ret has LOCKFILE_HOSTS_MAX bytes. */
void lockfile_hosts(const char *name, const char *text, size_t len, char *ret);
/* The hosts in the file that name is in dirfd now; "" when there is none. */
void lockfile_read_hosts(int dirfd, const char *name, char *ret);
/* Those of `after` that are not among `before`. */
void lockfile_new_hosts(const char *before, const char *after, char *ret);
