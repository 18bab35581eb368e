/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A tools/call: arguments, runs, result. A call is a small machine that the loop steps; it owns
 * nothing that blocks, and ends in exactly one of three ways: replied, cancelled, or the server
 * goes.
 *
 * What a call may ask for is less than the server's policy (network, readOnly), a directory, an
 * environment, files that the program itself could write. There is no field that makes the
 * sandbox wider, and none that turns it off.
 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/path.h"
#include "base/sys.h"
#include "base/text.h"
#include "mcp/server.h"

#define BACKGROUND_GRACE_MS 100 /* a job that fails at once is told as such */
#define KILL_WAIT_MS 2000
#define PROGRESS_FIRST_MS 1000
#define PROGRESS_EVERY_MS 3000

static bool step_run(struct server *s, struct call *c, uint64_t now);
static bool step_batch(struct server *s, struct call *c, uint64_t now);
static bool step_output(struct server *s, struct call *c, uint64_t now);
static bool step_kill(struct server *s, struct call *c, uint64_t now);
static int begin_run(struct server *s, struct call *c, struct error *e);
static int begin_batch(struct server *s, struct call *c, struct error *e);
static int begin_job(struct server *s, struct call *c, struct error *e);

/* clang-format off */
static const struct tool tools[] = {
	{ "execute", "Run code in a sandbox",
	  "Run a program in an OS-level sandbox and return what it prints.",
	  TAKES_EXECUTE, true, begin_run, step_run, result_run, result_schema_run },
	{ "execute_file", "Run code over a file, in a sandbox",
	  "Run a program over the text of a file, in an OS-level sandbox: the code sees the file as "
	  "FILE_CONTENT, and only what it prints comes back. For files too long to read.",
	  TAKES_EXECUTE_FILE, true, begin_run, step_run, result_run, result_schema_run },
	{ "batch_execute", "Run several commands in sandboxes",
	  "Run several commands, each in an OS-level sandbox of its own, one after the other or in "
	  "parallel, and return their results in the order given; with queries, search their output.",
	  TAKES_BATCH, true, begin_batch, step_batch, result_batch, result_schema_batch },
	{ "job_output", "Read the output of a run",
	  "Read on in the output of a background job or of an earlier run, and see whether it runs.",
	  TAKES_OUTPUT, false, begin_job, step_output, result_output, result_schema_output },
	{ "job_kill", "End a background job",
	  "End a background job with all of its processes.",
	  TAKES_KILL, false, begin_job, step_kill, result_kill, result_schema_kill },
};
/* clang-format on */

/* --- the list --------------------------------------------------------------------------------- */

/* What a client may show or ask about; computed from what the sandbox allows. */
static void put_annotations(const struct server *s, const struct tool *t, struct json *j)
{
	const struct policy *p = s->req->policy;
	bool writes = false;

	for (size_t i = 0; i < p->fs.rules.n; i++)
		writes |= p->fs.rules.v[i].access == ACCESS_WRITE &&
			  p->fs.rules.v[i].verdict == VERDICT_ALLOW;
	writes |= s->unsandboxed != NULL;
	json_key(j, "annotations");
	json_begin_object(j);
	json_kstring(j, "title", t->title);
	json_kbool(j, "readOnlyHint", t->step == step_output || (t->runs && !writes));
	json_kbool(j, "destructiveHint", t->step == step_kill || (t->runs && writes));
	json_kbool(j, "idempotentHint", !t->runs);
	json_kbool(j, "openWorldHint",
		   t->runs && (s->unsandboxed || p->network.mode != NETWORK_NONE));
	json_end_object(j);
}

