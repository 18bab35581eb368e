/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Holding the limits of a run.
 *
 * What the kernel holds it holds from the first instruction of the command; here we only notice.
 * What is sampled is looked at so often that nothing much can pass between two looks: the
 * pause is the time in which the room that is left could be filled at full speed. A command that is
 * far from its limits is seldom looked at, and a short one never.
 *
 * A sample that is over the limit for memory is repeated with shared pages counted once, and
 * again a moment later: the first sum counts what is shared after a fork() twice, and during a
 * vfork() even the second does.
 */
#include "supervise/limit.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/sys.h"
#include "sandbox/native/native.h"
#include "supervise/cgroup.h"
#include "supervise/limit_internal.h"
#include "supervise/usage.h"

#define PAUSE_LEAST_MS 2
#define PAUSE_MOST_MS 100
#define PAUSE_CONFIRM_MS 3
#define PAUSE_GROUP_MS 50
#define PAUSE_UNHELD_MS                                                                            \
	10 /* processes that only samples hold: a bomb makes hundreds in that time */
/* What one processor fills at most in a millisecond. */
#define MEMORY_PER_MS ((uint64_t)4 << 20)
#define DISK_PER_MS ((uint64_t)2 << 20)
/* A look may take this part of the time, 1/n, whatever the pause should be. */
#define LOOK_SHARE 20

/* Init and the broker are counted in the user namespace too; one more, to see that it is too many. */
#define PROCESSES_OF_OURS 3
/* Below these the kernel does not begin anew when it has given out all numbers of processes. */
#define RESERVED_NUMBERS 300
#define FILE_SIZE_ROOM ((uint64_t)16 << 20)

struct limits {
	const struct policy_limits *set;
	bool may_sample; /* what systemd refuses may be held less strictly */
	enum limit_means means[LIMIT_MAX_];
	const char *note;
	struct sandbox_limits inside;
	struct cgroup *cgroup;
	bool sampling;
	uint64_t started; /* on the whole machine, before; 0 = nobody counts */
	bool bare; /* no namespaces to count by */
	struct usage_source source;
	uint64_t *performed; /* by the broker; shared with it */
	struct limits_peak peak;
	uint64_t next_ms; /* 0 = no more looks */
	bool suspect, sure; /* the last look, the last two looks were over the limit for memory */
	uint64_t kills, refusals; /* by the cgroup */
	uint64_t written; /* to files, the most that was seen */
	uint64_t own_scratch, own_files; /* of our set-up */
	unsigned processors;
};

/* All that we may use: cheaper to ask for than all that there are. */
static unsigned count_processors(void)
{
	cpu_set_t all;

	return sched_getaffinity(0, sizeof(all), &all) < 0 ? 1 : (unsigned)CPU_COUNT(&all);
}

/* --- before the start -------------------------------------------------------------- */

/* Whole processors, chosen by chance: else all sandboxes would share the first. */
static int pin(struct limits *l, struct error *e)
{
	unsigned wanted = (unsigned)l->set->cpu, n, skip = 0;
	cpu_set_t all;

	wanted +=
		wanted < l->set->cpu; /* a part of one is refused, or warned about, by the caller */
	if (sched_getaffinity(0, sizeof(all), &all) < 0)
		return error_set(e, errno, "limits.cpu: cannot list processors: %s",
				 strerror(errno));
	n = (unsigned)CPU_COUNT(&all);
	l->inside.pinned = true; /* also when all may be used: they may become more */
	CPU_ZERO(&l->inside.cpus);
	(void)!getrandom(&skip, sizeof(skip), 0);
	skip %= n;
	for (unsigned i = 0, seen = 0; i < CPU_SETSIZE; i++) {
		if (!CPU_ISSET(i, &all))
			continue;
		if ((seen + n - skip) % n < wanted)
			CPU_SET(i, &l->inside.cpus);
		seen++;
	}
	return 0;
}

