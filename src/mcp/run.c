/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A run asks the server's policy for less, never for more: its own policy is a copy in which
 * rules are taken away. The output is read as it comes, however fast; past the limit everything
 * inside is ended. Nothing that the command prints is looked at here.
 */
#include "mcp/run.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/sys.h"
#include "mcp/language.h"
#include "mcp/server.h"

#define READ_SIZE 16384
#define READS_PER_STEP 16 /* so that one loud command does not silence the others */
#define KEPT_RUNS_MAX 32
#define KEPT_BYTES_MAX ((uint64_t)256 << 20)

struct run *run_new(struct server *s)
{
	struct run *run = calloc(1, sizeof(*run));

	if (!run)
		abort();
	(void)snprintf(run->id, sizeof(run->id), "r%" PRIu64, ++s->last_run);
	run->a = arena_new();
	run->work = arena_new();
	run->out[0] = run->out[1] = -1;
	run->unboxed = (struct unboxed)UNBOXED_INIT;
	run->report.a = run->a;
	for (size_t i = 0; i < ARRAY_LEN(run->spool); i++)
		run->spool[i] = (struct spool)SPOOL_INIT;
	run->sandboxed = !s->unsandboxed;
	run->next = s->runs;
	s->runs = run;
	return run;
}

int run_stage(struct server *s, struct run *run, const char **ret, struct error *e)
{
	(void)s;
	*ret = LANGUAGE_STAGE;
	return run->sandboxed ? 0 : unboxed_stage(run->work, &run->unboxed, ret, e);
}

/* --- the policy of one run --------------------------------------------------------------- */

/* What could be written can still be read. */
static void take_writing(struct policy *p)
{
	struct path_rules *rules = &p->fs.rules;

	for (size_t i = 0; i < rules->n; i++) {
		if (rules->v[i].access == ACCESS_WRITE && rules->v[i].verdict == VERDICT_ALLOW)
			rules->v[i].access = ACCESS_READ;
	}
	p->fs.tmp = TMP_PRIVATE;
}

static void take_network(struct policy *p)
{
	struct policy_network *n = &p->network;

	n->mode = NETWORK_NONE;
	n->allowed = (struct host_rules){ 0 };
	n->host_ports = n->publish = (struct port_rules){ 0 };
	n->unix_sockets = n->unix_links = (struct text_rules){ 0 };
	n->allow_all_unix_sockets = false;
}

static void set_variables(struct arena *a, const struct run_spec *spec, struct policy *p)
{
	struct env_settings *set = &p->env.set;
	struct env_setting *v = arena_array(a, set->n + spec->n_env, sizeof(*v));

	if (set->n)
		memcpy(v, set->v, set->n * sizeof(*v));
	for (size_t i = 0; i < spec->n_env; i++) {
		const char *eq = strchr(spec->env[i], '=');

		v[set->n + i] = (struct env_setting){
			.name = arena_strndup(a, spec->env[i], (size_t)(eq - spec->env[i])),
			.value = arena_strdup(a, eq + 1),
			.origin = { .layer = LAYER_OPTION, .name = "env" },
		};
	}
	set->v = v;
	set->n += spec->n_env;
}

void run_policy(const struct server *s, struct arena *a, const struct run_spec *spec,
		struct policy *ret)
{
	*ret = *s->req->policy;
	policy_look_again(s->req->policy, a, &path_host_view, &ret->fs.rules);
	ret->cwd = arena_strdup(a, spec->cwd);
	if (spec->no_network)
		take_network(ret);
	if (spec->read_only)
		take_writing(ret);
	if (spec->n_env)
		set_variables(a, spec, ret);
	ret->limits.output = 0; /* held here, where the output is */
}

/*
 * What the server's policy allows and this call did not want is the call's own doing: no option
 * of the server's would help, and the model can ask again.
 */
static const char *own_wish(const struct run *run, const struct report_entry *entry)
{
	const struct policy_network *net = &run->whole->network;
	struct decision d;

	if (run->read_only && strcmp(entry->rule, "filesystem.allowWrite") == 0) {
		policy_decide_path(run->whole, ACCESS_WRITE, entry->target, &d);
		return d.verdict == VERDICT_ALLOW
			       ? "this call asked to be read-only (readOnly: true)"
			       : NULL;
	}
	if (run->no_network &&
	    ((strcmp(entry->kind, "connect") == 0 && net->mode != NETWORK_NONE) ||
	     (strcmp(entry->kind, "unix") == 0 &&
	      (net->allow_all_unix_sockets || net->unix_sockets.n))))
		return "this call asked for no network (network: false)";
	return NULL;
}