void tools_list(const struct server *s, struct json *j)
{
	_cleanup_arena_ struct arena *a = arena_new();
	const char *languages = languages_list(a, &s->languages);

	json_begin_array(j);
	for (size_t i = 0; i < ARRAY_LEN(tools); i++) {
		const struct tool *t = &tools[i];

		json_begin_object(j);
		json_kstring(j, "name", t->name);
		json_kstring(j, "title", t->title);
		json_kstring(j, "description",
			     t->runs ? arena_printf(a, "%s Languages here: %s.", t->description,
						    languages)
				     : t->description);
		json_key(j, "inputSchema");
		arguments_schema(j, t->takes, &s->languages);
		json_key(j, "outputSchema");
		t->schema(j);
		put_annotations(s, t, j);
		json_end_object(j);
	}
	json_end_array(j);
}

/* By name; the names of context-mode's tools are understood too. */
static const struct tool *find_tool(const struct json_span *name)
{
	for (size_t i = 0; i < ARRAY_LEN(tools); i++) {
		char other[32] = "ctx_";

		text_copy(other + 4, sizeof(other) - 4, tools[i].name);
		if (json_equals(name, tools[i].name) || json_equals(name, other))
			return &tools[i];
	}
	return NULL;
}

/* --- starting runs ----------------------------------------------------------------------------- */

/* What is hidden is neither there nor not there: an answer must not tell which names exist. */
static bool is_hidden(const struct server *s, struct arena *a, const char *path)
{
	struct view_entry at;
	struct decision d;

	if (s->unsandboxed)
		return false;
	path_host_view.look(&path_host_view, a, path, &at);
	policy_decide_path(s->req->policy, ACCESS_READ, at.real, &d);
	return d.verdict == VERDICT_DENY;
}

/* The directory as the kernel calls it. */
static int find_directory(const struct server *s, struct call *c, struct error *e)
{
	const char *given = c->args.cwd ? c->args.cwd : ".";
	const char *path = path_absolute(c->a, s->req->policy->cwd, given);
	char real[PATH_MAX];
	struct stat st;

	if (c->args.cwd && is_hidden(s, c->a, path))
		return error_set(e, EACCES, "cwd: %s is hidden from what runs here", path);
	if (!realpath(path, real) || stat(real, &st) < 0)
		return error_set(e, errno, "cwd: %s: %s", path, strerror(errno));
	if (!S_ISDIR(st.st_mode))
		return error_set(e, ENOTDIR, "cwd: %s is not a directory", path);
	c->cwd = arena_strdup(c->a, real);
	return 0;
}

static int check_language(const struct server *s, const struct language *l, struct error *e)
{
	_cleanup_arena_ struct arena *a = arena_new();

	if (language_if_found(&s->languages, l))
		return 0;
	return error_set(e, ENOENT,
			 "%s cannot be run here: %s is not installed. Languages here: %s",
			 language_name(l), language_wants(l), languages_list(a, &s->languages));
}

static void push_env(struct run *run, struct words *env, const char *text)
{
	*ARENA_PUSH(run->work, env->v, env->n) = arena_strdup(run->work, text);
}

/* What the language needs to find the project's own modules, and execute_file its file. */
static void add_environment(struct call *c, struct run *run, const struct named_command *cmd,
			    struct words *env)
{
	if (strcmp(language_name(cmd->language), "python") == 0)
		push_env(run, env, arena_printf(run->work, "PYTHONPATH=%s", c->cwd));
	if (c->args.path)
		push_env(run, env,
			 arena_printf(run->work, "FILE_CONTENT_PATH=%s",
				      path_absolute(run->work, c->cwd, c->args.path)));
	for (size_t i = 0; i < c->args.env.n; i++)
		push_env(run, env, c->args.env.v[i]);
}

/* The program, behind ourselves when there are files to write first. */
static char **whole_argv(const struct server *s, struct call *c, struct run *run,
			 const struct language_code *code, const char *list)
{
	char **argv = NULL;
	size_t n = 0;

	if (list) {
		*ARENA_PUSH(run->work, argv, n) = arena_strdup(run->work, s->req->self);
		*ARENA_PUSH(run->work, argv, n) = arena_strdup(run->work, MCP_UNPACK_WORD);
		*ARENA_PUSH(run->work, argv, n) = arena_strdup(run->work, list);
	}
	for (char **v = code->argv; *v; v++)
		*ARENA_PUSH(run->work, argv, n) = *v;
	for (size_t i = 0; i < c->args.args.n; i++)
		*ARENA_PUSH(run->work, argv, n) = c->args.args.v[i];
	*ARENA_PUSH(run->work, argv, n) = NULL;
	return argv;
}

