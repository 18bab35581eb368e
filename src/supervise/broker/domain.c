/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs inside that confine themselves further with Landlock: a browser, an inner ambit. The
 * kernel holds their domain for what they do themselves, but not for what the broker does
 * for them. So the broker follows them: when a task enters a domain, a thread of ours
 * enters a domain made of the same rulesets, and from then on that thread answers the calls of the
 * task and of its descendants. What either domain refuses is refused.
 *
 * The thread may not look into the task, since neither domain is within the other: for
 * that it asks the first thread, which waits for it (errands). So there is only ever one
 * thread at work, and nothing else in the broker needs a lock.
 *
 * Descendants are found by their parents. Somebody whose parents are gone and who has more
 * filters than we know of may belong to any domain: for him nothing is performed. A program
 * that uses Landlock without a filter, and leaves orphans that no reaper of its own adopts, is
 * not followed to those; an inner ambit has both.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/sys.h"
#include "base/text.h"
#include "supervise/broker/internal.h"

#define DOMAINS_MAX 64 /* at a time; the next is refused */
#define LAYERS_MAX 16 /* as many as the kernel has */
#define ANCESTORS_MAX 512
#define STATUS_MAX (1u << 16)
#define STACK_BYTES ((size_t)512 << 10)

struct domain {
	pid_t tid, tgid; /* who entered it; 0 = free */
	int dir; /* of that task in /proc: nothing is found there when it is gone */
	int rulesets[LAYERS_MAX];
	size_t layers;
	pthread_t thread;
	pthread_cond_t wake;
	struct domains *all;
	struct call *job;
	bool leave, ready;
	int answer; /* of the job, or of the start: 0 or -errno */
};

struct domains {
	pthread_mutex_t lock;
	pthread_cond_t back; /* the working thread has something to say */
	struct domain v[DOMAINS_MAX];
	size_t n; /* that ever were */
	struct domain *busy;
	int (*errand)(void *arg);
	void *errand_arg;
	int errand_result;
	uint64_t filters; /* that a task has which is in no domain */
};

/* --- who belongs where ------------------------------------------------------------------- */

struct lineage {
	pid_t tgid, parent;
	uint64_t filters;
};

static uint64_t status_number(const char *status, const char *key)
{
	const char *line = strstr(status, key);

	return line ? text_leading_u64(line + strlen(key)) : 0;
}

static int read_lineage(const struct broker *b, pid_t tid, struct lineage *ret)
{
	_cleanup_free_ char *status = NULL;
	char path[32];

	(void)snprintf(path, sizeof(path), "%d/status", tid);
	if (fd_read_file(b->proc, path, STATUS_MAX, &status, NULL) < 0)
		return -ESRCH;
	*ret = (struct lineage){
		.tgid = (pid_t)status_number(status, "\nTgid:\t"),
		.parent = (pid_t)status_number(status, "\nPPid:\t"),
		.filters = status_number(status, "\nSeccomp_filters:\t"),
	};
	return 0;
}

static bool is_alive(const struct domain *d)
{
	return d->tid && faccessat(d->dir, "status", F_OK, 0) == 0;
}

/* The last domain that this process, or this thread of it, has entered. */
static struct domain *entered_by(struct domains *all, pid_t tid, pid_t tgid)
{
	struct domain *last = NULL;

	for (size_t i = 0; i < DOMAINS_MAX; i++) {
		struct domain *d = &all->v[i];

		if (d->tid && (d->tid == tid || d->tgid == tgid) &&
		    (!last || d->layers >= last->layers) && is_alive(d))
			last = d;
	}
	return last;
}

/* 0 and the domain (NULL = none), or -EACCES: nobody can tell. */
static int find_domain(const struct call *c, struct domain **ret)
{
	struct domains *all = c->b->domains;
	struct lineage l;
	uint64_t filters;
	pid_t tid = c->tid;

	*ret = NULL;
	if (all->n == 0)
		return 0; /* this is the first who enters one */
	if (read_lineage(c->b, tid, &l) < 0)
		return -EACCES;
	filters = l.filters;
	for (unsigned i = 0; i < ANCESTORS_MAX; i++) {
		*ret = entered_by(all, tid, l.tgid);
		if (*ret)
			return 0;
		tid = l.parent;
		if (tid <= 1 || read_lineage(c->b, tid, &l) < 0)
			return filters > all->filters ? -EACCES : 0;
	}
	return -EACCES;
}

/* --- the threads ---------------------------------------------------------------------------- */

bool domain_is_entered(const struct call *c)
{
	const struct domains *all = c->b->domains;

	return all && all->busy && pthread_equal(pthread_self(), all->busy->thread);
}

int domain_errand(const struct call *c, int (*errand)(void *arg), void *arg)
{
	struct domains *all = c->b->domains;
	int r;

	if (!domain_is_entered(c))
		return errand(arg);
	(void)pthread_mutex_lock(&all->lock);
	all->errand = errand;
	all->errand_arg = arg;
	(void)pthread_cond_signal(&all->back);
	while (all->errand)
		(void)pthread_cond_wait(&all->busy->wake, &all->lock);
	r = all->errand_result;
	(void)pthread_mutex_unlock(&all->lock);
	return r;
}

static int enter_layers(const struct domain *d)
{
	int r = 0;

	for (size_t i = 0; i < d->layers && r == 0; i++)
		r = sys_landlock_restrict(d->rulesets[i]);
	return r;
}