static void reword(void *ctx, struct report_entry *entry)
{
	const char *wish = own_wish(ctx, entry);

	if (!wish)
		return;
	entry->reason = wish;
	entry->source = "the call";
	entry->hint = NULL;
}

/* --- starting --------------------------------------------------------------------------- */

/* The command's standard input: a file in memory that only it can read, or nothing. */
static int open_input(const struct run_spec *spec, struct error *e)
{
	_cleanup_fd_ int fd = -1;
	int r;

	if (!spec->input)
		fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	else
		fd = memfd_create("stdin", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return error_set(e, errno, "cannot make the standard input: %s", strerror(errno));
	if (spec->input) {
		r = fd_write_all(fd, spec->input, spec->input_len);
		if (r < 0 || lseek(fd, 0, SEEK_SET) < 0)
			return error_set(e, r < 0 ? -r : errno, "cannot write the standard input");
		(void)fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK);
	}
	return TAKE_FD(fd);
}

static int open_pipes(struct run *run, int ret_far[2], struct error *e)
{
	for (size_t i = 0; i < 2; i++) {
		int ends[2];

		if (pipe2(ends, O_CLOEXEC) < 0)
			return error_set(e, errno, "cannot make a pipe: %s", strerror(errno));
		run->out[i] = ends[0];
		ret_far[i] = ends[1];
		(void)fcntl(ends[0], F_SETFL, O_NONBLOCK);
	}
	return 0;
}

void run_take_note(void *server, const char *text)
{
	server_note(server, text);
}

static const struct session_hooks hooks = { .note = run_take_note };

void run_request(struct server *s, struct session_request *ret)
{
	ret->environ_in = s->req->environ_in;
	ret->audit = s->req->audit;
	ret->proxy_program = s->req->proxy_program;
	ret->egress = s->egress;
	ret->report_reads = s->req->report_reads;
	ret->calls_soon = true; /* a shell opens its terminal, an interpreter its cache */
	ret->mask = s->command_mask;
	ret->ctx = s;
}

static int start_confined(struct server *s, struct run *run, const struct run_spec *spec,
			  const int stdio[3], struct error *e)
{
	struct session_request req = {
		.policy = &run->policy,
		.argv = spec->argv,
		.report = &run->report,
		.files = spec->files,
		.n_files = spec->n_files,
		.stdio = { stdio[0], stdio[1], stdio[2] },
		.tty = -1,
		.hooks = &hooks,
	};

	run_request(s, &req);
	/* what asks for less, or has something put into it, is made for the call */
	if (run->sandboxed && !spec->no_network && !spec->read_only && !spec->n_files &&
	    ready_take(s, run, &req))
		return 0;
	return run->sandboxed ? session_start(&req, &run->session, e)
			      : unboxed_start(&run->unboxed, &req, e);
}

static void close_outputs(struct run *run)
{
	for (size_t i = 0; i < 2; i++)
		fd_close(TAKE_FD(run->out[i]));
}

void run_start(struct server *s, struct run *run, const struct run_spec *spec)
{
	_cleanup_fd_ int in = -1, far_out = -1, far_err = -1;
	int far[2] = { -1, -1 };
	int r;

	run->label = arena_strdup(run->a, spec->label);
	run->language = spec->language;
	run->code = spec->n_files ? arena_strdup(run->work, spec->files[0].text) : NULL;
	run->started_ms = sys_now_ms();
	if (spec->timeout_ms)
		run->deadline_ms = run->started_ms + spec->timeout_ms;
	run_policy(s, run->work, spec, &run->policy);
	run->whole = s->req->policy;
	run->report.reword = reword;
	run->report.ctx = run;
	run->no_network = spec->no_network;
	run->read_only = spec->read_only;
	run->output_limit =
		s->req->policy->limits.output ? s->req->policy->limits.output : RUN_OUTPUT_DEFAULT;
	r = open_pipes(run, far, &run->failure);
	far_out = far[0];
	far_err = far[1];
	if (r == 0)
		r = in = open_input(spec, &run->failure);
	if (r >= 0) {
		const int stdio[3] = { in, far_out, far_err };

		r = start_confined(s, run, spec, stdio, &run->failure);
	}
	run->state = r < 0 ? RUN_ENDED : RUN_RUNNING;
	if (r >= 0)
		return;
	run->failure.code = -r;
	close_outputs(run);
	arena_free(TAKE_PTR(run->work));
}

