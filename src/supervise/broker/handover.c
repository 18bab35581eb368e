/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An open file as the answer to a call. The kernel lets the caller itself take it, and so has to wake
 * it; not on our processor, as for all other answers (SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP), but
 * on one that is idle, if there is one. In a virtual machine that takes five times as long as all the
 * rest of the call.
 *
 * So the caller is kept on our processor while it takes the file, and answered in a second step. That
 * is two more changes of process, which cost little where nobody else wants to run, and more where
 * somebody does. So when many are handed over, both ways are tried a few times, and what took less
 * time from one call to the next is done for as long as that stays so. The caller
 * sleeps in its call from before until after, so that neither it nor a child of it ever runs
 * with other processors than its own.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/sys.h"
#include "supervise/broker/internal.h"

#define STAY_MIN 500 /* calls before both ways are tried again; twice as many each time that */
#define STAY_MAX 8000 /* the same one wins */
#define SLOW_MAX 4 /* calls that would have been faster the other way: it is not as it was */
#define OTHERS_MAX 8 /* calls in a row that get no file: then we move freely again */
#define PAUSE_NS 1000000u /* between two calls that have nothing to do with each other */

struct cpus {
	unsigned long v[8192 / (8 * sizeof(unsigned long))];
	size_t n; /* words */
};

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

/* As many words as the kernel uses, not the thousand processors of a cpu_set_t. */
static bool cpus_of(pid_t tid, struct cpus *ret)
{
	long n = syscall(SYS_sched_getaffinity, tid, sizeof(ret->v), ret->v);

	ret->n = n > 0 ? (size_t)n / sizeof(ret->v[0]) : 0;
	return n > 0;
}

static bool cpus_set(pid_t tid, const struct cpus *to)
{
	return syscall(SYS_sched_setaffinity, tid, to->n * sizeof(to->v[0]), to->v) == 0;
}

/* Only the caller's: when it was killed, and another task has its number, that gets them back too. */
static bool keep_here(const struct call *c, struct cpus *ret_own, struct cpus *ret_here)
{
	const size_t bits = 8 * sizeof(ret_own->v[0]);
	int cpu = sched_getcpu();
	unsigned long bit, others = 0;
	size_t word;

	if (cpu < 0 || !cpus_of(c->tid, ret_own))
		return false;
	word = (size_t)cpu / bits;
	bit = 1ul << (size_t)cpu % bits;
	if (word >= ret_own->n || !(ret_own->v[word] & bit))
		return false;
	ret_here->n = ret_own->n;
	for (size_t i = 0; i < ret_own->n; i++) {
		ret_here->v[i] = i == word ? bit : 0;
		others |= ret_own->v[i] & ~ret_here->v[i];
	}
	return others && cpus_set(c->tid, ret_here);
}

static void let_go(const struct call *c, const struct cpus *own, const struct cpus *here)
{
	struct cpus now _unfilled_;

	/* somebody else may have chosen others for it meanwhile */
	if (cpus_of(c->tid, &now) && now.n == here->n &&
	    memcmp(now.v, here->v, now.n * sizeof(now.v[0])) == 0)
		(void)cpus_set(c->tid, own);
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

static void begin(struct handover *h, enum handover_phase phase)
{
	h->phase = phase;
	h->kept = phase == HANDOVER_KEPT || (phase != HANDOVER_FREE && !h->free_wins);
	h->calls = h->slow = 0;
}

/* Both were tried. */
static void decide(struct handover *h)
{
	/* by a clear margin only */
	h->free_wins = h->usual[HANDOVER_KEPT] >= h->usual[HANDOVER_FREE] / 4 * 3;
	h->stay = !h->free_wins && h->stay ? h->stay * 2 : STAY_MIN;
	if (h->stay > STAY_MAX)
		h->stay = STAY_MAX;
	begin(h, HANDOVER_STAY);
}

/* While one way is kept to: is it still the better one? */
static void look(struct handover *h, uint32_t took)
{
	if (took > (h->kept ? h->usual[HANDOVER_FREE] : h->usual[HANDOVER_KEPT] * 2))
		h->slow++;
	else if (h->slow > 0)
		h->slow--;
	if (h->slow >= SLOW_MAX && !h->kept) {
		h->usual[HANDOVER_FREE] = took;
		begin(h, HANDOVER_KEPT);
	} else if (h->slow >= SLOW_MAX || h->calls >= h->stay) {
		if (h->slow >= SLOW_MAX)
			h->stay = 0;
		begin(h, HANDOVER_FREE);
	}
}

static void end_of_trial(struct handover *h)
{
	switch (h->phase) {
	case HANDOVER_CALM:
		begin(h, HANDOVER_FREE);
		break;
	case HANDOVER_FREE:
		h->usual[HANDOVER_FREE] = median(h->took);
		begin(h, HANDOVER_KEPT);
		break;
	case HANDOVER_KEPT:
		h->usual[HANDOVER_KEPT] = median(h->took);
		decide(h);
		break;
	case HANDOVER_STAY:
		break;
	}
}

/* Is the caller to be kept here for this one? */
static bool choose(struct handover *h)
{
	uint64_t now = sys_now_ns(), took = now - h->last;

	h->last = now;
	if (took > PAUSE_NS) {
		begin(h, HANDOVER_CALM);
		h->stay = 0;
		return h->kept;
	}
	h->calls++;
	if (h->phase == HANDOVER_STAY) {
		look(h, (uint32_t)took);
		return h->kept;
	}
	h->took[h->calls - 1] = (uint32_t)took;
	if (h->calls == HANDOVER_TRIES)
		end_of_trial(h);
	return h->kept;
}

/*
 * Taking the file, the caller wakes us: on an idle processor again, where it would follow us to. So
 * we stay, too: after a pause for this call, and where they come in a row as long as they do.
 */
static void stay(struct broker *b, const struct cpus *here)
{
	struct handover *h = &b->handover;

	if (h->stays)
		return;
	if (!h->ours)
		h->ours = arena_alloc(b->a, sizeof(*h->ours));
	h->stays = cpus_of(0, h->ours) && cpus_set(0, here);
}

void handover_leave(struct broker *b)
{
	struct handover *h = &b->handover;

	if (h->stays)
		(void)cpus_set(0, h->ours);
	h->stays = false;
}

void handover_turn(struct broker *b, const struct seccomp_notif *n)
{
	/* threads are made for these */
	bool makes = n->data.nr == SYS_connect || n->data.nr == SYS_landlock_restrict_self;

	if (b->handover.stays && (++b->handover.others > OTHERS_MAX || makes))
		handover_leave(b);
}

int call_hand_over(const struct call *c, int fd, bool cloexec)
{
	struct broker *b = c->b;
	struct cpus own _unfilled_, here _unfilled_;
	/* of the first thread: what is remembered is about that */
	bool first = !domain_is_entered(c);
	int r;

	/* in two steps only where no signal can come between them */
	if (!b->sync_wake || !b->plan->wait_killable || !choose(&b->handover) ||
	    !keep_here(c, &own, &here)) {
		if (first)
			handover_leave(b);
		return call_send_fd(c, fd, cloexec);
	}
	if (first)
		stay(b, &here);
	b->handover.others = 0;
	r = add(c, fd, cloexec, 0);
	if (first && b->handover.phase == HANDOVER_CALM)
		handover_leave(b);
	let_go(c, &own, &here);
	return r;
}