static struct run *start(struct server *s, struct call *c, const struct named_command *cmd,
			 uint64_t timeout_ms)
{
	struct run *run = run_new(s);
	struct plan_file files[2];
	struct language_code code = { 0 };
	struct language_source source = { .code = cmd->code, .with_file = c->args.path != NULL };
	struct run_spec spec = { .label = cmd->label,
				 .language = language_name(cmd->language),
				 .files = files,
				 .cwd = c->cwd,
				 .no_network = c->args.no_network,
				 .read_only = c->args.read_only,
				 .input = c->args.input,
				 .input_len = c->args.input_len,
				 .timeout_ms = timeout_ms };
	struct words env = { 0 };
	const char *list = NULL;

	run->users++;
	if (run_stage(s, run, &source.stage, &run->failure) < 0) {
		run->state = RUN_ENDED;
		return run;
	}
	language_prepare(run->work, language_if_found(&s->languages, cmd->language), &source,
			 &code);
	if (!code.inline_only)
		files[spec.n_files++] =
			(struct plan_file){ path_join(run->work, source.stage, code.file),
					    code.text };
	if (c->args.files) {
		list = path_join(run->work, source.stage, "files.json");
		files[spec.n_files++] = (struct plan_file){ list, c->args.files };
	}
	add_environment(c, run, cmd, &env);
	spec.argv = whole_argv(s, c, run, &code, list);
	spec.env = env.v;
	spec.n_env = env.n;
	run_start(s, run, &spec);
	return run;
}

/* --- execute, execute_file --------------------------------------------------------------------- */

static int begin_run(struct server *s, struct call *c, struct error *e)
{
	int r = check_language(s, c->args.language, e);

	if (r == 0)
		r = find_directory(s, c, e);
	if (r == 0 && c->args.background && server_jobs(s) >= SERVER_JOBS_MAX)
		return error_set(e, EAGAIN, "%d background jobs are running: end one with job_kill",
				 SERVER_JOBS_MAX);
	c->runs = arena_array(c->a, 1, sizeof(struct run *));
	c->n_runs = 1;
	return r;
}

/* From now on nobody waits for it. */
static void detach(struct run *run)
{
	run->job = true;
	run->deadline_ms = 0;
}

static bool step_run(struct server *s, struct call *c, uint64_t now)
{
	struct named_command cmd = { "", c->args.code, c->args.language };
	struct run *run = c->runs[0];

	if (!run) {
		if (server_running(s) >= SERVER_RUNS_MAX)
			return false;
		cmd.label = c->args.path ? c->args.path : language_name(cmd.language);
		if (c->args.background)
			c->reply_ms = now + (c->args.timeout_ms ? c->args.timeout_ms
								: BACKGROUND_GRACE_MS);
		run = c->runs[0] = start(s, c, &cmd, c->args.background ? 0 : c->args.timeout_ms);
		c->next_run = 1;
	}
	if (run->state != RUN_ENDED && c->reply_ms && now >= c->reply_ms) {
		detach(run);
		return true;
	}
	return run->state == RUN_ENDED;
}

/* --- batch_execute ------------------------------------------------------------------------------ */

static int begin_batch(struct server *s, struct call *c, struct error *e)
{
	int r = find_directory(s, c, e);

	for (size_t i = 0; r == 0 && i < c->args.n_commands; i++)
		r = check_language(s, c->args.commands[i].language, e);
	c->n_runs = c->args.n_commands;
	c->runs = arena_array(c->a, c->n_runs, sizeof(struct run *));
	return r;
}

