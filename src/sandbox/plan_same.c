/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Would two plans make the same sandbox? For one that was made before its command was known: what
 * differs then is where the command starts and with which environment, which it is told last.
 * Whatever is added to struct plan belongs here, too.
 */
#include <string.h>

#include "sandbox/plan.h"

static bool same_text(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

static bool same_list(const char *const *a, size_t n, const char *const *b, size_t m)
{
	if (n != m)
		return false;
	for (size_t i = 0; i < n; i++) {
		if (strcmp(a[i], b[i]) != 0)
			return false;
	}
	return true;
}

static bool same_texts(const struct text_rules *a, const struct text_rules *b)
{
	if (!a || !b || a->n != b->n)
		return a == b;
	for (size_t i = 0; i < a->n; i++) {
		if (strcmp(a->v[i].text, b->v[i].text) != 0)
			return false;
	}
	return true;
}

static bool same_step(const struct mount_step *a, const struct mount_step *b)
{
	return a->kind == b->kind && a->directory == b->directory && a->direct == b->direct &&
	       a->closed == b->closed && a->make_point == b->make_point && a->mode == b->mode &&
	       a->dev == b->dev && a->ino == b->ino && strcmp(a->path, b->path) == 0 &&
	       same_text(a->text, b->text);
}

static bool same_held(const struct plan *a, const struct plan *b)
{
	if (a->n_held != b->n_held)
		return false;
	for (size_t i = 0; i < a->n_held; i++) {
		if (strcmp(a->held[i].path, b->held[i].path) != 0)
			return false;
	}
	return true;
}

static bool same_mounts(const struct plan *a, const struct plan *b)
{
	if (a->n_mounts != b->n_mounts)
		return false;
	for (size_t i = 0; i < a->n_mounts; i++) {
		if (!same_step(&a->mounts[i], &b->mounts[i]))
			return false;
	}
	return same_list(a->writable, a->n_writable, b->writable, b->n_writable) &&
	       same_list(a->guarded, a->n_guarded, b->guarded, b->n_guarded) &&
	       same_list(a->relayed, a->n_relayed, b->relayed, b->n_relayed) &&
	       same_list(a->bulk, a->n_bulk, b->bulk, b->n_bulk) && a->direct == b->direct &&
	       same_held(a, b);
}

static bool same_network(const struct plan *a, const struct plan *b)
{
	if (a->n_host_ports != b->n_host_ports || a->n_publish != b->n_publish)
		return false;
	for (size_t i = 0; i < a->n_host_ports; i++) {
		if (a->host_ports[i] != b->host_ports[i])
			return false;
	}
	for (size_t i = 0; i < a->n_publish; i++) {
		if (a->publish[i].host != b->publish[i].host ||
		    a->publish[i].inside != b->publish[i].inside)
			return false;
	}
	return a->new_net == b->new_net && a->egress == b->egress && a->loopback == b->loopback &&
	       a->http_proxy == b->http_proxy && a->socks_proxy == b->socks_proxy &&
	       a->all_unix == b->all_unix && a->no_listen == b->no_listen &&
	       same_texts(a->unix_sockets, b->unix_sockets);
}

bool plan_same_sandbox(const struct plan *a, const struct plan *b)
{
	/* the others have more that would have to be compared */
	return a->backend == BACKEND_NATIVE && b->backend == BACKEND_NATIVE && a->uid == b->uid &&
	       a->gid == b->gid && a->landlock_abi == b->landlock_abi &&
	       a->landlock == b->landlock && a->cut_unguarded == b->cut_unguarded &&
	       a->wait_killable == b->wait_killable && a->broker == b->broker &&
	       a->outer_proc == b->outer_proc && a->watch == b->watch &&
	       same_text(a->tty, b->tty) && a->scratch_size == b->scratch_size &&
	       a->root_writable == b->root_writable && same_network(a, b) && same_mounts(a, b);
}
