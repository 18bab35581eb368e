/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sandbox's resolver, over UDP and TCP, on whatever address it was asked at
 * (a hard-coded 8.8.8.8 gets the same answers). It answers from the policy alone
 * and asks nobody: an allowed name has its synthetic address, every other name
 * does not exist.
 */
#include <errno.h>
#include <string.h>

#include "proxy/dns.h"
#include "proxy/proxy.h"

#define UDP_BATCH 64 /* messages per turn of the loop */

static void answer_reverse(const struct owner *o, const struct dns_query *q, struct dns_answer *ret)
{
	if (q->reverse.kind != HOST_NAME)
		ret->name = names_find(&o->names, &q->reverse);
	if (!ret->name)
		ret->rcode = DNS_NXDOMAIN;
}

/* A name that no rule covers, where somebody can be asked: the connection will bring it up. */
static bool is_answered(const struct proxy *p, const struct dns_query *q, struct verdict *v)
{
	return q->host.kind == HOST_NAME &&
	       (decide_name(p->config, &q->host, v) || (v->ask && p->config->ask_ms));
}

static void answer_name(struct proxy *p, struct owner *o, const struct dns_query *q,
			uint8_t address[16], struct dns_answer *ret)
{
	static const uint8_t loopback4[4] = { 127, 0, 0, 1 }, loopback6[16] = { [15] = 1 };
	bool known = q->type == DNS_A || q->type == DNS_AAAA;
	struct verdict v;
	uint32_t number;

	if (decide_is_localhost(&q->host)) {
		if (known)
			ret->address = q->type == DNS_A ? loopback4 : loopback6;
		return;
	}
	if (!is_answered(p, q, &v)) {
		ret->rcode = DNS_NXDOMAIN;
		if (q->host.kind == HOST_NAME)
			report_name(&p->report,
				    &(struct record){ .owner = o->id,
						      .host = q->host.name,
						      .via = "dns",
						      .rule = v.rule,
						      .reason = v.reason },
				    p->now_ms);
		return;
	}
	if (!known)
		return; /* the name exists; it has no keys, hints or texts */
	number = names_number(&o->names, q->host.name);
	if (q->type == DNS_A)
		names_address4(&o->names, number, address);
	else
		names_address6(&o->names, number, address);
	ret->address = address;
}

/* Length of the reply, 0 = none is due. */
static size_t answer(struct proxy *p, struct owner *o, const uint8_t *data, size_t len,
		     uint8_t ret[DNS_REPLY_MAX])
{
	struct dns_answer a = { .rcode = DNS_NOERROR };
	uint8_t address[16];
	struct dns_query q;
	int r = dns_parse(data, len, &q);

	if (r == -EINVAL)
		return 0;
	if (r < 0)
		a.rcode = r == -EOPNOTSUPP ? DNS_NOTIMP : DNS_FORMERR;
	else if (!q.has_host)
		a.rcode = DNS_NXDOMAIN;
	else if (q.type == DNS_PTR)
		answer_reverse(o, &q, &a);
	else
		answer_name(p, o, &q, address, &a);
	return dns_reply(&q, data, &a, ret);
}

/* The address that was asked, to answer from it: turned around in place. */
static void reply_from(struct msghdr *m)
{
	for (struct cmsghdr *h = CMSG_FIRSTHDR(m); h; h = CMSG_NXTHDR(m, h)) {
		if (h->cmsg_level == IPPROTO_IP && h->cmsg_type == IP_PKTINFO) {
			struct in_pktinfo info;

			memcpy(&info, CMSG_DATA(h), sizeof(info));
			info.ipi_spec_dst = info.ipi_addr;
			info.ipi_ifindex = 0;
			memcpy(CMSG_DATA(h), &info, sizeof(info));
		} else if (h->cmsg_level == IPPROTO_IPV6 && h->cmsg_type == IPV6_PKTINFO) {
			struct in6_pktinfo info;

			memcpy(&info, CMSG_DATA(h), sizeof(info));
			info.ipi6_ifindex = 0;
			memcpy(CMSG_DATA(h), &info, sizeof(info));
		}
	}
}

void dns_udp_event(struct proxy *p, const struct listener *l)
{
	for (int i = 0; i < UDP_BATCH; i++) {
		uint8_t data[DNS_QUERY_MAX], reply[DNS_REPLY_MAX];
		_Alignas(struct cmsghdr) char control[256];
		struct sockaddr_storage from;
		struct iovec iov = { .iov_base = data, .iov_len = sizeof(data) };
		struct msghdr m = {
			.msg_name = &from,
			.msg_namelen = sizeof(from),
			.msg_iov = &iov,
			.msg_iovlen = 1,
			.msg_control = control,
			.msg_controllen = sizeof(control),
		};
		ssize_t n = recvmsg(l->fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

		if (n < 0)
			return;
		/* a longer one would be cut off, and is no question anyway */
		if (m.msg_flags & MSG_TRUNC)
			continue;
		iov = (struct iovec){ reply, answer(p, l->owner, data, (size_t)n, reply) };
		reply_from(&m);
		if (iov.iov_len > 0)
			(void)sendmsg(l->fd, &m,
				      MSG_DONTWAIT | MSG_NOSIGNAL); /* lost: they ask again */
	}
}

void front_dns(struct proxy *p, struct conn *c)
{
	struct buf *in = &c->side[0].in, *out = &c->side[0].out;

	while (in->len >= 2 && out->len < HTTP_HEAD_MAX) {
		const uint8_t *data = (const uint8_t *)in->data;
		size_t len = (size_t)data[0] << 8 | data[1], n;
		uint8_t reply[2 + DNS_REPLY_MAX];

		if (len > DNS_QUERY_MAX) {
			conn_close(p, c);
			return;
		}
		if (in->len < 2 + len)
			break;
		n = answer(p, c->owner, data + 2, len, reply + 2);
		reply[0] = (uint8_t)(n >> 8);
		reply[1] = (uint8_t)n;
		if (n > 0)
			buf_append(out, reply, 2 + n);
		buf_drop(in, 2 + len);
		conn_wait(p, c, WAIT_HEAD);
	}
}