/* --- while it runs ------------------------------------------------------------------------ */

size_t run_poll(struct run *run, struct pollfd *ret)
{
	size_t n = 0;

	/* those that are only kept are not written to: their pages are shared with children */
	if (run->state != RUN_RUNNING)
		return 0;
	run->polled = ret;
	ret[n++] =
		(struct pollfd){ .fd = run->session ? session_fd(run->session) : run->unboxed.pidfd,
				 .events = POLLIN };
	for (size_t i = 0; i < 2; i++) {
		if (run->out[i] >= 0)
			ret[n++] = (struct pollfd){ .fd = run->out[i], .events = POLLIN };
	}
	return n;
}

int run_wait_ms(const struct run *run, uint64_t now)
{
	int wait = -1;

	if (run->state != RUN_RUNNING)
		return -1;
	if (run->session)
		wait = session_wait_ms(run->session);
	if (run->deadline_ms) {
		uint64_t left = run->deadline_ms > now ? run->deadline_ms - now : 0;

		left = left < 60000 ? left : 60000;
		if (wait < 0 || left < (uint64_t)wait)
			wait = (int)left;
	}
	return wait;
}

/* Read what is there; true when there may be more. */
static bool read_some(struct server *s, struct run *run, size_t which)
{
	char data[READ_SIZE];
	ssize_t n;

	if (run->out[which] < 0)
		return false;
	n = read(run->out[which], data, sizeof(data));
	if (n > 0 && run->stop == RUN_STOP_OUTPUT)
		return true; /* enough is enough */
	if (n > 0) {
		if (spool_append(&run->spool[which], s->req->spool_dir, data, (size_t)n) < 0) {
			run->lost = true;
			run_stop(run, RUN_STOP_OUTPUT);
		}
		if (run_bytes(run) > run->output_limit)
			run_stop(run, RUN_STOP_OUTPUT);
		return true;
	}
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	fd_close(TAKE_FD(run->out[which]));
	return false;
}

static void read_output(struct server *s, struct run *run, unsigned reads)
{
	for (size_t which = 0; which < 2; which++) {
		for (unsigned i = 0; i < reads && read_some(s, run, which); i++)
			;
	}
}

static bool has_ended(struct run *run)
{
	struct pollfd end = { .fd = run->unboxed.pidfd, .events = POLLIN };

	return run->session ? session_step(run->session) : poll(&end, 1, 0) > 0;
}

static void remember_remains(struct server *s, pid_t pid)
{
	for (size_t i = 0; i < ARRAY_LEN(s->remains); i++) {
		if (s->remains[i] > 0)
			continue;
		s->remains[i] = pid;
		return;
	}
	(void)waitpid(pid, NULL, 0); /* as many as can be at a time are leaving: wait for one */
}

void run_free_session(struct server *s, struct session *session)
{
	pid_t remains[SESSION_REMAINS_MAX_] = { 0 };

	session_free(session, s ? remains : NULL);
	for (size_t i = 0; i < ARRAY_LEN(remains); i++) {
		if (remains[i] > 0)
			remember_remains(s, remains[i]);
	}
}

/* What the session had open, and what its plan was made of; after the answer was sent. */
static void release(struct server *s, struct run *run)
{
	run_free_session(s, TAKE_PTR(run->session));
	arena_free(TAKE_PTR(run->work));
	arena_free(TAKE_PTR(run->kept));
}

void runs_tidy(struct server *s)
{
	for (struct run *run = s->runs; run; run = run->next) {
		if (run->state == RUN_ENDED && run->work)
			release(s, run);
	}
}