static void *work(void *arg)
{
	struct domain *d = arg;
	int r = enter_layers(d);

	(void)pthread_mutex_lock(&d->all->lock);
	d->answer = r;
	d->ready = true;
	(void)pthread_cond_signal(&d->all->back);
	while (!d->leave) {
		struct call *job = d->job;

		if (!job) {
			(void)pthread_cond_wait(&d->wake, &d->all->lock);
			continue;
		}
		(void)pthread_mutex_unlock(&d->all->lock);
		r = broker_answer(job);
		(void)pthread_mutex_lock(&d->all->lock);
		d->answer = r;
		d->job = NULL;
		(void)pthread_cond_signal(&d->all->back);
	}
	(void)pthread_mutex_unlock(&d->all->lock);
	return NULL;
}

/* Let the domain's thread answer, and run its errands meanwhile. */
static int answer_in(struct domain *d, struct call *c)
{
	struct domains *all = d->all;
	int r;

	(void)pthread_mutex_lock(&all->lock);
	all->busy = d;
	d->job = c;
	(void)pthread_cond_signal(&d->wake);
	while (d->job) {
		if (all->errand) {
			all->errand_result = all->errand(all->errand_arg);
			all->errand = NULL;
			(void)pthread_cond_signal(&d->wake);
		}
		if (d->job && !all->errand)
			(void)pthread_cond_wait(&all->back, &all->lock);
	}
	r = d->answer;
	all->busy = NULL;
	(void)pthread_mutex_unlock(&all->lock);
	return r;
}

static int start_thread(struct domain *d)
{
	pthread_attr_t attributes;
	int r;

	(void)pthread_attr_init(&attributes);
	(void)pthread_attr_setstacksize(&attributes, STACK_BYTES);
	r = -pthread_create(&d->thread, &attributes, work, d);
	(void)pthread_attr_destroy(&attributes);
	if (r < 0)
		return r;
	(void)pthread_mutex_lock(&d->all->lock);
	while (!d->ready)
		(void)pthread_cond_wait(&d->all->back, &d->all->lock);
	r = d->answer;
	(void)pthread_mutex_unlock(&d->all->lock);
	return r;
}

static void end_domain(struct domain *d)
{
	if (d->ready) {
		(void)pthread_mutex_lock(&d->all->lock);
		d->leave = true;
		(void)pthread_cond_signal(&d->wake);
		(void)pthread_mutex_unlock(&d->all->lock);
		(void)pthread_join(d->thread, NULL);
	}
	for (size_t i = 0; i < d->layers; i++)
		fd_close(d->rulesets[i]);
	fd_close(d->dir);
	*d = (struct domain){ .dir = -1 };
}

/* --- entering -------------------------------------------------------------------------------- */

static struct domains *domains_new(void)
{
	struct domains *all = calloc(1, sizeof(*all));

	if (!all)
		return NULL;
	all->lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	all->back = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
	for (size_t i = 0; i < DOMAINS_MAX; i++)
		all->v[i].dir = -1;
	return all;
}

/* A free place; those of tasks that are gone are free. */
static struct domain *free_domain(struct domains *all)
{
	struct domain *found = NULL;

	for (size_t i = 0; i < DOMAINS_MAX; i++) {
		struct domain *d = &all->v[i];

		if (d->tid && !is_alive(d))
			end_domain(d);
		if (!d->tid)
			found = d;
	}
	return found;
}

static int fill_domain(const struct call *c, struct domain *d, const struct domain *within)
{
	struct lineage l;
	char name[16];

	for (size_t i = 0; within && i < within->layers; i++) {
		if (d->layers == LAYERS_MAX)
			return -E2BIG;
		d->rulesets[d->layers] = fcntl(within->rulesets[i], F_DUPFD_CLOEXEC, 3);
		if (d->rulesets[d->layers++] < 0)
			return -EMFILE;
	}
	if (d->layers == LAYERS_MAX)
		return -E2BIG;
	d->rulesets[d->layers] = call_take_fd(c, (int)c->args[0]);
	if (d->rulesets[d->layers] < 0)
		return d->rulesets[d->layers];
	d->layers++;
	(void)snprintf(name, sizeof(name), "%d", c->tid);
	d->dir = openat(c->b->proc, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (d->dir < 0 || read_lineage(c->b, c->tid, &l) < 0 || !call_is_valid(c))
		return -ESRCH;
	d->tid = c->tid;
	d->tgid = l.tgid;
	if (!c->b->domains->filters)
		c->b->domains->filters = l.filters;
	return start_thread(d);
}

static int follow(struct call *c)
{
	struct domain *d, *within = NULL;
	int r;

	if (!c->b->domains)
		c->b->domains = domains_new();
	if (!c->b->domains)
		return -ENOMEM;
	r = find_domain(c, &within);
	d = r < 0 ? NULL : free_domain(c->b->domains);
	if (!d)
		return r < 0 ? r : -E2BIG;
	*d = (struct domain){ .dir = -1, .all = c->b->domains, .wake = PTHREAD_COND_INITIALIZER };
	r = fill_domain(c, d, within);
	if (r < 0)
		end_domain(d);
	else
		c->b->domains->n++;
	/* a bad descriptor: the kernel says it better */
	return r < 0 && r != -EBADF ? r : ANSWER_CONTINUE;
}

int domains_answer(struct call *c)
{
	struct domain *d = NULL;
	int r;

	if (c->n->data.nr == SYS_landlock_restrict_self)
		return follow(c);
	if (!c->b->domains)
		return broker_answer(c);
	r = find_domain(c, &d);
	if (r < 0)
		return r;
	return d ? answer_in(d, c) : broker_answer(c);
}
