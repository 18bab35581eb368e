/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tunnels, and the gate in front of them: a client that was allowed to talk to
 * one name must not ask the server behind it for another (domain fronting, N4).
 * Until the TLS ClientHello has been read whole and names the target, no byte
 * of the client goes upstream, and hellos that may follow must be like it (hellos.c). An
 * address target has no name to compare: a rule for an address allows whatever is behind it.
 *
 * HTTP without TLS, on whichever port, is judged request by request like that on port
 * 80. Any other protocol must not be kept waiting for a line that never ends, so the first
 * bytes of a word alone go on, and so do lines of some words without a version; should they
 * prove to have been a request's, it is cut off before its Host field is through
 * (http_sniff.c). Where the server speaks first it is not HTTP/1. HTTP/2 without TLS is not taken apart: there, too, each request says
 * whom it is for, so it is refused.
 *
 * An encrypted ClientHello is not refused as such (network.allowECH): clients send the
 * extension as grease, and what it can hide is no more than what the Host header inside TLS
 * hides anyway. The outer name must be right.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "proxy/proxy.h"
#include "proxy/sni.h"
#include "proxy/socks.h"

#define PORT_HTTP 80

static bool is_tls_port(uint16_t port)
{
	static const uint16_t ports[] = {
		443,  465,  563,  636,  853,  989,  990,  992,  993,  994,  995,
		2376, 4443, 5061, 5223, 5671, 6443, 6697, 8443, 8883, 9443, 10443,
	};

	for (size_t i = 0; i < ARRAY_LEN(ports); i++) {
		if (ports[i] == port)
			return true;
	}
	return false;
}

static bool is_address(const char *name)
{
	struct host host;

	return host_parse(name, strlen(name), &host, NULL) == 0 && host.kind != HOST_NAME;
}

static bool has_name(const struct conn *c)
{
	return c->via != VIA_FORWARD && c->via != VIA_PUBLISH && !is_address(c->name);
}

enum conn_gate tunnel_gate(const struct proxy *p UNUSED, const struct conn *c)
{
	if (!has_name(c))
		return GATE_OPEN;
	return is_tls_port(c->port) ? GATE_TLS : GATE_SNIFF;
}

static void deny_hello(struct proxy *p, struct conn *c, enum sni_result result,
		       const struct sni *sni)
{
	struct verdict v = { .allow = false };
	bool wrong = result == SNI_NAME && strcmp(sni->host.name, c->name) != 0;
	bool broken = result == SNI_BAD || result == SNI_MORE; /* no setting lets it through */
	bool hidden = !wrong && !broken && sni->ech && !p->config->allow_ech;

	(void)snprintf(v.rule, sizeof(v.rule), "%s",
		       wrong || broken ? "network.sni"
		       : hidden        ? "network.allowECH"
				       : "network.requireSNI");
	if (hidden)
		(void)snprintf(v.reason, sizeof(v.reason),
			       "a part of the TLS ClientHello is encrypted");
	else
		(void)snprintf(v.reason, sizeof(v.reason), "%s%s%s", sni_result_text(result),
			       wrong ? ": " : "", wrong ? sni->host.name : "");
	c->open_record = false;
	conn_deny(p, c, c->name, c->port, &v);
}

enum passage { PASS_DENIED, PASS_WAIT, PASS_WAIT_LINE, PASS_OPEN, PASS_TLS, PASS_HTTP };

/* It is not TLS, and may be something else. */
static enum passage gate_plain(const struct conn *c, bool last)
{
	const struct buf *in = &c->side[0].in;
	struct http_sniff sniff = { .server_first = c->bytes[1] > 0 };

	switch (http_sniff_feed(&sniff, in->data, in->len)) {
	case HTTP_SNIFF_YES:
		return PASS_HTTP;
	case HTTP_SNIFF_LINE:
		return last || sniff.server_first || sniff.odd ? PASS_OPEN : PASS_WAIT_LINE;
	case HTTP_SNIFF_NOTHING:
	case HTTP_SNIFF_WORD:
	case HTTP_SNIFF_FIELDS:
	case HTTP_SNIFF_NO:
		break;
	}
	return PASS_OPEN;
}

static enum passage gate_check(struct proxy *p, struct conn *c, bool expired)
{
	const struct side *client = &c->side[0];
	enum sni_result r = SNI_MORE;
	struct sni sni = { .ech = false };
	bool strict = c->gate == GATE_TLS && p->config->require_sni;
	bool last = expired || client->eof || client->in.len >= SNI_HELLO_MAX;

	if (client->in.len == 0 && client->eof)
		return PASS_OPEN; /* nothing was said, nothing can be wrong with it */
	if (client->in.len > 0)
		r = sni_parse((const uint8_t *)client->in.data, client->in.len, &sni);
	if (r == SNI_MORE && !last)
		return PASS_WAIT;
	if (r == SNI_NOT_TLS && !strict)
		return gate_plain(c, last);
	if ((r == SNI_NAME ? strcmp(sni.host.name, c->name) == 0 : r == SNI_NONE && !strict) &&
	    (!sni.ech || p->config->allow_ech))
		return PASS_TLS;
	/* a hello for another name, or one that cannot be read, is wrong on any port */
	deny_hello(p, c, r, &sni);
	return PASS_DENIED;
}

/* What comes is HTTP, to be judged request by request like any other. */
static void begin_http(struct proxy *p, struct conn *c)
{
	c->open_record = false;
	c->gate = GATE_OPEN;
	c->flow[0].mode = c->flow[1].mode = FLOW_NONE;
	http_make_fixed(c);
	conn_wait(p, c, WAIT_IDLE);
	conn_set_state(p, c, CONN_HEAD);
}

