/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a "no" is put: in the protocol that the client speaks at present, with
 * the rule that decided and what would change it. A person or an agent reads
 * this text where the program shows it.
 */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "proxy/proxy.h"
#include "proxy/socks.h"

#define PHRASE_MAX 500

/* The words that clients of sandbox-runtime look for come first. */
static const struct {
	const char *status;
	enum socks_status socks;
	const char *error; /* X-Proxy-Error */
	const char *known; /* first line of the body */
} answers[] = {
	[REFUSE_DENIED] = { .status = "403 Forbidden",
			    .socks = SOCKS_NOT_ALLOWED,
			    .error = "blocked-by-allowlist",
			    .known = "Connection blocked by network allowlist\n" },
	[REFUSE_ADDRESS] = { .status = "403 Forbidden",
			     .socks = SOCKS_NOT_ALLOWED,
			     .error = "blocked-by-sandbox-runtime" },
	[REFUSE_BAD] = { .status = "400 Bad Request", .socks = SOCKS_FAILURE },
	[REFUSE_TOO_BIG] = { .status = "431 Request Header Fields Too Large",
			     .socks = SOCKS_FAILURE },
	[REFUSE_SLOW] = { .status = "408 Request Timeout", .socks = SOCKS_FAILURE },
	[REFUSE_UNREACHABLE] = { .status = "502 Bad Gateway", .socks = SOCKS_HOST_UNREACHABLE },
	[REFUSE_TIMEOUT] = { .status = "504 Gateway Timeout", .socks = SOCKS_TIMED_OUT },
};

/* Of a failed CONNECT, clients show the status line and nothing else. */
static void say_status(struct buf *out, const struct conn *c, enum refusal why, const char *text)
{
	buf_puts(out, "HTTP/1.1 ");
	if (!answers[why].error || c->via != VIA_CONNECT) {
		buf_puts(out, answers[why].status);
		return;
	}
	buf_puts(out, "403 ");
	for (size_t i = 0; i < PHRASE_MAX && text[i] && text[i] != '\n'; i++)
		buf_putc(out, text[i] >= ' ' && text[i] < 0x7f ? text[i] : '?');
}

static void say_http(struct conn *c, enum refusal why, const char *text)
{
	struct buf *out = &c->side[0].out;
	const char *known = answers[why].known ? answers[why].known : "";

	say_status(out, c, why, text);
	buf_puts(out, "\r\nContent-Type: text/plain; charset=utf-8\r\n");
	buf_printf(out, "Content-Length: %zu\r\nConnection: close\r\n",
		   strlen(known) + strlen(text) + strlen("ambit: \n"));
	if (answers[why].error)
		buf_printf(out, "X-Proxy-Error: %s\r\n", answers[why].error);
	buf_puts(out, "\r\n");
	if (!c->http || !c->http->to_head)
		buf_printf(out, "%sambit: %s\n", known, text);
}

void conn_refuse(struct proxy *p, struct conn *c, enum refusal why, const char *text)
{
	uint8_t reply[SOCKS_REPLY_LEN];

	if (!answers[why].error)
		conn_record(p, c, text);
	c->open_record = false;
	conn_drop_upstream(c);
	for (unsigned s = 0; s < 2; s++) {
		relay_release(&p->relay, &c->flow[s]);
		c->flow[s].mode = FLOW_NONE;
	}
	/* in the middle of a response, more words would be taken for a part of it */
	if (c->words == WORDS_NONE || (c->http && c->http->responded)) {
		conn_reset(p, c);
		return;
	}
	dial_free(p, c);
	if (c->words == WORDS_HTTP) {
		say_http(c, why, text);
	} else {
		socks_reply(answers[why].socks, reply);
		buf_append(&c->side[0].out, reply, sizeof(reply));
	}
	conn_wait(p, c, WAIT_LINGER);
	conn_set_state(p, c, CONN_FLUSH);
}

void conn_put_endpoint(struct buf *b, const char *host, uint16_t port)
{
	buf_printf(b, strchr(host, ':') ? "[%s]:%u" : "%s:%u", host, port);
}

/* What the user can do about it. */
static void append_hint(struct buf *b, const char *host, uint16_t port, const struct verdict *v)
{
	if (strcmp(v->rule, "network.allowedDomains") == 0) {
		buf_puts(b, "\nallow it with: --allow-domain ");
		conn_put_endpoint(b, host, port);
	} else if (strcmp(v->rule, "network.allowPrivateAddresses") == 0) {
		buf_puts(b, "\nallow it with: --set network.allowPrivateAddresses=true, or allow "
			    "the address itself with --allow-domain");
	} else if (text_starts(v->rule, "network.requireSNI")) {
		buf_puts(b, "\nallow it with: --set network.requireSNI=false");
	} else if (text_starts(v->rule, "network.allowECH")) {
		buf_puts(b, "\nallow it with: --set network.allowECH=true");
	} else if (text_starts(v->rule, "denied") || text_starts(v->rule, "network.denied")) {
		buf_puts(b, "\na deny rule wins over every allow rule: take it out to allow this");
	}
}

void conn_deny(struct proxy *p, struct conn *c, const char *host, uint16_t port,
	       const struct verdict *v)
{
	_cleanup_buf_ struct buf text = BUF_INIT(4096);

	report_connect(&p->report, &(struct record){
					   .owner = c->owner->id,
					   .host = host,
					   .port = port,
					   .via = conn_via_name(c->via),
					   .rule = v->rule,
					   .reason = v->reason,
					   .ms = p->now_ms - c->started_ms,
				   });
	buf_puts(&text, "connection to ");
	conn_put_endpoint(&text, host, port);
	buf_printf(&text, " denied: %s (%s)", v->reason, v->rule);
	append_hint(&text, host, port, v);
	conn_refuse(p, c, v->address ? REFUSE_ADDRESS : REFUSE_DENIED, buf_str(&text));
}
