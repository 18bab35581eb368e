/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What macOS holds of a policy, and what not. Never weaker in silence: with fallback: enforce the
 * first thing that is asked for and not held is an error, with warn each is a line for the user.
 */
#include <errno.h>
#include <string.h>

#include "policy/schema.h"
#include "sandbox/seatbelt/seatbelt.h"

/* The names are those of the other backends (native/probe.c). */
static const struct property rows[] = {
	{ .name = "user-namespaces", .missing = "macOS has none; the user's own ids are used" },
	{ .name = "files", .enforced = true, .mechanism = "Seatbelt profile" },
	{ .name = "attributes", .enforced = true, .mechanism = "Seatbelt profile" },
	{ .name = "hidden",
	  .enforced = true,
	  .mechanism = "Seatbelt profile",
	  .missing = "that a directory exists can be seen" },
	{ .name = "processes",
	  .missing = "other processes can be seen, not signalled; those that leave the command's "
		     "process group outlive it, confined as it was" },
	{ .name = "devices", .enforced = true, .mechanism = "Seatbelt profile, a few devices" },
	{ .name = "network",
	  .enforced = true,
	  .mechanism = "Seatbelt profile",
	  .missing = "ports of 127.0.0.1 that it listens on are the machine's" },
	{ .name = "egress",
	  .missing = "there is no proxy on macOS yet: no network, or the host's" },
	{ .name = "ipc",
	  .missing = "POSIX shared memory and semaphores are the machine's, as are some services" },
	{ .name = "landlock", .missing = "Linux only" },
	{ .name = "signal-scope", .enforced = true, .mechanism = "Seatbelt profile" },
	{ .name = "seccomp", .missing = "Linux only" },
	{ .name = "names", .enforced = true, .mechanism = "Seatbelt profile, patterns" },
};

void seatbelt_properties(struct arena *a, struct properties *ret)
{
	ret->v = arena_array(a, ARRAY_LEN(rows), sizeof(*ret->v));
	ret->n = ARRAY_LEN(rows);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		ret->v[i] = rows[i];
		ret->v[i].inherent = !rows[i].enforced;
	}
}

static int check_required(const struct policy *p, struct error *e)
{
	for (size_t i = 0; i < p->require.n; i++) {
		const char *name = p->require.v[i].text;
		const struct property *found = NULL;

		for (size_t k = 0; k < ARRAY_LEN(rows) && !found; k++)
			found = strcmp(rows[k].name, name) == 0 ? &rows[k] : NULL;
		if (!found || !found->enforced)
			return error_set(e, ENOTSUP,
					 "require: %s is not enforced here by the seatbelt "
					 "backend: %s",
					 name,
					 found ? found->missing : "it has nothing of the kind");
	}
	return 0;
}

/* What a run could not do without: there is no weaker form of it. */
static int check_possible(const struct policy *p, struct error *e)
{
	if (p->backend != BACKEND_AUTO && p->backend != BACKEND_SEATBELT)
		return error_set(e, ENOTSUP,
				 "there is no backend %s on macOS; there are seatbelt and none",
				 settings_table[setting_find("backend")].values[p->backend]);
	if (p->network.mode == NETWORK_ALLOWLIST)
		return error_set(
			e, ENOTSUP,
			"network allowlist: allowed domains need ambit-proxy, which is not "
			"ported to macOS; use --network none or --network host");
	if (p->network.publish.n > 0)
		return error_set(e, ENOTSUP,
				 "network.publish: macOS has no network of the "
				 "command's own to publish from; listen on localhost");
	return check_required(p, e);
}

int seatbelt_hold(struct arena *a, const struct policy *p, struct text_rules *ret_lost,
		  struct error *e)
{
	const struct {
		const char *name, *why;
		bool asked;
	} limits[] = {
		{ "limits.memory", "macOS has no limit that holds for several processes",
		  p->limits.memory > 0 },
		{ "limits.cpu", "macOS has no limit of this kind", p->limits.cpu > 0 },
		{ "limits.pids", "macOS counts all processes of a user", p->limits.pids > 0 },
		{ "limits.disk", "only the size of each single file is limited",
		  p->limits.disk > 0 },
		{ "limits.output", "what is printed does not pass through ambit on macOS",
		  p->limits.output > 0 },
	};
	struct text_rules lost = { 0 };
	int r = check_possible(p, e);

	if (r < 0)
		return r;
	for (size_t i = 0; i < ARRAY_LEN(limits); i++) {
		if (!limits[i].asked)
			continue;
		if (p->fallback == FALLBACK_ENFORCE)
			return error_set(e, ENOTSUP,
					 "%s cannot be held here: %s; accept it with "
					 "--fallback warn",
					 limits[i].name, limits[i].why);
		ARENA_PUSH(a, lost.v, lost.n)->text =
			arena_printf(a, "not enforced: %s: %s", limits[i].name, limits[i].why);
	}
	*ret_lost = lost;
	return 0;
}
