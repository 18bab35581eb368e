/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A connection: side 0 is the client, in the sandbox, side 1 the upstream (with a published
 * port the client is on the host and the upstream inside). Bytes that go from side s
 * to the other make up flow[s].
 *
 * States, what may be touched in them, and where they lead:
 *
 *   HEAD      Side 0 is read into side[0].in until its front (HTTP, SOCKS, DNS, TLS
 *             hello) makes a whole message of it. An upstream kept from the request
 *             before may be open on side 1; it is watched for its end only.
 *             Exits: ASK, RESOLVE, DIAL, EXCHANGE (kept upstream), FLUSH, CLOSING.
 *   ASK       No rule covers the target; question is open. Input stays where it is, no fd
 *             on side 1.                              Exits: HEAD (judge again), CLOSING.
 *   RESOLVE   The name was allowed; the resolver has dial->job. No fd on side 1, side
 *             0 is not read.                       Exits: DIAL, FLUSH, CLOSING.
 *   DIAL      connect(2) under way on side 1 to an address that was vetted.
 *             dial->address[dial->next..] are left to try.
 *                                Exits: PARENT, EXCHANGE, RELAY, HEAD, FLUSH, CLOSING.
 *   PARENT    Our CONNECT went to the parent proxy; its answer is read into
 *             side[1].in.                          Exits: RELAY, HEAD, FLUSH, CLOSING.
 *   EXCHANGE  One HTTP request and its response; http is valid. flow[0] is the
 *             request's body, flow[1] the response's once its head is through.
 *                                       Exits: HEAD, RELAY (101), FLUSH, CLOSING.
 *   RELAY     A tunnel: both flows free, each ends by itself (half-close). While gate
 *             is shut, bytes of side 0 stay in side[0].in.
 *                                                 Exits: HEAD (it is HTTP), CLOSING.
 *   FLUSH     side[0].out holds our last words; then the write side is shut and what
 *             still comes is read away, so that no reset overtakes them.
 *                                                                  Exits: CLOSING.
 *   CLOSING   On the dead list; freed at the end of the loop's turn, events of this
 *             turn that still name it are ignored.
 *
 * conn_set_state() is the only writer of state; interest is a pure function of
 * the struct. Memory: an idle tunnel holds this struct and two short strings, no
 * buffers.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "proxy/ask.h"
#include "proxy/decide.h"
#include "proxy/hellos.h"
#include "proxy/http.h"
#include "proxy/resolve.h"

enum conn_state {
	CONN_HEAD,
	CONN_ASK,
	CONN_RESOLVE,
	CONN_DIAL,
	CONN_PARENT,
	CONN_EXCHANGE,
	CONN_RELAY,
	CONN_FLUSH,
	CONN_CLOSING,
};

/* Who takes the bytes of side 0 apart while in CONN_HEAD. */
enum conn_front { FRONT_HTTP, FRONT_SOCKS, FRONT_HELLO, FRONT_DNS };

/* How the client asked, for the record. */
enum conn_via {
	VIA_HTTP,
	VIA_CONNECT,
	VIA_SOCKS,
	VIA_TRANSPARENT,
	VIA_DNS,
	VIA_FORWARD,
	VIA_PUBLISH
};

/* In which words a refusal can be put at present. */
enum conn_words { WORDS_NONE, WORDS_HTTP, WORDS_SOCKS };

enum conn_gate {
	GATE_OPEN,
	GATE_SNIFF, /* should it be TLS or HTTP, the server's name must be ours */
	GATE_TLS, /* must be TLS for our name */
};

/* Each kind of waiting has one length, so that a queue per kind is in order of expiry by itself. */
enum wait {
	WAIT_NONE,
	WAIT_HEAD,
	WAIT_ASK,
	WAIT_IDLE,
	WAIT_HELLO,
	WAIT_LINE,
	WAIT_NEXT,
	WAIT_DIAL,
	WAIT_LINGER,
	WAIT_HALF,
	WAIT_MAX_
};

enum ref_kind { REF_CONTROL, REF_RESOLVER, REF_LISTENER, REF_INQUIRIES, REF_SIDE };

struct side {
	enum ref_kind ref; /* first: what epoll points to */
	uint8_t index;
	bool registered, readable, eof, shut;
	bool hung; /* has shut its side, of which only epoll knows so far */
	uint32_t armed; /* events that epoll was told */
	int fd; /* -1 = none */
	struct buf in; /* read, not yet used */
	struct buf out; /* to be written here */
};

enum flow_mode {
	FLOW_NONE,
	FLOW_FREE,
	FLOW_WATCHED, /* free, until it turns out to be HTTP after all */
	FLOW_HELLOS, /* free, until a TLS hello is not for the name of the first */
	FLOW_TO_EOF,
	FLOW_LENGTH,
	FLOW_CHUNKED,
	FLOW_DONE
};

