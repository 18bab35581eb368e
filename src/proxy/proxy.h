/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The whole program's state, and what its parts call in each other.
 */
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "proxy/ask.h"
#include "proxy/config.h"
#include "proxy/conn.h"
#include "proxy/decide.h"
#include "proxy/owner.h"
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
	struct owner *owner;
	enum listener_kind kind;
	int fd;
	bool paused;
	struct host forward; /* LISTENER_FORWARD */
	char rule[32]; /* the same: the setting it comes from */
	uint16_t forward_port; /* LISTENER_FORWARD outside, LISTENER_PUBLISH inside */
};

struct wait_queue {
	struct conn *first, *last;
};

struct proxy {
	int epoll_fd;
	uint64_t now_ms; /* of this turn */
	enum ref_kind control_ref, resolver_ref;
	bool quit, has_config;
	bool lively; /* something happened to a young connection in the last turn */
	unsigned linger_pause, linger_not; /* so often not to: after the last time, still */
	struct config *config; /* never NULL: an empty one at first */
	struct own_addresses own;
	uint64_t own_until_ms;
	struct owner *owners;
	struct question *questions;
	uint32_t last_question;
	struct resolver resolver;
	struct report report;
	struct listener *listeners;
	struct conn *conns, *dead;
	struct wait_queue waiting[WAIT_MAX_];
	unsigned n_conns, max_conns;
	struct relay relay;
};

/* loop.c */
int proxy_init(struct proxy *p, struct error *e) NODISCARD;
int proxy_run(struct proxy *p, struct error *e) NODISCARD; /* until quit or the supervisor's end */
int proxy_watch(struct proxy *p, int fd, void *ref) NODISCARD;

/* control.c */
void control_event(struct proxy *p);

/* listen.c */
/* Takes *fd over when it succeeds. */
int listener_add(struct proxy *p, enum listener_kind kind, struct owner *o, int *fd,
		 struct error *e) NODISCARD;
void listener_event(struct proxy *p, struct listener *l);
void listeners_pause(struct proxy *p, struct owner *o, bool pause);
void listeners_remove(struct proxy *p, const struct owner *o);
/* A connection to `to`, not from an accept(); l is needed during the call only. Takes fd over. */
void listener_take(struct proxy *p, const struct listener *l, int fd, const struct host *to,
		   uint16_t port);
/* Judge a captured connection, and dial or wait for its hello. */
void listener_captured(struct proxy *p, struct conn *c, const struct host *host, uint16_t port);

/* publish.c */
int publish_add_seed(struct owner *o, bool listens, int fd) NODISCARD; /* takes fd over */
int publish_socket(const struct seed *seed) NODISCARD; /* a new one inside, or -errno */
bool publish_must_wait(const struct proxy *p, const struct owner *o);
void publish_accept(struct proxy *p, const struct listener *l, int fd);

/* inquiry.c */
int inquiries_open(struct proxy *p, struct owner *o, int fd) NODISCARD; /* takes fd over */
void inquiries_event(struct proxy *p, struct inquiries *q);
void inquiries_close(struct owner *o);
/* Port that a connection at the listener's own port was going to; 0 = that very port. */
uint16_t inquiries_arrived(struct owner *o, const struct host *to, uint16_t source);

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
/* What goes to c's target is HTTP that is not judged. */
void http_deny(struct proxy *p, struct conn *c, const char *reason);
void exchange_start(struct proxy *p, struct conn *c);
void exchange_step(struct proxy *p, struct conn *c);

/* dns_serve.c */
void dns_udp_event(struct proxy *p, const struct listener *l);

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
void dial_free(struct proxy *p, struct conn *c);
