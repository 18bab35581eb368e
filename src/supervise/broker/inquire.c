/* SPDX-License-Identifier: Apache-2.0 */
/*
 * With allowed domains a TCP connection is asked about before it is made: the proxy, which has the
 * names and the rules of the moment, says yes or gives the error that connect(2) returns.
 *
 * This is for the sake of a true error, at once, and of a report that names the program. The
 * wall is elsewhere: what is connected here arrives at the proxy and is judged there. So a "yes" may
 * be remembered, and when the proxy does not answer, or too much is under way, the connection is
 * simply made.
 *
 * Where the kernel has no way to hand connections over with their destination (no nftables), this
 * is also how they get to the proxy: the answer given, the socket is connected to its address
 * at the listener's port, and the proxy knows by the port that it comes from where it was going.
 *
 * Without namespaces every connection goes that way too, but as a whole: the broker connects the
 * program to itself and hands its end to the proxy (deliver.c). There this is the wall: what
 * the proxy was not given goes nowhere.
 *
 * The answers are read by a thread of their own: the broker's loop never waits for the proxy.
 */
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "sandbox/native/egress.h"
#include "supervise/broker/connect.h"

#define KNOWN_MAX 64
#define PORT_DNS 53
#define ROOM_WAIT_S 2 /* when too many wait for answers already */

/* A call that waits for its answer. */
struct waiting {
	bool used;
	uint64_t id;
	int sock;
	struct address to;
	struct inquiry asked;
};

struct inquiries {
	struct broker *b;
	pthread_mutex_t lock; /* of everything below */
	pthread_cond_t room; /* fewer wait than before, or nobody will */
	bool started, ended;
	struct waiting waiting[INQUIRIES_MAX];
	struct inquiry known[KNOWN_MAX]; /* allowed lately: address, port and v6 are set */
	size_t next_known;
};

struct inquiries *inquiries_new(struct broker *b)
{
	const struct timeval patience = { .tv_sec = ROOM_WAIT_S };
	const int room =
		INQUIRIES_MAX * 1024; /* the kernel's own share of a message is most of it */
	struct inquiries *q = b->inquiries_fd < 0 ? NULL : calloc(1, sizeof(*q));

	if (q) {
		*q = (struct inquiries){ .b = b,
					 .lock = PTHREAD_MUTEX_INITIALIZER,
					 .room = PTHREAD_COND_INITIALIZER };
		/* for connections; questions do not wait */
		(void)setsockopt(b->inquiries_fd, SOL_SOCKET, SO_SNDTIMEO, &patience,
				 sizeof(patience));
		(void)setsockopt(b->inquiries_fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
	}
	return q;
}

bool address_read(const struct address *to, struct inquiry *ret)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;

	if (to->u.any.sa_family == AF_INET && to->len >= sizeof(v4)) {
		memcpy(&v4, &to->u, sizeof(v4));
		memcpy(ret->address, &v4.sin_addr, 4);
		ret->port = ntohs(v4.sin_port);
		return true;
	}
	if (to->u.any.sa_family != AF_INET6 ||
	    to->len < offsetof(struct sockaddr_in6, sin6_scope_id))
		return false;
	memcpy(&v6, &to->u, sizeof(v6));
	ret->port = ntohs(v6.sin6_port);
	ret->v6 = memcmp(&v6.sin6_addr, mapped, sizeof(mapped)) != 0;
	if (ret->v6)
		memcpy(ret->address, &v6.sin6_addr, 16);
	else
		memcpy(ret->address, v6.sin6_addr.s6_addr + 12, 4);
	return true;
}

/* The sandbox's own loopback: its servers, and the proxy's known listeners. */
static bool is_inside(const struct inquiry *a)
{
	static const uint8_t any[16], loopback[16] = { [15] = 1 };

	if (a->v6)
		return memcmp(a->address, any, 16) == 0 || memcmp(a->address, loopback, 16) == 0;
	return a->address[0] == 127 || memcmp(a->address, any, 4) == 0;
}

