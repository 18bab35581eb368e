/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Published ports, the host's side: listeners on 127.0.0.1 and ::1 that are given to
 * ambit-proxy, which joins each connection to the port inside.
 *
 * The relay is the proxy's and not the supervisor's because its bytes are hostile: the
 * proxy is confined, bounded and made to carry such bytes anyway; the supervisor has
 * all rights of the user and never reads any. The proxy in turn may not listen, so the
 * sockets are made here, before anything is started.
 *
 * Whoever can connect to the host's loopback, other users too, can use the port.
 */
#pragma once

#include "sandbox/plan.h"
#include "supervise/egress.h"

/* Fails when a port is in use or may not be used. */
int publish_listen(struct egress_user *u, const struct plan *plan, struct error *e) NODISCARD;
