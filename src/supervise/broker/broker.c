/* SPDX-License-Identifier: Apache-2.0 */
#include "supervise/broker/broker.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/sys.h"
#include "base/text.h"
#include "policy/schema.h"
#include "supervise/broker/calls.h"
#include "supervise/broker/internal.h"

#ifndef SECCOMP_IOCTL_NOTIF_SET_FLAGS
#define SECCOMP_IOCTL_NOTIF_SET_FLAGS SECCOMP_IOW(4, __u64)
#endif
#define NOTIF_FD_SYNC_WAKE_UP 1ull
#define REPORT_PATIENCE_S 2
#define LEAVE_PAUSE_NS 2000000
#define DEFERRED_MAX (4u << 20) /* bytes: more names than a report lists */

/* Field of /proc/TID/status, e.g. the pid the command sees. */
static int inner_pid(const struct call *c)
{
	_cleanup_free_ char *status = NULL;
	const char *line, *last;
	char path[32];

	(void)snprintf(path, sizeof(path), "%d/status", c->tid);
	if (fd_read_file(c->b->proc, path, 1 << 16, &status, NULL) < 0)
		return 0;
	line = strstr(status, "\nNSpid:");
	if (!line)
		return 0;
	line++;
	last = line + strcspn(line, "\n");
	while (last > line && last[-1] != '\t' && last[-1] != ' ')
		last--;
	return (int)text_leading_u64(last);
}

static void describe(const struct call *c, int32_t *ret_pid, char *ret_process)
{
	_cleanup_free_ char *name = NULL;
	char path[32];

	*ret_pid = inner_pid(c);
	(void)snprintf(path, sizeof(path), "%d/comm", c->tid);
	memset(ret_process, 0, PROCESS_NAME_MAX);
	if (fd_read_file(c->b->proc, path, 64, &name, NULL) == 0)
		memcpy(ret_process, name, strnlen(name, PROCESS_NAME_MAX - 1));
	ret_process[strcspn(ret_process, "\n")] = '\0';
}

struct description {
	const struct call *c;
	int32_t *pid;
	char *process;
};

static int run_description(void *arg)
{
	const struct description *d = arg;

	describe(d->c, d->pid, d->process);
	return 0;
}

void call_describe(const struct call *c, int32_t *ret_pid, char *ret_process)
{
	(void)domain_errand(c, run_description, &(struct description){ c, ret_pid, ret_process });
}

static size_t report_size(const struct violation *v)
{
	return offsetof(struct violation, path) + strlen(v->path) + 1;
}

static void send_report(struct broker *b, const struct violation *v)
{
	bool waits = !b->behind || v->kind >= VIOLATION_LATER;

	/*
	 * A full socket loses the report, never the decision. A supervisor that is busy is waited
	 * for, one that is stopped once; what he does not hear of is counted. For what was let
	 * happen we wait each time: a flood of denials must not hide it.
	 */
	b->behind =
		send(b->reports, v, report_size(v), MSG_NOSIGNAL | (waits ? 0 : MSG_DONTWAIT)) < 0;
	if (b->behind)
		(void)!write(b->lost, &(uint64_t){ 1 }, sizeof(uint64_t));
}

void call_send(const struct call *c, struct violation *v, const char *path)
{
	struct broker *b = c->b;

	text_copy(v->path, sizeof(v->path), path);
	if (!c->defers) {
		call_describe(c, &v->pid, v->process);
		send_report(b, v);
	} else if (b->deferred.len + report_size(v) <= DEFERRED_MAX) {
		buf_append(&b->deferred, v, report_size(v));
	} else {
		(void)!write(b->lost, &(uint64_t){ 1 }, sizeof(uint64_t));
	}
}

void call_send_deferred(const struct call *c)
{
	struct buf *queue = &c->b->deferred;
	char process[PROCESS_NAME_MAX];
	struct violation v _unfilled_;
	int32_t pid;

	if (queue->len == 0)
		return;
	call_describe(c, &pid, process);
	for (size_t at = 0; at < queue->len; at += report_size(&v)) {
		const char *head = queue->data + at;

		memcpy(&v, head, offsetof(struct violation, path));
		text_copy(v.path, sizeof(v.path), head + offsetof(struct violation, path));
		v.pid = pid;
		memcpy(v.process, process, sizeof(process));
		send_report(c->b, &v);
	}
	buf_done(queue);
}

