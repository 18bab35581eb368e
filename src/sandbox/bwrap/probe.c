/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where bwrap is, and what it can do here: found by starting it, as for a command, with an
 * ambit-init that tries the steps of the native probe in the namespaces it finds itself in.
 */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "sandbox/bwrap/bwrap.h"
#include "sandbox/native/native.h"

#define UNMAPPED_UID 65534 /* in a user namespace: whoever is outside, root for one */

/* Only root can have put it there, so that it is the one that was installed. */
static bool is_trusted(const struct stat *st)
{
	return S_ISREG(st->st_mode) && (st->st_uid == 0 || st->st_uid == UNMAPPED_UID) &&
	       !(st->st_mode & (S_IWGRP | S_IWOTH)) && st->st_mode & S_IXOTH;
}

int bwrap_find(struct arena *a, const char **ret, struct error *e)
{
	/* not by PATH: a directory in it may be the project's */
	static const char *const places[] = { "/usr/bin/bwrap", "/usr/local/bin/bwrap",
					      "/bin/bwrap", "/run/current-system/sw/bin/bwrap" };

	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		struct stat st;

		if (stat(places[i], &st) < 0 || !is_trusted(&st))
			continue;
		if (st.st_mode & S_ISUID && geteuid() != 0)
			return error_set(e, ENOTSUP,
					 "%s is setuid: the namespaces that it makes belong to "
					 "root, so that nobody could guard names and connections "
					 "inside; to mend it where user namespaces are allowed: "
					 "sudo chmod u-s %s",
					 places[i], places[i]);
		*ret = arena_strdup(a, places[i]);
		return 0;
	}
	return error_set(e, ENOENT,
			 "the bwrap backend needs bubblewrap, which is not installed: %sapt-get "
			 "install bubblewrap (Debian, Ubuntu), or dnf install bubblewrap (Fedora)",
			 geteuid() == 0 ? "" : "sudo ");
}

static int probe_steps(struct arena *a, int *results, struct error *e)
{
	static const char *const words[] = {
		"--unshare-user",
		"--unshare-pid",
		"--unshare-ipc",
		"--unshare-uts",
		"--unshare-cgroup-try",
		"--unshare-net",
		"--as-pid-1",
		"--die-with-parent",
		"--cap-drop",
		"ALL",
		"--cap-add",
		"CAP_SYS_ADMIN",
		"--cap-add",
		"CAP_NET_ADMIN",
		"--cap-add",
		"CAP_NET_BIND_SERVICE",
		"--cap-add",
		"CAP_SETPCAP",
		"--ro-bind",
		"/",
		"/",
		"--perms",
		"0755",
		"--size",
		"65536",
		"--tmpfs",
		"/tmp",
		"--remount-ro",
		"/tmp",
	};
	struct bwrap_launch l = { .words = words, .n_words = ARRAY_LEN(words), .mode = "probe" };
	int init = -1, r = bwrap_find(a, &l.program, e);
	pid_t pid;

	if (r < 0)
		return r;
	for (size_t i = 0; i < ARRAY_LEN(l.fds); i++)
		l.fds[i] = -1;
	r = bwrap_run(&l, NULL, results, NATIVE_STEP_MAX_ * sizeof(*results), &pid, &init, e);
	if (r < 0)
		return r;
	/* what it may not, a helper may */
	if (results[NATIVE_STEP_USER] == EPERM && bwrap_help_try(init, results) < 0)
		r = error_set(e, EPERM,
			      "what bwrap starts may not change its own namespaces here (as with "
			      "AppArmor's profile bwrap-userns-restrict), nor may we");
	fd_close(l.ready);
	fd_close(init);
	(void)waitpid(pid, NULL, 0);
	return r;
}

int bwrap_probe(struct arena *a, struct properties *ret, struct error *e)
{
	int results[NATIVE_STEP_MAX_] = { 0 };
	struct error why = { 0 };
	struct plan_facts facts;
	int r = probe_steps(a, results, &why);

	(void)e;
	plan_gather_facts(a, NULL, &facts);
	for (size_t i = 0; r < 0 && i <= NATIVE_STEP_OTHER; i++)
		results[i] = -r;
	native_judge(a, &facts, results, r < 0 ? arena_strdup(a, why.text) : NULL, NULL, ret);
	return 0;
}