struct flow {
	enum flow_mode mode;
	uint32_t run; /* bytes since the other direction last spoke: bulk or not */
	uint64_t left; /* FLOW_LENGTH */
	union {
		struct http_chunked chunked; /* FLOW_CHUNKED */
		struct http_sniff sniff; /* FLOW_WATCHED */
	};
	struct hellos *hellos; /* FLOW_HELLOS */
	struct relay_pipe *pipe; /* splicing at present */
	bool sealed; /* it began with a TLS record */
};

/* Valid from the decision until the upstream is there. */
struct dial {
	struct resolve_job *job; /* CONN_RESOLVE */
	struct address address[RESOLVE_ADDRESSES_MAX];
	size_t n, next;
	int error; /* errno of the last try */
	bool plain; /* HTTP: the parent takes the request itself, no CONNECT */
	uint16_t port; /* to dial: of the target, or of the parent */
};

struct http_exchange {
	size_t scanned[2]; /* of side[].in by http_head_end() */
	struct buf request; /* the head as it goes upstream, kept until the response begins */
	enum http_body body;
	uint64_t length;
	bool fixed; /* origin-form to one target: port 80 of a tunnel or captured */
	bool to_head, upgrade, client_close, old_client;
	bool upstream_close;
	bool reused; /* the upstream was kept from an earlier request */
	bool harmless; /* to be sent again when nobody knows whether it arrived */
	bool responded; /* a byte of the response has been seen */
	bool via_parent; /* what the open upstream is */
	bool outdated; /* the configuration has changed since it was opened */
};

struct conn {
	struct conn *prev, *next; /* all connections, or the dead list */
	struct owner *owner;
	struct conn *wait_prev, *wait_next;
	uint64_t deadline_ms, started_ms, born_ms;
	enum wait wait;
	enum conn_state state;
	enum conn_front front;
	enum conn_via via;
	enum conn_words words;
	enum conn_gate gate;
	bool socks_asked; /* the method is agreed, the request comes next */
	bool socks_password; /* first the password */
	bool open_record; /* allowed, and its closing record not yet written */
	bool through_parent; /* `address` is the parent proxy's */
	struct side side[2];
	struct flow flow[2];
	char *name; /* canonical host of the target; NULL = not known yet */
	char *rule; /* that allowed it */
	uint16_t port;
	struct address address; /* dialled; kind HOST_NAME = none */
	uint64_t bytes[2];
	struct dial *dial;
	struct http_exchange *http;
	struct question *question; /* CONN_ASK */
	struct grant *grant; /* what was answered for this connection; NULL = nothing */
};

struct proxy;
struct listener;

/* Takes fd over, which came from l. NULL: no room (fd is closed). */
struct conn *conn_new(struct proxy *p, const struct listener *l, int fd, enum conn_front front,
		      enum conn_via via);
void conn_set_state(struct proxy *p, struct conn *c, enum conn_state s);
void conn_wait(struct proxy *p, struct conn *c, enum wait w);
/* Go as far as possible without blocking, then tell epoll what to wait for. */
void conn_advance(struct proxy *p, struct conn *c);
void conn_event(struct proxy *p, struct side *side, uint32_t events);
void conn_expire(struct proxy *p, struct conn *c);
void conn_close(struct proxy *p, struct conn *c);
void conn_reset(struct proxy *p, struct conn *c); /* with RST to both sides */
void conn_drop_upstream(struct conn *c);
void conn_free(struct conn *c);

/* What a connection is for from now on. */
void conn_set_target(struct proxy *p, struct conn *c, const struct host *host, uint16_t port,
		     const char *rule);

enum refusal {
	REFUSE_DENIED, /* by the lists of hosts, and the like */
	REFUSE_ADDRESS, /* the host is allowed, the address it has is not */
	REFUSE_BAD, /* not understood, or ambiguous */
	REFUSE_TOO_BIG,
	REFUSE_SLOW, /* the client's message did not come in time */
	REFUSE_UNREACHABLE,
	REFUSE_TIMEOUT, /* the upstream's */
};

/* Say no in the client's protocol and close. text: one line for a person. */
void conn_refuse(struct proxy *p, struct conn *c, enum refusal why, const char *text);
/* The same for a policy decision: record, and words that name the rule and the fix. */
void conn_deny(struct proxy *p, struct conn *c, const char *host, uint16_t port,
	       const struct verdict *v);
/* host:port, an IPv6 address in brackets. */
void conn_put_endpoint(struct buf *b, const char *host, uint16_t port);
/* The closing record of what was allowed. */
void conn_record(struct proxy *p, struct conn *c, const char *reason);

const char *conn_via_name(enum conn_via via);