static bool is_tcp(int sock)
{
	int type = 0;

	return getsockopt(sock, SOL_SOCKET, SO_TYPE, &type, &(socklen_t){ sizeof(type) }) == 0 &&
	       type == SOCK_STREAM;
}

/* Under the lock. */
static bool is_known(const struct inquiries *q, const struct inquiry *a)
{
	for (size_t i = 0; i < KNOWN_MAX; i++) {
		const struct inquiry *k = &q->known[i];

		if (k->port == a->port && k->v6 == a->v6 &&
		    memcmp(k->address, a->address, sizeof(a->address)) == 0)
			return true;
	}
	return false;
}

/* The port that the socket will connect from: its own, or one that it gets now. 0 = none. */
static uint16_t claim_source(int sock, const struct address *to)
{
	struct sockaddr_storage any = { .ss_family = to->u.any.sa_family }, has = { 0 };
	struct sockaddr_in in; /* the port is at the same place in IPv6 */

	for (int i = 0; i < 2; i++) {
		if (getsockname(sock, (struct sockaddr *)&has, &(socklen_t){ sizeof(has) }) < 0)
			return 0;
		memcpy(&in, &has, sizeof(in));
		if (in.sin_port)
			break;
		if (bind(sock, (const struct sockaddr *)&any,
			 any.ss_family == AF_INET ? sizeof(struct sockaddr_in)
						  : sizeof(struct sockaddr_in6)) < 0)
			return 0;
	}
	return ntohs(in.sin_port);
}

static void set_port(struct address *to, uint16_t port)
{
	struct sockaddr_in in;

	memcpy(&in, &to->u, sizeof(in));
	in.sin_port = htons(port);
	memcpy(&to->u, &in, sizeof(in));
}

/* Answer the call: 0 or an errno. */
static void settle(const struct inquiries *q, struct waiting *w, int error)
{
	struct seccomp_notif_resp resp = { .id = w->id, .error = -error };

	(void)ioctl(q->b->listener, SECCOMP_IOCTL_NOTIF_SEND, &resp);
	fd_close(w->sock);
}

static void finish(struct inquiries *q, struct waiting *w, int error)
{
	if (error > 0 && error < 4096) {
		settle(q, w, error);
		return;
	}
	if (q->b->plan->bare) {
		settle(q, w, -deliver(q->b, w->sock, &w->asked));
		return;
	}
	if (w->asked.source)
		set_port(&w->to, EGRESS_TRANSPARENT_PORT);
	connect_and_answer(q->b, w->id, w->sock, &w->to);
}

/* Under the lock: the one that waits for this answer; false = nobody does. */
static bool take_waiting(struct inquiries *q, uint64_t id, struct waiting *ret)
{
	for (size_t i = 0; i < INQUIRIES_MAX; i++) {
		struct waiting *w = &q->waiting[i];

		if (!w->used || (id && w->id != id))
			continue;
		*ret = *w;
		w->used = false;
		(void)pthread_cond_signal(&q->room);
		return true;
	}
	return false;
}

static void remember(struct inquiries *q, const struct inquiry *a)
{
	q->known[q->next_known] = *a;
	q->next_known = (q->next_known + 1) % KNOWN_MAX;
}

static void *read_answers(void *arg)
{
	struct inquiries *q = arg;
	struct inquiry_answer a;
	struct waiting w;
	ssize_t n;

	while ((n = recv(q->b->inquiries_fd, &a, sizeof(a), 0)) > 0 || (n < 0 && errno == EINTR)) {
		bool found;

		if (n != sizeof(a) || !a.id)
			continue;
		(void)pthread_mutex_lock(&q->lock);
		found = take_waiting(q, a.id, &w);
		if (found && !a.error && !w.asked.source && !is_known(q, &w.asked))
			remember(q, &w.asked);
		(void)pthread_mutex_unlock(&q->lock);
		if (found)
			finish(q, &w, a.error);
	}
	/* the proxy is gone: with its listeners, so that the kernel refuses */
	(void)pthread_mutex_lock(&q->lock);
	q->ended = true;
	while (take_waiting(q, 0, &w))
		finish(q, &w, 0);
	(void)pthread_mutex_unlock(&q->lock);
	return NULL;
}