static bool step_batch(struct server *s, struct call *c, uint64_t now)
{
	uint64_t deadline = c->args.timeout_ms ? c->started_ms + c->args.timeout_ms : 0;
	size_t running = 0;

	for (size_t i = 0; i < c->next_run; i++) {
		running += c->runs[i]->state == RUN_RUNNING;
		if (c->args.stop_on_error && c->runs[i]->state == RUN_ENDED &&
		    result_failed(c->runs[i]))
			c->stopped = true;
	}
	if (deadline && now >= deadline)
		c->stopped = true;
	while (!c->stopped && c->next_run < c->n_runs && running < c->args.concurrency &&
	       server_running(s) < SERVER_RUNS_MAX) {
		struct run *run =
			start(s, c, &c->args.commands[c->next_run], deadline ? deadline - now : 0);

		c->runs[c->next_run++] = run;
		running += run->state == RUN_RUNNING;
	}
	return running == 0 && (c->stopped || c->next_run == c->n_runs);
}

/* --- job_output, job_kill ------------------------------------------------------------------------ */

static int begin_job(struct server *s, struct call *c, struct error *e)
{
	_cleanup_buf_ struct buf shown = BUF_INIT(256);
	struct run *run;

	if (!c->args.run)
		return 0;
	run = run_find(s, c->args.run);
	if (!run) {
		text_append_safe(&shown, c->args.run);
		return error_set(e, ENOENT,
				 "there is no run \"%s\" any more; job_output without jobId lists "
				 "those that are kept",
				 buf_str(&shown));
	}
	c->runs = arena_array(c->a, 1, sizeof(struct run *));
	c->runs[0] = run;
	c->n_runs = c->next_run = 1;
	c->seen_bytes = run_bytes(run);
	run->users++;
	return 0;
}

static bool step_output(struct server *s, struct call *c, uint64_t now)
{
	const struct run *run = c->n_runs ? c->runs[0] : NULL;
	size_t which = c->args.stream && strcmp(c->args.stream, "stderr") == 0;

	(void)s;
	if (!run || run->state == RUN_ENDED || run->spool[which].size > c->args.offset ||
	    now >= c->started_ms + c->args.wait_ms)
		return true;
	c->reply_ms = c->started_ms + c->args.wait_ms;
	return false;
}

static bool step_kill(struct server *s, struct call *c, uint64_t now)
{
	struct run *run = c->runs[0];

	(void)s;
	if (!c->stopped) {
		c->stopped = true;
		c->reply_ms = now + KILL_WAIT_MS;
		if (c->args.signal && strcmp(c->args.signal, "KILL") != 0)
			run_signal(run, strcmp(c->args.signal, "INT") == 0 ? SIGINT : SIGTERM);
		else
			run_stop(run, RUN_STOP_KILL);
	}
	return run->state == RUN_ENDED || now >= c->reply_ms;
}

/* --- the end of a call ---------------------------------------------------------------------------- */

static void leave_runs(struct call *c)
{
	for (size_t i = 0; i < c->next_run; i++)
		c->runs[i]->users--;
	c->next_run = 0;
}

static void put_text(struct json *j, const char *text, size_t len)
{
	json_begin_object(j);
	json_kstring(j, "type", "text");
	json_key(j, "text");
	json_string_n(j, text, len);
	json_end_object(j);
}

/* A result that is only an error, in words for the model. */
static void answer_error(struct server *s, struct call *c, const char *text)
{
	struct reply r;

	if (s->unsandboxed)
		text = arena_printf(c->a, "[NO SANDBOX] %s\n%s", s->unsandboxed, text);
	reply_begin(s, &c->request, &r);
	json_key(&r.json, "content");
	json_begin_array(&r.json);
	put_text(&r.json, text, strlen(text));
	json_end_array(&r.json);
	json_kbool(&r.json, "isError", true);
	reply_send(s, &c->request, &r);
}

