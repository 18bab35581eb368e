/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An open file as the answer to a call. The kernel lets the caller itself take it, and so has to wake
 * it; not on our processor, as for all other answers (SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP), but
 * on one that is idle, if there is one. In a virtual machine that takes five times as long as all the
 * rest of the call.
 *
 * So when many are handed over, both ways are tried a few times, and what took less time from
 * one call to the next is done for a while: plainly; or the caller is kept on our
 * processor while it takes the file, and answered in a second step. That is two more changes of
 * process, which cost little where nobody else wants to run, and much where somebody does. The caller
 * sleeps in its call from before until after, so that neither it nor a child of it ever runs
 * with other processors than its own.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <time.h>

#include "base/sys.h"
#include "supervise/broker/internal.h"

#define STAY_CALLS 500 /* before both ways are tried again */
#define PAUSE_NS 1000000u /* between two calls that have nothing to do with each other */

static uint64_t now_ns(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static int add(const struct call *c, int fd, bool cloexec, unsigned flags)
{
	struct seccomp_notif_addfd a = {
		.id = c->n->id,
		.srcfd = (uint32_t)fd,
		.newfd_flags = cloexec ? O_CLOEXEC : 0,
		.flags = flags,
	};
	int r = ioctl(c->b->listener, SECCOMP_IOCTL_NOTIF_ADDFD, &a);

	return r < 0 ? -errno : r;
}

/* Only the caller's: when it was killed, and another task has its number, that gets them back too. */
static bool keep_here(const struct call *c, cpu_set_t *ret_own, cpu_set_t *ret_here)
{
	int cpu = sched_getcpu();
	size_t here = (size_t)cpu;

	CPU_ZERO(ret_here);
	if (cpu < 0 || cpu >= CPU_SETSIZE ||
	    sched_getaffinity(c->tid, sizeof(*ret_own), ret_own) < 0 || !CPU_ISSET(here, ret_own) ||
	    CPU_COUNT(ret_own) < 2)
		return false;
	CPU_SET(here, ret_here);
	return sched_setaffinity(c->tid, sizeof(*ret_here), ret_here) == 0;
}

static void let_go(const struct call *c, const cpu_set_t *own, const cpu_set_t *here)
{
	cpu_set_t now;

	/* somebody else may have chosen others for it meanwhile */
	if (sched_getaffinity(c->tid, sizeof(now), &now) == 0 && CPU_EQUAL(&now, here))
		(void)sched_setaffinity(c->tid, sizeof(*own), own);
}

int call_send_fd(const struct call *c, int fd, bool cloexec)
{
	int r = add(c, fd, cloexec, SECCOMP_ADDFD_FLAG_SEND);

	return r < 0 ? r : ANSWER_SENT;
}

static uint32_t median(uint32_t *v)
{
	for (size_t i = 1; i < HANDOVER_TRIES; i++) {
		uint32_t x = v[i];
		size_t k = i;

		for (; k > 0 && v[k - 1] > x; k--)
			v[k] = v[k - 1];
		v[k] = x;
	}
	return v[HANDOVER_TRIES / 2];
}

/* Is the caller to be kept here for this one? */
static bool choose(struct handover *h)
{
	uint64_t now = now_ns(), took = now - h->last;

	h->last = now;
	if (took > PAUSE_NS) {
		h->phase = HANDOVER_FREE;
		h->kept = false;
		h->calls = 0;
		return false;
	}
	if (h->phase != HANDOVER_STAY)
		h->took[h->phase][h->calls] = (uint32_t)took;
	if (++h->calls < (h->phase == HANDOVER_STAY ? STAY_CALLS : HANDOVER_TRIES))
		return h->kept;
	h->calls = 0;
	switch (h->phase) {
	case HANDOVER_FREE:
		h->phase = HANDOVER_KEPT;
		h->kept = true;
		break;
	case HANDOVER_KEPT: /* by a clear margin only */
		h->kept = median(h->took[HANDOVER_KEPT]) < median(h->took[HANDOVER_FREE]) / 4 * 3;
		h->phase = HANDOVER_STAY;
		break;
	case HANDOVER_STAY:
		h->phase = HANDOVER_FREE;
		h->kept = false;
		break;
	}
	return h->kept;
}

int call_hand_over(const struct call *c, int fd, bool cloexec)
{
	struct broker *b = c->b;
	cpu_set_t own _unfilled_, here _unfilled_;
	int r;

	/* in two steps only where no signal can come between them */
	if (!b->sync_wake || !b->plan->wait_killable || !choose(&b->handover) ||
	    !keep_here(c, &own, &here))
		return call_send_fd(c, fd, cloexec);
	r = add(c, fd, cloexec, 0);
	let_go(c, &own, &here);
	return r;
}