static void set_inside(struct limits *l, bool measure)
{
	struct sandbox_limits *in = &l->inside;
	enum limit_means memory = l->means[LIMIT_MEMORY];

	in->groups = l->cgroup != NULL;
	in->born_in = l->cgroup ? cgroup_born_in(l->cgroup) : -1;
	in->measured = l->sampling && !l->bare;
	in->first_victim = in->no_memfd = memory == MEANS_SAMPLED;
	/* with a group of its own the kernel counts, and the dead one would count too */
	in->counted = measure && !l->bare && !limit_means_is_cgroup(l->means[LIMIT_PIDS]);
	in->last_look = memory == MEANS_SCOPE || l->means[LIMIT_PIDS] == MEANS_SCOPE || in->counted;
	/* for root the kernel does not count */
	if (l->set->pids)
		in->processes = l->set->pids + PROCESSES_OF_OURS;
	in->no_fallocate = l->set->disk > 0;
	if (l->set->disk)
		in->file_size = l->set->disk + l->set->disk / 8 + FILE_SIZE_ROOM;
}

static int make_groups(struct limits *l, const struct cgroup_places *places, struct error *e)
{
	struct cgroup_limits wanted = {
		.memory = limit_means_is_cgroup(l->means[LIMIT_MEMORY]) ? l->set->memory : 0,
		.pids = limit_means_is_cgroup(l->means[LIMIT_PIDS]) ? l->set->pids : 0,
		.cpu = limit_means_is_cgroup(l->means[LIMIT_CPU]) ? l->set->cpu : 0,
	};

	if (!wanted.memory && !wanted.pids && !(wanted.cpu > 0))
		return 0;
	return cgroup_new("", places, &wanted, &l->cgroup, e);
}

static bool must_sample(const struct limits *l)
{
	for (size_t i = 0; i < LIMIT_MAX_; i++) {
		if (l->means[i] == MEANS_SAMPLED || l->means[i] == MEANS_SCOPE ||
		    l->means[i] == MEANS_RLIMIT)
			return true;
	}
	return l->set->disk > 0;
}

