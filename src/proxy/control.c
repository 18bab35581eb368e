/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The supervisor's side of the program: datagrams on fd 3, first word the verb,
 * at most one fd with each. The supervisor is trusted; a mistake of its is
 * answered with an error record and changes nothing. Its end is ours.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/text.h"
#include "proxy/proxy.h"

/* The datagram's text and the fd that came with it (-1 = none). */
struct message {
	char text[PROXY_CONTROL_MAX + 1];
	int fd;
};

static int read_config_fd(int fd, char **ret, size_t *ret_len)
{
	_cleanup_buf_ struct buf b = BUF_INIT(CONFIG_MAX);
	char chunk[4096];
	ssize_t n;

	/* by offset: the writer's position is at the end */
	while ((n = pread(fd, chunk, sizeof(chunk), (off_t)b.len)) > 0) {
		buf_append(&b, chunk, (size_t)n);
		if (b.overflow)
			return -EFBIG;
	}
	if (n < 0)
		return -errno;
	buf_append(&b, "", 0);
	*ret_len = b.len;
	*ret = TAKE_PTR(b.data);
	return 0;
}

/* Is what the connection has, or is about to get, allowed by the present lists? */
static bool is_still_allowed(struct proxy *p, const struct conn *c, struct verdict *ret)
{
	struct host host, address;

	if (!c->name || c->via == VIA_FORWARD || c->via == VIA_PUBLISH || c->state == CONN_FLUSH ||
	    host_parse(c->name, strlen(c->name), &host, NULL) < 0)
		return true;
	judge(p, c, &host, c->port, ret);
	if (!ret->allow || c->address.kind == HOST_NAME || c->through_parent)
		return ret->allow;
	host_from_addr(c->address.kind, c->address.bytes, &address);
	decide_address(p->config, own_addresses(p), &host, &address, c->port, ret);
	return ret->allow;
}

/* A connection whose target the new lists do not allow is cut (N18). */
static void cut_disallowed(struct proxy *p)
{
	for (struct conn *c = p->conns, *next; c; c = next) {
		struct verdict v;

		next = c->next;
		/* the next request will be judged anyway, and can be told why */
		if (c->state == CONN_HEAD && c->front == FRONT_HTTP) {
			conn_drop_upstream(c);
			continue;
		}
		if (c->http) /* it may be to a parent that is none any more */
			c->http->outdated = true;
		if (c->state == CONN_ASK || is_still_allowed(p, c, &v))
			continue;
		if (c->open_record) {
			c->open_record = false;
			report_connect(&p->report, &(struct record){
							   .owner = c->owner->id,
							   .host = c->name,
							   .port = c->port,
							   .via = conn_via_name(c->via),
							   .rule = v.rule,
							   .reason = "no longer allowed: cut",
							   .sent = c->bytes[0],
							   .received = c->bytes[1],
							   .ms = p->now_ms - c->started_ms,
						   });
		}
		conn_reset(p, c);
	}
}

static int on_config(struct proxy *p, struct message *m, const char *arg UNUSED, struct error *e)
{
	_cleanup_free_ char *text = NULL;
	struct config *config = NULL;
	struct names tried = { .next = 0 };
	size_t len = 0;
	int r = read_config_fd(m->fd, &text, &len);

	fd_close(TAKE_FD(m->fd));
	if (r < 0)
		return error_set(e, -r, "cannot read the configuration: %s", strerror(-r));
	r = config_parse(text, len, &config, e);
	if (r == 0)
		r = names_set_networks(&tried, config->synthetic4, config->synthetic6, e);
	if (r < 0) {
		config_free(config);
		return error_wrap(e, "configuration");
	}
	config_free(p->config);
	p->config = config;
	for (struct owner *o = p->owners; o; o = o->next) {
		if (names_set_networks(&o->names, config->synthetic4, config->synthetic6, NULL) < 0)
			abort(); /* it was tried above */
	}
	ask_review(p);
	cut_disallowed(p);
	if (!p->has_config)
		report_ready(&p->report);
	p->has_config = true;
	return 0;
}

/* The rest of a message: the owner's number, without one it is 0. */
static struct owner *owner_of(struct proxy *p, const char *rest)
{
	return owner_get(p, (uint32_t)text_leading_u64(rest + (*rest == ' ')));
}

static int on_listener(struct proxy *p, struct message *m, const char *arg, struct error *e)
{
	static const struct {
		const char *name;
		enum listener_kind kind;
	} kinds[] = {
		{ "http", LISTENER_HTTP },
		{ "socks", LISTENER_SOCKS },
		{ "transparent", LISTENER_TRANSPARENT },
		{ "dns-udp", LISTENER_DNS_UDP },
		{ "dns-tcp", LISTENER_DNS_TCP },
	};

	size_t n = strcspn(arg, " ");

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		if (strlen(kinds[i].name) == n && memcmp(arg, kinds[i].name, n) == 0)
			return listener_add(p, kinds[i].kind, owner_of(p, arg + n), &m->fd, e);
	}
	return error_set(e, EINVAL, "listener: unknown kind");
}

