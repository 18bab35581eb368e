/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/resolve.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define THREAD_STACK ((size_t)256 << 10)

int resolver_init(struct resolver *r)
{
	*r = (struct resolver){ .event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) };
	if (r->event_fd < 0)
		return -errno;
	r->queue_tail = &r->queue;
	(void)pthread_mutex_init(&r->lock, NULL);
	(void)pthread_cond_init(&r->wanted, NULL);
	return 0;
}

static bool take_address(const struct addrinfo *ai, struct address *ret)
{
	if (ai->ai_family == AF_INET) {
		struct sockaddr_in in;

		memcpy(&in, ai->ai_addr, sizeof(in));
		ret->kind = HOST_IPV4;
		memcpy(ret->bytes, &in.sin_addr, 4);
		return true;
	}
	if (ai->ai_family == AF_INET6) {
		struct sockaddr_in6 in6;

		memcpy(&in6, ai->ai_addr, sizeof(in6));
		ret->kind = HOST_IPV6;
		memcpy(ret->bytes, &in6.sin6_addr, 16);
		return true;
	}
	return false;
}

static void look_up(struct resolve_job *job)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG };
	struct addrinfo *list = NULL;

	job->error = getaddrinfo(job->name, NULL, &hints, &list);
	if (job->error)
		return;
	for (const struct addrinfo *ai = list; ai && job->n < RESOLVE_ADDRESSES_MAX;
	     ai = ai->ai_next) {
		if (take_address(ai, &job->address[job->n]))
			job->n++;
	}
	freeaddrinfo(list);
}

/* Called with the lock held. */
static void enqueue(struct resolver *r, struct resolve_job *job)
{
	job->at = r->queue_tail;
	*job->at = job;
	r->queue_tail = &job->next;
	r->waiting++;
}

/* Called with the lock held. */
static void dequeue(struct resolver *r, struct resolve_job *job)
{
	*job->at = job->next;
	if (job->next)
		job->next->at = job->at;
	else
		r->queue_tail = job->at;
	job->next = NULL;
	job->at = NULL;
	r->waiting--;
}

static void *work(void *arg)
{
	const uint64_t one = 1;
	struct resolver *r = arg;

	(void)pthread_mutex_lock(&r->lock);
	for (;;) {
		struct resolve_job *job;

		while (!r->queue) {
			r->idle++;
			(void)pthread_cond_wait(&r->wanted, &r->lock);
			r->idle--;
		}
		job = r->queue;
		dequeue(r, job);
		(void)pthread_mutex_unlock(&r->lock);
		look_up(job);
		(void)pthread_mutex_lock(&r->lock);
		job->next = r->done;
		r->done = job;
		/* the counter cannot overflow, and a failure means the loop is gone */
		if (write(r->event_fd, &one, sizeof(one)) < 0)
			break;
	}
	(void)pthread_mutex_unlock(&r->lock);
	return NULL;
}

/* Called with the lock held. */
static void start_thread(struct resolver *r)
{
	pthread_attr_t attr;
	pthread_t thread;

	(void)pthread_attr_init(&attr);
	(void)pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	(void)pthread_attr_setstacksize(&attr, THREAD_STACK);
	if (pthread_create(&thread, &attr, work, r) == 0)
		r->threads++;
	(void)pthread_attr_destroy(&attr);
}

struct resolve_job *resolver_submit(struct resolver *r, const char *name, void *owner)
{
	struct resolve_job *job = calloc(1, sizeof(*job));
	bool served;

	if (!job)
		return NULL;
	job->owner = owner;
	(void)snprintf(job->name, sizeof(job->name), "%s", name);
	(void)pthread_mutex_lock(&r->lock);
	if (r->waiting >= r->idle && r->threads < RESOLVE_THREADS_MAX)
		start_thread(r);
	served = r->threads > 0;
	if (served) {
		enqueue(r, job);
		(void)pthread_cond_signal(&r->wanted);
	}
	(void)pthread_mutex_unlock(&r->lock);
	if (!served) {
		free(job);
		return NULL;
	}
	return job;
}

void resolver_cancel(struct resolver *r, struct resolve_job *job)
{
	bool queued;

	(void)pthread_mutex_lock(&r->lock);
	queued = job->at != NULL;
	if (queued)
		dequeue(r, job);
	(void)pthread_mutex_unlock(&r->lock);
	job->owner = NULL;
	if (queued)
		free(job);
}

struct resolve_job *resolver_collect(struct resolver *r)
{
	struct resolve_job *done;
	uint64_t count;

	if (read(r->event_fd, &count, sizeof(count)) < 0)
		return NULL;
	(void)pthread_mutex_lock(&r->lock);
	done = r->done;
	r->done = NULL;
	(void)pthread_mutex_unlock(&r->lock);
	return done;
}
