/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process that confines itself. There is nobody else: no broker answers calls, no init cleans up.
 * What the broker would have judged is refused by the filter where a filter can tell
 * (sockets), and is not held where it cannot (attributes of files, names).
 */
#include <errno.h>
#include <string.h>

#include "sandbox/landlock/landlock.h"
#include "sandbox/native/native.h"
#include "sandbox/native/seccomp.h"

int landlock_apply_self(const struct plan *plan, struct error *e)
{
	struct seccomp_options options = SECCOMP_OPTIONS_DEFAULT;
	struct sock_filter filter[SECCOMP_FILTER_MAX];
	int n, r;

	options.bare = options.alone = true;
	options.no_network = plan->new_net;
	options.no_unix = !plan->all_unix;
	/* everything that can fail for want of something is done first */
	n = seccomp_build(seccomp_native_arch(), &options, filter, SECCOMP_FILTER_MAX, e);
	if (n < 0)
		return n;
	r = native_drop_privileges(plan, e);
	if (r == 0)
		r = landlock_enter_command(plan, e);
	if (r < 0)
		return r;
	r = seccomp_load(filter, (size_t)n, 0);
	return r < 0 ? error_set(e, -r, "cannot load the system call filter: %s", strerror(-r)) : 0;
}