/* It begins with a hello that is fine. */
static void begin_tls(struct conn *c)
{
	c->gate = GATE_OPEN;
	hellos_free(c->flow[0].hellos);
	c->flow[0] = (struct flow){ .mode = FLOW_HELLOS, .hellos = hellos_new() };
}

void front_hello(struct proxy *p, struct conn *c)
{
	bool waited = c->wait == WAIT_HELLO || c->wait == WAIT_LINE;

	switch (gate_check(p, c, waited && c->deadline_ms <= p->now_ms)) {
	case PASS_OPEN:
		c->gate = GATE_OPEN;
		dial_start(p, c, false);
		break;
	case PASS_TLS:
		begin_tls(c);
		dial_start(p, c, false);
		break;
	case PASS_HTTP:
		begin_http(p, c);
		front_http(p, c);
		break;
	case PASS_WAIT:
		if (c->wait != WAIT_HELLO)
			conn_wait(p, c, WAIT_HELLO);
		break;
	case PASS_WAIT_LINE:
		if (c->wait != WAIT_LINE)
			conn_wait(p, c, WAIT_LINE);
		break;
	case PASS_DENIED:
		break;
	}
}

/* The client's side of a tunnel is told that it stands. */
static void announce(struct conn *c)
{
	uint8_t reply[SOCKS_REPLY_LEN];

	if (c->words == WORDS_HTTP) {
		buf_puts(&c->side[0].out, "HTTP/1.1 200 Connection established\r\n\r\n");
	} else if (c->words == WORDS_SOCKS) {
		socks_reply(SOCKS_OK, reply);
		buf_append(&c->side[0].out, reply, sizeof(reply));
	}
}

void tunnel_open(struct proxy *p, struct conn *c)
{
	bool passed = c->front == FRONT_HELLO && c->gate == GATE_OPEN;

	announce(c);
	dial_free(p, c);
	if (c->port == PORT_HTTP && c->words != WORDS_NONE) {
		begin_http(p, c);
		return;
	}
	http_detach(c);
	if (!passed)
		c->gate = tunnel_gate(p, c);
	if (c->flow[0].mode != FLOW_HELLOS)
		c->flow[0] = (struct flow){ .mode = has_name(c) ? FLOW_WATCHED : FLOW_FREE };
	c->flow[1].mode = FLOW_FREE;
	conn_wait(p, c, c->gate == GATE_TLS ? WAIT_IDLE : WAIT_NONE);
	conn_set_state(p, c, CONN_RELAY);
}

/* False: the connection is closed or was denied. */
static bool pass_gate(struct proxy *p, struct conn *c)
{
	bool expired = c->wait != WAIT_NONE && c->deadline_ms <= p->now_ms;

	if (relay_fill(&p->relay, &c->side[0], SNI_HELLO_MAX) < 0) {
		conn_reset(p, c);
		return false;
	}
	if (expired && c->side[0].in.len == 0) {
		conn_close(p, c);
		return false;
	}
	switch (gate_check(p, c, expired)) {
	case PASS_OPEN:
		c->gate = GATE_OPEN;
		c->flow[0].sniff.server_first = c->bytes[1] > 0;
		conn_wait(p, c, WAIT_NONE);
		return true;
	case PASS_TLS:
		begin_tls(c);
		conn_wait(p, c, WAIT_NONE);
		return true;
	case PASS_WAIT:
		if (c->side[0].in.len > 0 && c->wait != WAIT_HELLO)
			conn_wait(p, c, WAIT_HELLO);
		return true;
	case PASS_WAIT_LINE:
		if (c->wait != WAIT_LINE)
			conn_wait(p, c, WAIT_LINE);
		return true;
	case PASS_HTTP:
		begin_http(p, c);
		return false;
	case PASS_DENIED:
		break;
	}
	return false;
}

static void deny_second_hello(struct proxy *p, struct conn *c)
{
	const struct hellos *h = c->flow[0].hellos;
	bool named = h->result == SNI_NAME;
	struct verdict v = { .rule = "network.sni" };

	(void)snprintf(v.reason, sizeof(v.reason),
		       "a second TLS ClientHello does not ask for what the first did%s%s",
		       named ? ": " : "", named ? h->sni.host.name : "");
	c->open_record = false;
	conn_deny(p, c, c->name, c->port, &v);
}

/* What is watched must not go on. */
static void deny_watched(struct proxy *p, struct conn *c)
{
	if (c->flow[0].mode == FLOW_HELLOS)
		deny_second_hello(p, c);
	else /* some of it is through, but not to whom it is: that is not found out any more */
		http_deny(p, c,
			  "a request that comes in pieces, or without a version, cannot be judged");
}

void tunnel_step(struct proxy *p, struct conn *c)
{
	uint64_t before = c->bytes[0] + c->bytes[1];
	bool done[2];
	int r = 0;

	if (c->gate != GATE_OPEN && !pass_gate(p, c))
		return;
	if (c->gate == GATE_OPEN)
		r = relay_pump(&p->relay, c, 0);
	if (r == 0)
		r = relay_pump(&p->relay, c, 1);
	done[0] = relay_finished(c, 0);
	done[1] = relay_finished(c, 1);
	if (r == -EILSEQ) {
		deny_watched(p, c);
	} else if (r < 0) {
		conn_reset(p, c);
	} else if (done[0] && done[1]) {
		conn_close(p, c);
	} else if (c->wait == WAIT_HALF && c->deadline_ms <= p->now_ms) {
		conn_close(p, c);
	} else if ((done[0] || done[1]) &&
		   (c->wait != WAIT_HALF || c->bytes[0] + c->bytes[1] != before)) {
		conn_wait(p, c, WAIT_HALF);
	}
}