static int start(void *arg)
{
	struct inquiries *q = arg;
	pthread_t thread;

	if (!q->started && pthread_create(&thread, NULL, read_answers, q) == 0) {
		(void)pthread_detach(thread);
		q->started = true;
	}
	return q->started;
}

/*
 * Would the caller's own Landlock domain let it connect to this port? We are in it, but who makes
 * the connection is not. A group address is one that TCP cannot be connected to: the kernel asks
 * Landlock and then goes no further.
 */
static bool is_let_connect(uint16_t port)
{
	_cleanup_fd_ int sock = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_in nowhere = { .sin_family = AF_INET,
				       .sin_port = htons(port),
				       .sin_addr.s_addr = htonl(INADDR_ALLHOSTS_GROUP) };

	return sock >= 0 &&
	       (connect(sock, (const struct sockaddr *)&nowhere, sizeof(nowhere)) == 0 ||
		errno != EACCES);
}

static struct waiting *find_place(struct inquiries *q)
{
	for (size_t i = 0; i < INQUIRIES_MAX; i++) {
		if (!q->waiting[i].used)
			return &q->waiting[i];
	}
	return NULL;
}

/* Under the lock, which is free while it waits. */
static struct waiting *free_place(struct inquiries *q, bool must)
{
	struct waiting *place = find_place(q);
	struct timespec end;

	(void)clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += ROOM_WAIT_S;
	while (must && !place && !q->ended && pthread_cond_timedwait(&q->room, &q->lock, &end) == 0)
		place = find_place(q);
	return place;
}

static int ask(struct inquiries *q, const struct call *c, struct waiting *w)
{
	/* by the first thread: the answers are for all, whichever domain the first is in */
	bool hears = !q->ended && domain_errand(c, start, q);
	struct waiting *place = hears ? free_place(q, w->asked.source) : NULL;

	if (!place || q->ended)
		return ANSWER_CONTINUE;
	w->used = true;
	w->asked.id = w->id = c->n->id;
	call_describe(c, &w->asked.pid, w->asked.process);
	*place = *w;
	if (send(q->b->inquiries_fd, &w->asked, sizeof(w->asked), MSG_DONTWAIT | MSG_NOSIGNAL) <
	    0) {
		place->used = false;
		return ANSWER_CONTINUE;
	}
	return ANSWER_SENT;
}

int inquire(const struct call *c, int *sock, const struct address *to)
{
	struct inquiries *q = c->b->inquiries;
	struct waiting w = { .sock = *sock, .to = *to };
	bool bare = c->b->plan->bare;
	int r;

	if (!q || !address_read(to, &w.asked) || !is_tcp(*sock))
		return ANSWER_CONTINUE;
	r = bare ? deliver_check(*sock, to) : 0;
	if (r < 0)
		return r;
	if (!bare && is_inside(&w.asked))
		return ANSWER_CONTINUE;
	if (domain_is_entered(c) && !is_let_connect(w.asked.port))
		return -EACCES;
	if (is_inside(&w.asked) && w.asked.port != PORT_DNS)
		return deliver_local(c, *sock, to, &w.asked);
	r = ANSWER_CONTINUE;
	if (c->b->redirects) {
		w.asked.source = claim_source(*sock, to);
		if (!w.asked.source)
			return -EADDRNOTAVAIL;
	}
	(void)pthread_mutex_lock(&q->lock);
	if (w.asked.source || !is_known(q, &w.asked))
		r = ask(q, c, &w);
	(void)pthread_mutex_unlock(&q->lock);
	if (r == ANSWER_SENT)
		*sock = -1;
	if (bare && r == ANSWER_CONTINUE)
		return deliver(c->b, *sock, &w.asked);
	/* at its own port there may be a server inside, which is not what was meant */
	return w.asked.source && r == ANSWER_CONTINUE ? -ECONNREFUSED : r;
}