static int on_forward(struct proxy *p, struct message *m, const char *arg, struct error *e)
{
	size_t n = strcspn(arg, " ");
	struct host address;
	uint16_t port;
	int r = http_parse_authority((struct span){ arg, n }, 0, &address, &port, e);

	if (r < 0 || address.kind == HOST_NAME)
		return error_set(e, EINVAL, "forward: not IP:PORT");
	r = listener_add(p, LISTENER_FORWARD, owner_of(p, arg + n), &m->fd, e);
	if (r < 0)
		return r;
	arg += n + (arg[n] == ' ');
	arg += strcspn(arg, " ");
	text_copy(p->listeners->rule, sizeof(p->listeners->rule),
		  *arg ? arg + 1 : "network.allowHostPorts");
	p->listeners->forward = address;
	p->listeners->forward_port = port;
	return 0;
}

static int on_publish(struct proxy *p, struct message *m, const char *arg, struct error *e)
{
	uint64_t port = text_leading_u64(arg);
	int r;

	if (port == 0 || port > UINT16_MAX)
		return error_set(e, EINVAL, "publish: not a port");
	r = listener_add(p, LISTENER_PUBLISH, owner_of(p, arg + strcspn(arg, " ")), &m->fd, e);
	if (r < 0)
		return r;
	p->listeners->forward_port = (uint16_t)port;
	return 0;
}

static int on_seed(struct proxy *p, struct message *m, const char *arg, struct error *e)
{
	size_t n = strcspn(arg, " ");
	bool listens = n == strlen("accept") && memcmp(arg, "accept", n) == 0;
	int r = publish_add_seed(owner_of(p, arg + n), listens, m->fd);

	if (r < 0)
		return error_set(e, -r, "seed: %s", strerror(-r));
	m->fd = -1;
	return 0;
}

static int on_drop(struct proxy *p, struct message *m UNUSED, const char *arg, struct error *e)
{
	struct owner *o = NULL;
	uint64_t id;

	if (text_parse_u64(arg, UINT32_MAX, &id) < 0)
		return error_set(e, EINVAL, "drop: not the number of an owner");
	o = owner_find(p, (uint32_t)id);
	if (o)
		owner_leave(p, o);
	else
		report_gone(&p->report, (uint32_t)id);
	return 0;
}

static int on_answer(struct proxy *p, struct message *m UNUSED, const char *arg, struct error *e)
{
	return ask_answer(p, arg, e);
}

static int on_inquiries(struct proxy *p, struct message *m, const char *arg, struct error *e)
{
	int r = inquiries_open(p, owner_of(p, arg), m->fd);

	if (r < 0)
		return error_set(e, -r, "inquiries: %s", strerror(-r));
	m->fd = -1;
	return 0;
}

static int on_quit(struct proxy *p, struct message *m UNUSED, const char *arg UNUSED,
		   struct error *e UNUSED)
{
	p->quit = true;
	p->report.patient = true;
	for (struct owner *o = p->owners; o; o = o->next)
		owner_leave(p, o);
	return 0;
}

static const struct {
	const char *verb;
	int (*handle)(struct proxy *, struct message *, const char *arg, struct error *);
	bool needs_fd;
} verbs[] = {
	{ "config", on_config, true },   { "listener", on_listener, true },
	{ "forward", on_forward, true }, { "publish", on_publish, true },
	{ "seed", on_seed, true },       { "answer", on_answer, false },
	{ "drop", on_drop, false },      { "inquiries", on_inquiries, true },
	{ "quit", on_quit, false },
};

static int handle(struct proxy *p, struct message *m, struct error *e)
{
	size_t n = strcspn(m->text, " ");
	const char *arg = m->text + n + (m->text[n] == ' ');

	for (size_t i = 0; i < ARRAY_LEN(verbs); i++) {
		if (strlen(verbs[i].verb) != n || memcmp(m->text, verbs[i].verb, n) != 0)
			continue;
		if (verbs[i].needs_fd && m->fd < 0)
			return error_set(e, EINVAL, "%s: no file descriptor came with it",
					 verbs[i].verb);
		return verbs[i].handle(p, m, arg, e);
	}
	return error_set(e, EINVAL, "unknown command");
}

/* 1 = a message, 0 = none now, -errno = the supervisor is gone. */
static int receive(int fd, struct message *ret)
{
	ssize_t n = fd_receive(fd, ret->text, PROXY_CONTROL_MAX, &ret->fd);

	if (n < 0)
		return n == -EAGAIN || n == -EINTR ? 0 : (int)n;
	ret->text[n] = '\0';
	/* a datagram of no bytes and no fd is how a seqpacket socket shows its end */
	return n == 0 && ret->fd < 0 ? -EPIPE : 1;
}

void control_event(struct proxy *p)
{
	struct message m = { .fd = -1 };
	struct error e = { 0 };
	int r = receive(p->report.fd, &m);

	if (r == 0)
		return;
	if (r < 0)
		_exit(0); /* nobody is left to serve or to tell */
	r = handle(p, &m, &e);
	fd_close(m.fd);
	if (r < 0)
		report_text(&p->report, "error", e.text);
}