static void refuse(struct server *s, struct call *c)
{
	struct error e = { 0 };

	(void)!record_end(s, c, c->refused, &e);
	answer_error(s, c, c->refused);
}

static void tell_blocked(struct server *s, const struct call *c)
{
	if (c->request.log > SEVERITY_WARNING)
		return;
	for (size_t i = 0; i < c->next_run; i++) {
		for (size_t k = 0; k < c->runs[i]->report.n_denied && k < RESULT_BLOCKED_MAX; k++) {
			_cleanup_buf_ struct buf b = BUF_INIT(BUF_MAX_TEXT);

			result_describe(&c->runs[i]->report.denied[k], &b);
			notify_log(s, &c->request, SEVERITY_WARNING, buf_str(&b));
		}
	}
}

static void answer(struct server *s, struct call *c)
{
	_cleanup_buf_ struct buf text = BUF_INIT(BUF_MAX_TEXT), data = BUF_INIT(SERVER_REPLY_MAX);
	struct json structured = { .out = &data };
	struct error e = { 0 };
	struct reply r;

	tell_blocked(s, c);
	c->tool->write(s, c, &text, &structured);
	if (record_end(s, c, NULL, &e) < 0) {
		answer_error(s, c,
			     arena_printf(c->a,
					  "The result is withheld, since the audit log cannot be "
					  "written: %s",
					  e.text));
		return;
	}
	reply_begin(s, &c->request, &r);
	json_key(&r.json, "content");
	json_begin_array(&r.json);
	put_text(&r.json, buf_str(&text), text.len);
	if (c->request.links)
		result_links(c, &r.json);
	json_end_array(&r.json);
	json_key(&r.json, "structuredContent");
	json_raw(&r.json, buf_str(&data), data.len);
	json_kbool(&r.json, "isError", c->failed);
	reply_send(s, &c->request, &r);
}

static void call_free(struct server *s, struct call *c)
{
	leave_runs(c);
	s->n_calls--;
	arena_free(c->a);
	free(c);
	run_forget_old(s);
}

/* --- all calls ------------------------------------------------------------------------------------ */

static void tell_progress(struct server *s, struct call *c, uint64_t now)
{
	char text[128];
	uint64_t bytes = 0, elapsed = now - c->started_ms;
	size_t ended = 0;

	if (!c->request.token.text || now < c->progress_ms)
		return;
	c->progress_ms = now + PROGRESS_EVERY_MS;
	for (size_t i = 0; i < c->next_run; i++) {
		bytes += run_bytes(c->runs[i]);
		ended += c->runs[i]->state == RUN_ENDED;
	}
	if (c->n_runs > 1)
		(void)snprintf(text, sizeof(text),
			       "%zu of %zu commands done, %" PRIu64 " s, %" PRIu64
			       " bytes of output",
			       ended, c->n_runs, elapsed / 1000, bytes);
	else
		(void)snprintf(text, sizeof(text),
			       "running for %" PRIu64 " s, %" PRIu64 " bytes of output",
			       elapsed / 1000, bytes);
	notify_progress(s, &c->request, elapsed, text);
}

/* true: it is over. */
static bool step_call(struct server *s, struct call *c, uint64_t now)
{
	struct error e = { 0 };

	if (!c->started) {
		if (!server_is_ready(s) && c->tool->runs)
			return false;
		c->started = true;
		if (!c->refused && c->tool->begin(s, c, &e) < 0)
			c->refused = arena_strdup(c->a, e.text);
		if (!c->refused && c->tool->runs && record_start(s, c, &e) < 0)
			c->refused = arena_printf(c->a,
						  "Not run, since the audit log cannot be "
						  "written: %s",
						  e.text);
		if (c->refused) {
			refuse(s, c);
			return true;
		}
	}
	if (!c->tool->step(s, c, now)) {
		tell_progress(s, c, now);
		return false;
	}
	answer(s, c);
	return true;
}

