/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SOCKS5: greeting, perhaps a password that nobody checks, request. SOCKS4 gets
 * its own refusal, so that a client says "rejected" and not "garbage".
 */
#include <errno.h>
#include <stdio.h>

#include "base/text.h"
#include "proxy/proxy.h"
#include "proxy/socks.h"

static void answer_method(struct proxy *p, struct conn *c, enum socks_method method)
{
	const uint8_t reply[2] = { SOCKS_VERSION5, (uint8_t)method };

	buf_append(&c->side[0].out, reply, sizeof(reply));
	c->socks_asked = true;
	c->socks_password = method == SOCKS_PASSWORD;
	if (method == SOCKS_NO_METHOD) {
		conn_wait(p, c, WAIT_LINGER);
		conn_set_state(p, c, CONN_FLUSH);
	}
}

static void refuse_version4(struct proxy *p, struct conn *c)
{
	const uint8_t reply[8] = { 0, 91 }; /* request rejected */

	buf_append(&c->side[0].out, reply, sizeof(reply));
	conn_wait(p, c, WAIT_LINGER);
	conn_set_state(p, c, CONN_FLUSH);
}

static void start_request(struct proxy *p, struct conn *c, struct socks_request *q)
{
	struct verdict v;

	if (q->problem != SOCKS_OK) {
		uint8_t reply[SOCKS_REPLY_LEN];

		socks_reply(q->problem, reply);
		buf_append(&c->side[0].out, reply, sizeof(reply));
		conn_wait(p, c, WAIT_LINGER);
		conn_set_state(p, c, CONN_FLUSH);
		return;
	}
	(void)names_restore(&c->owner->names, &q->host); /* clients may have resolved it */
	judge(p, c, &q->host, q->port, &v);
	if (v.ask) {
		ask_hold(p, c, &q->host, q->port);
		return;
	}
	if (!v.allow) {
		conn_deny(p, c, q->host.name, q->port, &v);
		return;
	}
	conn_set_target(p, c, &q->host, q->port, v.rule);
	dial_start(p, c, false);
}

static void deny_malformed(struct proxy *p, struct conn *c, const struct error *e)
{
	_cleanup_buf_ struct buf shown = BUF_INIT(2048);
	const struct buf *in = &c->side[0].in;
	struct verdict v = { .rule = "network.socks" };

	(void)snprintf(v.reason, sizeof(v.reason), "%.250s", e->text);
	text_append_safe_n(&shown, in->data + 5, in->len - 5 < 200 ? in->len - 5 : 200);
	conn_deny(p, c, buf_str(&shown), 0, &v);
}

void front_socks(struct proxy *p, struct conn *c)
{
	struct buf *in = &c->side[0].in;

	/* what is behind a request that was carried out at once may belong to another front */
	while (c->state == CONN_HEAD && c->front == FRONT_SOCKS && in->len > 0) {
		const uint8_t *data = (const uint8_t *)in->data;
		enum socks_method method = SOCKS_NO_METHOD;
		struct socks_request q = { .problem = SOCKS_OK };
		struct error e = { 0 };
		int n;

		if (!c->socks_asked && data[0] == SOCKS_VERSION4) {
			refuse_version4(p, c);
			return;
		}
		if (!c->socks_asked)
			n = socks_parse_greeting(data, in->len, &method);
		else if (c->socks_password)
			n = socks_parse_password(data, in->len);
		else
			n = socks_parse_request(data, in->len, &q, &e);
		if (n == 0)
			return;
		if (n == -EINVAL) {
			deny_malformed(p, c, &e);
			return;
		}
		if (n < 0) {
			conn_close(p, c);
			return;
		}
		if (!c->socks_asked) {
			answer_method(p, c, method);
		} else if (c->socks_password) {
			c->socks_password = false;
			buf_append(&c->side[0].out, "\x01", 2); /* version 1, status 0 */
		} else {
			start_request(p, c, &q);
		}
		if (c->state != CONN_ASK) /* it will be judged again */
			buf_drop(in, (size_t)n);
	}
}