static void set_source(struct violation *v, const struct origin *o)
{
	_cleanup_arena_ struct arena *a = arena_new();

	(void)snprintf(v->source, sizeof(v->source), "%s", origin_text(a, o));
}

void call_set_source(struct violation *v, const char *key, const struct policy *p)
{
	set_source(v, &p->value_origin[setting_find(key)]);
}

void call_explain(enum violation_kind kind, const struct guard_answer *why, struct violation *ret)
{
	const struct protected_name *name =
		why->protected || why->rule ? why->protected : why->git_name;
	struct violation v = { .kind = (int32_t)kind };

	if (name) {
		(void)snprintf(v.rule, sizeof(v.rule), "protected name %s", name->pattern);
		set_source(&v, &name->origin);
	} else if (why->rule) {
		(void)snprintf(v.rule, sizeof(v.rule), "filesystem.denyWrite");
		set_source(&v, &why->rule->origin);
	} else {
		(void)snprintf(v.rule, sizeof(v.rule), "protected git %s",
			       why->git_config ? "configuration" : "directory");
		(void)snprintf(v.source, sizeof(v.source), "default");
	}
	(void)snprintf(v.reason, sizeof(v.reason), "%s", why->reason ? why->reason : "");
	*ret = v;
}

void call_report_outside(const struct call *c, enum violation_kind kind, const struct place *p)
{
	struct violation v _unfilled_;
	struct decision d;
	char path[PLACE_TEXT_MAX] _unfilled_;
	const struct plan *plan = c->b->plan;

	place_text(p, path);
	for (size_t i = 0; i < plan->n_writable; i++) {
		if (path_within(path, plan->writable[i]))
			return;
	}
	for (size_t i = 0; i < plan->n_grants; i++) {
		if (plan->grants[i].rights == GRANT_DEVICE &&
		    strcmp(path, plan->grants[i].path) == 0)
			return;
	}
	policy_decide_path(c->b->policy, ACCESS_WRITE, path, &d);
	if (d.verdict == VERDICT_ALLOW) {
		const struct held_path *held = plan_held_over(plan, path);

		if (!held)
			return;
		d.protected = held->name;
		d.reason = plan_held_reason(held);
	}
	v = (struct violation){ .kind = (int32_t)kind };
	if (d.protected) {
		call_explain(kind,
			     &(struct guard_answer){ .protected = d.protected, .reason = d.reason },
			     &v);
		call_send(c, &v, path);
		return;
	}
	(void)snprintf(v.rule, sizeof(v.rule), "filesystem.%s",
		       d.rule ? "denyWrite" : "allowWrite");
	if (d.rule)
		set_source(&v, &d.rule->origin);
	else
		(void)snprintf(v.source, sizeof(v.source), "default");
	(void)snprintf(v.reason, sizeof(v.reason), "%s", d.reason ? d.reason : "");
	call_send(c, &v, path);
}

void call_report_read(const struct call *c, const char *path, const struct path_rule *rule,
		      const char *reason)
{
	struct violation v = { .kind = VIOLATION_READ };

	text_copy(v.rule, sizeof(v.rule), "filesystem.denyRead");
	set_source(&v, &rule->origin);
	text_copy(v.reason, sizeof(v.reason), reason ? reason : "");
	call_send(c, &v, path);
}

void call_report_unix(const struct call *c, const char *path)
{
	struct violation v = { .kind = VIOLATION_UNIX };

	text_copy(v.rule, sizeof(v.rule), "network.allowUnixSockets");
	text_copy(v.source, sizeof(v.source), "default");
	text_copy(v.reason, sizeof(v.reason), "a socket of the host");
	call_send(c, &v, path);
}

void call_report_socket(const struct call *c, enum violation_kind kind, const char *path,
			const struct text_rule *named)
{
	struct violation v = { .kind = (int32_t)kind };

	text_copy(v.rule, sizeof(v.rule), "network.allowUnixSockets");
	set_source(&v, &named->origin);
	text_copy(v.reason, sizeof(v.reason),
		  "a socket of the host's would get to where connecting is allowed");
	call_send(c, &v, path);
}