void calls_step(struct server *s, uint64_t now)
{
	for (struct call **at = &s->calls; *at;) {
		struct call *c = *at;

		if (!step_call(s, c, now)) {
			at = &c->next;
			continue;
		}
		*at = c->next;
		call_free(s, c);
	}
}

static int sooner(int wait, uint64_t at, uint64_t now)
{
	uint64_t left = at > now ? at - now : 0;

	left = left < 60000 ? left : 60000;
	return wait < 0 || left < (uint64_t)wait ? (int)left : wait;
}

int calls_wait_ms(const struct server *s, uint64_t now)
{
	int wait = -1;

	for (const struct call *c = s->calls; c; c = c->next) {
		if (c->reply_ms)
			wait = sooner(wait, c->reply_ms, now);
		if (c->request.token.text)
			wait = sooner(wait, c->progress_ms, now);
		if (!c->started && (server_is_ready(s) || !c->tool->runs))
			wait = 0;
	}
	return wait;
}

static bool same_id(const struct json_span *a, const struct json_span *b)
{
	return a->kind == b->kind && a->len == b->len && memcmp(a->text, b->text, a->len) == 0;
}

static struct call **find_call(struct server *s, const struct json_span *id)
{
	struct call **at = &s->calls;

	while (*at && !same_id(&(*at)->request.id, id))
		at = &(*at)->next;
	return *at ? at : NULL;
}

void calls_cancel(struct server *s, const struct json_span *id)
{
	struct call **at = find_call(s, id);
	struct error e = { 0 };
	struct call *c;

	if (!at)
		return;
	c = *at;
	for (size_t i = 0; c->tool->runs && i < c->next_run; i++)
		run_stop(c->runs[i], RUN_STOP_CANCEL);
	(void)!record_end(s, c, "cancelled", &e);
	reply_drop(s, &c->request);
	*at = c->next;
	call_free(s, c);
}

void calls_free(struct server *s)
{
	while (s->calls) {
		struct call *c = s->calls;

		s->calls = c->next;
		reply_drop(s, &c->request);
		call_free(s, c);
	}
}

static struct json_span copy_span(struct arena *a, const struct json_span *span)
{
	struct json_span copy = *span;

	if (span->text)
		copy.text = arena_strndup(a, span->text, span->len);
	return copy;
}

static struct call *call_new(struct server *s, const struct tool *t, const struct request *rq)
{
	struct call **at = &s->calls, *c = calloc(1, sizeof(*c));

	if (!c)
		abort();
	c->a = arena_new();
	c->tool = t;
	c->request = *rq;
	c->request.id = copy_span(c->a, &rq->id);
	c->request.token = copy_span(c->a, &rq->token);
	c->started_ms = sys_now_ms();
	c->progress_ms = c->started_ms + PROGRESS_FIRST_MS;
	s->n_calls++;
	while (*at)
		at = &(*at)->next;
	*at = c;
	return c;
}

void tools_call(struct server *s, const struct rpc_message *m, struct request *rq)
{
	struct json_span name, given = { 0 };
	const struct tool *t = NULL;
	struct error e = { 0 };
	struct call *c;
	bool twice;

	if (rpc_member(&m->params, "name", &name, NULL))
		t = find_tool(&name);
	if (!t) {
		reply_error(s, rq, RPC_INVALID_PARAMS, "there is no such tool", NULL);
		return;
	}
	(void)rpc_member(&m->params, "arguments", &given, &twice);
	if (twice || find_call(s, &rq->id) || s->n_calls >= SERVER_CALLS_MAX) {
		reply_error(s, rq, RPC_INVALID_REQUEST,
			    twice ? "the arguments are there twice"
			    : s->n_calls >= SERVER_CALLS_MAX
				    ? "too many calls are waiting"
				    : "a call with this id is still running",
			    NULL);
		return;
	}
	c = call_new(s, t, rq);
	c->raw = copy_span(c->a, &given);
	if (arguments_read(c->a, t->takes, &c->raw, &c->args, &e) < 0)
		c->refused = arena_strdup(c->a, e.text);
}