static int prepare(struct limits *l, struct arena *a, const struct policy *p, struct error *e)
{
	struct cgroup_places places = { 0 };
	const bool wanted[] = { [CGROUP_MEMORY] = l->set->memory > 0,
				[CGROUP_PIDS] = l->set->pids > 0,
				[CGROUP_CPU] = l->set->cpu > 0 };
	int r;

	if (wanted[CGROUP_MEMORY] || wanted[CGROUP_PIDS] || wanted[CGROUP_CPU])
		cgroup_find(a, "", wanted, &places);
	r = limits_choose(a, p, &places, l->means, &l->note, e);
	/* who forks faster than we look cannot be ended where there is no namespace to end */
	if (r == 0 && l->bare && l->means[LIMIT_PIDS] == MEANS_SAMPLED)
		r = error_set(e, ENOTSUP,
			      "limits.pids cannot be held here for root by the landlock backend, "
			      "which needs a cgroup for it (ambit check says what is missing): run "
			      "as another user, or without this limit");
	if (r == 0)
		r = make_groups(l, &places, e);
	if (r == 0 && l->means[LIMIT_CPU] == MEANS_AFFINITY)
		r = pin(l, e);
	if (r == 0 && l->set->disk) {
		l->performed = mmap(NULL, sizeof(*l->performed), PROT_READ | PROT_WRITE,
				    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
		if (l->performed == MAP_FAILED)
			r = error_set(e, errno, "limits.disk: %s", strerror(errno));
	}
	return r;
}

int limits_new(struct arena *a, const struct policy *p, const struct limits_how *how,
	       struct limits **ret, struct error *e)
{
	const struct policy_limits *set = &p->limits;
	struct limits *l;
	int r;

	*ret = NULL;
	if (!how->measure && !set->memory && !set->pids && !set->disk && !(set->cpu > 0))
		return 0;
	l = calloc(1, sizeof(*l));
	if (!l)
		abort();
	*l = (struct limits){ .set = set,
			      .bare = how->bare,
			      .may_sample = p->fallback == FALLBACK_WARN,
			      .source = USAGE_SOURCE_INIT,
			      .processors = count_processors() };
	r = prepare(l, a, p, e);
	if (r < 0) {
		(void)limits_free(l); /* no guard yet */
		return r;
	}
	l->sampling = how->measure || must_sample(l);
	set_inside(l, how->measure);
	l->started = l->inside.counted ? usage_started() : 0;
	*ret = l;
	return 0;
}

const char *limits_note(const struct limits *l)
{
	return l->note;
}

const struct sandbox_limits *limits_inside(const struct limits *l)
{
	return &l->inside;
}

uint64_t *limits_performed(struct limits *l)
{
	return l->performed;
}

/* --- while it runs -------------------------------------------------------------------- */

/* The pause that the room left allows; a look may not take more than its share of the time. */
static void plan_next(struct limits *l, uint64_t memory, uint64_t disk, uint64_t cost_us)
{
	const struct policy_limits *set = l->set;
	uint64_t pause = PAUSE_MOST_MS, dear = cost_us * LOOK_SHARE / 1000, ms;

	if (l->means[LIMIT_MEMORY] == MEANS_SAMPLED) {
		ms = (set->memory > memory ? set->memory - memory : 0) /
		     (MEMORY_PER_MS * l->processors);
		pause = ms < pause ? ms : pause;
	}
	if (set->disk) {
		ms = (set->disk > disk ? set->disk - disk : 0) / (DISK_PER_MS * l->processors);
		pause = ms < pause ? ms : pause;
	}
	if (l->means[LIMIT_PIDS] == MEANS_SAMPLED && pause > PAUSE_UNHELD_MS)
		pause = PAUSE_UNHELD_MS;
	if (pause < dear)
		pause = dear < PAUSE_MOST_MS ? dear : PAUSE_MOST_MS;
	if (l->suspect)
		pause = PAUSE_CONFIRM_MS;
	l->next_ms = sys_now_ms() + (pause < PAUSE_LEAST_MS ? PAUSE_LEAST_MS : pause);
}

/* Version 1 wakes nobody: its counters are looked at now and then. */
static void plan_group_look(struct limits *l)
{
	if (l->cgroup && cgroup_fd(l->cgroup) < 0 && !l->sampling)
		l->next_ms = sys_now_ms() + PAUSE_GROUP_MS;
}

/* systemd refused: with --fallback warn what it should have held is sampled instead. */
static int do_without_scope(struct limits *l, int control, struct error *e)
{
	if (!l->may_sample)
		return error_wrap(e, "limits: with --fallback warn they would be held less "
				     "strictly");
	for (size_t i = 0; i < LIMIT_MAX_; i++) {
		if (l->means[i] == MEANS_CGROUP1 || l->means[i] == MEANS_CGROUP2 ||
		    (l->means[i] == MEANS_SCOPE && i == LIMIT_CPU))
			return error_wrap(e, "limits");
		if (l->means[i] == MEANS_SCOPE)
			l->means[i] = MEANS_SAMPLED;
	}
	(void)cgroup_free(TAKE_PTR(l->cgroup)); /* a scope has no guard */
	(void)!send(control, "", 1, MSG_NOSIGNAL); /* it waits for the end of the groups */
	return 0;
}

int limits_start(struct limits *l, const struct plan *plan, const struct sandbox_child *child,
		 struct error *e)
{
	int r = l->cgroup ? cgroup_start(l->cgroup, child, e) : 0;

	if (r < 0)
		r = do_without_scope(l, child->control, e);
	if (r < 0)
		return r;
	if (l->sampling && l->bare && child->init > 0)
		r = usage_watch_tree(&l->source, child->init);
	if (r < 0)
		return error_set(e, -r, "cannot measure what the command uses: /proc: %s",
				 strerror(-r));
	if (l->sampling) {
		usage_begin(&l->source, plan, l->set->disk > 0);
		plan_next(l, 0, 0, 0);
	}
	plan_group_look(l);
	return 0;
}

void limits_restart(struct limits *l)
{
	if (l->sampling)
		plan_next(l, 0, 0, 0);
	plan_group_look(l);
}

int limits_take(struct limits *l, int *fds)
{
	struct usage u = { 0 };

	if (fds[NATIVE_PROC] < 0 || fds[NATIVE_SCRATCH] < 0)
		return -EMFILE;
	l->source.proc = fdopendir(fds[NATIVE_PROC]);
	if (!l->source.proc)
		return -errno;
	fds[NATIVE_PROC] = -1; /* belongs to the stream now */
	l->source.scratch = TAKE_FD(fds[NATIVE_SCRATCH]);
	l->source.shm = TAKE_FD(fds[NATIVE_SHM]);
	/* what our own set-up has put there is not the command's */
	usage_look_at_files(&l->source, &u);
	l->own_scratch = u.scratch;
	l->own_files = u.scratch_files;
	return 0;
}

int limits_take_private(struct limits *l, int fd)
{
	struct usage_source *s = &l->source;

	if (s->n_more == ARRAY_LEN(s->more))
		return -E2BIG;
	s->more[s->n_more++] = fd;
	return 0;
}

bool limits_is_sampling(const struct limits *l)
{
	return l->sampling;
}

int limits_fd(const struct limits *l)
{
	return l->cgroup ? cgroup_fd(l->cgroup) : -1;
}

int limits_wait_ms(const struct limits *l)
{
	uint64_t now = sys_now_ms();

	if (!l || !l->next_ms)
		return -1;
	return l->next_ms > now ? (int)(l->next_ms - now) : 0;
}

static void raise_peak(uint64_t *peak, uint64_t value)
{
	if (value > *peak)
		*peak = value;
}

/* What of the sum is sure to be this sandbox's memory. */
static uint64_t judge_memory(struct limits *l, const struct usage *u)
{
	uint64_t limit = l->means[LIMIT_MEMORY] == MEANS_SAMPLED ? l->set->memory : 0, exact;

	if (!limit || u->memory <= limit) {
		l->suspect = false;
		return u->memory;
	}
	exact = usage_memory(&l->source, u);
	l->sure = l->suspect && exact > limit;
	l->suspect = exact > limit;
	return exact;
}

/*
 * Private files for certain. Of the rest what the processes say they wrote, but no more than the
 * disks have filled: what was written over or deleted again does not count.
 */
static uint64_t judge_disk(struct limits *l, const struct usage *u)
{
	uint64_t private = u->scratch - (u->scratch < l->own_scratch ? u->scratch : l->own_scratch);
	uint64_t files = u->scratch_files > l->own_files ? u->scratch_files - l->own_files : 0;
	uint64_t made = __atomic_load_n(l->performed, __ATOMIC_RELAXED) * USAGE_FILE_BYTES;
	uint64_t taken = usage_disk_taken(&l->source);

	raise_peak(&l->written, u->written);
	made += l->written; /* at most: not every call makes a file */
	return private + files * USAGE_FILE_BYTES + (made < taken ? made : taken);
}

static int sample(struct limits *l)
{
	const struct policy_limits *set = l->set;
	uint64_t began = sys_now_ns() / 1000, memory, disk = 0;
	struct usage u;

	usage_look(&l->source, set->disk > 0, &u);
	memory = judge_memory(l, &u);
	if (set->disk)
		disk = judge_disk(l, &u);
	raise_peak(&l->peak.pids, u.pids);
	if (!limit_means_is_cgroup(l->means[LIMIT_MEMORY]))
		raise_peak(&l->peak.memory, memory); /* else the kernel knows better */
	raise_peak(&l->peak.disk, disk);
	plan_next(l, memory, disk, sys_now_ns() / 1000 - began);
	if (l->sure)
		return LIMIT_MEMORY;
	if ((l->means[LIMIT_PIDS] == MEANS_RLIMIT || l->means[LIMIT_PIDS] == MEANS_SAMPLED) &&
	    u.pids > set->pids)
		return LIMIT_PIDS;
	return set->disk && disk >= set->disk ? LIMIT_DISK : -1;
}

static void read_groups(struct limits *l)
{
	if (!l->cgroup)
		return;
	raise_peak(&l->kills, cgroup_memory_kills(l->cgroup));
	raise_peak(&l->refusals, cgroup_fork_refusals(l->cgroup));
}

static void read_peaks(struct limits *l)
{
	uint64_t memory, pids;

	if (!l->cgroup)
		return;
	memory = cgroup_memory_peak(l->cgroup);
	pids = cgroup_pids_peak(l->cgroup);
	raise_peak(&l->peak.memory, memory);
	raise_peak(&l->peak.pids, pids);
	l->peak.memory_exact |= memory > 0;
	l->peak.pids_exact |= pids > 0;
}

/* The numbers inside tell how many there were, unless the kernel may have begun anew with them. */
static void count_tasks(struct limits *l)
{
	uint64_t now = usage_started();

	if (l->started && now >= l->started &&
	    now - l->started + RESERVED_NUMBERS < usage_numbers())
		l->peak.tasks = usage_tasks(&l->source);
}

bool limits_remember(struct limits *l)
{
	if (!l || !l->inside.last_look)
		return false;
	read_groups(l);
	read_peaks(l);
	if (l->inside.counted)
		count_tasks(l);
	return true;
}

static int look_at_groups(struct limits *l)
{
	plan_group_look(l);
	read_groups(l);
	return l->kills ? LIMIT_MEMORY : l->refusals ? LIMIT_PIDS : -1;
}

int limits_look(struct limits *l)
{
	int hit = look_at_groups(l);

	if (hit < 0 && l->sampling && limits_wait_ms(l) == 0) {
		if (l->source.proc)
			hit = sample(l);
		else
			plan_next(l, 0, 0, 0); /* it is still being set up */
	}
	if (hit >= 0)
		l->next_ms = 0;
	return hit;
}

int limits_look_last(struct limits *l, int status)
{
	int hit = look_at_groups(l);
	struct usage u = { 0 };

	l->next_ms = 0;
	read_peaks(l);
	if (hit >= 0 || !l->set->disk || (l->source.scratch < 0 && !l->bare))
		return hit;
	usage_look_at_files(&l->source, &u);
	raise_peak(&l->peak.disk, judge_disk(l, &u));
	/* or by RLIMIT_FSIZE, as a process or as a shell tells it */
	return l->peak.disk >= l->set->disk ||
			       (WIFSIGNALED(status) ? WTERMSIG(status) == SIGXFSZ
						    : WEXITSTATUS(status) == 128 + SIGXFSZ)
		       ? LIMIT_DISK
		       : -1;
}

const struct limits_peak *limits_peak(const struct limits *l)
{
	return &l->peak;
}

const char *limits_means(const struct limits *l, const struct policy_limits *set, enum limit which)
{
	if (!limit_is_set(set, which))
		return NULL;
	if (l && l->bare && l->means[which] == MEANS_RLIMIT)
		return "RLIMIT_NPROC, counted from the user's processes at the start";
	return limit_means_text(l                        ? l->means[which]
				: which == LIMIT_TIMEOUT ? MEANS_CLOCK
							 : MEANS_COUNTED);
}

pid_t limits_free(struct limits *l)
{
	pid_t guard;

	if (!l)
		return 0;
	guard = cgroup_free(l->cgroup);
	usage_end(&l->source);
	if (l->performed && l->performed != MAP_FAILED)
		(void)munmap(l->performed, sizeof(*l->performed));
	free(l);
	return guard;
}
