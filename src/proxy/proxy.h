/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The whole program's state, and what its parts call in each other.
 */
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "proxy/config.h"
#include "proxy/conn.h"
#include "proxy/decide.h"
#include "proxy/names.h"
#include "proxy/relay.h"
#include "proxy/report.h"
#include "proxy/resolve.h"

#define PROXY_CONTROL_FD 3
#define PROXY_CONTROL_MAX 4096 /* bytes of one datagram */

enum listener_kind {
	LISTENER_HTTP,
	LISTENER_SOCKS,
	LISTENER_TRANSPARENT,
	LISTENER_DNS_UDP,
	LISTENER_DNS_TCP,
	LISTENER_FORWARD,
	LISTENER_PUBLISH, /* on the host */
};

struct listener {
	enum ref_kind ref; /* first */
	struct listener *next;
	enum listener_kind kind;
	int fd;
	bool paused;
	struct host forward; /* LISTENER_FORWARD */
	uint16_t forward_port; /* LISTENER_FORWARD outside, LISTENER_PUBLISH inside */
};

/* Sockets of the sandbox from which more are made (publish.c); -1 = none. */
struct seed {
	int fd, listener;
};

struct wait_queue {
	struct conn *first, *last;
};

struct proxy {
	int epoll_fd;
	uint64_t now_ms; /* of this turn */
	enum ref_kind control_ref, resolver_ref;
	bool quit, has_config;
	struct config *config; /* never NULL: an empty one at first */
	struct own_addresses own;
	uint64_t own_until_ms;
	struct names names;
	struct resolver resolver;
	struct report report;
	struct listener *listeners;
	struct conn *conns, *dead;
	struct wait_queue waiting[WAIT_MAX_];
	unsigned n_conns, max_conns;
	unsigned n_published; /* of them, those that came from the host */
	struct seed seeds[2]; /* IPv4, IPv6 */
	bool paused; /* listeners are not polled: no room for another connection */
	struct relay relay;
};

/* loop.c */
int proxy_init(struct proxy *p, struct error *e) NODISCARD;
int proxy_run(struct proxy *p, struct error *e) NODISCARD; /* until quit or the supervisor's end */
int proxy_watch(struct proxy *p, int fd, void *ref) NODISCARD;

/* control.c */
void control_event(struct proxy *p);

/* listen.c */
int listener_add(struct proxy *p, enum listener_kind kind, int fd, struct error *e) NODISCARD;
void listener_event(struct proxy *p, struct listener *l);
void listeners_pause(struct proxy *p, bool pause);

/* publish.c */
int publish_add_seed(struct proxy *p, bool listens, int fd) NODISCARD; /* takes fd over */
int publish_socket(const struct seed *seed) NODISCARD; /* a new one inside, or -errno */
bool publish_must_wait(const struct proxy *p);
void publish_accept(struct proxy *p, const struct listener *l, int fd);

/* own.c */
const struct own_addresses *own_addresses(struct proxy *p);

/* The fronts: called in CONN_HEAD with what side 0 has sent so far. */
void front_http(struct proxy *p, struct conn *c);
void front_socks(struct proxy *p, struct conn *c);
void front_hello(struct proxy *p, struct conn *c);
void front_dns(struct proxy *p, struct conn *c);

/* front_http.c, exchange.c */
void http_attach(struct conn *c); /* it speaks HTTP to us from now on */
void http_detach(struct conn *c); /* it is a tunnel */
void http_make_fixed(struct conn *c); /* the same, all requests being for c's target */
void exchange_start(struct proxy *p, struct conn *c);
void exchange_step(struct proxy *p, struct conn *c);

/* dns_serve.c */
void dns_udp_event(struct proxy *p, int fd);

/* tunnel.c */
enum conn_gate tunnel_gate(const struct proxy *p, const struct conn *c);
void tunnel_open(struct proxy *p, struct conn *c); /* the upstream is there */
void tunnel_step(struct proxy *p, struct conn *c);

/* dial.c: connect to the target; ends in tunnel_open(), exchange_start() or a refusal */
void dial_start(struct proxy *p, struct conn *c, bool plain_http);
void dial_direct(struct proxy *p, struct conn *c, const struct host *addresses, size_t n,
		 uint16_t port);
void dial_resolved(struct proxy *p, const struct resolve_job *job);
void dial_event(struct proxy *p, struct conn *c);
void dial_expired(struct proxy *p, struct conn *c);
void dial_parent_step(struct proxy *p, struct conn *c);
void dial_free(struct conn *c);
