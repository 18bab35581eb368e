/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers the broker, see inquiry.h. The broker is ours, but what it asks about is chosen by the
 * command: any address, any port, any process name.
 */
#include "proxy/inquiry.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/text.h"
#include "proxy/proxy.h"

#define BATCH 64
#define PORT_DNS 53
#define PORT_HTTP 80
#define EXPECTED_MAX 1024 /* connections that were asked about and have not arrived */

/* One that will arrive at the listener's own port, and where it was going. */
struct expected {
	struct host to;
	uint16_t source, port; /* source 0 = free */
};

struct inquiries {
	enum ref_kind ref; /* first */
	struct owner *owner;
	int fd;
	size_t next; /* of expected: the oldest, to be written over */
	struct expected expected[EXPECTED_MAX];
};

int inquiries_open(struct proxy *p, struct owner *o, int fd)
{
	struct inquiries *q = calloc(1, sizeof(*q));
	int r;

	if (!q)
		abort();
	*q = (struct inquiries){ .ref = REF_INQUIRIES, .owner = o, .fd = fd };
	r = o->inquiries ? -EEXIST : proxy_watch(p, fd, q);
	if (r < 0) {
		free(q);
		return r;
	}
	o->inquiries = q;
	return 0;
}

void inquiries_close(struct owner *o)
{
	if (!o->inquiries)
		return;
	fd_close(o->inquiries->fd);
	free(o->inquiries);
	o->inquiries = NULL;
}

static void expect(struct inquiries *q, const struct host *to, const struct inquiry *asked)
{
	q->expected[q->next] = (struct expected){ *to, asked->source, asked->port };
	q->next = (q->next + 1) % EXPECTED_MAX;
}

uint16_t inquiries_arrived(struct owner *o, const struct host *to, uint16_t source)
{
	struct inquiries *q = o->inquiries;

	for (size_t i = 1; q && i <= EXPECTED_MAX; i++) {
		struct expected *x = &q->expected[(q->next + EXPECTED_MAX - i) % EXPECTED_MAX];

		if (x->source != source || x->to.kind != to->kind ||
		    memcmp(x->to.addr, to->addr, sizeof(to->addr)) != 0)
			continue;
		x->source = 0;
		return x->port;
	}
	return 0;
}

/* decide_host(), and what was answered; what can be asked about is held when it arrives. */
static void judge_host(const struct proxy *p, const struct owner *o, const struct host *host,
		       uint16_t port, struct verdict *v)
{
	const struct answer *answer;

	decide_host(p->config, host, port, v);
	if (v->allow || !v->ask)
		return;
	answer = owner_answer(o, host->name, port);
	v->allow = answer ? answer->allow : p->config->ask_ms > 0;
}

/* The same road that the connection will take when it arrives. */
static int judge_address(struct proxy *p, const struct owner *o, const struct host *address,
			 uint16_t port, struct host *ret, struct verdict *v)
{
	bool synthetic = names_is_synthetic(&o->names, address), named;

	*ret = *address;
	named = names_restore(&o->names, ret);
	if (port == PORT_DNS && !synthetic)
		return 0;
	if (!named && synthetic) {
		*v = (struct verdict){ .rule = "network.allowedDomains",
				       .reason = "no name belongs to this address" };
		return ENETUNREACH;
	}
	judge_host(p, o, ret, port, v);
	if (v->allow && !v->ask && !named &&
	    !decide_parent(p->config, ret, port, port == PORT_HTTP))
		decide_address(p->config, own_addresses(p), ret, ret, port, v);
	return v->allow ? 0 : EACCES;
}

static void answer(struct proxy *p, struct inquiries *q, struct inquiry *asked)
{
	struct inquiry_answer a = { .id = asked->id };
	struct verdict v = { .allow = true };
	struct host address, host;

	asked->process[sizeof(asked->process) - 1] = '\0';
	host_from_addr(asked->v6 ? HOST_IPV6 : HOST_IPV4, asked->address, &address);
	a.error = judge_address(p, q->owner, &address, asked->port, &host, &v);
	if (a.error)
		report_connect(&p->report, &(struct record){
						   .owner = q->owner->id,
						   .host = host.name,
						   .port = asked->port,
						   .via = conn_via_name(VIA_TRANSPARENT),
						   .rule = v.rule,
						   .reason = v.reason,
						   .process = asked->process,
						   .pid = asked->pid,
					   });
	else if (asked->source)
		expect(q, &address, asked);
	(void)!send(q->fd, &a, sizeof(a), MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* A connection that the broker made with a program inside. Takes fd over. */
static void arrive(struct proxy *p, const struct inquiries *q, const struct inquiry *how, int fd)
{
	static const uint8_t loopback[4] = { 127, 0, 0, 1 };
	static const struct {
		enum listener_kind kind;
		const char *rule;
	} kinds[INQUIRY_KIND_MAX_] = {
		[INQUIRY_CAPTURED] = { LISTENER_TRANSPARENT, "" },
		[INQUIRY_HTTP] = { LISTENER_HTTP, "" },
		[INQUIRY_SOCKS] = { LISTENER_SOCKS, "" },
		[INQUIRY_HOST_PORT] = { LISTENER_FORWARD, "network.allowHostPorts" },
		[INQUIRY_HTTP_PROXY] = { LISTENER_FORWARD, "network.httpProxyPort" },
		[INQUIRY_SOCKS_PROXY] = { LISTENER_FORWARD, "network.socksProxyPort" },
	};
	struct listener l = { .owner = q->owner, .fd = -1, .forward_port = how->port };
	struct host to;

	if (how->kind == INQUIRY_QUESTION || how->kind >= INQUIRY_KIND_MAX_ ||
	    !owner_has_room(p, q->owner)) {
		fd_close(fd);
		return;
	}
	l.kind = kinds[how->kind].kind;
	text_copy(l.rule, sizeof(l.rule), kinds[how->kind].rule);
	host_from_addr(HOST_IPV4, loopback, &l.forward);
	host_from_addr(how->v6 ? HOST_IPV6 : HOST_IPV4, how->address, &to);
	q->owner->busy = true;
	listener_take(p, &l, fd, &to, how->port);
}

void inquiries_event(struct proxy *p, struct inquiries *q)
{
	struct inquiry asked;

	for (int i = 0; i < BATCH; i++) {
		int fd = -1;
		ssize_t n = fd_receive(q->fd, &asked, sizeof(asked), &fd);

		if (n == sizeof(asked) && fd >= 0) {
			arrive(p, q, &asked, fd);
			continue;
		}
		fd_close(fd);
		if (n == sizeof(asked) && asked.kind == INQUIRY_QUESTION) {
			answer(p, q, &asked);
			continue;
		}
		if (n == 0 || (n < 0 && n != -EAGAIN && n != -EINTR))
			inquiries_close(q->owner); /* the broker is gone */
		return;
	}
}