static void finish(struct server *s, struct run *run)
{
	int r = 0;

	/* every writer is gone: what is in the pipes is all, at most what a pipe holds */
	read_output(s, run, 1024);
	if (run->session)
		r = session_end(run->session, &run->result, &run->failure);
	else
		unboxed_end(&run->unboxed, &run->result);
	if (r < 0)
		run->failure.code = -r;
	if (run->result.timed_out)
		run->stop = RUN_STOP_TIMEOUT;
	if (run->sandboxed && r == 0 && !s->req->report_reads)
		denied_by_output(run);
	close_outputs(run);
	run->state = RUN_ENDED;
	run->code = NULL;
}

/* Is there something on one of its outputs? */
static bool has_output(const struct run *run)
{
	size_t n = 1;

	for (size_t i = 0; run->polled && i < 2; i++) {
		if (run->out[i] >= 0 && run->polled[n++].revents)
			return true;
	}
	return false;
}

void run_step(struct server *s, struct run *run, uint64_t now)
{
	if (run->state != RUN_RUNNING)
		return;
	if (has_output(run))
		read_output(s, run, READS_PER_STEP);
	if (run->deadline_ms && now >= run->deadline_ms && run->stop == RUN_STOP_NONE)
		run_stop(run, RUN_STOP_TIMEOUT);
	if ((!run->polled || run->polled[0].revents || run_wait_ms(run, now) == 0) &&
	    has_ended(run))
		finish(s, run);
	run->polled = NULL;
}

void run_stop(struct run *run, enum run_stop why)
{
	if (run->state != RUN_RUNNING)
		return;
	if (run->stop == RUN_STOP_NONE)
		run->stop = why;
	run->deadline_ms = 0;
	if (run->session)
		session_kill(run->session);
	else
		unboxed_signal(&run->unboxed, SIGKILL);
}

void run_signal(struct run *run, int sig)
{
	if (run->state != RUN_RUNNING)
		return;
	if (run->session)
		session_signal(run->session, sig, true);
	else
		unboxed_signal(&run->unboxed, sig);
}

/* --- keeping ------------------------------------------------------------------------------ */

uint64_t run_bytes(const struct run *run)
{
	return run->spool[0].size + run->spool[1].size;
}

struct run *run_find(const struct server *s, const char *id)
{
	struct run *run = s->runs;

	while (run && strcmp(run->id, id) != 0)
		run = run->next;
	return run;
}

void run_forget_old(struct server *s)
{
	uint64_t bytes = 0;
	size_t n = 0;

	for (struct run **at = &s->runs; *at;) {
		struct run *run = *at;

		n++;
		bytes += run_bytes(run);
		if (run->state == RUN_ENDED && run->users == 0 && n > 1 &&
		    (n > KEPT_RUNS_MAX || bytes > KEPT_BYTES_MAX)) {
			*at = run->next;
			run_free(run);
		} else {
			at = &run->next;
		}
	}
}

void run_free(struct run *run)
{
	struct error e;

	if (run->session && run->state != RUN_ENDED)
		(void)session_end(run->session, &run->result, &e);
	release(NULL, run);
	unboxed_end(&run->unboxed, &run->result);
	close_outputs(run);
	for (size_t i = 0; i < ARRAY_LEN(run->spool); i++)
		spool_done(&run->spool[i]);
	arena_free(run->a);
	free(run);
}

const char *run_signal_name(int sig)
{
	static const char *const names[] = {
		[SIGHUP] = "SIGHUP",   [SIGINT] = "SIGINT",   [SIGQUIT] = "SIGQUIT",
		[SIGILL] = "SIGILL",   [SIGTRAP] = "SIGTRAP", [SIGABRT] = "SIGABRT",
		[SIGBUS] = "SIGBUS",   [SIGFPE] = "SIGFPE",   [SIGKILL] = "SIGKILL",
		[SIGUSR1] = "SIGUSR1", [SIGSEGV] = "SIGSEGV", [SIGUSR2] = "SIGUSR2",
		[SIGPIPE] = "SIGPIPE", [SIGALRM] = "SIGALRM", [SIGTERM] = "SIGTERM",
		[SIGXCPU] = "SIGXCPU", [SIGXFSZ] = "SIGXFSZ", [SIGSYS] = "SIGSYS",
	};
	const char *name = sig > 0 && sig < (int)ARRAY_LEN(names) ? names[sig] : NULL;

	return name ? name : "a signal";
}
