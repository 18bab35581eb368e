/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ambit-proxy: everything that leaves a sandbox goes through this program. It is
 * started by the supervisor with the control socket as fd 3, confines itself
 * before it is given anything to listen on, and ends with the supervisor.
 */
#include <malloc.h>
#include <signal.h>
#include <stdlib.h>

#include "base/log.h"
#include "proxy/confine.h"
#include "proxy/proxy.h"

int main(void)
{
	struct confinement confinement;
	struct error e = { 0 };
	struct proxy p;

	(void)signal(SIGPIPE, SIG_IGN); /* splice() to a closed socket */
	(void)mallopt(M_ARENA_MAX, 1); /* resolver threads need no heap of their own */
	if (confine_inherited(&e) < 0 || proxy_init(&p, &e) < 0 || confine(&confinement, &e) < 0) {
		log_error("proxy: %s", e.text);
		return 1;
	}
	for (size_t i = 0; i < confinement.n_missing; i++)
		report_text(&p.report, "warning", confinement.missing[i]);
	if (proxy_run(&p, &e) < 0) {
		log_error("proxy: %s", e.text);
		return 1;
	}
	return 0;
}