void call_report_exec(const struct call *c, const struct place *p)
{
	struct violation v = { .kind = VIOLATION_EXEC };
	char path[PLACE_TEXT_MAX];

	text_copy(v.rule, sizeof(v.rule), "no_new_privs");
	text_copy(v.source, sizeof(v.source), "default");
	text_copy(v.reason, sizeof(v.reason), "it runs without the rights of its owner");
	place_text(p, path);
	call_send(c, &v, path);
}

/* CAP_SYS_PTRACE over the sandbox's processes, to read what they ask for; nothing else. */
static int keep_ptrace_only(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = { { 0 } };

	data[0].effective = data[0].permitted = 1u << CAP_SYS_PTRACE;
	for (unsigned long cap = 0; cap < 64; cap++) {
		if (cap != CAP_SYS_PTRACE && prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0)
			break;
	}
	return syscall(SYS_capset, &header, data) < 0 ? -errno : 0;
}

/* Take our place in the sandbox and give up what is not needed there. */
static int join(const struct broker_setup *s)
{
	if (setns(s->user_ns, CLONE_NEWUSER) < 0 || setns(s->mount_ns, CLONE_NEWNS) < 0)
		return -errno;
	return 0;
}

static int give_up(const struct broker *b)
{
	int r = keep_ptrace_only();

	if (r < 0)
		return r;
	/* joining cleared it, so late; the parent may be gone already */
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
		return -errno;
	if (getppid() != b->supervisor)
		return -ESRCH;
	(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	return 0;
}

static int settle(struct broker *b)
{
	b->root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (b->root < 0 || fchdir(b->root) < 0)
		return -errno;
	/* hold the bulk directories: who replaces one does not get its grant */
	for (size_t i = 0; i < b->plan->n_bulk; i++)
		b->bulk[i] = open(b->plan->bulk[i], O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return 0;
}

/* False when there is nothing more to serve: everybody inside is gone. */
static bool wait_for_call(const struct broker *b, int until)
{
	struct pollfd fds[] = { { .fd = b->listener, .events = POLLIN },
				{ .fd = until, .events = POLLIN } };

	if (until < 0)
		return true; /* the ioctl waits; the end of the supervisor is ours */
	while (poll(fds, ARRAY_LEN(fds), -1) < 0 && errno == EINTR)
		;
	return !fds[1].revents && !(fds[0].revents & (POLLHUP | POLLERR));
}

static void serve(struct broker *b, int until)
{
	struct seccomp_notif n;
	struct seccomp_notif_resp resp;
	struct pollfd ready = { .fd = b->listener, .events = POLLIN };

	while (wait_for_call(b, until)) {
		struct call c = { .b = b, .n = &n, .args = (const uint64_t *)n.data.args };
		int answer;

		memset(&n, 0, sizeof(n));
		if (ioctl(b->listener, SECCOMP_IOCTL_NOTIF_RECV, &n) < 0) {
			if (errno != EINTR && errno != ENOENT)
				return;
			/* a caller was killed before we looked, or (from Linux 6.11 on) all are
			 * gone; on older kernels the supervisor's end ends us */
			if (poll(&ready, 1, 0) > 0 && ready.revents & (POLLHUP | POLLERR))
				return;
			continue;
		}
		c.tid = (pid_t)n.pid;
		handover_turn(b, &n);
		answer = domains_answer(&c);
		if (b->performed && (answer != ANSWER_CONTINUE || call_may_make(&c)))
			(void)__atomic_fetch_add(b->performed, 1, __ATOMIC_RELAXED);
		if (answer == ANSWER_SENT)
			continue;
		resp = (struct seccomp_notif_resp){ .id = n.id };
		if (answer == ANSWER_CONTINUE)
			resp.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
		else if (answer < 0)
			resp.error = answer;
		else
			resp.val = answer;
		(void)ioctl(b->listener, SECCOMP_IOCTL_NOTIF_SEND, &resp);
	}
}

/* The supervisor's other descriptors are not the broker's: init's, the proxy's, its listeners. */
static void close_others(const struct broker_setup *s, int until)
{
	const int keep[] = { s->listener, s->user_ns,   s->mount_ns, s->reports,
			     s->lock,     s->inquiries, s->lost,     until };

	sys_close_all_but(STDERR_FILENO + 1, keep, ARRAY_LEN(keep));
}

static void fill(struct broker *b, const struct broker_setup *s, struct arena *a)
{
	const struct timeval patience = { .tv_sec = REPORT_PATIENCE_S };
	mode_t mask = umask(0); /* the command's is the same */

	(void)umask(mask);
	*b = (struct broker){
		.policy = s->policy,
		.plan = s->plan,
		.guard = guard_new(a, s->policy, s->plan),
		.initial_umask = mask,
		.own_umask = mask,
		.listener = s->listener,
		.reports = s->reports,
		.lost = s->lost,
		.performed = s->performed,
		.inquiries_fd = s->inquiries,
		.redirects = s->redirects,
		.learns = s->learns,
		.asks = s->asks,
		.lock = s->lock,
		.recent.parent = -1,
		.deferred = BUF_INIT(DEFERRED_MAX),
	};
	b->a = a;
	watch_prepare(b);
	b->inquiries = inquiries_new(b);
	b->scratch = arena_new();
	b->proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	tasks_start(&b->tasks);
	b->later = arena_array(a, LATER_MAX, sizeof(*b->later));
	b->before = arena_array(a, BEFORE_MAX, sizeof(*b->before));
	b->made = arena_array(a, MADE_MAX, sizeof(*b->made));
	b->taken = arena_array(a, s->plan->n_fresh + 1, sizeof(*b->taken));
	b->bulk = arena_alloc(a, (s->plan->n_bulk + 1) * sizeof(*b->bulk));
	(void)setsockopt(b->reports, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
}

/* Wake the caller on this CPU: three times faster where the kernel has it (6.6). */
static void prefer_sync_wake(struct broker *b)
{
	uint64_t sync = NOTIF_FD_SYNC_WAKE_UP;

	b->sync_wake = ioctl(b->listener, SECCOMP_IOCTL_NOTIF_SET_FLAGS, sync) == 0;
}

void broker_serve(const struct broker_setup *s, int until)
{
	_cleanup_arena_ struct arena *a = arena_new();
	struct broker b;

	close_others(s, until);
	(void)prctl(PR_SET_NAME, "ambit-broker", 0, 0, 0);
	fill(&b, s, a);
	if (b.proc < 0 || settle(&b) < 0)
		_exit(125);
	prefer_sync_wake(&b);
	serve(&b, until);
	arena_free(b.scratch);
}

static _Noreturn void broker_main(const struct broker_setup *s, pid_t supervisor)
{
	struct arena *a = arena_new();
	const struct rlimit no_core = { 0, 0 };
	struct broker b;

	close_others(s, -1);
	(void)prctl(PR_SET_NAME, "ambit-broker", 0, 0, 0);
	fill(&b, s, a);
	b.supervisor = supervisor;
	/* a stop key at the terminal must not stop us with the lock in our hands */
	(void)setpgid(0, 0);
	(void)setrlimit(RLIMIT_CORE, &no_core);
	if (b.proc < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 || getppid() != supervisor)
		_exit(125);
	if (join(s) < 0 || settle(&b) < 0 || give_up(&b) < 0)
		_exit(125); /* the supervisor sees its end of `reports` close and ends the run */
	prefer_sync_wake(&b);
	serve(&b, -1);
	/* nobody waits for us, but init, on this processor, has to tell that the command ended */
	(void)nanosleep(&(struct timespec){ .tv_nsec = LEAVE_PAUSE_NS }, NULL);
	_exit(0);
}

int broker_start(const struct broker_setup *setup, pid_t *ret_pid, struct error *e)
{
	pid_t supervisor = getpid(), pid = fork();

	if (pid < 0)
		return error_set(e, errno, "cannot start the broker: %s", strerror(errno));
	if (pid == 0)
		broker_main(setup, supervisor);
	*ret_pid = pid;
	return 0;
}
